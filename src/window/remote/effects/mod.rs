//! Remote work: checks, starts, watches and cleans up SageMaker jobs, watches and deletes endpoints, and predicts with
//! remote models.

pub(crate) mod archives;

use crate::sagemaker::jobs::{JobError, JobRecords};
use crate::window::effects::Shared;
use crate::window::s3::effects::failure;
use crate::window::state::{Failure, JobId};

pub(crate) use crate::window::endpoints::effects::auto_delete::EndpointDeleter;

pub(crate) fn records(shared: &Shared) -> JobRecords {
    JobRecords::in_folder(shared.dirs.jobs())
}

pub(crate) fn failure_of(shared: &Shared, id: &JobId, error: JobError) -> Failure {
    match error {
        JobError::Aws(error) => failure(shared, &id.s3, error),
        error => failure_of_job(&error),
    }
}

pub(crate) fn failure_of_job(error: &JobError) -> Failure {
    match error {
        JobError::Cancelled => Failure::Cancelled,
        error => Failure::new(error.to_string()),
    }
}
