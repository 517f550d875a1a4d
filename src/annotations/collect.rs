//! Shared code of readers for several files or lines.

use std::collections::HashMap;

use serde::Deserialize;

use super::{AnnotationFormat, Found};
use crate::domain::{
    AnnotatedBox, AnnotatedImage, AnnotatedLabel, AnnotationProblemKind, Annotations, BoxUnit, ExactBox,
    PredictionStatus, TruthLabel,
};

/// Collects images and classes as they are encountered.
#[derive(Default)]
pub(super) struct Collector {
    annotations: Annotations,
    image_of: HashMap<String, u32>,
    class_of: HashMap<(Option<i64>, Option<String>), u32>,
    pub files: u64,
    pub entries: u64,
    /// Whole sentences.
    pub notes: Vec<String>,
    pub without_area: Tally,
    without_prediction: Tally,
}

/// A count for a note, with the first occurrence.
#[derive(Default)]
pub(super) struct Tally {
    count: u64,
    first: String,
}

impl Tally {
    pub(super) fn add(&mut self, place: impl FnOnce() -> String) {
        if self.count == 0 {
            self.first = place();
        }
        self.count += 1;
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// `one` and `several` follow the number.
    pub(super) fn note(&self, one: &str, several: &str) -> Option<String> {
        let text = if self.count == 1 { one } else { several };
        (self.count > 0).then(|| format!("{} {text} (first: {})", self.count, self.first))
    }

    /// For boxes with verdicts, in the exports that hold them next to the model's boxes.
    pub(super) fn unread_verdicts(&self) -> Option<String> {
        self.note(
            "box has a verdict, which is not read: the box and class are the model's, or added by a person. For \
             corrected labels, export with `--verdicts corrected`",
            "boxes have verdicts, which are not read: boxes and classes are the model's, or added by a person. For \
             corrected labels, export with `--verdicts corrected`",
        )
    }

    pub(super) fn without_area(&self) -> Option<String> {
        self.note("box has zero area and matches nothing", "boxes have zero area and match nothing")
    }
}

/// Why an entry cannot be used, to follow its location.
pub(super) type Refusal = (AnnotationProblemKind, String);

pub(super) fn unreadable(reason: impl Into<String>) -> Refusal {
    (AnnotationProblemKind::Unreadable, reason.into())
}

/// The name of a class in a run of these annotations.
pub fn class_name(class: &TruthLabel) -> String {
    class.name.clone().unwrap_or_else(|| class.to_string())
}

/// A class in a list of all classes, as in COCO.
#[derive(Deserialize)]
pub(super) struct Category {
    id: i64,
    name: String,
}

impl Collector {
    /// Adds classes, which need not have an object.
    pub(super) fn categories(&mut self, categories: impl IntoIterator<Item = Category>) {
        for Category { id, name } in categories {
            self.class(Some(id), Some(&name));
        }
    }

    /// Records the original of the image with this name, if the image is known.
    pub(super) fn set_original(&mut self, name: &str, original: Option<&str>) {
        if let Some(original) = original.filter(|_| self.known_image(name).is_some()) {
            self.image(name).original = Some(super::image_name(original));
        }
    }

    /// The image with this name, created if necessary.
    pub(super) fn image(&mut self, name: &str) -> &mut AnnotatedImage {
        let name = super::image_name(name);
        let images = &mut self.annotations.images;
        let next = images.len() as u32;
        let index = *self.image_of.entry(name).or_insert_with_key(|name| {
            images.push(AnnotatedImage { name: name.clone(), ..AnnotatedImage::default() });
            next
        });
        &mut images[index as usize]
    }

    /// The image with this name, if it was encountered before.
    pub(super) fn known_image(&self, name: &str) -> Option<&AnnotatedImage> {
        let index = *self.image_of.get(&super::image_name(name))?;
        self.annotations.images.get(index as usize)
    }

    /// Records an image without a prediction, unless it was encountered before.
    pub(super) fn add_unpredicted(&mut self, image: &str, status: &str, error: &str, place: impl FnOnce() -> String) {
        self.without_prediction.add(place);
        if self.known_image(image).is_none() {
            self.image(image).status = match status {
                "failed" => PredictionStatus::Failed(error.to_owned()),
                "outdated" => PredictionStatus::Outdated,
                _ => PredictionStatus::Unpredicted,
            };
        }
    }

    pub(super) fn class(&mut self, number: Option<i64>, name: Option<&str>) -> u32 {
        let classes = &mut self.annotations.classes;
        let next = classes.len() as u32;
        *self.class_of.entry((number, name.map(str::to_owned))).or_insert_with_key(|(number, name)| {
            classes.push(TruthLabel { number: *number, name: name.clone() });
            next
        })
    }

    /// Takes numbers in place of names for names, if any class has only a name: of the classes A, B, 0 and 1, none is
    /// an index.
    pub(super) fn name_by_numbers(&mut self) {
        let classes = &mut self.annotations.classes;
        if classes.iter().any(|class| class.number.is_none()) {
            for class in classes.iter_mut().filter(|class| class.name.is_none()) {
                class.name = class.number.take().map(|number| number.to_string());
            }
        }
    }

    /// The name of a class, as in a run of these annotations.
    pub(super) fn class_name(&self, class: u32) -> String {
        class_name(&self.annotations.classes[class as usize])
    }

    pub(super) fn problem(&mut self, kind: AnnotationProblemKind, place: impl Into<String>, reason: impl Into<String>) {
        self.annotations.problems.add(kind, place, reason);
    }

    pub(super) fn add_box(&mut self, image: &str, found: AnnotatedBox, place: impl FnOnce() -> String) {
        if found.bounds.width == 0.0 || found.bounds.height == 0.0 {
            self.without_area.add(place);
        }
        self.image(image).boxes.push(found);
    }

    /// Drops an image with an unusable class: without it, the other classes would have the wrong ranks. Returns the
    /// reason.
    pub(super) fn refuse_label(&mut self, image: &str, refusal: Refusal) -> Refusal {
        self.image(image).status = PredictionStatus::Failed("has a class that cannot be used".to_owned());
        refusal
    }

    pub(super) fn add_label(&mut self, image: &str, label: AnnotatedLabel) {
        self.image(image).labels.push(label);
    }

    /// # Errors
    /// The image already has this class.
    pub(super) fn add_label_once(&mut self, image: &str, label: AnnotatedLabel) -> Result<(), Refusal> {
        let labels = &mut self.image(image).labels;
        if labels.iter().any(|known| known.class == label.class) {
            let reason = "repeats a class of its image; the first entry is used".to_owned();
            return Err((AnnotationProblemKind::Duplicate, reason));
        }
        labels.push(label);
        Ok(())
    }

    /// Sorts labels with scores, and reports predictions without a score as problems.
    pub(super) fn finish(mut self, format: AnnotationFormat) -> Found {
        let annotations = &mut self.annotations;
        if annotations.has_scores() {
            for image in &mut annotations.images {
                let entries = image.boxes.len() + image.labels.len();
                image.boxes.retain(|found| found.score.is_some());
                if image.labels.iter().any(|label| label.score.is_none()) {
                    image.labels.retain(|label| label.score.is_some());
                    image.status = PredictionStatus::Failed("has a class without a score".to_owned());
                }
                for _ in image.boxes.len() + image.labels.len()..entries {
                    let reason = "has an entry without a score, unlike the others";
                    annotations.problems.add(AnnotationProblemKind::BrokenScore, &image.name, reason);
                }
                let score = |label: &AnnotatedLabel| label.score.unwrap_or_default();
                image.labels.sort_by(|one, other| score(other).total_cmp(&score(one)));
            }
        }
        let without_prediction = self.without_prediction.note(
            "entry has no prediction; its image is skipped",
            "entries have no prediction; their images are skipped",
        );
        self.notes.extend([self.without_area.without_area(), without_prediction].into_iter().flatten());
        Found { format, annotations: self.annotations, files: self.files, entries: self.entries, notes: self.notes }
    }

    /// Treats boxes as fractions of their images, as the file states or its boxes suggest. Boxes far outside are
    /// problems.
    pub(super) fn in_fractions(&mut self) {
        let Annotations { images, problems, .. } = &mut self.annotations;
        for image in images {
            image.boxes.retain_mut(|found| {
                found.unit = BoxUnit::Fractions;
                let refused = checked_box(found.bounds, found.unit).err();
                if let Some((kind, reason)) = &refused {
                    problems.add(*kind, &image.name, reason);
                }
                refused.is_none()
            });
        }
    }
}

/// The same box.
///
/// # Errors
/// It is not valid.
pub(super) fn checked_box(bounds: ExactBox, unit: BoxUnit) -> Result<ExactBox, Refusal> {
    let refused = |reason: String| Err((AnnotationProblemKind::BrokenBox, reason));
    let ExactBox { left, top, width, height } = bounds;
    if <[f64; 4]>::from(bounds).iter().any(|number| !number.is_finite()) {
        return refused("has a box with a number that is not finite".to_owned());
    }
    if width < 0.0 || height < 0.0 {
        return refused(format!("has a box of {width} × {height}; sizes cannot be negative"));
    }
    let is_far = |low: f64, size: f64| low < -1.0 || low + size > 2.0;
    if unit == BoxUnit::Fractions && (is_far(left, width) || is_far(top, height)) {
        return refused(
            "has a box far outside its image; its coordinates are fractions of the image, 0 to 1".to_owned(),
        );
    }
    Ok(bounds)
}

/// # Errors
/// It is not a score.
pub(super) fn checked_score(score: f64) -> Result<f64, Refusal> {
    if (0.0..=1.0).contains(&score) {
        return Ok(score);
    }
    Err((AnnotationProblemKind::BrokenScore, format!("has the score {score}; scores must be 0 to 1")))
}
