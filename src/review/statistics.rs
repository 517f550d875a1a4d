//! The distribution of scores and classes in a run.

use std::sync::Arc;

use super::by_class::ByClass;
use super::facts::Gate;
use super::{Marks, OutcomeCounts, Predictions, SAMPLES_PER_CHECK, Suppressed};
use crate::domain::{ModelTask, ViewSettings};

/// Numbers shown next to the filters.
#[derive(Debug, Clone, PartialEq)]
pub struct Statistics {
    pub task: ModelTask,
    pub histogram: ScoreHistogram,
    pub classes: ClassTable,
    /// Samples with a prediction.
    pub images: usize,
    /// The number of those images with at least one visible box (classifier: whose top class is shown).
    pub images_above: usize,
    /// Visible boxes; zero for a classifier.
    pub boxes_above: usize,
    /// False while suppression is on but not yet known for every sample: all boxes of the others are counted.
    pub is_exact: bool,
    /// The outcomes against ground truth, once [`super::outcome_counts`] has counted them.
    pub outcomes: Option<OutcomeCounts>,
}

/// The scores of all boxes of visible classes and of confirmed boxes, whatever the threshold; for a classifier, those
/// of the top classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScoreHistogram {
    bins: [u32; Self::BINS],
}

/// The classes that are visible at least once.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClassTable {
    /// Lowest id first.
    pub rows: Arc<[ClassRow]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ClassRow {
    pub class: u32,
    /// Images with the class (classifier: as top class).
    pub images: usize,
    /// Visible boxes; for a classifier, the number of images.
    pub boxes: usize,
    /// The mean score of these boxes, `0.0..=1.0`.
    pub mean_score: f32,
}

impl ScoreHistogram {
    pub const BINS: usize = 50;

    /// Counts of scores in `0.00..0.02`, `0.02..0.04`, …; the last bin includes 1.
    pub fn bins(&self) -> &[u32; Self::BINS] {
        &self.bins
    }

    pub fn highest(&self) -> u32 {
        self.bins.iter().copied().max().unwrap_or(0)
    }

    fn add(&mut self, score: f32) {
        // Out-of-range scores go to the ends. NaN would become zero in the cast, so it is skipped.
        if !score.is_nan() {
            let bin = (score * Self::BINS as f32) as usize;
            self.bins[bin.min(Self::BINS - 1)] += 1;
        }
    }
}

/// Counts a run in one pass. `None` if `cancelled`, which is polled, returned true.
pub fn statistics(
    predictions: &Predictions,
    view: &ViewSettings,
    suppressed: Option<&Suppressed>,
    marks: &Marks,
    cancelled: &dyn Fn() -> bool,
) -> Option<Statistics> {
    let gate = Gate::new(predictions.task(), view, suppressed, Some(marks));
    let mut counting = Counting {
        histogram: ScoreHistogram { bins: [0; ScoreHistogram::BINS] },
        classes: ByClass::new(ClassCount::default()),
        images: 0,
        images_above: 0,
        boxes_above: 0,
        is_exact: true,
    };
    let hides_overlaps = predictions.task() == ModelTask::Detection && view.nms_iou.is_some();
    for (id, summary) in predictions.iter() {
        if counting.images.is_multiple_of(SAMPLES_PER_CHECK) && cancelled() {
            return None;
        }
        counting.images += 1;
        if predictions.task() == ModelTask::Classification {
            if let Some(&score) = summary.scores.first() {
                counting.histogram.add(score);
            }
            if let Some((class, score)) = gate.top_class(summary) {
                counting.images_above += 1;
                counting.add(class, score);
            }
            continue;
        }
        let visible = gate.visible(id);
        counting.is_exact &= !hides_overlaps || gate.knows_overlaps(id);
        let before = counting.boxes_above;
        for (at, (&class, &score)) in summary.classes.iter().zip(summary.scores).enumerate() {
            let is_visible = visible.contains(at, class, score);
            if is_visible || gate.shows_class(class) && !visible.is_suppressed(at) {
                counting.histogram.add(score);
            }
            if is_visible {
                counting.boxes_above += 1;
                counting.add(class, score);
            }
        }
        counting.images_above += usize::from(counting.boxes_above > before);
    }
    Some(counting.finish(predictions.task()))
}

struct Counting {
    histogram: ScoreHistogram,
    classes: ByClass<ClassCount>,
    images: usize,
    images_above: usize,
    boxes_above: usize,
    is_exact: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct ClassCount {
    images: usize,
    boxes: usize,
    scores: f64,
    /// The number of the image in which this class was last seen, to count each image once.
    last_seen: usize,
}

impl Counting {
    fn add(&mut self, class: u32, score: f32) {
        let count = self.classes.get_mut(class);
        count.boxes += 1;
        count.scores += f64::from(score);
        count.images += usize::from(count.last_seen != self.images);
        count.last_seen = self.images;
    }

    fn finish(self, task: ModelTask) -> Statistics {
        let seen = self.classes.iter().filter(|(_, count)| count.boxes > 0);
        let rows = seen.map(|(class, count)| ClassRow {
            class,
            images: count.images,
            boxes: count.boxes,
            mean_score: (count.scores / count.boxes as f64) as f32,
        });
        Statistics {
            task,
            classes: ClassTable { rows: rows.collect() },
            histogram: self.histogram,
            images: self.images,
            images_above: self.images_above,
            boxes_above: self.boxes_above,
            is_exact: self.is_exact,
            outcomes: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use strum::VariantArray;

    use super::*;
    use crate::domain::{BoundingBox, SampleId};
    use crate::review::testing::Random;
    use crate::review::{Mark, VerdictKind};

    const NEVER: &dyn Fn() -> bool = &|| false;

    /// Compares with a slow, simple implementation.
    fn check(predictions: &Predictions, view: &ViewSettings, suppressed: Option<&Suppressed>, marks: &Marks) {
        let got = statistics(predictions, view, suppressed, marks, NEVER).unwrap();
        let is_hidden = |id, at| view.nms_iou.is_some() && suppressed.is_some_and(|bits| bits.hides(id, at));
        let is_confirmed = |id, at| {
            let verdict = marks.get(id).of_box(at);
            verdict.is_some_and(VerdictKind::confirms)
        };
        let (mut in_histogram, mut shown) = (Vec::new(), Vec::new());
        for (id, summary) in predictions.iter() {
            for at in 0..summary.scores.len() {
                let (class, score) = (summary.classes[at], summary.scores[at]);
                let is_shown = view.passes(class, score) && !is_hidden(id, at);
                if is_shown || is_confirmed(id, at) {
                    shown.push((id, class, score));
                }
                if view.shows_class(class) && !is_hidden(id, at) || is_confirmed(id, at) {
                    in_histogram.push((id, class, score));
                }
            }
        }
        assert_eq!(got.boxes_above, shown.len());
        let images = |boxes: &[(SampleId, u32, f32)]| {
            let ids: std::collections::BTreeSet<SampleId> = boxes.iter().map(|found| found.0).collect();
            ids.len()
        };
        assert_eq!(got.images_above, images(&shown));
        for class in 0..12 {
            let of_class: Vec<_> = shown.iter().copied().filter(|found| found.1 == class).collect();
            let row = got.classes.rows.iter().find(|row| row.class == class);
            assert_eq!(row.map_or(0, |row| row.boxes), of_class.len());
            assert_eq!(row.map_or(0, |row| row.images), images(&of_class));
            if let Some(row) = row {
                let sum: f64 = of_class.iter().map(|found| f64::from(found.2)).sum();
                let mean = sum / of_class.len() as f64;
                assert!((f64::from(row.mean_score) - mean).abs() < 1e-6);
            }
        }
        for (bin, count) in got.histogram.bins().iter().enumerate() {
            let in_bin = in_histogram.iter().filter(|(_, _, score)| ((score * 50.0) as usize).min(49) == bin);
            assert_eq!(*count as usize, in_bin.count(), "bin {bin}");
        }
    }

    #[test]
    fn single_pass_equals_separate_counts() {
        let mut random = Random::new(3);
        let mut predictions = Predictions::new(ModelTask::Detection);
        let mut suppressed = Suppressed::new(0.5);
        for sample in 0..600 {
            if sample % 7 == 0 {
                continue;
            }
            let count = random.below(30);
            let classes: Vec<u32> = (0..count).map(|_| random.below(12) as u32).collect();
            let scores: Vec<f32> = (0..count).map(|_| random.unit()).collect();
            let bounds: Vec<BoundingBox> = (0..count)
                .map(|_| {
                    let x = random.unit() * 10.0;
                    BoundingBox::new(x, 0.0, x + 6.0, 5.0)
                })
                .collect();
            predictions.record_summary(SampleId(sample), 10, 10, &classes, &scores);
            suppressed.record(SampleId(sample), &bounds, &classes, &scores);
        }
        let plain = ViewSettings::default();
        let varied = ViewSettings {
            min_score: 0.3,
            min_score_by_class: [(2, 0.7), (5, 0.0)].into(),
            hidden_classes: [3, 4].into(),
            nms_iou: Some(0.5),
            ..ViewSettings::default()
        };
        let solo = ViewSettings { solo_class: Some(6), ..ViewSettings::default() };
        let mut judged = Marks::default();
        for sample in (0..600).step_by(3) {
            let boxes = (0..30).filter(|at| (at + sample) % 4 == 0);
            let boxes = boxes.map(|at| (at, VerdictKind::VARIANTS[(at / 4 % 4) as usize]));
            let mark = Mark { boxes: boxes.collect(), ..Mark::default() };
            judged.set(SampleId(sample), mark);
        }
        for view in [&plain, &varied, &solo] {
            for marks in [&Marks::default(), &judged] {
                check(&predictions, view, Some(&suppressed), marks);
                check(&predictions, view, None, marks);
            }
        }
        let exact = |suppressed| statistics(&predictions, &varied, suppressed, &judged, NEVER).unwrap().is_exact;
        assert!(exact(Some(&suppressed)) && !exact(None));
    }

    #[test]
    fn classifier_counts_top_classes() {
        let mut predictions = Predictions::new(ModelTask::Classification);
        for (sample, score) in [0.9, 0.6, 0.2].into_iter().enumerate() {
            predictions.record_summary(SampleId::from_index(sample), 1, 1, &[4, 7], &[score, 0.1]);
        }
        let view = ViewSettings { min_class_score: 0.5, ..ViewSettings::default() };
        let got = statistics(&predictions, &view, None, &Marks::default(), NEVER).unwrap();
        assert_eq!((got.images, got.images_above, got.boxes_above), (3, 2, 0));
        assert_eq!(got.classes.rows.len(), 1);
        assert_eq!((got.classes.rows[0].class, got.classes.rows[0].images), (4, 2));
        assert!((got.classes.rows[0].mean_score - 0.75).abs() < 1e-6);
        assert_eq!(got.histogram.bins().iter().sum::<u32>(), 3);
    }

    #[test]
    fn canceled_request_is_not_counted() {
        let mut predictions = Predictions::new(ModelTask::Detection);
        predictions.record_summary(SampleId(0), 1, 1, &[1], &[0.5]);
        let (view, marks) = (ViewSettings::default(), Marks::default());
        assert!(statistics(&predictions, &view, None, &marks, &|| true).is_none());
    }
}
