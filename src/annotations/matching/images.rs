//! Matches the images of two sides.

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::composed;
use crate::domain::{AnnotatedImage, AnnotatedImageId};

#[derive(Debug, Clone, Copy)]
pub struct ImageKey<'k> {
    pub id: Option<&'k AnnotatedImageId>,
    /// As [`AnnotatedImage::name`], or the name of a sample; can be empty.
    pub name: &'k str,
    /// As [`AnnotatedImage::original`].
    pub original: Option<&'k str>,
}

/// The images of one side (left), matched with those of the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageMatches {
    /// For each image of the left side, the index on the right side.
    pub left: Vec<Result<(u32, ImageReason), Unmatched>>,
    /// The images of the right side without a match.
    pub right_unmatched: Vec<(u32, Unmatched)>,
    /// Images with the same file name in different folders, if there are any.
    pub other_folders: Option<OtherFolders>,
    /// Whether both ids and file names fit all images that have only ids, but differ; ids were used.
    pub fits_names: bool,
}

/// Images on both sides with the same file name but different folders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherFolders {
    /// One of them, as named on the left and on the right.
    pub example: [String; 2],
    pub count: usize,
    /// They were not matched.
    pub are_refused: bool,
}

/// How folders affect images with the same file name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Folders {
    /// Images in different folders are different.
    #[default]
    Agree,
    /// Folders are ignored.
    MayDiffer,
}

/// Why two images match. Each image has at most one partner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageReason {
    /// Equal paths; the encoding of accents makes no difference.
    Path,
    /// Equal path suffixes that are unique: at least the file names.
    PathEnd,
    /// As `PathEnd`, without the extension.
    Stem,
    /// Equal ids, and at least one side without a name.
    Id,
    /// The file name is a number that equals the other image's id (`0017.jpg` and 17).
    Number,
    /// Only the file names are equal: the folders differ.
    FileName,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unmatched {
    /// The other side has no such image.
    Missing,
    /// Unmatched images of the other side have this name, in folders that this side does not name.
    Ambiguous,
}

impl ImageReason {
    /// To follow “128 images”.
    pub fn text(self) -> &'static str {
        match self {
            Self::Path => "by path",
            Self::PathEnd => "by path suffix",
            Self::Stem => "by path without the extension",
            Self::Id => "by id",
            Self::Number => "by number in the file name",
            Self::FileName => "by file name only",
        }
    }
}

impl<'k> ImageKey<'k> {
    pub fn new(image: &'k AnnotatedImage) -> Self {
        Self { id: image.id.as_ref(), name: &image.name, original: image.original.as_deref() }
    }

    pub fn named(name: &'k str) -> Self {
        Self { id: None, name, original: None }
    }

    /// The same image by the name of its original.
    fn by_original(&self) -> Self {
        Self { name: self.original.unwrap_or(self.name), original: None, ..*self }
    }

    fn is_nameless(&self) -> bool {
        self.name.is_empty() && self.id.is_some()
    }

    /// The name, or the id if it is text: tools that know only the file name use it as id.
    fn path(&self, by: NamelessBy) -> &'k str {
        match self.id {
            Some(AnnotatedImageId::Text(text)) if self.name.is_empty() && by == NamelessBy::Name => text,
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

/// How images without a name are matched: one rule for all, because otherwise an id that happens to be the number in a
/// file name would be mistaken for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NamelessBy {
    Id,
    Name,
}

impl ImageMatches {
    /// Matches by path, then by the shortest path suffix that is unique on both sides. Images that have only ids are
    /// matched by id if all of those are listed, otherwise by name if that matches more of them. Copies with other names
    /// are matched by the names of their originals if that matches more images.
    pub fn between(left: &[ImageKey], right: &[ImageKey], folders: Folders) -> Self {
        let by_name = Self::by_name(left, right, folders);
        if left.iter().chain(right).all(|key| key.original.is_none()) {
            return by_name;
        }
        let [left, right] = [left, right].map(|side| side.iter().map(ImageKey::by_original).collect::<Vec<_>>());
        let by_original = Self::by_name(&left, &right, folders);
        let [of_names, of_originals] = [&by_name, &by_original].map(|matches| matches.left.iter().flatten().count());
        if of_originals > of_names { by_original } else { by_name }
    }

    fn by_name(left: &[ImageKey], right: &[ImageKey], folders: Folders) -> Self {
        let by_id = Matching::new(left, right, NamelessBy::Id);
        let nameless = left.iter().chain(right).filter(|key| key.is_nameless()).count();
        if nameless == 0 {
            return by_id.finish(left, right, folders);
        }
        let by_name = Matching::new(left, right, NamelessBy::Name);
        let [of_ids, of_names] = [&by_id, &by_name].map(|matching| matching.nameless(left, right));
        if of_ids < nameless && of_names > of_ids {
            return by_name.finish(left, right, folders);
        }
        let fits_names = of_names == nameless && !by_id.has_pairs_of(&by_name);
        Self { fits_names, ..by_id.finish(left, right, folders) }
    }

    /// The index on the right side.
    pub fn index(&self, left: usize) -> Option<u32> {
        Some(self.left.get(left)?.ok()?.0)
    }

    /// The images in different folders because of which no image matches.
    pub fn only_other_folders(&self) -> Option<&OtherFolders> {
        self.other_folders.as_ref().filter(|_| self.left.iter().all(Result::is_err))
    }

    /// The number of matched images, by reason.
    pub fn counts(&self) -> BTreeMap<ImageReason, usize> {
        let mut counts = BTreeMap::new();
        for (_, reason) in self.left.iter().flatten() {
            *counts.entry(*reason).or_default() += 1;
        }
        counts
    }
}

/// Longer suffixes are compared as a whole.
const DEEPEST_END: usize = 8;

/// Folders that every dataset has, and that do not identify images.
const USUAL_FOLDERS: [&str; 7] = ["images", "image", "imgs", "img", "labels", "annotations", "jpegimages"];

/// How a path is written to be compared.
type PathForm = fn(&str) -> Cow<'_, str>;

/// Whole paths in the forms in which they are compared, most certain first.
const PATH_FORMS: [(ImageReason, PathForm); 4] = [
    (ImageReason::Path, |path| path.into()),
    (ImageReason::Path, composed),
    (ImageReason::PathEnd, |path| below_usual_folder(path).into()),
    (ImageReason::PathEnd, |path| composed(below_usual_folder(path))),
];

struct Matching {
    left: Vec<Option<(u32, ImageReason)>>,
    /// The partner of each image of the right side.
    right: Vec<Option<u32>>,
    nameless_by: NamelessBy,
}

impl Matching {
    fn new(left: &[ImageKey], right: &[ImageKey], nameless_by: NamelessBy) -> Self {
        let mut matching = Self { left: vec![None; left.len()], right: vec![None; right.len()], nameless_by };
        let path = |key: &ImageKey<'_>| Some(key.path(nameless_by).to_owned()).filter(|path| !path.is_empty());
        let always = |_: &ImageKey, _: &ImageKey| true;
        if nameless_by == NamelessBy::Id {
            // An id can occur twice: with a name, and without one.
            let one_is_nameless = |one: &ImageKey, other: &ImageKey| one.is_nameless() || other.is_nameless();
            matching.by(ImageReason::Id, left, right, |key| key.id.cloned(), one_is_nameless);
        }
        for (reason, form) in PATH_FORMS {
            matching.by(reason, left, right, |key| Some(form(&path(key)?).into_owned()), always);
        }
        let keys = left.iter().chain(right);
        let deepest = keys.map(|key| key.path(nameless_by).split('/').count()).max().unwrap_or(1);
        for parts in (1..=deepest.min(DEEPEST_END)).rev() {
            matching.by(ImageReason::PathEnd, left, right, |key| end(key.path(nameless_by), parts), always);
        }
        for parts in (1..=deepest.min(DEEPEST_END)).rev() {
            matching.by_complete_path(left, right, parts);
        }
        for (_, form) in PATH_FORMS {
            let complete_stem = |key: &ImageKey<'_>| Some(form(without_extension(&path(key)?)).into_owned());
            matching.by(ImageReason::Stem, left, right, complete_stem, always);
        }
        for parts in (1..=deepest.min(DEEPEST_END)).rev() {
            let stem = |key: &ImageKey<'_>| end(without_extension(key.path(nameless_by)), parts);
            matching.by(ImageReason::Stem, left, right, stem, always);
        }
        if nameless_by == NamelessBy::Name {
            let number = |key: &ImageKey<'_>| {
                key.number().or_else(|| end(without_extension(key.path(nameless_by)), 1)?.parse().ok())
            };
            let one_is_number = |one: &ImageKey, other: &ImageKey| one.number().is_some() != other.number().is_some();
            matching.by(ImageReason::Number, left, right, number, one_is_number);
        }
        matching
    }

    /// The number of images without a name that have a partner.
    fn nameless(&self, left: &[ImageKey], right: &[ImageKey]) -> usize {
        let of_left = self.left.iter().zip(left).filter(|(matched, key)| matched.is_some() && key.is_nameless());
        let of_right = self.right.iter().zip(right).filter(|(matched, key)| matched.is_some() && key.is_nameless());
        of_left.count() + of_right.count()
    }

    fn has_pairs_of(&self, other: &Self) -> bool {
        self.right == other.right
    }

    /// Pairs images with the same key, if it is unique on both sides.
    fn by<K: std::hash::Hash + Eq>(
        &mut self,
        reason: ImageReason,
        left: &[ImageKey],
        right: &[ImageKey],
        key: impl Fn(&ImageKey) -> Option<K>,
        fits: impl Fn(&ImageKey, &ImageKey) -> bool,
    ) {
        if self.left.iter().all(Option::is_some) || self.right.iter().all(Option::is_some) {
            return;
        }
        let [left_by, right_by] = [left, right].map(|side| unique(side, &key, |_| true));
        for (key, one) in left_by {
            let Some(one) = one else { continue };
            let Some(&Some(other)) = right_by.get(&key) else { continue };
            let are_free = self.left[one as usize].is_none() && self.right[other as usize].is_none();
            let (left_key, right_key) = (&left[one as usize], &right[other as usize]);
            if are_free && fits(left_key, right_key) {
                let is_by_end = matches!(reason, ImageReason::PathEnd | ImageReason::Stem);
                let paths = [left_key, right_key].map(|key| key.path(self.nameless_by));
                let reason = if is_by_end && folders_differ(paths) { ImageReason::FileName } else { reason };
                self.left[one as usize] = Some((other, reason));
                self.right[other as usize] = Some(one);
            }
        }
    }

    /// Pairs an absolute path with a relative one, which it ends with: without subfolders, `x.jpg` is not the `x.jpg` in
    /// one of them. Only images without a partner count: images in subfolders have theirs by now.
    fn by_complete_path(&mut self, left: &[ImageKey], right: &[ImageKey], parts: usize) {
        let key = |key: &ImageKey<'_>| {
            let path = below_usual_folder(key.path(self.nameless_by));
            end(path, parts).filter(|end| is_absolute(path) || *end == composed(path))
        };
        let left_by = unique(left, key, |index| self.left[index].is_none());
        let right_by = unique(right, key, |index| self.right[index].is_none());
        for (key, one) in left_by {
            let (Some(one), Some(&Some(other))) = (one, right_by.get(&key)) else { continue };
            let paths = [&left[one as usize], &right[other as usize]].map(|key| key.path(self.nameless_by));
            if is_absolute(paths[0]) != is_absolute(paths[1]) {
                self.left[one as usize] = Some((other, ImageReason::PathEnd));
                self.right[other as usize] = Some(one);
            }
        }
    }

    /// Records why the remaining images have no partner.
    fn finish(mut self, left: &[ImageKey], right: &[ImageKey], folders: Folders) -> ImageMatches {
        let other_folders = self.other_folders(left, right, folders);
        let stem = |key: &ImageKey| end(without_extension(key.path(self.nameless_by)), 1);
        let left_by = unique(left, stem, |index| self.left[index].is_none());
        let right_by = unique(right, stem, |index| self.right[index].is_none());
        let why = |key: &ImageKey, others: &HashMap<String, Option<u32>>| match stem(key) {
            Some(stem) if others.contains_key(&stem) => Unmatched::Ambiguous,
            _ => Unmatched::Missing,
        };
        let of_left = self.left.iter().zip(left);
        let unmatched = (0..).zip(&self.right).filter(|(_, partner)| partner.is_none());
        ImageMatches {
            left: of_left.map(|(matched, key)| matched.ok_or_else(|| why(key, &right_by))).collect(),
            right_unmatched: unmatched.map(|(index, _)| (index, why(&right[index as usize], &left_by))).collect(),
            other_folders,
            fits_names: false,
        }
    }

    /// The images with the same file name in different folders, which lose their partners unless folders may differ.
    fn other_folders(&mut self, left: &[ImageKey], right: &[ImageKey], folders: Folders) -> Option<OtherFolders> {
        let by_name: Vec<(usize, u32)> = (0..)
            .zip(&self.left)
            .filter_map(|(one, matched)| Some((one, matched.filter(|(_, reason)| *reason == ImageReason::FileName)?.0)))
            .collect();
        let &(one, other) = by_name.first()?;
        let are_refused = folders == Folders::Agree;
        for (one, other) in by_name.iter().filter(|_| are_refused) {
            self.left[*one] = None;
            self.right[*other as usize] = None;
        }
        Some(OtherFolders {
            example: [&left[one], &right[other as usize]].map(|key| key.path(self.nameless_by).to_owned()),
            count: by_name.len(),
            are_refused,
        })
    }
}

/// The path in the folder of images of a dataset: `images/sub/x.jpg` is `sub/x.jpg` there.
fn below_usual_folder(path: &str) -> &str {
    path.split_once('/').filter(|(folder, _)| is_usual(folder)).map_or(path, |(_, rest)| rest)
}

fn is_usual(folder: &str) -> bool {
    USUAL_FOLDERS.iter().any(|usual| usual.eq_ignore_ascii_case(folder))
}

/// Whether the folders of two paths indicate different files. Only the folder next to the file name counts, apart from
/// [`USUAL_FOLDERS`]; a path without one is inconclusive.
fn folders_differ(paths: [&str; 2]) -> bool {
    let folder = |path: &'_ str| {
        let mut folders = path.rsplit('/').skip(1).filter(|folder| !matches!(*folder, "" | "." | ".."));
        folders.find(|folder| !is_usual(folder)).map(|folder| composed(folder).into_owned())
    };
    let [one, other] = paths.map(folder);
    one.zip(other).is_some_and(|(one, other)| one != other)
}

/// The image with each key among those that count, by index; `None` if there are several.
fn unique<K: std::hash::Hash + Eq>(
    side: &[ImageKey],
    key: impl Fn(&ImageKey) -> Option<K>,
    counts: impl Fn(usize) -> bool,
) -> HashMap<K, Option<u32>> {
    let mut by_key = HashMap::new();
    for (index, image) in (0_u32..).zip(side).filter(|(index, _)| counts(*index as usize)) {
        let Some(key) = key(image) else { continue };
        match by_key.entry(key) {
            Entry::Vacant(entry) => drop(entry.insert(Some(index))),
            Entry::Occupied(mut entry) => drop(entry.insert(None)),
        }
    }
    by_key
}

/// The last `parts` of a path, if it has that many.
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

/// `/photos/x.jpg`, `C:/photos/x.jpg` or `s3://bucket/x.jpg`.
fn is_absolute(path: &str) -> bool {
    path.starts_with('/') || path.contains(":/")
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
        side.iter().map(|(id, name)| ImageKey { id: id.as_ref(), name, original: None }).collect()
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
        let matches = ImageMatches::between(&left, &right, Folders::Agree);
        assert_eq!(matches.left, expected);
        // Both directions give the same pairs.
        let back = ImageMatches::between(&right, &left, Folders::Agree);
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
    fn renamed_copies_match_originals_and_themselves() {
        let image = |name, original| ImageKey { name, original, id: None };
        let copies = [
            image("images/x.png", None),
            image("images/x-2.jpg", Some("/photos/x.jpg")),
            image("images/x-2-2.jpg", Some("/photos/x-2.jpg")),
        ];
        let matched = |names: [&str; 3]| {
            let matches = ImageMatches::between(&copies, &names.map(ImageKey::named), Folders::Agree);
            [0, 1, 2].map(|left| matches.index(left))
        };
        assert_eq!(matched(["x-2.jpg", "x.jpg", "x.png"]), [Some(2), Some(1), Some(0)]);
        assert_eq!(matched(["x-2-2.jpg", "x-2.jpg", "x.png"]), [Some(2), Some(1), Some(0)]);
    }

    #[test]
    fn results_match_by_id_after_names() {
        let truth = [(number(1), "a.jpg"), (number(2), "b.jpg"), (text("x"), "c.jpg")];
        check(
            &[(number(2), ""), (number(3), ""), (text("x"), ""), (text("a"), "")],
            &truth,
            &[Ok((1, Id)), Err(Missing), Ok((2, Id)), Err(Missing)],
        );
        check(&[(number(1), "b.jpg"), (number(2), "d.jpg")], &truth, &[Ok((1, Path)), Err(Missing)]);
    }

    #[test]
    fn ids_and_names_are_not_mixed() {
        let truth = [(number(1), "2.jpg"), (number(2), "30.jpg"), (number(3), "0004.jpg")];
        let ids = |ids: [i64; 3]| ids.map(|id| (number(id), ""));
        check(&ids([3, 1, 2]), &truth, &[Ok((2, Id)), Ok((0, Id)), Ok((1, Id))]);
        // 2 is the id of another image.
        check(&ids([2, 30, 4]), &truth, &[Ok((0, Number)), Ok((1, Number)), Ok((2, Number))]);
        check(&ids([2, 3, 7]), &truth, &[Ok((1, Id)), Ok((2, Id)), Err(Missing)]);
        check(&[(text("30"), ""), (text("2"), "")], &truth, &[Ok((1, Stem)), Ok((0, Stem))]);
        let turned = [(number(1), "2.jpg"), (number(2), "1.jpg")];
        let fits = |ids: &[(Option<AnnotatedImageId>, &str)]| {
            ImageMatches::between(&keys(ids), &keys(&turned), Folders::Agree).fits_names
        };
        assert!(fits(&[(number(1), ""), (number(2), "")]));
        assert!(!fits(&[(number(1), "1.jpg")]));
    }

    #[test]
    fn images_in_other_folders_do_not_match() {
        let named = |names: &[&'static str]| names.iter().map(|name| (None, *name)).collect::<Vec<_>>();
        let truth = named(&["train/1.jpg", "train/2.jpg", "train/3.jpg"]);
        check(&named(&["val/1.jpg", "val/2.jpg"]), &truth, &[Err(Ambiguous), Err(Ambiguous)]);
        check(&named(&["val/1.jpg", "train/2.jpg"]), &truth, &[Err(Ambiguous), Ok((1, Path))]);
        check(&named(&["1.jpg", "data/train/2.jpg"]), &truth, &[Ok((0, PathEnd)), Ok((1, PathEnd))]);
        check(&named(&["images/1.jpg", "JPEGImages/train/2.png"]), &truth, &[Ok((0, PathEnd)), Ok((1, Stem))]);
        check(&named(&["train/images/1.jpg"]), &named(&["valid/images/1.jpg"]), &[Err(Ambiguous)]);
        let (left, right) = (named(&["val/1.jpg"]), &truth);
        let between = |folders| ImageMatches::between(&keys(&left), &keys(right), folders);
        let example = ["val/1.jpg".to_owned(), "train/1.jpg".to_owned()];
        let refused = OtherFolders { example, count: 1, are_refused: true };
        assert_eq!(between(Folders::Agree).other_folders, Some(refused.clone()));
        let taken = between(Folders::MayDiffer);
        assert_eq!(taken.other_folders, Some(OtherFolders { are_refused: false, ..refused }));
        assert_eq!(taken.index(0), Some(0));
    }

    #[test]
    fn shortest_unique_path_suffix_is_used() {
        check(
            &[(None, "val/a/1.jpg"), (None, "val/b/1.jpg"), (None, "val/b/2.jpg"), (None, "3.jpg")],
            &[(None, "b/1.jpg"), (None, "a/1.jpg"), (None, "2.jpg"), (None, "x/3.jpg"), (None, "y/3.jpg")],
            &[Ok((1, PathEnd)), Ok((0, PathEnd)), Ok((2, PathEnd)), Err(Ambiguous)],
        );
    }

    #[test]
    fn name_of_a_subfolder_leaves_the_upper_image() {
        let samples = [(None, "x.jpg"), (None, "sub/x.jpg"), (None, "y.jpg")];
        let absolute = [(None, "/d/x.jpg"), (None, "/d/sub/x.jpg"), (None, "/d/y.jpg")];
        check(&absolute, &samples, &[Ok((0, PathEnd)), Ok((1, PathEnd)), Ok((2, PathEnd))]);
        check(&[(None, "s3://b/d/x.jpg")], &samples, &[Ok((0, PathEnd))]);
        check(
            &[(None, "/a/x.jpg"), (None, "/a/s/x.jpg")],
            &[(None, "/c/s/x.jpg"), (None, "/c/d/x.jpg")],
            &[Err(Ambiguous), Ok((0, PathEnd))],
        );
        let labels = [(None, "sub/x"), (None, "x"), (None, "y")];
        check(&labels, &samples, &[Ok((1, Stem)), Ok((0, Stem)), Ok((2, Stem))]);
        // Without the upper image, nothing says which one it is.
        check(&[(None, "x.jpg")], &[(None, "a/x.jpg"), (None, "b/x.jpg")], &[Err(Ambiguous)]);
    }

    #[test]
    fn folder_of_a_dataset_does_not_hide_the_upper_image() {
        let samples = [(None, "x.jpg"), (None, "sub/x.jpg")];
        let absolute = [(None, "/d/x.jpg"), (None, "/d/sub/x.jpg")];
        for folder in ["images", "JPEGImages"] {
            let [upper, lower] = ["x.jpg", "sub/x.jpg"].map(|name| format!("{folder}/{name}"));
            let listed = [(None, lower.as_str()), (None, upper.as_str())];
            check(&listed, &samples, &[Ok((1, PathEnd)), Ok((0, PathEnd))]);
            check(&listed, &absolute, &[Ok((1, PathEnd)), Ok((0, PathEnd))]);
            let stems = listed.map(|(_, path)| (None, without_extension(path)));
            check(&stems, &samples, &[Ok((1, Stem)), Ok((0, Stem))]);
        }
        let (one, two) = ("caf\u{e9}.jpg", "cafe\u{301}.jpg");
        let listed = [one, two].map(|name| format!("images/{name}"));
        let listed = [(None, listed[0].as_str()), (None, listed[1].as_str())];
        check(&listed, &[(None, two), (None, one)], &[Ok((1, PathEnd)), Ok((0, PathEnd))]);
        let stems = listed.map(|(_, path)| (None, without_extension(path)));
        check(&stems, &[(None, two), (None, one)], &[Ok((1, Stem)), Ok((0, Stem))]);
        check(&[(None, "images/x.jpg")], &[(None, "x.jpg"), (None, "images/x.jpg")], &[Ok((1, Path))]);
    }

    #[test]
    fn matched_images_do_not_make_a_name_ambiguous() {
        check(&[(None, "a/x.jpg")], &[(None, "a/x.jpg"), (None, "b/x.jpg")], &[Ok((0, Path))]);
        let [listed, opened] = [&["a/x.jpg"][..], &["a/x.jpg", "b/x.jpg"]];
        let keys = |names: &[&'static str]| names.iter().map(|name| ImageKey::named(name)).collect::<Vec<_>>();
        let matches = ImageMatches::between(&keys(listed), &keys(opened), Folders::Agree);
        assert_eq!(matches.right_unmatched, [(1, Missing)]);
    }

    #[test]
    fn ambiguous_name_is_not_guessed() {
        check(
            &[(None, "a/x.jpg"), (None, "b/x.jpg")],
            &[(None, "a/x.jpg"), (None, "c/x.jpg")],
            &[Ok((0, Path)), Err(Ambiguous)],
        );
    }

    #[test]
    fn accents_match_in_any_encoding() {
        let (one, two) = ("caf\u{e9}.jpg", "cafe\u{301}.jpg");
        check(&[(None, one)], &[(None, two)], &[Ok((0, Path))]);
        check(&[(None, "a/caf\u{e9}.png")], &[(None, two)], &[Ok((0, Stem))]);
        check(&[(None, one), (None, two)], &[(None, two), (None, one)], &[Ok((1, Path)), Ok((0, Path))]);
        check(&[(None, one), (None, two)], &[(None, two)], &[Err(Missing), Ok((0, Path))]);
        check(&[(None, "b/caf\u{e9}.jpg")], &[(None, one), (None, two)], &[Err(Ambiguous)]);
    }

    #[test]
    fn extensions_and_leading_zeros_match_last() {
        check(
            &[(None, "labels/a"), (None, "b.png"), (number(17), ""), (None, ".c")],
            &[(None, "a.jpg"), (None, "b.jpg"), (None, "0017.jpg"), (None, "c")],
            &[Ok((0, Stem)), Ok((1, Stem)), Ok((2, Number)), Err(Missing)],
        );
    }
}
