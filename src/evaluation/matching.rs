//! Matches the classes and boxes of two runs.

use std::collections::BTreeMap;

use crate::domain::{BoundingBox, LabelSet};

/// Gives the classes of a right run the ids that the left run uses for them, so that models with different label sets
/// (COCO's 80 and 91 classes) can be compared. Classes are equal if their names are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassMap {
    /// Left id by right id; `None` if both runs use the same ids.
    left_of_right: Option<BTreeMap<u32, u32>>,
    /// The first id for classes that only the right run has.
    first_foreign: u32,
}

impl ClassMap {
    /// Maps by id if the label sets are equal or one of them is empty, otherwise by name. Of several classes with one
    /// name (ImageNet has two cranes), the one with the same id is used, or else the first.
    pub fn between(left: &LabelSet, right: &LabelSet) -> Self {
        let first_foreign = left.max_id().map_or(0, |id| id.saturating_add(1));
        if left == right || left.is_empty() || right.is_empty() {
            return Self { left_of_right: None, first_foreign };
        }
        let mut ids_by_name: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for (id, name) in left.iter() {
            ids_by_name.entry(name).or_default().push(id);
        }
        let same = right.iter().filter_map(|(id, name)| {
            let ids = ids_by_name.get(name)?;
            let left_id = if ids.contains(&id) { id } else { ids[0] };
            Some((id, left_id))
        });
        Self { left_of_right: Some(same.collect()), first_foreign }
    }

    /// The left run's id for a class of the right run; an unused id if the left run does not have the class.
    pub fn left_of(&self, right_id: u32) -> u32 {
        match &self.left_of_right {
            None => right_id,
            Some(known) => known.get(&right_id).copied().unwrap_or_else(|| self.first_foreign.saturating_add(right_id)),
        }
    }
}

/// Boxes that overlap by at least this IoU show the same object.
pub const MATCHING_IOU: f32 = 0.5;

/// A detection, as far as it matters for matching.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoredBox {
    pub bounds: BoundingBox,
    /// The left run's id, on both sides ([`super::ClassMap`]).
    pub class_id: u32,
    /// `0.0..=1.0`.
    pub score: f32,
}

/// Indices into the given boxes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BoxMatches {
    /// Left and right, highest left score first.
    pub matched: Vec<(usize, usize)>,
    /// Lowest index first.
    pub only_left: Vec<usize>,
    /// Lowest index first.
    pub only_right: Vec<usize>,
    /// Unmatched boxes that overlap one of a different class. They still count as unmatched.
    pub other_class: Vec<(usize, usize)>,
}

/// Greedy matching in order of the left scores, highest first (ties in input order): each left box takes the free right
/// box of its class that it overlaps most, if the IoU is at least [`MATCHING_IOU`]. What remains on both sides is
/// matched once more in the same way between different classes.
pub fn match_boxes(left: &[ScoredBox], right: &[ScoredBox]) -> BoxMatches {
    let mut order: Vec<usize> = (0..left.len()).collect();
    order.sort_by(|&one, &other| left[other].score.total_cmp(&left[one].score));
    let mut free = [vec![true; left.len()], vec![true; right.len()]];
    let pair_up = |[left_free, right_free]: &mut [Vec<bool>; 2], of_same_class: bool| {
        let mut pairs = Vec::new();
        for &index in order.iter().filter(|&&index| left_free[index]) {
            let one = &left[index];
            let mut best = (None, MATCHING_IOU);
            for (other, candidate) in right.iter().enumerate().filter(|(other, _)| right_free[*other]) {
                if (one.class_id == candidate.class_id) == of_same_class {
                    let iou = one.bounds.iou(&candidate.bounds);
                    if iou > best.1 || best.0.is_none() && iou >= best.1 {
                        best = (Some(other), iou);
                    }
                }
            }
            if let Some(other) = best.0 {
                right_free[other] = false;
                pairs.push((index, other));
            }
        }
        for (index, _) in &pairs {
            left_free[*index] = false;
        }
        pairs
    };
    let matched = pair_up(&mut free, true);
    let [only_left, only_right] = free.each_ref().map(|free| (0..free.len()).filter(|&index| free[index]).collect());
    let other_class = pair_up(&mut free, false);
    BoxMatches { matched, only_left, only_right, other_class }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scored(class_id: u32, score: f32, bounds: [f32; 4]) -> ScoredBox {
        ScoredBox { bounds: bounds.into(), class_id, score }
    }

    const HERE: [f32; 4] = [0.0, 0.0, 10.0, 10.0];
    const NEARLY_HERE: [f32; 4] = [0.0, 0.0, 10.0, 8.0];
    const FAR_AWAY: [f32; 4] = [50.0, 0.0, 60.0, 10.0];

    #[test]
    fn best_box_chooses_the_closest_object_first() {
        let left = [scored(1, 0.4, HERE), scored(1, 0.9, HERE)];
        let right = [scored(1, 0.5, NEARLY_HERE), scored(1, 0.3, HERE)];
        let matches = match_boxes(&left, &right);
        assert_eq!(matches.matched, [(1, 1), (0, 0)]);
    }

    #[test]
    fn box_of_a_different_class_is_unmatched() {
        let left = [scored(1, 0.9, HERE), scored(1, 0.8, FAR_AWAY)];
        let right = [scored(2, 0.9, NEARLY_HERE)];
        let matches = match_boxes(&left, &right);
        assert!(matches.matched.is_empty());
        assert_eq!(matches.only_left, [0, 1]);
        assert_eq!(matches.only_right, [0]);
        assert_eq!(matches.other_class, [(0, 0)]);
    }

    #[test]
    fn nan_boxes_match_no_object() {
        let broken = [scored(1, f32::NAN, [f32::NAN; 4])];
        let matches = match_boxes(&broken, &broken);
        assert_eq!(matches.only_left, [0]);
    }

    fn labels(text: &str) -> LabelSet {
        LabelSet::parse(text).unwrap()
    }

    #[test]
    fn classes_match_by_name() {
        let map = ClassMap::between(&labels("1\tperson\n3\tcar"), &labels("person\nbicycle\ncar"));
        assert_eq!(map.left_of(0), 1);
        assert_eq!(map.left_of(2), 3);
        assert!(map.left_of(1) > 3, "a bicycle is nothing the left run knows");
    }

    #[test]
    fn ambiguous_name_keeps_classes_apart() {
        let map = ClassMap::between(&labels("crane\ndog\ncrane"), &labels("crane\ncat\ncrane"));
        assert_eq!((map.left_of(0), map.left_of(2)), (0, 2));
    }

    #[test]
    fn numbered_classes_match_by_number() {
        let map = ClassMap::between(&labels("cat\ndog"), &LabelSet::default());
        assert_eq!(map.left_of(1), 1);
    }
}
