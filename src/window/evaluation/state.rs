//! Ground truth, and the evaluation of runs against it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::annotations::matching::{ClassCorrections, OtherFolders};
use crate::domain::{
    BoundingBox, DrawnBox, InferenceLocation, LabelSet, Location, ModelTask, RunId, RunInfo, Sample, SampleId,
    SampleSet, SharedList, ViewSettings,
};
use crate::evaluation::{
    DrawnNumber, ErrorPatterns, Evaluated, GroundTruth, LabelCorrections, MatchedClasses, Metrics,
};
use crate::review::{
    FilmBox, ImageOutcomes, NamedOutcome, OtherRun, OutcomeCounts, Outcomes, Predictions, Suspect, SuspectKind,
    VerdictKind,
};
use crate::window::state::{Display, Failure, Loadable, PredictionsFrom, Run, SourceId, State, TaskId, Ticket};

#[derive(Debug, Clone, PartialEq)]
pub enum EvaluationCommand {
    /// Uses these annotations as ground truth, in place of others.
    OpenTruth {
        at: TruthAt,
        reading: TruthReading,
        /// A CSV file of class corrections to add to the existing ones.
        class_map: Option<PathBuf>,
    },
    CloseTruth,
    /// Reads the open ground truth with other settings.
    ReadTruthAs(TruthReading),
    /// Reads the ground truth again and reevaluates the run on screen.
    EvaluateAgain,
    /// Evaluates the run on screen on the images of the current search alone.
    EvaluateFound,
    /// Maps a class of the model to a ground-truth class, both by name or number; an empty one maps to none.
    CorrectClass {
        from: String,
        to: String,
    },
    /// Measures the corrected labels again.
    MeasureCorrected,
    /// Removes all class corrections.
    ClearCorrections,
    /// Shows or hides the panel with the numbers.
    ShowPanel(bool),
}

#[derive(Debug, Clone)]
pub enum EvaluationEffect {
    /// Read ground truth and match it with the images.
    OpenTruth {
        request: TruthRequest,
        ticket: Ticket,
    },
    Evaluate {
        request: EvaluateRequest,
        ticket: Ticket,
    },
    /// Measure a run against the labels as its verdicts correct them.
    MeasureCorrected {
        request: EvaluateRequest,
        ticket: Ticket,
    },
    /// Search the errors for patterns; with `other`, those that this run does not make.
    FindPatterns {
        request: EvaluateRequest,
        other: Option<EvaluateRequest>,
        ticket: Ticket,
    },
    /// Evaluate the run on these images alone.
    EvaluateFound {
        request: EvaluateRequest,
        search: String,
        images: SampleSet,
        ticket: Ticket,
    },
}

#[derive(Debug)]
pub enum EvaluationEvent {
    TruthOpened(TaskId, Result<OpenedTruth, Failure>),
    /// The metrics of a run, first without intervals, then with them.
    Measured {
        task: TaskId,
        run: RunId,
        evaluated: Box<EvaluatedRun>,
    },
    Evaluated {
        task: TaskId,
        run: RunId,
        result: Result<Box<EvaluatedRun>, Failure>,
    },
    Corrected {
        task: TaskId,
        run: RunId,
        result: Result<CorrectedLabels, Failure>,
    },
    PatternsFound {
        task: TaskId,
        run: RunId,
        result: Result<ShownPatterns, Failure>,
    },
    FoundEvaluated {
        task: TaskId,
        run: RunId,
        result: Result<EvaluatedFound, Failure>,
    },
}

/// The location of ground truth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TruthAt {
    Files(Location),
    Verdicts(RunId),
    /// File names that contain the class of each image: `{class}` in a pattern with `*` as a wildcard.
    Names(String),
}

/// The location of ground truth, with everything needed to read it.
#[derive(Debug, Clone)]
pub enum TruthSource {
    Files(Location),
    Verdicts { source: SourceId, run: Box<RunInfo>, view: Box<ViewSettings> },
    Names(String),
}

/// The user's answers where ground truth is ambiguous.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TruthReading {
    /// The split of a dataset; `None` for the default one.
    pub split: Option<String>,
    /// Names for numbered classes.
    pub names: Option<TruthNames>,
    /// Reads a file with scores as ground truth.
    pub ignores_scores: bool,
}

/// Names for numbered classes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TruthNames {
    /// A built-in label set, or a label file.
    Set(String),
    /// The names of the classes 0, 1, 2 …
    Listed(Vec<String>),
}

#[derive(Debug, Clone)]
pub struct TruthRequest {
    pub from: TruthSource,
    pub reading: TruthReading,
    pub class_map: Option<PathBuf>,
    pub samples: SharedList<Sample>,
}

#[derive(Debug, Clone)]
pub struct EvaluateRequest {
    pub source: SourceId,
    pub truth: Arc<GroundTruth>,
    pub corrections: ClassCorrections,
    pub samples: SharedList<Sample>,
    pub run: Box<RunInfo>,
    pub view: ViewSettings,
    pub predictions: Predictions,
}

/// Ground truth, with the images it covers.
#[derive(Debug, Clone)]
pub struct OpenedTruth {
    /// Its location as stored in the project: paths are absolute.
    pub at: TruthAt,
    pub truth: Arc<GroundTruth>,
    pub images: TruthImages,
    /// From the class map file given with it.
    pub corrections: ClassCorrections,
}

/// The mapping of source images to ground-truth images.
#[derive(Debug, Clone, Default)]
pub struct TruthImages {
    /// The ground-truth image of each sample, or [`NO_IMAGE`].
    pub by_sample: Arc<[u32]>,
    /// The number of samples in the ground truth.
    pub matched: usize,
    /// Ground-truth images that are missing in the source: their number, and some names.
    pub missing: (usize, Vec<String>),
    /// Images with the same file name in other folders.
    pub other_folders: Option<OtherFolders>,
}

/// Stands for a missing index.
pub const NO_IMAGE: u32 = u32::MAX;

/// A run evaluated against ground truth.
#[derive(Debug, Clone)]
pub struct EvaluatedRun {
    pub evaluated: Arc<Evaluated>,
    pub outcomes: Arc<Outcomes>,
    /// The resampled metrics: AP, AP50, precision, recall and F1; or top-1 and top-5. Empty before the intervals are
    /// known.
    pub drawn: Arc<[DrawnNumber]>,
    /// Notes to read before the metrics, in whole sentences.
    pub notes: Vec<String>,
    pub secs: f32,
}

/// A run evaluated on the images of a search alone.
#[derive(Debug, Clone)]
pub struct EvaluatedFound {
    pub search: String,
    /// Those with ground truth and a prediction.
    pub images: usize,
    pub metrics: Metrics,
}

/// Patterns in the errors of a run, as they are shown.
#[derive(Debug, Clone)]
pub struct ShownPatterns {
    pub patterns: Arc<ErrorPatterns>,
    /// The images of each pattern with its error.
    pub sets: Arc<[SampleSet]>,
    /// What the search did not cover: whole sentences.
    pub notes: Vec<String>,
}

/// The open ground truth, and the runs evaluated against it.
#[derive(Debug)]
pub struct Evaluating {
    pub at: TruthAt,
    pub reading: TruthReading,
    pub corrections: ClassCorrections,
    /// A file whose corrections are added once the ground truth is read.
    pub(crate) class_map: Option<PathBuf>,
    pub truth: Loadable<OpenedTruth>,
    /// Whether the panel with the metrics replaces the image.
    pub is_shown: bool,
    /// The number of times its action opened the panel, which then takes the focus.
    pub openings: u32,
    /// The number of searches for error patterns; each shows its tab.
    pub pattern_searches: u32,
    /// Whether to read the ground truth once all images are listed.
    pub(crate) is_due: bool,
    /// The previously open ground truth, until this one has been read: it stays if this one cannot be read.
    pub(crate) previous: Option<Box<Evaluating>>,
    /// The revision of the verdicts when they were last read as ground truth.
    pub(crate) verdicts: u64,
    pub(crate) runs: BTreeMap<RunId, RunEvaluation>,
}

#[derive(Debug, Default)]
pub struct RunEvaluation {
    pub status: Loadable<()>,
    /// The classes of the run matched with those of the ground truth.
    pub classes: Arc<MatchedClasses>,
    /// Corrections for classes that the run does not have.
    pub unused: ClassCorrections,
    /// The last metrics; they stay while new ones are computed.
    pub last: Option<EvaluatedRun>,
    /// The metrics of the last search that they were requested for.
    pub found: Loadable<EvaluatedFound>,
    pub patterns: Loadable<ShownPatterns>,
    /// The inputs of the last or pending request.
    pub(crate) basis: Option<EvaluationBasis>,
    pub corrected: Corrected,
}

/// The metrics against the labels as the verdicts correct them.
#[derive(Debug, Default)]
pub struct Corrected {
    pub status: Loadable<CorrectedLabels>,
    /// The last result; it stays while a new one is computed.
    pub last: Option<CorrectedLabels>,
    /// The inputs of the last or pending request: those of the evaluation, and the revision of the verdicts.
    pub(crate) basis: Option<(EvaluationBasis, u64)>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CorrectedLabels {
    pub corrections: LabelCorrections,
    /// AP, or top-1.
    pub number: Option<f64>,
    pub(crate) secs: f32,
}

/// Everything that an evaluation depends on, in a form that reveals changes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EvaluationBasis {
    pub(crate) predictions: u64,
    pub(crate) samples: usize,
    pub(crate) nms_iou: Option<f32>,
    pub(crate) corrections: ClassCorrections,
}

impl EvaluationCommand {
    /// Ground truth with default settings.
    pub fn open_truth(at: TruthAt) -> Self {
        Self::OpenTruth { at, reading: TruthReading::default(), class_map: None }
    }
}

impl TruthNames {
    /// The classes of a model in order, as YOLO label files number them; `None` if the model does not name them.
    pub fn in_order_of(labels: &LabelSet) -> Option<Self> {
        (!labels.is_empty()).then(|| Self::Listed(labels.iter().map(|(_, name)| name.to_owned()).collect()))
    }
}

impl TruthAt {
    /// The display name.
    pub fn name(&self) -> String {
        match self {
            Self::Files(at) => at.name(),
            Self::Verdicts(_) => "verdicts of this project".to_owned(),
            Self::Names(pattern) => format!("classes in file names ({pattern})"),
        }
    }
}

impl TruthImages {
    pub fn position(&self, sample: SampleId) -> Option<usize> {
        let image = *self.by_sample.get(sample.index())?;
        (image != NO_IMAGE).then_some(image as usize)
    }
}

impl Evaluating {
    pub(crate) fn new(at: TruthAt, reading: TruthReading, corrections: ClassCorrections) -> Self {
        Self {
            at,
            reading,
            corrections,
            class_map: None,
            truth: Loadable::NotLoaded,
            is_shown: false,
            openings: 0,
            pattern_searches: 0,
            is_due: true,
            previous: None,
            verdicts: 0,
            runs: BTreeMap::new(),
        }
    }

    /// The last ground truth that was read: this one or, while it is being read, the previous one. Unfinished
    /// evaluations restart.
    pub(crate) fn last_opened(mut self) -> Option<Box<Self>> {
        self.runs.retain(|_, run| !run.status.is_loading());
        if self.truth.ready().is_some() { Some(Box::new(self)) } else { self.previous }
    }

    pub fn for_run(&self, run: RunId) -> Option<&RunEvaluation> {
        self.runs.get(&run)
    }
}

/// One ground-truth object of the shown image.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownObject {
    /// In the ground truth of its image.
    pub index: usize,
    pub label: String,
    /// In pixels of the upright image.
    pub bounds: BoundingBox,
    /// Whether it is a false negative if no correct box matches it.
    pub counts: bool,
    /// Whether a correct box on screen matches it; `None` if the image is not evaluated or its prediction is not read
    /// yet.
    pub is_found: Option<bool>,
    /// The verdict on the label of an undetected object: accepted if it is right, rejected if it is wrong.
    pub verdict: Option<VerdictKind>,
}

impl ShownObject {
    /// Whether it is a false negative.
    pub fn is_false_negative(&self) -> bool {
        self.counts && self.is_found == Some(false)
    }
}

impl State {
    pub fn evaluation(&self) -> Option<&RunEvaluation> {
        self.evaluating.as_ref()?.for_run(self.run()?.id())
    }

    /// The last metrics of the run on screen.
    pub(crate) fn evaluation_mut(&mut self, run: RunId) -> Option<&mut RunEvaluation> {
        self.evaluating.as_mut()?.runs.get_mut(&run)
    }

    pub fn evaluated(&self) -> Option<&EvaluatedRun> {
        self.evaluation()?.last.as_ref()
    }

    /// The patterns in the errors of the run on screen.
    pub fn error_patterns(&self) -> Option<&ShownPatterns> {
        self.evaluation()?.patterns.ready()
    }

    /// The run that the one on screen is compared with, and its last metrics against the same ground truth.
    pub fn other_evaluated(&self) -> Option<(&Run, &EvaluatedRun)> {
        let run = self.runs.get(self.comparing.as_ref()?.right)?;
        Some((run, self.evaluating.as_ref()?.for_run(run.id())?.last.as_ref()?))
    }

    pub(crate) fn other_run(&self) -> Option<OtherRun> {
        let (run, evaluated) = self.other_evaluated()?;
        let (predictions, outcomes) = (run.predictions.clone(), Arc::clone(&evaluated.outcomes));
        Some(OtherRun { predictions, outcomes, view: self.view_of_run(run.id()).into_owned() })
    }

    /// The outcome counts at the filters on screen.
    pub fn outcome_counts(&self) -> Option<&OutcomeCounts> {
        self.evaluated()?;
        self.arranging.statistics()?.outcomes.as_ref()
    }

    /// The outcome of a box of the run on screen.
    pub fn outcome_of_box(&self, sample: SampleId, index: usize) -> Option<NamedOutcome<'_>> {
        self.evaluated()?.outcomes.named(self.outcomes_of(sample)?, index)
    }

    /// The same for the run that the one on screen is compared with.
    pub fn compared_outcome_of_box(&self, sample: SampleId, index: usize) -> Option<NamedOutcome<'_>> {
        let (run, evaluated) = self.other_evaluated()?;
        let of_image = evaluated.outcomes.image(sample, run.predictions.summary(sample)?)?;
        evaluated.outcomes.named(of_image, index)
    }

    /// The class name of an object in the ground truth of the run on screen.
    pub fn class_of_object(&self, sample: SampleId, object: u32) -> Option<&str> {
        let class = self.outcomes_of(sample)?.objects.get(object as usize)?.class;
        Some(&self.evaluated()?.outcomes.classes.get(class as usize)?.name)
    }

    /// The ground-truth class that matches that of a box.
    pub(crate) fn truth_class_of_box(&self, sample: SampleId, index: Option<u32>) -> Option<&str> {
        let class = *self.run()?.predictions.summary(sample)?.classes.get(index? as usize)?;
        let outcomes = &self.evaluated()?.outcomes;
        Some(&outcomes.classes.get(outcomes.place_of(class)? as usize)?.name)
    }

    /// “wrong class, cat → dog”: what may be wrong with a label, and its fix.
    pub fn fix_text(&self, sample: SampleId, suspect: &Suspect) -> String {
        let label = suspect.object.and_then(|object| self.class_of_object(sample, object)).unwrap_or("?");
        let found = self.truth_class_of_box(sample, suspect.found).unwrap_or("?");
        let kind = suspect.kind.text();
        match suspect.kind {
            SuspectKind::Class => format!("{kind}, {label} → {found}"),
            SuspectKind::Missing => format!("{kind} {found}"),
            SuspectKind::Misplaced | SuspectKind::Spurious => format!("{kind} {label}"),
        }
    }

    /// “AP +0.0120”: what fixing a label would gain.
    pub fn gain_text(&self, gain: f64) -> String {
        let is_detection = self.run().is_none_or(|run| run.task() == Some(ModelTask::Detection));
        format!("{} {gain:+.4}", if is_detection { "AP" } else { "Top-1" })
    }

    /// A ground-truth object as a person would draw it; `None` if the image is not evaluated.
    pub(crate) fn label_of(&self, sample: SampleId, object: u32) -> Option<DrawnBox> {
        let size = self.run()?.predictions.summary(sample).map(|summary| [summary.width, summary.height])?;
        let bounds = self.outcomes_of(sample)?.objects.get(object as usize)?.bounds;
        DrawnBox::new(self.class_of_object(sample, object)?, bounds, size)
    }

    /// The objects of the shown image that no visible correct box detects.
    pub fn false_negatives(&self) -> Vec<ShownObject> {
        let mut objects = self.shown_objects();
        objects.retain(ShownObject::is_false_negative);
        objects
    }

    pub fn selected_object(&self) -> Option<ShownObject> {
        let selected = self.shown.selected_object?;
        self.false_negatives().into_iter().find(|object| object.index == selected)
    }

    /// The outcomes of the run on screen for an image.
    pub fn outcomes_of(&self, sample: SampleId) -> Option<ImageOutcomes<'_>> {
        let outcomes = &self.evaluated()?.outcomes;
        outcomes.image(sample, self.run()?.predictions.summary(sample)?)
    }

    /// The open ground truth as a run to correct, if it is in a file or folder.
    pub fn labels_to_correct(&self) -> Option<PredictionsFrom> {
        let Evaluating { at: TruthAt::Files(at), reading, .. } = self.evaluating.as_ref()? else {
            return None;
        };
        let labels = match &reading.names {
            Some(TruthNames::Set(name)) => name.clone(),
            _ => String::new(),
        };
        Some(PredictionsFrom { split: reading.split.clone(), labels, ..PredictionsFrom::labels_at(at.clone()) })
    }

    /// The ground truth that the run on screen was opened from to correct it, and its split.
    pub fn corrected_truth(&self) -> Option<(Location, Option<String>)> {
        let run = &self.run()?.info;
        let InferenceLocation::Outputs { folder } = &run.key.made else { return None };
        if !run.is_labels() {
            return None;
        }
        match self.labels_to_correct() {
            Some(labels) if labels.at.name() == *folder => Some((labels.at, labels.split)),
            // How to access a bucket is known only while its ground truth is open.
            _ if folder.starts_with("s3://") => None,
            _ => Some((Location::Path(folder.into()), None)),
        }
    }

    /// Whether there is ground truth for an image.
    pub fn has_truth(&self, sample: SampleId) -> bool {
        self.opened_truth().is_some_and(|opened| opened.images.position(sample).is_some())
    }

    pub fn opened_truth(&self) -> Option<&OpenedTruth> {
        self.evaluating.as_ref()?.truth.ready()
    }

    /// The objects of the shown image in the ground truth, or those stored with it, with whether the run on screen
    /// finds them.
    pub fn shown_objects(&self) -> Vec<ShownObject> {
        let sample = self.shown_sample();
        let outcomes = sample.and_then(|sample| self.outcomes_of(sample));
        let shown = outcomes.and_then(|_| self.boxes_on_screen(sample?));
        self.objects(outcomes, shown.as_deref())
    }

    /// The same objects, for the run that the one on screen is compared with.
    pub fn compared_objects(&self) -> Vec<ShownObject> {
        let of_other = || {
            let (run, evaluated) = self.other_evaluated()?;
            let sample = self.shown_sample()?;
            evaluated.outcomes.image(sample, run.predictions.summary(sample)?)
        };
        let shown = self.compared_prediction().map(|_| self.compared_boxes());
        self.objects(of_other(), shown.as_deref())
    }

    fn objects(&self, outcomes: Option<ImageOutcomes<'_>>, shown: Option<&[usize]>) -> Vec<ShownObject> {
        let Display::Ready(info) = &self.shown.display else {
            return Vec::new();
        };
        let stored = |(index, stored): (usize, &crate::domain::TruthBox)| ShownObject {
            index,
            label: stored.label.to_string(),
            bounds: stored.in_pixels(info.size),
            counts: true,
            is_found: None,
            verdict: None,
        };
        let of_truth = self.shown_sample().and_then(|sample| self.truth_objects(sample, info.size, outcomes, shown));
        of_truth.unwrap_or_else(|| info.stored_boxes.iter().enumerate().map(stored).collect())
    }

    /// The ground-truth objects of an image with this size in pixels; `None` if it is not in the ground truth.
    fn truth_objects(
        &self,
        sample: SampleId,
        size: [u32; 2],
        outcomes: Option<ImageOutcomes<'_>>,
        shown: Option<&[usize]>,
    ) -> Option<Vec<ShownObject>> {
        let opened = self.opened_truth()?;
        let image = opened.truth.images.get(opened.images.position(sample)?)?;
        let object = |(index, found): (usize, &crate::domain::AnnotatedBox)| {
            let bounds = found.in_pixels(Some(size))?.into();
            let label = opened.truth.class_name(found.class);
            let outcome = outcomes.and_then(|outcomes| outcomes.objects.get(index));
            let is_found = outcome.zip(shown).map(|(object, shown)| shown.contains(&(object.shown_by as usize)));
            let counts = found.role == crate::domain::BoxRole::Object;
            let verdict = self.verdict_on(sample, FilmBox::FalseNegative(index as u32));
            Some(ShownObject { index, label, bounds, counts, is_found, verdict })
        };
        Some(image.boxes.iter().enumerate().filter_map(object).collect())
    }

    /// The classes of an image in the ground truth; the first one counts.
    pub fn truth_labels(&self, sample: SampleId) -> Vec<String> {
        let labels = || {
            let opened = self.opened_truth()?;
            let image = opened.truth.images.get(opened.images.position(sample)?)?;
            Some(image.labels.iter().map(|label| opened.truth.class_name(label.class)).collect())
        };
        labels().unwrap_or_default()
    }

    /// The boxes of the run on screen for an image; `None` while its prediction is being read.
    fn boxes_on_screen(&self, sample: SampleId) -> Option<Vec<usize>> {
        if self.shown_sample() == Some(sample) && self.shown.prediction.is_some() {
            return Some(self.shown_boxes());
        }
        let (run, prediction) = (self.run()?.id(), self.prediction_of(sample)?);
        Some(self.visible_boxes(run, sample, prediction))
    }
}
