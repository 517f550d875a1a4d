//! Which boxes are suppressed by better ones.

use std::sync::Arc;

use crate::domain::{BoundingBox, SampleId, SharedList, not_suppressed};

/// One bit per box, which is set if a better box of its class overlaps it by more than an IoU. Built by code that has
/// the positions of the boxes; [`super::Predictions`] does not.
///
/// It holds for every threshold, so moving the threshold needs no geometry. Suppression is greedy by score within a
/// class: whether a box is suppressed depends only on better boxes of its own class. A threshold removes the worst
/// boxes of a class, and hiding a class removes all of its boxes, so whatever a remaining box depends on remains as
/// well.
///
/// A clone is a cheap snapshot.
#[derive(Debug, Clone)]
pub struct Suppressed {
    max_iou: f32,
    /// The bits by sample; `None` if not computed yet.
    samples: SharedList<Option<Arc<[u64]>>>,
    known: usize,
    revision: u64,
}

impl Suppressed {
    pub fn new(max_iou: f32) -> Self {
        Self { max_iou, samples: SharedList::default(), known: 0, revision: 0 }
    }

    /// Builds it from the boxes of many samples: bounds, class ids and scores of equal length.
    pub fn build<'a>(
        max_iou: f32,
        samples: impl IntoIterator<Item = (SampleId, &'a [BoundingBox], &'a [u32], &'a [f32])>,
    ) -> Self {
        let mut suppressed = Self::new(max_iou);
        for (id, bounds, classes, scores) in samples {
            suppressed.record(id, bounds, classes, scores);
        }
        suppressed
    }

    /// The IoU above which a box is suppressed.
    pub fn max_iou(&self) -> f32 {
        self.max_iou
    }

    /// Records the boxes of one sample, in the order of its stored prediction, replacing earlier ones.
    pub fn record(&mut self, id: SampleId, bounds: &[BoundingBox], classes: &[u32], scores: &[f32]) {
        let len = bounds.len().min(classes.len()).min(scores.len());
        // A NaN score is never shown, so it suppresses nothing.
        let mut by_score: Vec<usize> = (0..len).filter(|&at| !scores[at].is_nan()).collect();
        by_score.sort_by(|&left, &right| scores[right].total_cmp(&scores[left]));
        let kept = not_suppressed(&by_score, |at| (classes[at], bounds[at]), self.max_iou);
        let mut bits = vec![u64::MAX; len.div_ceil(64)];
        for at in kept {
            bits[at / 64] &= !(1 << (at % 64));
        }
        self.known += usize::from(!self.is_known(id));
        self.revision += 1;
        self.samples.set(id.index(), Some(bits.into()));
    }

    /// Forgets a sample whose prediction was removed or replaced.
    pub fn forget(&mut self, id: SampleId) {
        if self.is_known(id) {
            self.samples.set(id.index(), None);
            self.known -= 1;
            self.revision += 1;
        }
    }

    /// The number of samples with known bits, in constant time.
    pub fn known(&self) -> usize {
        self.known
    }

    /// Changes with every modification.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    pub fn is_known(&self, id: SampleId) -> bool {
        self.image(id).is_some()
    }

    /// False if unknown.
    pub fn hides(&self, id: SampleId, box_index: usize) -> bool {
        self.image(id).is_some_and(|bits| bits.hides(box_index))
    }

    pub fn image(&self, id: SampleId) -> Option<HiddenBoxes<'_>> {
        let bits = self.samples.get(id.index())?.as_deref()?;
        Some(HiddenBoxes(bits))
    }
}

#[derive(Debug, Clone, Copy)]
pub struct HiddenBoxes<'a>(&'a [u64]);

impl HiddenBoxes<'_> {
    pub fn hides(self, box_index: usize) -> bool {
        let word = self.0.get(box_index / 64);
        word.is_some_and(|word| word >> (box_index % 64) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Detection, Prediction, PredictionContent, ViewSettings};
    use crate::review::testing::Random;

    /// Boxes of three classes with many overlaps, some with a NaN score.
    fn random_boxes(random: &mut Random) -> Vec<Detection> {
        let count = random.below(150);
        let one = |random: &mut Random| {
            let (x, y) = (random.unit() * 20.0, random.unit() * 20.0);
            Detection {
                bounds: [x, y, x + 5.0 + random.unit() * 5.0, y + 8.0].into(),
                class_id: random.below(3) as u32,
                label: String::new(),
                score: match random.below(20) {
                    0 => f32::NAN,
                    _ => (random.unit() * 20.0).round() / 20.0,
                },
                runners_up: Vec::new(),
            }
        };
        (0..count).map(|_| one(random)).collect()
    }

    #[test]
    fn suppression_bits_match_the_view() {
        let mut random = Random::new(5);
        let mut suppressed = Suppressed::new(0.4);
        for sample in 0..40 {
            let id = SampleId(sample);
            let detections = random_boxes(&mut random);
            let bounds: Vec<BoundingBox> = detections.iter().map(|found| found.bounds).collect();
            let classes: Vec<u32> = detections.iter().map(|found| found.class_id).collect();
            let scores: Vec<f32> = detections.iter().map(|found| found.score).collect();
            suppressed.record(id, &bounds, &classes, &scores);
            let prediction = Prediction {
                width: 40,
                height: 40,
                content: PredictionContent::Detections(detections),
                warnings: Vec::new(),
            };
            for min_score in [0.0, 0.3, 0.5, 0.95] {
                let view = ViewSettings {
                    min_score,
                    nms_iou: Some(0.4),
                    hidden_classes: [sample % 4].into(),
                    ..ViewSettings::default()
                };
                let mut expected = view.visible_detections(&prediction, &[]);
                expected.sort_unstable();
                let got: Vec<usize> = (0..scores.len())
                    .filter(|&at| view.passes(classes[at], scores[at]))
                    .filter(|&at| !suppressed.hides(id, at))
                    .collect();
                assert_eq!(got, expected, "image {sample}, threshold {min_score}");
            }
        }
    }

    #[test]
    fn forgotten_predictions_hide_no_boxes() {
        let square = BoundingBox::new(0.0, 0.0, 5.0, 5.0);
        let boxes = (&[square; 2][..], &[1, 1][..], &[0.9, 0.8][..]);
        let sample = |id| (SampleId(id), boxes.0, boxes.1, boxes.2);
        let mut suppressed = Suppressed::build(0.5, [sample(0), sample(3)]);
        assert!(suppressed.hides(SampleId(3), 1) && !suppressed.hides(SampleId(3), 0));
        suppressed.forget(SampleId(3));
        suppressed.forget(SampleId(2));
        assert_eq!(suppressed.known(), 1);
        assert!(!suppressed.hides(SampleId(3), 1));
        assert!(!suppressed.is_known(SampleId(3)));
    }
}
