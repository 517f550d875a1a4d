//! Ground truth, and how the runs compare with it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Display, Failure, Loadable, Run, SourceId, State, TaskId, Ticket};
use crate::domain::{BoundingBox, LabelSet, Location, RunId, RunInfo, Sample, SampleId, SharedList, ViewSettings};
use crate::evaluation::{DrawnNumber, Evaluated, GroundTruth, MatchedClasses};
use crate::matching::{ClassCorrections, OtherFolders};
use crate::review::{ImageOutcomes, NamedOutcome, OtherRun, OutcomeCounts, Outcomes, Predictions};

/// Commands about ground truth and evaluations.
#[derive(Debug, Clone, PartialEq)]
pub enum EvaluationCommand {
    /// Takes these annotations as right, in place of others.
    OpenTruth {
        at: TruthAt,
        reading: TruthReading,
        /// A CSV file with corrections of classes, which are added to those that are there.
        class_map: Option<PathBuf>,
    },
    CloseTruth,
    /// Reads the open ground truth in another way.
    ReadTruthAs(TruthReading),
    /// Reads the ground truth and evaluates the run on screen again, as both are now.
    EvaluateAgain,
    /// Which class of the ground truth a class of the model is, both by name or number; an empty one: none.
    CorrectClass {
        from: String,
        to: String,
    },
    /// Takes all corrections of classes back.
    ClearCorrections,
    /// Shows or hides the panel with the numbers.
    ShowPanel(bool),
    /// Shows exactly these boxes: searches for their images, and opens the filmstrip with all classes.
    ShowBoxes(String),
}

/// Effects about ground truth and evaluations.
#[derive(Debug, Clone)]
pub enum EvaluationEffect {
    /// Read ground truth and match it with the images.
    OpenTruth { request: TruthRequest, ticket: Ticket },
    /// Measure a run.
    Evaluate { request: EvaluateRequest, ticket: Ticket },
}

/// Events about ground truth and evaluations.
#[derive(Debug)]
pub enum EvaluationEvent {
    TruthOpened {
        task: TaskId,
        result: Result<OpenedTruth, Failure>,
    },
    /// The numbers of a run, first without intervals, then with them.
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
}

/// Where ground truth is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TruthAt {
    Files(Location),
    /// What people judged of a run.
    Verdicts(RunId),
    /// The class of each image is in its file name: `{class}` in a pattern with `*` for anything else.
    Names(String),
}

/// Where ground truth is, with everything that reading it needs.
#[derive(Debug, Clone)]
pub enum TruthSource {
    Files(Location),
    Verdicts { source: SourceId, run: Box<RunInfo>, view: Box<ViewSettings> },
    Names(String),
}

/// What a person says of ground truth that leaves something open.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TruthReading {
    /// The split of a data set; `None`: the usual one.
    pub split: Option<String>,
    /// The names of classes that are only numbered.
    pub names: Option<TruthNames>,
}

/// Names of classes that are only numbered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TruthNames {
    /// A built-in label set, or a label file.
    Set(String),
    /// Those of the classes 0, 1, 2 …
    Listed(Vec<String>),
}

/// Ground truth to read.
#[derive(Debug, Clone)]
pub struct TruthRequest {
    pub from: TruthSource,
    pub reading: TruthReading,
    pub class_map: Option<PathBuf>,
    pub samples: SharedList<Sample>,
}

/// A run to measure.
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

/// Ground truth, with the images that it is about.
#[derive(Debug, Clone)]
pub struct OpenedTruth {
    /// Where it was found, as the project keeps it: a path is absolute.
    pub at: TruthAt,
    pub truth: Arc<GroundTruth>,
    pub images: TruthImages,
    /// Of the file that was given with it.
    pub corrections: ClassCorrections,
}

/// Which images of the source are those of the ground truth.
#[derive(Debug, Clone, Default)]
pub struct TruthImages {
    /// By sample: the image of the ground truth, or [`NO_IMAGE`].
    pub by_sample: Arc<[u32]>,
    /// How many of them are in the ground truth.
    pub matched: usize,
    /// Images of the ground truth that are not in the source: how many, and some by name.
    pub missing: (usize, Vec<String>),
    /// Images with the same file name in other folders.
    pub other_folders: Option<OtherFolders>,
}

/// In place of an index.
pub const NO_IMAGE: u32 = u32::MAX;

/// A run beside the ground truth.
#[derive(Debug, Clone)]
pub struct EvaluatedRun {
    pub evaluated: Arc<Evaluated>,
    pub outcomes: Arc<Outcomes>,
    /// The drawn numbers: AP, AP50, precision, recall and F1; or top-1 and top-5. Empty before the intervals are
    /// known.
    pub drawn: Arc<[DrawnNumber]>,
    /// What a person should know before the numbers: whole sentences.
    pub notes: Vec<String>,
    /// How long it took.
    pub secs: f32,
}

/// The open ground truth, and the runs that were compared with it.
#[derive(Debug)]
pub struct Evaluating {
    pub at: TruthAt,
    pub reading: TruthReading,
    pub corrections: ClassCorrections,
    /// A file whose corrections are added to these when the ground truth is there.
    pub(super) class_map: Option<PathBuf>,
    pub truth: Loadable<OpenedTruth>,
    /// Whether the panel with the numbers is in the place of the image.
    pub is_shown: bool,
    /// How often the panel was opened by its action: it takes the keyboard then.
    pub openings: u32,
    /// Whether it is to be read as soon as all images are listed.
    pub(super) is_due: bool,
    /// The ground truth that was open before, until this one has been read: it stays if this one cannot be.
    pub(super) previous: Option<Box<Evaluating>>,
    /// The revision of the verdicts when they were last read as ground truth.
    pub(super) verdicts: u64,
    pub(super) runs: BTreeMap<RunId, RunEvaluation>,
}

/// The evaluation of one run.
#[derive(Debug, Default)]
pub struct RunEvaluation {
    pub status: Loadable<()>,
    /// The classes of the run beside those of the ground truth.
    pub classes: Arc<MatchedClasses>,
    /// Corrections about classes that the run does not have.
    pub unused: ClassCorrections,
    /// The last numbers; they stay while new ones are computed.
    pub last: Option<EvaluatedRun>,
    /// What the last or present request depends on.
    pub(super) basis: Option<EvaluationBasis>,
}

/// All that an evaluation depends on, so far that a change of it can be seen.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EvaluationBasis {
    pub(super) predictions: u64,
    pub(super) samples: usize,
    pub(super) nms_iou: Option<f32>,
    pub(super) corrections: ClassCorrections,
}

impl EvaluationCommand {
    /// Opens ground truth as it is.
    pub fn open_truth(at: TruthAt) -> Self {
        Self::OpenTruth { at, reading: TruthReading::default(), class_map: None }
    }
}

impl TruthNames {
    /// The classes of a model in their order, as label files of YOLO number them; `None` if it does not name them.
    pub fn in_order_of(labels: &LabelSet) -> Option<Self> {
        (!labels.is_empty()).then(|| Self::Listed(labels.iter().map(|(_, name)| name.to_owned()).collect()))
    }
}

impl TruthAt {
    /// The name for people.
    pub fn name(&self) -> String {
        match self {
            Self::Files(at) => at.name(),
            Self::Verdicts(_) => "verdicts of this project".to_owned(),
            Self::Names(pattern) => format!("classes in file names ({pattern})"),
        }
    }
}

impl TruthImages {
    /// The image of the ground truth that a sample is.
    pub fn of(&self, sample: SampleId) -> Option<usize> {
        let image = *self.by_sample.get(sample.index())?;
        (image != NO_IMAGE).then_some(image as usize)
    }
}

impl Evaluating {
    pub(super) fn new(at: TruthAt, reading: TruthReading, corrections: ClassCorrections) -> Self {
        Self {
            at,
            reading,
            corrections,
            class_map: None,
            truth: Loadable::NotLoaded,
            is_shown: false,
            openings: 0,
            is_due: true,
            previous: None,
            verdicts: 0,
            runs: BTreeMap::new(),
        }
    }

    /// The one that was read last: this one or, while it is being read, the one before. Its unfinished evaluations
    /// begin anew.
    pub(super) fn last_opened(mut self) -> Option<Box<Self>> {
        self.runs.retain(|_, run| !run.status.is_loading());
        if self.truth.ready().is_some() { Some(Box::new(self)) } else { self.previous }
    }

    pub fn of_run(&self, run: RunId) -> Option<&RunEvaluation> {
        self.runs.get(&run)
    }
}

/// One object of the ground truth of the shown image.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownObject {
    /// The name of its class.
    pub label: String,
    /// In pixels of the upright image.
    pub bounds: BoundingBox,
    /// Whether it is missed if no right box shows it.
    pub counts: bool,
    /// Whether a right box on screen shows it; `None` if the image is not evaluated, or its prediction not read yet.
    pub is_found: Option<bool>,
}

impl State {
    /// The evaluation of the run on screen.
    pub fn evaluation(&self) -> Option<&RunEvaluation> {
        self.evaluating.as_ref()?.of_run(self.run()?.id())
    }

    /// The last numbers of the run on screen.
    pub fn evaluated(&self) -> Option<&EvaluatedRun> {
        self.evaluation()?.last.as_ref()
    }

    /// The run that the one on screen is compared with, and its last numbers beside the same ground truth.
    pub fn other_evaluated(&self) -> Option<(&Run, &EvaluatedRun)> {
        let run = self.runs.get(self.comparing.as_ref()?.right)?;
        Some((run, self.evaluating.as_ref()?.of_run(run.id())?.last.as_ref()?))
    }

    pub(super) fn other_run(&self) -> Option<OtherRun> {
        let (run, evaluated) = self.other_evaluated()?;
        let (predictions, outcomes) = (run.predictions.clone(), Arc::clone(&evaluated.outcomes));
        Some(OtherRun { predictions, outcomes, view: self.view_of_run(run.id()).into_owned() })
    }

    /// The counts of outcomes at the filters on screen.
    pub fn outcome_counts(&self) -> Option<&OutcomeCounts> {
        self.evaluated()?;
        self.arranging.statistics()?.outcomes.as_ref()
    }

    /// How a box of the run on screen compares with the ground truth.
    pub fn outcome_of_box(&self, sample: SampleId, index: usize) -> Option<NamedOutcome<'_>> {
        self.evaluated()?.outcomes.named(self.outcomes_of(sample)?, index)
    }

    /// The same of the run that the one on screen is compared with.
    pub fn compared_outcome_of_box(&self, sample: SampleId, index: usize) -> Option<NamedOutcome<'_>> {
        let (run, evaluated) = self.other_evaluated()?;
        let of_image = evaluated.outcomes.of(sample, run.predictions.summary(sample)?)?;
        evaluated.outcomes.named(of_image, index)
    }

    /// The name of the class of an object, in the ground truth of the run on screen.
    pub fn class_of_object(&self, sample: SampleId, object: u32) -> Option<&str> {
        let class = self.outcomes_of(sample)?.objects.get(object as usize)?.class;
        Some(&self.evaluated()?.outcomes.classes.get(class as usize)?.name)
    }

    /// How the predictions of the run on screen for an image compare with the ground truth.
    pub fn outcomes_of(&self, sample: SampleId) -> Option<ImageOutcomes<'_>> {
        let outcomes = &self.evaluated()?.outcomes;
        outcomes.of(sample, self.run()?.predictions.summary(sample)?)
    }

    /// Whether there is ground truth for an image.
    pub fn has_truth(&self, sample: SampleId) -> bool {
        self.opened_truth().is_some_and(|opened| opened.images.of(sample).is_some())
    }

    pub fn opened_truth(&self) -> Option<&OpenedTruth> {
        self.evaluating.as_ref()?.truth.ready()
    }

    /// The objects of the shown image in the ground truth, or those that are stored with it; found and missed by the
    /// run on screen.
    pub fn shown_objects(&self) -> Vec<ShownObject> {
        let sample = self.shown_sample();
        let outcomes = sample.and_then(|sample| self.outcomes_of(sample));
        let shown = outcomes.and_then(|_| self.boxes_on_screen(sample?));
        self.objects(outcomes, shown.as_deref())
    }

    /// The same objects, found and missed by the run that the one on screen is compared with.
    pub fn compared_objects(&self) -> Vec<ShownObject> {
        let of_other = || {
            let (run, evaluated) = self.other_evaluated()?;
            let sample = self.shown_sample()?;
            evaluated.outcomes.of(sample, run.predictions.summary(sample)?)
        };
        let shown = self.compared_prediction().map(|_| self.compared_boxes());
        self.objects(of_other(), shown.as_deref())
    }

    fn objects(&self, outcomes: Option<ImageOutcomes<'_>>, shown: Option<&[usize]>) -> Vec<ShownObject> {
        let Display::Ready(info) = &self.shown.display else {
            return Vec::new();
        };
        let stored = |stored: &crate::domain::TruthBox| ShownObject {
            label: stored.label.to_string(),
            bounds: stored.in_pixels(info.size),
            counts: true,
            is_found: None,
        };
        let of_truth = self.shown_sample().and_then(|sample| self.truth_objects(sample, info.size, outcomes, shown));
        of_truth.unwrap_or_else(|| info.stored_boxes.iter().map(stored).collect())
    }

    /// The objects of the ground truth of an image with this size in pixels; `None` if it is not in the ground truth.
    fn truth_objects(
        &self,
        sample: SampleId,
        size: [u32; 2],
        outcomes: Option<ImageOutcomes<'_>>,
        shown: Option<&[usize]>,
    ) -> Option<Vec<ShownObject>> {
        let opened = self.opened_truth()?;
        let image = opened.truth.images.get(opened.images.of(sample)?)?;
        let object = |(index, found): (usize, &crate::domain::AnnotatedBox)| {
            let [left, top, width, height] = found.in_pixels(Some(size))?;
            let label = opened.truth.class_name(found.class);
            let outcome = outcomes.and_then(|outcomes| outcomes.objects.get(index));
            let is_found = outcome.zip(shown).map(|(object, shown)| shown.contains(&(object.shown_by as usize)));
            Some(ShownObject {
                label,
                bounds: BoundingBox::from([left, top, left + width, top + height].map(|edge| edge as f32)),
                counts: found.role == crate::domain::BoxRole::Object,
                is_found,
            })
        };
        Some(image.boxes.iter().enumerate().filter_map(object).collect())
    }

    /// The classes of an image in the ground truth, the first of which counts.
    pub fn truth_labels(&self, sample: SampleId) -> Vec<String> {
        let labels = || {
            let opened = self.opened_truth()?;
            let image = opened.truth.images.get(opened.images.of(sample)?)?;
            Some(image.labels.iter().map(|label| opened.truth.class_name(label.class)).collect())
        };
        labels().unwrap_or_default()
    }

    /// The boxes of the run on screen that an image shows; `None` while its prediction is read.
    fn boxes_on_screen(&self, sample: SampleId) -> Option<Vec<usize>> {
        if self.shown_sample() == Some(sample) && self.shown.prediction.is_some() {
            return Some(self.shown_boxes());
        }
        let (run, prediction) = (self.run()?.id(), self.prediction_of(sample)?);
        Some(self.visible_boxes(run, sample, prediction))
    }
}
