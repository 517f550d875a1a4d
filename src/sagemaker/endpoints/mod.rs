//! SageMaker real-time endpoints: deploy, watch, invoke and delete.
//!
//! Every resource is recorded before it is created, so that nothing that costs money is forgotten. Nothing here prints.

mod deletion;
mod deploy;
mod preflight;
mod transport;

use std::time::Duration;

use crate::aws::{AwsError, AwsErrorKind, SageMaker};
use crate::sagemaker::spec::endpoint::{Endpoint, EndpointRecord};
use crate::sagemaker::{Poll, Record, RecordError, Records, SendError};
use crate::tasks::TaskControl;

pub use deletion::{Deletion, delete, delete_due};
pub use deploy::{DeployError, deploy};
pub use preflight::{CheckedEndpoint, Leftovers, preflight};
pub use transport::EndpointTransport;

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

/// The message is complete.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    #[error("canceled")]
    Cancelled,
    #[error("{0}")]
    Aws(AwsError),
    /// Neither SageMaker nor a local record knows it.
    #[error(
        "endpoint {name} does not exist in {region}; check the name and the region, or run spotcheck endpoint list"
    )]
    NotThere { name: String, region: String },
    /// The archive was not uploaded.
    #[error("{0}")]
    Send(SendError),
    #[error("{0}")]
    Record(#[from] RecordError),
}

impl From<AwsError> for EndpointError {
    fn from(error: AwsError) -> Self {
        match error.kind {
            AwsErrorKind::Cancelled => Self::Cancelled,
            _ => Self::Aws(error),
        }
    }
}

impl From<SendError> for EndpointError {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Cancelled => Self::Cancelled,
            error => Self::Send(error),
        }
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
        match sagemaker.describe_endpoint(name, Some(control)) {
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
