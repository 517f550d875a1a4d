//! The state of the window, and the only code that changes it.
//!
//! [`update`] takes the state and a [`Message`] (a [`Command`] of the user or an [`Event`] of a task) and gives the
//! [`Effect`]s to carry out. It is pure: no files, no threads, no graphics, no pixels. Panels draw `&State`; `effects`
//! carries the effects out and reports events. Each event carries the id of its request; one that is no longer needed
//! is dropped by that id, never by timing.

mod action;
mod arranging;
mod browse;
mod command;
mod comparing;
mod derived;
mod effect;
mod evaluating;
mod event;
mod explanation;
mod export;
mod filmstrip;
mod import;
mod inference;
mod judgments;
mod loadable;
mod model_shelf;
mod order;
mod pages;
mod problems;
mod project;
mod queue;
mod remote;
mod review;
mod runs;
mod s3_picker;
mod s3_tree;
mod samples;
mod selection;
mod settings;
mod sign_in;
mod task_list;
mod update;
mod upload;

pub use action::Action;
pub use arranging::{Arranging, Pace, ScrollRequest, ScrollTarget};
pub use browse::{BrowseCommand, BrowseEffect, BrowseEvent, DrawnTruth, DroppedKind};
pub use command::{Command, Step, ViewChange};
pub use comparing::{CompareLayout, CompareRequest, Compared, Comparing};
pub use derived::{Derived, RequestId};
pub use effect::{CropRequest, Effect, PredictionRequest, SourceSpec, TaskSignal, ThumbnailRequest};
pub use evaluating::{
    EvaluateRequest, EvaluatedRun, Evaluating, EvaluationCommand, EvaluationEffect, EvaluationEvent, NO_IMAGE,
    OpenedTruth, RunEvaluation, ShownObject, TruthAt, TruthImages, TruthNames, TruthReading, TruthRequest, TruthSource,
};
pub use event::{
    AnnotationsPick, DisplayInfo, Event, FilePick, FileRequest, ModelDefaults, NewPrediction, StoredPrediction,
    StoredRow,
};
pub use explanation::{ExplainRequest, Explanation, Question};
use export::CountBasis;
pub use export::{
    BoxCountRequest, BoxCounter, BoxCounts, ExportCommand, ExportComparisonRequest, ExportDraft, ExportEffect,
    ExportEvaluationRequest, ExportEvent, ExportFile, ExportRequest, ExportScope, Exported,
};
pub use filmstrip::Filmstrip;
pub use import::{
    Evidence, Import, ImportFinding, ImportForm, ImportId, ImportPort, ImportProblem, ImportStart, ImportStatus,
    ImportSubject, ImportTrial, LabelChoice, PresetRow, PresetTable, PresetsRequest, RecognizeRequest, SaveRequest,
    TrialRequest,
};
use inference::QueuedImages;
pub use inference::{
    ConnectRequest, EngineFailure, ImageRequest, ImagesRequest, Inference, InferenceCommand, InferenceEffect,
    InferenceEvent, LocalEngine, Offer, PrepareRequest, RemoteEngine, RuntimeKind,
};
pub use judgments::{ImageJudgment, Judgments};
pub use loadable::{Failure, Loadable};
pub use model_shelf::{ModelEntry, ModelShelf, ModelsCommand, ModelsEffect, ModelsEvent};
pub use order::Order;
pub use problems::{ProblemEntry, ProblemList};
pub use project::{Project, ProjectCommand, ProjectContent, ProjectEffect, ProjectEvent, ProjectStatus};
pub use queue::Queue;
pub(in crate::state) use remote::Draft;
pub use remote::{
    ChosenModel, ConnectFailure, DeletionCause, EndpointDeletion, EndpointDraft, EndpointForm, EndpointId,
    EndpointList, EndpointPresence, EndpointRequest, Endpoints, EndpointsCommand, EndpointsEffect, EndpointsEvent,
    Form, FormCheck, FoundModel, FoundRun, ImagesFrom, JobDraft, JobForm, JobId, JobImages, JobList, JobRequest,
    JobsCommand, JobsEffect, JobsEvent, KnownEndpoint, KnownJob, Leftovers, ModelDraft, ModelFrom, ModelRequest,
    OpenOutputsRequest, OpenPredictionsRequest, OpeningOutputs, OutputsAt, OutputsCommand, OutputsEffect, OutputsEnd,
    OutputsEvent, OutputsFailure, OutputsPlace, OutputsRequest, PredictionsFrom, Prices, Reading, ReadingTrial,
    RehearsalOptions, RehearsalReport, RehearsalRequest, Remote, RemoteCheck, RemoteList, RemoteModelForm,
    RemoteOutcome, RemotePrediction, RemoteReport, RetryPlan, SavedMapping, WatchEnd,
};
pub use review::{ReviewCommand, ReviewEffect, ReviewEvent};
pub use runs::{Run, Runs};
pub use s3_picker::{S3Command, S3Effect, S3Event, S3Picker, S3Start};
pub use s3_tree::{FolderListing, S3FolderPage, S3Row, S3RowKind, S3Tree};
pub use samples::{Listing, OpenSource, Relisting, Samples, SourceId};
pub use selection::Selection;
pub use settings::{MEGAPIXELS, SLIDE_SECS, Settings, THUMBNAIL_SIDES, ThemeChoice};
pub use sign_in::{SignIn, SignIns};
pub use task_list::{FinishedTask, TaskEntry, TaskId, TaskKind, TaskList, TaskOutcome, Ticket};
pub use update::update;
pub use upload::{UploadCommand, UploadEffect, UploadEvent, UploadPlanRequest, Uploaded, Uploading};

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use crate::domain::{CacheUsage, LabelSet, ModelCard, Prediction, RunId, SampleId, Verdict, ViewSettings, grouped};
use crate::review::{PredictionStatus, VerdictKind, verdict_of_image};

/// Everything the window shows. Read by panels, changed by [`update`] alone.
#[derive(Default)]
pub struct State {
    pub settings: Settings,
    pub source: Option<OpenSource>,
    pub project: Project,
    pub samples: Samples,
    /// The search field and the sort menu, and what came of them.
    pub arranging: Arranging,
    /// The strip with all boxes of one class, while it is open.
    pub filmstrip: Option<Filmstrip>,
    pub selection: Selection,
    pub shown: Shown,
    pub canvas: CanvasView,
    /// Zooms by menu or key, for the canvas to turn into a [`CanvasView`]: only it knows its size.
    pub canvas_requests: Vec<Action>,
    pub runs: Runs,
    /// What the project remembers of its runs.
    remembered_runs: update::RememberedRuns,
    /// The run with the verdicts, if the one on screen has none.
    other_judged_run: Option<RunId>,
    /// The run on screen and the revision of the verdicts that this is about.
    judged_seen: Option<(Option<RunId>, u64)>,
    /// The filters of a model before they were reset, until something else is changed.
    reset_filters: Option<(ModelCard, ViewSettings)>,
    /// The verdicts, notes and tags.
    pub judgments: Judgments,
    /// Two runs held against each other.
    pub comparing: Option<Comparing>,
    /// A number that changes with everything that a comparison depends on.
    comparison_number: u64,
    /// What was chosen last for the dialog that opens ground truth or predictions, and a number that tells two choices
    /// apart.
    pub picked_annotations: Option<(u64, AnnotationsPick, PathBuf)>,
    /// The path that is to be typed because no file dialog appeared.
    pub path_question: Option<PathQuestion>,
    /// The ground truth that the runs are compared with.
    pub evaluating: Option<Evaluating>,
    /// A number that changes with every evaluation.
    evaluation_number: u64,
    /// The window is a screen for an audience.
    pub presenting: Option<Presenting>,
    /// The verdict for all selected images, while [`Overlay::MassVerdict`] asks; `None` takes their verdicts back.
    pub mass_verdict: Option<Verdict>,
    /// The last verdict was on a box: the first box of another image is selected, and no key judges a whole image by
    /// surprise.
    judges_boxes: bool,
    /// The field of the judging bar that is to take the keyboard, and a number that tells two requests apart.
    pub judge_focus: Option<(JudgeField, u64)>,
    pub models: ModelShelf,
    pub inference: Inference,
    pub tasks: TaskList,
    pub problems: ProblemList,
    pub overlay: Overlay,
    /// The dialog that finds a place in S3; remembers what was looked into while it is closed.
    pub s3: S3Picker,
    /// The identities that are signed in to S3.
    pub sign_ins: SignIns,
    /// Remote work: jobs and endpoints of SageMaker.
    pub remote: Remote,
    /// The dialog about a model of the user's own, while it is open.
    pub import: Option<Import>,
    /// The last choices in the export dialog.
    pub export: ExportDraft,
    /// How many boxes that would be.
    pub export_boxes: BoxCounter,
    /// The last export that is whole, until it is dismissed.
    pub exported: Option<Exported>,
    /// The dialog about an upload.
    pub upload: Uploading,
    /// The last upload that ended, until it is dismissed.
    pub uploaded: Option<Uploaded>,
    /// The last message that needs no reply: “Copied the image”.
    pub notice: Option<Notice>,
    /// Counts up whenever the search field is to take the keyboard.
    pub search_focus: u64,
    /// The renderer of the window, for diagnostics.
    pub graphics: String,
    /// The image takes the place of the panels.
    pub large_image: bool,
    /// Whether no image has the name that is being typed into “Go to”.
    pub go_to_missed: bool,
    /// The size of the disk cache, once it was requested.
    pub cache_usage: Option<CacheUsage>,
    ids: Ids,
}

/// Something that happened to a [`State`].
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a message is handled at once")]
pub enum Message {
    /// The user wants something.
    Command(Command),
    /// A task has something to report.
    Event(Event),
}

/// The image in the middle and what is known of it. Its pixels live in `ui`.
#[derive(Debug, Default)]
pub struct Shown {
    pub display: Display,
    /// The prediction of the current run, whole; `None` before there is one.
    pub prediction: Option<Arc<Prediction>>,
    /// Why there is no prediction, if that is known.
    pub failure: Option<String>,
    /// Index into the detections of `prediction`.
    pub selected_box: Option<usize>,
    /// The box that is selected as soon as the prediction is there.
    box_to_select: Option<BoxToSelect>,
    /// Index of a class of `prediction`.
    pub selected_class: Option<u32>,
    pub explanation: Explanation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BoxToSelect {
    /// The one with this index into the detections.
    Index(usize),
    /// The visible one with the highest score.
    First,
}

#[derive(Debug, Default)]
pub enum Display {
    #[default]
    Nothing,
    Loading,
    Ready(DisplayInfo),
    Failed(String),
}

/// Zoom and position of the image on the canvas.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum CanvasView {
    /// As large as the canvas allows, small images not enlarged beyond a few times.
    #[default]
    Fit,
    /// `zoom` screen points an image pixel, with `center` (in image pixels) in the middle of the canvas.
    Free { zoom: f32, center: [f32; 2] },
}

/// Presentation mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Presenting {
    /// Whether images follow each other by themselves.
    pub is_playing: bool,
}

/// Asks for a path in place of a file dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathQuestion {
    pub request: FileRequest,
    /// Why there is no file dialog.
    pub reason: String,
}

/// A text field of the judging bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JudgeField {
    Note,
    Tag,
}

/// What receives the next key. It changes with every command that opens or closes a dialog, or gives the keyboard to a
/// field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyboardOwner {
    overlay: Overlay,
    has_dialog: bool,
    asks_for_path: bool,
    is_presenting: bool,
    search_focus: u64,
    judge_focus: Option<(JudgeField, u64)>,
    evaluation_openings: Option<u32>,
}

/// What is shown over the panels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overlay {
    #[default]
    None,
    Palette,
    Export,
    ExportComparison,
    /// Choices about the export of an evaluation.
    ExportEvaluation,
    Upload,
    /// The dialog for opening images in S3.
    OpenS3,
    /// The form of a job.
    StartJob,
    /// The jobs of SageMaker.
    Jobs,
    /// The form of an endpoint.
    DeployEndpoint,
    /// The endpoints of SageMaker.
    Endpoints,
    /// The dialog for opening outputs as a run.
    OpenOutputs,
    /// The dialog for opening predictions of other programs as a run.
    OpenPredictions,
    /// The dialog for opening ground truth.
    OpenTruth,
    /// The dialog about a remote model.
    RemoteInference,
    Help,
    /// The field for the right class.
    WrongClass,
    /// The question whether to quit although something is unfinished.
    Quit,
    /// The question whether that many images are to be judged at once.
    MassVerdict,
    GoTo,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub text: String,
    /// Tells two notices of the same text apart.
    pub serial: u64,
    /// What a button next to it does.
    pub offer: Option<NoticeOffer>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeOffer {
    /// Undo the last change, which the notice is about.
    Undo,
    ShowRun(RunId),
}

/// Numbers that are given out once.
#[derive(Debug, Default)]
struct Ids(u64);

impl Ids {
    fn next(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

impl State {
    /// Whether this source is still the open one; reports about another one are late.
    fn is_open(&self, source: SourceId) -> bool {
        self.source.as_ref().is_some_and(|open| open.id == source)
    }

    pub fn new(settings: Settings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// The live filters of the model on screen; each model keeps its own.
    pub fn view(&self) -> Cow<'_, ViewSettings> {
        self.viewed_card().map_or_else(Cow::default, |card| self.settings.view_of(card))
    }

    /// The chosen model, if images are predicted on this computer.
    fn chosen_here(&self) -> Option<&ModelEntry> {
        let is_here = self.inference.remote.is_none();
        self.models.chosen().filter(|_| is_here)
    }

    /// A better model than the chosen one, unless its offer was dismissed.
    pub fn offered_upgrade(&self) -> Option<&ModelEntry> {
        let dismissed = &self.settings.dismissed_offers;
        let better = self.models.offered_upgrade()?;
        (!dismissed.contains(&better.card.id)).then_some(better)
    }

    /// The model whose predictions are on screen: that of the current run, or the chosen one while there is no run.
    pub fn viewed_card(&self) -> Option<&ModelCard> {
        let run = self.run().map(|run| &run.info.card);
        run.or_else(|| self.chosen_here().map(|chosen| &chosen.card))
    }

    /// The names of its classes.
    pub fn viewed_labels(&self) -> Option<&LabelSet> {
        let run = self.run().map(Run::labels);
        run.or_else(|| self.chosen_here().map(|chosen| &*chosen.labels))
    }

    /// The run whose predictions are on screen.
    pub fn run(&self) -> Option<&Run> {
        self.runs.current()
    }

    /// The whole prediction of the current run for a sample, if it is in memory; ask for others with
    /// [`ProjectCommand::LoadPredictions`].
    pub fn prediction_of(&self, sample: SampleId) -> Option<&Prediction> {
        let prediction = self.runs.prediction(self.run()?.id(), sample)?;
        Some(prediction)
    }

    /// Whether a run's prediction stays as it is because a person has judged it: a verdict on it, or on its third box,
    /// means nothing for another prediction. Clearing the verdicts frees it.
    pub fn keeps_prediction(&self, run: RunId, sample: SampleId) -> bool {
        let may_have_prediction = self.runs.get(run).is_some_and(|run| {
            // Predictions that are not read yet are in the project.
            run.status(sample) == PredictionStatus::Predicted || !run.is_loaded()
        });
        may_have_prediction && self.judgments.is_prediction_judged(run, sample)
    }

    /// Whether the prediction on screen is about an older version of the shown image's file.
    pub fn shown_is_outdated(&self) -> bool {
        let shown = self.run().zip(self.shown_sample());
        self.shown.prediction.is_some() && shown.is_some_and(|(run, sample)| run.is_outdated(sample))
    }

    /// Indices of the visible boxes of a run's prediction, highest score first: those that its filters show, and those
    /// that a person confirmed.
    pub fn visible_boxes(&self, run: RunId, sample: SampleId, prediction: &Prediction) -> Vec<usize> {
        let confirmed = self.judgments.confirmed_boxes(run, sample);
        let view = self.view_of_run(run);
        view.visible_detections(prediction, &confirmed)
    }

    /// The visible boxes of the prediction on screen.
    pub fn shown_boxes(&self) -> Vec<usize> {
        let shown = self.run().zip(self.shown_sample());
        let shown = shown.zip(self.shown.prediction.as_ref());
        shown.map_or_else(Vec::new, |((run, sample), prediction)| self.visible_boxes(run.id(), sample, prediction))
    }

    /// The boxes of the prediction on screen that a person confirmed.
    fn confirmed_boxes(&self) -> Vec<u32> {
        let shown = self.run().zip(self.shown_sample());
        shown.map_or_else(Vec::new, |(run, sample)| self.judgments.confirmed_boxes(run.id(), sample))
    }

    /// The verdict of an image, as the badge on its thumbnail, the search and the counts have it; `None` while it is
    /// unjudged: until it has a verdict of its own, or all of its visible boxes have one.
    pub fn verdict_of(&self, sample: SampleId) -> Option<VerdictKind> {
        let predictions = self.run().map(|run| &run.predictions);
        let marks = self.judgments.marks();
        verdict_of_image(predictions, &self.view(), self.suppressed(), marks, sample)
    }

    /// Whether the shown image's answer has boxes, shown or filtered out.
    pub fn has_boxes(&self) -> bool {
        let prediction = self.shown.prediction.as_ref();
        prediction.is_some_and(|prediction| !prediction.detections().is_empty())
    }

    /// Whether these are the samples whose whole predictions were requested last.
    pub fn has_requested(&self, samples: &[SampleId]) -> bool {
        let requested = self.runs.requested.iter();
        let run = self.run().map(Run::id);
        let asked = requested.map(|(of, sample)| (Some(*of), *sample));
        asked.eq(samples.iter().map(|sample| (run, *sample)))
    }

    /// The sample in the middle.
    pub fn shown_sample(&self) -> Option<SampleId> {
        self.selection.shown()
    }

    /// What quitting now would end or lose, in whole sentences.
    pub fn unfinished(&self) -> Vec<String> {
        let mut unfinished = Vec::new();
        if self.project.trouble.is_some() {
            unfinished.push(match self.project.unsaved() {
                1 => {
                    "1 change is not saved yet and would be lost. Free some space, or use “Save project as…”".to_owned()
                }
                count => format!(
                    "{} changes are not saved yet and would be lost. Free some space, or use “Save project as…”",
                    grouped(count as usize)
                ),
            });
        }
        unfinished.extend(self.tasks.running().iter().filter_map(TaskEntry::unfinished_text));
        unfinished
    }

    /// Whether the last change was that filters were reset.
    pub fn filters_were_reset(&self) -> bool {
        self.reset_filters.is_some()
    }

    /// `Err` says why a verdict would be on an image that the search does not show.
    pub fn check_judged_is_found(&self) -> Result<(), &'static str> {
        if self.arranging.is_searching() {
            return Err("The search is still running");
        }
        let is_found = self.shown_sample().is_none_or(|shown| self.order().place_of(shown).is_some());
        is_found.then_some(()).ok_or("The image in view is not in the search results; choose another image")
    }

    /// Whether the prediction of the image in view is being read or made.
    fn prediction_is_coming(&self) -> bool {
        let run_and_sample = self.run().zip(self.shown_sample());
        run_and_sample.is_some_and(|(run, sample)| match run.status(sample) {
            PredictionStatus::Predicted => self.runs.prediction(run.id(), sample).is_none(),
            PredictionStatus::Waiting => true,
            PredictionStatus::Unpredicted => !run.is_loaded(),
            PredictionStatus::Failed => false,
        })
    }

    /// Whether a dialog is open over the panels: it receives the keys.
    pub fn has_dialog(&self) -> bool {
        self.overlay != Overlay::None
            || self.import.is_some()
            || self.exported.is_some()
            || self.uploaded.is_some()
            || self.path_question.is_some()
    }

    pub fn keyboard_owner(&self) -> KeyboardOwner {
        KeyboardOwner {
            overlay: self.overlay,
            has_dialog: self.has_dialog(),
            asks_for_path: self.path_question.is_some(),
            is_presenting: self.presenting.is_some(),
            search_focus: self.search_focus,
            judge_focus: self.judge_focus,
            evaluation_openings: self.evaluating.as_ref().map(|evaluating| evaluating.openings),
        }
    }

    /// Whether it is being found out which images there are, for the first time or again.
    pub fn is_listing(&self) -> bool {
        let running = self.tasks.running();
        running.iter().any(|task| task.kind == TaskKind::List)
    }

    fn show_notice(&mut self, text: impl Into<String>) {
        self.notice = Some(Notice { text: text.into(), serial: self.ids.next(), offer: None });
    }

    /// A notice with a button.
    fn show_offer(&mut self, text: impl Into<String>, offer: NoticeOffer) {
        self.show_notice(text);
        if let Some(notice) = &mut self.notice {
            notice.offer = Some(offer);
        }
    }
}
