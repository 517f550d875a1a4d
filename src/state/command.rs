//! What the user can want.

use std::path::PathBuf;

use super::{
    Action, CanvasView, CompareLayout, EndpointDraft, EndpointId, ExportScope, JobDraft, JobId,
    OutputsAt, OutputsRequest, Overlay, RehearsalRequest, RuntimeKind, TaskId, TaskSignal,
};
use crate::domain::{
    ComparisonFormat, DeviceChoice, EndpointQuery, ExportOptions, JobQuery, Price, PriceChange,
    ReadingRequest, RemoteModel, RunId, S3Access, S3Address, S3Place, SampleId, SampleSet,
    SampleUri, TileKey, Verdict,
};
use crate::review::{FilmFrame, FilmOrder, Sort};

/// Pushed by panels and by the start of the program.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// The program has started: read the library, open `source` and use `model` where they are given.
    Start {
        source: Option<PathBuf>,
        model: Option<String>,
    },
    /// What draws the window, for diagnostics.
    DrawnBy(String),
    Do(Action),
    /// A folder, file, or address of a place in S3, typed by the user or from the recent ones.
    Open(PathBuf),
    /// A place in S3, however it is to be reached.
    OpenPlace(Box<S3Place>),
    /// As whom, and where, the dialog about S3 looks.
    SetS3Access(S3Access),
    /// All that this access may list.
    ListBuckets,
    /// Opens the tree of buckets down to this address.
    BrowseTo(S3Address),
    /// Opens or closes a folder in the tree of buckets.
    SetFolderOpen(S3Address, bool),
    /// Goes on with the listing of a folder, or begins it anew after a failure.
    ListMore(S3Address),
    /// Asks again who is signed in, with credentials that are looked for anew.
    SignIn(S3Access),
    /// Puts a command for a terminal on the clipboard.
    CopyCommand(String),
    /// Files and folders dropped on the window.
    Drop(Vec<PathBuf>),
    /// Shows one sample and selects only it.
    Show(SampleId),
    /// Adds a sample to the selection or takes it away.
    ToggleSelected(SampleId),
    /// Selects everything from where the selection began to this sample.
    ExtendSelection(SampleId),
    /// Only the shown sample stays selected.
    ClearSelection,
    Walk(Step),
    /// The thumbnails on screen that have no pixels yet, most wanted first. Replaces what was asked for before.
    WantThumbnails {
        /// The longer side in pixels.
        side: u32,
        wanted: Vec<SampleId>,
    },
    /// Shows the first image whose name begins with this, or else has it in it, or else is in this place.
    GoTo(String),
    /// The next one after the shown image.
    GoToNext(String),
    /// What may be kept on disk; zero keeps nothing.
    SetCacheBytes(u64),
    /// How much is kept on disk.
    MeasureCache,
    ClearCache,
    /// The samples whose whole predictions are looked at, most wanted first. Replaces what was asked for before.
    LoadPredictions(Vec<SampleId>),
    /// Looks at the predictions of another run.
    SwitchRun(RunId),
    RenameRun(RunId, String),
    /// With its predictions and the verdicts on them.
    DeleteRun(RunId),
    SaveProjectAs(PathBuf),
    /// What is chosen in the dialog about exports.
    SetExport(ExportOptions, ExportScope),
    SetComparisonFormat(ComparisonFormat),
    /// For whichever dialog about exports is open.
    PickExportTarget,
    Export {
        path: PathBuf,
        /// Whether what has this name already may be replaced.
        replaces: bool,
    },
    /// The comparison on screen.
    ExportComparison {
        path: PathBuf,
        /// Whether what has this name already may be replaced.
        replaces: bool,
    },
    DismissExported,
    /// Finds out what an upload of these images would do.
    PlanUpload(Box<S3Place>, ExportScope),
    /// Carries out the plan on screen.
    Upload {
        /// Whether objects with other content are replaced.
        replaces: bool,
    },
    /// Something else is to be uploaded, or to another place.
    ForgetUploadPlan,
    DismissUploaded,
    /// Checks what stands in the form about a job.
    CheckJob(Box<JobDraft>),
    /// Tries what the form says on this machine.
    Rehearse(RehearsalRequest),
    /// Starts what was checked.
    StartJob,
    /// Adds a price to the user's table.
    KeepPrice(Box<Price>),
    /// Puts a price of the table in the place of another one.
    ChangePrice(Box<PriceChange>),
    /// From its beginning.
    ListJobs(JobQuery),
    ListMoreJobs,
    /// Shows the page of a job.
    OpenJob(JobId),
    /// Shows the list alone.
    CloseJob,
    WatchJob(JobId),
    StopWatchingJob(JobId),
    StopJob(JobId),
    /// Which objects got no output, and why.
    FindOutcome(JobId),
    /// Plans a job over only the objects that got no output, and looks it through.
    PlanRetry(JobId),
    /// Starts it, as it was looked through.
    StartRetry(JobId),
    /// It is not wanted any more.
    DropRetry(JobId),
    /// Outputs of a job or a folder become a run of the open images.
    OpenOutputs(Box<OutputsRequest>),
    /// Predicts with a model elsewhere from now on; `None` on this computer. Nothing is sent but the image in view and what is asked for.
    PredictAt(Option<Box<RemoteModel>>),
    /// Opens the dialog about a model elsewhere with these fields.
    EditRemoteModel(Box<RemoteModel>),
    /// Looks whether it is there, without sending it an image.
    CheckRemoteModel(Box<RemoteModel>),
    /// Ask it about the image in view, to see how its predictions are read.
    ShowResponse(Box<RemoteModel>),
    ForgetRemoteModel(Box<RemoteModel>),
    /// Shows the first of them, without opening them.
    LookAtOutputs(Box<OutputsAt>),
    /// Shows what the examples say when they are read so.
    TryReading(Box<ReadingRequest>),
    /// Keeps a mapping among the user's own, with its labels.
    SaveMapping(Box<ReadingRequest>),
    LoadMapping(PathBuf),
    /// One of the user's own, by its file.
    DeleteMapping(PathBuf),
    PickMapping,
    FindLeftovers(JobId),
    /// Deletes what was listed as left behind.
    DeleteLeftovers(JobId),
    /// Checks what stands in the form about an endpoint.
    CheckDeployment(Box<EndpointDraft>),
    /// Deploys what was checked.
    Deploy,
    /// From its beginning.
    ListEndpoints(EndpointQuery),
    ListMoreEndpoints,
    /// Shows the page of an endpoint.
    OpenEndpoint(EndpointId),
    /// Shows the list alone.
    CloseEndpoint,
    WatchEndpoint(EndpointId),
    StopWatchingEndpoint(EndpointId),
    /// The end of what its containers wrote.
    ReadEndpointLog(EndpointId),
    /// Shows the page of an endpoint, with what would be deleted.
    AskToDeleteEndpoint(EndpointId),
    KeepEndpoint,
    /// With its configuration, and what was made for it.
    DeleteEndpoint(EndpointId),
    /// When Spotcheck deletes it by itself, in milliseconds since 1970-01-01 UTC; `None` leaves that to people.
    SetEndpointEnd(EndpointId, Option<i64>),
    /// Shows a file or folder in the file manager.
    RevealPath(SampleUri),
    /// The images of the open project lie in this folder now.
    MoveProject(PathBuf),
    /// What stands in the search field.
    SetQuery(String),
    SetSort(Sort),
    /// The tiles of the image that are looked at and not there, most wanted first. Replaces what was asked for before.
    WantTiles(Vec<TileKey>),
    SetCanvas(CanvasView),
    SelectBox(Option<usize>),
    /// Shows one sample with one of its boxes selected.
    ShowBox(SampleId, usize),
    /// Opens the strip with all boxes of a class, or shows this class in it.
    OpenFilmstrip(u32),
    SetFilmOrder(FilmOrder),
    /// The boxes of the strip on screen that have no pixels yet, most wanted first. Replaces what was asked for before.
    WantCrops(Vec<FilmFrame>),
    /// The class of a classifier that “Explain” is about; `None` is the top class.
    SelectClass(Option<u32>),
    HideExplanation,
    /// `0.0..=1.0`
    SetExplanationOpacity(f32),
    /// Holds the predictions of the run on screen against those of this one.
    CompareWith(RunId),
    /// With the filters as they are now.
    CompareAgain,
    SetCompareLayout(CompareLayout),
    StopComparing,
    /// Begins or ends presentation mode.
    Present(bool),
    /// Whether images follow each other by themselves.
    PlaySlides(bool),
    SetSlideSecs(f32),
    /// On the selected box, or else on every selected image; `None` takes the verdict back.
    /// Many images are judged only after a question.
    SetVerdict(Option<Verdict>),
    /// Yes, that many.
    ConfirmMassVerdict,
    /// Replaces the note of these images; an empty text takes it away.
    SetNote {
        samples: SampleSet,
        text: String,
    },
    /// To every selected image.
    AddTag(String),
    /// From every selected image.
    RemoveTag(String),
    ChangeView(ViewChange),
    ChooseModel(String),
    FetchModel(String),
    /// Ask for a file with the weights of a model that could not be downloaded.
    PickWeights(String),
    RemoveModel(String),
    ChooseDevice(DeviceChoice),
    /// `None` leaves it to the device.
    SetBatch(Option<usize>),
    /// `None` leaves it to the device.
    SetThreads(Option<usize>),
    /// `None` looks for one in the usual places.
    SetRuntimeLibrary(Option<PathBuf>),
    InstallRuntime(RuntimeKind),
    SetPredictOnOpen(bool),
    /// For images that are opened from now on.
    SetMaxMegapixels(u64),
    SetThumbnailSide(f32),
    SignalTask(TaskId, TaskSignal),
    ClearFinishedTasks,
    /// Sets a field of the draft card in the dialog about a model; an empty value takes that back.
    OverruleImport {
        field: String,
        value: String,
    },
    SetImportLabels(Option<PathBuf>),
    ConfirmImport,
    CancelImport,
    /// After a failure: prepare the model again.
    TryAgain,
    Restart,
    SetOverlay(Overlay),
    DismissNotice,
    /// The offer of this model, by its id, is not made again.
    DismissOffer(String),
    ForgetRecent(PathBuf),
    /// This place, however it was reached.
    ForgetRecentPlace(Box<S3Place>),
}

/// A way through the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// So many samples on, or back where negative; stops at the ends.
    By(i64),
    /// The same, with everything between selected.
    ExtendBy(i64),
    First,
    Last,
}

/// A change of the live filters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ViewChange {
    MinScore(f32),
    /// `None` lets the class follow the global threshold again.
    ClassMinScore(u32, Option<f32>),
    ShowClass(u32),
    HideClass(u32),
    Solo(Option<u32>),
    NmsIou(Option<f32>),
    TopK(usize),
    MinClassScore(f32),
}

impl From<Action> for Command {
    fn from(action: Action) -> Self {
        Self::Do(action)
    }
}
