//! The metrics of a classifier against ground truth.

use std::collections::BTreeMap;

use hotcoco::metrics::calibration::{calibration_curve, calibration_error};
use serde::Serialize;

use super::curve::{CoveragePoint, Curve, ScoredOutcomes};
use super::detection::{ConfusionCell, EvaluatedClass};
use super::mean;
use crate::review::{ClassOutcomes, share};

/// Equal-width bins of the reliability diagram and the calibration error (Guo et al. 2017).
pub const CALIBRATION_BINS: usize = 15;

/// A predicted class that the ground truth does not have.
pub const OTHER_CLASS: u32 = u32::MAX;

/// Collects images one by one.
pub struct ClassificationEvaluation {
    classes: Vec<EvaluatedClass>,
    /// Images by true and predicted class.
    confusion: BTreeMap<(u32, u32), u64>,
    /// Images with their class among the first five, and all images.
    top5: u64,
    images: u64,
    /// The top score of each image, and whether the top class is correct.
    scores: Vec<f64>,
    is_correct: Vec<bool>,
    /// The smallest number of classes in a prediction.
    kept: usize,
}

/// All metrics of a classifier. A metric is `None`, `null` in JSON, if there is nothing to measure: a class without
/// images has no recall, one that is never predicted no precision.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ClassificationMetrics {
    pub task: &'static str,
    pub images: u64,
    pub top1: Option<f64>,
    /// `None` if predictions have fewer than five classes and the ground truth has more.
    pub top5: Option<f64>,
    /// The means over classes that have a value.
    pub macro_precision: Option<f64>,
    pub macro_recall: Option<f64>,
    pub macro_f1: Option<f64>,
    /// Expected calibration error of the top class.
    pub ece: Option<f64>,
    pub ece_bins: usize,
    pub reliability: Vec<ReliabilityBin>,
    /// The accuracy of the top class on the images with at least a minimum score.
    #[serde(skip)]
    pub curve: Curve<CoveragePoint>,
    pub classes: Vec<ClassifiedClass>,
    pub confusion: Vec<ConfusionCell>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassifiedClass {
    #[serde(flatten)]
    pub class: EvaluatedClass,
    /// Images of the class.
    pub truths: u64,
    /// Images predicted as the class.
    pub predictions: u64,
    pub precision: Option<f64>,
    pub recall: Option<f64>,
    pub f1: Option<f64>,
}

/// The images with a top score in a range.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ReliabilityBin {
    /// Inclusive.
    pub from: f64,
    /// Exclusive, except in the last bin.
    pub to: f64,
    pub images: usize,
    /// The mean top score; `None` without images.
    pub mean_score: Option<f64>,
    /// The fraction of images whose top class is correct.
    pub accuracy: Option<f64>,
}

impl ClassificationEvaluation {
    pub fn new(classes: Vec<EvaluatedClass>) -> Self {
        Self {
            classes,
            confusion: BTreeMap::new(),
            top5: 0,
            images: 0,
            scores: Vec::new(),
            is_correct: Vec::new(),
            kept: usize::MAX,
        }
    }

    /// Adds an image of class `truth`; `predicted` are classes with scores, best first. Classes are indices into those
    /// of the evaluation, or [`OTHER_CLASS`], which is never correct.
    pub fn add(&mut self, truth: u32, predicted: &[(u32, f64)]) {
        let Some(&(best, score)) = predicted.first() else {
            return;
        };
        *self.confusion.entry((truth, best)).or_default() += 1;
        self.kept = self.kept.min(predicted.len());
        self.images += 1;
        self.top5 += u64::from(predicted.iter().take(5).any(|(class, _)| *class == truth));
        self.scores.push(score);
        self.is_correct.push(best == truth);
    }

    pub fn finish(self) -> ClassificationMetrics {
        let bins = calibration_curve(&self.scores, &self.is_correct, CALIBRATION_BINS);
        let (ece, _) = calibration_error(&bins);
        let has_top5 = self.kept >= 5.min(self.classes.len());
        let mut counts = vec![ClassOutcomes::default(); self.classes.len()];
        for (&(truth, predicted), &count) in &self.confusion {
            if truth == predicted {
                if let Some(counts) = counts.get_mut(truth as usize) {
                    counts.correct += count;
                }
                continue;
            }
            if let Some(counts) = counts.get_mut(truth as usize) {
                counts.false_negatives += count;
            }
            if let Some(counts) = counts.get_mut(predicted as usize) {
                counts.wrong += count;
            }
        }
        let classified = |(class, counts): (EvaluatedClass, &ClassOutcomes)| ClassifiedClass {
            class,
            truths: counts.truths(),
            predictions: counts.correct + counts.wrong,
            precision: counts.precision(),
            recall: counts.recall(),
            f1: counts.f1(),
        };
        let classes: Vec<ClassifiedClass> = self.classes.into_iter().zip(&counts).map(classified).collect();
        let mean = |of: fn(&ClassifiedClass) -> Option<f64>| mean(classes.iter().filter_map(of));
        let cell = |((truth, predicted), count)| {
            let predicted = Some(predicted).filter(|predicted| *predicted != OTHER_CLASS);
            ConfusionCell { truth: Some(truth), predicted, count }
        };
        ClassificationMetrics {
            task: "classification",
            images: self.images,
            top1: share(self.is_correct.iter().map(|is_correct| u64::from(*is_correct)).sum(), self.images),
            top5: share(self.top5, self.images).filter(|_| has_top5),
            macro_precision: mean(|class| class.precision),
            macro_recall: mean(|class| class.recall),
            macro_f1: mean(|class| class.f1),
            ece: (!self.scores.is_empty()).then_some(ece),
            ece_bins: CALIBRATION_BINS,
            curve: Curve::from_outcomes(&ScoredOutcomes::from_top_classes(
                self.scores.into_iter().zip(self.is_correct).collect(),
            )),
            reliability: bins
                .iter()
                .map(|bin| ReliabilityBin {
                    from: bin.bin_lower,
                    to: bin.bin_upper,
                    images: bin.count,
                    mean_score: (bin.count > 0).then_some(bin.avg_confidence),
                    accuracy: (bin.count > 0).then_some(bin.avg_accuracy),
                })
                .collect(),
            confusion: self.confusion.into_iter().map(cell).collect(),
            classes,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::curve::distance;
    use super::*;

    const CLOSE: f64 = 1e-9;
    const THINNED: f64 = 2e-3;

    fn check(what: &str, got: Option<f64>, expected: &Value) {
        let is_close = match (got, expected.as_f64()) {
            (Some(got), Some(expected)) => (got - expected).abs() < CLOSE,
            (got, expected) => got.is_none() && expected.is_none(),
        };
        assert!(is_close, "{what}: {got:?}, expected {expected}");
    }

    /// Each score with its accuracy and coverage is on the curve, which is thinned for drawing.
    fn check_curve(curve: &Curve<CoveragePoint>, expected: &[Value]) {
        assert!(expected.len() > 1, "{} scores", expected.len());
        for row in expected {
            let [threshold, accuracy, coverage] = std::array::from_fn(|column| row[column].as_f64().unwrap());
            let point = CoveragePoint { threshold, accuracy, coverage };
            let lines = curve.points.windows(2).map(|ends| distance(point, ends[0], ends[1]));
            let off = lines.fold(f64::INFINITY, f64::min);
            assert!(off < THINNED, "{point:?} is {off} away");
        }
        let last = expected.last().and_then(|row| row[1].as_f64());
        assert_eq!(curve.points.last().map(|point| (Some(point.accuracy), point.coverage)), Some((last, 1.0)));
    }

    /// `fixture` was written by `tests/evaluation/make_classification.py` with scikit-learn.
    fn check_fixture(fixture: &str) {
        let fixture: Value = serde_json::from_str(fixture).unwrap();
        let count = fixture["classes"].as_u64().unwrap();
        let class = |id| EvaluatedClass { id: Some(id), name: format!("class {id}") };
        let mut evaluation = ClassificationEvaluation::new((0..count as i64).map(class).collect());
        let predictions = fixture["predictions"].as_array().unwrap();
        for (truth, predicted) in fixture["truth"].as_array().unwrap().iter().zip(predictions) {
            let pair = |pair: &Value| (pair[0].as_u64().unwrap() as u32, pair[1].as_f64().unwrap());
            let predicted: Vec<(u32, f64)> = predicted.as_array().unwrap().iter().map(pair).collect();
            evaluation.add(truth.as_u64().unwrap() as u32, &predicted);
        }
        let metrics = evaluation.finish();
        let expected = &fixture["expected"];
        check("top-1", metrics.top1, &expected["top1"]);
        check("top-5", metrics.top5, &expected["top5"]);
        check("macro precision", metrics.macro_precision, &expected["macro_precision"]);
        check("macro recall", metrics.macro_recall, &expected["macro_recall"]);
        check("macro F1", metrics.macro_f1, &expected["macro_f1"]);
        check("calibration error", metrics.ece, &expected["ece"]);
        for (index, class) in metrics.classes.iter().enumerate() {
            check("precision", class.precision, &expected["precision"][index]);
            check("recall", class.recall, &expected["recall"][index]);
            check("F1", class.f1, &expected["f1"][index]);
            assert_eq!(Some(class.truths), expected["truths"][index].as_u64());
        }
        let mut confusion = vec![vec![0; count as usize]; count as usize];
        for cell in &metrics.confusion {
            confusion[cell.truth.unwrap() as usize][cell.predicted.unwrap() as usize] = cell.count;
        }
        assert_eq!(serde_json::to_value(confusion).unwrap(), expected["confusion"]);
        check_curve(&metrics.curve, expected["coverage"].as_array().unwrap());
        let filled: Vec<&ReliabilityBin> = metrics.reliability.iter().filter(|bin| bin.images > 0).collect();
        assert_eq!(filled.len(), expected["bins"].as_array().unwrap().len());
        for (bin, expected) in filled.into_iter().zip(expected["bins"].as_array().unwrap()) {
            assert_eq!(Some(bin.images as u64), expected[0].as_u64());
            check("accuracy of a bin", bin.accuracy, &expected[1]);
            check("mean score of a bin", bin.mean_score, &expected[2]);
        }
    }

    #[test]
    fn metrics_match_scikit_learn() {
        check_fixture(include_str!("../../tests/evaluation/classification/plain.json"));
    }

    #[test]
    fn metrics_match_scikit_learn_with_ties_and_gaps() {
        check_fixture(include_str!("../../tests/evaluation/classification/ties.json"));
    }

    #[test]
    fn metrics_match_scikit_learn_for_few_images() {
        check_fixture(include_str!("../../tests/evaluation/classification/few.json"));
    }

    #[test]
    fn no_images_give_no_metrics() {
        let metrics = ClassificationEvaluation::new(vec![EvaluatedClass::default()]).finish();
        assert_eq!((metrics.images, metrics.top1, metrics.top5, metrics.ece), (0, None, None, None));
    }
}
