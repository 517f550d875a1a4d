//! SageMaker real-time endpoints: deploy, watch, invoke and delete.
//!
//! Every resource is recorded before it is created, so that nothing that costs money is forgotten. Nothing here prints.

mod deletion;
mod deploy;
mod log;
mod preflight;
mod records;
mod transport;
mod wait;

use crate::aws::{AwsError, AwsErrorKind};
use crate::sagemaker::SendError;

pub use deletion::{Deleted, Deletion, delete, delete_due};
pub use deploy::{DeployError, deploy};
pub use log::log_tail;
pub use preflight::{CheckedEndpoint, Leftovers, preflight};
pub use records::EndpointRecords;
pub use transport::EndpointTransport;
pub use wait::{Poll, wait_for, wait_until_gone, watch};

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
    /// The local records.
    #[error("Could not read or write the records of endpoints: {0}")]
    Record(#[from] std::io::Error),
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
