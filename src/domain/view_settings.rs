//! What is shown of a stored prediction. Changing these settings never runs the model again.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{BoundingBox, ClassScore, ModelCard, ModelTask, Prediction, PredictionContent};

/// The window's filters. `visible_detections` and `visible_classes` are their only implementation, used by canvas,
/// grid, lists and exports. (`review` has the same over columns, and a test that keeps both equal.)
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ViewSettings {
    /// Boxes below this score are not shown, `0.0..=1.0`.
    pub min_score: f32,
    /// Overrides `min_score` for a class id.
    pub min_score_by_class: BTreeMap<u32, f32>,
    pub hidden_classes: BTreeSet<u32>,
    /// Shows only this class id.
    pub solo_class: Option<u32>,
    /// The highest IoU of two visible boxes of one class; `None` shows all.
    pub nms_iou: Option<f32>,
    /// Maximum number of classes shown for a classifier.
    pub top_k: usize,
    /// Classes of a classifier below this score are not shown, `0.0..=1.0`. Separate from `min_score`, because 0.5 is a
    /// good start for boxes but would hide most predictions of a classifier.
    pub min_class_score: f32,
}

/// A change of the live filters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ViewChange {
    MinScore(f32),
    /// `None` makes the class use the global threshold again.
    ClassMinScore(u32, Option<f32>),
    ShowClass(u32),
    HideClass(u32),
    Solo(Option<u32>),
    NmsIou(Option<f32>),
    TopK(usize),
    MinClassScore(f32),
}

impl Default for ViewSettings {
    fn default() -> Self {
        Self {
            min_score: 0.5,
            min_score_by_class: BTreeMap::new(),
            hidden_classes: BTreeSet::new(),
            solo_class: None,
            nms_iou: None,
            top_k: 5,
            min_class_score: 0.0,
        }
    }
}

/// The filters of a model are stored in the project under this prefix and the model's id.
const NAME_PREFIX: &str = "filters/";

impl ViewSettings {
    /// The default for a model's predictions: overlaps are hidden as in the exporter's own code.
    pub fn from_card(card: &ModelCard) -> Self {
        Self { nms_iou: card.nms_iou(), ..Self::default() }
    }

    pub fn change(&mut self, change: ViewChange) {
        match change {
            ViewChange::MinScore(score) => self.min_score = score.clamp(0.0, 1.0),
            ViewChange::ClassMinScore(class, Some(score)) => {
                self.min_score_by_class.insert(class, score.clamp(0.0, 1.0));
            }
            ViewChange::ClassMinScore(class, None) => {
                self.min_score_by_class.remove(&class);
            }
            ViewChange::ShowClass(class) => {
                self.hidden_classes.remove(&class);
            }
            ViewChange::HideClass(class) => {
                self.hidden_classes.insert(class);
            }
            ViewChange::Solo(class) => self.solo_class = class,
            ViewChange::NmsIou(iou) => self.nms_iou = iou.map(|iou| iou.clamp(0.0, 1.0)),
            ViewChange::TopK(count) => self.top_k = count.max(1),
            ViewChange::MinClassScore(score) => self.min_class_score = score.clamp(0.0, 1.0),
        }
    }

    /// The key under which a project stores the settings of a model, as JSON.
    pub fn name_in_project(model_id: &str) -> String {
        format!("{NAME_PREFIX}{model_id}")
    }

    /// The model whose settings a project stores under this name; `None` for anything else.
    pub fn model_of_name(name: &str) -> Option<&str> {
        name.strip_prefix(NAME_PREFIX)
    }

    /// Indices into `prediction.detections()`, highest score first. Empty for a classifier.
    ///
    /// `confirmed` are the indices of boxes that a person accepted or corrected. Verdicts outrank every setting, so
    /// these are always visible; they do not affect which other boxes are.
    pub fn visible_detections(&self, prediction: &Prediction, confirmed: &[u32]) -> Vec<usize> {
        let detections = prediction.detections();
        let by_score = |left: &usize, right: &usize| {
            let (left, right) = (detections[*left].score, detections[*right].score);
            right.total_cmp(&left)
        };
        let mut visible: Vec<usize> = (0..detections.len())
            .filter(|&index| self.passes(detections[index].class_id, detections[index].score))
            .collect();
        visible.sort_by(by_score);
        if let Some(max_iou) = self.nms_iou {
            let place = |index: usize| (detections[index].class_id, detections[index].bounds);
            visible = not_suppressed(&visible, place, max_iou);
        }
        let confirmed = confirmed.iter().map(|index| *index as usize);
        let otherwise_hidden: Vec<usize> =
            confirmed.filter(|index| *index < detections.len() && !visible.contains(index)).collect();
        if !otherwise_hidden.is_empty() {
            visible.extend(otherwise_hidden);
            visible.sort_by(|left, right| by_score(left, right).then(left.cmp(right)));
        }
        visible
    }

    /// The first `top_k` classes with at least `min_class_score`, best first. Empty for a detector.
    pub fn visible_classes<'p>(&self, prediction: &'p Prediction) -> &'p [ClassScore] {
        let classes = prediction.classes();
        let is_listed = |class: &&ClassScore| self.lists(class.score);
        let listed = classes.iter().take(self.top_k).take_while(is_listed);
        &classes[..listed.count()]
    }

    /// The minimum score for boxes, or for the classes of a classifier.
    pub fn min_score_for(&self, task: ModelTask) -> f32 {
        match task {
            ModelTask::Detection => self.min_score,
            ModelTask::Classification => self.min_class_score,
        }
    }

    /// The minimum score for a box of this class.
    pub fn min_score_of(&self, class_id: u32) -> f32 {
        self.min_score_by_class.get(&class_id).copied().unwrap_or(self.min_score)
    }

    pub fn shows_class(&self, class_id: u32) -> bool {
        self.solo_class.is_none_or(|solo| solo == class_id) && !self.hidden_classes.contains(&class_id)
    }

    /// Whether a box of this class and score is visible unless a better one suppresses it.
    pub fn passes(&self, class_id: u32, score: f32) -> bool {
        self.shows_class(class_id) && score >= self.min_score_of(class_id)
    }

    /// Whether a classifier's class with this score is shown if it is among the first.
    pub fn lists(&self, score: f32) -> bool {
        score >= self.min_class_score
    }
}

impl Prediction {
    /// The indices of boxes that no better one of their class overlaps by more than `max_iou`, lowest first; all boxes
    /// for `None`.
    pub fn kept_without_overlaps(&self, max_iou: Option<f32>) -> Vec<usize> {
        let everything = ViewSettings { min_score: f32::NEG_INFINITY, nms_iou: max_iou, ..ViewSettings::default() };
        let mut kept = everything.visible_detections(self, &[]);
        kept.sort_unstable();
        kept
    }

    /// The prediction without boxes that overlap a better one of their class by more than `max_iou`; with all of them
    /// for `None`.
    #[must_use]
    pub fn without_overlaps(mut self, max_iou: Option<f32>) -> Self {
        let kept = self.kept_without_overlaps(max_iou);
        if let PredictionContent::Detections(detections) = &mut self.content {
            let mut kept = kept.into_iter().peekable();
            let mut index = 0..;
            detections.retain(|_| kept.next_if_eq(&index.next().unwrap_or_default()).is_some());
        }
        self
    }
}

/// Greedy non-maximum suppression within each class, as in torchvision's `batched_nms`. `by_score` are the indices of
/// the boxes, highest score first; `place` returns class id and bounds. Returns the remaining indices in the same
/// order.
///
/// A box is only ever suppressed by a better one of its class. A threshold removes the lowest scores of a class and so
/// changes nothing for those above it: suppressing first and then applying the threshold gives the same boxes as the
/// other way round.
pub fn not_suppressed(by_score: &[usize], place: impl Fn(usize) -> (u32, BoundingBox), max_iou: f32) -> Vec<usize> {
    let mut kept: Vec<usize> = Vec::with_capacity(by_score.len());
    let mut kept_by_class: BTreeMap<u32, KeptBoxes> = BTreeMap::new();
    for &index in by_score {
        let (class_id, bounds) = place(index);
        let rivals = kept_by_class.entry(class_id).or_default();
        if !rivals.overlap(&bounds, max_iou) {
            rivals.push(&bounds);
            kept.push(index);
        }
    }
    kept
}

/// Left, top, right, bottom and area of several boxes, which the CPU compares in parallel.
#[derive(Default)]
struct KeptBoxes {
    blocks: Vec<[[f32; Self::LANES]; 5]>,
    len: usize,
}

impl KeptBoxes {
    const LANES: usize = 8;
    /// Overlaps nothing.
    const NOTHING: [f32; 5] = [f32::INFINITY, f32::INFINITY, f32::NEG_INFINITY, f32::NEG_INFINITY, 0.0];

    fn push(&mut self, bounds: &BoundingBox) {
        let lane = self.len % Self::LANES;
        if lane == 0 {
            self.blocks.push(Self::NOTHING.map(|edge| [edge; Self::LANES]));
        }
        if let Some(block) = self.blocks.last_mut() {
            let values = [bounds.x1, bounds.y1, bounds.x2, bounds.y2, bounds.area()];
            block.iter_mut().zip(values).for_each(|(lanes, value)| lanes[lane] = value);
        }
        self.len += 1;
    }

    /// Whether any of them has a greater IoU with `bounds`, computed as in [`BoundingBox::iou`].
    fn overlap(&self, bounds: &BoundingBox, max_iou: f32) -> bool {
        // As the CPU does it: the methods of f32 also check for NaN, which takes longer.
        let min = |left: f32, right: f32| if left < right { left } else { right };
        let max = |left: f32, right: f32| if left > right { left } else { right };
        let area = bounds.area();
        self.blocks.iter().any(|[x1, y1, x2, y2, areas]| {
            let mut overlaps = 0;
            for lane in 0..Self::LANES {
                let width = min(x2[lane], bounds.x2) - max(x1[lane], bounds.x1);
                let height = min(y2[lane], bounds.y2) - max(y1[lane], bounds.y1);
                let overlap = max(width, 0.0) * max(height, 0.0);
                // Without any area this is NaN, which is not greater.
                overlaps |= u32::from(overlap / (areas[lane] + area - overlap) > max_iou);
            }
            overlaps != 0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Detection;
    use super::*;
    use crate::domain::PredictionContent;

    fn prediction(boxes: &[(u32, f32, [f32; 4])]) -> Prediction {
        let detections = boxes.iter().map(|&(class_id, score, bounds)| Detection::new(bounds, class_id, "", score));
        Prediction::new([10, 10], PredictionContent::Detections(detections.collect()))
    }

    const SQUARE: [f32; 4] = [0.0, 0.0, 10.0, 10.0];

    #[test]
    fn class_minimum_score_overrides_the_global_one() {
        let prediction = prediction(&[(1, 0.4, SQUARE), (2, 0.4, SQUARE), (2, 0.6, SQUARE)]);
        let mut view = ViewSettings::default();
        assert_eq!(view.visible_detections(&prediction, &[]), [2]);
        view.min_score_by_class.insert(1, 0.3);
        assert_eq!(view.visible_detections(&prediction, &[]), [2, 0]);
    }

    #[test]
    fn solo_and_hide_exclude_classes() {
        let prediction = prediction(&[(1, 0.9, SQUARE), (2, 0.8, SQUARE)]);
        let solo = ViewSettings { solo_class: Some(2), ..Default::default() };
        assert_eq!(solo.visible_detections(&prediction, &[]), [1]);
        let hidden = ViewSettings { hidden_classes: [2].into(), ..Default::default() };
        assert_eq!(hidden.visible_detections(&prediction, &[]), [0]);
    }

    #[test]
    fn nms_keeps_the_better_box_per_class() {
        let prediction = prediction(&[(1, 0.7, SQUARE), (1, 0.9, SQUARE), (2, 0.8, SQUARE)]);
        let view = ViewSettings { nms_iou: Some(0.5), ..Default::default() };
        assert_eq!(view.visible_detections(&prediction, &[]), [1, 2]);
    }

    #[test]
    fn prediction_without_overlaps_keeps_its_order() {
        let boxes = [(1, 0.9, SQUARE), (1, 0.8, SQUARE), (2, 0.001, SQUARE), (1, 0.0, [20.0, 0.0, 30.0, 10.0])];
        let all = prediction(&boxes);
        assert_eq!(all.clone().without_overlaps(None), all);
        assert_eq!(all.without_overlaps(Some(0.5)), prediction(&[boxes[0], boxes[2], boxes[3]]));
    }

    #[test]
    fn accepted_box_is_visible_and_affects_no_others() {
        let other_place = [20.0, 0.0, 30.0, 10.0];
        let prediction = prediction(&[
            (1, 0.9, SQUARE),
            (1, 0.8, SQUARE),
            (1, 0.2, other_place),
            (2, 0.7, SQUARE),
            (1, 0.1, other_place),
        ]);
        let view = ViewSettings { hidden_classes: [2].into(), nms_iou: Some(0.5), ..Default::default() };
        assert_eq!(view.visible_detections(&prediction, &[]), [0]);
        assert_eq!(view.visible_detections(&prediction, &[2]), [0, 2]);
        assert_eq!(view.visible_detections(&prediction, &[1, 3, 4, 99]), [0, 1, 3, 4]);
    }

    #[test]
    fn nms_keeps_boxes_no_better_one_overlaps() {
        let mut seed = 1_u32;
        let mut random = |limit: u32| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            ((seed >> 16) % limit) as f32
        };
        let boxes: Vec<(u32, BoundingBox)> = (0..2000)
            .map(|_| {
                let (x, y) = (random(100), random(100));
                (random(3) as u32, BoundingBox::new(x, y, x + random(30), y + random(30)))
            })
            .collect();
        let order: Vec<usize> = (0..boxes.len()).collect();
        for max_iou in [0.0, 0.3, 0.7, 1.0] {
            let mut expected: Vec<usize> = Vec::new();
            for (index, (class, bounds)) in boxes.iter().enumerate() {
                let hides = |&kept: &usize| boxes[kept].0 == *class && boxes[kept].1.iou(bounds) > max_iou;
                if !expected.iter().any(hides) {
                    expected.push(index);
                }
            }
            assert_eq!(not_suppressed(&order, |index| boxes[index], max_iou), expected, "{max_iou}");
        }
    }

    #[test]
    fn nan_score_is_never_shown() {
        let prediction = prediction(&[(1, f32::NAN, SQUARE)]);
        assert!(ViewSettings::default().visible_detections(&prediction, &[]).is_empty());
    }

    #[test]
    fn classes_below_the_minimum_score_are_not_listed() {
        let class = |label: &str, score| ClassScore { index: 0, label: label.to_owned(), score };
        let prediction =
            Prediction::new([1, 1], PredictionContent::Classes(vec![class("cat", 0.6), class("dog", 0.3)]));
        let mut view = ViewSettings::default();
        assert_eq!(view.visible_classes(&prediction).len(), 2);
        view.min_class_score = 0.5;
        assert_eq!(view.visible_classes(&prediction).len(), 1);
        view.min_class_score = 0.7;
        assert!(view.visible_classes(&prediction).is_empty());
    }
}
