//! Remote models: their dialog, the formats of their responses, and their predictions.

use std::sync::Arc;

use crate::domain::{LabelSet, LatencyMs, ModelCard, RunKey, SampleId};
use crate::sagemaker::spec::output_mapping::ResponseExamples;
use crate::sagemaker::spec::remote_model::RemoteModel;
use crate::window::state::{ImageRequest, Loadable, NewPrediction, TaskId};

#[derive(Debug, Default)]
pub struct RemoteModelForm {
    /// A counter that increases when the fields have to adopt these values.
    pub serial: u64,
    /// The initial values of the fields.
    pub draft: Option<RemoteModel>,
    /// Whether it is available, as far as known without sending an image.
    pub check: Loadable<RemoteCheck>,
    /// The last or pending check.
    pub checked: Option<RemoteModel>,
    /// A response for the current image, to show how it is read; it becomes an example in the dialog.
    pub response: Loadable<()>,
}

/// The status of a remote model, determined without sending an image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemoteCheck {
    /// Whether it is available, as far as known.
    pub is_available: bool,
    /// The findings, the problems and their solutions, for display.
    pub found: Vec<String>,
    /// The signatures of a model in TensorFlow Serving, if it lists them.
    pub signatures: Vec<String>,
}

/// The remote model as determined from its responses.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundModel {
    pub key: RunKey,
    pub card: ModelCard,
    /// The labels, as far as known.
    pub labels: LabelSet,
    pub report: RemoteReport,
    /// The first response, for testing a mapping.
    pub examples: Option<Arc<ResponseExamples>>,
    /// The prediction from that response, and its duration in milliseconds; `None` if a mapping describes the
    /// responses, because then nothing was sent.
    pub first: Option<(NewPrediction, f64)>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RemoteReport {
    /// “endpoint cats in eu-west-1”
    pub name: String,
    /// The response format, for display.
    pub reading: String,
    /// The time from sending an image to its response; `None` before the first.
    pub latency: Option<LatencyMs>,
}

/// Why a remote model cannot predict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectFailure {
    Cancelled,
    /// Only this image failed; others may succeed.
    OfImage(SampleId, String),
    Failed {
        message: String,
        /// The response, if its format is unknown.
        examples: Option<Arc<ResponseExamples>>,
        /// The command that renews the sign-in, if that helps.
        renewal: Option<String>,
    },
}

/// The result of requesting one prediction from a remote model.
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
        /// The time from sending the request to the complete response, in milliseconds; `None` if nothing was sent.
        took_ms: Option<f64>,
    },
    /// The image left the view before it was sent.
    NotSent,
    /// Neither this image nor any other could be read.
    SourceUnreachable(String),
    /// Other images would fail as well.
    OutOfReach {
        message: String,
        /// The command that renews the sign-in, if that helps.
        renewal: Option<String>,
    },
}
