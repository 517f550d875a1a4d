//! Remote models: archives for SageMaker, jobs and endpoints that run them, and their outputs read as predictions.
//!
//! Plain data and blocking calls, used by the CLI and the window. Never runs a model itself.

mod checks;
pub mod client;
pub mod endpoints;
mod error;
pub mod jobs;
pub mod log;
pub mod outputs;
pub mod package;
pub mod predictor;
mod records;
pub mod rehearse;
mod sending;
pub mod spec;
pub mod tf_serving;
pub mod training;

use std::time::Duration;

pub use error::JobError;
pub use records::{Record, RecordError, Records};

/// A poll of a remote resource, which continues.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Poll<'p, T> {
    Seen(&'p T),
    /// The request failed and is retried.
    Trouble {
        why: &'p str,
        again_in: Duration,
    },
}
