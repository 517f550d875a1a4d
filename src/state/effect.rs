//! What is to be done outside of the state.

use std::path::PathBuf;
use std::sync::Arc;

use super::{
    ArrangeId, BoxCountId, BoxCountRequest, ConnectRequest, DeletionCause, EndpointId,
    EndpointRequest, FilmstripId, ImageRequest, ImagesRequest, ImportId, JobId, JobRequest,
    OutputsAt, OutputsRequest, Pace, PrepareRequest, RehearsalRequest, RuntimeKind, SourceId,
    TaskId,
};
use crate::domain::{
    Change, ComparisonFormat, EndpointPlan, EndpointQuery, ExportOptions, FileStamp, JobOutcome,
    JobQuery, LabelSet, Leftover, Prediction, Price, PriceChange, ReadingRequest, RemoteModel,
    ResponseExamples, RunId, RunInfo, RunKey, S3Access, S3Address, S3Place, SaliencyTarget, Sample,
    SampleId, SampleUri, SharedList, TileKey, TransformPlan, UploadPlan, ViewSettings,
};
use crate::evaluation::Comparison;
use crate::review::{ArrangeRequest, FilmRequest};
use crate::tasks::TaskControl;

/// Carried out by `effects`, in order.
#[derive(Clone)]
pub enum Effect {
    OpenSource {
        source: SourceId,
        spec: SourceSpec,
        task: TaskId,
        control: TaskControl,
    },
    /// Write changes to the project of the source.
    Save {
        source: SourceId,
        /// Comes back when they are on the disk.
        ticket: u64,
        changes: Vec<Change>,
    },
    /// Read the summary of a run's predictions.
    LoadRun {
        source: SourceId,
        run: RunId,
        task: TaskId,
        control: TaskControl,
    },
    /// Read whole predictions, most wanted first. Replaces what was asked for before.
    LoadPredictions {
        source: SourceId,
        wanted: Vec<PredictionRequest>,
    },
    /// Write what the project holds of these samples, in their order.
    Export {
        source: SourceId,
        source_name: String,
        run: Box<RunInfo>,
        view: ViewSettings,
        options: ExportOptions,
        samples: Vec<Sample>,
        path: PathBuf,
        /// Whether what has this name already may be replaced.
        replaces: bool,
        task: TaskId,
        control: TaskControl,
    },
    /// Write how far two runs, left and right, agree over these samples.
    ExportComparison {
        source: SourceId,
        source_name: String,
        runs: Box<[RunInfo; 2]>,
        views: Box<[ViewSettings; 2]>,
        samples: SharedList<Sample>,
        format: ComparisonFormat,
        path: PathBuf,
        /// Whether what has this name already may be replaced.
        replaces: bool,
        task: TaskId,
        control: TaskControl,
    },
    /// Find out what an upload of these samples' files would do.
    PlanUpload {
        /// The folder that they are named from; empty where there is none.
        root: String,
        samples: Vec<SampleUri>,
        target: S3Place,
        task: TaskId,
        control: TaskControl,
    },
    /// Send what the plan says.
    Upload {
        plan: Arc<UploadPlan>,
        /// Whether objects with other content are replaced.
        replaces: bool,
        task: TaskId,
        control: TaskControl,
    },
    /// Find out whether a job would do well.
    CheckJob {
        request: Box<JobRequest>,
        task: TaskId,
        control: TaskControl,
    },
    /// Try on this machine what the job would do with some of the images.
    Rehearse {
        source: SourceId,
        job: Box<JobRequest>,
        request: RehearsalRequest,
        runtime_library: Option<PathBuf>,
        task: TaskId,
        control: TaskControl,
    },
    /// Find out what outputs are, and read them into a run: the one of `known` with their key, which knows the names of its classes, or else a new one.
    OpenOutputs {
        source: SourceId,
        /// What the images are named from.
        root: String,
        samples: SharedList<Sample>,
        request: OutputsRequest,
        known: Vec<(RunKey, RunId, LabelSet)>,
        new_run: RunId,
        task: TaskId,
        control: TaskControl,
    },
    /// Read the user's table of prices.
    ReadPrices,
    /// Add a price to it.
    KeepPrice(Box<Price>),
    ChangePrice(Box<PriceChange>),
    /// Read the first predictions about these images.
    LookAtOutputs {
        source: SourceId,
        /// What the images are named from.
        root: String,
        samples: SharedList<Sample>,
        at: OutputsAt,
        task: TaskId,
        control: TaskControl,
    },
    /// Find out what the examples say when they are read so.
    TryReading {
        question: u64,
        examples: Arc<ResponseExamples>,
        request: ReadingRequest,
    },
    ListMappings,
    /// Into the user's own, with its labels.
    SaveMapping(ReadingRequest),
    LoadMapping(PathBuf),
    DeleteMapping(PathBuf),
    PickMapping,
    /// Upload what the job needs, and start it.
    StartJob {
        plan: Arc<TransformPlan>,
        task: TaskId,
        control: TaskControl,
    },
    ListJobs {
        access: S3Access,
        query: JobQuery,
        task: TaskId,
        control: TaskControl,
    },
    /// Look at a job again and again until it is over.
    WatchJob {
        id: JobId,
        task: TaskId,
        control: TaskControl,
    },
    StopJob {
        id: JobId,
        task: TaskId,
        control: TaskControl,
    },
    /// Find the objects that got no output, and why.
    FindOutcome {
        id: JobId,
        task: TaskId,
        control: TaskControl,
    },
    /// Plan a job for them alone, and look it through.
    PlanRetry {
        id: JobId,
        outcome: JobOutcome,
        task: TaskId,
        control: TaskControl,
    },
    StartRetry {
        id: JobId,
        plan: Arc<TransformPlan>,
        task: TaskId,
        control: TaskControl,
    },
    /// Find what a job left behind.
    FindLeftovers {
        id: JobId,
        task: TaskId,
        control: TaskControl,
    },
    DeleteLeftovers {
        id: JobId,
        found: Vec<Leftover>,
        task: TaskId,
        control: TaskControl,
    },
    /// Tell from now on what this machine keeps of endpoints, and which of them are to be deleted.
    KeepEndpoints,
    /// Find out whether an endpoint would do well.
    CheckDeployment {
        request: Box<EndpointRequest>,
        task: TaskId,
        control: TaskControl,
    },
    /// Pack and upload the model, and start the endpoint.
    Deploy {
        plan: Arc<EndpointPlan>,
        task: TaskId,
        control: TaskControl,
    },
    ListEndpoints {
        access: S3Access,
        query: EndpointQuery,
        task: TaskId,
        control: TaskControl,
    },
    /// Look at an endpoint again and again until it does not change by itself any more.
    WatchEndpoint {
        id: EndpointId,
        task: TaskId,
        control: TaskControl,
    },
    /// The end of what its containers wrote.
    ReadEndpointLog {
        id: EndpointId,
        task: TaskId,
        control: TaskControl,
    },
    /// With its configuration, and what was made for it.
    DeleteEndpoint {
        id: EndpointId,
        cause: DeletionCause,
        task: TaskId,
        control: TaskControl,
    },
    /// Keep when it is to be deleted.
    SetEndpointEnd {
        id: EndpointId,
        delete_at_ms: Option<i64>,
    },
    /// Ask for a file or folder to write, with a suggestion for its name.
    PickExportTarget(String),
    PickProject,
    /// A name to suggest.
    PickProjectTarget(String),
    PickMovedFolder,
    /// Go on with a copy of the project in this file.
    SaveProjectAs {
        source: SourceId,
        path: PathBuf,
    },
    /// The images of the project lie in this folder now; opens it anew.
    MoveProject {
        source: SourceId,
        folder: PathBuf,
    },
    /// Most wanted first; replaces what was asked for before.
    MakeThumbnails {
        source: SourceId,
        /// The longer side in pixels.
        side: u32,
        wanted: Vec<ThumbnailRequest>,
    },
    LimitCache(u64),
    MeasureCache,
    ClearCache,
    /// List what is open once more; changes are told page by page.
    ListAgain {
        source: SourceId,
        task: TaskId,
        control: TaskControl,
    },
    /// Images that are likely to be looked at next, after everything that is on screen. Replaces what was asked for before.
    ReadAhead {
        source: SourceId,
        samples: Vec<Sample>,
    },
    /// Replaces what was asked for before.
    Display {
        source: SourceId,
        sample: SampleId,
        uri: SampleUri,
    },
    /// Tiles of the displayed image, most wanted first; replaces what was asked for before.
    MakeTiles {
        source: SourceId,
        sample: SampleId,
        wanted: Vec<TileKey>,
    },
    /// Count the boxes that could be exported.
    CountBoxes {
        id: BoxCountId,
        what: Box<BoxCountRequest>,
    },
    /// Gather all boxes of a class. A newer request takes the place of one before.
    GatherFilmstrip {
        id: FilmstripId,
        what: Box<FilmRequest>,
    },
    /// Cut boxes out of their images, most wanted first; replaces what was asked for before.
    MakeCrops {
        source: SourceId,
        run: RunId,
        wanted: Vec<CropRequest>,
    },
    /// Find out which parts of an image carry a prediction.
    Explain {
        source: SourceId,
        key: RunKey,
        uri: SampleUri,
        target: SaliencyTarget,
        task: TaskId,
        control: TaskControl,
    },
    /// Compare the predictions of two runs, left and right, image by image.
    Compare {
        source: SourceId,
        runs: [RunId; 2],
        samples: SharedList<Sample>,
        comparison: Box<Comparison>,
        task: TaskId,
        control: TaskControl,
    },
    /// Read what the user's AWS configuration offers.
    ReadAwsSetup,
    /// Ask who is signed in, with credentials that are looked for anew.
    SignIn {
        access: S3Access,
        task: TaskId,
        control: TaskControl,
    },
    ListBuckets {
        access: S3Access,
        task: TaskId,
        control: TaskControl,
    },
    /// List what lies in a folder itself, some pages at once.
    ListS3Folder {
        access: S3Access,
        folder: S3Address,
        /// Where the listing before ended.
        continuation: Option<String>,
        task: TaskId,
        control: TaskControl,
    },
    ListModels,
    FetchModel {
        id: String,
        /// A file of the user's in place of a download.
        from: Option<PathBuf>,
        task: TaskId,
        control: TaskControl,
    },
    RemoveModel {
        id: String,
    },
    /// Find or install ONNX Runtime and load a model. Replaces the loaded one.
    Prepare(PrepareRequest),
    /// Find out what a remote model responds with: send it images until a response can be recognised, or none if a mapping
    /// says how responses are read.
    Connect(ConnectRequest),
    /// Predict one image with the remote model. Replaces a request that was not sent yet.
    PredictRemotely {
        image: ImageRequest,
        task: TaskId,
        control: TaskControl,
    },
    /// Find out whether a model elsewhere is there, without sending it an image.
    CheckRemoteModel {
        model: RemoteModel,
        task: TaskId,
        control: TaskControl,
    },
    /// Ask a model elsewhere about an image, to look at the prediction.
    ShowResponse {
        source: SourceId,
        model: RemoteModel,
        entry: Sample,
        task: TaskId,
        control: TaskControl,
    },
    InstallRuntime {
        kind: RuntimeKind,
        task: TaskId,
        control: TaskControl,
    },
    /// Look into a model of the user's own.
    Recognise {
        import: ImportId,
        weights: PathBuf,
        labels: Option<PathBuf>,
        overrules: Vec<(String, String)>,
        /// To show what the model would get of it.
        image: Option<(SourceId, SampleUri)>,
        runtime_library: Option<PathBuf>,
    },
    /// Search, sort and count. Replaces what was asked for before.
    Arrange {
        id: ArrangeId,
        pace: Pace,
        /// Whose answers are in the request: the places of their boxes lie in the project.
        run: Option<(SourceId, RunId)>,
        request: Box<ArrangeRequest>,
    },
    /// Take the model that this look was at into the library.
    AddModel {
        import: ImportId,
    },
    PickModel,
    /// For the model of this id.
    PickWeights(String),
    /// Predict one sample with the loaded model, before everything else. Replaces one that has not begun.
    PredictOne(ImageRequest),
    /// Predict many samples with the loaded model.
    Predict(ImagesRequest),
    Signal(TaskControl, TaskSignal),
    /// Refuse larger images from now on.
    LimitMegapixels(u64),
    PickFolder,
    PickImages,
    Reveal(SampleUri),
    CopyImage {
        source: SourceId,
        uri: SampleUri,
        prediction: Option<Prediction>,
        view: ViewSettings,
        /// The boxes that are visible whatever the view.
        confirmed: Vec<u32>,
    },
    CopyText {
        text: String,
        notice: String,
    },
    CopyDiagnostics {
        /// What the state knows: device report, last problems.
        lines: Vec<String>,
    },
    OpenManual,
    OpenLog,
    Restart,
    Quit,
}

/// An answer to be read from the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PredictionRequest {
    pub run: RunId,
    pub sample: SampleId,
    pub uri: SampleUri,
    /// Of the file as it is now: a prediction about an older one is none. `None` where an older one is what is wanted.
    pub stamp: Option<FileStamp>,
}

/// A thumbnail to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThumbnailRequest {
    pub sample: SampleId,
    /// Of the file; comes back with the pixels.
    pub version: u32,
    pub entry: Sample,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceSpec {
    /// A folder or a file.
    Path(PathBuf),
    Paths(Vec<PathBuf>),
    /// The photographs that come with Spotcheck.
    SamplePhotographs,
    /// A place in S3.
    S3(S3Place),
    /// A project file: the images that it is about, wherever they lie.
    Project(PathBuf),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskSignal {
    Pause,
    Resume,
    Cancel,
}

/// A box that is to be cut out of its image.
#[derive(Debug, Clone)]
pub struct CropRequest {
    pub sample: SampleId,
    /// Into the detections of the prediction.
    pub index: u32,
    pub uri: SampleUri,
    /// Where it is in memory; else it is read from the project.
    pub prediction: Option<Arc<Prediction>>,
}

/// Without the image data and controls that would drown a test's message.
impl std::fmt::Debug for Effect {
    #[expect(clippy::too_many_lines, reason = "one line an effect, and rustfmt")]
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::OpenSource { source, spec, .. } => {
                write!(formatter, "OpenSource({source:?}, {spec:?})")
            }
            Self::MakeThumbnails { wanted, .. } => {
                write!(formatter, "MakeThumbnails({})", wanted.len())
            }
            Self::Display { sample, .. } => write!(formatter, "Display({sample:?})"),
            Self::MakeTiles { wanted, .. } => write!(formatter, "MakeTiles({})", wanted.len()),
            Self::CountBoxes { id, .. } => write!(formatter, "CountBoxes({id:?})"),
            Self::GatherFilmstrip { what, .. } => {
                write!(formatter, "GatherFilmstrip({})", what.class)
            }
            Self::MakeCrops { wanted, .. } => write!(formatter, "MakeCrops({})", wanted.len()),
            Self::Explain { uri, target, .. } => write!(formatter, "Explain({uri}, {target:?})"),
            Self::LimitCache(bytes) => write!(formatter, "LimitCache({bytes})"),
            Self::MeasureCache => formatter.write_str("MeasureCache"),
            Self::ClearCache => formatter.write_str("ClearCache"),
            Self::ListAgain { source, .. } => write!(formatter, "ListAgain({source:?})"),
            Self::ReadAhead { samples, .. } => write!(formatter, "ReadAhead({})", samples.len()),
            Self::ReadAwsSetup => formatter.write_str("ReadAwsSetup"),
            Self::SignIn { access, .. } => write!(formatter, "SignIn({access:?})"),
            Self::ListBuckets { access, .. } => write!(formatter, "ListBuckets({access:?})"),
            Self::ListS3Folder { folder, .. } => write!(formatter, "ListS3Folder({folder})"),
            Self::ListModels => formatter.write_str("ListModels"),
            Self::FetchModel { id, .. } => write!(formatter, "FetchModel({id})"),
            Self::RemoveModel { id } => write!(formatter, "RemoveModel({id})"),
            Self::Save {
                ticket, changes, ..
            } => write!(formatter, "Save({ticket}, {changes:?})"),
            Self::LoadRun { run, .. } => write!(formatter, "LoadRun({run:?})"),
            Self::LoadPredictions { wanted, .. } => {
                write!(formatter, "ReadAnswers({})", wanted.len())
            }
            Self::Compare { runs, .. } => write!(formatter, "Compare({runs:?})"),
            Self::Export { path, samples, .. } => {
                write!(
                    formatter,
                    "Export({}, {} samples)",
                    path.display(),
                    samples.len()
                )
            }
            Self::ExportComparison { path, .. } => {
                write!(formatter, "ExportComparison({})", path.display())
            }
            Self::PlanUpload {
                target, samples, ..
            } => {
                write!(
                    formatter,
                    "PlanUpload({}, {} samples)",
                    target.address,
                    samples.len()
                )
            }
            Self::Upload { plan, .. } => write!(formatter, "Upload({})", plan.target.address),
            Self::CheckJob { request, .. } => {
                write!(formatter, "CheckJob({})", request.spec.job_name)
            }
            Self::Rehearse { job, .. } => write!(formatter, "Rehearse({})", job.spec.job_name),
            Self::OpenOutputs { request, .. } => {
                write!(formatter, "OpenOutputs({})", request.at.name())
            }
            Self::ReadPrices => formatter.write_str("ReadPrices"),
            Self::KeepPrice(price) => write!(formatter, "KeepPrice({})", price.instance_type),
            Self::ChangePrice(change) => {
                write!(formatter, "ChangePrice({})", change.to.instance_type)
            }
            Self::LookAtOutputs { at, .. } => write!(formatter, "LookAtOutputs({})", at.name()),
            Self::TryReading { question, .. } => write!(formatter, "TryReading({question})"),
            Self::ListMappings => formatter.write_str("ListMappings"),
            Self::SaveMapping(_) => formatter.write_str("SaveMapping"),
            Self::LoadMapping(path) => write!(formatter, "LoadMapping({})", path.display()),
            Self::DeleteMapping(path) => write!(formatter, "DeleteMapping({})", path.display()),
            Self::PickMapping => formatter.write_str("PickMapping"),
            Self::StartJob { plan, .. } => write!(formatter, "StartJob({})", plan.spec.job_name),
            Self::ListJobs { query, .. } => write!(formatter, "ListJobs({query:?})"),
            Self::WatchJob { id, .. } => write!(formatter, "WatchJob({})", id.name),
            Self::StopJob { id, .. } => write!(formatter, "StopJob({})", id.name),
            Self::FindOutcome { id, .. } => write!(formatter, "FindOutcome({})", id.name),
            Self::PlanRetry { id, .. } => write!(formatter, "PlanRetry({})", id.name),
            Self::StartRetry { plan, .. } => {
                write!(formatter, "StartRetry({})", plan.spec.job_name)
            }
            Self::FindLeftovers { id, .. } => write!(formatter, "FindLeftovers({})", id.name),
            Self::DeleteLeftovers { id, .. } => {
                write!(formatter, "DeleteLeftovers({})", id.name)
            }
            Self::KeepEndpoints => formatter.write_str("KeepEndpoints"),
            Self::CheckDeployment { request, .. } => {
                write!(formatter, "CheckDeployment({})", request.config.name)
            }
            Self::Deploy { plan, .. } => write!(formatter, "Deploy({})", plan.config.name),
            Self::ListEndpoints { query, .. } => write!(formatter, "ListEndpoints({query:?})"),
            Self::WatchEndpoint { id, .. } => write!(formatter, "WatchEndpoint({})", id.name),
            Self::ReadEndpointLog { id, .. } => write!(formatter, "ReadEndpointLog({})", id.name),
            Self::DeleteEndpoint { id, cause, .. } => {
                write!(formatter, "DeleteEndpoint({}, {cause:?})", id.name)
            }
            Self::SetEndpointEnd { id, delete_at_ms } => {
                write!(formatter, "SetEndpointEnd({}, {delete_at_ms:?})", id.name)
            }
            Self::PickExportTarget(name) => write!(formatter, "PickExportTarget({name})"),
            Self::PickProject => formatter.write_str("PickProject"),
            Self::PickProjectTarget(stem) => write!(formatter, "PickProjectTarget({stem})"),
            Self::PickMovedFolder => formatter.write_str("PickMovedFolder"),
            Self::SaveProjectAs { path, .. } => {
                write!(formatter, "SaveProjectAs({})", path.display())
            }
            Self::MoveProject { folder, .. } => {
                write!(formatter, "MoveProject({})", folder.display())
            }
            Self::Connect(request) => write!(
                formatter,
                "Connect({}, {} samples)",
                request.model.name(),
                request.samples.len()
            ),
            Self::PredictRemotely { image, .. } => write!(formatter, "PredictRemotely({image:?})"),
            Self::CheckRemoteModel { model, .. } => {
                write!(formatter, "CheckRemoteModel({})", model.name())
            }
            Self::ShowResponse { model, .. } => {
                write!(formatter, "LookAtAnswer({})", model.name())
            }
            Self::Prepare(request) => write!(formatter, "Prepare({})", request.key.model_id),
            Self::PredictOne(image) => write!(formatter, "PredictOne({image:?})"),
            Self::Predict(request) => write!(
                formatter,
                "Predict({:?}, {} samples)",
                request.run,
                request.samples.len()
            ),
            Self::LimitMegapixels(max) => write!(formatter, "LimitMegapixels({max})"),
            Self::Signal(_, signal) => write!(formatter, "Signal({signal:?})"),
            Self::InstallRuntime { kind, .. } => write!(formatter, "InstallRuntime({kind:?})"),
            Self::Recognise { weights, .. } => {
                write!(formatter, "Recognise({})", weights.display())
            }
            Self::Arrange { id, pace, .. } => write!(formatter, "Arrange({id:?}, {pace:?})"),
            Self::AddModel { .. } => formatter.write_str("AddModel"),
            Self::PickModel => formatter.write_str("PickModel"),
            Self::PickWeights(id) => write!(formatter, "PickWeights({id})"),
            Self::PickFolder => formatter.write_str("PickFolder"),
            Self::PickImages => formatter.write_str("PickImages"),
            Self::Reveal(uri) => write!(formatter, "Reveal({uri})"),
            Self::CopyImage { uri, .. } => write!(formatter, "CopyPicture({uri})"),
            Self::CopyText { text, .. } => write!(formatter, "CopyText({text})"),
            Self::CopyDiagnostics { .. } => formatter.write_str("CopyDiagnostics"),
            Self::OpenManual => formatter.write_str("OpenManual"),
            Self::OpenLog => formatter.write_str("OpenLog"),
            Self::Restart => formatter.write_str("Restart"),
            Self::Quit => formatter.write_str("Quit"),
        }
    }
}
