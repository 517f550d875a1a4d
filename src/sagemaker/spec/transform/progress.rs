//! The progress of a job, and the results of its images.

use serde::Deserialize;
use strum::{IntoStaticStr, VariantArray};

use std::time::Duration;

use super::{TransformJob, TransformStatus};
use crate::domain::{S3Address, SampleUri};

/// The phase of a job, as far as AWS shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum JobPhase {
    /// SageMaker is looking for instances. Nothing is billed yet.
    Starting,
    /// The instances are fetching the container, the model and the first images.
    Downloading,
    Transforming,
    Done,
}

#[derive(Debug, Clone, PartialEq)]
pub struct JobProgress {
    pub job: TransformJob,
    pub phase: JobPhase,
    /// Objects of the input; `None` if it could not be listed.
    pub inputs: Option<u64>,
    /// The number of inputs with an output; `None` if the folder could not be listed.
    pub outputs: Option<u64>,
    /// When the outputs were counted, in milliseconds since 1970-01-01 UTC: many outputs are not listed on every poll.
    pub counted_at_ms: Option<i64>,
    /// Outputs per second by modification time, so that gaps in watching do not matter.
    pub outputs_per_s: Option<f64>,
    /// The billed time so far; `None` before the instances run.
    pub billed_s: Option<f64>,
    /// `None` if no price is known.
    pub cost_usd: Option<f64>,
    /// The newest lines of the container's log, oldest first.
    pub log_tail: Vec<LogLine>,
    /// Why the outputs could not be counted this time; `outputs` is then an earlier count.
    pub uncounted: Option<String>,
    /// What else could not be determined, and why.
    pub notes: Vec<String>,
    /// The folder of the images; `None` if the manifest that names it could not be read.
    pub images_in: Option<S3Address>,
    /// Milliseconds since 1970-01-01 UTC.
    pub seen_at_ms: i64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct LogLine {
    /// Milliseconds since 1970-01-01 UTC.
    #[serde(rename = "timestamp")]
    pub at_ms: i64,
    /// The part of the stream name after the job's, which identifies the instance.
    #[serde(skip)]
    pub stream: String,
    pub message: String,
}

impl JobProgress {
    /// The number of inputs without an output.
    pub fn missing(&self) -> Option<u64> {
        Some(self.inputs?.saturating_sub(self.outputs?))
    }

    /// Whether the job completed with images missing.
    pub fn is_short(&self) -> bool {
        self.job.status == TransformStatus::Completed && self.missing().is_some_and(|missing| missing > 0)
    }

    /// “counted 40 s ago”; `None` if the outputs were counted just before `now_ms`.
    pub fn count_age_text(&self, now_ms: i64) -> Option<String> {
        let seconds = self.count_age(now_ms)?.as_secs();
        (seconds >= 1).then(|| format!("counted {seconds} s ago"))
    }

    /// The remaining time at the current rate; `None` if the job has ended or the rate is unknown.
    pub fn seconds_left(&self, now_ms: i64) -> Option<f64> {
        if self.job.status.is_over() {
            return None;
        }
        let since_count = self.count_age(now_ms).unwrap_or_default();
        let of_count = self.missing()? as f64 / self.outputs_per_s?;
        Some((of_count - since_count.as_secs_f64()).max(0.0))
    }

    /// The age of the count. Zero after the clock was set back.
    pub fn count_age(&self, now_ms: i64) -> Option<Duration> {
        let age_ms = u64::try_from(now_ms - self.counted_at_ms?);
        Some(Duration::from_millis(age_ms.unwrap_or_default()))
    }

    /// `0.0..=1.0`
    pub fn fraction(&self) -> Option<f32> {
        let (inputs, outputs) = (self.inputs?, self.outputs?);
        (inputs > 0).then(|| (outputs as f64 / inputs as f64).min(1.0) as f32)
    }
}

/// The results of a job's images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobOutcome {
    /// The prefix that was read, or the folder of the manifest.
    pub place: S3Address,
    pub inputs: u64,
    /// The number of images with an output from this job.
    pub outputs: u64,
    /// Retries of this job that have predicted images or still may; oldest first.
    pub retries: Vec<JobRetry>,
    /// The objects without an output from this job or a retry, in listing order.
    pub failed: Vec<FailedObject>,
    /// Why the data log gives no reason for the remaining ones.
    pub unexplained: Unexplained,
    /// Why a retry is not possible, or not unchanged: the model was deleted.
    pub retry_obstacle: Option<String>,
    /// Objects without a known reason, and why it is unknown.
    pub notes: Vec<String>,
}

/// Why there is no reason for an image without an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unexplained {
    /// The job failed before it predicted any image.
    JobFailed,
    /// The data log was read and does not name the image.
    NotInLog,
    /// The job was stopped before it reached the image.
    NotProcessed,
    /// The data-log could not be read.
    LogUnread,
}

impl Unexplained {
    /// To follow the image name.
    pub fn words(self, job: &TransformJob) -> String {
        let job_name = &job.spec.job_name;
        match self {
            Self::JobFailed => {
                let why = job.failure.as_deref().unwrap_or("SageMaker reports no reason");
                format!("no output; job {job_name} failed before it predicted any image: {why}")
            }
            Self::NotInLog => {
                format!("no output; the data log of job {job_name} reports no reason")
            }
            Self::NotProcessed => {
                format!("not processed: job {job_name} was stopped before it reached this image")
            }
            Self::LogUnread => {
                format!("no output; the data log of job {job_name} could not be read")
            }
        }
    }
}

/// What a retry achieved for a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRetry {
    pub job_name: String,
    /// Images that had no output before it.
    pub predicted: u64,
    /// Images that it was given and has not reached while it still runs.
    pub under_way: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedObject {
    /// The full key.
    pub key: String,
    /// The full key of its output; `None` if unknown.
    pub output_key: Option<String>,
    /// The newest reason in the data logs of the job and its retries; `None` if there is none: the job may have ended
    /// before it reached this object.
    pub reason: Option<String>,
    /// Whether the model refused exactly this content, so that it would reject it again.
    pub is_refused: bool,
    pub size_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryChoice {
    /// All images without an output except those that the model rejected.
    NotRefused,
    /// All images without an output.
    All,
}

/// “2 images were predicted by the retry cats-retry-20261121-140509007”
pub fn predicted_by_retry(images: u64, job_name: &str) -> String {
    match images {
        1 => format!("1 image was predicted by the retry {job_name}"),
        _ => format!("{images} images were predicted by the retry {job_name}"),
    }
}

impl JobOutcome {
    /// The URI of an object without an output.
    pub fn uri_of(&self, failed: &FailedObject) -> SampleUri {
        self.place.uri_of(&failed.key)
    }

    /// “2 by retry cats-retry-20261121-140509007”, for retries that predicted images.
    pub fn retries_text(&self) -> Option<String> {
        let predicted = self.retries.iter().filter(|retry| retry.predicted > 0);
        let texts: Vec<String> =
            predicted.map(|retry| format!("{} by retry {}", retry.predicted, retry.job_name)).collect();
        (!texts.is_empty()).then(|| texts.join(", "))
    }

    /// The first retry that still runs for some of the images without an output.
    pub fn retry_under_way(&self) -> Option<&JobRetry> {
        self.retries.iter().find(|retry| retry.under_way > 0)
    }

    /// The number of images that the model rejected and would reject again.
    pub fn refused(&self) -> usize {
        self.failed.iter().filter(|failed| failed.is_refused).count()
    }

    /// The number of images that a retry may predict.
    pub fn worth_a_retry(&self) -> usize {
        self.failed.len() - self.refused()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sagemaker::spec::transform::TransformSpec;

    #[test]
    fn rate_is_constant_between_counts() {
        let progress = JobProgress {
            job: TransformJob {
                spec: TransformSpec::example(),
                arn: String::new(),
                status: TransformStatus::InProgress,
                failure: None,
                created_ms: 0,
                started_ms: Some(0),
                ended_ms: None,
                result: (),
                described: serde_json::Value::Null,
            },
            phase: JobPhase::Transforming,
            inputs: Some(10_000),
            outputs: Some(2_000),
            counted_at_ms: Some(50_000),
            outputs_per_s: Some(200.0),
            billed_s: None,
            cost_usd: None,
            log_tail: Vec::new(),
            uncounted: None,
            notes: Vec::new(),
            images_in: None,
            seen_at_ms: 50_000,
        };
        for (now_ms, left, age) in [
            (50_000, 40.0, None),
            (56_000, 34.0, Some("counted 6 s ago")),
            (95_000, 0.0, Some("counted 45 s ago")),
            // The clock was set back.
            (49_000, 40.0, None),
        ] {
            assert_eq!(progress.seconds_left(now_ms), Some(left), "{now_ms}");
            assert_eq!(progress.count_age_text(now_ms).as_deref(), age, "{now_ms}");
        }
        let mut over = progress;
        over.job.status = TransformStatus::Completed;
        assert_eq!(over.seconds_left(50_000), None);
    }
}
