//! Groups of duplicates, as searches and sort orders see them.

use std::sync::Arc;

use crate::alike::{DuplicateGroup, DuplicateKind};

/// The group of an image.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroupPlace {
    /// From 0, in the order of the first images.
    pub group: u32,
    /// The strongest kind of a first image, and why another one joined.
    pub kind: DuplicateKind,
    pub is_first: bool,
    /// To the first image.
    pub similarity: f32,
    pub is_mirrored: bool,
}

/// The groups of a listing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DuplicatePlaces {
    /// By image; can be shorter than the listing.
    pub places: Arc<[Option<GroupPlace>]>,
    /// Groups with the same first image are one.
    pub groups: usize,
    /// Images other than the first, by kind in the order of its variants.
    pub copies: [usize; 3],
}

impl DuplicatePlaces {
    /// `groups` are sorted by their first images.
    pub fn new(images: usize, groups: &[DuplicateGroup]) -> Self {
        let mut places = vec![None; images];
        let mut copies = [0; 3];
        let mut count = 0;
        let mut last = None;
        for group in groups {
            if last.replace(group.first) != Some(group.first) {
                count += 1;
                let place = GroupPlace {
                    group: count - 1,
                    kind: group.kind,
                    is_first: true,
                    similarity: 1.0,
                    is_mirrored: false,
                };
                places[group.first] = Some(place);
            }
            for other in &group.others {
                let (similarity, is_mirrored) = (other.similarity, other.is_mirrored);
                let place = GroupPlace { group: count - 1, kind: group.kind, is_first: false, similarity, is_mirrored };
                places[other.image] = Some(place);
            }
            copies[group.kind as usize] += group.others.len();
        }
        Self { places: places.into(), groups: count as usize, copies }
    }

    pub fn get(&self, image: usize) -> Option<GroupPlace> {
        self.places.get(image).copied().flatten()
    }

    /// The images other than the first of each group.
    pub fn extra(&self) -> impl Iterator<Item = usize> {
        let places = self.places.iter().enumerate();
        places.filter(|(_, place)| place.is_some_and(|place| !place.is_first)).map(|(image, _)| image)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alike::Duplicate;

    #[test]
    fn groups_with_one_first_image_are_one() {
        let other = |image| Duplicate { image, similarity: 0.9, is_mirrored: false };
        let groups = [
            DuplicateGroup { kind: DuplicateKind::Exact, first: 1, others: vec![other(2)] },
            DuplicateGroup { kind: DuplicateKind::Near, first: 1, others: vec![other(4), other(5)] },
            DuplicateGroup { kind: DuplicateKind::Alike, first: 3, others: vec![other(6)] },
        ];
        let places = DuplicatePlaces::new(8, &groups);
        let group_of: Vec<Option<u32>> = places.places.iter().map(|place| Some(place.as_ref()?.group)).collect();
        let expected = [None, Some(0), Some(0), Some(1), Some(0), Some(0), Some(1), None];
        assert_eq!((group_of.as_slice(), places.groups, places.copies), (&expected[..], 2, [1, 2, 1]));
        assert_eq!(places.extra().collect::<Vec<_>>(), [2, 4, 5, 6]);
        assert_eq!(places.get(1).map(|place| (place.is_first, place.kind)), Some((true, DuplicateKind::Exact)));
    }
}
