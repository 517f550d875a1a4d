//! The input of every format: images with predictions and verdicts, and the selected part of them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::tally::Tally;
use super::{ExportError, RowError};
use crate::domain::{
    BoundingBox, ClassScore, Detection, DrawnBox, JudgedSample, ModelTask, NEW_CLASS, Prediction, PredictionContent,
    RunInfo, Sample, SampleId, SamplePrediction, SampleUri, Verdict, ViewSettings, covers_image,
};
use crate::evaluation::Evaluated;
use crate::image::decode::DecodeLimits;
use crate::image::source::Source;
use crate::project::export::options::{BoxChoice, ExportFormat, ExportOptions, VerdictChoice};
use crate::project::{Project, paged};
use crate::review::{Outcomes, ReviewReport, VerdictKind};

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
    /// Whether there are such verdicts.
    pub loses_verdicts: bool,
    /// The verdict on the image as a whole.
    pub verdict: Option<Verdict>,
    /// The verdicts on boxes, by index into the prediction's detections.
    pub box_verdicts: BTreeMap<u32, Verdict>,
    /// Ground-truth objects that the model did not detect and that are not there.
    pub wrong_labels: Vec<DrawnBox>,
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
            loses_verdicts: false,
            verdict: None,
            box_verdicts: BTreeMap::new(),
            wrong_labels: Vec::new(),
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
    /// The outcomes of boxes against ground truth, for annotated images and the report.
    pub truth: Option<EvaluatedBoxes>,
    /// The precision whose minimum score the report names.
    pub target_precision: f64,
    /// What the verdicts say about the whole run, for the report.
    pub review: Option<Box<ReviewReport>>,
    /// The classes of all verdicts on the run that the model does not have, so that their ids do not depend on the
    /// exported part.
    pub new_classes: Vec<String>,
}

/// The outcomes of a run's boxes against ground truth.
#[derive(Clone)]
pub struct EvaluatedBoxes {
    pub outcomes: Arc<Outcomes>,
    pub samples: HashMap<SampleUri, SampleId>,
}

impl ExportContext {
    pub fn task(&self) -> ModelTask {
        self.run.card.stored_as()
    }

    /// All classes of corrected labels, for formats without a list of classes: as in COCO's categories.
    pub(super) fn all_classes(&self, options: ExportOptions) -> Option<serde_json::Value> {
        let is_needed = options.verdicts == VerdictChoice::Corrected && self.task() == ModelTask::Detection;
        let category = |(id, name)| serde_json::json!({ "id": id, "name": name });
        let classes = if is_needed { self.classes() } else { Vec::new() };
        (!classes.is_empty()).then(|| classes.into_iter().map(category).collect())
    }

    /// The model's classes, and the new ones with the ids after them.
    pub(super) fn classes(&self) -> Vec<(u32, String)> {
        let first = self.run.labels.max_id().map_or(FIRST_NEW_CLASS, |id| id.saturating_add(1));
        let labels = self.run.labels.iter().map(|(id, name)| (id, name.to_owned()));
        labels.chain((first..).zip(self.new_classes.iter().cloned())).collect()
    }
}

/// The classes of a run's verdicts that the model does not have. `given` are those of all verdicts, also cleared ones,
/// in the order of their first use: a class that is no longer used keeps the ids of those after it.
pub(super) fn new_classes(judgments: &[JudgedSample], run: &RunInfo, given: &[String]) -> Vec<String> {
    let is_new = |name: &&str| run.labels.find(name).is_none();
    let verdicts = judgments.iter().flat_map(|judged| &judged.verdicts);
    let of_run = verdicts.filter(|(target, _)| target.run == Some(run.id));
    let replacements = judgments
        .iter()
        .filter(|_| run.is_labels())
        .flat_map(|judged| judged.wrong_labels().filter_map(|(_, wrong)| judged.replacement(wrong, run.id)));
    let used = of_run.filter_map(|(_, verdict)| verdict.right_class()).chain(replacements);
    let used: BTreeSet<&str> = used.filter(is_new).collect();
    let given: Vec<&str> = given.iter().map(String::as_str).filter(is_new).collect();
    let last = given.iter().rposition(|name| used.contains(name)).map_or(0, |last| last + 1);
    let unknown = used.into_iter().filter(|name| !given.contains(name));
    given[..last].iter().copied().chain(unknown).map(str::to_owned).collect()
}

/// One row per given sample, in order. The samples contain the current versions of their files: a prediction of an
/// older version does not count. `judgments` are those of the whole project; a sample gets those of this run, and its
/// notes and tags.
pub fn project_rows(
    project: Project,
    run: RunInfo,
    samples: impl Iterator<Item = Sample>,
    judgments: impl IntoIterator<Item = JudgedSample>,
) -> impl Iterator<Item = Result<ExportRow, RowError>> {
    let judgments = judgments.into_iter().map(|judged| (judged.sample.clone(), judged));
    let judgments: HashMap<SampleUri, JudgedSample> = judgments.collect();
    paged(samples, PAGE_LEN, move |samples| {
        let uris: Vec<SampleUri> = samples.iter().map(|sample| sample.uri.clone()).collect();
        let predictions = project.predictions(run.id, &uris)?;
        let row = |(sample, prediction): (Sample, Option<SamplePrediction>)| {
            let stamp = sample.stamp();
            let mut row = ExportRow::new(sample);
            row.is_outdated = prediction.as_ref().is_some_and(|prediction| !prediction.is_of(&stamp));
            let prediction = prediction.filter(|_| !row.is_outdated);
            row.result = prediction.map(|prediction| prediction.result);
            if let Some(judged) = judgments.get(&row.sample.uri) {
                judge(&mut row, judged, &run);
            }
            row
        };
        Ok(samples.into_iter().zip(predictions).map(row).collect())
    })
}

/// The verdicts on this run's prediction, or on the image itself if it was judged before there was a prediction.
/// Verdicts on an outdated prediction do not apply to the current file.
fn judge(row: &mut ExportRow, judged: &JudgedSample, run: &RunInfo) {
    row.loses_verdicts = row.is_outdated && judged.verdicts.iter().any(|(target, _)| target.run == Some(run.id));
    if let Some(Ok(prediction)) = &row.result {
        let implied = judged.implied(run, prediction).into_iter();
        row.box_verdicts.extend(implied.map(|(index, verdict, _)| (index, verdict)));
    }
    for (index, verdict) in judged.on_run(Some(run.id).filter(|_| !row.is_outdated)) {
        match index {
            Some(index) => drop(row.box_verdicts.insert(index, verdict.clone())),
            None => row.verdict = Some(verdict.clone()),
        }
    }
    row.wrong_labels.extend(judged.wrong_labels().map(|(_, wrong)| wrong.clone()));
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
    Classes(Cow<'r, [ClassScore]>),
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
                PredictionContent::Detections(boxes.iter().map(ChosenBox::to_detection).collect())
            }
            ChosenContent::Classes(classes) => PredictionContent::Classes(classes.to_vec()),
        };
        Prediction::new([width, height], content)
    }
}

pub(super) struct ChosenBox<'r> {
    /// Index into the stored detections, followed by added boxes.
    pub index: usize,
    /// The box as the model returned it, or as a person added it; corrected, in formats that otherwise hold both.
    pub detection: Cow<'r, Detection>,
    /// The exported position: the drawn one, unless only the model's boxes are exported.
    pub bounds: BoundingBox,
    /// The part of `bounds` inside the image; `None` if it has no area.
    pub clipped: Option<BoundingBox>,
    /// The class in datasets: the judged one if requested, otherwise the model's.
    pub class_id: u32,
    pub label: &'r str,
    /// 1 for a corrected label.
    pub score: f32,
    /// Whether the exported box is a person's: added, or with another position or class than the model's.
    pub(super) is_by_person: bool,
    /// `None` for a corrected label in formats that otherwise hold the model's box next to its verdict.
    pub verdict: Option<&'r Verdict>,
}

impl ChosenBox<'_> {
    pub(super) fn is_relabeled(&self) -> bool {
        self.class_id != self.detection.class_id
    }

    /// The exported box, for drawing.
    fn to_detection(&self) -> Detection {
        Detection::new(self.bounds, self.class_id, self.label, self.score)
    }

    /// Who the exported box is from: `model` or `person`.
    pub(super) fn author(&self) -> &'static str {
        if self.is_by_person { "person" } else { "model" }
    }

    /// Whose box and class `detection` is: next to a verdict, it is the model's unless a person added it.
    pub(super) fn author_of_detection(&self) -> &'static str {
        let is_model = self.verdict.is_some_and(|verdict| !matches!(verdict, Verdict::Added(_)));
        if is_model { "model" } else { self.author() }
    }
}

/// The position that a person gave to a box of the model.
pub(super) fn right_box(verdict: Option<&Verdict>) -> Option<BoundingBox> {
    match verdict {
        Some(Verdict::Moved(drawn)) => Some(drawn.bounds()),
        _ => None,
    }
}

/// Decides what is exported.
pub(super) struct Chooser<'c> {
    context: &'c ExportContext,
    options: ExportOptions,
    /// The ids of new classes.
    new_ids: HashMap<String, u32>,
}

impl<'c> Chooser<'c> {
    /// # Errors
    /// The format supports only boxes and the run has none.
    pub(super) fn new(context: &'c ExportContext, options: ExportOptions) -> Result<Self, ExportError> {
        if !options.format.takes(context.task()) {
            return Err(ExportError::NeedsBoxes { format: options.format });
        }
        let classes = context.classes().into_iter().skip(context.run.labels.len());
        Ok(Self { context, options, new_ids: classes.map(|(id, name)| (name, id)).collect() })
    }

    /// `None` if the image is skipped.
    pub(super) fn choose<'r>(&'r self, row: &'r ExportRow, tally: &mut Tally) -> Option<ChosenImage<'r>> {
        tally.outdated += u64::from(row.is_outdated);
        tally.outdated_judged += u64::from(row.loses_verdicts);
        if row.verdict == Some(Verdict::Returned) && self.options.verdicts != VerdictChoice::All {
            tally.returned += 1;
            return None;
        }
        let prediction = match &row.result {
            None if row.is_outdated => Err(Unpredicted::Outdated),
            None => Err(Unpredicted::NotYet),
            Some(Err(reason)) => Err(Unpredicted::Failed(reason)),
            Some(Ok(prediction)) if self.is_corrected() && !self.is_covered(row, prediction) => {
                if row.verdict.is_none() && row.box_verdicts.is_empty() {
                    tally.unjudged += 1;
                } else {
                    tally.leave_uncovered(&row.sample.name);
                }
                return None;
            }
            Some(Ok(prediction)) => Ok(self.choose_prediction(row, prediction, tally)),
        };
        let image = ChosenImage { row, prediction };
        if self.is_corrected() {
            image.predicted(tally)?;
        }
        let is_rejected = image.boxes().is_empty() && row.verdict == Some(Verdict::Reject);
        if is_rejected && self.options.verdicts == VerdictChoice::WithoutRejected {
            tally.left_out_by_verdict += u64::from(!row.is_outdated);
            return None;
        }
        Some(image)
    }

    /// Whether only corrected labels are exported.
    fn is_corrected(&self) -> bool {
        self.options.verdicts == VerdictChoice::Corrected
    }

    /// Whether the verdicts say what is in the image: otherwise its labels would be incomplete, and an object without a
    /// label would become an example of background.
    fn is_covered(&self, row: &ExportRow, prediction: &Prediction) -> bool {
        if self.context.task() == ModelTask::Classification {
            return matches!(row.verdict, Some(Verdict::Accept | Verdict::WrongClass(_)));
        }
        let shown = self.context.view.visible_detections(prediction, &row.confirmed_boxes());
        let shown = shown.into_iter().map(|index| row.box_verdicts.get(&(index as u32)));
        let added = row.box_verdicts.values().filter(|verdict| matches!(verdict, Verdict::Added(_)));
        covers_image(row.verdict.as_ref(), shown.chain(added.map(Some)), row.box_verdicts.values())
    }

    fn choose_prediction<'r>(
        &'r self,
        row: &'r ExportRow,
        prediction: &'r Prediction,
        tally: &mut Tally,
    ) -> ChosenPrediction<'r> {
        let size = [prediction.width, prediction.height];
        // A verdict on the image covers what is visible.
        let is_visible = self.options.boxes == BoxChoice::Visible || self.is_corrected();
        let view = &self.context.view;
        if self.context.task() == ModelTask::Classification {
            let classes = match &row.verdict {
                verdict if self.is_corrected() => Cow::Owned(self.right_class(verdict.as_ref(), prediction, tally)),
                _ if is_visible => view.visible_classes(prediction).into(),
                _ => prediction.classes().into(),
            };
            return ChosenPrediction { size, content: ChosenContent::Classes(classes) };
        }
        let mut indices = if is_visible {
            view.visible_detections(prediction, &row.confirmed_boxes())
        } else {
            (0..prediction.detections().len()).collect()
        };
        indices.sort_unstable();
        let mut boxes = Vec::new();
        for index in indices {
            boxes.extend(self.choose_box(row, prediction, index, tally));
        }
        if self.has_corrections() {
            let added = row.box_verdicts.iter().filter(|(_, verdict)| matches!(verdict, Verdict::Added(_)));
            for (&index, verdict) in added {
                boxes.extend(self.added_box(size, index as usize, verdict, tally));
            }
        }
        ChosenPrediction { size, content: ChosenContent::Boxes(boxes) }
    }

    /// Whether the exported boxes are those that a person corrected. Other formats than datasets hold both.
    fn has_corrections(&self) -> bool {
        !self.options.format.is_dataset() || self.options.applies_corrections()
    }

    /// Whether the format otherwise holds the model's boxes next to their verdicts.
    fn replaces_boxes(&self) -> bool {
        self.is_corrected() && matches!(self.options.format, ExportFormat::Jsonl | ExportFormat::Csv)
    }

    /// The class of an image that was accepted or corrected.
    fn right_class(&self, verdict: Option<&Verdict>, prediction: &Prediction, tally: &mut Tally) -> Vec<ClassScore> {
        let right = match verdict {
            Some(Verdict::WrongClass(right)) => {
                let (index, label) = self.class_of(right, tally);
                tally.relabeled += 1;
                Some(ClassScore { index, label: label.to_owned(), score: 1.0 })
            }
            _ => prediction.classes().first().map(|best| ClassScore { score: 1.0, ..best.clone() }),
        };
        right.into_iter().collect()
    }

    /// A box that a person added.
    fn added_box<'r>(
        &'r self,
        size: [u32; 2],
        index: usize,
        verdict: &'r Verdict,
        tally: &mut Tally,
    ) -> Option<ChosenBox<'r>> {
        let drawn = verdict.drawn()?;
        let (class_id, label) = self.class_of(drawn.class(), tally);
        let bounds = drawn.bounds();
        let detection = Detection::new(bounds, class_id, label, 1.0);
        tally.added += 1;
        Some(ChosenBox {
            index,
            detection: Cow::Owned(detection),
            bounds,
            clipped: inside(&bounds, size),
            class_id,
            label,
            score: 1.0,
            is_by_person: true,
            verdict: Some(verdict).filter(|_| !self.replaces_boxes()),
        })
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
        let inherited = row.verdict.as_ref().filter(|verdict| verdict.applies_to_boxes());
        let corrects = self.options.applies_corrections();
        let keeps = match self.options.verdicts {
            VerdictChoice::All => true,
            VerdictChoice::WithoutRejected => verdict.or(inherited) != Some(&Verdict::Reject),
            VerdictChoice::Corrected => {
                verdict.or(inherited).is_some_and(|verdict| VerdictKind::from(verdict).confirms())
            }
        };
        if !keeps {
            return None;
        }
        let right = verdict.and_then(Verdict::right_class).filter(|right| corrects && *right != detection.label);
        let (class_id, label) = match right {
            Some(right) => self.class_of(right, tally),
            None => (detection.class_id, detection.label.as_str()),
        };
        let moved = right_box(verdict).filter(|_| self.has_corrections());
        tally.moved += u64::from(moved.is_some());
        let bounds = moved.unwrap_or(detection.bounds);
        let score = if self.is_corrected() { 1.0 } else { detection.score };
        let mut chosen = ChosenBox {
            index,
            detection: Cow::Borrowed(detection),
            bounds,
            clipped: inside(&bounds, [prediction.width, prediction.height]),
            class_id,
            label,
            score,
            is_by_person: class_id != detection.class_id || bounds != detection.bounds,
            verdict,
        };
        if self.replaces_boxes() {
            tally.relabeled += u64::from(chosen.is_relabeled());
            chosen.detection = Cow::Owned(chosen.to_detection());
            chosen.verdict = None;
        }
        Some(chosen)
    }

    /// The id and name of a class that a person gave.
    fn class_of<'r>(&'r self, name: &'r str, tally: &mut Tally) -> (u32, &'r str) {
        self.context.run.labels.find(name).unwrap_or_else(|| {
            tally.new_classes.insert(name.to_owned());
            let id = self.new_ids.get(name).copied().unwrap_or(NEW_CLASS);
            (id, name)
        })
    }
}

/// The id of the first class that a person gave, if the model's classes have no names.
const FIRST_NEW_CLASS: u32 = 100_000;

/// The part of the box inside the image, if it has an area.
pub(super) fn inside(bounds: &BoundingBox, [width, height]: [u32; 2]) -> Option<BoundingBox> {
    let clipped = bounds.clipped(width, height);
    (bounds.is_finite() && clipped.area() > 0.0).then_some(clipped)
}
