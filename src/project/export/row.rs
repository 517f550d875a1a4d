//! The input of every format: images with predictions and verdicts, and the selected part of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::tally::Tally;
use super::{ExportError, RowError};
use crate::domain::{
    BoundingBox, ClassScore, Detection, JudgedSample, LabelSet, ModelTask, Prediction, PredictionContent, RunId,
    RunInfo, Sample, SampleId, SamplePrediction, SampleUri, Verdict, ViewSettings,
};
use crate::evaluation::Evaluated;
use crate::image::decode::DecodeLimits;
use crate::image::source::Source;
use crate::project::export::options::{BoxChoice, ClassChoice, ExportOptions, VerdictChoice};
use crate::project::{Project, paged};
use crate::review::{Outcomes, VerdictKind};

/// The number of predictions in memory.
const PAGE_LEN: usize = 128;

/// One image with its prediction, verdicts, note and tags.
#[derive(Debug, Clone, PartialEq)]
pub struct ExportRow {
    pub sample: Sample,
    /// The run's prediction, or why there is none; `None` if the image was never predicted.
    pub result: Option<Result<Prediction, String>>,
    /// Whether the file changed after prediction: the prediction and its verdicts are then skipped.
    pub is_outdated: bool,
    /// The verdict on the image as a whole.
    pub verdict: Option<Verdict>,
    /// The verdicts on boxes, by index into the prediction's detections.
    pub box_verdicts: BTreeMap<u32, Verdict>,
    pub note: Option<String>,
    pub tags: BTreeSet<String>,
}

impl ExportRow {
    /// The boxes that a person confirmed: visible whatever the view settings.
    fn confirmed_boxes(&self) -> Vec<u32> {
        let boxes = self.box_verdicts.iter();
        let confirmed = boxes.filter(|(_, verdict)| VerdictKind::from(*verdict).confirms());
        confirmed.map(|(index, _)| *index).collect()
    }

    /// An image without a prediction or verdict.
    pub fn new(sample: Sample) -> Self {
        Self {
            sample,
            result: None,
            is_outdated: false,
            verdict: None,
            box_verdicts: BTreeMap::new(),
            note: None,
            tags: BTreeSet::new(),
        }
    }

    /// Problems of an image that was predicted anyway.
    pub fn warnings(&self) -> &[String] {
        match &self.result {
            Some(Ok(prediction)) => &prediction.warnings,
            _ => &[],
        }
    }
}

/// What all rows share.
#[derive(Clone)]
pub struct ExportContext {
    pub run: RunInfo,
    pub view: ViewSettings,
    /// The source's name for people.
    pub source_name: String,
    /// The source of images, for formats that show or copy them.
    pub source: Arc<dyn Source>,
    pub limits: DecodeLimits,
    /// The run's evaluation against ground truth, for the report.
    pub evaluation: Option<Evaluated>,
    /// The outcomes of boxes against ground truth, for annotated images.
    pub truth: Option<EvaluatedBoxes>,
}

/// The outcomes of a run's boxes against ground truth.
#[derive(Clone)]
pub struct EvaluatedBoxes {
    pub outcomes: Arc<Outcomes>,
    pub samples: HashMap<SampleUri, SampleId>,
}

impl ExportContext {
    pub fn task(&self) -> ModelTask {
        self.run.card.task
    }
}

/// One row per given sample, in order. The samples contain the current versions of their files: a prediction of an
/// older version does not count. `judgments` are those of the whole project; a sample gets those of this run, and its
/// notes and tags.
pub fn project_rows(
    project: Project,
    run: RunId,
    samples: impl Iterator<Item = Sample>,
    judgments: impl IntoIterator<Item = JudgedSample>,
) -> impl Iterator<Item = Result<ExportRow, RowError>> {
    let judgments = judgments.into_iter().map(|judged| (judged.sample.clone(), judged));
    let judgments: HashMap<SampleUri, JudgedSample> = judgments.collect();
    paged(samples, PAGE_LEN, move |samples| {
        let uris: Vec<SampleUri> = samples.iter().map(|sample| sample.uri.clone()).collect();
        let predictions = project.predictions(run, &uris)?;
        let row = |(sample, prediction): (Sample, Option<SamplePrediction>)| {
            let stamp = sample.stamp();
            let mut row = ExportRow::new(sample);
            row.is_outdated = prediction.as_ref().is_some_and(|prediction| !prediction.is_of(&stamp));
            let prediction = prediction.filter(|_| !row.is_outdated);
            row.result = prediction.map(|prediction| prediction.result);
            if let Some(judged) = judgments.get(&row.sample.uri) {
                judge(&mut row, judged, run);
            }
            row
        };
        Ok(samples.into_iter().zip(predictions).map(row).collect())
    })
}

/// The verdicts on this run's prediction, or on the image itself if it was judged before there was a prediction.
/// Verdicts on an outdated prediction do not apply to the current file.
fn judge(row: &mut ExportRow, judged: &JudgedSample, run: RunId) {
    let run = Some(run).filter(|_| !row.is_outdated);
    for (target, verdict) in &judged.verdicts {
        match (target.run, target.box_index) {
            (of @ Some(_), Some(index)) if of == run => {
                row.box_verdicts.insert(index, verdict.clone());
            }
            (of @ Some(_), None) if of == run => row.verdict = Some(verdict.clone()),
            (None, None) if row.verdict.is_none() => row.verdict = Some(verdict.clone()),
            _ => {}
        }
    }
    row.note = Some(judged.note.clone()).filter(|note| !note.is_empty());
    row.tags = judged.tags.iter().cloned().collect();
}

/// The exported part of a row.
pub(super) struct ChosenImage<'r> {
    pub row: &'r ExportRow,
    pub prediction: Result<ChosenPrediction<'r>, Unpredicted<'r>>,
}

/// Why an image has no prediction to export.
#[derive(Debug, Clone, Copy)]
pub(super) enum Unpredicted<'r> {
    NotYet,
    /// The prediction is of an older version of the file.
    Outdated,
    Failed(&'r str),
}

pub(super) struct ChosenPrediction<'r> {
    /// Width and height of the image in pixels.
    pub size: [u32; 2],
    pub content: ChosenContent<'r>,
}

pub(super) enum ChosenContent<'r> {
    /// In stored order: highest score first.
    Boxes(Vec<ChosenBox<'r>>),
    /// Best first.
    Classes(&'r [ClassScore]),
}

/// The part of a box inside its image.
pub(super) struct InsideBox<'i, 'r> {
    pub chosen: &'i ChosenBox<'r>,
    pub bounds: BoundingBox,
}

impl<'r> ChosenImage<'r> {
    /// The exported boxes; empty for a classifier.
    pub(super) fn boxes(&self) -> &[ChosenBox<'r>] {
        match &self.prediction {
            Ok(ChosenPrediction { content: ChosenContent::Boxes(boxes), .. }) => boxes,
            _ => &[],
        }
    }

    /// The prediction, for formats that require one; otherwise the tally records why there is none.
    pub(super) fn predicted(&self, tally: &mut Tally) -> Option<&ChosenPrediction<'r>> {
        match &self.prediction {
            Ok(prediction) => return Some(prediction),
            Err(Unpredicted::NotYet) => tally.unpredicted += 1,
            Err(Unpredicted::Failed(_)) => tally.failed += 1,
            // Those are counted for every format.
            Err(Unpredicted::Outdated) => {}
        }
        None
    }

    /// The image size and the boxes inside the image, for dataset formats. The tally counts the others, and corrected
    /// classes.
    pub(super) fn inside_boxes(&self, tally: &mut Tally) -> Option<([u32; 2], Vec<InsideBox<'_, 'r>>)> {
        let size = self.predicted(tally)?.size;
        let boxes = self.boxes();
        let inside = boxes.iter().filter_map(|chosen| Some(InsideBox { chosen, bounds: chosen.clipped? }));
        let inside: Vec<InsideBox<'_, 'r>> = inside.collect();
        tally.outside += (boxes.len() - inside.len()) as u64;
        tally.relabeled += inside.iter().filter(|found| found.chosen.is_relabeled()).count() as u64;
        Some((size, inside))
    }
}

impl Unpredicted<'_> {
    /// The status in JSON Lines and CSV.
    pub(super) fn status(self) -> &'static str {
        match self {
            Self::NotYet => "unasked",
            Self::Outdated => "outdated",
            Self::Failed(_) => "failed",
        }
    }

    pub(super) fn reason(&self) -> Option<&str> {
        match self {
            Self::Failed(reason) => Some(reason),
            Self::NotYet | Self::Outdated => None,
        }
    }
}

impl ChosenPrediction<'_> {
    /// The number of boxes or classes.
    pub(super) fn len(&self) -> usize {
        match &self.content {
            ChosenContent::Boxes(boxes) => boxes.len(),
            ChosenContent::Classes(classes) => classes.len(),
        }
    }

    /// The exported part as a prediction, for drawing.
    pub(super) fn to_prediction(&self) -> Prediction {
        let [width, height] = self.size;
        let content = match &self.content {
            ChosenContent::Boxes(boxes) => {
                PredictionContent::Detections(boxes.iter().map(|chosen| chosen.detection.clone()).collect())
            }
            ChosenContent::Classes(classes) => PredictionContent::Classes(classes.to_vec()),
        };
        Prediction { width, height, content, warnings: Vec::new() }
    }
}

pub(super) struct ChosenBox<'r> {
    /// Index into the stored detections.
    pub index: usize,
    /// The box as the model returned it.
    pub detection: &'r Detection,
    /// The part inside the image; `None` if it has no area.
    pub clipped: Option<BoundingBox>,
    /// The class in datasets: the judged one if requested, otherwise the model's.
    pub class_id: u32,
    pub label: &'r str,
    pub verdict: Option<&'r Verdict>,
}

impl ChosenBox<'_> {
    pub(super) fn is_relabeled(&self) -> bool {
        self.class_id != self.detection.class_id
    }
}

/// The name of the right class, if the verdict has one.
pub(super) fn right_class(verdict: Option<&Verdict>) -> Option<&str> {
    match verdict {
        Some(Verdict::WrongClass(right)) => Some(right),
        _ => None,
    }
}

/// Decides what is exported.
pub(super) struct Chooser<'c> {
    context: &'c ExportContext,
    options: ExportOptions,
}

impl<'c> Chooser<'c> {
    /// # Errors
    /// The format supports only boxes and the run has none.
    pub(super) fn new(context: &'c ExportContext, options: ExportOptions) -> Result<Self, ExportError> {
        if !options.format.takes(context.task()) {
            return Err(ExportError::NeedsBoxes { format: options.format });
        }
        Ok(Self { context, options })
    }

    /// `None` if the image is skipped.
    pub(super) fn choose<'r>(&'r self, row: &'r ExportRow, tally: &mut Tally) -> Option<ChosenImage<'r>> {
        tally.outdated += u64::from(row.is_outdated);
        let prediction = match &row.result {
            None if row.is_outdated => Err(Unpredicted::Outdated),
            None => Err(Unpredicted::NotYet),
            Some(Err(reason)) => Err(Unpredicted::Failed(reason)),
            Some(Ok(prediction)) => Ok(self.choose_prediction(row, prediction, tally)),
        };
        let image = ChosenImage { row, prediction };
        let has_boxes = !image.boxes().is_empty();
        let keeps = match self.options.verdicts {
            VerdictChoice::All => true,
            VerdictChoice::WithoutRejected => has_boxes || row.verdict != Some(Verdict::Reject),
            // Without a verdict on the image, one without an accepted box would become an example of nothing.
            VerdictChoice::Accepted => has_boxes || row.verdict == Some(Verdict::Accept),
        };
        if !keeps {
            tally.left_out_by_verdict += u64::from(!row.is_outdated);
            return None;
        }
        Some(image)
    }

    fn choose_prediction<'r>(
        &'r self,
        row: &'r ExportRow,
        prediction: &'r Prediction,
        tally: &mut Tally,
    ) -> ChosenPrediction<'r> {
        let size = [prediction.width, prediction.height];
        let is_visible = self.options.boxes == BoxChoice::Visible;
        let view = &self.context.view;
        if self.context.task() == ModelTask::Classification {
            let classes = if is_visible { view.visible_classes(prediction) } else { prediction.classes() };
            return ChosenPrediction { size, content: ChosenContent::Classes(classes) };
        }
        let mut indices = if is_visible {
            view.visible_detections(prediction, &row.confirmed_boxes())
        } else {
            (0..prediction.detections().len()).collect()
        };
        indices.sort_unstable();
        let boxes = indices.into_iter().filter_map(|index| self.choose_box(row, prediction, index, tally));
        ChosenPrediction { size, content: ChosenContent::Boxes(boxes.collect()) }
    }

    fn choose_box<'r>(
        &'r self,
        row: &'r ExportRow,
        prediction: &'r Prediction,
        index: usize,
        tally: &mut Tally,
    ) -> Option<ChosenBox<'r>> {
        let detection = &prediction.detections()[index];
        let verdict = u32::try_from(index).ok().and_then(|index| row.box_verdicts.get(&index));
        let judged_class = self.judged_class(verdict, tally);
        let inherited = row.verdict.as_ref().filter(|verdict| !matches!(verdict, Verdict::WrongClass(_)));
        let keeps = match (self.options.verdicts, verdict.or(inherited)) {
            (VerdictChoice::All, _) | (VerdictChoice::Accepted, Some(Verdict::Accept)) => true,
            (VerdictChoice::WithoutRejected, verdict) => verdict != Some(&Verdict::Reject),
            (VerdictChoice::Accepted, _) => judged_class.is_some(),
        };
        if !keeps {
            return None;
        }
        let (class_id, label) = judged_class.unwrap_or((detection.class_id, &detection.label));
        Some(ChosenBox {
            index,
            detection,
            clipped: inside(&detection.bounds, prediction.width, prediction.height),
            class_id,
            label,
            verdict,
        })
    }

    /// The right class of a box, if the dataset should contain it and the model has it.
    fn judged_class<'r>(&'r self, verdict: Option<&'r Verdict>, tally: &mut Tally) -> Option<(u32, &'r str)> {
        let right = right_class(verdict)?;
        if !self.options.format.is_dataset() || self.options.classes == ClassChoice::Model {
            return None;
        }
        let found = class_id_of(&self.context.run.labels, right);
        if found.is_none() {
            tally.foreign_classes += 1;
            tally.foreign_class.get_or_insert_with(|| right.to_owned());
        }
        found.map(|class_id| (class_id, right))
    }
}

/// People type `Dog` for the class `dog`.
fn class_id_of(labels: &LabelSet, name: &str) -> Option<u32> {
    let exact = labels.iter().find(|(_, label)| *label == name);
    let similar = || labels.iter().find(|(_, label)| label.to_lowercase() == name.trim().to_lowercase());
    exact.or_else(similar).map(|(class_id, _)| class_id)
}

/// The part of the box inside the image, if it has an area.
fn inside(bounds: &BoundingBox, width: u32, height: u32) -> Option<BoundingBox> {
    let clipped = bounds.clipped(width, height);
    (bounds.is_finite() && clipped.area() > 0.0).then_some(clipped)
}
