//! The groups of images that errors are searched in for patterns: by ground truth, file, EXIF data and embedding.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::EvaluateError;
use crate::alike::Embeddings;
use crate::domain::{BoxRole, Capture, Encoder, SampleId};
use crate::evaluation::{Attribute, ErrorPatterns, ImageGroup, ImageSides, Likeness, Sides, find_patterns};
use crate::tasks::{ProgressUnit, TaskControl};

/// The images of a group of similar ones, on average, and the limits of the number of groups.
const LOOKALIKES: usize = 40;
const FEWEST_GROUPS: usize = 2;
const MOST_GROUPS: usize = 60;

/// What is known about the images besides both sides.
#[derive(Default)]
pub struct KnownImages<'k> {
    /// The EXIF data of each image in the listing, if it was read; `None` without a listing.
    pub capture_of: Option<&'k dyn Fn(SampleId) -> Option<Arc<Capture>>>,
    pub embeddings: Option<EmbeddedImages<'k>>,
}

/// The embeddings of images.
pub struct EmbeddedImages<'k> {
    pub encoder: Encoder,
    /// The name of the image of each row.
    pub names: Vec<String>,
    pub rows: &'k Embeddings,
}

/// Searches the errors of `sides` for patterns; with `than`, those that this other run, with its name, does not make.
///
/// # Errors
/// Canceled.
pub fn error_patterns(
    sides: &Sides,
    than: Option<(&str, &Sides)>,
    known: KnownImages<'_>,
    control: &TaskControl,
) -> Result<ErrorPatterns, EvaluateError> {
    control.begin(ProgressUnit::Images);
    control.set_total(Some(sides.images.len() as u64));
    control.set_step("grouping images");
    let is_cancelled = || control.checkpoint().is_err();
    let mut groups = Groups::default();
    let mut unread_captures = 0;
    for (image, at) in sides.images.iter().zip(0..) {
        control.checkpoint()?;
        control.add_done(1);
        groups.add_image(sides, image, at);
        let sample = known.capture_of.zip(image.sample);
        match sample.map(|(capture_of, sample)| capture_of(sample)) {
            Some(Some(capture)) => groups.add_capture(&capture, at),
            Some(None) => unread_captures += 1,
            None => {}
        }
    }
    let likeness = match known.embeddings {
        Some(embeddings) => {
            groups.add_lookalikes(sides, &embeddings, is_cancelled);
            Some(Likeness { encoder: embeddings.encoder, metric: LIKENESS_METRIC })
        }
        None => None,
    };
    control.checkpoint()?;
    control.set_step("testing patterns");
    let found = find_patterns(sides, than.map(|(_, sides)| sides), &groups.finish(), is_cancelled);
    control.checkpoint()?;
    let first = sides.thresholds.first().copied();
    Ok(ErrorPatterns {
        found: found.unwrap_or_default(),
        classes: sides.classes.iter().map(|class| class.name.clone()).collect(),
        images: sides.images.iter().map(|image| (image.name.clone(), image.sample)).collect(),
        than: than.map(|(name, _)| name.to_owned()),
        min_score: first.filter(|first| sides.thresholds.iter().all(|threshold| threshold == first)),
        likeness,
        unread_captures,
    })
}

/// Names `alike::METRIC`; a test checks it.
const LIKENESS_METRIC: &str = "spherical k-means by the cosine of mean-centered vectors";

/// Images by what they have in common.
#[derive(Default)]
struct Groups(BTreeMap<(Attribute, String), Vec<u32>>);

impl Groups {
    /// Adds an image. Images come in order.
    fn add(&mut self, attribute: Attribute, value: impl Into<String>, image: u32) {
        let images = self.0.entry((attribute, value.into())).or_default();
        if images.last() != Some(&image) {
            images.push(image);
        }
    }

    /// By what both sides contain.
    fn add_image(&mut self, sides: &Sides, image: &ImageSides, at: u32) {
        let name_of = |class: u32| sides.classes.get(class as usize).map_or("", |class| class.name.as_str());
        if let Some(class) = image.truth_class {
            self.add(Attribute::Class, name_of(class), at);
        }
        for object in image.objects.truths.iter().filter(|object| object.role == BoxRole::Object) {
            self.add(Attribute::Class, name_of(object.class), at);
            self.add(Attribute::ObjectSize, object_size(object.area), at);
        }
        for (end, _) in image.name.match_indices('/').filter(|(end, _)| *end > 0) {
            self.add(Attribute::Folder, &image.name[..end], at);
        }
        if let Some([width, height]) = image.size.filter(|size| size.iter().all(|side| *side > 0)) {
            self.add(Attribute::ImageSize, image_size(width, height), at);
            self.add(Attribute::AspectRatio, aspect_ratio(width, height), at);
        }
    }

    fn add_capture(&mut self, capture: &Capture, at: u32) {
        if let Some(camera) = &capture.camera {
            self.add(Attribute::Camera, &**camera, at);
        }
        if let Some(part) = capture.part_of_day() {
            self.add(Attribute::TimeOfDay, part, at);
        }
    }

    /// By similar embeddings. Each group is named after its most typical image.
    fn add_lookalikes(&mut self, sides: &Sides, embeddings: &EmbeddedImages<'_>, is_cancelled: impl Fn() -> bool) {
        let EmbeddedImages { names, rows, .. } = embeddings;
        let count = (rows.len() / LOOKALIKES).clamp(FEWEST_GROUPS, MOST_GROUPS);
        let Some(groups) = rows.clusters(count, is_cancelled) else { return };
        let row_of: HashMap<&str, usize> = names.iter().map(String::as_str).zip(0..).collect();
        for (image, at) in sides.images.iter().zip(0..) {
            let row = row_of.get(image.name.as_str());
            let group = row.and_then(|row| groups.of_row.get(*row).copied().flatten());
            let example = group.and_then(|group| groups.examples.get(group as usize).copied().flatten());
            if let Some(example) = example.and_then(|example| names.get(example)) {
                self.add(Attribute::Likeness, example, at);
            }
        }
    }

    /// Without folders that contain the same images as one inside.
    fn finish(self) -> Vec<ImageGroup> {
        let mut groups: Vec<ImageGroup> = Vec::new();
        for ((attribute, value), images) in self.0 {
            // Folders precede those inside.
            if let Some(outer) = groups.last_mut().filter(|outer| outer.attribute == attribute)
                && attribute == Attribute::Folder
                && outer.images == images
            {
                outer.value = value;
                continue;
            }
            groups.push(ImageGroup { attribute, value, images });
        }
        groups
    }
}

/// As COCO divides objects, in square pixels.
fn object_size(area: f64) -> &'static str {
    match area {
        ..1024.0 => "small (below 32²)",
        ..9216.0 => "medium (32² to 96²)",
        _ => "large (from 96²)",
    }
}

fn image_size(width: u32, height: u32) -> &'static str {
    match u64::from(width) * u64::from(height) {
        0..500_000 => "below 0.5 MP",
        500_000..2_000_000 => "0.5 to 2 MP",
        2_000_000..8_000_000 => "2 to 8 MP",
        _ => "8 MP or more",
    }
}

fn aspect_ratio(width: u32, height: u32) -> &'static str {
    match f64::from(width) / f64::from(height) {
        ..0.8 => "portrait (below 4:5)",
        0.8..=1.25 => "about square (4:5 to 5:4)",
        ..2.0 => "landscape (5:4 to 2:1)",
        _ => "wide (2:1 or more)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alike::METRIC;
    use crate::domain::{ExactBox, ModelTask};
    use crate::evaluation::{Counted, EvaluatedClass, ImageObjects, MatchedClasses, TrueObject};

    #[test]
    fn metric_is_that_of_similar_images() {
        assert!(LIKENESS_METRIC.ends_with(METRIC));
    }

    #[test]
    fn images_are_grouped_by_everything_known() {
        let object = |area| TrueObject {
            bounds: ExactBox { left: 0.0, top: 0.0, width: 1.0, height: area },
            class: 0,
            area,
            role: BoxRole::Object,
        };
        let image = |name: &str, areas: &[f64], size| ImageSides {
            name: name.to_owned(),
            objects: ImageObjects { truths: areas.iter().copied().map(object).collect(), detections: Vec::new() },
            size,
            ..ImageSides::default()
        };
        let images = vec![
            image("a/b/1.jpg", &[10.0, 20.0], Some([100, 200])),
            image("a/b/2.jpg", &[2000.0, 10_000.0], Some([4000, 3000])),
            image("c.jpg", &[], None),
            image("d/e.jpg", &[], Some([0, 7])),
        ];
        let sides = Sides {
            task: ModelTask::Detection,
            classes: vec![EvaluatedClass { id: None, name: "cat".to_owned() }],
            matched: MatchedClasses::default(),
            model_classes: Vec::new(),
            images,
            thresholds: vec![0.5],
            counted: Counted::default(),
            matching: crate::annotations::matching::MatchSummary::default(),
            split: None,
            notes: Vec::new(),
        };
        let mut groups = Groups::default();
        for (image, at) in sides.images.iter().zip(0..) {
            groups.add_image(&sides, image, at);
        }
        let at = |hour| Capture {
            taken: Some(jiff::civil::date(2024, 5, 17).at(hour, 30, 0, 0)),
            camera: Some("Canon EOS".into()),
            location: None,
        };
        for (image, hour) in [(0, 5), (1, 21), (2, 6), (3, 20)] {
            groups.add_capture(&at(hour), image);
        }
        let found: Vec<_> =
            groups.finish().into_iter().map(|group| (group.attribute, group.value, group.images)).collect();
        let expected = [
            (Attribute::Class, "cat", vec![0, 1]),
            (Attribute::Folder, "a/b", vec![0, 1]),
            (Attribute::Folder, "d", vec![3]),
            (Attribute::Camera, "Canon EOS", vec![0, 1, 2, 3]),
            (Attribute::TimeOfDay, "evening (17:00–20:59)", vec![3]),
            (Attribute::TimeOfDay, "morning (6:00–10:59)", vec![2]),
            (Attribute::TimeOfDay, "night (21:00–5:59)", vec![0, 1]),
            (Attribute::ObjectSize, "large (from 96²)", vec![1]),
            (Attribute::ObjectSize, "medium (32² to 96²)", vec![1]),
            (Attribute::ObjectSize, "small (below 32²)", vec![0]),
            (Attribute::ImageSize, "8 MP or more", vec![1]),
            (Attribute::ImageSize, "below 0.5 MP", vec![0]),
            (Attribute::AspectRatio, "landscape (5:4 to 2:1)", vec![1]),
            (Attribute::AspectRatio, "portrait (below 4:5)", vec![0]),
        ];
        let expected = expected.map(|(attribute, value, images)| (attribute, value.to_owned(), images));
        assert_eq!(found, expected);
    }
}
