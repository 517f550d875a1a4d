//! Whether the chosen model can run, and where it does.

use super::{RunId, RunKey, SampleId, SampleSet, TaskId};
use crate::domain::DeviceReport;

/// The loaded model.
#[derive(Debug, Default)]
pub struct Engine {
    /// The run that `status` speaks of.
    pub run: Option<RunId>,
    pub status: EngineStatus,
    /// What is loaded, or being loaded.
    pub(super) key: Option<RunKey>,
    /// The task that loads it, or did.
    pub(super) task: Option<TaskId>,
    /// To be predicted as soon as the model is ready.
    pub(super) waiting: Option<SampleSet>,
    /// The single sample that was asked for last.
    pub(super) asked: Option<SampleId>,
}

#[derive(Debug, Default)]
pub enum EngineStatus {
    /// Nothing has been asked of a model yet.
    #[default]
    Idle,
    /// ONNX Runtime is being found or installed, or the model loaded; its task shows how far.
    Preparing,
    Ready(Box<DeviceReport>),
    /// The message says why, and what to do.
    Failed {
        message: String,
        offer: Option<Offer>,
    },
}

/// What one click can do about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    TryAgain,
    /// Another ONNX Runtime is chosen than the one that is loaded.
    Restart,
    /// The chosen device does not work; let Spotcheck choose.
    UseAutomaticDevice,
}

impl Engine {
    pub fn report(&self) -> Option<&DeviceReport> {
        match &self.status {
            EngineStatus::Ready(report) => Some(report),
            _ => None,
        }
    }

    /// True where asking again would only fail again until the user does something.
    pub fn has_failed(&self) -> bool {
        matches!(self.status, EngineStatus::Failed { .. })
    }
}
