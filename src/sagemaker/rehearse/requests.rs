//! The requests that Batch Transform creates from a job's input: their form, size and concurrency, and the handler's
//! responses to them.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use strum::{IntoStaticStr, VariantArray};

use super::handler::{Handler, HandlerRequest, Transfer};
use super::{Difference, RehearseError, RehearseOptions, Rehearsed};
use crate::domain::{ClassScore, Detection, Prediction, PredictionContent, Sample};
use crate::image::source::{Source, SourceError, framed_record};
use crate::predict::SampleResult;
use crate::sagemaker::spec::transform::{
    BatchStrategy, DEFAULT_PAYLOAD_MB, EXAMPLE_CONTENT_TYPE, IMAGE_CONTENT_TYPE, InstanceType, LINES_CONTENT_TYPE,
    MAX_PAYLOAD_IN_FLIGHT_MB, PayloadSuggestion, in_flight_problem, needed_payload_mb,
};
use crate::tasks::{Cancelled, TaskControl, in_parallel};

/// The form of images in a job's input. With `SingleRecord`, each is a separate request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum RequestForm {
    /// One object per image, not split.
    Image,
    /// Split into the records of TFRecord files, without their framing.
    TfRecord,
    /// Split into the lines of files with `{"b64": "…"}`. An element of a document becomes a line.
    Line,
}

impl RequestForm {
    /// The form of the image in its source.
    pub fn from_sample(sample: &Sample) -> Self {
        if sample.uri.is_in_tfrecord() {
            Self::TfRecord
        } else if sample.uri.record().is_some() {
            Self::Line
        } else {
            Self::Image
        }
    }

    pub fn content_type(self) -> &'static str {
        match self {
            Self::Image => IMAGE_CONTENT_TYPE,
            Self::TfRecord => EXAMPLE_CONTENT_TYPE,
            Self::Line => LINES_CONTENT_TYPE,
        }
    }

    /// The body of the request. An image that is not in a record or line is put into one.
    pub fn body(self, source: &dyn Source, sample: &Sample) -> Result<Vec<u8>, SourceError> {
        match self {
            Self::Image => source.read(&sample.uri),
            Self::TfRecord => match source.read_example(&sample.uri)? {
                Some(example) => Ok(example),
                None => Ok(example_around(&source.read(&sample.uri)?)),
            },
            Self::Line => {
                let mut line = match source.read_line(&sample.uri)? {
                    Some(line) => line,
                    None => line_around(&source.read(&sample.uri)?),
                };
                line.push(b'\n');
                Ok(line)
            }
        }
    }

    /// A record as in its file, next to others, which `MultiRecord` sends.
    pub fn in_its_file(self, record: &[u8]) -> Vec<u8> {
        match self {
            Self::TfRecord => framed_record(record),
            // A line already has its end.
            Self::Line | Self::Image => record.to_vec(),
        }
    }
}

fn line_around(image: &[u8]) -> Vec<u8> {
    format!("{{\"b64\":\"{}\"}}", STANDARD.encode(image)).into_bytes()
}

/// A serialized `tf.Example` with the feature `image/encoded` (`tensorflow/core/example/{example,feature}.proto`).
fn example_around(image: &[u8]) -> Vec<u8> {
    let bytes_list = field(1, image);
    let feature = field(1, &bytes_list);
    let entry = [field(1, b"image/encoded"), field(2, &feature)].concat();
    field(1, &field(1, &entry))
}

/// A length-delimited field of a message (<https://protobuf.dev/programming-guides/encoding/>).
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    let mut length = content.len();
    while length >= 0x80 {
        bytes.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes.extend(content);
    bytes
}

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
        let responses = in_parallel(at_once as usize, requests.len(), |_, number| {
            control.checkpoint()?;
            let request = requests[number].clone();
            let responses = self.predict(&samples[request.clone()]);
            control.add_done(request.len() as u64);
            Ok::<_, Cancelled>(responses)
        })?;
        control.checkpoint()?;
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
                let reason = match read_response(&reply.body) {
                    Ok(Err(reason)) => reason,
                    _ => beginning(&reply.body),
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
            beginning(body)
        )))
    };
    vec![asked; records]
}

impl HandlerResult {
    /// The result if there is no local model.
    pub(super) fn without_comparison(self) -> Rehearsed {
        match self {
            Self::Response(body) if serde_json::from_slice::<serde_json::Value>(&body).is_ok() => Rehearsed::Predicted,
            Self::Response(body) => Rehearsed::HandlerFailed(format!("the response is not JSON: {}", beginning(&body))),
            Self::Refused(reason) => Rehearsed::RefusedThere(reason),
            Self::Over(rehearsed) => rehearsed,
        }
    }

    pub(super) fn compared_with(self, here: SampleResult, min_score: f32) -> Rehearsed {
        let there = match self {
            Self::Over(rehearsed) => return rehearsed,
            Self::Refused(reason) => Err(reason),
            Self::Response(body) => match read_response(&body) {
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

#[derive(Deserialize)]
struct ResponseLine {
    status: String,
    error: Option<String>,
    width: Option<u32>,
    height: Option<u32>,
    classes: Option<Vec<ClassScore>>,
    detections: Option<Vec<Detection>>,
    #[serde(default)]
    warnings: Vec<String>,
}

/// The prediction, or why the handler refuses the image.
///
/// # Errors
/// It is not such a response.
fn read_response(body: &[u8]) -> Result<Result<Prediction, String>, String> {
    let line: ResponseLine = serde_json::from_slice(body)
        .map_err(|error| format!("could not read the response ({error}): {}", beginning(body)))?;
    if line.status != "ok" {
        return Ok(Err(line.error.unwrap_or(line.status)));
    }
    let response = match (line.classes, line.detections) {
        (Some(classes), None) => PredictionContent::Classes(classes),
        (None, Some(detections)) => PredictionContent::Detections(detections),
        _ => {
            return Err(format!("the response must contain either classes or detections: {}", beginning(body)));
        }
    };
    match (line.width, line.height) {
        (Some(width), Some(height)) => Ok(Ok(Prediction { width, height, content: response, warnings: line.warnings })),
        _ => Err(format!("the response does not contain the image size: {}", beginning(body))),
    }
}

/// The start of a response, for messages.
pub(super) fn beginning(body: &[u8]) -> String {
    const SHOWN: usize = 200;
    let text = String::from_utf8_lossy(&body[..body.len().min(SHOWN)]);
    let ellipsis = if body.len() > SHOWN { "…" } else { "" };
    let words: Vec<&str> = text.split_whitespace().collect();
    format!("“{}{ellipsis}”", words.join(" "))
}

/// `MaxPayloadInMB` and `MaxConcurrentTransforms` of the rehearsed job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestLimits {
    /// `0..=100`; with 0, requests are chunked, however large they are.
    pub max_payload_mb: u32,
    /// `None`: the handler is asked, and gets one request at a time if it does not report a number.
    pub max_concurrent: Option<u32>,
}

impl RequestLimits {
    /// The limits of a job with this largest request.
    pub fn new(options: &RehearseOptions, largest_bytes: u64) -> Result<Self, RehearseError> {
        let given = (options.max_payload_mb, options.max_concurrent);
        let instance = InstanceType::parse(&options.instance_type);
        let vcpus = instance.and_then(|instance| instance.vcpus());
        let suggestion = PayloadSuggestion::new(largest_bytes, vcpus).unwrap_or({
            // No payload is large enough; smaller images can still be sent.
            PayloadSuggestion { max_payload_mb: MAX_PAYLOAD_IN_FLIGHT_MB, max_concurrent: 1 }
        });
        let (max_payload_mb, max_concurrent) = suggestion.complete(given.0, given.1);
        let found = Self {
            max_payload_mb: max_payload_mb.unwrap_or(DEFAULT_PAYLOAD_MB),
            max_concurrent: max_concurrent.filter(|count| *count > 0),
        };
        let at_once = found.max_concurrent.unwrap_or(1);
        match in_flight_problem(found.max_payload_mb, at_once) {
            Some(problem) => Err(RehearseError::TooMuchInFlight(problem)),
            None => Ok(found),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unset_limits_match_job_defaults() {
        for (given, largest, expected) in [
            ((None, None), 9_300_000, Some((10, Some(4)))),
            ((None, None), 40_000_000, Some((40, Some(2)))),
            ((None, None), 200_000_000, Some((100, Some(1)))),
            ((Some(50), None), 10, Some((50, Some(2)))),
            ((Some(0), None), 10, Some((0, None))),
            ((None, Some(0)), 9_300_000, Some((6, None))),
            ((Some(100), Some(100)), 10, None),
            ((Some(101), Some(1)), 10, None),
        ] {
            let options =
                RehearseOptions { max_payload_mb: given.0, max_concurrent: given.1, ..RehearseOptions::default() };
            let found = RequestLimits::new(&options, largest).ok();
            let found = found.map(|found| (found.max_payload_mb, found.max_concurrent));
            assert_eq!(found, expected, "{given:?}, {largest}");
        }
    }
}
