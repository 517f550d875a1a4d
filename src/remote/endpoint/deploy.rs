//! An endpoint is made of a model, which may have to be sent first.

use std::collections::BTreeMap;
use std::path::Path;

use super::{EndpointError, EndpointRecords};
use crate::aws::{Aws, AwsError, AwsErrorKind, SageMaker};
use crate::domain::{
    EndpointRecord, EndpointSpec, ModelSpec, S3Access, S3Address, UploadedArchive,
};
use crate::remote::sending::Sender;
use crate::tasks::TaskControl;

/// A `model.tar.gz` of this machine that a model is to be made of.
#[derive(Debug, Clone, Copy)]
pub struct LocalArchive<'a> {
    pub path: &'a Path,
    /// Where it goes.
    pub address: &'a S3Address,
    pub s3: &'a S3Access,
    /// Notes of uploads that are not finished.
    pub unfinished: &'a Path,
}

/// Sends the archive, before [`deploy`]. Unless it was there already, the record says from before it is sent that it is there for this
/// endpoint alone.
///
/// # Errors
/// It cannot be read or sent, something else stands there, or the record cannot be written.
pub fn send_archive(
    aws: &Aws,
    records: &EndpointRecords,
    record: &mut EndpointRecord,
    archive: LocalArchive<'_>,
    control: &TaskControl,
) -> Result<(), EndpointError> {
    control.set_step(format!("uploading the model to {}", archive.address));
    let sender = Sender {
        aws,
        s3: archive.s3,
        unfinished: archive.unfinished,
        control,
    };
    sender.send_file(archive.path, archive.address, || {
        record.archive = Some(UploadedArchive {
            address: archive.address.clone(),
            s3: archive.s3.clone(),
        });
        Ok(records.write(record)?)
    })
}

/// Makes the model (where one is given), the configuration and the endpoint, in this order, each written down before. What was made
/// before a step failed stays in the record, for [`super::delete`]; where nothing was made there is no record.
///
/// # Errors
/// SageMaker refuses a step, or the record cannot be written.
pub fn deploy(
    sagemaker: &SageMaker,
    records: &EndpointRecords,
    record: &EndpointRecord,
    model: Option<&ModelSpec>,
    control: &TaskControl,
) -> Result<(), EndpointError> {
    let mut record = record.clone();
    if let Some(model) = model {
        control.set_step(format!("making the model {}", model.name));
        make(
            records,
            &mut record,
            |record| &mut record.owns_model,
            || sagemaker.create_model(model, Some(control)),
        )?;
    }
    control.set_step(format!("making the configuration {}", record.config.name));
    let config = record.config.clone();
    make(
        records,
        &mut record,
        |record| &mut record.owns_config,
        || sagemaker.create_endpoint_config(&config, Some(control)),
    )?;
    control.set_step(format!("starting the endpoint {}", record.name));
    let spec = EndpointSpec {
        name: record.name.clone(),
        config_name: config.name,
        tags: BTreeMap::new(),
    };
    make(
        records,
        &mut record,
        |record| &mut record.is_started,
        || sagemaker.create_endpoint(&spec, Some(control)),
    )
}

/// Writes down that there is one more thing, makes it, and takes the note back where SageMaker has surely not made it: what is there
/// under the same name is somebody else's then.
fn make(
    records: &EndpointRecords,
    record: &mut EndpointRecord,
    note: impl Fn(&mut EndpointRecord) -> &mut bool,
    call: impl FnOnce() -> Result<String, AwsError>,
) -> Result<(), EndpointError> {
    use AwsErrorKind as Kind;
    *note(record) = true;
    records.write(record)?;
    let Err(error) = call() else {
        return Ok(());
    };
    let is_in_doubt = matches!(
        error.kind,
        Kind::Cancelled | Kind::Timeout | Kind::Cut | Kind::Server | Kind::Unreachable
    );
    if !is_in_doubt {
        *note(record) = false;
        if record.has_anything() {
            records.write(record)?;
        } else {
            records.forget(record)?;
        }
    }
    Err(error.into())
}
