//! What happens elsewhere: jobs of SageMaker are checked, started, watched and cleaned up after, endpoints watched and deleted, and models
//! that are not here asked.

mod archives;
mod auto_delete;
pub(super) mod endpoint_form;
pub(super) mod endpoints;
mod job_form;
mod jobs;
pub(super) mod outputs;
pub(super) mod prices;
pub(super) mod reading;
pub(super) mod rehearse;
pub(super) mod remote_inference;

use super::Shared;
use super::s3::failure;
use crate::remote::transform::{JobError, JobRecords};
use crate::state::{JobId, S3Failure, TaskOutcome};

pub(super) use auto_delete::EndpointDeleter;
pub(super) use job_form::{check, start};
pub(super) use jobs::{
    delete_leftovers, find_leftovers, find_outcome, list, plan_retry, start_retry, stop, watch,
};

fn records(shared: &Shared) -> JobRecords {
    JobRecords::in_folder(shared.dirs.jobs())
}

fn failure_of(shared: &Shared, id: &JobId, error: JobError) -> S3Failure {
    match error {
        JobError::Cancelled => S3Failure::Cancelled,
        JobError::Aws(error) => failure(shared, &id.s3, error),
        error => S3Failure::Failed {
            message: error.to_string(),
            renewal: None,
        },
    }
}

fn outcome_of(error: &JobError) -> TaskOutcome {
    match error {
        JobError::Cancelled => TaskOutcome::Cancelled,
        error => TaskOutcome::Failed(error.to_string()),
    }
}
