//! Models on this machine: finds ONNX Runtime, picks a device and says why, runs sessions.
//!
//! The only home of `ort`; `session.rs` is the only file that names its `Session`.

mod inspection;
mod predictor;
pub mod runtime;
mod session;
mod signature;

use std::path::PathBuf;

pub use inspection::{InspectError, Inspection, labels_of, recognise_file};
pub use predictor::{LoadOptions, OnnxPredictor};
pub use session::OnnxSession;

/// Why a model could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum InferenceError {
    #[error("cancelled")]
    Cancelled,
    #[error("the model has no input; Spotcheck can only use models that take an image")]
    NoInput,
    /// `reason` is ONNX Runtime's own text.
    #[error("ONNX Runtime could not load {}: {reason}", weights.display())]
    Load { weights: PathBuf, reason: String },
}
