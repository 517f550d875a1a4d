//! Endpoint, configuration and model go; what stays is said.

use super::{EndpointError, EndpointRecord, EndpointRecords};
use crate::aws::{Aws, AwsError, AwsErrorKind};
use crate::domain::SageMakerAccess;
use crate::tasks::TaskControl;

/// What a deletion did, for people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deleted {
    /// “endpoint cats”; what was gone already counts.
    pub deleted: Vec<String>,
    /// What stays, and why.
    pub kept: Vec<(String, String)>,
}

/// Deletes an endpoint with its configuration, and its model where it was made for it or `with_model` says so. The archive in S3 stays.
///
/// # Errors
/// The endpoint could not be deleted, so that it still costs money. Anything else that stays is no error, and told.
pub fn delete(
    aws: &Aws,
    records: &EndpointRecords,
    access: &SageMakerAccess,
    name: &str,
    with_model: bool,
    control: &TaskControl,
) -> Result<Deleted, EndpointError> {
    let sagemaker = aws.sagemaker(access);
    let region = sagemaker.region(Some(control))?;
    let record = records.find(name, &region);
    let there = sagemaker.describe_endpoint(name, Some(control))?;
    let config_name = match (&there, &record) {
        (Some(endpoint), record) => endpoint
            .config_name
            .clone()
            .or_else(|| Some(record.as_ref()?.config.name.clone())),
        (None, Some(record)) => Some(record.config.name.clone()),
        // Says that there is no such thing.
        (None, None) => None,
    };
    let mut done = Deleted::default();
    if there.is_some() || record.is_none() {
        sagemaker.delete_endpoint(name, Some(control))?;
    }
    done.deleted.push(format!("endpoint {name}"));
    let Some(config_name) = config_name else {
        return Ok(done);
    };
    let of_record = record
        .as_ref()
        .map(|record| record.config.model_name.clone());
    let model_name = match of_record {
        Some(model_name) => Some(model_name),
        None => sagemaker
            .describe_endpoint_config(&config_name, Some(control))
            .ok()
            .flatten()
            .map(|config| config.model_name),
    };
    let deleted = sagemaker.delete_endpoint_config(&config_name, Some(control));
    done.note(format!("configuration {config_name}"), deleted);
    if let Some(model_name) = model_name {
        let owns_model = record.as_ref().is_some_and(|record| record.owns_model);
        let what = format!("model {model_name}");
        if owns_model || with_model {
            let deleted = sagemaker.delete_model(&model_name, Some(control));
            done.note(what, deleted);
        } else {
            let why = "it was not made for this endpoint; it costs nothing".to_owned();
            done.kept.push((what, why));
        }
    }
    if let Some(record) = &record
        && done
            .kept
            .iter()
            .all(|(what, _)| what.starts_with("model ") && !record.owns_model)
    {
        records.forget(record)?;
    }
    Ok(done)
}

impl Deleted {
    fn note(&mut self, what: String, deleted: Result<(), AwsError>) {
        match deleted {
            Err(error) if error.kind != AwsErrorKind::NotFound => {
                self.kept.push((what, error.message));
            }
            _ => self.deleted.push(what),
        }
    }
}

/// Deletes what was to be deleted by now. What fails stays due.
pub fn delete_due(
    aws: &Aws,
    records: &EndpointRecords,
    now_ms: i64,
    control: &TaskControl,
) -> Vec<(EndpointRecord, Result<Deleted, EndpointError>)> {
    let is_due = |record: &EndpointRecord| record.delete_at_ms.is_some_and(|at| at <= now_ms);
    let due = records.all().0.into_iter().filter(is_due);
    due.map(|record| {
        let done = delete(
            aws,
            records,
            &record.sagemaker,
            &record.name,
            false,
            control,
        );
        (record, done)
    })
    .collect()
}
