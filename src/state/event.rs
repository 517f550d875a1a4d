//! What tasks report.

use std::path::PathBuf;
use std::sync::Arc;

use super::{
    ArrangeId, BoxCountId, BoxCounts, ConnectFailure, DeletionCause, EndpointDeletion, EndpointId,
    Exported, FilmstripId, FormCheck, FoundModel, FoundRun, ImportDraft, ImportId, JobId,
    Leftovers, ModelEntry, Offer, OutputsFailure, ProjectContent, ReadingTrial, RehearsalReport,
    Relisting, RemoteCheck, RemotePrediction, RetryPlan, S3Failure, S3FolderPage, SavedMapping,
    SourceId, TaskId, TaskOutcome, WatchEnd,
};
use crate::domain::{
    AwsSetup, CacheUsage, DeviceReport, Endpoint, EndpointConfig, EndpointPage, EndpointPlan,
    EndpointRecord, FileStamp, Identity, JobOutcome, JobPage, JobProgress, LabelSet, LatencyMs,
    Leftover, ListingChange, LogLine, Page, Prediction, PriceTable, Problem, RemoteAddress,
    ResponseExamples, RunId, RunKey, S3Access, S3Address, S3Place, SageMakerAccess, Saliency,
    SampleId, SampleUri, TransformPlan, TruthBox, UploadPlan, UploadReport,
};
use crate::evaluation::Agreement;
use crate::review::{Arrangement, FilmFrame, Statistics, Suppressed};

/// What `effects` reports. Each event carries the id of its request.
#[derive(Debug)]
pub enum Event {
    /// A source could be opened and its listing begins.
    Opened {
        source: SourceId,
        name: String,
        /// Where in S3 it lies, where it does.
        place: Option<S3Place>,
    },
    /// The project of the source, with what it holds beside the predictions.
    ProjectOpened {
        source: SourceId,
        content: Box<ProjectContent>,
    },
    /// Everything up to this ticket is on the disk.
    Saved {
        source: SourceId,
        up_to: u64,
    },
    /// It is not; it is kept and tried again.
    SaveFailed {
        source: SourceId,
        reason: String,
    },
    /// A part of a run's summary, read from the project.
    RunLoaded {
        source: SourceId,
        run: RunId,
        predictions: Vec<StoredRow>,
    },
    RunLoadingEnded {
        source: SourceId,
        run: RunId,
        task: TaskId,
        result: Result<(), String>,
    },
    /// Whole predictions, read from the project; `None` where it holds none.
    PredictionsLoaded {
        source: SourceId,
        predictions: Vec<(RunId, SampleId, Option<Prediction>)>,
    },
    /// The project goes on in another file, which has given no run this id or a later one.
    ProjectSavedAs {
        source: SourceId,
        result: Result<(PathBuf, RunId), String>,
    },
    /// A part of a listing.
    Listed {
        source: SourceId,
        page: Page,
    },
    /// Files appeared, changed or vanished.
    ListingChanged {
        source: SourceId,
        change: ListingChange,
    },
    /// What is kept on disk.
    CacheMeasured(CacheUsage),
    /// A place was listed again; what is there came as changes before.
    ListedAgain {
        source: SourceId,
        task: TaskId,
        result: Result<Relisting, String>,
    },
    ListingEnded {
        source: SourceId,
        task: TaskId,
        result: Result<(), String>,
    },
    /// A thumbnail that cannot be made.
    ThumbnailFailed {
        source: SourceId,
        sample: SampleId,
        /// Of the file.
        version: u32,
        reason: String,
    },
    /// The image for the canvas has been decoded; its pixels went to `ui`.
    Displayed {
        source: SourceId,
        sample: SampleId,
        result: Result<DisplayInfo, String>,
    },
    ModelsListed {
        entries: Vec<ModelEntry>,
        defaults: ModelDefaults,
        problems: Vec<Problem>,
    },
    ModelRemoved {
        id: String,
        result: Result<u64, String>,
    },
    /// The model that this task was to prepare is loaded.
    EngineReady {
        task: TaskId,
        report: Box<DeviceReport>,
        /// The ONNX Runtime library that would be used after a restart, where that is not the loaded one.
        restart_to_use: Option<String>,
    },
    /// It is not, and will not be before the user does something.
    EngineFailed {
        task: TaskId,
        message: String,
        offer: Offer,
    },
    /// The user cancelled while it was being prepared.
    EngineCancelled {
        task: TaskId,
    },
    /// What a model elsewhere is, or why that is not known.
    Connected {
        source: SourceId,
        task: TaskId,
        /// Milliseconds since 1970-01-01 UTC.
        at_ms: i64,
        result: Result<Box<FoundModel>, ConnectFailure>,
    },
    RemotePredicted(Box<RemotePrediction>),
    /// How long remote predictions take.
    RemoteLatency {
        key: Box<RunKey>,
        latency: Option<LatencyMs>,
    },
    RemoteModelChecked {
        task: TaskId,
        result: Result<RemoteCheck, S3Failure>,
    },
    /// A prediction of the model at this address.
    ResponseShown {
        source: SourceId,
        task: TaskId,
        of: Box<RemoteAddress>,
        result: Result<Arc<ResponseExamples>, S3Failure>,
    },
    /// The device is gone; what was computed stays.
    DeviceLost {
        key: Box<RunKey>,
        message: String,
    },
    /// Fresh timings.
    Report {
        key: Box<RunKey>,
        report: Box<DeviceReport>,
    },
    /// The image that was asked about could not be read, nor could any other one.
    SourceUnreachable {
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
    /// Two runs were held against each other, or why not.
    Compared {
        task: TaskId,
        result: Result<Agreement, String>,
    },
    /// A task that needs no event of its own has ended.
    TaskEnded {
        task: TaskId,
        outcome: TaskOutcome,
        /// What happened on the way and is worth knowing: “the batch was halved, the device ran out of memory”.
        notes: Vec<String>,
    },
    UploadPlanned {
        task: TaskId,
        result: Result<UploadPlan, TaskOutcome>,
    },
    Uploaded {
        task: TaskId,
        target: S3Place,
        result: Result<UploadReport, String>,
    },
    /// The table of prices was read, or written and read.
    PricesRead {
        path: String,
        result: Result<PriceTable, String>,
    },
    JobChecked {
        task: TaskId,
        result: Result<Box<FormCheck<TransformPlan>>, TaskOutcome>,
    },
    /// What the rehearsal found, for people.
    Rehearsed {
        task: TaskId,
        result: Result<Box<RehearsalReport>, TaskOutcome>,
    },
    JobStarted {
        task: TaskId,
        result: Result<JobId, TaskOutcome>,
    },
    /// A part of the list of jobs.
    JobsListed {
        task: TaskId,
        is_first: bool,
        result: Result<JobPage, S3Failure>,
    },
    /// A job as it is now.
    JobSeen {
        id: JobId,
        task: TaskId,
        progress: Box<JobProgress>,
    },
    /// It could not be looked at the job, and is tried again.
    JobTrouble {
        id: JobId,
        task: TaskId,
        text: String,
    },
    /// It is over, or cannot be looked at.
    JobWatchEnded {
        id: JobId,
        task: TaskId,
        end: WatchEnd,
    },
    JobStopAsked {
        id: JobId,
        task: TaskId,
        result: Result<(), S3Failure>,
    },
    OutcomeFound {
        id: JobId,
        task: TaskId,
        result: Result<JobOutcome, S3Failure>,
    },
    RetryPlanned {
        id: JobId,
        task: TaskId,
        result: Result<Box<RetryPlan>, S3Failure>,
    },
    /// With the name of the job that has what failed.
    RetryStarted {
        id: JobId,
        task: TaskId,
        result: Result<String, S3Failure>,
    },
    /// What outputs are, and the run that their predictions go into.
    OutputsFound {
        source: SourceId,
        task: TaskId,
        run: RunId,
        found: Box<FoundRun>,
    },
    /// The classes of a run, learnt with its predictions. Comes before the predictions that need them.
    RunLabelled {
        source: SourceId,
        run: RunId,
        labels: Box<LabelSet>,
    },
    OutputsRead {
        source: SourceId,
        task: TaskId,
        result: Result<TaskOutcome, OutputsFailure>,
    },
    /// The first predictions about the open images.
    OutputsLookedAt {
        source: SourceId,
        task: TaskId,
        result: Result<Arc<ResponseExamples>, OutputsFailure>,
    },
    /// What examples say when they are read as was wished for.
    ReadingTried {
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
    /// Its name, or why it stays.
    MappingDeleted(Result<String, String>),
    LeftoversFound {
        id: JobId,
        task: TaskId,
        result: Result<Leftovers, S3Failure>,
    },
    /// With what was deleted, for people, and what is left.
    LeftoversDeleted {
        id: JobId,
        task: TaskId,
        result: Result<(String, Vec<Leftover>), S3Failure>,
    },
    /// What this machine keeps of endpoints, what of it cannot be read, and which endpoints are to be deleted by now.
    EndpointRecordsRead {
        records: Vec<EndpointRecord>,
        unreadable: Vec<String>,
        due: Vec<EndpointId>,
    },
    /// It is a while since endpoints were looked at.
    EndpointsOutdated,
    DeploymentChecked {
        task: TaskId,
        result: Result<Box<FormCheck<EndpointPlan>>, TaskOutcome>,
    },
    /// It is being started.
    Deployed {
        task: TaskId,
        result: Result<EndpointId, TaskOutcome>,
    },
    /// A part of the list of endpoints, and where they are.
    EndpointsListed {
        task: TaskId,
        is_first: bool,
        result: Result<(SageMakerAccess, EndpointPage), S3Failure>,
    },
    /// An endpoint as it is now; `None` where there is none of this name, or no longer.
    EndpointSeen {
        id: EndpointId,
        task: TaskId,
        endpoint: Option<Box<Endpoint>>,
        /// What it runs, where SageMaker tells.
        config: Option<EndpointConfig>,
        /// Of one instance, where the table of prices has it.
        usd_per_hour: Option<f64>,
    },
    /// It could not be looked at the endpoint, and is tried again.
    EndpointTrouble {
        id: EndpointId,
        task: TaskId,
        text: String,
    },
    /// It does not change by itself any more, or cannot be looked at.
    EndpointWatchEnded {
        id: EndpointId,
        task: TaskId,
        result: Result<(), S3Failure>,
    },
    EndpointLogRead {
        id: EndpointId,
        task: TaskId,
        result: Result<Vec<LogLine>, S3Failure>,
    },
    EndpointDeleted {
        id: EndpointId,
        task: TaskId,
        cause: DeletionCause,
        result: Result<EndpointDeletion, S3Failure>,
    },
    Exported {
        task: TaskId,
        result: Result<Exported, TaskOutcome>,
    },
    /// Which parts of the shown image carry a prediction, or how the search for them ended.
    Explained {
        task: TaskId,
        result: Result<Arc<Saliency>, TaskOutcome>,
    },
    /// How many boxes could be exported; `None` where counting them went wrong.
    BoxesCounted {
        id: BoxCountId,
        counts: Option<BoxCounts>,
    },
    /// All boxes of the class that the open strip shows.
    FilmstripGathered {
        id: FilmstripId,
        frames: Vec<FilmFrame>,
    },
    /// What was found in a model of the user's own.
    Recognised {
        import: ImportId,
        result: Result<Box<ImportDraft>, String>,
    },
    /// It is in the library, under this id.
    ModelAdded {
        import: ImportId,
        result: Result<String, String>,
    },
    /// The order that was asked for.
    Arranged {
        id: ArrangeId,
        arrangement: Arrangement,
        /// Which boxes are hidden by better ones, where the view hides such.
        suppressed: Option<Suppressed>,
    },
    /// The statistics that go with it, and the end of the prediction; `None` where there is no run.
    Counted {
        id: ArrangeId,
        statistics: Option<Statistics>,
    },
    ArrangeFailed {
        id: ArrangeId,
        reason: String,
    },
    FilesPicked(FilePick),
    AwsSetupRead(Result<AwsSetup, String>),
    /// Who is signed in, or why nobody is.
    SignedIn {
        access: S3Access,
        task: TaskId,
        result: Result<Identity, S3Failure>,
        /// The command that signs in anew, for sign-ins that a person makes.
        renewal: Option<String>,
    },
    BucketsListed {
        task: TaskId,
        result: Result<Vec<String>, S3Failure>,
    },
    /// A part of what lies in a folder of a bucket.
    S3FolderListed {
        folder: S3Address,
        task: TaskId,
        page: S3FolderPage,
    },
    /// With where it goes on, where that is not all.
    S3FolderEnded {
        folder: S3Address,
        task: TaskId,
        result: Result<Option<String>, S3Failure>,
    },
    /// Something small is done: “Copied the image”.
    Told(String),
    /// Something small is not.
    WentWrong(Problem),
}

/// What the model has just said of a sample.
#[derive(Debug, Clone, PartialEq)]
pub struct NewPrediction {
    pub sample: SampleId,
    /// Of the file when it was asked about: it may have been written to meanwhile.
    pub stamp: FileStamp,
    /// Or why there is no prediction.
    pub result: Result<Prediction, String>,
}

/// One answer of a run's summary.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRow {
    pub sample: SampleUri,
    /// The state of the file that the model saw, where that is known.
    pub stamp: Option<FileStamp>,
    pub prediction: StoredPrediction,
}

/// What the summary of a run keeps of a prediction.
#[derive(Debug, Clone, PartialEq)]
pub enum StoredPrediction {
    Predicted {
        width: u32,
        height: u32,
        classes: Vec<u32>,
        scores: Vec<f32>,
        warnings: Vec<String>,
    },
    Failed(String),
}

/// The answer of a file dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilePick {
    Folder(PathBuf),
    Files(Vec<PathBuf>),
    Model(PathBuf),
    /// The weights of the model of this id.
    Weights(String, PathBuf),
    /// A mapping of outputs.
    Mapping(PathBuf),
    /// A project file to open.
    Project(PathBuf),
    /// Where a copy of the project is to lie.
    ProjectTarget(PathBuf),
    /// Where an export is to lie.
    ExportTarget(PathBuf),
    /// Where the images of the project lie now.
    MovedFolder(PathBuf),
    Cancelled,
    /// No dialog appeared; the message says why and what to do.
    Unavailable(String),
}

/// The models that a task starts with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelDefaults {
    pub classification: Option<String>,
    pub detection: Option<String>,
}

/// What is known of a decoded image and its file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DisplayInfo {
    /// Width and height of the upright image, in pixels.
    pub size: [u32; 2],
    /// “The file ends early; the lower part is missing”.
    pub warning: Option<String>,
    /// Names and values for people: format, size on disk, EXIF.
    pub details: Vec<(String, String)>,
    /// Stored with the image, by those who made the data set.
    pub stored_boxes: Vec<TruthBox>,
}
