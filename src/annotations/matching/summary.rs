//! How the images and classes of ground truth and predictions were matched, and reasons to doubt it: the first thing
//! that an evaluation shows, in the terminal, in the window and in files.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};

use super::{ClassMatches, ClassReason, ImageMatches, ImageReason, OtherFolders};
use crate::domain::{TruthLabel, counted, grouped};

/// Maximum number of classes in a sentence.
const MAX_NAMED: usize = 5;

/// How ground truth and predictions were matched.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct MatchSummary {
    pub images: ImageSummary,
    pub classes: ClassSummary,
    /// Reasons why the match may be wrong.
    pub doubts: Vec<Doubt>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ImageSummary {
    /// Ground-truth images, and predicted images.
    pub truth: usize,
    pub predicted: usize,
    pub matched: BTreeMap<ImageReason, usize>,
    /// Whether the ids of the predictions also fit file names, but of other images; the ids were used.
    pub fits_names: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ClassSummary {
    /// Ground-truth classes, and predicted classes.
    pub truth: usize,
    pub predicted: usize,
    /// Matched ground-truth classes.
    pub matched: BTreeMap<ClassReason, usize>,
    /// Classes that share only a number, with the name on one side.
    pub by_number: Vec<NumberedClass>,
    /// Ground-truth classes with objects or images that no predicted class matches.
    pub truth_unmatched: Vec<UnmatchedClass>,
    pub predicted_unmatched: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NumberedClass {
    pub number: i64,
    pub name: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnmatchedClass {
    pub class: String,
    /// Objects of the class, or images with it.
    pub objects: u64,
}

/// Why a match may be wrong: a whole sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Doubt {
    FewImages {
        matched: usize,
        of: usize,
        side: &'static str,
    },
    FewClasses {
        matched: usize,
        of: usize,
    },
    /// Images with the same file name were matched although their folders differ, or because of that not matched.
    OtherFolders(OtherFolders),
    /// The ground truth has only numbers, and the predictions have names: two classes as matched by number, and as they
    /// would match by order if that differs.
    NumbersAlone {
        by_number: Vec<NumberedClass>,
        by_order: Vec<NumberedClass>,
    },
    /// The predictions have only numbers, and some are not in the ground truth.
    UnknownNumbers {
        unknown: Vec<String>,
        of: usize,
    },
    /// Ground-truth images with objects that predictions of boxes do not contain.
    Unpredicted {
        count: u64,
        of: u64,
    },
    /// Boxes that exceed their images by more than rounding explains.
    Outside {
        side: &'static str,
        count: u64,
        of: u64,
        /// An image.
        example: String,
        /// Whether they would be inside if their last two numbers were right and bottom.
        are_edges: bool,
    },
    /// Boxes in pixels that all lie within the first pixel.
    Fractions {
        side: &'static str,
    },
    /// Boxes that equal another box of their image, including class and score.
    Repeated {
        side: &'static str,
        count: u64,
        of: u64,
        /// An image.
        example: String,
    },
    /// Ground-truth classes with the same name, some of which no predicted class matches.
    SameName(Vec<String>),
}

/// Ground-truth classes, each with the number of its objects or images.
#[derive(Debug, Clone, Copy)]
pub struct CountedClasses<'c> {
    pub labels: &'c [TruthLabel],
    pub objects: &'c [u64],
}

/// Which classes of the predictions are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClassList {
    /// All classes of the model.
    Complete,
    /// Only those that occur.
    Predicted,
}

impl MatchSummary {
    /// `images` has the ground truth on its left side, `classes` one row per predicted class.
    pub fn new(images: &ImageMatches, truth: CountedClasses, classes: &ClassMatches, list: ClassList) -> Self {
        let images_of = ImageSummary::new(images);
        let partners = partners(truth, classes);
        let classes_of = ClassSummary::new(truth, &partners, classes);
        let mut doubts = images_of.doubts();
        doubts.extend(images.other_folders.clone().map(Doubt::OtherFolders));
        doubts.extend(few_classes(truth, &partners, classes, list));
        doubts.extend(numbers_alone(truth, classes));
        doubts.extend(same_name(truth, &partners));
        Self { images: images_of, classes: classes_of, doubts }
    }

    /// “128 of 128 images by path; 69 of 80 classes by name, 11 by number (1 = bicycle, 2 = car …)”
    pub fn text(&self) -> String {
        let ImageSummary { truth, matched, .. } = &self.images;
        let images = counts_text(*truth, ["image", "images"], matched, |reason| reason.text());
        let ClassSummary { truth, matched, by_number, .. } = &self.classes;
        let mut classes = counts_text(*truth, ["class", "classes"], matched, |reason| reason.text());
        if !by_number.is_empty() {
            classes = format!("{classes} ({})", some_of(by_number));
        }
        format!("{images}; {classes}")
    }

    /// Other notes on the match: whole sentences.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        let ClassSummary { truth, truth_unmatched, .. } = &self.classes;
        let ids = self.images.fits_names.then(|| {
            "The ids of the predictions also match file names of other ground-truth images; the ids were used."
                .to_owned()
        });
        let unmatched = (!truth_unmatched.is_empty()).then(|| {
            format!(
                "{} of {} in the ground truth have no match in the predictions, so everything in them counts as \
                 false negatives: {}.",
                grouped(truth_unmatched.len()),
                counted(*truth, "class", "classes"),
                some_of(truth_unmatched)
            )
        });
        ids.into_iter().chain(unmatched)
    }
}

impl ImageSummary {
    fn new(images: &ImageMatches) -> Self {
        let matched = images.counts();
        let predicted = matched.values().sum::<usize>() + images.right_unmatched.len();
        Self { truth: images.left.len(), predicted, matched, fits_names: images.fits_names }
    }

    fn doubts(&self) -> Vec<Doubt> {
        let matched = self.matched.values().sum();
        let sides = [(self.truth, "the ground truth"), (self.predicted, "the predictions")];
        let are_few = |(of, _): &(usize, &str)| matched * 2 < *of;
        sides.into_iter().filter(are_few).map(|(of, side)| Doubt::FewImages { matched, of, side }).collect()
    }
}

impl ClassSummary {
    fn new(truth: CountedClasses, partners: &[Option<ClassReason>], classes: &ClassMatches) -> Self {
        let mut matched = BTreeMap::new();
        for reason in partners.iter().flatten() {
            *matched.entry(*reason).or_default() += 1;
        }
        let unmatched = |((label, objects), partner): ((&TruthLabel, &u64), &Option<ClassReason>)| {
            let class = label.name.clone().unwrap_or_else(|| label.to_string());
            let class = UnmatchedClass { class, objects: *objects };
            (partner.is_none() && *objects > 0).then_some(class)
        };
        Self {
            truth: truth.labels.len(),
            predicted: classes.rows.len(),
            matched,
            by_number: by_number(truth, classes),
            truth_unmatched: truth.labels.iter().zip(truth.objects).zip(partners).filter_map(unmatched).collect(),
            predicted_unmatched: classes.unmatched().map(ToString::to_string).collect(),
        }
    }
}

/// For each ground-truth class, why a predicted class matches it, if one does.
fn partners(truth: CountedClasses, classes: &ClassMatches) -> Vec<Option<ClassReason>> {
    let mut partners = vec![None; truth.labels.len()];
    for (index, reason) in classes.rows.iter().filter_map(|row| row.matched) {
        if let Some(partner) = partners.get_mut(index as usize) {
            *partner = Some(partner.map_or(reason, |before: ClassReason| before.min(reason)));
        }
    }
    partners
}

fn by_number(truth: CountedClasses, classes: &ClassMatches) -> Vec<NumberedClass> {
    let named = |row: &super::ClassRow| {
        let (index, reason) = row.matched?;
        let of_truth = truth.labels.get(index as usize)?;
        let name = row.class.name.clone().or_else(|| of_truth.name.clone());
        (reason == ClassReason::Number).then_some(NumberedClass { number: row.class.number?, name })
    };
    let mut numbered: Vec<NumberedClass> = classes.rows.iter().filter_map(named).collect();
    numbered.sort_by_key(|class| class.number);
    numbered
}

/// For a complete model: not all ground-truth classes matched. For predictions: fewer than half of the possible
/// matches, or not all although unmatched classes are left.
fn few_classes(
    truth: CountedClasses,
    partners: &[Option<ClassReason>],
    classes: &ClassMatches,
    list: ClassList,
) -> Option<Doubt> {
    let occurring = || partners.iter().zip(truth.objects).filter(|(_, objects)| **objects > 0);
    let matched = occurring().filter(|(partner, _)| partner.is_some()).count();
    let of = match list {
        ClassList::Complete => occurring().count(),
        ClassList::Predicted => occurring().count().min(classes.rows.len()),
    };
    let is_doubtful = match list {
        ClassList::Complete => matched < of,
        ClassList::Predicted => {
            matched * 2 < of || (matched < of && classes.unmatched().any(|class| class.name.is_some()))
        }
    };
    is_doubtful.then_some(Doubt::FewClasses { matched, of })
}

/// Numbers that were compared although one side has no names for them.
fn numbers_alone(truth: CountedClasses, classes: &ClassMatches) -> Option<Doubt> {
    let truth_has_names = truth.labels.iter().any(|label| label.name.is_some());
    let predictions_have_names = classes.rows.iter().any(|row| row.class.name.is_some());
    let numbered = by_number(truth, classes);
    if numbered.is_empty() || predictions_have_names && truth_has_names {
        return None;
    }
    if predictions_have_names {
        let mut in_order: Vec<&TruthLabel> = classes.rows.iter().map(|row| &row.class).collect();
        in_order.sort_by_key(|label| label.number);
        let at = |class: &NumberedClass| {
            let label = in_order.get(usize::try_from(class.number).ok()?)?;
            Some(NumberedClass { number: class.number, name: label.name.clone() })
        };
        let by_number: Vec<NumberedClass> = numbered.into_iter().take(2).collect();
        let by_order: Vec<NumberedClass> = by_number.iter().filter_map(at).collect();
        let by_order = if by_order == by_number { Vec::new() } else { by_order };
        return Some(Doubt::NumbersAlone { by_number, by_order });
    }
    let unknown: Vec<String> = classes.unmatched().map(ToString::to_string).collect();
    (!unknown.is_empty()).then_some(Doubt::UnknownNumbers { unknown, of: classes.rows.len() })
}

/// A class that shares its name with another is never found by predictions that have only names.
fn same_name(truth: CountedClasses, partners: &[Option<ClassReason>]) -> Option<Doubt> {
    let mut by_spelling: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, label) in truth.labels.iter().enumerate() {
        if let Some(name) = &label.name {
            by_spelling.entry(super::classes::spelling(name)).or_default().push(index);
        }
    }
    let is_lost = |index: &usize| partners[*index].is_none() && truth.objects[*index] > 0;
    let is_half_found = |same: &&Vec<usize>| same.len() > 1 && same.iter().any(is_lost) && !same.iter().all(is_lost);
    let lost = by_spelling.values().filter(is_half_found).flatten().filter(|index| is_lost(index));
    let lost: Vec<String> = lost.map(|index| truth.labels[*index].to_string()).collect();
    (!lost.is_empty()).then_some(Doubt::SameName(lost))
}

fn counts_text<R>(
    all: usize,
    [one, several]: [&str; 2],
    matched: &BTreeMap<R, usize>,
    text: impl Fn(&R) -> &'static str,
) -> String {
    let mut counts: Vec<(&R, usize)> = matched.iter().map(|(reason, count)| (reason, *count)).collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let Some(((first, count), rest)) = counts.split_first() else {
        return format!("0 of {}", counted(all, one, several));
    };
    let mut parts = vec![format!("{} of {} {}", grouped(count), counted(all, one, several), text(first))];
    parts.extend(rest.iter().map(|(reason, count)| format!("{} {}", grouped(count), text(reason))));
    parts.join(", ")
}

fn some_of<T: fmt::Display>(items: &[T]) -> String {
    let named: Vec<String> = items.iter().take(MAX_NAMED).map(ToString::to_string).collect();
    let more = items.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 { format!(" and {} more", grouped(more)) } else { String::new() };
    format!("{}{more}", named.join(", "))
}

impl fmt::Display for NumberedClass {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(formatter, "{} = {name}", self.number),
            None => write!(formatter, "{}", self.number),
        }
    }
}

impl fmt::Display for UnmatchedClass {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.class, grouped(self.objects))
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FewImages { matched, of, side } => {
                let matched = grouped(matched);
                write!(formatter, "Only {matched} of {} of {side} were matched.", counted(*of, "image", "images"))
            }
            Self::FewClasses { matched, of } => {
                let matched = grouped(matched);
                write!(formatter, "Only {matched} of {} with objects were matched.", counted(*of, "class", "classes"))
            }
            Self::OtherFolders(OtherFolders { example: [one, other], count, are_refused: false }) => write!(
                formatter,
                "{} matched by file name only, although the folders differ: {one} and {other}.",
                counted(*count, "image was", "images were")
            ),
            Self::OtherFolders(OtherFolders { example: [one, other], count, .. }) => write!(
                formatter,
                "{} the same file name on both sides, but different folders, and {} not matched: {one} and {other}.",
                counted(*count, "image has", "images have"),
                if *count == 1 { "was" } else { "were" }
            ),
            Self::NumbersAlone { by_number, by_order } if by_order.is_empty() => write!(
                formatter,
                "The ground truth has no class names, so classes were matched by number: {}.",
                some_of(by_number)
            ),
            Self::NumbersAlone { by_number, by_order } => write!(
                formatter,
                "The ground truth has no class names, so classes were matched by number: {}. In the order of the \
                 predictions’ classes, counted from 0, they would be: {}.",
                some_of(by_number),
                some_of(by_order)
            ),
            Self::UnknownNumbers { unknown, of } => write!(
                formatter,
                "Classes were matched by number only, and {} of {} in the predictions are not in the ground truth, \
                 so the numbers may have different meanings: {}.",
                grouped(unknown.len()),
                counted(*of, "number", "numbers"),
                some_of(unknown)
            ),
            Self::Unpredicted { count, of } => {
                write!(
                    formatter,
                    "{} of {} with objects are not in the predictions.",
                    grouped(count),
                    counted(*of as usize, "image", "images")
                )
            }
            Self::Outside { side, count, of, example, are_edges } => {
                let cause = if *are_edges {
                    "Right and bottom may have been written instead of width and height"
                } else {
                    "They may be for images of another size"
                };
                let boxes = counted(*of as usize, "box", "boxes");
                write!(
                    formatter,
                    "{} of {boxes} in {side} extend beyond their images (first: {example}). {cause}.",
                    grouped(count)
                )
            }
            Self::Fractions { side } => write!(
                formatter,
                "All boxes in {side} are within the first pixel, so they may be fractions of the images, but their \
                 format has pixels. Multiply them by the image sizes."
            ),
            Self::Repeated { side, count, of, example } => {
                let boxes = counted(*of as usize, "box", "boxes");
                let count = grouped(count);
                write!(formatter, "{count} of {boxes} in {side} repeat another one (first: {example}).")
            }
            Self::SameName(lost) => write!(
                formatter,
                "Some ground-truth classes share a name, and predictions by name match only one of them. Never \
                 matched: {}.",
                some_of(lost)
            ),
        }
    }
}

impl Serialize for Doubt {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::annotations::matching::{ClassCorrections, Folders, ImageKey};
    use crate::domain::AnnotatedImageId;

    fn class(text: &str) -> TruthLabel {
        let (number, name) = text.split_once(' ').unwrap_or((text, ""));
        let name = Some(name.to_owned()).filter(|name| !name.is_empty());
        TruthLabel { number: number.parse().ok(), name }
    }

    /// The summary of classes given as `number name`, with one object each, and two images.
    fn summary(truth: &[&str], predicted: &[&str], list: ClassList) -> MatchSummary {
        let [labels, predicted] =
            [truth, predicted].map(|side| side.iter().map(|text| class(text)).collect::<Vec<_>>());
        let classes = ClassMatches::between(&predicted, &labels, &ClassCorrections::default()).unwrap();
        let ids = [1, 2].map(AnnotatedImageId::Number);
        let images = [
            ImageKey { id: Some(&ids[0]), ..ImageKey::named("a.jpg") },
            ImageKey { id: Some(&ids[1]), ..ImageKey::named("b.jpg") },
        ];
        let nameless = [ImageKey { id: Some(&ids[1]), ..ImageKey::named("") }];
        let images = ImageMatches::between(&images, &nameless, Folders::Agree);
        let objects = vec![1; labels.len()];
        MatchSummary::new(&images, CountedClasses { labels: &labels, objects: &objects }, &classes, list)
    }

    #[test]
    fn summary_counts_reasons_and_numbers() {
        let text = |truth: &[&str], predicted: &[&str]| summary(truth, predicted, ClassList::Predicted).text();
        assert_eq!(text(&["1 cat", "2 dog"], &["- cat"]), "1 of 2 images by id; 1 of 2 classes by name");
        let by_number = "1 of 2 images by id; 2 of 3 classes by number (1 = cat, 2 = dog)";
        assert_eq!(text(&["1 cat", "2 dog", "3 cow"], &["1", "2"]), by_number);
        let mixed = "1 of 2 images by id; 1 of 2 classes by name, 1 by number (2 = dog)";
        assert_eq!(text(&["1 cat", "2 dog"], &["- cat", "2"]), mixed);
        assert_eq!(text(&["1 cat"], &["- dog"]), "1 of 2 images by id; 0 of 1 class");
        let many = BTreeMap::from([(ImageReason::Path, 3000), (ImageReason::Stem, 1000)]);
        let text = counts_text(5000, ["image", "images"], &many, |reason| reason.text());
        assert_eq!(text, "3,000 of 5,000 images by path, 1,000 by path without the extension");
    }

    #[test]
    fn unmatched_ground_truth_classes_are_named() {
        let summary = summary(&["1 cat", "2 dog", "3"], &["- cat", "- cow"], ClassList::Predicted);
        let expected = "2 of 3 classes in the ground truth have no match in the predictions, so everything in them \
                        counts as false negatives: dog (1), class 3 (1).";
        assert_eq!(summary.notes().collect::<Vec<_>>(), [expected]);
        assert_eq!(summary.classes.predicted_unmatched, ["cow"]);
    }

    #[test]
    fn doubts_are_listed() {
        use ClassList::{Complete, Predicted};
        let doubts = |truth: &[&str], predicted: &[&str], list| summary(truth, predicted, list).doubts;
        let numbered = |text: &str| {
            let TruthLabel { number, name } = class(text);
            NumberedClass { number: number.unwrap(), name }
        };
        assert_eq!(doubts(&["1 cat", "2 dog"], &["1", "2"], Predicted), []);
        assert_eq!(doubts(&["0", "1"], &["0", "1"], Predicted), []);
        assert_eq!(doubts(&["1 cat", "2 dog", "3 cow"], &["- cat"], Predicted), []);
        let few = Doubt::FewClasses { matched: 1, of: 3 };
        assert_eq!(doubts(&["1 cat", "2 dog", "3 cow"], &["- cat"], Complete), [few]);
        let unknown = Doubt::UnknownNumbers { unknown: vec!["class 7".to_owned()], of: 2 };
        assert_eq!(doubts(&["1 cat", "2 dog"], &["1", "7"], Predicted), [unknown]);
        // YOLO labels, and a model with COCO's own numbers.
        let by_number = vec![numbered("1 cat"), numbered("2 dog")];
        let alone = |by_order| Doubt::NumbersAlone { by_number: by_number.clone(), by_order };
        let by_order = vec![numbered("1 dog"), numbered("2 cow")];
        assert_eq!(doubts(&["1", "2"], &["1 cat", "2 dog", "3 cow"], Complete), [alone(by_order)]);
        assert_eq!(doubts(&["1", "2"], &["0 cow", "1 cat", "2 dog"], Complete), [alone(Vec::new())]);
        let lost = Doubt::SameName(vec!["Cat (2)".to_owned()]);
        assert_eq!(doubts(&["1 cat", "2 Cat"], &["- cat"], Predicted), [lost]);
        assert_eq!(doubts(&["1 cat", "2 cat"], &["1", "2"], Predicted), []);
    }
}
