//! Commands of the user, events from `effects` and the effects to run: the general ones, and those of each area.

use std::path::PathBuf;
use std::sync::Arc;

use super::{Action, Failure, Overlay, TaskId, TaskOutcome};
use crate::domain::{
    BoundingBox, FileStamp, Prediction, Problem, RunId, S3Place, Sample, SampleId, SampleUri, TruthBox,
};
use crate::review::FilmBox;
use crate::tasks::TaskControl;
use crate::window::state::{
    ArrangeEffect, BrowseCommand, BrowseEffect, BrowseEvent, EndpointsCommand, EndpointsEffect, EndpointsEvent,
    EvaluationCommand, EvaluationEffect, EvaluationEvent, ExportCommand, ExportEffect, ExportEvent, InferenceCommand,
    InferenceEffect, InferenceEvent, JobsCommand, JobsEffect, JobsEvent, MapCommand, MapEffect, MapEvent,
    ModelsCommand, ModelsEffect, ModelsEvent, OutputsCommand, OutputsEffect, OutputsEvent, ProjectCommand,
    ProjectEffect, ProjectEvent, RemoteEndpointsCommand, RemoteEndpointsEffect, RemoteEndpointsEvent,
    RemoteJobsCommand, RemoteJobsEffect, RemoteJobsEvent, ReviewCommand, ReviewEffect, ReviewEvent, S3Command,
    S3Effect, S3Event, SearchCommand, SearchEvent, UploadCommand, UploadEffect, UploadEvent,
};

/// A command, sent by panels and at startup.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// The program has started: read the library, and open `source` and `model` if given.
    Start {
        source: Option<PathBuf>,
        model: Option<String>,
    },
    /// The renderer of the window, for diagnostics.
    DrawnBy(String),
    Do(Action),
    /// Copies a terminal command to the clipboard.
    CopyCommand(String),
    SignalTask(TaskId, TaskSignal),
    ClearFinishedTasks,
    Restart,
    SetOverlay(Overlay),
    PickFile(FileRequest),
    DismissNotice,
    Jobs(JobsCommand),
    Endpoints(EndpointsCommand),
    RemoteJobs(RemoteJobsCommand),
    RemoteEndpoints(RemoteEndpointsCommand),
    Outputs(OutputsCommand),
    Inference(InferenceCommand),
    Models(ModelsCommand),
    S3(S3Command),
    Export(ExportCommand),
    Upload(UploadCommand),
    Project(ProjectCommand),
    Browse(BrowseCommand),
    Review(ReviewCommand),
    Search(SearchCommand),
    Evaluation(EvaluationCommand),
    Map(MapCommand),
}

/// The commands of a frame, in order.
pub type Commands = Queue<Command>;

impl Command {
    pub const CLOSE_OVERLAY: Self = Self::SetOverlay(Overlay::None);

    pub fn cancel(task: TaskId) -> Self {
        Self::SignalTask(task, TaskSignal::Cancel)
    }
}

/// A step through the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Moves by this many samples, backward if negative; stops at the ends.
    By(i64),
    /// Like `By`, and selects everything in between.
    ExtendBy(i64),
    First,
    Last,
}

impl From<Action> for Command {
    fn from(action: Action) -> Self {
        Self::Do(action)
    }
}

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
    RemoteJobs(RemoteJobsEvent),
    RemoteEndpoints(RemoteEndpointsEvent),
    Outputs(OutputsEvent),
    Inference(InferenceEvent),
    Models(ModelsEvent),
    S3(S3Event),
    Export(ExportEvent),
    Upload(UploadEvent),
    Project(ProjectEvent),
    Browse(BrowseEvent),
    Review(ReviewEvent),
    Search(SearchEvent),
    Evaluation(EvaluationEvent),
    Map(MapEvent),
}

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
    /// The project of a blind second pass, with a suggested name.
    SecondPassTarget {
        name: String,
    },
    /// The project of another person, to merge with the open one.
    MergedProject,
    /// The file of the merged project, with a suggested name.
    MergeTarget {
        name: String,
    },
    /// The file or folder of an export, with a suggested name.
    ExportTarget {
        name: String,
    },
    /// The file for a copy of the shown image, with a suggested name.
    ImageTarget {
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
            Self::SecondPassTarget { .. } => "Project of the second pass",
            Self::MergedProject => "Merge with the project of another person",
            Self::MergeTarget { .. } => "Save merged project as",
            Self::ExportTarget { .. } => "Export to",
            Self::ImageTarget { .. } => "Save image as",
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

/// An effect. `effects` runs them in order.
#[derive(Debug, Clone)]
pub enum Effect {
    Signal(TaskControl, TaskSignal),
    PickFile(FileRequest),
    CopyText {
        text: String,
        notice: String,
    },
    CopyDiagnostics {
        /// The user's setting for the search for ONNX Runtime.
        runtime_library: Option<PathBuf>,
        /// A description of the state: device report and recent problems.
        lines: Vec<String>,
    },
    OpenManual,
    OpenLog,
    Restart,
    Quit,
    Jobs(JobsEffect),
    Endpoints(EndpointsEffect),
    RemoteJobs(RemoteJobsEffect),
    RemoteEndpoints(RemoteEndpointsEffect),
    Outputs(OutputsEffect),
    Inference(InferenceEffect),
    Models(ModelsEffect),
    S3(S3Effect),
    Export(ExportEffect),
    Upload(UploadEffect),
    Project(ProjectEffect),
    Browse(BrowseEffect),
    Review(ReviewEffect),
    Search(ArrangeEffect),
    Evaluation(EvaluationEffect),
    Map(MapEffect),
}

/// A prediction to read from the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PredictionRequest {
    pub run: RunId,
    pub sample: SampleId,
    pub uri: SampleUri,
    /// The current state of the file: an outdated prediction does not count. `None` to request outdated ones too.
    pub stamp: Option<FileStamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThumbnailRequest {
    pub sample: SampleId,
    /// The version of the file; returned with the pixels.
    pub version: u32,
    pub entry: Sample,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceSpec {
    Path(PathBuf),
    Paths(Vec<PathBuf>),
    /// The sample images that come with Spotcheck.
    SampleImages,
    S3(S3Place),
    /// A project file: opens the images it was made for.
    Project(PathBuf),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskSignal {
    Pause,
    Resume,
    Cancel,
}

/// A box to crop from its image.
#[derive(Debug, Clone)]
pub struct CropRequest {
    pub sample: SampleId,
    pub shows: FilmBox,
    /// The bounds of a missed object, in pixels of the upright image.
    pub bounds: Option<BoundingBox>,
    pub uri: SampleUri,
    /// The prediction, if it is in memory; otherwise it is read from the project.
    pub prediction: Option<Arc<Prediction>>,
}

/// Commands or effects in order. Anything that converts to `T` can be pushed: `queue.push(JobsEffect::ReadPrices)`.
#[derive(Debug)]
pub struct Queue<T>(Vec<T>);

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Queue<T> {
    pub fn push(&mut self, item: impl Into<T>) {
        self.0.push(item.into());
    }

    pub fn into_vec(self) -> Vec<T> {
        self.0
    }
}

impl<T> std::ops::Deref for Queue<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> Extend<T> for Queue<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        self.0.extend(items);
    }
}

/// Converts the types of an area to the general ones.
macro_rules! areas {
    ($($area:ident($command:ident, $effect:ident, $event:ident)),+ $(,)?) => {$(
        areas!($area: $command => Command, $effect => Effect, $event => Event);
    )+};
    ($area:ident: $($part:ident => $whole:ident),+) => {$(
        impl From<$part> for $whole {
            fn from(part: $part) -> Self {
                Self::$area(part)
            }
        }
    )+};
}

areas!(
    Jobs(JobsCommand, JobsEffect, JobsEvent),
    Endpoints(EndpointsCommand, EndpointsEffect, EndpointsEvent),
    RemoteJobs(RemoteJobsCommand, RemoteJobsEffect, RemoteJobsEvent),
    RemoteEndpoints(RemoteEndpointsCommand, RemoteEndpointsEffect, RemoteEndpointsEvent),
    Outputs(OutputsCommand, OutputsEffect, OutputsEvent),
    Inference(InferenceCommand, InferenceEffect, InferenceEvent),
    Models(ModelsCommand, ModelsEffect, ModelsEvent),
    S3(S3Command, S3Effect, S3Event),
    Export(ExportCommand, ExportEffect, ExportEvent),
    Upload(UploadCommand, UploadEffect, UploadEvent),
    Project(ProjectCommand, ProjectEffect, ProjectEvent),
    Browse(BrowseCommand, BrowseEffect, BrowseEvent),
    Review(ReviewCommand, ReviewEffect, ReviewEvent),
    Search(SearchCommand, ArrangeEffect, SearchEvent),
    Evaluation(EvaluationCommand, EvaluationEffect, EvaluationEvent),
    Map(MapCommand, MapEffect, MapEvent),
);
