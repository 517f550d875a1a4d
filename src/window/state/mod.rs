//! The state of the window: plain data, which only `window::update` changes.
//!
//! `update` takes the state and a [`Message`] (a [`Command`] from the user or an [`Event`] from a task) and returns
//! the [`Effect`]s to run. It is pure: no files, no threads, no graphics, no pixels. Panels draw `&State`; `effects`
//! runs the effects and reports events. Each event carries the id of its request; outdated ones are dropped by id,
//! never by timing.

mod action;
mod derived;
mod loadable;
mod message;
pub(crate) mod pages;
mod problems;
pub(crate) mod settings;

pub use crate::domain::ViewChange;
pub use crate::window::browse::state::folders::*;
pub use crate::window::browse::state::samples::*;
pub use crate::window::browse::state::*;
pub use crate::window::comparison::state::*;
pub use crate::window::duplicates::state::*;
pub use crate::window::endpoints::form::state::*;
pub use crate::window::endpoints::state::*;
pub use crate::window::evaluation::state::*;
pub use crate::window::explain::state::*;
pub use crate::window::export::state::*;
pub use crate::window::filmstrip::state::*;
pub use crate::window::jobs::form::state::*;
pub use crate::window::jobs::state::*;
pub use crate::window::judge::state::edges::*;
pub use crate::window::judge::state::judgments::*;
pub use crate::window::judge::state::spot_check::*;
pub use crate::window::judge::state::*;
pub use crate::window::map::state::*;
pub use crate::window::models::add::state::*;
pub use crate::window::models::state::*;
pub use crate::window::outputs::state::*;
pub use crate::window::predict::state::runs::*;
pub use crate::window::predict::state::*;
pub use crate::window::project::merge::state::*;
pub use crate::window::project::state::*;
pub use crate::window::remote::state::*;
pub use crate::window::remote_inference::state::*;
pub use crate::window::s3::state::tree::*;
pub use crate::window::s3::state::*;
pub use crate::window::search::state::order::*;
pub use crate::window::search::state::*;
pub use crate::window::tasks::state::*;
pub use crate::window::upload::state::*;
pub use action::*;
pub use derived::*;
pub use loadable::*;
pub use message::*;
pub use problems::*;
pub use settings::*;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::PathBuf;
pub(crate) use std::sync::Arc;

use crate::domain::ModelTask;
pub(crate) use crate::domain::{
    BoundingBox, CacheUsage, LabelSet, ModelCard, Prediction, Problem, RunId, SampleId, Verdict, ViewSettings, grouped,
};
use crate::review::{PredictionStatus, ReviewReport, Target, VerdictKind, verdict_of_image};

/// The number of classes that are offered first.
const RECENT_CLASSES: usize = 9;

/// Everything the window shows. Panels read it; only `update` changes it.
#[derive(Default)]
pub struct State {
    /// The effects that `update` emits, in order, until it returns them.
    pub(crate) effects: Queue<Effect>,
    pub settings: Settings,
    pub source: Option<OpenSource>,
    pub project: Project,
    pub samples: Samples,
    pub capture_reading: CaptureReading,
    pub folders: FolderPane,
    /// The search field, the sort menu and their results.
    pub arranging: Arranging,
    /// The strip with all boxes of one class, while it is open.
    pub filmstrip: Option<Filmstrip>,
    pub selection: Selection,
    pub(crate) last_viewed: LastViewed,
    pub shown: Shown,
    pub canvas: CanvasView,
    /// Zooms by menu or key, for the canvas to turn into a [`CanvasView`], because only the canvas knows its size.
    pub canvas_requests: Vec<Action>,
    pub runs: Runs,
    /// The project's record of its runs.
    pub(crate) remembered_runs: RememberedRuns,
    /// The run with the verdicts, if the one on screen has none.
    pub(crate) other_judged_run: Option<RunId>,
    /// The run on screen and the revision of the verdicts that `other_judged_run` is based on.
    pub(crate) judged_seen: Option<(Option<RunId>, u64)>,
    /// The filters of a model before a reset, until the next change.
    pub(crate) reset_filters: Option<(ModelCard, ViewSettings)>,
    pub judgments: Judgments,
    /// The comparison of two runs.
    pub comparing: Option<Comparing>,
    /// A number that changes with everything that a comparison depends on.
    pub(crate) comparison_number: u64,
    /// The map of embeddings.
    pub map: Map,
    /// The last search for similar images.
    pub(crate) alike: Option<Alike>,
    /// The newest search for similar images or boxes.
    pub(crate) alike_task: Option<TaskId>,
    /// The image that the search field last named to compare with, in lowercase.
    pub(crate) alike_named: Option<(SourceId, RunId, String)>,
    /// The search for duplicates.
    pub duplicates: DuplicateSearch,
    /// What images are sorted by that depends on all embeddings.
    pub(crate) measuring: Measuring,
    /// The last choice for the dialog that opens ground truth or predictions, and a number that distinguishes two
    /// choices.
    pub picked_annotations: Option<(u64, AnnotationsPick, PathBuf)>,
    /// The question for a path, because no file dialog appeared.
    pub path_question: Option<PathQuestion>,
    /// The ground truth that the runs are evaluated against.
    pub evaluating: Option<Evaluating>,
    /// A number that changes with every evaluation.
    pub(crate) evaluation_number: u64,
    /// Presentation mode, while it is on.
    pub presenting: Option<Presenting>,
    /// The verdict for all selected images, while [`Overlay::MassVerdict`] is open; `None` removes their verdicts.
    pub mass_verdict: Option<Verdict>,
    /// What the verdicts say about the run, as of the last time that its dialog was opened.
    pub review_report: Loadable<Box<ReviewReport>>,
    /// The precision whose minimum score the review report shows.
    pub target_precision: f64,
    /// The merge with another person's project.
    pub merging: Option<Merging>,
    /// The random samples to judge.
    pub spot_checks: SpotChecks,
    /// Whether the last verdict was on a box: then the first box of the next image is selected, so that no key judges a
    /// whole image by surprise.
    pub(crate) judges_boxes: bool,
    /// The classes that the user gave to boxes, last used first.
    pub recent_classes: Vec<String>,
    /// The classes that verdicts of the project name, in the order of the alphabet.
    pub own_classes: BTreeSet<String>,
    /// The field of the judging bar that should take the focus, and a number that distinguishes two requests.
    pub judge_focus: Option<(JudgeField, u64)>,
    pub models: ModelShelf,
    pub inference: Inference,
    pub tasks: TaskList,
    pub problems: ProblemList,
    pub overlay: Overlay,
    /// The dialog for finding a location in S3; remembers the visited locations while closed.
    pub s3: S3Picker,
    /// The identities signed in to S3.
    pub sign_ins: SignIns,
    /// Remote work: SageMaker jobs and endpoints.
    pub remote: Remote,
    /// The form for a model of the user's own, while it is open.
    pub import: Option<Import>,
    /// The last choices in the export dialog.
    pub export: ExportDraft,
    /// The number of boxes that would be exported.
    pub export_boxes: BoxCounter,
    /// The last complete export, until it is dismissed.
    pub exported: Option<Exported>,
    pub upload: Uploading,
    /// The last finished upload, until it is dismissed.
    pub uploaded: Option<Uploaded>,
    /// The last message without a reply: “Copied the image”.
    pub notice: Option<Notice>,
    /// A counter that increases whenever the search field should take the focus.
    pub search_focus: u64,
    /// The renderer of the window, for diagnostics.
    pub graphics: String,
    /// Whether the image replaces the panels.
    pub large_image: bool,
    /// Whether no image has the name being typed into “Go to”.
    pub go_to_missed: bool,
    /// The size of the disk cache, once requested.
    pub cache_usage: Option<CacheUsage>,
    pub(crate) ids: Ids,
}

/// Something that happened to a [`State`].
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a message is handled immediately")]
pub enum Message {
    /// The user wants something.
    Command(Command),
    /// A task reports something.
    Event(Event),
}

/// The shown image and its prediction. Its pixels are in `ui`.
#[derive(Debug, Default)]
pub struct Shown {
    pub display: Display,
    /// The complete prediction of the current run, with the boxes that a person moved or added; `None` before there is
    /// one.
    pub prediction: Option<Arc<Prediction>>,
    /// The same prediction as the model returned it.
    pub(crate) stored: Option<Arc<Prediction>>,
    /// The revision of the verdicts that `prediction` contains.
    pub(crate) marks_revision: u64,
    /// A box that the user is about to draw.
    pub drawing: Option<Drawing>,
    /// Why there is no prediction, if known.
    pub failure: Option<String>,
    /// Index into the detections of `prediction`.
    pub selected_box: Option<usize>,
    /// Index into the ground truth of a selected undetected object; `None` while a box is selected.
    pub selected_object: Option<usize>,
    /// The box to select when the prediction arrives.
    pub(crate) box_to_select: Option<BoxToSelect>,
    /// Whether the user knows that the next verdict applies to the whole image.
    pub(crate) whole_image_is_announced: bool,
    /// Index of a class of `prediction`.
    pub selected_class: Option<u32>,
    pub explanation: Explanation,
}

/// The steps of adding a box.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Drawing {
    /// The next drag draws it.
    Armed,
    /// It has this position, in pixels of the upright image, and needs a class.
    Drawn(BoundingBox),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BoxToSelect {
    /// The one with this index in the detections.
    Index(usize),
    /// The visible one with the highest score.
    First,
    /// The undetected object with this index, once its image is read.
    Object(usize),
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
    /// As large as the canvas allows; small images are enlarged only a few times.
    #[default]
    Fit,
    /// `zoom` screen points per image pixel, with `center` (in image pixels) in the middle of the canvas.
    Free { zoom: f32, center: [f32; 2] },
}

/// Presentation mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Presenting {
    /// Whether images advance automatically.
    pub is_playing: bool,
    /// Why the last key had no effect.
    pub refusal: Option<&'static str>,
}

/// A question for a path in place of a file dialog.
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

/// What receives the next key. It changes with every command that opens or closes a dialog or focuses a field.
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
    ExportEvaluation,
    ExportLabelChanges,
    Upload,
    /// The dialog for opening images in S3.
    OpenS3,
    StartJob,
    Jobs,
    DeployEndpoint,
    Endpoints,
    /// The dialog for opening outputs as a run.
    OpenOutputs,
    /// The dialog for opening predictions from other tools as a run.
    OpenPredictions,
    /// The dialog for opening ground truth.
    OpenTruth,
    /// The dialog for a remote model.
    RemoteInference,
    Help,
    WhatsNew,
    /// What the verdicts say about the run.
    ReviewReport,
    /// The dialog that merges two projects.
    Merge,
    /// The dialog that draws a sample.
    SpotCheck,
    /// The field for the right class.
    WrongClass,
    /// The question whether to quit despite unfinished work.
    Quit,
    /// The question whether to judge that many images.
    MassVerdict,
    GoTo,
    /// The dialog that selects images that cover the search results.
    SelectCover,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub text: String,
    /// Distinguishes two notices with the same text.
    pub serial: u64,
    /// The effect of the button next to it.
    pub offer: Option<NoticeOffer>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeOffer {
    /// Such as undoing the change that the notice describes.
    Do(Action),
    ShowRun(RunId),
}

/// Unique numbers.
#[derive(Debug, Default)]
pub(crate) struct Ids(u64);

impl Ids {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

impl State {
    /// Whether this source is still the open one; reports about another one are late.
    pub(crate) fn is_open(&self, source: SourceId) -> bool {
        self.source.as_ref().is_some_and(|open| open.id == source)
    }

    pub fn new(settings: Settings) -> Self {
        Self { settings, target_precision: Target::USUAL, ..Self::default() }
    }

    /// The live filters of the model on screen; each model has its own.
    pub fn view(&self) -> Cow<'_, ViewSettings> {
        self.viewed_card().map_or_else(Cow::default, |card| self.settings.view_of(card))
    }

    /// Whether the model that predicts now is an encoder, which computes only embeddings.
    pub fn uses_encoder(&self) -> bool {
        self.chosen_here().is_some_and(|chosen| chosen.card.is_encoder())
    }

    /// The chosen model, if predictions are local.
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

    /// The model whose predictions are on screen: that of the current run, or the chosen one without a run.
    pub fn viewed_card(&self) -> Option<&ModelCard> {
        let run = self.run().map(|run| &run.info.card);
        run.or_else(|| self.chosen_here().map(|chosen| &chosen.card))
    }

    /// The class names of that model.
    pub fn viewed_labels(&self) -> Option<&LabelSet> {
        let run = self.run().map(Run::labels);
        run.or_else(|| self.chosen_here().map(|chosen| &*chosen.labels))
    }

    /// The run whose predictions are on screen.
    pub fn run(&self) -> Option<&Run> {
        self.runs.current()
    }

    pub(crate) fn pick_file(&mut self, request: FileRequest) {
        self.effects.push(Effect::PickFile(request));
    }

    /// What the run on screen predicts.
    pub fn task(&self) -> Option<ModelTask> {
        self.run().and_then(Run::task)
    }

    pub fn run_id(&self) -> Option<RunId> {
        Some(self.run()?.id())
    }

    /// The run that the one on screen is compared with.
    pub(crate) fn compared_run(&self) -> Option<RunId> {
        Some(self.comparing.as_ref()?.right)
    }

    pub(crate) fn source_id(&self) -> Option<SourceId> {
        Some(self.source.as_ref()?.id)
    }

    /// The complete prediction of the current run for a sample, if it is in memory; request others with
    /// [`ProjectCommand::LoadPredictions`].
    pub fn prediction_of(&self, sample: SampleId) -> Option<&Prediction> {
        let prediction = self.runs.prediction(self.run()?.id(), sample)?;
        Some(prediction)
    }

    /// Whether a run's prediction is kept because the user has judged it: a verdict on it, or on its third box, is
    /// meaningless for another prediction. Clearing the verdicts releases it.
    pub fn keeps_prediction(&self, run: RunId, sample: SampleId) -> bool {
        let may_have_prediction = self.runs.get(run).is_some_and(|run| {
            // Predictions that are not read yet are in the project.
            run.status(sample) == PredictionStatus::Predicted || !run.is_loaded()
        });
        may_have_prediction && self.judgments.is_prediction_judged(run, sample)
    }

    /// Whether the prediction on screen was made from an older version of the shown image's file.
    pub fn shown_is_outdated(&self) -> bool {
        let shown = self.run().zip(self.shown_sample());
        self.shown.prediction.is_some() && shown.is_some_and(|(run, sample)| run.is_outdated(sample))
    }

    /// Indexes of the visible boxes of a run's prediction, highest score first: those that pass its filters, and those
    /// that the user confirmed.
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

    /// The user-confirmed boxes of the prediction on screen.
    pub(crate) fn confirmed_boxes(&self) -> Vec<u32> {
        let shown = self.run().zip(self.shown_sample());
        shown.map_or_else(Vec::new, |(run, sample)| self.judgments.confirmed_boxes(run.id(), sample))
    }

    /// The verdict of an image for the badge on its thumbnail, the search and the counts; `None` until it has a verdict
    /// of its own, or all of its visible boxes have one.
    pub fn verdict_of(&self, sample: SampleId) -> Option<VerdictKind> {
        let predictions = self.run().map(|run| &run.predictions);
        let marks = self.judgments.marks();
        verdict_of_image(predictions, &self.view(), self.suppressed(), marks, sample)
    }

    /// Whether the shown image's prediction has boxes, visible or filtered out.
    pub fn has_boxes(&self) -> bool {
        let prediction = self.shown.prediction.as_ref();
        prediction.is_some_and(|prediction| !prediction.detections().is_empty())
    }

    /// Whether these are the samples whose complete predictions were requested last.
    pub fn has_requested(&self, samples: &[SampleId]) -> bool {
        let requested = self.runs.requested.iter();
        let run = self.run_id();
        let asked = requested.map(|(of, sample)| (Some(*of), *sample));
        asked.eq(samples.iter().map(|sample| (run, *sample)))
    }

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

    /// Whether the last change was a reset of the filters.
    pub fn filters_were_reset(&self) -> bool {
        self.reset_filters.is_some()
    }

    /// Checks that the shown image matches the search.
    ///
    /// # Errors
    /// Why a verdict would go to an image outside the search results.
    pub fn check_judged_is_found(&self) -> Result<(), &'static str> {
        if self.arranging.is_searching() {
            return Err("The search is still running");
        }
        let is_found = self.shown_sample().is_none_or(|shown| self.order().place_of(shown).is_some());
        is_found.then_some(()).ok_or("The image in view is not in the search results; choose another image")
    }

    /// Whether the prediction of the current image is being read or made.
    pub(crate) fn prediction_is_coming(&self) -> bool {
        let run_and_sample = self.run().zip(self.shown_sample());
        run_and_sample.is_some_and(|(run, sample)| match run.status(sample) {
            PredictionStatus::Predicted => self.runs.prediction(run.id(), sample).is_none(),
            PredictionStatus::Waiting => true,
            PredictionStatus::Unpredicted => !run.is_loaded(),
            PredictionStatus::Failed => false,
        })
    }

    /// Whether the next verdict is about a box of the image in view that is not loaded yet.
    pub(crate) fn awaits_boxes(&self) -> bool {
        let is_box_wanted = self.judges_boxes && !self.shown.whole_image_is_announced;
        let Some(wanted) = self.shown.box_to_select.filter(|_| is_box_wanted) else {
            return false;
        };
        let is_single = self.judged_boxes().is_empty() && self.selection.selected().len() == 1;
        is_single && (matches!(wanted, BoxToSelect::Object(_)) || self.prediction_is_coming())
    }

    /// Whether a dialog is open over the panels and receives the keys.
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

    /// Whether the images are being listed, for the first time or again.
    pub fn is_listing(&self) -> bool {
        let running = self.tasks.running();
        running.iter().any(|task| task.kind == TaskKind::List)
    }

    /// The classes of the run's model that digits choose, lowest digit first.
    pub fn class_digits(&self) -> impl Iterator<Item = (u8, &str)> {
        let model = self.run().map(|run| &*run.info.key.model_id);
        model.into_iter().flat_map(|model| self.settings.class_digits(model))
    }

    /// Whether a person gave this class and the run's model does not have it.
    pub fn is_new_class(&self, class: &str) -> bool {
        self.run().is_some_and(|run| run.labels().find(class).is_none())
    }

    /// The class that the user means by a name.
    pub(crate) fn known_class<'n>(&'n self, name: &'n str) -> &'n str {
        let own = self.own_classes.iter().map(String::as_str);
        self.run().map_or(name, |run| run.labels().known_class(name, own))
    }

    /// The new classes that boxes or images have by verdict, with their number, in the order of the alphabet.
    pub fn new_classes(&self) -> impl Iterator<Item = (&str, usize)> {
        self.judgments.given_classes().filter(|(class, _)| self.is_new_class(class))
    }

    /// Offers a class first the next time.
    pub(crate) fn remember_class(&mut self, class: &str) {
        self.recent_classes.retain(|known| known != class);
        self.recent_classes.insert(0, class.to_owned());
        self.recent_classes.truncate(RECENT_CLASSES);
        self.own_classes.insert(class.to_owned());
    }

    pub(crate) fn show_notice(&mut self, text: impl Into<String>) {
        self.notice = Some(Notice { text: text.into(), serial: self.ids.next(), offer: None });
    }

    /// Shows a problem immediately and adds it to the list.
    pub(crate) fn report(&mut self, problem: Problem) {
        self.show_notice(problem.to_string());
        let sample = problem.uri.as_ref().and_then(|uri| self.samples.find(uri));
        self.problems.add(problem, sample);
    }

    pub(crate) fn report_problem(&mut self, message: impl Into<String>) {
        self.report(Problem::general(message));
    }

    pub(crate) fn show_offer(&mut self, text: impl Into<String>, offer: NoticeOffer) {
        self.show_notice(text);
        if let Some(notice) = &mut self.notice {
            notice.offer = Some(offer);
        }
    }
}
