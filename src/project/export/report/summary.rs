//! The counts of a report.

use std::collections::{BTreeMap, BTreeSet};

use strum::VariantArray;

use super::super::row::{ChosenContent, ChosenImage, Unpredicted};
use crate::domain::{SampleUri, Verdict};
use crate::review::VerdictKind;

/// The number of failed images that are named; others are only counted.
const MAX_FAILURES: usize = 200;

/// Grows with the number of classes and tags, not of images.
#[derive(Debug, Default)]
pub(super) struct Summary {
    pub images: u64,
    pub unpredicted: u64,
    /// Images whose file changed after prediction.
    pub outdated: u64,
    pub failed: u64,
    pub failures: Vec<(SampleUri, String)>,
    /// Predicted images without a box.
    pub without_boxes: u64,
    /// The scores of the boxes, or of each image's top class.
    pub scores: Histogram,
    /// The counts by class id.
    pub classes: BTreeMap<u32, ClassCount>,
    pub image_verdicts: VerdictCounts,
    pub box_verdicts: VerdictCounts,
    pub notes: u64,
    pub tags: BTreeMap<String, u64>,
}

#[derive(Debug, Default)]
pub(super) struct ClassCount {
    pub label: String,
    pub images: u64,
    pub boxes: u64,
    score_sum: f64,
}

impl ClassCount {
    pub(super) fn mean_score(&self) -> f64 {
        self.score_sum / self.boxes as f64
    }
}

/// The counts by verdict, in the order of its variants.
#[derive(Debug, Default)]
pub(super) struct VerdictCounts([u64; VerdictKind::VARIANTS.len()]);

impl VerdictCounts {
    fn add(&mut self, verdict: &Verdict) {
        self.0[VerdictKind::from(verdict) as usize] += 1;
    }

    pub(super) fn of(&self, kind: VerdictKind) -> u64 {
        self.0[kind as usize]
    }

    pub(super) fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// Scores in twenty equal bins from 0 to 1.
#[derive(Debug, Default)]
pub(super) struct Histogram {
    pub bins: [u64; Self::BINS],
}

impl Histogram {
    pub(super) const BINS: usize = 20;

    fn add(&mut self, score: f32) {
        let bin = (score.clamp(0.0, 1.0) * Self::BINS as f32) as usize;
        self.bins[bin.min(Self::BINS - 1)] += 1;
    }

    pub(super) fn total(&self) -> u64 {
        self.bins.iter().sum()
    }
}

impl Summary {
    pub(super) fn predicted(&self) -> u64 {
        self.images - self.unpredicted - self.outdated - self.failed
    }

    pub(super) fn add(&mut self, image: &ChosenImage) {
        let row = image.row;
        self.images += 1;
        if let Some(verdict) = &row.verdict {
            self.image_verdicts.add(verdict);
        }
        self.notes += u64::from(row.note.is_some());
        for tag in &row.tags {
            *self.tags.entry(tag.clone()).or_default() += 1;
        }
        match &image.prediction {
            Err(Unpredicted::NotYet) => self.unpredicted += 1,
            Err(Unpredicted::Outdated) => self.outdated += 1,
            Err(Unpredicted::Failed(reason)) => {
                self.failed += 1;
                if self.failures.len() < MAX_FAILURES {
                    self.failures.push((row.sample.uri.clone(), (*reason).to_owned()));
                }
            }
            Ok(prediction) => self.add_content(&prediction.content),
        }
    }

    fn add_content(&mut self, content: &ChosenContent) {
        match content {
            ChosenContent::Classes(classes) => {
                if let Some(best) = classes.first() {
                    self.add_score(best.index, &best.label, best.score);
                    self.count_image(best.index);
                }
            }
            ChosenContent::Boxes(boxes) => {
                self.without_boxes += u64::from(boxes.is_empty());
                let mut seen = BTreeSet::new();
                for chosen in boxes {
                    if let Some(verdict) = chosen.verdict {
                        self.box_verdicts.add(verdict);
                    }
                    // The model gave an added box no score.
                    if matches!(chosen.verdict, Some(Verdict::Added(_))) {
                        continue;
                    }
                    let detection = &chosen.detection;
                    self.add_score(detection.class_id, &detection.label, detection.score);
                    seen.insert(detection.class_id);
                }
                for class_id in seen {
                    self.count_image(class_id);
                }
            }
        }
    }

    fn add_score(&mut self, class_id: u32, label: &str, score: f32) {
        self.scores.add(score);
        let count = self
            .classes
            .entry(class_id)
            .or_insert_with(|| ClassCount { label: label.to_owned(), ..ClassCount::default() });
        count.boxes += 1;
        count.score_sum += f64::from(score);
    }

    fn count_image(&mut self, class_id: u32) {
        if let Some(count) = self.classes.get_mut(&class_id) {
            count.images += 1;
        }
    }
}
