//! Labels and boxes of many images in files from other tools: ground truth, or predictions if they have scores.
//!
//! Numbers are kept as the file has them: rounding a box or a score would change which boxes match, and with it the
//! metrics.

use std::collections::BTreeMap;

use super::{BoundingBox, ExactBox};

/// Problems of each kind that are kept with their location; further ones are only counted.
const KEPT_PER_KIND: u64 = 1000;

/// The content of an annotation file or folder, in file order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Annotations {
    /// Classes by number, name or both; [`AnnotatedBox::class`] is an index into them.
    pub classes: Vec<TruthLabel>,
    pub images: Vec<AnnotatedImage>,
    /// The entries that could not be used. Every entry is either in `images` or counted here.
    pub problems: AnnotationProblems,
    /// The split that was read, if the dataset has several.
    pub split: Option<DatasetSplit>,
}

/// A split of a dataset, such as `val`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatasetSplit {
    pub name: String,
    /// The names of all splits, including this one.
    pub all: Vec<String>,
}

/// The annotations of one image. Without labels and boxes, the image is known to be empty.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AnnotatedImage {
    /// The file's id for the image (COCO's `id`).
    pub id: Option<AnnotatedImageId>,
    /// The path or name in the file, with `/` between its parts; empty if the file has only a number.
    pub name: String,
    /// The path or URI of the original, if the file names a copy with another name.
    pub original: Option<String>,
    /// Width and height of the upright image in pixels, if the file states them.
    pub size: Option<[u32; 2]>,
    pub status: PredictionStatus,
    /// Classes of the whole image; for predictions, best first.
    pub labels: Vec<AnnotatedLabel>,
    pub boxes: Vec<AnnotatedBox>,
}

/// Whether a file with one row or line per image has a prediction for an image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum PredictionStatus {
    /// A prediction, which may be empty; also ground truth.
    #[default]
    Predicted,
    /// The reason for the failure, to follow the image name.
    Failed(String),
    /// The image changed after prediction.
    Outdated,
    Unpredicted,
}

/// An image id in a file. A string that is a number in canonical form is a number.
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
    /// In `unit`s of the upright image. Finite; width and height are not negative but may be zero: such a box counts,
    /// but nothing matches it.
    pub bounds: ExactBox,
    pub unit: BoxUnit,
    /// Index into [`Annotations::classes`].
    pub class: u32,
    /// `0.0..=1.0`; `None` in ground truth.
    pub score: Option<f64>,
    /// The area of the object in square pixels, if the file has one (for COCO, that of the mask); otherwise the area of
    /// the box is used.
    pub area: Option<f64>,
    pub role: BoxRole,
}

/// The unit of a box's numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BoxUnit {
    #[default]
    Pixels,
    /// Fractions of the image's width and height, `0.0..=1.0`.
    Fractions,
}

/// How a ground-truth box counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BoxRole {
    #[default]
    Object,
    /// A region with many objects (COCO's `iscrowd`): what overlaps it is neither correct nor wrong.
    Crowd,
    /// An object that does not count, whether found or not (Pascal VOC's `difficult`).
    Ignored,
}

/// An entry of a file that could not be used, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnotationProblem {
    pub kind: AnnotationProblemKind,
    /// The file, and the line or entry in it: `labels/7.txt, line 3`, `annotations[17]`.
    pub place: String,
    /// What is wrong, to follow the location.
    pub reason: String,
}

/// What an [`AnnotationProblem`] is about; problems are counted by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AnnotationProblemKind {
    /// A file, line or entry that violates its format.
    Unreadable,
    /// A box with a negative size or without four finite numbers; for fractions, one far outside.
    BrokenBox,
    /// A class that the file does not name.
    UnknownClass,
    /// An image that the file does not list.
    UnknownImage,
    /// A number or name that occurred before, so that only one of them counts.
    Duplicate,
    /// An annotation whose id occurred before; both count.
    RepeatedId,
    /// An image without a label file, if there are so many that files may be missing; treated as empty.
    Unlabeled,
    /// A prediction without a score, or with one outside `0.0..=1.0`.
    BrokenScore,
}

/// The first problems of each kind, and their total counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnnotationProblems {
    kept: Vec<AnnotationProblem>,
    counts: BTreeMap<AnnotationProblemKind, u64>,
}

impl AnnotationProblemKind {
    /// The name of the kind in files.
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

    /// The kept problems, in the order in which they were found.
    pub fn iter(&self) -> impl Iterator<Item = &AnnotationProblem> {
        self.kept.iter()
    }

    /// The count of each kind that occurred.
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

    /// Whether such an entry is used anyway.
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
    /// Whether any box or label has a score, which makes these predictions rather than ground truth.
    pub fn has_scores(&self) -> bool {
        self.scores().next().is_some()
    }

    pub fn scores(&self) -> impl Iterator<Item = f64> {
        let scores = |image: &AnnotatedImage| {
            let of_labels = image.labels.iter().filter_map(|label| label.score);
            image.boxes.iter().filter_map(|found| found.score).chain(of_labels).collect::<Vec<_>>()
        };
        self.images.iter().flat_map(scores)
    }

    /// Replaces all scores.
    pub fn set_scores(&mut self, score: Option<f64>) {
        for image in &mut self.images {
            image.boxes.iter_mut().for_each(|found| found.score = score);
            image.labels.iter_mut().for_each(|label| label.score = score);
        }
    }
}

/// What annotations without scores are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unscored {
    /// Ground truth, which is no prediction.
    #[default]
    Refused,
    /// Labels to correct: each gets a score of 1.
    Labels,
}

impl AnnotatedImage {
    /// The name; the id if there is no name.
    pub fn shown_name(&self) -> String {
        match &self.id {
            Some(id) if self.name.is_empty() => format!("image {id}"),
            _ => self.name.clone(),
        }
    }
}

impl AnnotatedBox {
    /// In pixels of an upright image of `size`; `None` for fractions of an unknown size.
    pub fn in_pixels(&self, size: Option<[u32; 2]>) -> Option<ExactBox> {
        let ExactBox { left, top, width, height } = self.bounds;
        match self.unit {
            BoxUnit::Pixels => Some(self.bounds),
            BoxUnit::Fractions => {
                let [columns, rows] = size?.map(f64::from);
                Some([left * columns, top * rows, width * columns, height * rows].into())
            }
        }
    }
}

/// Labels and boxes stored with an image, usually by the authors of the dataset.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Truth {
    /// Classes of the whole image.
    pub labels: Vec<TruthLabel>,
    pub boxes: Vec<TruthBox>,
    /// What could not be used, and why.
    pub notes: Vec<String>,
}

/// A class by number, name, or both, as the dataset numbers it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TruthLabel {
    pub number: Option<i64>,
    pub name: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct TruthBox {
    /// In fractions of the image's width and height; `0.0..=1.0` if valid.
    pub bounds: BoundingBox,
    pub label: TruthLabel,
}

impl Truth {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl TruthBox {
    /// In pixels of an image of `size` (width, height).
    pub fn in_pixels(&self, size: [u32; 2]) -> BoundingBox {
        let [width, height] = size.map(|side| side as f32);
        let BoundingBox { x1, y1, x2, y2 } = self.bounds;
        BoundingBox::new(x1 * width, y1 * height, x2 * width, y2 * height)
    }
}

impl std::fmt::Display for TruthLabel {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.name, self.number) {
            (Some(name), Some(number)) => write!(formatter, "{name} ({number})"),
            (Some(name), None) => formatter.write_str(name),
            (None, Some(number)) => write!(formatter, "class {number}"),
            (None, None) => formatter.write_str("no label"),
        }
    }
}
