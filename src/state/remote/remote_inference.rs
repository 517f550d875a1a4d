//! Remote models: the dialog about them, what they turn out to be, and their predictions.

use std::sync::Arc;

use crate::domain::{LabelSet, LatencyMs, ModelCard, RemoteModel, ResponseExamples, RunKey, SampleId};
use crate::state::{ImageRequest, Loadable, NewPrediction, TaskId};

/// The dialog about a remote model.
#[derive(Debug, Default)]
pub struct RemoteModelForm {
    /// Counts up whenever the fields are to be taken over.
    pub serial: u64,
    /// The initial values of the fields.
    pub draft: Option<RemoteModel>,
    /// Whether it is available, as far as that is known without sending it an image.
    pub check: Loadable<RemoteCheck>,
    /// The last check, or the one under way.
    pub checked: Option<RemoteModel>,
    /// A response about the image in view, to see how it is read; it goes to the examples of the dialog.
    pub response: Loadable<()>,
}

/// The status of a remote model, found without sending it an image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemoteCheck {
    /// Whether it is available, as far as is known.
    pub is_available: bool,
    /// The findings, the problems, and what to do about them, for people.
    pub found: Vec<String>,
    /// The signatures of a model in TensorFlow Serving, if it lists them.
    pub signatures: Vec<String>,
}

/// The remote model as its responses show it.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundModel {
    pub key: RunKey,
    pub card: ModelCard,
    /// The labels, as far as they are known.
    pub labels: LabelSet,
    pub report: RemoteReport,
    /// The first response, to try a mapping on.
    pub examples: Option<Arc<ResponseExamples>>,
    /// The prediction of that response, and its duration in milliseconds; `None` if a mapping says how responses are
    /// read, because nothing was sent then.
    pub first: Option<(NewPrediction, f64)>,
}

/// A remote model that predicts.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteReport {
    /// “endpoint cats in eu-west-1”
    pub name: String,
    /// How responses are read, for people.
    pub reading: String,
    /// The time from sending an image to its response; `None` before the first.
    pub latency: Option<LatencyMs>,
}

/// Why a remote model cannot predict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectFailure {
    Cancelled,
    /// Only this image: another one may do better.
    OfImage(SampleId, String),
    Failed {
        message: String,
        /// The response, if its shape is unknown.
        examples: Option<Arc<ResponseExamples>>,
        /// The command that signs in again, if that helps.
        renewal: Option<String>,
    },
}

/// The result of requesting one prediction of a remote model.
#[derive(Debug)]
pub struct RemotePrediction {
    pub image: ImageRequest,
    pub task: TaskId,
    /// Milliseconds since 1970-01-01 UTC.
    pub at_ms: i64,
    pub outcome: RemoteOutcome,
}

#[derive(Debug)]
pub enum RemoteOutcome {
    Predicted {
        prediction: NewPrediction,
        /// The time from sending the request to the whole response, in milliseconds; `None` if nothing was sent.
        took_ms: Option<f64>,
    },
    /// The image left the view before it was sent.
    NotSent,
    /// Neither this image nor any other could be read.
    SourceUnreachable(String),
    /// No other image would do better.
    OutOfReach {
        message: String,
        /// The command that signs in again, if that helps.
        renewal: Option<String>,
    },
}
