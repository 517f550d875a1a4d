//! The logs of a job: those of its containers, and SageMaker's messages about its objects.

use std::collections::BTreeMap;

use super::JobError;
use crate::aws::SageMaker;
use crate::sagemaker::spec::log_events::LogFrom;
use crate::sagemaker::spec::transform::LogLine;
use crate::tasks::TaskControl;

/// The log group of all jobs.
const GROUP: &str = "/aws/sagemaker/TransformJobs";
/// The suffix of the stream that SageMaker itself writes.
const DATA_LOG: &str = "data-log";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogKind {
    /// The log of the containers: the output of the model's handler and its server.
    Container,
    /// SageMaker's own log about failed objects.
    Data,
}

/// Reads growing logs: each line once.
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
    pub fn read(&mut self, sagemaker: &SageMaker, control: &TaskControl) -> Result<Vec<LogLine>, JobError> {
        let prefix = format!("{}/", self.job_name);
        let mut lines = Vec::new();
        for stream in sagemaker.log_streams(GROUP, &prefix, Some(control))? {
            let is_data_log = stream.name.ends_with(DATA_LOG);
            if is_data_log != (self.kind == LogKind::Data) {
                continue;
            }
            let name = stream.name.strip_prefix(&prefix).unwrap_or(&stream.name);
            loop {
                let token = self.tokens.get(&stream.name).cloned();
                let from = token.clone().map_or(self.from.clone(), LogFrom::After);
                let page = sagemaker.log_events(GROUP, &stream.name, from, Some(control))?;
                lines.extend(page.events.into_iter().map(|event| LogLine {
                    at_ms: event.at_ms,
                    stream: name.to_owned(),
                    message: event.message.trim_end().to_owned(),
                }));
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
