//! Predicting with a model elsewhere, instead of on this computer: the choice, and the dialog that makes it.

use std::sync::Arc;

use crate::domain::{
    InferenceLocation, LabelSet, LatencyMs, ModelCard, RemoteModel, ResponseExamples, RunId,
    RunKey, SampleId,
};
use crate::state::{Engine, NewPrediction, S3Failure, SendStage, State, TaskId};

/// Where images are predicted.
#[derive(Debug, Default)]
pub struct RemoteInference {
    /// `None`: on this computer.
    pub chosen: Option<RemoteModel>,
    pub form: RemoteModelForm,
    /// The first prediction of the chosen model, to try a mapping on.
    pub(in crate::state) first: Option<Arc<ResponseExamples>>,
    /// The command that signs in anew, where that is what helps.
    pub renewal: Option<String>,
    /// How long the answers took that were asked for one by one since the program was started.
    pub(in crate::state) took: Took,
    /// What is loaded on this computer, while images are predicted elsewhere.
    pub(in crate::state) parked: Engine,
}

/// Milliseconds by run and sample.
type Took = std::collections::HashMap<(RunId, SampleId), f64>;

/// The dialog about a model elsewhere.
#[derive(Debug, Default)]
pub struct RemoteModelForm {
    /// Counts up whenever the fields are to be taken over.
    pub serial: u64,
    /// What the fields begin with.
    pub draft: Option<RemoteModel>,
    /// Whether it can be asked, as far as that is known without asking it.
    pub check: SendStage<RemoteCheck>,
    /// What was checked last, or is being checked.
    pub checked: Option<RemoteModel>,
    pub failure: Option<S3Failure>,
    /// The model is asked about the image in view, to see how its predictions are read.
    pub looking: Option<TaskId>,
    /// Why there is no answer to look at.
    pub not_seen: Option<S3Failure>,
}

/// What is known of a model elsewhere without sending it anything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemoteCheck {
    /// It answers, as far as is known.
    pub is_well: bool,
    /// What was found, for people; what is wrong, and what to do, where something is.
    pub found: Vec<String>,
    /// The signatures of a model in TensorFlow Serving, where it says them.
    pub signatures: Vec<String>,
}

/// What a model elsewhere turned out to be.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundModel {
    pub key: RunKey,
    pub card: ModelCard,
    /// As far as they are known.
    pub labels: LabelSet,
    pub report: RemoteReport,
    /// The same prediction, to try a mapping on.
    pub examples: Option<Arc<ResponseExamples>>,
    /// The prediction that it was recognised by, and how many milliseconds that took; nothing was asked where a mapping says how answers
    /// are read.
    pub first: Option<(NewPrediction, f64)>,
}

/// A model elsewhere that is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteReport {
    /// “endpoint cats in eu-west-1”
    pub name: String,
    /// How answers are read, for people.
    pub reading: String,
    /// From sending an image to having its prediction; `None` before the first.
    pub latency: Option<LatencyMs>,
}

/// Why a model elsewhere cannot be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectFailure {
    Cancelled,
    /// Only this image: another one may do better.
    OfImage(SampleId, String),
    Failed {
        message: String,
        /// The prediction, where nobody knows its shape.
        examples: Option<Arc<ResponseExamples>>,
        /// The command that signs in anew, where that helps.
        renewal: Option<String>,
    },
}

/// What came of asking about one image.
#[derive(Debug)]
pub enum Asked {
    Predicted {
        prediction: NewPrediction,
        /// From sending the request to having the whole prediction, in milliseconds; `None` where nothing was sent.
        took_ms: Option<f64>,
    },
    /// Nobody waited for it any more, so it was not sent.
    NotSent,
    /// It could not be read, nor could any other image.
    SourceUnreachable(String),
    /// No other image would do better.
    OutOfReach {
        message: String,
        /// The command that signs in anew, where that helps.
        renewal: Option<String>,
    },
}

impl State {
    /// How long the prediction on screen took, in milliseconds, and who gave it; `None` where it was made here, in a job, or before the
    /// program was started.
    pub fn shown_took_ms(&self) -> Option<(f64, &InferenceLocation)> {
        let (run, sample) = self.run().zip(self.shown_sample())?;
        let took = self.remote.remote_inference.took.get(&(run.id(), sample))?;
        Some((*took, &run.info.key.made))
    }
}
