//! Real-time endpoints of SageMaker: deployed, watched, asked, and deleted before they cost more than they are worth.
mod carrier;
pub use carrier::EndpointCarrier;
