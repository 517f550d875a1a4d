//! Labels and boxes of many images from files of other programs: ground truth, or predictions if they have scores.
//!
//! The numbers are kept as the file gives them (`f64`, left, top, width and height): rounding a box or a score would
//! change which boxes match, and with it the metrics.

use std::collections::BTreeMap;

use super::TruthLabel;

/// The problems of one kind that are kept with their places; further ones are counted.
const KEPT_PER_KIND: u64 = 1000;

/// What a file or folder of annotations says, in the order of the file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Annotations {
    /// The classes by number, name or both; [`AnnotatedBox::class`] is an index into them.
    pub classes: Vec<TruthLabel>,
    pub images: Vec<AnnotatedImage>,
    /// What could not be used. Everything that a file holds is either in `images` or counted here.
    pub problems: AnnotationProblems,
    /// The part that was read, if a data set has several.
    pub split: Option<DatasetSplit>,
}

/// A part of a data set, such as `val`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatasetSplit {
    pub name: String,
    /// The names of all parts, with this one.
    pub all: Vec<String>,
}

/// What is annotated in one image. Without labels and boxes it is an image that is known to show nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AnnotatedImage {
    /// What the file numbers the image with (COCO's `id`).
    pub id: Option<AnnotatedImageId>,
    /// The path or name that the file gives the image, with `/` between its parts; empty if it gives only a number.
    pub name: String,
    /// Width and height of the upright image in pixels, if the file tells.
    pub size: Option<[u32; 2]>,
    pub status: PredictionStatus,
    /// What the whole image shows; for predictions the best class first.
    pub labels: Vec<AnnotatedLabel>,
    pub boxes: Vec<AnnotatedBox>,
}

/// Whether a file with a row or line per image has a prediction of an image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum PredictionStatus {
    /// It has one, which may be empty; also ground truth.
    #[default]
    Predicted,
    /// The prediction failed, with the reason: words that follow the name of the image.
    Failed(String),
    /// The image changed after it was predicted.
    Outdated,
    Unpredicted,
}

/// The id that a file gives an image. A text with nothing but a number, as it would be written, is a number.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AnnotatedImageId {
    Number(i64),
    Text(String),
}

/// A class of a whole image.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AnnotatedLabel {
    /// Index into [`Annotations::classes`].
    pub class: u32,
    /// `0.0..=1.0`; `None` in ground truth.
    pub score: Option<f64>,
}

/// One object of an image.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AnnotatedBox {
    /// Left, top, width and height, in `unit`s of the upright image. Finite; width and height are not negative, but may
    /// be zero: such a box counts, and nothing matches it.
    pub bounds: [f64; 4],
    pub unit: BoxUnit,
    /// Index into [`Annotations::classes`].
    pub class: u32,
    /// `0.0..=1.0`; `None` in ground truth.
    pub score: Option<f64>,
    /// The area of the object in square pixels, if the file gives one (COCO's is that of the mask); otherwise that of
    /// the box counts.
    pub area: Option<f64>,
    pub role: BoxRole,
}

/// How the numbers of a box are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BoxUnit {
    #[default]
    Pixels,
    /// Parts of the width and height of the image, `0.0..=1.0`.
    Fractions,
}

/// How a box of the ground truth counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BoxRole {
    #[default]
    Object,
    /// A region with many objects (COCO's `iscrowd`): what overlaps it is neither right nor wrong.
    Crowd,
    /// One object that does not count, found or not (`difficult` of Pascal VOC).
    Ignored,
}

/// Something in the file that could not be used, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnotationProblem {
    pub kind: AnnotationProblemKind,
    /// The file, and the line or the entry in it: `labels/7.txt, line 3`, `annotations[17]`.
    pub place: String,
    /// What is wrong: words that follow the place.
    pub reason: String,
}

/// What an [`AnnotationProblem`] is about; problems are counted by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AnnotationProblemKind {
    /// A file, line or entry that does not have the form of its format.
    Unreadable,
    /// A box with a negative size or without four finite numbers; or, with fractions, far outside.
    BrokenBox,
    /// A class that the file does not name.
    UnknownClass,
    /// An image that the file does not list.
    UnknownImage,
    /// A number or name that was given before, so that only one of both counts.
    Duplicate,
    /// An annotation whose id was given before; both count.
    RepeatedId,
    /// An image without a label file, if they are so many that the files may be missing; it counts as empty.
    Unlabeled,
    /// A prediction without a score, or with one outside `0.0..=1.0`.
    BrokenScore,
}

/// The first problems of each kind, and how many there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnnotationProblems {
    kept: Vec<AnnotationProblem>,
    counts: BTreeMap<AnnotationProblemKind, u64>,
}

impl AnnotationProblemKind {
    /// Its name in files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable",
            Self::BrokenBox => "broken_box",
            Self::UnknownClass => "unknown_class",
            Self::UnknownImage => "unknown_image",
            Self::Duplicate => "duplicate",
            Self::RepeatedId => "repeated_id",
            Self::Unlabeled => "unlabeled",
            Self::BrokenScore => "broken_score",
        }
    }
}

impl AnnotationProblems {
    pub fn add(&mut self, kind: AnnotationProblemKind, place: impl Into<String>, reason: impl Into<String>) {
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        if *count <= KEPT_PER_KIND {
            self.kept.push(AnnotationProblem { kind, place: place.into(), reason: reason.into() });
        }
    }

    /// Those that are kept, in the order in which they were found.
    pub fn iter(&self) -> impl Iterator<Item = &AnnotationProblem> {
        self.kept.iter()
    }

    /// How many there are of each kind that there is.
    pub fn counts(&self) -> impl Iterator<Item = (AnnotationProblemKind, u64)> {
        self.counts.iter().map(|(kind, count)| (*kind, *count))
    }

    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }
}

impl std::fmt::Display for AnnotationProblem {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}", self.place, self.reason)
    }
}

impl AnnotationProblemKind {
    /// “3 boxes are broken”.
    pub fn text(self, count: u64) -> String {
        let (one, several) = match self {
            Self::Unreadable => ("entry is unreadable", "entries are unreadable"),
            Self::BrokenBox => ("box is invalid", "boxes are invalid"),
            Self::UnknownClass => ("entry has an unknown class", "entries have an unknown class"),
            Self::UnknownImage => ("entry belongs to an unknown image", "entries belong to unknown images"),
            Self::Duplicate => ("entry is a duplicate", "entries are duplicates"),
            Self::Unlabeled => (
                "image has no label file and is treated as empty",
                "images have no label files and are treated as empty",
            ),
            Self::RepeatedId => {
                ("annotation has a duplicate id and is kept", "annotations have duplicate ids and are kept")
            }
            Self::BrokenScore => ("score is invalid", "scores are invalid"),
        };
        super::counted(count as usize, one, several)
    }

    /// Whether such an entry counts all the same.
    pub fn is_used(self) -> bool {
        matches!(self, Self::RepeatedId | Self::Unlabeled)
    }
}

impl std::fmt::Display for AnnotatedImageId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(formatter, "{number}"),
            Self::Text(text) => formatter.write_str(text),
        }
    }
}

impl From<String> for AnnotatedImageId {
    fn from(text: String) -> Self {
        match text.parse::<i64>() {
            Ok(number) if number.to_string() == text => Self::Number(number),
            _ => Self::Text(text),
        }
    }
}

impl Annotations {
    /// Whether at least one box or label has a score: predictions rather than ground truth.
    pub fn has_scores(&self) -> bool {
        self.scores().next().is_some()
    }

    /// The scores of boxes and labels that have one.
    pub fn scores(&self) -> impl Iterator<Item = f64> {
        let scores = |image: &AnnotatedImage| {
            let of_labels = image.labels.iter().filter_map(|label| label.score);
            image.boxes.iter().filter_map(|found| found.score).chain(of_labels).collect::<Vec<_>>()
        };
        self.images.iter().flat_map(scores)
    }

    pub fn remove_scores(&mut self) {
        for image in &mut self.images {
            image.boxes.iter_mut().for_each(|found| found.score = None);
            image.labels.iter_mut().for_each(|label| label.score = None);
        }
    }
}

impl AnnotatedImage {
    /// Its name for people; the id if it has none.
    pub fn shown_name(&self) -> String {
        match &self.id {
            Some(id) if self.name.is_empty() => format!("image {id}"),
            _ => self.name.clone(),
        }
    }
}

impl AnnotatedBox {
    /// Left, top, width and height in pixels of an upright image of `size`; `None` if they are fractions and the size
    /// is unknown.
    pub fn in_pixels(&self, size: Option<[u32; 2]>) -> Option<[f64; 4]> {
        let [x, y, width, height] = self.bounds;
        match self.unit {
            BoxUnit::Pixels => Some(self.bounds),
            BoxUnit::Fractions => {
                let [columns, rows] = size?.map(f64::from);
                Some([x * columns, y * rows, width * columns, height * rows])
            }
        }
    }
}
