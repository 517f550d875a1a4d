//! The difference between two predictions for one image.

use crate::domain::{ClassScore, Detection, Prediction, PredictionContent};

/// Smaller score differences count as equal: other CPUs and versions of ONNX Runtime round differently.
pub const SCORE_TOLERANCE: f32 = 1e-4;
/// Smaller differences between box edges count as equal, in pixels of the upright image.
pub const EDGE_TOLERANCE_PX: f32 = 0.05;

/// The difference between the local prediction and the handler's.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Difference {
    /// Between equal classes, or boxes of one class.
    pub largest_score: f32,
    /// Between box edges, in pixels; 0 for classifiers.
    pub largest_edge_px: f32,
    /// Classes or boxes without a partner, except those at the cut-off.
    pub only_here: usize,
    pub only_there: usize,
    /// Whether image sizes, or the kinds of response, differ.
    pub incomparable: bool,
}

impl Difference {
    /// `min_score` is the cut-off below which both sides dropped boxes: boxes close to it may be missing on one side.
    pub fn between(here: &Prediction, there: &Prediction, min_score: f32) -> Self {
        let same_size = (here.width, here.height) == (there.width, there.height);
        match (&here.content, &there.content) {
            (PredictionContent::Classes(here), PredictionContent::Classes(there)) if same_size => {
                Self::between_classes(here, there)
            }
            (PredictionContent::Detections(here), PredictionContent::Detections(there)) if same_size => {
                Self::between_boxes(here, there, min_score)
            }
            _ => Self { incomparable: true, ..Self::default() },
        }
    }

    pub fn is_within_tolerance(&self) -> bool {
        !self.incomparable
            && self.largest_score <= SCORE_TOLERANCE
            && self.largest_edge_px <= EDGE_TOLERANCE_PX
            && self.only_here == 0
            && self.only_there == 0
    }

    /// Class by class; at the end of the list, another class with the same score may have been kept.
    fn between_classes(here: &[ClassScore], there: &[ClassScore]) -> Self {
        let cut_off = |classes: &[ClassScore]| classes.last().map_or(0.0, |class| class.score);
        let score_of = |classes: &[ClassScore], index: u32| {
            let class = classes.iter().find(|class| class.index == index);
            class.map(|class| class.score)
        };
        let mut difference = Self { incomparable: here.len() != there.len(), ..Self::default() };
        for class in here {
            match score_of(there, class.index) {
                Some(score) => difference.note_score(class.score, score),
                None if is_at(class.score, cut_off(there)) => {}
                None => difference.only_here += 1,
            }
        }
        let missing =
            there.iter().filter(|class| score_of(here, class.index).is_none() && !is_at(class.score, cut_off(here)));
        difference.only_there = missing.count();
        difference
    }

    /// Each box with the closest free one of its class.
    fn between_boxes(here: &[Detection], there: &[Detection], min_score: f32) -> Self {
        let mut difference = Self::default();
        let mut free: Vec<&Detection> = there.iter().collect();
        for detection in here {
            let same_class = |place: &usize| free[*place].class_id == detection.class_id;
            let distance = |place: &usize| edge_difference(detection, free[*place]);
            let nearest =
                (0..free.len()).filter(same_class).min_by(|left, right| distance(left).total_cmp(&distance(right)));
            match nearest {
                Some(place) => {
                    let partner = free.remove(place);
                    difference.note_score(detection.score, partner.score);
                    let edge = edge_difference(detection, partner);
                    difference.largest_edge_px = difference.largest_edge_px.max(edge);
                }
                None if is_at(detection.score, min_score) => {}
                None => difference.only_here += 1,
            }
        }
        let missing = free.iter().filter(|box_| !is_at(box_.score, min_score));
        difference.only_there = missing.count();
        difference
    }

    fn note_score(&mut self, here: f32, there: f32) {
        self.largest_score = self.largest_score.max((here - there).abs());
    }
}

fn is_at(score: f32, cut_off: f32) -> bool {
    (score - cut_off).abs() <= SCORE_TOLERANCE
}

fn edge_difference(left: &Detection, right: &Detection) -> f32 {
    let (left, right): ([f32; 4], [f32; 4]) = (left.bounds.into(), right.bounds.into());
    let differences = left.iter().zip(right).map(|(left, right)| (left - right).abs());
    differences.fold(0.0, f32::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::BoundingBox;

    fn classes(scores: &[(u32, f32)]) -> Prediction {
        let classes = scores.iter().map(|&(index, score)| ClassScore { index, label: String::new(), score });
        prediction(PredictionContent::Classes(classes.collect()))
    }

    fn boxes(boxes: &[(u32, f32, f32)]) -> Prediction {
        let boxes = boxes.iter().map(|&(class_id, left, score)| {
            Detection::new(BoundingBox::new(left, 0.0, 10.0, 10.0), class_id, "", score)
        });
        prediction(PredictionContent::Detections(boxes.collect()))
    }

    fn prediction(response: PredictionContent) -> Prediction {
        Prediction::new([20, 20], response)
    }

    fn check(here: &Prediction, there: &Prediction, is_equal: bool) {
        let difference = Difference::between(here, there, 0.005);
        assert_eq!(difference.is_within_tolerance(), is_equal, "{difference:?}");
        let back = Difference::between(there, here, 0.005);
        assert_eq!(back.is_within_tolerance(), is_equal, "{back:?}");
    }

    #[test]
    fn equal_scores_may_swap_classes() {
        let here = classes(&[(1, 0.6), (2, 0.2), (3, 0.1)]);
        check(&here, &classes(&[(1, 0.600_05), (2, 0.2), (3, 0.1)]), true);
        check(&here, &classes(&[(1, 0.6), (2, 0.2), (9, 0.100_02)]), true);
        check(&here, &classes(&[(1, 0.6), (9, 0.2), (3, 0.1)]), false);
        check(&here, &classes(&[(1, 0.6005), (2, 0.2), (3, 0.1)]), false);
        check(&here, &classes(&[(1, 0.6), (2, 0.2)]), false);
        check(&here, &boxes(&[]), false);
    }

    #[test]
    fn boxes_compare_with_the_nearest_of_their_class() {
        let here = boxes(&[(1, 2.0, 0.9), (1, 4.0, 0.8), (2, 2.0, 0.7)]);
        let moved = |by: f32| boxes(&[(1, 4.0, 0.8), (1, 2.0 + by, 0.9), (2, 2.0, 0.7)]);
        check(&here, &moved(0.04), true);
        check(&here, &moved(0.06), false);
        check(&here, &boxes(&[(1, 2.0, 0.9), (1, 4.0, 0.8)]), false);
        let at_the_cut_off = boxes(&[(1, 2.0, 0.9), (3, 5.0, 0.005_03)]);
        check(&at_the_cut_off, &boxes(&[(1, 2.0, 0.9)]), true);
    }

    #[test]
    fn different_sizes_are_not_compared() {
        let here = classes(&[(1, 0.6)]);
        let turned = Prediction { width: 10, ..here.clone() };
        check(&here, &turned, false);
    }
}
