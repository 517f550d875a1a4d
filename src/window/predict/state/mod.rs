//! The models that predict, local or remote, and their status.

pub(crate) mod runs;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::domain::{
    DeviceChoice, DeviceReport, InferenceLocation, LabelSet, LatencyMs, ModelCard, RunId, RunInfo, RunKey, Sample,
    SampleId, SampleSet,
};
use crate::sagemaker::spec::output_mapping::ResponseExamples;
use crate::sagemaker::spec::remote_model::{RemoteAddress, RemoteModel};
use crate::window::state::{
    ConnectFailure, Failure, FoundModel, Loadable, NewPrediction, RemoteCheck, RemotePrediction, RemoteReport,
    SourceId, State, TaskId, Ticket,
};

#[derive(Debug, Clone, PartialEq)]
pub enum InferenceCommand {
    /// Predicts with a remote model from now on; `None` predicts locally. Only the current image and requested images
    /// are sent.
    PredictAt(Option<Box<RemoteModel>>),
    /// Opens the dialog for a remote model with these fields.
    EditRemoteModel(Box<RemoteModel>),
    /// Checks whether it is available, without sending an image.
    CheckRemoteModel(Box<RemoteModel>),
    /// Sends it the current image, to show how its responses are read.
    ShowResponse(Box<RemoteModel>),
    ForgetRemoteModel(Box<RemoteModel>),
    ChooseDevice(DeviceChoice),
    /// `None` lets the device decide.
    SetBatch(Option<usize>),
    /// `None` lets the device decide.
    SetThreads(Option<usize>),
    /// `None` searches the usual places.
    SetRuntimeLibrary(Option<PathBuf>),
    InstallRuntime(RuntimeKind),
    SetPredictOnOpen(bool),
    /// Prepares the model again after a failure.
    TryAgain,
}

#[derive(Debug, Clone)]
pub enum InferenceEffect {
    /// Find or install ONNX Runtime and load a model. Replaces the loaded one.
    Prepare(PrepareRequest),
    /// Determine the response format of a remote model: send images until a response is recognized, or none if a
    /// mapping describes the format.
    Connect(ConnectRequest),
    /// Predict one image with the remote model. Replaces a request that was not sent yet.
    PredictRemotely {
        image: ImageRequest,
        ticket: Ticket,
    },
    /// Check whether a remote model is available, without sending an image.
    CheckRemoteModel {
        model: RemoteModel,
        ticket: Ticket,
    },
    /// Send an image to a remote model and show its response.
    ShowResponse {
        source: SourceId,
        model: RemoteModel,
        entry: Sample,
        ticket: Ticket,
    },
    InstallRuntime {
        kind: RuntimeKind,
        ticket: Ticket,
    },
    /// Predict one sample with the loaded model, before everything else. Replaces a request that has not started.
    PredictOne(ImageRequest),
    /// Predict many samples with the loaded model.
    Predict(ImagesRequest),
}

#[derive(Debug)]
pub enum InferenceEvent {
    /// The model of this task is loaded.
    Ready {
        task: TaskId,
        report: Box<DeviceReport>,
        /// The ONNX Runtime library to use after a restart, if it is not the loaded one.
        restart_to_use: Option<String>,
    },
    /// The model is not ready; the user has to act first.
    Failed {
        task: TaskId,
        message: String,
        offer: Offer,
    },
    /// The user canceled the preparation.
    Cancelled {
        task: TaskId,
    },
    /// The format of a remote model's responses, or why it is unknown.
    Connected {
        source: SourceId,
        task: TaskId,
        /// Milliseconds since 1970-01-01 UTC.
        at_ms: i64,
        result: Result<Box<FoundModel>, ConnectFailure>,
    },
    RemotePredicted(Box<RemotePrediction>),
    /// The duration of remote predictions.
    RemoteLatency {
        key: Box<RunKey>,
        latency: Option<LatencyMs>,
    },
    RemoteModelChecked(TaskId, Result<RemoteCheck, Failure>),
    ResponseShown {
        source: SourceId,
        task: TaskId,
        of: Box<RemoteAddress>,
        result: Result<Arc<ResponseExamples>, Failure>,
    },
    /// The device was lost; earlier predictions are kept.
    DeviceLost {
        key: Box<RunKey>,
        message: String,
    },
    /// New timings.
    Report {
        key: Box<RunKey>,
        report: Box<DeviceReport>,
    },
    /// The image stays without a prediction: neither it nor any other one could be read, or what the model computed could
    /// not be saved.
    NotPredicted {
        source: SourceId,
        run: RunId,
        sample: SampleId,
        message: String,
    },
    Predicted {
        source: SourceId,
        run: RunId,
        /// Milliseconds since 1970-01-01 UTC.
        at_ms: i64,
        predictions: Vec<NewPrediction>,
    },
}

/// The models that predict: the remote model if there is one, otherwise the local one.
#[derive(Debug, Default)]
pub struct Inference {
    /// Stays loaded while a remote model predicts.
    pub local: LocalEngine,
    pub remote: Option<RemoteEngine>,
    /// Images to predict once the model is ready.
    pub(crate) queued: Option<QueuedImages>,
    /// The duration of each remote prediction since startup, in milliseconds.
    pub(crate) latencies_ms: HashMap<(RunId, SampleId), f64>,
}

/// The local model, run by ONNX Runtime.
#[derive(Debug, Default)]
pub struct LocalEngine {
    pub status: Loadable<Box<DeviceReport>, EngineFailure>,
    /// The ONNX Runtime library to use after a restart, if it is not the loaded one.
    pub restart_to_use: Option<String>,
    /// The model and settings that `status` describes.
    pub(crate) key: Option<RunKey>,
    /// The image of the last request for a single prediction.
    pub(crate) latest: Option<SampleId>,
}

/// A remote model that predicts.
#[derive(Debug)]
pub struct RemoteEngine {
    pub model: RemoteModel,
    pub status: Loadable<RemoteReport, EngineFailure>,
    /// Known once the model has responded.
    pub(crate) found: Option<(RunKey, ModelCard, LabelSet)>,
    /// The first response of the model, for testing a mapping.
    pub(crate) first_response: Option<Arc<ResponseExamples>>,
    /// The command that renews the sign-in, if that helps.
    pub renewal: Option<String>,
}

/// Why no image can be predicted.
#[derive(Debug)]
pub struct EngineFailure {
    /// The reason, and what to do.
    pub message: String,
    pub offer: Offer,
    /// The only affected image; `None` if all are affected.
    pub(crate) sample: Option<SampleId>,
}

/// An action that a click can start after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    TryAgain,
    /// The chosen device does not work; let Spotcheck choose.
    UseAutomaticDevice,
    /// The format of the responses is unknown; describe it.
    SetResponseMapping,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum QueuedImages {
    /// All images without a prediction at that time.
    Unpredicted,
    /// Those of these images without a prediction at that time.
    UnpredictedOf(SampleSet),
    These(SampleSet),
}

impl QueuedImages {
    pub(crate) fn only(sample: SampleId) -> Self {
        Self::These([sample].into_iter().collect())
    }
}

/// A model to load on this computer.
#[derive(Debug, Clone)]
pub struct PrepareRequest {
    pub key: RunKey,
    pub runtime_library: Option<PathBuf>,
    pub embeddings: bool,
    pub ticket: Ticket,
}

/// A remote model to connect to.
#[derive(Debug, Clone)]
pub struct ConnectRequest {
    pub source: SourceId,
    pub model: RemoteModel,
    /// The images to send one by one until a response is recognized.
    pub samples: Vec<(SampleId, Sample)>,
    /// Earlier runs of the model.
    pub known: Vec<RunInfo>,
    pub ticket: Ticket,
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
#[derive(Debug, Clone)]
pub struct ImagesRequest {
    pub source: SourceId,
    pub run: RunId,
    pub key: RunKey,
    pub samples: Vec<(SampleId, Sample)>,
    pub ticket: Ticket,
}

/// A package of ONNX Runtime that Spotcheck can install.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuntimeKind {
    /// ONNX Runtime for the CPU.
    Cpu,
    /// ONNX Runtime for NVIDIA GPUs, in place of the one for the CPU.
    Cuda,
    /// A plug-in for any GPU.
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

impl EngineFailure {
    pub(crate) fn new(message: String, offer: Offer) -> Self {
        Self { message, offer, sample: None }
    }
}

impl RemoteEngine {
    pub(crate) fn new(model: RemoteModel) -> Self {
        Self { model, status: Loadable::NotLoaded, found: None, first_response: None, renewal: None }
    }
}

impl Inference {
    /// The remote model that predicts; `None` on this computer.
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

    /// Why predicting fails until the user acts.
    pub fn failure(&self) -> Option<&EngineFailure> {
        match &self.remote {
            Some(remote) => remote.status.failure(),
            None => self.local.status.failure(),
        }
    }

    /// Whether predicting this image would only fail again.
    pub(crate) fn has_failed_for(&self, sample: SampleId) -> bool {
        let failure = self.failure();
        failure.is_some_and(|failure| failure.sample.is_none_or(|about| about == sample))
    }

    /// The model that is loaded or connected, ready or not.
    fn key_at(&self, location: &InferenceLocation) -> Option<&RunKey> {
        if location.is_here() {
            return self.local.key.as_ref();
        }
        let (key, ..) = self.remote.as_ref()?.found.as_ref()?;
        Some(key)
    }

    /// Whether the model of this run can predict with its settings.
    pub(crate) fn is_ready_for(&self, key: &RunKey) -> bool {
        let is_ready = match &self.remote {
            Some(remote) if !key.made.is_here() => remote.status.ready().is_some(),
            _ => self.local.status.ready().is_some(),
        };
        is_ready && self.key_at(&key.made) == Some(key)
    }

    /// Records that the model of this run can no longer predict; false if another model has replaced it.
    pub(crate) fn fail_for(&mut self, key: &RunKey, failure: EngineFailure) -> bool {
        if self.key_at(&key.made) != Some(key) {
            return false;
        }
        match &mut self.remote {
            Some(remote) if !key.made.is_here() => remote.status = Loadable::Failed(failure),
            // The model is being loaded again.
            _ if self.local.status.task().is_some() => return false,
            _ => self.local.status = Loadable::Failed(failure),
        }
        true
    }

    /// Switches to this model. The local model stays loaded; if it has failed or was still loading, which the caller
    /// cancels, it is loaded again later.
    pub(crate) fn switch_to(&mut self, remote: Option<RemoteModel>) {
        self.queued = None;
        if self.local.status.ready().is_none() {
            self.local = LocalEngine::default();
        }
        self.local.latest = None;
        self.remote = remote.map(RemoteEngine::new);
    }

    /// Forgets earlier attempts, so that they can be repeated.
    pub(crate) fn reset(&mut self) {
        self.queued = None;
        match &mut self.remote {
            Some(remote) => *remote = RemoteEngine::new(remote.model.clone()),
            None => self.local = LocalEngine::default(),
        }
    }
}

impl State {
    /// The duration of the prediction on screen in milliseconds, and the model that made it; `None` if it was made
    /// locally, in a job, or before startup.
    pub fn shown_latency_ms(&self) -> Option<(f64, &InferenceLocation)> {
        let (run, sample) = self.run().zip(self.shown_sample())?;
        let latency = self.inference.latencies_ms.get(&(run.id(), sample))?;
        Some((*latency, &run.info.key.made))
    }
}
