//! The metrics of a detector against ground truth.

use std::collections::BTreeMap;

use serde::Serialize;

use super::coco::CocoBuilder;
use super::curve::{BestThreshold, Curve, ScoredOutcomes, add_truths, add_voc, voc_ap};
use super::mean;
use super::objects::{CORRECT_IOU, ClassErrors, ErrorCost, ImageObjects, Outcome, Overlaps, add_errors, error_costs};
use crate::domain::BoxRole;
use crate::review::{ClassOutcomes, Confusion, OutcomeKind};

/// Collects images one by one and measures them together.
pub struct DetectionEvaluation {
    classes: Vec<EvaluatedClass>,
    /// The minimum score of each class.
    thresholds: Vec<f64>,
    coco: CocoBuilder,
    /// As Pascal VOC matches them.
    voc: Vec<ScoredOutcomes>,
    /// As COCO matches them.
    outcomes: Vec<ScoredOutcomes>,
    errors: Vec<ClassErrors>,
    confusion: Confusion,
    images: u64,
}

/// A ground-truth class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct EvaluatedClass {
    /// Its number in the ground truth; `null` if that has only names.
    pub id: Option<i64>,
    pub name: String,
}

/// All metrics of a detector. A metric is `None`, `null` in JSON, if there is nothing to measure: no object, or no
/// detection. AP and AR are those of COCO (`pycocotools`): classes without objects do not count, and at most 100
/// detections per image and class.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct DetectionMetrics {
    pub task: &'static str,
    pub images: u64,
    /// AP averaged over an IoU of 0.50, 0.55 … 0.95.
    pub ap: Option<f64>,
    pub ap50: Option<f64>,
    pub ap75: Option<f64>,
    /// Objects below 32² square pixels.
    pub ap_small: Option<f64>,
    /// Objects from 32² to 96² square pixels.
    pub ap_medium: Option<f64>,
    pub ap_large: Option<f64>,
    /// The recall with one detection per image.
    pub ar1: Option<f64>,
    pub ar10: Option<f64>,
    pub ar100: Option<f64>,
    pub ar_small: Option<f64>,
    pub ar_medium: Option<f64>,
    pub ar_large: Option<f64>,
    /// Mean AP of Pascal VOC at IoU 0.50 with eleven points (2007).
    pub voc2007_ap: Option<f64>,
    /// Mean AP of Pascal VOC at IoU 0.50, the area under the curve (2010 to 2012).
    pub voc2012_ap: Option<f64>,
    /// The minimum score for precision, recall and F1; `None` if it differs between classes.
    pub threshold: Option<f64>,
    /// At IoU 0.50, all classes pooled, above the minimum score.
    pub precision: Option<f64>,
    pub recall: Option<f64>,
    pub f1: Option<f64>,
    pub true_positives: u64,
    pub false_positives: u64,
    #[serde(rename = "missed")]
    pub false_negatives: u64,
    /// The minimum score with the highest F1, the same for all classes.
    pub best: Option<BestThreshold>,
    /// Precision, recall and F1 over the minimum score, all classes pooled.
    #[serde(skip)]
    pub curve: Curve,
    pub classes: Vec<ClassMetrics>,
    /// TIDE's kinds of errors.
    pub errors: BTreeMap<&'static str, ErrorCost>,
    /// Detections of any class above the minimum score against objects at IoU 0.50. Each detection counts once, and so
    /// does each object that no detection of any class covers.
    pub confusion: Vec<ConfusionCell>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ClassMetrics {
    #[serde(flatten)]
    pub class: EvaluatedClass,
    pub ap: Option<f64>,
    pub ap50: Option<f64>,
    pub voc2007_ap: Option<f64>,
    pub voc2012_ap: Option<f64>,
    /// Objects that count.
    pub truths: u64,
    /// Detections with any score, without ignored ones.
    pub detections: u64,
    pub threshold: f64,
    pub precision: Option<f64>,
    pub recall: Option<f64>,
    pub f1: Option<f64>,
    pub best: Option<BestThreshold>,
    /// Interpolated precision at IoU 0.50 at recall 0.00, 0.01 … 1.00 (COCO); empty without objects.
    pub precision_at_recall: Vec<f64>,
    #[serde(skip)]
    pub curve: Curve,
}

/// How often one class was predicted as another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ConfusionCell {
    /// Index into the classes; `None`: background, so the detection is wrong.
    pub truth: Option<u32>,
    /// Index into the classes; `None`: no detection of any class covers the object, or the image was predicted as a
    /// class that the ground truth does not have.
    pub predicted: Option<u32>,
    pub count: u64,
}

/// The outcome of each detection of an image.
pub struct FoundOutcomes {
    overlaps: Overlaps,
    outcomes: Vec<Outcome>,
}

impl FoundOutcomes {
    /// In the order of the detections.
    pub fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }

    pub(super) fn overlaps(&self) -> &Overlaps {
        &self.overlaps
    }

    /// The object of `image`, which must be the evaluated one, that a detection overlaps, with the IoU.
    pub fn nearest(&self, image: &ImageObjects, detection: usize) -> Option<(u32, f64)> {
        self.overlaps.nearest(image, detection, *self.outcomes.get(detection)?)
    }
}

impl ClassMetrics {
    /// `outcomes` are sorted. `ap` is at IoU 0.50:0.95 and at 0.50, `voc` with eleven points and as the area.
    fn new(
        class: EvaluatedClass,
        threshold: f64,
        outcomes: &ScoredOutcomes,
        [ap, ap50]: [Option<f64>; 2],
        voc: Option<[f64; 2]>,
        precision_at_recall: Vec<f64>,
    ) -> Self {
        let counts = outcomes.at(threshold);
        Self {
            class,
            ap,
            ap50,
            voc2007_ap: voc.map(|[eleven_points, _]| eleven_points),
            voc2012_ap: voc.map(|[_, area]| area),
            truths: outcomes.truths(),
            detections: outcomes.detections(),
            threshold,
            precision: counts.precision(),
            recall: counts.recall(),
            f1: counts.f1(),
            best: outcomes.best(),
            precision_at_recall,
            curve: Curve::from_outcomes(outcomes),
        }
    }
}

impl DetectionEvaluation {
    /// `thresholds` are the minimum scores of the classes, `0.0..=1.0`.
    pub fn new(classes: Vec<EvaluatedClass>, thresholds: Vec<f64>) -> Self {
        let have_objects = vec![true; classes.len()];
        Self::with_objects(classes, thresholds, &have_objects)
    }

    /// As [`Self::new`]; only classes with `have_objects` occur as objects in the images.
    pub fn with_objects(classes: Vec<EvaluatedClass>, thresholds: Vec<f64>, have_objects: &[bool]) -> Self {
        let count = classes.len();
        Self {
            thresholds,
            coco: CocoBuilder::new(have_objects),
            voc: vec![ScoredOutcomes::default(); count],
            outcomes: vec![ScoredOutcomes::default(); count],
            errors: vec![ClassErrors::default(); count],
            confusion: Confusion::new(),
            images: 0,
            classes,
        }
    }

    /// Adds the next image, in the order that breaks ties between equal scores. Objects and detections of classes
    /// outside the evaluation are skipped. Returns the outcome of each detection.
    pub fn add(&mut self, image: &ImageObjects) -> FoundOutcomes {
        self.images += 1;
        self.coco.add(image);
        let overlaps = Overlaps::new(image);
        add_voc(&mut self.voc, image, &overlaps);
        let outcomes = overlaps.outcomes(image, CORRECT_IOU);
        add_errors(&mut self.errors, image, &overlaps, &outcomes);
        for (found, outcome) in image.detections.iter().zip(&outcomes) {
            let of_class = self.outcomes.get_mut(found.class as usize).filter(|_| outcome.kind != OutcomeKind::Ignored);
            if let Some(of_class) = of_class {
                of_class.add(found.score, !outcome.kind.is_wrong());
            }
        }
        add_truths(&mut self.outcomes, image);
        self.add_confusion(image, &outcomes);
        FoundOutcomes { overlaps, outcomes }
    }

    /// Each visible detection counts once, and so does each object that no visible detection covers, whatever its
    /// class.
    fn add_confusion(&mut self, image: &ImageObjects, outcomes: &[Outcome]) {
        let is_shown =
            |class: u32, score: f64| self.thresholds.get(class as usize).is_some_and(|least| score >= *least);
        let mut is_missed: Vec<bool> = image.truths.iter().map(|truth| truth.role == BoxRole::Object).collect();
        for (found, outcome) in image.detections.iter().zip(outcomes) {
            if outcome.kind == OutcomeKind::Ignored || !is_shown(found.class, found.score) {
                continue;
            }
            if let Some(truth) = outcome.truth {
                is_missed[truth] = false;
            }
            let cell = (outcome.truth.map(|truth| image.truths[truth].class), Some(found.class));
            *self.confusion.entry(cell).or_default() += 1;
        }
        for (truth, _) in image.truths.iter().zip(&is_missed).filter(|(_, is_missed)| **is_missed) {
            *self.confusion.entry((Some(truth.class), None)).or_default() += 1;
        }
    }

    /// # Errors
    /// The boxes cannot be measured; the text says why.
    pub fn finish(mut self) -> Result<DetectionMetrics, String> {
        self.outcomes.iter_mut().chain(&mut self.voc).for_each(ScoredOutcomes::sort);
        let coco = self.coco.evaluate()?;
        let voc: Vec<Option<[f64; 2]>> = self.voc.iter().map(voc_ap).collect();
        let [ap, ap50, ap75, ap_small, ap_medium, ap_large, ar1, ar10, ar100, ar_small, ar_medium, ar_large] =
            coco.summary;
        let mut all = ClassOutcomes::default();
        let mut classes = Vec::new();
        let parts = self.classes.into_iter().zip(&self.thresholds).zip(&self.outcomes).zip(&coco.by_class).zip(&voc);
        for (((((class, &threshold), outcomes), ap), voc), precision_at_recall) in parts.zip(coco.curves) {
            all += outcomes.at(threshold);
            classes.push(ClassMetrics::new(class, threshold, outcomes, *ap, *voc, precision_at_recall));
        }
        let mean = |of: fn(&ClassMetrics) -> Option<f64>| mean(classes.iter().filter_map(of));
        let threshold = self.thresholds.first().copied();
        let pooled = ScoredOutcomes::pooled(&self.outcomes);
        let cells = self.confusion.into_iter();
        Ok(DetectionMetrics {
            task: "detection",
            images: self.images,
            ap,
            ap50,
            ap75,
            ap_small,
            ap_medium,
            ap_large,
            ar1,
            ar10,
            ar100,
            ar_small,
            ar_medium,
            ar_large,
            voc2007_ap: mean(|class| class.voc2007_ap),
            voc2012_ap: mean(|class| class.voc2012_ap),
            threshold: threshold.filter(|first| self.thresholds.iter().all(|one| one == first)),
            precision: all.precision(),
            recall: all.recall(),
            f1: all.f1(),
            true_positives: all.correct,
            false_positives: all.wrong,
            false_negatives: all.false_negatives,
            best: pooled.best(),
            curve: Curve::from_outcomes(&pooled),
            classes,
            errors: error_costs(self.errors),
            confusion: cells.map(|((truth, predicted), count)| ConfusionCell { truth, predicted, count }).collect(),
        })
    }
}

#[cfg(test)]
mod tests;
