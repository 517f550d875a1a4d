//! Deletes an endpoint, its configuration and model, and reports what stays.

use super::EndpointRecords;
use crate::aws::{Aws, AwsError, AwsErrorKind, SageMaker};
use crate::sagemaker::JobError;
use crate::sagemaker::spec::Deleted;
use crate::sagemaker::spec::endpoint::{EndpointRecord, EndpointStatus, UploadedArchive};
use crate::sagemaker::spec::transform::SageMakerAccess;
use crate::tasks::TaskControl;

const NOT_MADE_FOR_IT: &str = "not created for this endpoint; not billed";

/// A planned deletion of an endpoint. Nothing is deleted yet.
#[derive(Clone)]
pub struct Deletion {
    sagemaker: SageMaker,
    name: String,
    record: Option<EndpointRecord>,
    /// `None` if SageMaker does not know it, or no longer.
    status: Option<EndpointStatus>,
    /// Its current configuration, and the one that it was created with if that differs.
    configs: Vec<String>,
    model: Option<String>,
    takes_model: bool,
    archive: Option<UploadedArchive>,
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
        let mut configs: Vec<String> = there.iter().filter_map(|endpoint| endpoint.config_name.clone()).collect();
        if let Some(record) = &record
            && record.owns_config
            && !configs.contains(&record.config.name)
        {
            configs.push(record.config.name.clone());
        }
        let model = match (&record, configs.first()) {
            (Some(record), _) => Some(record.config.model_name.clone()),
            (None, Some(config)) => model_of(&sagemaker, config, control)?,
            (None, None) => None,
        };
        Ok(Self {
            name: name.to_owned(),
            status: there.map(|endpoint| endpoint.status),
            configs,
            model,
            takes_model: with_model || record.as_ref().is_some_and(|record| record.owns_model),
            archive: record.as_ref().and_then(|record| record.archive.clone()),
            record,
            sagemaker,
        })
    }

    /// Deletes only what the record lists: other resources with these names are not ours. `status` is that of the
    /// endpoint, if it exists.
    pub fn plan_from_record(aws: &Aws, record: &EndpointRecord, status: Option<EndpointStatus>) -> Self {
        let config = &record.config;
        Self {
            sagemaker: aws.sagemaker(&record.sagemaker),
            name: record.name.clone(),
            status,
            configs: Vec::from_iter(record.owns_config.then(|| config.name.clone())),
            model: record.owns_model.then(|| config.model_name.clone()),
            takes_model: record.owns_model,
            archive: record.archive.clone(),
            record: Some(record.clone()),
        }
    }

    /// The current status; `None` if SageMaker does not know the endpoint any more.
    pub fn status(&self) -> Option<EndpointStatus> {
        self.status
    }

    /// What would be deleted: “endpoint cats”, “configuration cats”, …
    pub fn to_delete(&self) -> Vec<String> {
        let endpoint = self.status.map(|_| endpoint_text(&self.name));
        let configs = self.configs.iter().map(|config| config_text(config));
        let model = self.model.iter().filter(|_| self.takes_model);
        let archive = self.archive.iter().map(archive_text);
        endpoint.into_iter().chain(configs).chain(model.map(|model| model_text(model))).chain(archive).collect()
    }

    /// The resources that would stay, and why.
    pub fn to_keep(&self) -> Vec<(String, String)> {
        let model = self.model.iter().filter(|_| !self.takes_model);
        model.map(|model| (model_text(model), NOT_MADE_FOR_IT.to_owned())).collect()
    }

    /// Deletes the resources, starting with the endpoint, because that is what costs money. SageMaker takes some minutes
    /// to delete it: [`super::wait_for`]. The record is deleted once nothing created here is left.
    ///
    /// # Errors
    /// The endpoint could not be deleted, so it still costs money. Other resources that could not be deleted are
    /// reported instead.
    pub fn carry_out(self, aws: &Aws, records: &EndpointRecords, control: &TaskControl) -> Result<Deleted, JobError> {
        let mut done = Deleted::default();
        match self.status {
            None => {}
            // Another program deleted it first.
            Some(EndpointStatus::Deleting) => done.deleted.push(endpoint_text(&self.name)),
            Some(_) => {
                control.set_step(format!("deleting endpoint {}", self.name));
                match self.sagemaker.delete_endpoint(&self.name, control) {
                    Err(error) if error.kind != AwsErrorKind::NotFound => return Err(error.into()),
                    _ => done.deleted.push(endpoint_text(&self.name)),
                }
            }
        }
        for config in &self.configs {
            let deleted = self.sagemaker.delete_endpoint_config(config, control);
            note(&mut done, config_text(config), deleted);
        }
        if let Some(model) = self.model.as_ref().filter(|_| self.takes_model) {
            let deleted = self.sagemaker.delete_model(model, control);
            note(&mut done, model_text(model), deleted);
        }
        if let Some(archive) = &self.archive {
            let (bucket, key) = (&archive.address.bucket, &archive.address.prefix);
            let deleted = aws.s3(&archive.s3).delete(bucket, key, Some(control));
            note(&mut done, archive_text(archive), deleted);
        }
        if let Some(record) = &self.record
            && done.kept.is_empty()
        {
            records.forget(record)?;
        }
        done.kept.extend(self.to_keep());
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

fn endpoint_text(name: &str) -> String {
    format!("endpoint {name}")
}

fn config_text(name: &str) -> String {
    format!("configuration {name}")
}

fn model_text(name: &str) -> String {
    format!("model {name}")
}

fn archive_text(archive: &UploadedArchive) -> String {
    format!("archive {}", archive.address)
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

fn note(done: &mut Deleted, what: String, deleted: Result<(), AwsError>) {
    match deleted {
        Err(error) if error.kind != AwsErrorKind::NotFound => done.kept.push((what, error.message)),
        _ => done.deleted.push(what),
    }
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
