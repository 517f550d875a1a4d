//! SageMaker real-time endpoints: deploy, watch, invoke and delete.
//!
//! Every resource is recorded before it is created, so that nothing that costs money is forgotten. Nothing here prints.

mod deletion;
mod deploy;
mod preflight;

use std::time::Duration;

use crate::aws::{AwsError, AwsErrorKind, SageMaker};
use crate::model::PredictError;
use crate::sagemaker::predictor::{Request, Transport};
use crate::sagemaker::spec::endpoint::{Endpoint, EndpointRecord};
use crate::sagemaker::{Poll, Record, Records};
use crate::tasks::TaskControl;

pub use deletion::{Deletion, delete, delete_due};
pub use deploy::{DeployError, deploy};
pub use preflight::{Leftovers, preflight};

pub type EndpointRecords = Records<EndpointRecord>;

impl Record for EndpointRecord {
    const THING: &'static str = "an endpoint";

    fn name(&self) -> &str {
        &self.name
    }

    fn region(&self) -> Option<&str> {
        self.sagemaker.region.as_deref()
    }

    fn order(&self, other: &Self) -> std::cmp::Ordering {
        self.name.cmp(&other.name)
    }
}

const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(15);

/// Polls until the endpoint's status is final, but for at most `limit`, and reports each result. Returns the last one:
/// `None` once the endpoint is deleted. The interval grows; network failures are retried.
///
/// # Errors
/// The permission is missing, or the task was canceled.
pub fn watch(
    sagemaker: &SageMaker,
    name: &str,
    limit: Option<Duration>,
    control: &TaskControl,
    mut see: impl FnMut(Poll<'_, Option<Endpoint>>),
) -> Result<Option<Endpoint>, AwsError> {
    let mut wait = FIRST_WAIT;
    let mut waited = Duration::ZERO;
    loop {
        let is_over = limit.is_some_and(|limit| waited >= limit);
        match sagemaker.describe_endpoint(name, control) {
            Ok(found) => {
                see(Poll::Seen(&found));
                let is_changing = |endpoint: &Endpoint| endpoint.status.is_changing();
                if is_over || !found.as_ref().is_some_and(is_changing) {
                    return Ok(found);
                }
            }
            Err(error) if error.kind.is_transient() && !is_over => {
                see(Poll::Trouble { why: &error.message, again_in: wait });
            }
            Err(error) => return Err(error),
        }
        control.sleep(wait).map_err(|_| AwsError::cancelled())?;
        waited += wait;
        wait = (wait * 3 / 2).min(LONGEST_WAIT);
    }
}

/// As [`watch`]; the status is the step of the task.
///
/// # Errors
/// As [`watch`].
pub fn wait_for(
    sagemaker: &SageMaker,
    name: &str,
    limit: Option<Duration>,
    control: &TaskControl,
) -> Result<Option<Endpoint>, AwsError> {
    watch(sagemaker, name, limit, control, |poll| match poll {
        Poll::Seen(Some(endpoint)) => control.set_step(endpoint.status.to_string()),
        Poll::Seen(None) => {}
        Poll::Trouble { why, .. } => control.set_step(why),
    })
}

/// The model behind an endpoint.
#[derive(Clone)]
pub struct EndpointTransport {
    sagemaker: SageMaker,
    endpoint: String,
    region: String,
}

impl EndpointTransport {
    /// # Errors
    /// No region is configured.
    pub fn new(sagemaker: SageMaker, endpoint: impl Into<String>, control: &TaskControl) -> Result<Self, AwsError> {
        let region = sagemaker.region(control)?;
        Ok(Self { sagemaker, endpoint: endpoint.into(), region })
    }

    pub fn region(&self) -> &str {
        &self.region
    }
}

impl EndpointTransport {
    /// Explains a failed request by the endpoint's status: the runtime only reports that it does not exist, or fails as
    /// for a single image.
    fn explained(&self, error: AwsError, control: &TaskControl) -> AwsError {
        use AwsErrorKind as Kind;
        let is_trouble = |kind| matches!(kind, Kind::Server | Kind::Throttled | Kind::Timeout | Kind::Cut);
        if error.kind != Kind::NotFound && !is_trouble(error.kind) {
            return error;
        }
        let there = self.sagemaker.describe_endpoint(&self.endpoint, control);
        let there = match there {
            Ok(Some(there)) => there,
            Err(outage) if outage.kind.concerns_everything() || is_trouble(outage.kind) => {
                return AwsError { kind: Kind::Unreachable, ..outage };
            }
            Ok(None) if error.kind != Kind::NotFound => {
                return AwsError {
                    kind: Kind::NotFound,
                    message: format!(
                        "Could not invoke endpoint {}: it does not exist; deploy it again, or choose another one",
                        self.endpoint
                    ),
                };
            }
            // Permission to invoke an endpoint does not include permission to describe it.
            Ok(None) | Err(_) => return error,
        };
        if there.status.accepts_requests() {
            return error;
        }
        let why = there.failure.map_or_else(String::new, |why| format!(" (AWS: {why})"));
        let what_to_do = if there.status.is_changing() {
            "wait until it is InService"
        } else {
            "deploy it again, or choose another one"
        };
        AwsError {
            kind: Kind::NotFound,
            message: format!("Could not invoke endpoint {}: it is {}{why}; {what_to_do}", self.endpoint, there.status),
        }
    }
}

impl Transport for EndpointTransport {
    fn carry(&self, request: Request, control: &TaskControl) -> Result<Vec<u8>, PredictError> {
        self.sagemaker
            .invoke_endpoint(&self.endpoint, request.content_type, request.body, control)
            .map_err(|error| predict_error(self.explained(error, control)))
    }

    fn name(&self) -> String {
        format!("endpoint {} in {}", self.endpoint, self.region)
    }
}

/// An error that other images may not have affects only this image.
fn predict_error(error: AwsError) -> PredictError {
    use AwsErrorKind as Kind;
    match error.kind {
        Kind::Cancelled => PredictError::Cancelled,
        Kind::Model
        | Kind::Invalid
        | Kind::Throttled
        | Kind::Timeout
        | Kind::Cut
        | Kind::Server
        | Kind::Limit
        | Kind::Other => PredictError::Failed(error.message),
        _ => PredictError::OutOfReach(error.message),
    }
}
