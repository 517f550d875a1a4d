//! All numbers of an evaluation, as written to a file and shown.

use serde::Serialize;

use super::classification::ClassificationMetrics;
use super::confident_errors::ConfidentError;
use super::detection::DetectionMetrics;
use super::detection_draws::DetectionIntervals;
use super::ground_truth::Counted;
use super::intervals::Interval;
use crate::annotations::matching::MatchSummary;

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

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClassificationIntervals {
    pub top1: Option<Interval>,
    pub top5: Option<Interval>,
}
