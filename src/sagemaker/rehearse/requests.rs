//! Sends images to the handler in the same requests as Batch Transform.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::handler::{Handler, HandlerRequest, Transfer};
use super::{Difference, RehearseError, RehearseOptions, Rehearsed, RequestForm, RequestLimits, response};
use crate::domain::Sample;
use crate::image::source::Source;
use crate::predict::SampleResult;
use crate::sagemaker::spec::transform::{BatchStrategy, needed_payload_mb};
use crate::tasks::TaskControl;

#[derive(Clone)]
pub(super) enum HandlerResult {
    Response(Vec<u8>),
    Refused(String),
    Over(Rehearsed),
}

/// The handler, its images and limits.
pub(super) struct HandlerClient<'a> {
    pub handler: &'a Handler,
    pub source: &'a dyn Source,
    pub options: &'a RehearseOptions,
    pub limits: RequestLimits,
}

impl HandlerClient<'_> {
    /// Predicts all samples with `at_once` parallel requests; results are in sample order.
    pub(super) fn predict_all(
        &self,
        samples: &[Sample],
        at_once: u32,
        control: &TaskControl,
    ) -> Result<Vec<HandlerResult>, RehearseError> {
        let requests = self.requests(samples, control)?;
        let next = AtomicUsize::new(0);
        let responses: Mutex<Vec<Option<HandlerResult>>> = Mutex::new(samples.iter().map(|_| None).collect());
        let work = || {
            while control.checkpoint().is_ok() {
                let Some(request) = requests.get(next.fetch_add(1, Ordering::Relaxed)) else {
                    return;
                };
                let asked = self.predict(&samples[request.clone()]);
                let mut responses = responses.lock();
                for (place, asked) in responses[request.clone()].iter_mut().zip(asked) {
                    *place = Some(asked);
                }
                control.add_done(request.len() as u64);
            }
        };
        let workers = (at_once.max(1) as usize).min(requests.len().max(1));
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(work);
            }
        });
        control.checkpoint()?;
        let responses = responses.into_inner();
        Ok(responses.into_iter().flatten().collect())
    }

    /// Groups samples into requests, in order. No group is empty.
    fn requests(&self, samples: &[Sample], control: &TaskControl) -> Result<Vec<Range<usize>>, RehearseError> {
        let mut requests: Vec<Range<usize>> = Vec::new();
        // The open request and its size.
        let (mut open, mut bytes) = (None, 0);
        for (index, sample) in samples.iter().enumerate() {
            control.checkpoint()?;
            let form = self.options.form_of(sample);
            if !self.puts_together(form) {
                (open, bytes) = (None, 0);
                requests.push(index..index + 1);
                continue;
            }
            let record = form.body(self.source, sample).unwrap_or_default();
            let added = form.in_its_file(&record).len() as u64;
            match requests.last_mut() {
                Some(last) if open == Some(form) && self.takes(bytes + added) => {
                    last.end = index + 1;
                    bytes += added;
                }
                _ => {
                    requests.push(index..index + 1);
                    (open, bytes) = (Some(form), added);
                }
            }
        }
        Ok(requests)
    }

    fn puts_together(&self, form: RequestForm) -> bool {
        self.options.strategy == BatchStrategy::MultiRecord && form != RequestForm::Image
    }

    fn takes(&self, bytes: u64) -> bool {
        let limit_mb = self.limits.max_payload_mb;
        limit_mb == 0 || needed_payload_mb(bytes) <= u64::from(limit_mb)
    }

    /// Sends one request with these samples, all in one form; returns one result for each.
    fn predict(&self, samples: &[Sample]) -> Vec<HandlerResult> {
        let Some(form) = samples.first().map(|first| self.options.form_of(first)) else {
            return Vec::new();
        };
        let puts_together = self.puts_together(form);
        let mut body = Vec::new();
        let unread: Vec<Option<String>> = samples
            .iter()
            .map(|sample| match form.body(self.source, sample) {
                Ok(record) if puts_together => {
                    body.extend(form.in_its_file(&record));
                    None
                }
                Ok(record) => {
                    body = record;
                    None
                }
                Err(error) => Some(error.to_string()),
            })
            .collect();
        let records = unread.iter().filter(|unread| unread.is_none()).count();
        let responses = match records {
            0 => Vec::new(),
            records => self.ask(form, &body, records),
        };
        let mut responses = responses.into_iter();
        let nothing = || HandlerResult::Over(Rehearsed::HandlerFailed("there is no response".to_owned()));
        unread
            .into_iter()
            .map(|unread| match unread {
                Some(why) => HandlerResult::Over(Rehearsed::Unread(why)),
                None => responses.next().unwrap_or_else(nothing),
            })
            .collect()
    }

    /// The results for the records of a body.
    fn ask(&self, form: RequestForm, body: &[u8], records: usize) -> Vec<HandlerResult> {
        let for_each = |asked: HandlerResult| vec![asked; records];
        let bytes = body.len() as u64;
        if !self.takes(bytes) {
            let needed_mb = needed_payload_mb(bytes);
            return for_each(HandlerResult::Over(Rehearsed::TooLarge { bytes, needed_mb }));
        }
        let question = HandlerRequest {
            body,
            content_type: self.options.content_type_of(form),
            transfer: match self.limits.max_payload_mb {
                0 => Transfer::Chunked,
                _ => Transfer::Whole,
            },
        };
        match self.handler.invoke(question) {
            Err(reason) => for_each(HandlerResult::Over(Rehearsed::HandlerFailed(reason))),
            Ok(reply) if reply.status == 200 && self.puts_together(form) => responses_in(&reply.body, records),
            Ok(reply) if reply.status == 200 => for_each(HandlerResult::Response(reply.body)),
            Ok(reply) => {
                let reason = match response::read(&reply.body) {
                    Ok(Err(reason)) => reason,
                    _ => response::beginning(&reply.body),
                };
                for_each(if reply.status == 400 {
                    HandlerResult::Refused(reason)
                } else {
                    HandlerResult::Over(Rehearsed::HandlerFailed(format!(
                        "the handler returned status {}: {reason}",
                        reply.status
                    )))
                })
            }
        }
    }
}

/// The responses for records in one request: one per line, or TensorFlow Serving's list.
fn responses_in(body: &[u8], records: usize) -> Vec<HandlerResult> {
    let lines: Vec<&[u8]> = body.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).collect();
    if lines.len() == records {
        return lines.into_iter().map(|line| HandlerResult::Response(line.to_vec())).collect();
    }
    let whole: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let predictions = whole["predictions"].as_array().map(Vec::len);
    let asked = if predictions == Some(records) {
        HandlerResult::Response(body.to_vec())
    } else {
        HandlerResult::Over(Rehearsed::HandlerFailed(format!(
            "{} responses for {records} records: {}",
            lines.len(),
            response::beginning(body)
        )))
    };
    vec![asked; records]
}

impl HandlerResult {
    /// The result if there is no local model.
    pub(super) fn without_comparison(self) -> Rehearsed {
        match self {
            Self::Response(body) if serde_json::from_slice::<serde_json::Value>(&body).is_ok() => Rehearsed::Predicted,
            Self::Response(body) => {
                Rehearsed::HandlerFailed(format!("the response is not JSON: {}", response::beginning(&body)))
            }
            Self::Refused(reason) => Rehearsed::RefusedThere(reason),
            Self::Over(rehearsed) => rehearsed,
        }
    }

    pub(super) fn compared_with(self, here: SampleResult, min_score: f32) -> Rehearsed {
        let there = match self {
            Self::Over(rehearsed) => return rehearsed,
            Self::Refused(reason) => Err(reason),
            Self::Response(body) => match response::read(&body) {
                Ok(there) => there,
                Err(reason) => return Rehearsed::HandlerFailed(reason),
            },
        };
        match (here, there) {
            (Ok(here), Ok(there)) => {
                let difference = Difference::between(&here, &there, min_score);
                if difference.is_within_tolerance() {
                    Rehearsed::Equal(difference)
                } else {
                    Rehearsed::Different(difference)
                }
            }
            (Err(here), Err(there)) => Rehearsed::RefusedByBoth { here: here.message, there },
            (Err(here), Ok(_)) => Rehearsed::RefusedHere(here.message),
            (Ok(_), Err(there)) => Rehearsed::RefusedThere(there),
        }
    }
}
