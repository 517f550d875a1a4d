//! Plain data about jobs, endpoints and their outputs: specifications, plans, checks, progress.

pub mod aws_region;
pub mod endpoint;
pub mod log_events;
pub mod output_mapping;
pub mod remote_model;
pub mod transform;
