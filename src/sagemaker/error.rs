//! The error of work on jobs and endpoints.

use std::path::PathBuf;

use super::RecordError;
use crate::aws::{AwsError, AwsErrorKind};
use crate::image::source::SourceError;
use crate::tasks::Cancelled;

/// Why work on a job or an endpoint failed. The message is complete, and states what to do.
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
    /// Neither SageMaker nor a local record knows the endpoint.
    #[error(
        "endpoint {name} does not exist in {region}; check the name and the region, or run spotcheck endpoint list"
    )]
    NoEndpoint { name: String, region: String },
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

/// The value or the error; cancellation ends the preflight.
pub(super) fn unless_cancelled<T>(result: Result<T, impl Into<JobError>>) -> Result<Result<T, JobError>, Cancelled> {
    match result.map_err(Into::into) {
        Err(JobError::Cancelled) => Err(Cancelled),
        result => Ok(result),
    }
}
