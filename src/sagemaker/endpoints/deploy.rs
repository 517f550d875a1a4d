//! Deploys a model to an endpoint, first uploading its archive if necessary.

use std::path::Path;

use super::{Deletion, EndpointRecords};
use crate::aws::upload::Existing;
use crate::aws::{Aws, AwsError};
use crate::domain::S3Address;
use crate::sagemaker::JobError;
use crate::sagemaker::sending::Sender;
use crate::sagemaker::spec::Deleted;
use crate::sagemaker::spec::endpoint::{EndpointPlan, EndpointRecord, EndpointStatus, UploadedArchive};
use crate::sagemaker::spec::transform::ModelSource;
use crate::tasks::{ProgressUnit, TaskControl};

/// A failed deployment, with what was and was not deleted again.
#[derive(Debug, thiserror::Error)]
#[error("{error}\n{}", self.undone())]
pub struct DeployError {
    pub error: JobError,
    /// What was deleted again. What could not be deleted stays in the record, for [`super::delete`].
    pub done: Deleted,
}

impl DeployError {
    fn undone(&self) -> String {
        match &self.done {
            Deleted { deleted, kept } if deleted.is_empty() && kept.is_empty() => {
                "Nothing was created for it, so nothing remains".to_owned()
            }
            Deleted { deleted, kept } if kept.is_empty() => {
                format!("Deleted what was created for it: {}", self.done.deleted_text())
            }
            done => format!("Could not delete all that was created for it: {}", done.kept_text()),
        }
    }
}

/// `unfinished` is the folder for records of unfinished uploads.
///
/// Uploads a local archive, and creates the model (unless it exists in SageMaker), the configuration and the endpoint,
/// in this order, each recorded before it is created. If a step fails or is canceled, what was created is deleted
/// again, last first. What cannot be deleted stays in the record, as does everything if the program is killed.
///
/// # Errors
/// The archive cannot be read or uploaded, or a different object is in its place; SageMaker rejects a step; or the
/// record cannot be written.
pub fn deploy(
    aws: &Aws,
    records: &EndpointRecords,
    record: &mut EndpointRecord,
    plan: &EndpointPlan,
    unfinished: &Path,
    control: &TaskControl,
) -> Result<(), DeployError> {
    let mut deployment = Deployment { aws, records, record, plan, unfinished, control };
    deployment.make_all().or_else(|error| deployment.undo(error))
}

struct Deployment<'d> {
    aws: &'d Aws,
    records: &'d EndpointRecords,
    record: &'d mut EndpointRecord,
    plan: &'d EndpointPlan,
    unfinished: &'d Path,
    control: &'d TaskControl,
}

impl Deployment<'_> {
    fn make_all(&mut self) -> Result<(), JobError> {
        let (plan, control) = (self.plan, self.control);
        let sagemaker = self.aws.sagemaker(&self.record.sagemaker);
        if let ModelSource::New { spec, local_archive } = &plan.model {
            if let Some(path) = local_archive {
                self.send_archive(path, &spec.archive)?;
            }
            control.set_step(format!("creating model {}", spec.name));
            self.make(|record| &mut record.owns_model, || sagemaker.create_model(spec, control))?;
        }
        let config = self.record.config.clone();
        control.set_step(format!("creating configuration {}", config.name));
        self.make(|record| &mut record.owns_config, || sagemaker.create_endpoint_config(&config, control))?;
        let name = self.record.name.clone();
        control.set_step(format!("creating endpoint {name}"));
        self.make(|record| &mut record.is_started, || sagemaker.create_endpoint(&name, &config, control))
    }

    /// Uploads the archive. A new object is first recorded as belonging to this endpoint.
    fn send_archive(&mut self, path: &Path, address: &S3Address) -> Result<(), JobError> {
        let Self { aws, records, record, plan, unfinished, control } = self;
        control.set_step(format!("uploading the model to {address}"));
        let sender = Sender { aws, s3: &plan.s3, unfinished, control };
        let sent = sender.send_file(path, address, Existing::Keep, || {
            record.archive = Some(UploadedArchive { address: address.clone(), s3: plan.s3.clone() });
            Ok(records.write(record)?)
        });
        if sent.is_err() && record.archive.is_some() && sender.is_absent(address) {
            record.archive = None;
            records.forget(record)?;
        }
        sent
    }

    /// Records a resource before it is created, and removes it from the record if SageMaker has definitely not created
    /// it: an existing resource with that name belongs to something else.
    fn make(
        &mut self,
        note: impl Fn(&mut EndpointRecord) -> &mut bool,
        call: impl FnOnce() -> Result<(), AwsError>,
    ) -> Result<(), JobError> {
        let Self { records, record, .. } = self;
        *note(record) = true;
        if let Err(error) = records.write(record) {
            *note(record) = false;
            return Err(error.into());
        }
        let Err(error) = call() else {
            return Ok(());
        };
        if !error.kind.is_in_doubt() {
            *note(record) = false;
            if record.left().is_empty() {
                records.forget(record)?;
            } else {
                records.write(record)?;
            }
        }
        Err(error.into())
    }

    /// Deletes what a failed deployment created, even after a cancellation. `Ok` if SageMaker created the endpoint and
    /// only its response was lost.
    fn undo(&self, error: JobError) -> Result<(), DeployError> {
        let (aws, record) = (self.aws, &*self.record);
        let is_wanted = !matches!(error, JobError::Cancelled);
        let mut failed = DeployError { error, done: Deleted::default() };
        if record.left().is_empty() {
            return Err(failed);
        }
        let control = TaskControl::new(ProgressUnit::Steps);
        let sagemaker = aws.sagemaker(&record.sagemaker);
        let describe = || sagemaker.describe_endpoint(&record.name, &control);
        let status = match record.is_started.then(describe) {
            Some(Ok(Some(_))) if is_wanted => return Ok(()),
            Some(Ok(Some(endpoint))) => Some(endpoint.status),
            // Unknown until it is deleted.
            Some(Err(_)) => Some(EndpointStatus::Creating),
            Some(Ok(None)) | None => None,
        };
        let deletion = Deletion::plan_from_record(aws, record, status);
        let goes = deletion.left.clone();
        match deletion.carry_out(aws, self.records, &control) {
            Ok(done) => failed.done = done,
            // Nothing was deleted, because the endpoint still exists.
            Err(why) => {
                let why = why.to_string();
                failed.done.kept = goes.into_iter().map(|what| (what, why.clone())).collect();
            }
        }
        Err(failed)
    }
}
