//! Groups of duplicates.
//!
//! Images are taken in their order. The first one of a group is kept, and later ones that match it join the group, as in
//! `FiftyOne`'s `compute_near_duplicates`; so every image of a group matches its first, and a chain of small changes does
//! not become one group. The work grows with the number of images times the number of different images near each other;
//! identical images add no quadratic work.

use std::collections::HashMap;
use std::hash::Hash;

use serde::Serialize;
use strum::{IntoStaticStr, VariantArray};

/// Why images are duplicates, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, IntoStaticStr, VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum DuplicateKind {
    /// The files have the same bytes.
    Exact,
    /// They look the same at a small size, or mirrored.
    Near,
    /// Their embeddings are similar.
    Alike,
}

/// An image that others are compared with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Match {
    pub(super) reference: usize,
    /// 1 for equal ones.
    pub(super) similarity: f32,
    pub(super) is_mirrored: bool,
}

impl Match {
    fn duplicate(self, image: usize) -> Duplicate {
        let Self { similarity, is_mirrored, .. } = self;
        Duplicate { image, similarity, is_mirrored }
    }
}

/// An image of a group other than the first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Duplicate {
    pub image: usize,
    /// To the first image of the group; 1 for equal ones.
    pub similarity: f32,
    pub is_mirrored: bool,
}

/// An image, and its duplicates in their order.
#[derive(Debug, Clone, PartialEq)]
pub struct DuplicateGroup {
    pub kind: DuplicateKind,
    pub first: usize,
    pub others: Vec<Duplicate>,
}

impl DuplicateGroup {
    /// The first image and its duplicates.
    pub fn images(&self) -> impl Iterator<Item = usize> {
        std::iter::once(self.first).chain(self.others.iter().map(|other| other.image))
    }

    /// The lowest similarity of an image to the first.
    pub fn similarity(&self) -> f32 {
        self.others.iter().map(|other| other.similarity).fold(1.0, f32::min)
    }
}

/// Which images are compared with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sides {
    /// All with all.
    One,
    /// Those before this number with those from it on.
    Two(usize),
}

impl Sides {
    pub fn is_first(self, image: usize) -> bool {
        match self {
            Self::One => true,
            Self::Two(second) => image < second,
        }
    }

    /// Whether the images are on both sides, if there are two.
    fn has_both(self, mut images: impl Iterator<Item = usize>) -> bool {
        let Self::Two(second) = self else { return true };
        let is_first = images.next().is_some_and(|image| image < second);
        images.any(|image| (image < second) != is_first)
    }
}

/// The images that others are compared with.
pub(super) trait Reference<T> {
    fn add(&mut self, image: usize, value: &T);
    fn find(&mut self, image: usize, value: &T) -> Option<Match>;
}

/// Finds groups, the strongest kind first: an image that joined a group is not compared again. With two sides, this
/// concerns images of the second side and those equal to the first of their group.
#[derive(Debug, Clone)]
pub(super) struct Grouping {
    sides: Sides,
    /// Images that joined a group, not as its first.
    joined: Vec<bool>,
    /// Images that are in a group.
    listed: Vec<bool>,
    groups: Vec<DuplicateGroup>,
}

impl Grouping {
    pub(super) fn new(images: usize, sides: Sides) -> Self {
        Self { sides, joined: vec![false; images], listed: vec![false; images], groups: Vec::new() }
    }

    /// Groups images with equal values: with two sides, all of them, on both.
    pub(super) fn add_equal<T: Hash + Eq + Copy>(&mut self, values: &[Option<T>]) {
        let mut first_of: HashMap<T, usize> = HashMap::new();
        let mut others: HashMap<usize, Vec<Duplicate>> = HashMap::new();
        for (image, value) in values.iter().enumerate() {
            let Some(value) = value else { continue };
            let first = *first_of.entry(*value).or_insert(image);
            if first != image {
                others.entry(first).or_default().push(Duplicate { image, similarity: 1.0, is_mirrored: false });
            }
        }
        self.add_groups(DuplicateKind::Exact, others);
    }

    /// Groups images that match a reference. Stops early if `proceed` returns false, which is asked per image.
    #[must_use]
    pub(super) fn add_matching<T, R: Reference<T>>(
        &mut self,
        kind: DuplicateKind,
        values: &[Option<T>],
        references: impl Fn() -> R,
        mut proceed: impl FnMut() -> bool,
    ) -> bool {
        let mut others: HashMap<usize, Vec<Duplicate>> = HashMap::new();
        let mut first_side = references();
        for (image, value) in values.iter().enumerate() {
            if !proceed() {
                return false;
            }
            let Some(value) = value.as_ref().filter(|_| !self.joined[image]) else { continue };
            let is_compared = self.sides == Sides::One || !self.sides.is_first(image);
            let found = if is_compared { first_side.find(image, value) } else { None };
            match found {
                Some(found) => others.entry(found.reference).or_default().push(found.duplicate(image)),
                None if self.sides.is_first(image) => first_side.add(image, value),
                None => {}
            }
        }
        if let Sides::Two(second) = self.sides
            && !self.add_rest_of_first_side(second, values, &mut others, references, proceed)
        {
            return false;
        }
        self.add_groups(kind, others);
        true
    }

    /// Adds images of the first side that match one of the second, but are in no group yet: to the group of a first
    /// image that they match as well, or to a group that begins with the image of the second side.
    fn add_rest_of_first_side<T, R: Reference<T>>(
        &self,
        second: usize,
        values: &[Option<T>],
        others: &mut HashMap<usize, Vec<Duplicate>>,
        references: impl Fn() -> R,
        mut proceed: impl FnMut() -> bool,
    ) -> bool {
        let (mut firsts, mut second_side) = (references(), references());
        let usable = |image: usize| Some((image, values[image].as_ref()?));
        let mut first_images: Vec<usize> = others.keys().copied().collect();
        first_images.sort_unstable();
        first_images.iter().filter_map(|image| usable(*image)).for_each(|(image, value)| firsts.add(image, value));
        (second..values.len()).filter_map(usable).for_each(|(image, value)| second_side.add(image, value));
        for (image, value) in (0..second).filter_map(usable) {
            if !proceed() {
                return false;
            }
            if self.listed[image] || first_images.binary_search(&image).is_ok() {
                continue;
            }
            if let Some(on_other_side) = second_side.find(image, value) {
                let found = firsts.find(image, value).unwrap_or(on_other_side);
                others.entry(found.reference).or_default().push(found.duplicate(image));
            }
        }
        true
    }

    fn add_groups(&mut self, kind: DuplicateKind, others: HashMap<usize, Vec<Duplicate>>) {
        let groups = others.into_iter().map(|(first, others)| DuplicateGroup { kind, first, others });
        for mut group in groups.filter(|group| self.sides.has_both(group.images())) {
            group.others.sort_unstable_by_key(|other| other.image);
            for other in &group.others {
                let is_compared = self.sides == Sides::One || !self.sides.is_first(other.image);
                self.joined[other.image] |= is_compared || kind == DuplicateKind::Exact;
            }
            group.images().for_each(|image| self.listed[image] = true);
            self.groups.push(group);
        }
    }

    /// The groups in the order of their first images, for one image the strongest first.
    pub(super) fn finish(mut self) -> Vec<DuplicateGroup> {
        self.groups.sort_unstable_by_key(|group| (group.first, group.kind));
        self.groups
    }
}

#[cfg(test)]
mod tests {
    use super::super::perceptual::{HashIndex, PerceptualHash};
    use super::*;

    fn hash(bits: u64) -> PerceptualHash {
        PerceptualHash { bits, mirrored: !bits }
    }

    fn groups(bytes: &[u8], hashes: &[Option<PerceptualHash>], sides: Sides) -> Vec<(DuplicateKind, Vec<usize>)> {
        let mut grouping = Grouping::new(bytes.len(), sides);
        grouping.add_equal(&bytes.iter().copied().map(Some).collect::<Vec<_>>());
        assert!(grouping.add_matching(DuplicateKind::Near, hashes, || HashIndex::new(2), || true));
        grouping.finish().iter().map(|group| (group.kind, group.images().collect())).collect()
    }

    use DuplicateKind::{Exact, Near};

    #[test]
    fn pairs_are_reported_under_one_kind() {
        // 0 and 2 have the same bytes, 3 looks like them, and 4 looks like 3 alone.
        let hashes = [hash(0), hash(0xffff_0000), hash(0), hash(0b11), hash(0b1111)].map(Some);
        let found = groups(&[1, 2, 1, 4, 5], &hashes, Sides::One);
        assert_eq!(found, [(Exact, vec![0, 2]), (Near, vec![0, 3])]);
    }

    #[test]
    fn two_sides_report_only_groups_on_both() {
        let hashes =
            [hash(0), hash(0b1), hash(0xffff_0000), hash(0b111), hash(0xffff_0000), hash(0xf0f0_f0f0)].map(Some);
        // 0 and 1 look the same but are on one side; 3 looks like 1 alone, 4 like 2.
        let found = groups(&[1, 2, 3, 4, 5, 6], &hashes, Sides::Two(3));
        assert_eq!(found, [(Near, vec![1, 3]), (Near, vec![2, 4])]);
        // All of the first side that match are listed: 1 looks like 0 and 3, 2 like 3 alone.
        let hashes = [hash(0), hash(0b1), hash(0b1_1100), hash(0b100)].map(Some);
        let found = groups(&[1, 2, 3, 4], &hashes, Sides::Two(3));
        assert_eq!(found, [(Near, vec![0, 1, 3]), (Near, vec![3, 2])]);
        // 3 has the bytes of 0, and 1 looks like both; 2 looks like 4, as 0 does.
        let hashes = [hash(0), hash(0b1), hash(0b1_1100), hash(0), hash(0b1100)].map(Some);
        let found = groups(&[1, 2, 3, 1, 5], &hashes, Sides::Two(3));
        assert_eq!(found, [(Exact, vec![0, 3]), (Near, vec![0, 1, 4]), (Near, vec![4, 2])]);
        let same = groups(&[1, 1, 3, 1, 5, 5], &[None; 6], Sides::Two(3));
        assert_eq!(same, [(Exact, vec![0, 1, 3])]);
    }

    #[test]
    fn million_identical_images_form_one_group_quickly() {
        let count = 1_000_000;
        let mut grouping = Grouping::new(count, Sides::Two(count / 2));
        let different: Vec<Option<usize>> = (0..count).map(Some).collect();
        grouping.add_equal(&different);
        let hashes = vec![Some(hash(77)); count];
        assert!(grouping.add_matching(Near, &hashes, || HashIndex::new(6), || true));
        let [group] = grouping.finish().try_into().unwrap();
        assert_eq!((group.first, group.others.len()), (0, count - 1));
        let mut grouping = Grouping::new(count, Sides::One);
        grouping.add_equal(&vec![Some(1); count]);
        let [group] = grouping.finish().try_into().unwrap();
        assert_eq!((group.first, group.others.len(), group.similarity()), (0, count - 1, 1.0));
    }
}
