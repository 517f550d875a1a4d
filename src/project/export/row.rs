//! The input of every format: images with predictions and verdicts, and the selected part of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::ExportError;
use super::tally::Tally;
use crate::domain::{
    BoundingBox, ClassScore, Detection, LabelSet, ModelTask, Prediction, PredictionContent, RunInfo, Sample, SampleId,
    SampleUri, Verdict, ViewSettings,
};
use crate::evaluation::Evaluated;
use crate::image::decode::DecodeLimits;
use crate::image::source::Source;
use crate::project::export::options::{BoxChoice, ClassChoice, ExportOptions, VerdictChoice};
use crate::review::{Outcomes, VerdictKind};

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
    pub(crate) fn warnings(&self) -> &[String] {
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

/// The exported part of a row.
pub(crate) struct ChosenImage<'r> {
    pub(crate) row: &'r ExportRow,
    pub(crate) prediction: ChosenPrediction<'r>,
}

/// The boxes of an image, with its width and height in pixels.
pub(crate) struct BoxesOfImage<'i, 'r> {
    pub(crate) size: (u32, u32),
    pub(crate) boxes: &'i [ChosenBox<'r>],
}

impl<'r> ChosenImage<'r> {
    /// The boxes, for formats with only boxes; without a prediction, the tally records why there are none.
    pub(crate) fn boxes(&self, tally: &mut Tally) -> Option<BoxesOfImage<'_, 'r>> {
        let ChosenPrediction::Boxes { width, height, boxes } = &self.prediction else {
            self.count_unpredicted(tally);
            return None;
        };
        Some(BoxesOfImage { size: (*width, *height), boxes })
    }

    /// Records in the tally why this image is skipped, for formats that require a prediction.
    pub(crate) fn count_unpredicted(&self, tally: &mut Tally) {
        match self.prediction {
            ChosenPrediction::Unpredicted => tally.unpredicted += 1,
            ChosenPrediction::Failed(_) => tally.failed += 1,
            // Those are counted for every format.
            ChosenPrediction::Outdated | ChosenPrediction::Boxes { .. } | ChosenPrediction::Classes { .. } => {}
        }
    }
}

pub(crate) enum ChosenPrediction<'r> {
    Unpredicted,
    /// The prediction is of an older version of the file.
    Outdated,
    Failed(&'r str),
    /// The boxes in stored order: highest score first.
    Boxes {
        width: u32,
        height: u32,
        boxes: Vec<ChosenBox<'r>>,
    },
    /// Best first.
    Classes {
        width: u32,
        height: u32,
        classes: &'r [ClassScore],
    },
}

impl ChosenPrediction<'_> {
    /// The exported part as a prediction, for drawing; `None` without a prediction.
    pub(crate) fn prediction(&self) -> Option<Prediction> {
        let (width, height, prediction) = match self {
            Self::Unpredicted | Self::Outdated | Self::Failed(_) => return None,
            Self::Boxes { width, height, boxes } => {
                let detections = boxes.iter().map(|chosen| chosen.detection.clone());
                (width, height, PredictionContent::Detections(detections.collect()))
            }
            Self::Classes { width, height, classes } => (width, height, PredictionContent::Classes(classes.to_vec())),
        };
        Some(Prediction { width: *width, height: *height, content: prediction, warnings: Vec::new() })
    }
}

pub(crate) struct ChosenBox<'r> {
    /// Index into the stored detections.
    pub(crate) index: usize,
    /// The box as the model returned it.
    pub(crate) detection: &'r Detection,
    /// The part inside the image; `None` if it has no area.
    pub(crate) clipped: Option<BoundingBox>,
    /// The class in datasets: the judged one if requested, otherwise the model's.
    pub(crate) class_id: u32,
    pub(crate) label: &'r str,
    pub(crate) verdict: Option<&'r Verdict>,
}

impl ChosenBox<'_> {
    pub(crate) fn is_relabeled(&self) -> bool {
        self.class_id != self.detection.class_id
    }
}

/// The name of the right class, if the verdict has one.
pub(crate) fn right_class(verdict: Option<&Verdict>) -> Option<&str> {
    match verdict {
        Some(Verdict::WrongClass(right)) => Some(right),
        _ => None,
    }
}

/// Decides what is exported.
pub(crate) struct Chooser<'c> {
    context: &'c ExportContext,
    options: ExportOptions,
}

impl<'c> Chooser<'c> {
    /// # Errors
    /// The format supports only boxes and the run has none.
    pub(crate) fn new(context: &'c ExportContext, options: ExportOptions) -> Result<Self, ExportError> {
        if !options.format.takes(context.task()) {
            return Err(ExportError::NeedsBoxes { format: options.format });
        }
        Ok(Self { context, options })
    }

    /// `None` if the image is skipped.
    pub(crate) fn choose<'r>(&'r self, row: &'r ExportRow, tally: &mut Tally) -> Option<ChosenImage<'r>> {
        tally.outdated += u64::from(row.is_outdated);
        let prediction = match &row.result {
            None if row.is_outdated => ChosenPrediction::Outdated,
            None => ChosenPrediction::Unpredicted,
            Some(Err(reason)) => ChosenPrediction::Failed(reason),
            Some(Ok(prediction)) => self.choose_prediction(row, prediction, tally),
        };
        let has_boxes = matches!(&prediction, ChosenPrediction::Boxes { boxes, .. } if !boxes.is_empty());
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
        Some(ChosenImage { row, prediction })
    }

    fn choose_prediction<'r>(
        &'r self,
        row: &'r ExportRow,
        prediction: &'r Prediction,
        tally: &mut Tally,
    ) -> ChosenPrediction<'r> {
        let (width, height) = (prediction.width, prediction.height);
        if self.context.task() == ModelTask::Classification {
            let classes = match self.options.boxes {
                BoxChoice::Visible => self.context.view.visible_classes(prediction),
                BoxChoice::All => prediction.classes(),
            };
            return ChosenPrediction::Classes { width, height, classes };
        }
        let mut indices = match self.options.boxes {
            BoxChoice::Visible => {
                let confirmed = row.confirmed_boxes();
                let view = &self.context.view;
                view.visible_detections(prediction, &confirmed)
            }
            BoxChoice::All => (0..prediction.detections().len()).collect(),
        };
        indices.sort_unstable();
        let boxes = indices.into_iter().filter_map(|index| self.choose_box(row, prediction, index, tally));
        ChosenPrediction::Boxes { width, height, boxes: boxes.collect() }
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
