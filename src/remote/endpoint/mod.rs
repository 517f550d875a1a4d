//! Real-time endpoints of SageMaker: deployed, watched, asked, and deleted before they cost more than they are worth.
//!
//! What was made here stands in a record, written before it is made, so that nothing that costs money is forgotten. Nothing here prints.

mod carrier;
mod deletion;
mod deploy;
mod records;

use crate::aws::AwsError;

pub use carrier::EndpointCarrier;
pub use deletion::{Deleted, delete, delete_due};
pub use deploy::{deploy, wait_for};
pub use records::{EndpointRecord, EndpointRecords};

/// Why something about an endpoint could not be done. The message is whole.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    #[error("{0}")]
    Aws(#[from] AwsError),
    /// A record on this machine.
    #[error("What was made for endpoints could not be written down or read: {0}")]
    Record(#[from] std::io::Error),
}
