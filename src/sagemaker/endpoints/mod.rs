//! SageMaker real-time endpoints: deploy, watch, invoke and delete.
//!
//! Every resource is recorded before it is created, so that nothing that costs money is forgotten. Nothing here prints.

mod deletion;
mod deploy;
mod preflight;
mod transport;
mod wait;

use crate::aws::{AwsError, AwsErrorKind};
use crate::sagemaker::spec::endpoint::EndpointRecord;
use crate::sagemaker::{Record, RecordError, Records, SendError};

pub use deletion::{Deletion, delete, delete_due};
pub use deploy::{DeployError, deploy};
pub use preflight::{CheckedEndpoint, Leftovers, preflight};
pub use transport::EndpointTransport;
pub use wait::{wait_for, watch};

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
