//! Precision, recall and F1 at a minimum score.

use serde::Serialize;

use super::objects::ImageObjects;
use crate::domain::BoxRole;
use crate::review::ClassOutcomes;

/// The correct and wrong detections of one class, and the number of objects.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScoredOutcomes {
    /// Score, and whether the detection is correct; highest score first after [`Self::sort`].
    scored: Vec<(f64, bool)>,
    truths: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BestThreshold {
    /// `0.0..=1.0`.
    pub threshold: f64,
    pub f1: f64,
}

/// Adds the objects of an image that count, by class.
pub(super) fn add_truths(classes: &mut [ScoredOutcomes], image: &ImageObjects) {
    for truth in image.truths.iter().filter(|truth| truth.role == BoxRole::Object) {
        if let Some(class) = classes.get_mut(truth.class as usize) {
            class.truths += 1;
        }
    }
}

impl ScoredOutcomes {
    #[cfg(test)]
    pub fn new(scored: impl IntoIterator<Item = (f64, bool)>, truths: u64) -> Self {
        let mut outcomes = Self { scored: scored.into_iter().collect(), truths };
        outcomes.sort();
        outcomes
    }

    pub fn add(&mut self, score: f64, is_correct: bool) {
        self.scored.push((score, is_correct));
    }

    pub fn sort(&mut self) {
        self.scored.sort_by(|one, other| other.0.total_cmp(&one.0));
    }

    pub fn truths(&self) -> u64 {
        self.truths
    }

    pub fn detections(&self) -> u64 {
        self.scored.len() as u64
    }

    /// The counts if only detections with a score of at least `threshold` are shown.
    pub fn at(&self, threshold: f64) -> ClassOutcomes {
        let shown = self.scored.partition_point(|(score, _)| *score >= threshold);
        let correct = self.scored[..shown].iter().filter(|(_, is_correct)| *is_correct).count() as u64;
        ClassOutcomes { correct, wrong: shown as u64 - correct, false_negatives: self.truths.saturating_sub(correct) }
    }

    /// The counts at each score, highest first. Equal scores are shown together or not at all.
    pub fn steps(&self) -> impl Iterator<Item = (f64, ClassOutcomes)> {
        let mut counts = ClassOutcomes { false_negatives: self.truths, ..ClassOutcomes::default() };
        self.scored.chunk_by(|one, next| one.0 == next.0).map(move |equal| {
            let correct = equal.iter().filter(|(_, is_correct)| *is_correct).count() as u64;
            counts += ClassOutcomes { correct, wrong: equal.len() as u64 - correct, false_negatives: 0 };
            counts.false_negatives = self.truths.saturating_sub(counts.correct);
            (equal[0].0, counts)
        })
    }

    /// The threshold with the highest F1, the higher one on a tie; `None` if no detection is correct.
    pub fn best(&self) -> Option<BestThreshold> {
        let mut best: Option<BestThreshold> = None;
        for (threshold, counts) in self.steps() {
            if let Some(f1) = counts.f1().filter(|f1| *f1 > best.map_or(0.0, |best| best.f1)) {
                best = Some(BestThreshold { threshold, f1 });
            }
        }
        best
    }

    /// All classes together.
    pub fn pooled<'o>(classes: impl IntoIterator<Item = &'o Self>) -> Self {
        let mut pooled = Self::default();
        for class in classes {
            pooled.scored.extend_from_slice(&class.scored);
            pooled.truths += class.truths;
        }
        pooled.sort();
        pooled
    }

    /// Score and correctness of each detection, highest score first.
    pub fn scored(&self) -> &[(f64, bool)] {
        &self.scored
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_at_a_threshold_include_equal_scores() {
        let outcomes = ScoredOutcomes::new([(0.5, true), (0.9, true), (0.7, false)], 4);
        let counts = outcomes.at(0.5);
        assert_eq!((counts.correct, counts.wrong, counts.false_negatives), (2, 1, 2));
        assert_eq!(outcomes.at(0.95), ClassOutcomes { correct: 0, wrong: 0, false_negatives: 4 });
        assert_eq!(outcomes.at(0.95).precision(), None);
    }

    #[test]
    fn best_minimum_score_never_splits_ties() {
        let outcomes = ScoredOutcomes::new([(0.9, true), (0.5, true), (0.5, false), (0.5, false), (0.5, false)], 2);
        let best = outcomes.best().unwrap();
        assert_eq!(best.threshold, 0.9);
        assert!((best.f1 - 2.0 / 3.0).abs() < 1e-12);
    }
}
