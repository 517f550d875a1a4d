//! An endpoint is made of a model, which may have to be sent first.

use std::path::Path;

use super::{EndpointError, EndpointRecords};
use crate::aws::{Aws, AwsError, AwsErrorKind};
use crate::domain::{
    EndpointRecord, EndpointSpec, ModelSource, S3Access, S3Address, UploadedArchive,
};
use crate::remote::sending::Sender;
use crate::tasks::TaskControl;

/// What an endpoint is made of.
#[derive(Debug, Clone, Copy)]
pub struct Material<'m> {
    pub source: &'m ModelSource,
    /// Who reaches the place that an archive of this machine goes to.
    pub s3: &'m S3Access,
    /// Notes of uploads that are not finished.
    pub unfinished: &'m Path,
}

/// Sends the archive where it is one of this machine, and makes the model (unless SageMaker has it), the configuration and the endpoint, in
/// this order, each written down before. What was made before a step failed stays in the record, for [`super::delete`]; where nothing was
/// made there is no record.
///
/// # Errors
/// The archive cannot be read or sent, or something else stands there; SageMaker refuses a step; or the record cannot be written.
pub fn deploy(
    aws: &Aws,
    records: &EndpointRecords,
    record: &mut EndpointRecord,
    material: Material<'_>,
    control: &TaskControl,
) -> Result<(), EndpointError> {
    let sagemaker = aws.sagemaker(&record.sagemaker);
    if let ModelSource::New {
        spec,
        local_archive,
    } = material.source
    {
        if let Some(path) = local_archive {
            send_archive(
                aws,
                records,
                record,
                (path, &spec.archive),
                material,
                control,
            )?;
        }
        control.set_step(format!("making the model {}", spec.name));
        make(
            records,
            record,
            |record| &mut record.owns_model,
            || sagemaker.create_model(spec, Some(control)),
        )?;
    }
    let config = record.config.clone();
    control.set_step(format!("making the configuration {}", config.name));
    make(
        records,
        record,
        |record| &mut record.owns_config,
        || sagemaker.create_endpoint_config(&config, Some(control)),
    )?;
    let spec = EndpointSpec {
        name: record.name.clone(),
        config_name: config.name,
        tags: config.tags,
    };
    control.set_step(format!("starting the endpoint {}", spec.name));
    make(
        records,
        record,
        |record| &mut record.is_started,
        || sagemaker.create_endpoint(&spec, Some(control)),
    )
}

/// Unless the archive was there already, the record says from before it is sent that it is there for this endpoint alone.
fn send_archive(
    aws: &Aws,
    records: &EndpointRecords,
    record: &mut EndpointRecord,
    (path, address): (&Path, &S3Address),
    material: Material<'_>,
    control: &TaskControl,
) -> Result<(), EndpointError> {
    control.set_step(format!("uploading the model to {address}"));
    let sender = Sender {
        aws,
        s3: material.s3,
        unfinished: material.unfinished,
        control,
    };
    sender.send_file(path, address, || {
        record.archive = Some(UploadedArchive {
            address: address.clone(),
            s3: material.s3.clone(),
        });
        Ok(records.write(record)?)
    })
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
