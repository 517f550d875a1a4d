//! Models on this computer: finds ONNX Runtime, selects a device and reports why, runs sessions.
//!
//! The only user of `ort`; only `session.rs` uses its `Session`.

mod call;
mod device;
mod embedding;
mod inspection;
mod predictor;
mod proof;
mod session;
mod trials;

use std::path::PathBuf;

use crate::domain::Device;

pub use device::{DeviceSurvey, survey};
pub use embedding::EmbeddingLayer;
pub use inspection::{InspectError, Inspection, labels_of};
pub use predictor::{LoadOptions, OnnxPredictor};
pub use session::OnnxSession;
pub use trials::{PresetTrial, TrialImage, truth_of, undecided_resize};

#[derive(Debug, thiserror::Error)]
pub enum InferenceError {
    #[error("canceled")]
    Cancelled,
    #[error("the model has no input; Spotcheck can only use models that take an image")]
    NoInput,
    #[error("the model cannot be used as an encoder: {0}")]
    NoEmbedding(String),
    /// `reason` is ONNX Runtime's message.
    #[error("ONNX Runtime could not load {}: {reason}", weights.display())]
    Load { weights: PathBuf, reason: String },
    /// `reason` is ONNX Runtime's message.
    #[error(
        "{} cannot be used: {reason}. See the devices with `spotcheck runtime status`, or use `--device auto`",
        device.name()
    )]
    Device { device: Device, reason: String },
}

impl InferenceError {
    /// Why a device was skipped, without what the device list shows anyway.
    fn reason(&self) -> String {
        match self {
            Self::Load { reason, .. } | Self::Device { reason, .. } => reason.clone(),
            other => other.to_string(),
        }
    }

    /// Blames the device that the user named instead of the model. On the CPU, only the model can be to blame.
    fn on(self, device: Device) -> Self {
        match self {
            Self::Load { reason, .. } if device != Device::Cpu => Self::Device { device, reason },
            other => other,
        }
    }
}
