//! Changes of ground truth, one per line, and their way back into its files.
//!
//! A change repeats what the label was, so that a label that has changed meanwhile is noticed. Only the text of changed
//! labels is rewritten: everything else in a file stays as it is.

mod coco;
mod contained;
mod csv;
mod text;
mod voc;
mod yolo;

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::coco::CocoLabels;
use self::csv::Csv;
use self::text::TextLabels;
use self::voc::Voc;
use self::yolo::Yolo;
use super::collect::class_name;
use super::recognize::{Recognized, recognize};
use super::{AnnotationFormat, AnnotationsError, open_split};
use crate::domain::{BoundingBox, BoxUnit, ExactBox};
use crate::image::source::Files;
use crate::tasks::TaskControl;

/// Beyond any image, in pixels.
const FARTHEST: f64 = 1e7;
/// The largest distance of an edge, in pixels, between equal boxes: files round fractions.
const SAME_EDGE: f64 = 0.02;
/// How much (IoU) the boxes of labels overlap that may be the same, or how close their edges are in pixels.
const SAME_OBJECT: f32 = 0.5;
const NEAR_EDGE: f64 = 1.0;

/// A line of the file of changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelChange {
    /// As the ground truth names it.
    pub image: String,
    /// COCO's id of the label; `None` for an added one, and in other formats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Value>,
    pub change: ChangeKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Label>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Label>,
    /// In formats without ids, the other labels that the image had before any change at about the same place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<Label>,
    /// Width and height of the image, where the ground truth has boxes as fractions of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<[u32; 2]>,
    /// The reviewer, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    Added,
    Deleted,
    /// Another class.
    Class,
    /// Another position, and perhaps another class.
    Moved,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Label {
    pub class: String,
    /// Left, top, width, height in pixels.
    pub bbox: [f64; 4],
}

impl LabelChange {
    /// Why this is no change; `Ok` if its kind has the label before and after that it needs.
    fn check(&self) -> Result<(), String> {
        let is_moved = |before: &Label, after: &Label| before.bbox != after.bbox;
        let needs = match (self.change, &self.before, &self.after) {
            (ChangeKind::Added, None, Some(_)) if self.id.is_none() => None,
            (ChangeKind::Deleted, Some(_), None) => None,
            (ChangeKind::Class, Some(before), Some(after)) if !is_moved(before, after) => None,
            (ChangeKind::Moved, Some(before), Some(after)) if is_moved(before, after) => None,
            (ChangeKind::Added, ..) => Some("“added” needs “after”, without “id” and “before”"),
            (ChangeKind::Deleted, ..) => Some("“deleted” needs “before”, without “after”"),
            (ChangeKind::Class, ..) => Some("“class” needs “before”, and “after” with the same “bbox”"),
            (ChangeKind::Moved, ..) => Some("“moved” needs “before”, and “after” with another “bbox”"),
        };
        let is_possible = |label: &Label| {
            let [x, y, width, height] = label.bbox;
            let is_near = label.bbox.iter().all(|value| value.abs() < FARTHEST);
            let is_in_image = is_near && x >= 0.0 && y >= 0.0 && width > 0.0 && height > 0.0;
            !label.class.trim().is_empty() && (is_in_image || self.change == ChangeKind::Class)
        };
        match needs {
            Some(needs) => Err(needs.to_owned()),
            None if self.after.as_ref().is_some_and(|after| !is_possible(after)) => {
                Err("“after” needs a class, and a box of positive size in the image".to_owned())
            }
            None => Ok(()),
        }
    }
}

impl Label {
    pub fn new(class: &str, bounds: BoundingBox) -> Self {
        let [x1, y1, x2, y2] = <[f32; 4]>::from(bounds).map(f64::from);
        Self { class: class.to_owned(), bbox: [x1, y1, x2 - x1, y2 - y1] }
    }

    pub fn bounds(&self) -> ExactBox {
        self.bbox.into()
    }

    fn has_edges(&self, other: &Self, tolerance: f64) -> bool {
        let edges = |[x, y, width, height]: [f64; 4]| [x, y, x + width, y + height];
        edges(self.bbox).into_iter().zip(edges(other.bbox)).all(|(one, other)| (one - other).abs() <= tolerance)
    }

    /// Whether both labels are equal, but for rounding.
    fn is_same(&self, other: &Self) -> bool {
        self.class == other.class && self.has_edges(other, SAME_EDGE)
    }

    /// Whether both may be labels of the same object.
    pub fn is_near(&self, other: &Self) -> bool {
        let [one, two] = [self, other].map(|label| BoundingBox::from(label.bounds()));
        one.iou(&two) >= SAME_OBJECT || self.has_edges(other, NEAR_EDGE)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum LabelPatchError {
    #[error(transparent)]
    Annotations(#[from] AnnotationsError),
    #[error(
        "changes of {0} cannot be listed or applied, only those of COCO, YOLO, Pascal VOC and CSV; export corrected \
         labels instead"
    )]
    Unsupported(AnnotationFormat),
    #[error(
        "this ground truth has classes of whole images; only changes of boxes can be listed, so export corrected labels \
         instead"
    )]
    ImageClasses,
    #[error("this is no COCO file: {0}")]
    NoCoco(String),
    #[error("the changed file {0} is not below the opened folder; open the folder that contains it")]
    Outside(String),
}

/// What became of the changes.
#[derive(Debug, Default)]
pub struct AppliedChanges {
    pub applied: usize,
    /// Changes that the ground truth already contains.
    pub unchanged: usize,
    /// Lines that do not fit the ground truth, with the reason.
    pub conflicts: Vec<(u64, String)>,
    /// Moved labels whose mask was removed, because it no longer fits.
    pub masks: usize,
    pub written: Corrected,
}

/// Corrected ground truth.
#[derive(Debug)]
pub enum Corrected {
    /// The whole file.
    File(Vec<u8>),
    /// The changed files of a folder, each with its path in it.
    Folder(BTreeMap<String, Vec<u8>>),
}

impl Default for Corrected {
    fn default() -> Self {
        Self::Folder(BTreeMap::new())
    }
}

/// The labels of ground truth, by image.
pub struct KnownLabels {
    pub images: Vec<ImageLabels>,
    pub unit: BoxUnit,
    /// As in COCO.
    pub have_ids: bool,
}

pub struct ImageLabels {
    pub name: String,
    pub labels: Vec<KnownLabel>,
}

pub struct KnownLabel {
    /// COCO's, possibly missing.
    pub id: Value,
    pub class: String,
    pub bounds: ExactBox,
}

impl KnownLabels {
    /// A label in pixels of its image.
    pub fn in_pixels(&self, known: &KnownLabel, size: [u32; 2]) -> Label {
        let bbox = in_pixels(known.bounds, self.unit, Some(size)).unwrap_or_default();
        Label { class: known.class.clone(), bbox }
    }
}

fn in_pixels(bounds: ExactBox, unit: BoxUnit, size: Option<[u32; 2]>) -> Option<[f64; 4]> {
    let [x, y, width, height] = bounds.into();
    match (unit, size.map(|size| size.map(f64::from))) {
        (BoxUnit::Pixels, _) => Some([x, y, width, height]),
        (BoxUnit::Fractions, Some([columns, rows])) => Some([x * columns, y * rows, width * columns, height * rows]),
        (BoxUnit::Fractions, None) => None,
    }
}

/// The labels of each image.
///
/// # Errors
/// They cannot be read, or changes of their format cannot be applied.
pub fn known_labels(files: &Files, split: Option<&str>, control: &TaskControl) -> Result<KnownLabels, LabelPatchError> {
    let found = open_split(files, split, control)?;
    match found.format {
        AnnotationFormat::Coco => {
            if let Recognized::File { file, .. } = recognize(&mut files.clone(), split, control)? {
                let content = files.read(&file, control).map_err(AnnotationsError::from)?;
                let images = CocoLabels::parse(&content)?.images();
                return Ok(KnownLabels { images, unit: BoxUnit::Pixels, have_ids: true });
            }
        }
        AnnotationFormat::Yolo | AnnotationFormat::PascalVoc | AnnotationFormat::Csv => {}
        other => return Err(LabelPatchError::Unsupported(other)),
    }
    let annotations = found.annotations;
    if annotations.images.iter().any(|image| !image.labels.is_empty()) {
        return Err(LabelPatchError::ImageClasses);
    }
    let classes: Vec<String> = annotations.classes.iter().map(class_name).collect();
    let boxes = || annotations.images.iter().flat_map(|image| &image.boxes);
    let default = if found.format == AnnotationFormat::Yolo { BoxUnit::Fractions } else { BoxUnit::Pixels };
    let unit = boxes().next().map_or(default, |found| found.unit);
    let images = annotations.images.into_iter().map(|image| ImageLabels {
        name: image.name,
        labels: image
            .boxes
            .iter()
            .map(|found| KnownLabel {
                id: Value::Null,
                class: classes[found.class as usize].clone(),
                bounds: found.bounds,
            })
            .collect(),
    });
    Ok(KnownLabels { images: images.collect(), unit, have_ids: false })
}

/// Applies changes, given with their line numbers, to the ground truth in a file or folder, which stays as it is.
///
/// # Errors
/// The ground truth cannot be read, or changes of its format cannot be applied.
pub fn apply_changes(
    files: &Files,
    split: Option<&str>,
    changes: &[(u64, LabelChange)],
    control: &TaskControl,
) -> Result<AppliedChanges, LabelPatchError> {
    let mut files = files.clone();
    let recognized = recognize(&mut files, split, control)?;
    let wanted: HashSet<&str> = changes.iter().map(|(_, change)| change.image.as_str()).collect();
    let mut labels: Box<dyn Labels> = match recognized {
        Recognized::File { format: AnnotationFormat::Coco, file, .. } => {
            let content = files.read(&file, control).map_err(AnnotationsError::from)?;
            Box::new(CocoLabels::parse(&content)?)
        }
        Recognized::File { format: AnnotationFormat::Csv, file, first_line } => {
            Box::new(TextLabels::<Csv>::open(&files, &file, &first_line, control)?)
        }
        Recognized::Yolo(found) => Box::new(TextLabels::<Yolo>::open(&files, &found, &wanted, control)?),
        Recognized::PascalVoc(found) => Box::new(TextLabels::<Voc>::open(&files, &found, &wanted, control)?),
        Recognized::File { format, .. } => return Err(LabelPatchError::Unsupported(format)),
        Recognized::Folders(_) => return Err(LabelPatchError::Unsupported(AnnotationFormat::ClassFolders)),
        Recognized::TfRecord => return Err(LabelPatchError::Unsupported(AnnotationFormat::TfRecord)),
    };
    let mut outcome = AppliedChanges::default();
    for of_image in by_image(changes) {
        let (mut lines, mut possible) = (Vec::new(), Vec::new());
        for (line, change) in of_image {
            match change.check() {
                Ok(()) => {
                    lines.push(*line);
                    possible.push(change.clone());
                }
                Err(reason) => outcome.conflicts.push((*line, reason)),
            }
        }
        for (line, applied) in lines.into_iter().zip(labels.apply(possible)) {
            match applied {
                Ok(Applied::Changed { lost_mask }) => {
                    outcome.applied += 1;
                    outcome.masks += usize::from(lost_mask);
                }
                Ok(Applied::Unchanged) => outcome.unchanged += 1,
                Err(reason) => outcome.conflicts.push((line, reason)),
            }
        }
    }
    outcome.written = labels.finish()?;
    Ok(outcome)
}

/// The changes of each image, in the order of their first ones.
fn by_image(changes: &[(u64, LabelChange)]) -> Vec<Vec<&(u64, LabelChange)>> {
    let mut positions = HashMap::new();
    let mut images: Vec<Vec<&(u64, LabelChange)>> = Vec::new();
    for change in changes {
        let position = *positions.entry(change.1.image.as_str()).or_insert(images.len());
        if position == images.len() {
            images.push(Vec::new());
        }
        images[position].push(change);
    }
    images
}

/// Ground truth that changes are applied to.
trait Labels {
    /// What became of each change; they are those of one image. Errors are why one does not fit.
    fn apply(&mut self, changes: Vec<LabelChange>) -> Vec<Result<Applied, String>>;

    fn finish(self: Box<Self>) -> Result<Corrected, LabelPatchError>;
}

#[derive(Debug, Clone, Copy)]
enum Applied {
    Changed {
        lost_mask: bool,
    },
    /// The ground truth has the change already.
    Unchanged,
}

/// The number of changes of each kind: “2 added, 1 moved”.
pub fn kinds_of(changes: &[LabelChange]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for change in changes {
        let kind = match change.change {
            ChangeKind::Added => "added",
            ChangeKind::Deleted => "deleted",
            ChangeKind::Class => "with another class",
            ChangeKind::Moved => "moved",
        };
        *counts.entry(kind).or_default() += 1;
    }
    let parts: Vec<String> = counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    parts.join(", ")
}
