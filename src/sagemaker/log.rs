//! Container logs in CloudWatch: a job's while it runs, and the end of an endpoint's.

use std::collections::{BTreeMap, VecDeque};

use super::spec::LogFrom;
use super::spec::transform::LogLine;
use crate::aws::{AwsError, AwsErrorKind, SageMaker};
use crate::tasks::TaskControl;

/// The log groups of all jobs.
const JOBS: &str = "/aws/sagemaker/TransformJobs";
const TRAINING_JOBS: &str = "/aws/sagemaker/TrainingJobs";
/// The suffix of the stream that SageMaker itself writes.
const DATA_LOG: &str = "data-log";

/// The log streams of our only variant, and of the default one in AWS's console.
const VARIANT: &str = "AllTraffic/";
/// The number of newest streams of an endpoint: the last instances show what is wrong.
const LAST_STREAMS: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogKind {
    /// The log of the containers: the output of the model's handler and its server.
    Container,
    /// SageMaker's own log about failed objects.
    Data,
    /// The log of a training job's containers: the output of the script.
    Training,
}

/// Reads the growing logs of a job: each line once.
pub struct LogReader {
    job_name: String,
    kind: LogKind,
    /// Where to start reading each stream.
    from: LogFrom,
    /// The tokens by stream name.
    tokens: BTreeMap<String, String>,
}

impl LogReader {
    pub fn new(job_name: impl Into<String>, kind: LogKind) -> Self {
        Self { job_name: job_name.into(), kind, from: LogFrom::Beginning, tokens: BTreeMap::new() }
    }

    /// Skips everything before the newest lines of each stream: days of log are not read for the sake of its end.
    pub fn from_newest(self, lines: u32) -> Self {
        Self { from: LogFrom::Newest(lines), ..self }
    }

    /// The lines since the last call, oldest first. Empty if there is no log yet.
    pub fn read(&mut self, sagemaker: &SageMaker, control: &TaskControl) -> Result<Vec<LogLine>, AwsError> {
        let prefix = format!("{}/", self.job_name);
        let group = if self.kind == LogKind::Training { TRAINING_JOBS } else { JOBS };
        let mut lines = Vec::new();
        for stream in sagemaker.log_streams(group, &prefix, control)? {
            let is_data_log = stream.name.ends_with(DATA_LOG);
            if is_data_log != (self.kind == LogKind::Data) {
                continue;
            }
            loop {
                let token = self.tokens.get(&stream.name).cloned();
                let from = token.clone().map_or(self.from.clone(), LogFrom::After);
                let page = sagemaker.log_events(group, &stream.name, from, control)?;
                lines.extend(lines_of(page.events, &stream.name, &prefix));
                let is_end = page.next.is_empty() || token.as_ref() == Some(&page.next);
                if !page.next.is_empty() {
                    self.tokens.insert(stream.name.clone(), page.next);
                }
                if is_end {
                    break;
                }
            }
        }
        // A stable sort keeps the lines of one stream in order.
        lines.sort_by_key(|line| line.at_ms);
        Ok(lines)
    }
}

/// The number of log lines that a [`LogTail`] keeps.
const LOG_TAIL: u32 = 100;

/// The newest lines of a growing log, as long as it can be read.
pub struct LogTail {
    reader: LogReader,
    lines: VecDeque<LogLine>,
    /// Why the log is no longer read.
    trouble: Option<String>,
}

impl LogTail {
    pub fn new(job_name: &str, kind: LogKind) -> Self {
        let reader = LogReader::new(job_name, kind).from_newest(LOG_TAIL);
        Self { reader, lines: VecDeque::new(), trouble: None }
    }

    /// Reads new lines. Why that fails is added to `notes`.
    ///
    /// # Errors
    /// The credentials have expired, or the task was canceled.
    pub fn read(
        &mut self,
        sagemaker: &SageMaker,
        notes: &mut Vec<String>,
        control: &TaskControl,
    ) -> Result<Vec<LogLine>, AwsError> {
        if self.trouble.is_none() {
            match self.reader.read(sagemaker, control) {
                Ok(lines) => {
                    self.lines.extend(lines);
                    let surplus = self.lines.len().saturating_sub(LOG_TAIL as usize);
                    self.lines.drain(..surplus);
                }
                Err(error) if matches!(error.kind, AwsErrorKind::Cancelled | AwsErrorKind::ExpiredCredentials) => {
                    return Err(error);
                }
                Err(error) if error.kind.is_transient() => notes.push(error.to_string()),
                // A missing permission to read logs does not change within moments.
                Err(error) => self.trouble = Some(error.to_string()),
            }
        }
        notes.extend(self.trouble.clone());
        Ok(self.lines.iter().cloned().collect())
    }
}

/// The last lines of an endpoint's log, at most this many (`1..=10_000`), oldest first. Empty if nothing was written
/// yet.
pub fn endpoint_log_tail(
    sagemaker: &SageMaker,
    name: &str,
    lines: u32,
    control: &TaskControl,
) -> Result<Vec<LogLine>, AwsError> {
    let group = format!("/aws/sagemaker/Endpoints/{name}");
    let mut streams = sagemaker.log_streams(&group, VARIANT, control)?;
    streams.sort_by_key(|stream| std::cmp::Reverse(stream.last_event_ms));
    let mut tail = Vec::new();
    for stream in streams.iter().take(LAST_STREAMS) {
        let page = sagemaker.log_events(&group, &stream.name, LogFrom::Newest(lines), control)?;
        tail.extend(lines_of(page.events, &stream.name, VARIANT));
    }
    tail.sort_by_key(|line| line.at_ms);
    let too_many = tail.len().saturating_sub(lines as usize);
    tail.drain(..too_many);
    Ok(tail)
}

fn lines_of(lines: Vec<LogLine>, stream: &str, prefix: &str) -> impl Iterator<Item = LogLine> {
    let stream = stream.strip_prefix(prefix).unwrap_or(stream);
    lines.into_iter().map(move |line| LogLine {
        stream: stream.to_owned(),
        message: line.message.trim_end().to_owned(),
        ..line
    })
}
