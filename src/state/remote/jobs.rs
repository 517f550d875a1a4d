//! The jobs of an account and region, and what is known of single ones.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::remote_list::RemoteList;
use crate::domain::{
    CheckGrade, JobOutcome, JobProgress, JobQuery, Leftover, Preflight, S3Access, SageMakerAccess,
    TransformPlan, TransformSummary,
};
use crate::state::{S3Failure, TaskId};

/// A job, and how it is reached.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct JobId {
    pub sagemaker: SageMakerAccess,
    /// How its inputs and outputs are read.
    pub s3: S3Access,
    pub name: String,
}

impl JobId {
    /// Of a job in the region that the place in S3 is reached in.
    pub fn new(access: &S3Access, name: impl Into<String>) -> Self {
        Self {
            sagemaker: SageMakerAccess::from(access),
            s3: access.clone(),
            name: name.into(),
        }
    }
}

/// The jobs of an account and region.
pub type JobList = RemoteList<JobQuery, TransformSummary>;

/// What is known of one job.
#[derive(Debug)]
pub struct KnownJob {
    pub id: JobId,
    /// As it was seen last.
    pub progress: Option<JobProgress>,
    /// While somebody looks again and again.
    pub watching: Option<TaskId>,
    /// What went wrong last.
    pub failure: Option<S3Failure>,
    /// Why it could not be looked at just now; it is tried again.
    pub trouble: Option<String>,
    /// A stop is asked for.
    pub stopping: Option<TaskId>,
    pub outcome: JobFinding<JobOutcome>,
    /// What it left behind.
    pub left: JobFinding<Leftovers>,
    /// What was left behind is being deleted.
    pub cleaning: Option<TaskId>,
    /// What was deleted, for people.
    pub cleaned: Option<String>,
    /// A job over only the failed ones, before it is started.
    pub retry: JobFinding<RetryPlan>,
    /// It is being started.
    pub retrying: Option<TaskId>,
}

/// A job over what failed in another one, looked through and not started yet.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryPlan {
    /// As it was looked through, and as it is started.
    pub plan: Arc<TransformPlan>,
    pub preflight: Preflight,
    /// What is not as in the other job, and why, for people.
    pub notes: Vec<String>,
}

impl RetryPlan {
    /// Whether nothing speaks against starting.
    pub fn is_startable(&self) -> bool {
        self.preflight.grade() != CheckGrade::Problem
    }
}

/// How looking at a job again and again ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchEnd {
    /// The job is over.
    JobOver,
    /// There is no such job, so looking again would not help.
    NoSuchJob(S3Failure),
    /// It could not be looked at. That may be another time: after a sign-in, or with a permission.
    Failed(S3Failure),
}

/// What a job left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leftovers {
    /// The job was started elsewhere, so nothing here says what was made for it.
    Untold,
    /// What was made for the job alone and not deleted yet.
    Told(Vec<Leftover>),
}

/// Something about a job that is only looked for when somebody wants to know.
#[derive(Debug, Default)]
pub enum JobFinding<T> {
    #[default]
    NotYet,
    Looking(TaskId),
    Known(T),
    Failed(String),
}

impl<T> JobFinding<T> {
    /// What was found.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(found) => Some(found),
            Self::NotYet | Self::Looking(_) | Self::Failed(_) => None,
        }
    }
}

impl KnownJob {
    pub(super) fn new(id: JobId) -> Self {
        Self {
            id,
            progress: None,
            watching: None,
            failure: None,
            trouble: None,
            stopping: None,
            outcome: JobFinding::NotYet,
            left: JobFinding::NotYet,
            cleaning: None,
            cleaned: None,
            retry: JobFinding::NotYet,
            retrying: None,
        }
    }

    pub fn is_over(&self) -> bool {
        let progress = self.progress.as_ref();
        progress.is_some_and(|progress| progress.job.status.is_over())
    }
}
