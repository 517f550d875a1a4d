//! Remote models: packages for SageMaker, jobs and endpoints that run them, and their responses read as predictions.
//!
//! Plain data and calls that wait; the command line and the window both are on it. Never runs a model itself.

pub mod client;
pub mod endpoint;
pub mod outputs;
pub mod package;
pub mod predictor;
pub mod rehearse;
mod sending;
pub mod tf_serving;
pub mod transform;

pub use sending::SendError;
