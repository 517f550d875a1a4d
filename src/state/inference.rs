//! Where images are predicted, on this computer or by a remote model, and whether that works.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::{RemoteReport, SourceId, State, TaskId};
use crate::domain::{
    DeviceReport, InferenceLocation, LabelSet, ModelCard, RemoteModel, ResponseExamples, RunId,
    RunInfo, RunKey, Sample, SampleId, SampleSet,
};
use crate::tasks::TaskControl;

/// Images are predicted by the remote model if there is one, otherwise on this computer.
#[derive(Debug, Default)]
pub struct Inference {
    /// Stays loaded while a remote model predicts.
    pub local: LocalEngine,
    pub remote: Option<RemoteEngine>,
    /// Images to predict once the model is ready.
    pub(super) queued: Option<QueuedImages>,
    /// The milliseconds that each remote prediction took since the program started.
    pub(super) latencies_ms: HashMap<(RunId, SampleId), f64>,
}

/// The model that ONNX Runtime runs on this computer.
#[derive(Debug, Default)]
pub struct LocalEngine {
    pub status: EngineStatus<Box<DeviceReport>>,
    /// The ONNX Runtime library that is used after a restart, if that is not the loaded one.
    pub restart_to_use: Option<String>,
    /// The model and settings that `status` is about.
    pub(super) key: Option<RunKey>,
    /// The image whose single prediction was requested last.
    pub(super) latest: Option<SampleId>,
}

/// A remote model that predicts.
#[derive(Debug)]
pub struct RemoteEngine {
    pub model: RemoteModel,
    pub status: EngineStatus<RemoteReport>,
    /// Known once the model has responded.
    pub(super) found: Option<(RunKey, ModelCard, LabelSet)>,
    /// Its first response, to try a mapping on.
    pub(super) first_response: Option<Arc<ResponseExamples>>,
    /// The command that signs in again, if that helps.
    pub renewal: Option<String>,
}

#[derive(Debug, Default)]
pub enum EngineStatus<Report> {
    /// Nothing was predicted yet.
    #[default]
    Idle,
    /// The model is being loaded, or connected to, by this task.
    Preparing(TaskId),
    Ready(Report),
    Failed(EngineFailure),
}

/// Why no image can be predicted.
#[derive(Debug)]
pub struct EngineFailure {
    /// Says why, and what to do.
    pub message: String,
    pub offer: Offer,
    /// The only image that the failure is about; `None`: all of them.
    pub(super) sample: Option<SampleId>,
}

/// What one click can do about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    TryAgain,
    /// The chosen device does not work; let Spotcheck choose.
    UseAutomaticDevice,
    /// The format of the responses is unknown; describe it.
    SetResponseMapping,
}

/// Which images to predict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum QueuedImages {
    /// All that have no prediction by then.
    Unpredicted,
    /// Those of these that have no prediction by then.
    UnpredictedOf(SampleSet),
    These(SampleSet),
}

/// A model to load on this computer.
#[derive(Clone)]
pub struct PrepareRequest {
    pub key: RunKey,
    pub runtime_library: Option<PathBuf>,
    pub task: TaskId,
    pub control: TaskControl,
}

/// A remote model to connect to.
#[derive(Clone)]
pub struct ConnectRequest {
    pub source: SourceId,
    pub model: RemoteModel,
    /// One after the other is sent until a response can be recognised.
    pub samples: Vec<(SampleId, Sample)>,
    /// The runs that the model made before.
    pub known: Vec<RunInfo>,
    pub task: TaskId,
    pub control: TaskControl,
}

/// One image to predict with the model of a run.
#[derive(Debug, Clone)]
pub struct ImageRequest {
    pub source: SourceId,
    pub run: RunId,
    pub key: RunKey,
    pub sample: SampleId,
    pub entry: Sample,
}

/// Images to predict with the model of a run.
#[derive(Clone)]
pub struct ImagesRequest {
    pub source: SourceId,
    pub run: RunId,
    pub key: RunKey,
    pub samples: Vec<(SampleId, Sample)>,
    pub task: TaskId,
    pub control: TaskControl,
}

/// A package of ONNX Runtime that Spotcheck can install.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuntimeKind {
    /// For the processor.
    Cpu,
    /// For NVIDIA graphics cards, in place of the one for the processor.
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

impl<Report> EngineStatus<Report> {
    pub fn report(&self) -> Option<&Report> {
        match self {
            Self::Ready(report) => Some(report),
            _ => None,
        }
    }

    /// The task that prepares the model.
    fn task(&self) -> Option<TaskId> {
        match self {
            Self::Preparing(task) => Some(*task),
            _ => None,
        }
    }

    fn failure(&self) -> Option<&EngineFailure> {
        match self {
            Self::Failed(failure) => Some(failure),
            _ => None,
        }
    }

    /// False for a late report of a task whose model is not needed any more.
    pub(super) fn is_prepared_by(&self, task: TaskId) -> bool {
        self.task() == Some(task)
    }
}

impl EngineFailure {
    pub(super) fn new(message: String, offer: Offer) -> Self {
        Self {
            message,
            offer,
            sample: None,
        }
    }
}

impl RemoteEngine {
    pub(super) fn new(model: RemoteModel) -> Self {
        Self {
            model,
            status: EngineStatus::Idle,
            found: None,
            first_response: None,
            renewal: None,
        }
    }
}

impl Inference {
    /// The model that predicts; `None` on this computer.
    pub fn remote_model(&self) -> Option<&RemoteModel> {
        self.remote.as_ref().map(|remote| &remote.model)
    }

    pub fn is_preparing(&self) -> bool {
        let task = match &self.remote {
            Some(remote) => remote.status.task(),
            None => self.local.status.task(),
        };
        task.is_some()
    }

    /// Why predicting fails until the user does something.
    pub fn failure(&self) -> Option<&EngineFailure> {
        match &self.remote {
            Some(remote) => remote.status.failure(),
            None => self.local.status.failure(),
        }
    }

    /// Whether predicting this image would only fail again.
    pub(super) fn has_failed_for(&self, sample: SampleId) -> bool {
        let failure = self.failure();
        failure.is_some_and(|failure| failure.sample.is_none_or(|about| about == sample))
    }

    /// What is loaded or connected to there, ready or not.
    fn key_at(&self, location: &InferenceLocation) -> Option<&RunKey> {
        if location.is_here() {
            return self.local.key.as_ref();
        }
        let (key, ..) = self.remote.as_ref()?.found.as_ref()?;
        Some(key)
    }

    /// Whether the model of this run can predict with its settings.
    pub(super) fn is_ready_for(&self, key: &RunKey) -> bool {
        let is_ready = match &self.remote {
            Some(remote) if !key.made.is_here() => remote.status.report().is_some(),
            _ => self.local.status.report().is_some(),
        };
        is_ready && self.key_at(&key.made) == Some(key)
    }

    /// The model of this run cannot predict any more; false if it is another one by now.
    pub(super) fn fail_for(&mut self, key: &RunKey, failure: EngineFailure) -> bool {
        if self.key_at(&key.made) != Some(key) {
            return false;
        }
        match &mut self.remote {
            Some(remote) if !key.made.is_here() => remote.status = EngineStatus::Failed(failure),
            // It is being loaded again.
            _ if self.local.status.task().is_some() => return false,
            _ => self.local.status = EngineStatus::Failed(failure),
        }
        true
    }

    /// From now on this model predicts. The model of this computer stays loaded; if it was still being loaded, which the
    /// caller cancels, or has failed, it is tried again later.
    pub(super) fn switch_to(&mut self, remote: Option<RemoteModel>) {
        self.queued = None;
        if self.local.status.report().is_none() {
            self.local = LocalEngine::default();
        }
        self.local.latest = None;
        self.remote = remote.map(RemoteEngine::new);
    }

    /// Forgets what was tried, so that it can be tried again.
    pub(super) fn reset(&mut self) {
        self.queued = None;
        match &mut self.remote {
            Some(remote) => *remote = RemoteEngine::new(remote.model.clone()),
            None => self.local = LocalEngine::default(),
        }
    }
}

impl State {
    /// How many milliseconds the prediction on screen took, and which model made it; `None` if it was made on this
    /// computer, in a job, or before the program started.
    pub fn shown_latency_ms(&self) -> Option<(f64, &InferenceLocation)> {
        let (run, sample) = self.run().zip(self.shown_sample())?;
        let latency = self.inference.latencies_ms.get(&(run.id(), sample))?;
        Some((*latency, &run.info.key.made))
    }
}
