//! Deletes an endpoint, its configuration and model, and reports what stays.

use super::EndpointRecords;
use crate::aws::{Aws, AwsError, AwsErrorKind, SageMaker};
use crate::sagemaker::JobError;
use crate::sagemaker::jobs::delete_leftover;
use crate::sagemaker::spec::Deleted;
use crate::sagemaker::spec::endpoint::{EndpointRecord, EndpointStatus};
use crate::sagemaker::spec::transform::{Leftover, SageMakerAccess};
use crate::tasks::TaskControl;

const NOT_MADE_FOR_IT: &str = "not created for this endpoint; not billed";

/// A planned deletion of an endpoint. Nothing is deleted yet.
#[derive(Clone)]
pub struct Deletion {
    sagemaker: SageMaker,
    record: Option<EndpointRecord>,
    /// The current status; `None` if SageMaker does not know the endpoint, or no longer.
    pub status: Option<EndpointStatus>,
    /// What will be deleted, in this order.
    pub left: Vec<Leftover>,
    /// A model that was not created for the endpoint.
    kept: Option<Leftover>,
}

impl Deletion {
    /// Finds the resources of an endpoint. Its model is included if it was created for it, or if `with_model` is set.
    ///
    /// # Errors
    /// The endpoint does not exist, or SageMaker is unreachable.
    pub fn plan(
        aws: &Aws,
        records: &EndpointRecords,
        access: &SageMakerAccess,
        name: &str,
        with_model: bool,
        control: &TaskControl,
    ) -> Result<Self, JobError> {
        let sagemaker = aws.sagemaker(access);
        let region = sagemaker.region(control)?;
        let record = records.find(name, &region).ok().flatten();
        let there = sagemaker.describe_endpoint(name, control)?;
        if record.is_none() && there.is_none() {
            let name = name.to_owned();
            return Err(JobError::NoEndpoint { name, region });
        }
        let status = there.as_ref().map(|endpoint| endpoint.status);
        let config = there.and_then(|endpoint| endpoint.config_name);
        let model = match (&record, &config) {
            (Some(record), _) => Some(record.config.model_name.clone()),
            (None, Some(config)) => model_of(&sagemaker, config, control)?,
            (None, None) => None,
        };
        let endpoint = status.map(|_| Leftover::Endpoint(name.to_owned()));
        // Its current configuration can differ from the one that it was created with.
        let mut left: Vec<Leftover> = endpoint.into_iter().chain(config.map(Leftover::Configuration)).collect();
        for created in record.iter().flat_map(EndpointRecord::left) {
            if !matches!(created, Leftover::Endpoint(_)) && !left.contains(&created) {
                left.push(created);
            }
        }
        let other = model.map(Leftover::Model).filter(|model| !left.contains(model));
        let (taken, kept) = if with_model { (other, None) } else { (None, other) };
        left.extend(taken);
        Ok(Self { sagemaker, record, status, left, kept })
    }

    /// Deletes only what the record lists: other resources with these names are not ours. `status` is that of the
    /// endpoint, if it exists.
    pub fn plan_from_record(aws: &Aws, record: &EndpointRecord, status: Option<EndpointStatus>) -> Self {
        let mut left = record.left();
        left.retain(|created| status.is_some() || !matches!(created, Leftover::Endpoint(_)));
        Self { sagemaker: aws.sagemaker(&record.sagemaker), record: Some(record.clone()), status, left, kept: None }
    }

    /// The resources that would stay, and why.
    pub fn to_keep(&self) -> Vec<(Leftover, String)> {
        self.kept.iter().map(|model| (model.clone(), NOT_MADE_FOR_IT.to_owned())).collect()
    }

    /// Deletes the resources, starting with the endpoint, because that is what costs money. SageMaker takes some minutes
    /// to delete it: [`super::wait_for`]. The record is deleted once nothing created here is left.
    ///
    /// # Errors
    /// The endpoint could not be deleted, so it still costs money. Other resources that could not be deleted are
    /// reported instead.
    pub fn carry_out(self, aws: &Aws, records: &EndpointRecords, control: &TaskControl) -> Result<Deleted, JobError> {
        let archive = self.record.as_ref().and_then(|record| record.archive.as_ref());
        let s3 = archive.map(|archive| aws.s3(&archive.s3));
        let mut done = Deleted { deleted: Vec::new(), kept: self.to_keep() };
        for left in self.left {
            // Another program deleted it first.
            let is_gone = self.status == Some(EndpointStatus::Deleting) && matches!(left, Leftover::Endpoint(_));
            let deleted = if is_gone { Ok(()) } else { delete_leftover(&self.sagemaker, s3.as_ref(), &left, control) };
            match deleted {
                Err(error) if matches!(left, Leftover::Endpoint(_)) => return Err(error.into()),
                Err(error) => done.kept.push((left, error.message)),
                Ok(()) => done.deleted.push(left),
            }
        }
        if let Some(record) = &self.record
            && done.kept.len() == usize::from(self.kept.is_some())
        {
            records.forget(record)?;
        }
        Ok(done)
    }
}

/// `None` if the configuration does not exist, or names no model.
fn model_of(sagemaker: &SageMaker, config: &str, control: &TaskControl) -> Result<Option<String>, AwsError> {
    match sagemaker.describe_endpoint_config(config, control) {
        Ok(config) => Ok(config.map(|config| config.model_name)),
        Err(error) if error.kind == AwsErrorKind::Cancelled => Err(error),
        // Permission to delete an endpoint does not include permission to describe its parts.
        Err(_) => Ok(None),
    }
}

/// Deletes an endpoint, its configuration, an archive that was uploaded for it, and its model if it was created for it
/// or `with_model` is set.
///
/// # Errors
/// The endpoint does not exist, or it could not be deleted, so it still costs money. Other resources that could not be
/// deleted are reported instead.
pub fn delete(
    aws: &Aws,
    records: &EndpointRecords,
    access: &SageMakerAccess,
    name: &str,
    with_model: bool,
    control: &TaskControl,
) -> Result<Deleted, JobError> {
    Deletion::plan(aws, records, access, name, with_model, control)?.carry_out(aws, records, control)
}

/// Deletes endpoints whose deletion is due. Failed ones stay due.
pub fn delete_due(
    aws: &Aws,
    records: &EndpointRecords,
    now_ms: i64,
    control: &TaskControl,
) -> Vec<(EndpointRecord, Result<Deleted, JobError>)> {
    let is_due = |record: &EndpointRecord| record.delete_at_ms.is_some_and(|at| at <= now_ms);
    let due = records.all().0.into_iter().filter(is_due);
    due.map(|record| {
        let done = delete(aws, records, &record.sagemaker, &record.name, false, control);
        (record, done)
    })
    .collect()
}
