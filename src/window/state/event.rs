use std::path::PathBuf;

use super::queue::areas;
use super::{Failure, TaskId, TaskOutcome};
use crate::domain::{FileStamp, Prediction, Problem, SampleId, SampleUri, TruthBox};
use crate::window::state::{
    BrowseEvent, EndpointsEvent, EvaluationEvent, ExportEvent, InferenceEvent, JobsEvent, ModelsEvent, OutputsEvent,
    ProjectEvent, ReviewEvent, S3Event, UploadEvent,
};

/// An event from `effects`. Each one carries the id of its request.
#[derive(Debug)]
pub enum Event {
    /// A task without an event of its own has ended.
    TaskEnded {
        task: TaskId,
        outcome: TaskOutcome,
        /// Notes for the user: “the batch was halved because the device ran out of memory”.
        notes: Vec<String>,
    },
    /// A notice for the user: “Copied the image”.
    Notice(String),
    Problem(Problem),
    Jobs(JobsEvent),
    Endpoints(EndpointsEvent),
    Outputs(OutputsEvent),
    Inference(InferenceEvent),
    Models(ModelsEvent),
    S3(S3Event),
    Export(ExportEvent),
    Upload(UploadEvent),
    Project(ProjectEvent),
    Browse(BrowseEvent),
    Review(ReviewEvent),
    Evaluation(EvaluationEvent),
}

areas!(
    Event:
        Jobs(JobsEvent),
        Endpoints(EndpointsEvent),
        Outputs(OutputsEvent),
        Inference(InferenceEvent),
        Models(ModelsEvent),
        S3(S3Event),
        Export(ExportEvent),
        Upload(UploadEvent),
        Project(ProjectEvent),
        Browse(BrowseEvent),
        Review(ReviewEvent),
        Evaluation(EvaluationEvent),
);

impl Event {
    /// The end of a task without an event of its own: its result, and notes for the list of problems.
    pub fn ended(task: TaskId, result: Result<(String, Vec<String>), Failure>) -> Self {
        let (outcome, notes) = match result {
            Ok((text, notes)) => (TaskOutcome::Done(text), notes),
            Err(failure) => (failure.into(), Vec::new()),
        };
        Self::TaskEnded { task, outcome, notes }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct NewPrediction {
    pub sample: SampleId,
    /// The stamp of the file when it was predicted; the file may have changed since.
    pub stamp: FileStamp,
    /// The prediction, or why there is none.
    pub result: Result<Prediction, String>,
}

/// One prediction in a run's summary.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRow {
    pub sample: SampleUri,
    /// The state of the file that was predicted, if known.
    pub stamp: Option<FileStamp>,
    pub prediction: StoredPrediction,
}

/// A prediction in the summary of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum StoredPrediction {
    Predicted { width: u32, height: u32, classes: Vec<u32>, scores: Vec<f32>, warnings: Vec<String> },
    Failed(String),
}

/// The kind of path to choose for the dialog that opens ground truth or predictions. A file dialog shows either files
/// or folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnnotationsPick {
    File,
    Folder,
    ClassMap,
}

/// The purpose of a file dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileRequest {
    Folder,
    /// One or more image files.
    Images,
    Model,
    /// For the dialog that opens ground truth or predictions.
    Annotations(AnnotationsPick),
    Labels,
    /// The weights of the model with this id.
    Weights(String),
    Mapping,
    Project,
    /// The file for a copy of the project, with a suggested name.
    ProjectTarget {
        name: String,
    },
    /// The file or folder of an export, with a suggested name.
    ExportTarget {
        name: String,
    },
    /// The new folder of the project's images.
    MovedFolder,
}

impl FileRequest {
    pub fn title(&self) -> &'static str {
        match self {
            Self::Folder => "Open folder",
            Self::Images => "Open images",
            Self::Model => "Add a model",
            Self::Annotations(AnnotationsPick::File) => "Choose a file",
            Self::Annotations(AnnotationsPick::Folder) => "Choose a folder",
            Self::Annotations(AnnotationsPick::ClassMap) => "Class corrections",
            Self::Labels => "Class names",
            Self::Weights(_) => "Model weights",
            Self::Mapping => "Load a mapping",
            Self::Project => "Open project",
            Self::ProjectTarget { .. } => "Save project as",
            Self::ExportTarget { .. } => "Export to",
            Self::MovedFolder => "Locate images",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilePick {
    Picked(FileRequest, Vec<PathBuf>),
    Cancelled,
    /// No dialog appeared.
    Unavailable {
        request: FileRequest,
        reason: String,
    },
}

/// The models that a task starts with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelDefaults {
    pub classification: Option<String>,
    pub detection: Option<String>,
}

/// Details of a decoded image and its file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DisplayInfo {
    /// Width and height of the upright image, in pixels.
    pub size: [u32; 2],
    /// “The file ends early; the lower part is missing”.
    pub warning: Option<String>,
    /// Display names and values: format, size on disk, EXIF.
    pub details: Vec<(String, String)>,
    /// Stored with the image by the authors of the dataset.
    pub stored_boxes: Vec<TruthBox>,
}
