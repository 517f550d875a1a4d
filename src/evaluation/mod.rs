//! The agreement of two runs over the same images, and the metrics of a run against ground truth.
//!
//! Pure arithmetic over stored predictions: knows nothing about files, threads or the screen. Of two runs, neither is
//! the reference; one is called left and the other right.
//!
//! The **disagreement** of an image is a number in `0.0..=1.0` for sorting images, worst first:
//!
//! - Classification: if both have the same top class, half the difference of its two scores (`0.0..=0.5`). Otherwise (a
//!   *flip*), 0.5 plus half the lower of the two top scores (`0.5..=1.0`): any flip is worse than any score difference,
//!   and worse the higher both scores are.
//! - Detection: `(unmatched + sum of the score differences of matched boxes) / (unmatched + matched)`, with the
//!   unmatched boxes of both sides counted together; zero if neither run shows a box. Boxes are matched by
//!   [`match_boxes`].
//!
//! Against ground truth, AP and AR are computed by `hotcoco`, which equals pycocotools. This module adds what it lacks:
//! the outcome of each box ([`outcomes`]), precision and recall at a minimum score, Pascal VOC's AP, and
//! classification. The cost of each kind of error is also computed here, because it follows from the outcomes.

mod agreement;
mod chance;
mod class_gains;
mod classification;
mod coco;
mod confident_errors;
mod confident_learning;
mod curve;
mod detection;
mod detection_draws;
mod fix_gain;
mod ground_truth;
mod intervals;
mod matching;
mod object_lab;
mod objects;
mod pattern_search;
mod patterns;
mod suspicious;

use std::sync::Arc;

use serde::Serialize;

use crate::annotations::matching::MatchSummary;

pub use agreement::{Agreement, AgreementSummary, ClassChange, Comparison, ImageAgreement, ScoreDifferences};
pub use class_gains::{ClassGain, class_gains};
pub use classification::{
    CALIBRATION_BINS, ClassificationEvaluation, ClassificationMetrics, ClassifiedClass, OTHER_CLASS, ReliabilityBin,
};
pub use confident_errors::{ConfidentError, ConfidentErrors, ErrorSide};
pub use confident_learning::ConfidentThresholds;
pub use curve::{BestThreshold, CoveragePoint, Curve, CurvePoint, ScorePoint, ScoredOutcomes};
pub use detection::{
    ClassMetrics, ConfusionCell, DetectionEvaluation, DetectionMetrics, EvaluatedClass, FoundOutcomes,
};
pub use detection_draws::{DetectionDraws, DetectionIntervals};
pub use ground_truth::{
    BoxChecks, Counted, EvaluatedClasses, GroundTruth, ImageSides, MatchedClasses, NoTruth, Sides,
    annotated_detections, detections,
};
pub use intervals::{DRAWS, DrawnNumber, Interval, each_draw, repeated};
pub use matching::{BoxMatches, ClassMap, MATCHING_IOU, ScoredBox, match_boxes};
pub use objects::{
    BACKGROUND_IOU, CORRECT_IOU, DetectedObject, ErrorCost, ImageObjects, Outcome, TrueObject, outcomes,
};
pub use pattern_search::find_patterns;
pub use patterns::{
    Attribute, ErrorKind, ErrorPattern, ErrorPatterns, FoundPatterns, ImageGroup, Likeness, PatternLine, SHOWN_Q,
};
pub use suspicious::{HIDDEN_MISTAKES, LabelCorrections, Suspicious, SuspiciousLabel, SuspiciousLabels, training_sign};

/// The numbers of an evaluation and its inputs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evaluated {
    #[serde(flatten)]
    pub metrics: Metrics,
    #[serde(flatten)]
    pub counted: Counted,
    pub matching: MatchSummary,
    /// Images with errors above the minimum score, most confident first; no more than a person would look at.
    #[serde(skip)]
    pub confident_errors: Vec<ConfidentError>,
    /// `None` if they were not requested.
    #[serde(skip)]
    pub suspicious: Option<Arc<Suspicious>>,
}

impl Evaluated {
    /// Whether every image and entry was used, and there is no reason to doubt the match.
    pub fn is_complete(&self) -> bool {
        self.counted.is_complete() && self.matching.doubts.is_empty()
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Metrics {
    Detection {
        #[serde(flatten)]
        metrics: Box<DetectionMetrics>,
        /// 95% intervals; `null` without resamples.
        intervals: Option<DetectionIntervals>,
    },
    Classification {
        #[serde(flatten)]
        metrics: Box<ClassificationMetrics>,
        intervals: Option<ClassificationIntervals>,
    },
}

impl Metrics {
    /// AP, or top-1.
    pub fn headline(&self) -> Option<f64> {
        match self {
            Self::Detection { metrics, .. } => metrics.ap,
            Self::Classification { metrics, .. } => metrics.top1,
        }
    }
}

/// `None` without numbers.
fn mean(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    let numbers: Vec<f64> = numbers.collect();
    (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64)
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClassificationIntervals {
    pub top1: Option<Interval>,
    pub top5: Option<Interval>,
}
