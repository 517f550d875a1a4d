//! Batch Transform jobs: checked before they cost money, started, watched, retried and cleaned up.
//!
//! Plain data in and out (`TransformPlan`, `JobProgress` …), so that the CLI and the window show the same. Nothing here
//! prints, and nothing here knows the content of an output.

mod aws_commands;
mod inputs;
mod manifest;
mod new_model;
mod outcome;
mod output_keys;
mod preflight;
mod prices;
mod records;
mod retries;
mod retry;
mod start;
mod watch;

use std::path::PathBuf;

use crate::aws::{AwsError, AwsErrorKind};
use crate::image::source::SourceError;
use crate::sagemaker::checks::RequestError;
use crate::sagemaker::{RecordError, SendError};
use crate::tasks::Cancelled;

pub use aws_commands::{aws_commands, quoted, shell_script};
pub use inputs::NamedFrom;
pub use manifest::manifest_of;
pub use new_model::{NewArchive, NewModel};
pub use outcome::{Account, outcome};
pub use output_keys::{OUT, OutputKeys, folders_around};
pub use preflight::{Checked, ModelPlan, check_only_model, has_input, preflight};
pub(crate) use preflight::{Place, check_image, check_job_name, check_prefix, check_regions, check_role};
pub use prices::{add_price, change_price, read_prices};
pub(crate) use records::delete_leftovers;
pub use records::{CleanUp, JobRecords, clean_up};
pub use retries::{FoundRetries, FoundRetry};
pub use retry::{PlannedRetry, Retry, RetryChanges, looks_like_retry, plan_retry, retry_prefix};
pub(crate) use start::Start;
pub use start::{StartFolders, start, started_before};
pub(crate) use watch::billed_s;
pub use watch::{Followed, PolledJob, Watch, find_record, follow};

/// The message is complete, and states what to do.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    #[error("canceled")]
    Cancelled,
    #[error("{0}")]
    Aws(AwsError),
    /// The plan cannot be carried out unchanged.
    #[error("{0}")]
    Plan(String),
    /// A retry would only send images that the model has refused.
    #[error("{}", refused_text(job, *refused))]
    Refused { job: String, refused: usize },
    /// An existing manifest cannot be used.
    #[error("{0}")]
    Manifest(String),
    #[error("{0}")]
    Record(#[from] RecordError),
    /// A local file or folder.
    #[error("{what}: {why}: {}", path.display())]
    Local { what: &'static str, why: String, path: PathBuf },
}

fn refused_text(job: &str, refused: usize) -> String {
    match refused {
        1 => format!(
            "The model rejected the only image of job {job} without an output, and would reject it again. Replace the \
             image before a retry"
        ),
        _ => format!(
            "The model rejected all {refused} images of job {job} without an output, and would reject them again. \
             Replace the images before a retry"
        ),
    }
}

impl From<AwsError> for JobError {
    fn from(error: AwsError) -> Self {
        match error.kind {
            AwsErrorKind::Cancelled => Self::Cancelled,
            _ => Self::Aws(error),
        }
    }
}

impl From<SendError> for JobError {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Cancelled => Self::Cancelled,
            SendError::Aws(error) => Self::Aws(error),
            SendError::Unreadable { path, why } => Self::local("The file cannot be read", path, why),
            SendError::Incomplete(why) => Self::Plan(why),
        }
    }
}

impl From<Cancelled> for JobError {
    fn from(Cancelled: Cancelled) -> Self {
        Self::Cancelled
    }
}

impl JobError {
    pub fn local(what: &'static str, path: impl Into<PathBuf>, why: impl std::fmt::Display) -> Self {
        Self::Local { what, why: why.to_string(), path: path.into() }
    }

    pub fn from_source(what: &'static str, path: impl Into<PathBuf>, error: &SourceError) -> Self {
        match error {
            SourceError::Cancelled => Self::Cancelled,
            error => Self::local(what, path, error),
        }
    }

    pub fn aws_kind(&self) -> Option<AwsErrorKind> {
        match self {
            Self::Aws(error) => Some(error.kind),
            _ => None,
        }
    }
}

impl RequestError for JobError {
    fn aws_kind(&self) -> Option<AwsErrorKind> {
        Self::aws_kind(self)
    }
}

/// The value or the error; cancellation ends the preflight.
pub(crate) fn unless_cancelled<T>(result: Result<T, JobError>) -> Result<Result<T, JobError>, Cancelled> {
    match result {
        Err(JobError::Cancelled) => Err(Cancelled),
        result => Ok(result),
    }
}
