//! An endpoint is made of a model, and waited for.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{EndpointError, EndpointRecord, EndpointRecords};
use crate::aws::{AwsError, AwsErrorKind, SageMaker};
use crate::domain::{Endpoint, EndpointSpec, ModelSpec};
use crate::tasks::TaskControl;

const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(15);

/// Makes the model (where one is given), the configuration and the endpoint, in this order, each written down before. What was made
/// before a step failed stays in the record, for [`super::delete`].
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
    records.write(record)?;
    if let Some(model) = model {
        control.set_step(format!("making the model {}", model.name));
        sagemaker.create_model(model, Some(control))?;
    }
    control.set_step(format!("making the configuration {}", record.config.name));
    sagemaker.create_endpoint_config(&record.config, Some(control))?;
    control.set_step(format!("starting the endpoint {}", record.name));
    let spec = EndpointSpec {
        name: record.name.clone(),
        config_name: record.config.name.clone(),
        tags: BTreeMap::new(),
    };
    sagemaker.create_endpoint(&spec, Some(control))?;
    Ok(())
}

/// Looks again and again until the endpoint does not change by itself any more; `None` once it is gone. Waits longer each time, and
/// through a network that is away for a while.
///
/// # Errors
/// Whoever asks may not, or the task was cancelled.
pub fn wait_for(
    sagemaker: &SageMaker,
    name: &str,
    control: &TaskControl,
) -> Result<Option<Endpoint>, AwsError> {
    let mut wait = FIRST_WAIT;
    loop {
        match sagemaker.describe_endpoint(name, Some(control)) {
            Ok(Some(endpoint)) if endpoint.status.is_changing() => {
                control.set_step(endpoint.status.to_string());
            }
            Ok(found) => return Ok(found),
            Err(error) if is_passing(error.kind) => control.set_step(error.message),
            Err(error) => return Err(error),
        }
        control.sleep(wait).map_err(|_| AwsError::cancelled())?;
        wait = (wait * 3 / 2).min(LONGEST_WAIT);
    }
}

fn is_passing(kind: AwsErrorKind) -> bool {
    matches!(
        kind,
        AwsErrorKind::Dns
            | AwsErrorKind::Unreachable
            | AwsErrorKind::Throttled
            | AwsErrorKind::Timeout
            | AwsErrorKind::Cut
            | AwsErrorKind::Server
    )
}
