//! Remote models: archives for SageMaker, jobs and endpoints that run them, and their outputs read as predictions.
//!
//! Plain data and blocking calls, used by the CLI and the window. Never runs a model itself.

pub mod client;
pub mod endpoints;
pub mod jobs;
pub mod outputs;
pub mod package;
pub mod predictor;
pub mod rehearse;
mod sending;
pub mod spec;
pub mod tf_serving;

pub use sending::SendError;
