//! Which image of one side is which image of the other.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::composed;
use crate::domain::{AnnotatedImage, AnnotatedImageId};

/// What is known of an image.
#[derive(Debug, Clone, Copy)]
pub struct ImageKey<'k> {
    pub id: Option<&'k AnnotatedImageId>,
    /// As [`AnnotatedImage::name`], or the name of a sample; may be empty.
    pub name: &'k str,
}

/// The images of one side (the left), with those of the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageMatches {
    /// For each image of the left side, the index on the right side.
    pub left: Vec<Result<(u32, ImageReason), Unmatched>>,
    /// The images of the right side that no image of the left side is.
    pub right_unmatched: Vec<(u32, Unmatched)>,
}

/// Why two images are the same one. No image has two partners.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ImageReason {
    /// Both have this id, and at least one of them has no name.
    Id,
    /// Both have this path; how its accents are encoded makes no difference.
    Path,
    /// The ends of their paths are the same, and no other image's is: at least the file names.
    PathEnd,
    /// As `PathEnd` without the extension of the file name.
    Stem,
    /// The file name is the number that is the other image's id (`0017.jpg` and 17).
    Number,
}

/// Why an image has no partner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unmatched {
    /// The other side has no such image.
    Missing,
    /// There are several with this name on a side, in folders that the other side does not name.
    Ambiguous,
}

impl<'k> ImageKey<'k> {
    pub fn of(image: &'k AnnotatedImage) -> Self {
        Self { id: image.id.as_ref(), name: &image.name }
    }

    pub fn named(name: &'k str) -> Self {
        Self { id: None, name }
    }

    /// The name, or the id if it is a text: programs that know only the name of a file give it as id.
    fn path(&self) -> &'k str {
        match self.id {
            Some(AnnotatedImageId::Text(text)) if self.name.is_empty() => text,
            _ => self.name,
        }
    }

    fn number(&self) -> Option<i64> {
        match self.id {
            Some(AnnotatedImageId::Number(number)) if self.name.is_empty() => Some(*number),
            _ => None,
        }
    }
}

impl ImageMatches {
    /// By id if one of both has no name, otherwise by path, then by as much of the ends of the paths as makes them
    /// unique on both sides.
    pub fn between(left: &[ImageKey], right: &[ImageKey]) -> Self {
        let mut matching = Matching { left: vec![Err(Unmatched::Missing); left.len()], right: vec![None; right.len()] };
        // An id may be given twice: as that of a name, and as that of nothing.
        matching.by(
            ImageReason::Id,
            left,
            right,
            |key| key.id.cloned(),
            |one, other| one.name.is_empty() || other.name.is_empty(),
        );
        let always = |_: &ImageKey, _: &ImageKey| true;
        let path = |key: &ImageKey<'_>| Some(key.path().to_owned()).filter(|path| !path.is_empty());
        matching.by(ImageReason::Path, left, right, path, always);
        let path = |key: &ImageKey<'_>| path(key).map(|path| composed(&path).into_owned());
        matching.by(ImageReason::Path, left, right, path, always);
        let deepest = left.iter().chain(right).map(|key| key.path().split('/').count()).max().unwrap_or(1);
        for parts in (1..=deepest.min(DEEPEST_END)).rev() {
            matching.by(ImageReason::PathEnd, left, right, |key| end(key.path(), parts), always);
        }
        for parts in (1..=deepest.min(DEEPEST_END)).rev() {
            let stem = |key: &ImageKey<'_>| end(without_extension(key.path()), parts);
            matching.by(ImageReason::Stem, left, right, stem, always);
        }
        let number = |key: &ImageKey<'_>| key.number().or_else(|| end(without_extension(key.path()), 1)?.parse().ok());
        let one_is_number = |one: &ImageKey, other: &ImageKey| one.number().is_some() != other.number().is_some();
        matching.by(ImageReason::Number, left, right, number, one_is_number);
        matching.finish(left, right)
    }

    /// The index on the right side.
    pub fn index(&self, left: usize) -> Option<u32> {
        Some(self.left.get(left)?.ok()?.0)
    }

    /// How many images were matched for this reason.
    pub fn count(&self, reason: ImageReason) -> usize {
        self.left.iter().filter(|matched| matched.is_ok_and(|(_, because)| because == reason)).count()
    }
}

/// Longer ends of paths are compared as a whole.
const DEEPEST_END: usize = 8;

struct Matching {
    left: Vec<Result<(u32, ImageReason), Unmatched>>,
    /// The partner of each image of the right side.
    right: Vec<Option<u32>>,
}

impl Matching {
    /// Makes partners of two images with the same key, if no other image of their sides has it.
    fn by<K: std::hash::Hash + Eq>(
        &mut self,
        reason: ImageReason,
        left: &[ImageKey],
        right: &[ImageKey],
        key: impl Fn(&ImageKey) -> Option<K>,
        fits: impl Fn(&ImageKey, &ImageKey) -> bool,
    ) {
        if self.left.iter().all(Result::is_ok) || self.right.iter().all(Option::is_some) {
            return;
        }
        let [left_by, right_by] = [left, right].map(|side| unique(side, &key));
        for (key, one) in left_by {
            let Some(one) = one else { continue };
            let Some(&Some(other)) = right_by.get(&key) else { continue };
            let are_free = self.left[one as usize].is_err() && self.right[other as usize].is_none();
            if are_free && fits(&left[one as usize], &right[other as usize]) {
                self.left[one as usize] = Ok((other, reason));
                self.right[other as usize] = Some(one);
            }
        }
    }

    /// Says why the rest has no partner.
    fn finish(mut self, left: &[ImageKey], right: &[ImageKey]) -> ImageMatches {
        let stem = |key: &ImageKey| end(without_extension(key.path()), 1);
        let [left_by, right_by] = [left, right].map(|side| unique(side, stem));
        let why = |key: &ImageKey, others: &HashMap<String, Option<u32>>| match stem(key) {
            Some(stem) if others.contains_key(&stem) => Unmatched::Ambiguous,
            _ => Unmatched::Missing,
        };
        for (matched, key) in self.left.iter_mut().zip(left) {
            if matched.is_err() {
                *matched = Err(why(key, &right_by));
            }
        }
        let unmatched = (0..).zip(&self.right).filter(|(_, partner)| partner.is_none());
        let right_unmatched = unmatched.map(|(index, _)| (index, why(&right[index as usize], &left_by))).collect();
        ImageMatches { left: self.left, right_unmatched }
    }
}

/// The image with each key; `None` if there are several.
fn unique<K: std::hash::Hash + Eq>(side: &[ImageKey], key: impl Fn(&ImageKey) -> Option<K>) -> HashMap<K, Option<u32>> {
    let mut by_key = HashMap::new();
    for (index, image) in (0_u32..).zip(side) {
        let Some(key) = key(image) else { continue };
        match by_key.entry(key) {
            Entry::Vacant(entry) => drop(entry.insert(Some(index))),
            Entry::Occupied(mut entry) => drop(entry.insert(None)),
        }
    }
    by_key
}

/// The last `parts` of a path, if it has so many.
fn end(path: &str, parts: usize) -> Option<String> {
    let path = composed(path);
    if path.is_empty() {
        return None;
    }
    let mut separators = path.rmatch_indices('/').map(|(at, _)| at);
    match separators.nth(parts - 1) {
        Some(at) => Some(path[at + 1..].to_owned()),
        None => (path.split('/').count() == parts).then(|| path.into_owned()),
    }
}

fn without_extension(path: &str) -> &str {
    let name = path.rfind('/').map_or(0, |slash| slash + 1);
    match path[name..].rfind('.') {
        Some(dot) if dot > 0 => &path[..name + dot],
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys<'k>(side: &'k [(Option<AnnotatedImageId>, &'k str)]) -> Vec<ImageKey<'k>> {
        side.iter().map(|(id, name)| ImageKey { id: id.as_ref(), name }).collect()
    }

    #[expect(clippy::unnecessary_wraps, reason = "an image may have no id")]
    fn number(number: i64) -> Option<AnnotatedImageId> {
        Some(AnnotatedImageId::Number(number))
    }

    #[expect(clippy::unnecessary_wraps, reason = "an image may have no id")]
    fn text(text: &str) -> Option<AnnotatedImageId> {
        Some(AnnotatedImageId::Text(text.to_owned()))
    }

    type Side<'k> = &'k [(Option<AnnotatedImageId>, &'k str)];

    #[track_caller]
    fn check(left: Side, right: Side, expected: &[Result<(u32, ImageReason), Unmatched>]) {
        let (left, right) = (keys(left), keys(right));
        let matches = ImageMatches::between(&left, &right);
        assert_eq!(matches.left, expected);
        // Both ways give the same pairs.
        let back = ImageMatches::between(&right, &left);
        for (index, matched) in matches.left.iter().enumerate() {
            if let Ok((other, reason)) = matched {
                assert_eq!(back.left[*other as usize], Ok((index as u32, *reason)));
            }
        }
        assert_eq!(back.right_unmatched.len(), matches.left.iter().filter(|matched| matched.is_err()).count());
    }

    use ImageReason::{Id, Number, Path, PathEnd, Stem};
    use Unmatched::{Ambiguous, Missing};

    #[test]
    fn results_match_by_id_and_names_come_before_ids() {
        let truth = [(number(1), "a.jpg"), (number(2), "b.jpg"), (text("x"), "c.jpg")];
        check(
            &[(number(2), ""), (number(3), ""), (text("x"), ""), (text("a"), "")],
            &truth,
            &[Ok((1, Id)), Err(Missing), Ok((2, Id)), Ok((0, Stem))],
        );
        check(&[(number(1), "b.jpg"), (number(2), "d.jpg")], &truth, &[Ok((1, Path)), Err(Missing)]);
    }

    #[test]
    fn as_much_of_a_path_counts_as_makes_it_unique() {
        check(
            &[(None, "val/a/1.jpg"), (None, "val/b/1.jpg"), (None, "val/b/2.jpg"), (None, "3.jpg")],
            &[(None, "b/1.jpg"), (None, "a/1.jpg"), (None, "2.jpg"), (None, "x/3.jpg"), (None, "y/3.jpg")],
            &[Ok((1, PathEnd)), Ok((0, PathEnd)), Ok((2, PathEnd)), Err(Ambiguous)],
        );
    }

    #[test]
    fn a_name_that_is_not_unique_is_not_guessed_because_its_twin_was_matched() {
        check(
            &[(None, "a/x.jpg"), (None, "b/x.jpg")],
            &[(None, "a/x.jpg"), (None, "c/x.jpg")],
            &[Ok((0, Path)), Err(Ambiguous)],
        );
    }

    #[test]
    fn accents_match_however_they_are_encoded_and_first_as_they_are() {
        let (one, two) = ("caf\u{e9}.jpg", "cafe\u{301}.jpg");
        check(&[(None, one)], &[(None, two)], &[Ok((0, Path))]);
        check(&[(None, "a/caf\u{e9}.png")], &[(None, two)], &[Ok((0, Stem))]);
        check(&[(None, one), (None, two)], &[(None, two), (None, one)], &[Ok((1, Path)), Ok((0, Path))]);
        check(&[(None, one), (None, two)], &[(None, two)], &[Err(Ambiguous), Ok((0, Path))]);
        check(&[(None, "b/caf\u{e9}.jpg")], &[(None, one), (None, two)], &[Err(Ambiguous)]);
    }

    #[test]
    fn extensions_and_leading_zeros_are_the_last_that_count() {
        check(
            &[(None, "labels/a"), (None, "b.png"), (number(17), ""), (None, ".c")],
            &[(None, "a.jpg"), (None, "b.jpg"), (None, "0017.jpg"), (None, "c")],
            &[Ok((0, Stem)), Ok((1, Stem)), Ok((2, Number)), Err(Missing)],
        );
    }
}
