//! Outputs of remote jobs and predictions from other tools that become a run of the open images, and how responses are
//! read.

use std::path::PathBuf;
use std::sync::Arc;

use crate::domain::{LabelSet, Location, ModelCard, Prediction, RunId, RunInfo, RunKey, Sample, SharedList, Unscored};
use crate::evaluation::GroundTruth;
use crate::sagemaker::spec::output_mapping::{OutputMapping, ReadingRequest, ResponseExamples};
use crate::sagemaker::spec::remote_model::RemoteAddress;
use crate::window::state::{JobId, SourceId, TaskId, TaskOutcome, Ticket};

#[derive(Debug, Clone, PartialEq)]
pub enum OutputsCommand {
    /// Opens outputs of a job or a folder as a run of the open images.
    Open(Box<OutputsRequest>),
    /// Opens predictions from another tool as a run of the open images.
    OpenPredictions(PredictionsFrom),
    /// Previews the first outputs without opening them.
    Preview(Box<OutputsAt>),
    /// Shows the result of reading the examples this way.
    TryReading(Box<ReadingRequest>),
    /// Saves a mapping with its labels among the user's own.
    SaveMapping(Box<ReadingRequest>),
    LoadMapping(PathBuf),
    /// Deletes one of the user's own mappings, by its file.
    DeleteMapping(PathBuf),
}

#[derive(Debug, Clone)]
pub enum OutputsEffect {
    /// Identify the format of outputs and read them into a run: the one of `known` with their key, which has the class
    /// names, or else a new one.
    Open {
        request: OpenOutputsRequest,
        ticket: Ticket,
    },
    /// Read predictions from another tool into a run: the one of `known` made from the same files, or else a new one.
    OpenPredictions {
        request: OpenPredictionsRequest,
        ticket: Ticket,
    },
    /// Read the first predictions for these images.
    Preview {
        place: OutputsPlace,
        ticket: Ticket,
    },
    /// Read the examples this way.
    TryReading {
        question: u64,
        examples: Arc<ResponseExamples>,
        request: ReadingRequest,
    },
    ListMappings,
    /// Save a mapping with its labels among the user's own.
    SaveMapping(ReadingRequest),
    LoadMapping(PathBuf),
    DeleteMapping(PathBuf),
}

#[derive(Debug)]
pub enum OutputsEvent {
    /// The format of outputs, and the run that their predictions are added to.
    Found {
        source: SourceId,
        task: TaskId,
        run: RunId,
        found: Box<FoundRun>,
    },
    /// The classes of a run, discovered with its predictions. Sent before the predictions that need them.
    Labeled {
        source: SourceId,
        run: RunId,
        labels: Box<LabelSet>,
    },
    Read {
        source: SourceId,
        task: TaskId,
        result: Result<OutputsEnd, OutputsFailure>,
    },
    /// The first predictions for the open images.
    Previewed {
        source: SourceId,
        task: TaskId,
        result: Result<Arc<ResponseExamples>, OutputsFailure>,
    },
    /// The predictions of examples, read with the requested mapping.
    Tried {
        question: u64,
        trial: Box<ReadingTrial>,
    },
    /// The user's mappings, and why some of them cannot be used.
    MappingsListed {
        saved: Vec<SavedMapping>,
        problems: Vec<String>,
    },
    MappingSaved(Result<Box<SavedMapping>, String>),
    MappingLoaded(Result<Box<SavedMapping>, String>),
    /// The name of the deleted mapping, or why it could not be deleted.
    MappingDeleted(Result<String, String>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputsAt {
    Job(JobId),
    Folder(Location),
}

impl OutputsAt {
    /// The display name.
    pub fn name(&self) -> String {
        match self {
            Self::Job(id) => format!("the job {}", id.name),
            Self::Folder(location) => location.name(),
        }
    }
}

/// The outputs to open, and how to read them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputsRequest {
    pub at: OutputsAt,
    pub reading: ReadingRequest,
    /// The run to compare them with once they are read.
    pub compare_with: Option<RunId>,
}

/// Outputs for these images.
#[derive(Debug, Clone)]
pub struct OutputsPlace {
    pub source: SourceId,
    /// The root of image names.
    pub root: String,
    pub samples: SharedList<Sample>,
    pub at: OutputsAt,
}

/// Outputs to read into a run.
#[derive(Debug, Clone)]
pub struct OpenOutputsRequest {
    pub place: OutputsPlace,
    pub reading: ReadingRequest,
    /// The runs of the project: outputs that were opened before go into their run.
    pub known: Vec<RunInfo>,
    pub new_run: RunId,
}

/// Predictions from another tool, with the information they lack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PredictionsFrom {
    pub at: Location,
    /// The class names: a label set or a file; empty for those of the predictions.
    pub labels: String,
    /// A CSV file that maps classes of the predictions to those of `labels`.
    pub class_map: Option<PathBuf>,
    /// The split of a `data.yaml`; `None` for the usual one.
    pub split: Option<String>,
    pub unscored: Unscored,
}

impl PredictionsFrom {
    /// Ground truth, to correct it.
    pub fn labels_at(at: Location) -> Self {
        Self { unscored: Unscored::Labels, ..at.into() }
    }
}

impl From<Location> for PredictionsFrom {
    fn from(at: Location) -> Self {
        Self { at, labels: String::new(), class_map: None, split: None, unscored: Unscored::Refused }
    }
}

/// Predictions from another tool to read into a run.
#[derive(Debug, Clone)]
pub struct OpenPredictionsRequest {
    pub source: SourceId,
    pub samples: SharedList<Sample>,
    pub from: PredictionsFrom,
    /// The open ground truth, which may have names for numbered classes.
    pub truth: Option<Arc<GroundTruth>>,
    pub known: Vec<RunInfo>,
    pub new_run: RunId,
}

/// The dialog for opening outputs, and the result of the last request.
#[derive(Debug, Default)]
pub struct OpeningOutputs {
    pub task: Option<TaskId>,
    pub request: Option<OutputsRequest>,
    pub failure: Option<OutputsFailure>,
}

/// Why outputs did not become a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputsFailure {
    Cancelled,
    /// Annotations without scores, which are ground truth.
    GroundTruth {
        message: String,
    },
    Failed {
        message: String,
        /// The first predictions, if their format is unknown.
        examples: Option<Arc<ResponseExamples>>,
    },
}

/// How reading outputs ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputsEnd {
    pub outcome: TaskOutcome,
    /// Whether everything became predictions; for outputs, also whether every image has one now.
    pub is_complete: bool,
    /// Notes for the list of problems; if the outcome is incomplete and there are none, the outcome itself is listed.
    pub notes: Vec<String>,
}

impl From<String> for OutputsFailure {
    fn from(message: String) -> Self {
        Self::Failed { message, examples: None }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct FoundRun {
    pub key: RunKey,
    pub card: ModelCard,
    pub labels: LabelSet,
}

/// The state of the mapping dialog, apart from its fields.
#[derive(Debug, Default)]
pub struct Reading {
    /// The user's mappings, as last listed.
    pub saved: Vec<SavedMapping>,
    /// Why some of them cannot be used.
    pub problems: Vec<String>,
    /// Examples for open images.
    pub(crate) examples: Option<Arc<ResponseExamples>>,
    /// The model that returned those responses; `None` if they are outputs of a job.
    pub examples_of: Option<RemoteAddress>,
    /// A counter of requests, so that late results are dropped.
    pub(crate) question: u64,
    pub requested: Option<ReadingRequest>,
    /// The last prediction, until there is a newer one.
    pub trial: Option<ReadingTrial>,
    /// A mapping that was just read from a file or saved, to fill the fields, and a number that distinguishes two of
    /// them.
    pub loaded: Option<(u64, SavedMapping)>,
    /// Whether a mapping is being read or saved, so that the fields are not final.
    pub is_loading: bool,
    /// Why a mapping could not be loaded or saved.
    pub failure: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedMapping {
    /// Without its labels.
    pub mapping: OutputMapping,
    /// The label set it refers to, or the label file next to it; empty for none.
    pub labels: String,
    pub path: PathBuf,
}

/// The result of reading the examples.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadingTrial {
    pub request: ReadingRequest,
    /// The format for display, or why it is unknown.
    pub description: Result<String, String>,
    /// The recognized mapping, if none was requested.
    pub recognized: Option<OutputMapping>,
    /// The assumptions that the predictions do not confirm, for display.
    pub assumed: Vec<String>,
    /// The prediction of each example, or why it cannot be read.
    pub readings: Vec<Result<Prediction, String>>,
}

impl Reading {
    /// Responses for open images, for testing a mapping.
    pub fn examples(&self) -> Option<&ResponseExamples> {
        self.examples.as_deref()
    }

    /// Drops the examples, because their images are no longer open or another model is chosen.
    pub(crate) fn forget_examples(&mut self) {
        self.examples = None;
        self.examples_of = None;
        self.requested = None;
        self.trial = None;
    }

    /// Whether a prediction is pending.
    pub fn is_asking(&self) -> bool {
        let predicted = self.trial.as_ref().map(|trial| &trial.request);
        self.requested.is_some() && self.requested.as_ref() != predicted
    }
}
