//! Whether the chosen model can run, and where it does.

use super::{RemoteReport, TaskId};
use crate::domain::{DeviceReport, LabelSet, ModelCard, RemoteModel, RunKey, SampleId, SampleSet};

/// The loaded model, or the one elsewhere that is asked.
#[derive(Debug, Default)]
pub struct Engine {
    pub status: EngineStatus,
    /// The ONNX Runtime library that would be used after a restart, where that is not the loaded one.
    pub restart_to_use: Option<String>,
    /// What `status` speaks of: the model and settings that are loaded, or being loaded.
    pub(super) key: Option<RunKey>,
    /// The task that loads it, or did.
    pub(super) task: Option<TaskId>,
    /// To be predicted as soon as the model is ready.
    pub(super) waiting: Option<Wish>,
    /// The single sample that was asked for last.
    pub(super) asked: Option<SampleId>,
    /// What `status` speaks of, where that is elsewhere.
    pub(super) remote: Option<RemoteModel>,
    /// What a run of the model elsewhere begins with, once it has answered.
    pub(super) found: Option<(ModelCard, LabelSet)>,
    /// Where the failure is one of this sample alone.
    pub(super) failed_about: Option<SampleId>,
}

/// Which images are to be predicted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wish {
    /// All that have no prediction by then.
    Unpredicted,
    /// Of these, those that have no prediction by then.
    UnpredictedOf(SampleSet),
    These(SampleSet),
}

#[derive(Debug, Default)]
pub enum EngineStatus {
    /// Nothing has been asked of a model yet.
    #[default]
    Idle,
    /// ONNX Runtime is being found or installed, or the model loaded; its task shows how far.
    Preparing,
    Ready(Box<DeviceReport>),
    /// A model elsewhere has answered, or can be asked.
    Connected(RemoteReport),
    /// The message says why, and what to do.
    Failed {
        message: String,
        offer: Option<Offer>,
    },
}

/// A package of ONNX Runtime that Spotcheck can install.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuntimeKind {
    /// For the processor.
    Cpu,
    /// For graphics cards of NVIDIA, instead of the one for the processor.
    Cuda,
    /// A plug-in for any graphics card.
    WebGpu,
}

impl RuntimeKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "ONNX Runtime",
            Self::Cuda => "ONNX Runtime with CUDA",
            Self::WebGpu => "the WebGPU plug-in",
        }
    }
}

/// What one click can do about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    TryAgain,
    /// The chosen device does not work; let Spotcheck choose.
    UseAutomaticDevice,
    /// Nobody knows the shape of the predictions; say it.
    SetResponseMapping,
}

impl Engine {
    pub fn report(&self) -> Option<&DeviceReport> {
        match &self.status {
            EngineStatus::Ready(report) => Some(report),
            _ => None,
        }
    }

    /// The model elsewhere that is asked.
    pub fn remote_report(&self) -> Option<&RemoteReport> {
        match &self.status {
            EngineStatus::Connected(report) => Some(report),
            _ => None,
        }
    }

    /// Whether the model of this run is loaded with its settings.
    pub(super) fn is_ready_for(&self, key: &RunKey) -> bool {
        let is_ready = self.report().is_some() || self.remote_report().is_some();
        is_ready && self.key.as_ref() == Some(key)
    }

    /// True where asking again would only fail again until the user does something.
    pub fn has_failed(&self) -> bool {
        matches!(self.status, EngineStatus::Failed { .. })
    }

    /// True where asking about this sample would only fail again.
    pub(super) fn has_failed_for(&self, sample: SampleId) -> bool {
        self.has_failed() && self.failed_about.is_none_or(|about| about == sample)
    }
}
