//! How far a job is, and what became of its images.

use super::{TransformJob, TransformStatus};
use crate::domain::{S3Address, SampleUri};

/// What a job is doing, as far as can be told from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobPhase {
    /// SageMaker looks for instances. Nothing is billed yet.
    Starting,
    /// The instances fetch the container, the model and the first images.
    Downloading,
    Transforming,
    /// It is over, one way or another.
    Done,
}

impl JobPhase {
    pub const ALL: [Self; 4] = [
        Self::Starting,
        Self::Downloading,
        Self::Transforming,
        Self::Done,
    ];

    pub fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Downloading => "downloading",
            Self::Transforming => "transforming",
            Self::Done => "done",
        }
    }
}

impl TransformStatus {
    pub fn word(self) -> &'static str {
        match self {
            Self::InProgress => "in progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
        }
    }
}

/// A job at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct JobProgress {
    pub job: TransformJob,
    pub phase: JobPhase,
    /// Objects of the input; `None` where it could not be listed.
    pub inputs: Option<u64>,
    /// Those of them that have an output; `None` where the folder could not be listed.
    pub outputs: Option<u64>,
    /// When they were counted: many outputs are not listed at every look. Milliseconds since 1970-01-01 UTC.
    pub counted_at_ms: Option<i64>,
    /// Measured by when the outputs were written, so a break in watching does not matter.
    pub outputs_per_s: Option<f64>,
    /// At that rate.
    pub seconds_left: Option<f64>,
    /// What is billed until now; `None` before the instances run.
    pub billed_s: Option<f64>,
    /// `None` where no price is known.
    pub cost_usd: Option<f64>,
    /// The newest lines of the container's log, the oldest first.
    pub log_tail: Vec<LogLine>,
    /// What could not be found out, and why.
    pub notes: Vec<String>,
    /// The folder that its images lie in; `None` where the manifest that says it could not be read.
    pub images_in: Option<S3Address>,
    /// Milliseconds since 1970-01-01 UTC.
    pub seen_at_ms: i64,
}

/// A line of a job's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Milliseconds since 1970-01-01 UTC.
    pub at_ms: i64,
    /// The part of the stream's name behind the job's: which instance.
    pub stream: String,
    pub message: String,
}

impl JobProgress {
    /// How many inputs have no output.
    pub fn missing(&self) -> Option<u64> {
        Some(self.inputs?.saturating_sub(self.outputs?))
    }

    /// SageMaker says that all went well, and yet there are images without an answer.
    pub fn is_short(&self) -> bool {
        self.job.status == TransformStatus::Completed
            && self.missing().is_some_and(|missing| missing > 0)
    }

    /// “counted 40 s ago”; `None` where the outputs were counted at this very look.
    pub fn count_age_text(&self) -> Option<String> {
        let age_ms = self.seen_at_ms - self.counted_at_ms?;
        (age_ms >= 1000).then(|| format!("counted {} s ago", age_ms / 1000))
    }

    /// `0.0..=1.0`
    pub fn fraction(&self) -> Option<f32> {
        let (inputs, outputs) = (self.inputs?, self.outputs?);
        (inputs > 0).then(|| (outputs as f64 / inputs as f64).min(1.0) as f32)
    }
}

/// What became of the images of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobOutcome {
    /// The prefix that was read, or the folder of the manifest.
    pub place: S3Address,
    pub inputs: u64,
    /// Those that have an output.
    pub outputs: u64,
    /// Those that have none, in the order of the listing.
    pub failed: Vec<FailedObject>,
    /// What the data-log says of objects that could not be told, and what could not be found out.
    pub notes: Vec<String>,
}

/// An input without an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedObject {
    /// The whole key.
    pub key: String,
    /// What the data-log says of it; `None` where it says nothing: the job may have ended before it came to this object.
    pub reason: Option<String>,
    pub size_bytes: u64,
}

impl JobOutcome {
    /// Of an object that has no output.
    pub fn uri_of(&self, failed: &FailedObject) -> SampleUri {
        self.place.uri_of(&failed.key)
    }

    /// Those that the data-log gives a reason for.
    pub fn refused(&self) -> usize {
        self.failed
            .iter()
            .filter(|failed| failed.reason.is_some())
            .count()
    }
}
