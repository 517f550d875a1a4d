//! Maps the classes of one model to those of another.

use std::collections::BTreeMap;

use crate::domain::LabelSet;

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

#[cfg(test)]
mod tests {
    use super::*;

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
