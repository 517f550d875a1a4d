//! Remote work: checks, starts, watches and cleans up SageMaker jobs, watches and deletes endpoints, and predicts with
//! remote models.

mod archives;
mod auto_delete;
pub(super) mod endpoint_form;
pub(super) mod endpoints;
mod job_form;
pub(super) mod jobs;
pub(super) mod outputs;
pub(super) mod prices;
pub(super) mod reading;
pub(super) mod rehearse;
pub(super) mod remote_inference;

use super::Shared;
use super::s3::failure;
use crate::remote::transform::{JobError, JobRecords};
use crate::state::{Failure, JobId};

pub(super) use auto_delete::EndpointDeleter;

fn records(shared: &Shared) -> JobRecords {
    JobRecords::in_folder(shared.dirs.jobs())
}

fn failure_of(shared: &Shared, id: &JobId, error: JobError) -> Failure {
    match error {
        JobError::Aws(error) => failure(shared, &id.s3, error),
        error => failure_of_job(&error),
    }
}

fn failure_of_job(error: &JobError) -> Failure {
    match error {
        JobError::Cancelled => Failure::Cancelled,
        error => Failure::new(error.to_string()),
    }
}
