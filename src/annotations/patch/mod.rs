//! Changes of ground truth, one per line, and their way back into its files.
//!
//! A change repeats what the label was, so that a label that has changed meanwhile is noticed. Only the text of changed
//! labels is rewritten: everything else in a file stays as it is.

mod change;
mod coco;
mod contained;
mod csv;
mod text;
mod voc;
mod yolo;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_json::Value;

use self::change::Fitted;
pub use self::change::{ChangeKind, Label, LabelChange, kinds_of};
use self::coco::CocoLabels;
use self::csv::Csv;
use self::text::TextLabels;
use self::voc::Voc;
use self::yolo::Yolo;
pub use super::collect::class_name;
use super::recognize::{Recognized, recognize};
use super::{AnnotationFormat, AnnotationsError, image_name, open_split};
use crate::domain::{AnnotationProblems, Annotations, BoxUnit, ExactBox, TruthLabel};
use crate::image::source::Files;
use crate::tasks::TaskControl;

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
    #[error("this is not a COCO file: {0}")]
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
    /// Applied boxes that extended beyond their images.
    pub clipped: usize,
    /// Images with new labels that the ground truth did not list.
    pub new_images: BTreeSet<String>,
    /// Entries of the ground truth that are not used, and so not changed.
    pub problems: AnnotationProblems,
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
    pub classes: Vec<TruthLabel>,
    pub unit: BoxUnit,
    /// As in COCO.
    pub have_ids: bool,
    /// Images without labels need not be listed.
    pub may_omit_images: bool,
    /// Entries that are not used.
    pub problems: AnnotationProblems,
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
                let Annotations { classes, problems, .. } = found.annotations;
                let (unit, have_ids, may_omit_images) = (BoxUnit::Pixels, true, false);
                return Ok(KnownLabels { images, classes, unit, have_ids, may_omit_images, problems });
            }
        }
        AnnotationFormat::Yolo | AnnotationFormat::PascalVoc | AnnotationFormat::Csv => {}
        other => return Err(LabelPatchError::Unsupported(other)),
    }
    let annotations = found.annotations;
    if annotations.images.iter().any(|image| !image.labels.is_empty()) {
        return Err(LabelPatchError::ImageClasses);
    }
    let classes = annotations.classes;
    let names: Vec<String> = classes.iter().map(class_name).collect();
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
                class: names[found.class as usize].clone(),
                bounds: found.bounds,
            })
            .collect(),
    });
    let (images, problems, may_omit_images) =
        (images.collect(), annotations.problems, found.format == AnnotationFormat::Csv);
    Ok(KnownLabels { images, classes, unit, have_ids: false, may_omit_images, problems })
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
    let opened = files;
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
    let recorded = Recorded::read(opened, split, control)?;
    let mut outcome = AppliedChanges::default();
    for of_image in by_image(changes) {
        let (mut lines, mut possible) = (Vec::new(), Vec::new());
        for (line, fitted) in recorded.fitted(&of_image) {
            match fitted {
                Ok(Fitted { change, is_clipped }) => {
                    lines.push((line, is_clipped));
                    possible.push(change);
                }
                Err(reason) => outcome.conflicts.push((line, reason)),
            }
        }
        for ((line, is_clipped), applied) in lines.into_iter().zip(labels.apply(possible, recorded.added_score)) {
            match applied {
                Ok(Applied::Changed { lost_mask }) => {
                    outcome.applied += 1;
                    outcome.masks += usize::from(lost_mask);
                    outcome.clipped += usize::from(is_clipped);
                    outcome.new_images.extend(recorded.unlisted(&of_image).map(str::to_owned));
                }
                Ok(Applied::Unchanged) => outcome.unchanged += 1,
                Err(reason) => outcome.conflicts.push((line, reason)),
            }
        }
    }
    outcome.problems = recorded.problems;
    outcome.written = labels.finish()?;
    Ok(outcome)
}

/// What the ground truth as a whole says, before any change.
struct Recorded {
    /// Of added labels, if the others have scores: readers skip a label without one then.
    added_score: Option<f64>,
    /// The size of each image, if known.
    images: HashMap<String, Option<[u32; 2]>>,
    problems: AnnotationProblems,
}

impl Recorded {
    fn read(files: &Files, split: Option<&str>, control: &TaskControl) -> Result<Self, LabelPatchError> {
        let annotations = open_split(files, split, control)?.annotations;
        let added_score = annotations.has_scores().then_some(1.0);
        let images = annotations.images.into_iter().map(|image| (image.name, image.size)).collect();
        Ok(Self { added_score, images, problems: annotations.problems })
    }

    /// The image of these changes, if it is not listed.
    fn unlisted<'c>(&self, changes: &[&'c (u64, LabelChange)]) -> Option<&'c str> {
        let image = changes.first().map(|(_, change)| change.image.as_str())?;
        (!self.images.contains_key(&image_name(image))).then_some(image)
    }

    /// The changes of an image as they are applied, with their lines; an error says why a change is not applied.
    fn fitted(&self, changes: &[&(u64, LabelChange)]) -> Vec<(u64, Result<Fitted, String>)> {
        let image = changes.first().map(|(_, change)| image_name(&change.image)).unwrap_or_default();
        let recorded = self.images.get(&image).copied().flatten();
        let size = recorded.or_else(|| changes.iter().find_map(|(_, change)| change.size));
        changes.iter().map(|(line, change)| (*line, change.fitted(size))).collect()
    }
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
    /// The outcome of each change of one image; an error says why a change does not fit. Added labels get the score, if
    /// any.
    fn apply(&mut self, changes: Vec<LabelChange>, added_score: Option<f64>) -> Vec<Result<Applied, String>>;

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
