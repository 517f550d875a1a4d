//! Annotations and predictions of an image, in the classes of an evaluation.

use super::detection::EvaluatedClass;
use super::objects::{DetectedObject, TrueObject};
use crate::domain::{AnnotatedBox, AnnotatedImage, Prediction, TruthLabel, decimal};

/// The ground-truth classes, ordered by number if all have one (as in pycocotools), otherwise as in the file.
#[derive(Debug, Clone, Default)]
pub struct EvaluatedClasses {
    pub classes: Vec<EvaluatedClass>,
    /// The index into `classes` of each class of the annotations.
    places: Vec<u32>,
}

impl EvaluatedClasses {
    pub fn new(truth: &[TruthLabel]) -> Self {
        let mut order: Vec<usize> = (0..truth.len()).collect();
        if truth.iter().all(|class| class.number.is_some()) {
            order.sort_by_key(|&index| truth[index].number);
        }
        let mut places = vec![0; truth.len()];
        for (place, &index) in (0_u32..).zip(&order) {
            places[index] = place;
        }
        let class = |index: &usize| {
            let label = &truth[*index];
            let name = label.name.clone().unwrap_or_else(|| label.to_string());
            EvaluatedClass { id: label.number, name }
        };
        Self { classes: order.iter().map(class).collect(), places }
    }

    /// The index of a class of the annotations.
    pub fn place(&self, class: u32) -> Option<u32> {
        self.places.get(class as usize).copied()
    }

    /// The ground-truth objects of an image; `None` if its boxes are fractions and its size is unknown.
    pub fn truths(&self, image: &AnnotatedImage, size: Option<[u32; 2]>) -> Option<Vec<TrueObject>> {
        let object = |found: &AnnotatedBox| {
            let bounds = found.in_pixels(size)?;
            let area = found.area.unwrap_or(bounds.area());
            Some(TrueObject { bounds, class: self.place(found.class)?, area, role: found.role })
        };
        image.boxes.iter().map(object).collect()
    }
}

/// Detections of a prediction, clipped to the image as in every export, each with its original index. `class_of`
/// returns the evaluation's class for a class id of the model; detections of other classes are skipped.
pub fn detections(
    prediction: &Prediction,
    indices: &[usize],
    class_of: impl Fn(u32) -> Option<u32>,
) -> (Vec<u32>, Vec<DetectedObject>) {
    let object = |&index: &usize| {
        let found = prediction.detections().get(index)?;
        let bounds = found.bounds.clipped(prediction.width, prediction.height).into();
        Some((index as u32, DetectedObject { bounds, class: class_of(found.class_id)?, score: decimal(found.score) }))
    };
    indices.iter().filter_map(object).unzip()
}

/// The detections of an image from another tool; `None` if its boxes are fractions and its size is unknown.
pub fn annotated_detections(
    image: &AnnotatedImage,
    size: Option<[u32; 2]>,
    class_of: impl Fn(u32) -> Option<u32>,
) -> Option<Vec<DetectedObject>> {
    let mut detections = Vec::with_capacity(image.boxes.len());
    for found in &image.boxes {
        let bounds = found.in_pixels(size)?;
        if let Some(class) = class_of(found.class) {
            detections.push(DetectedObject { bounds, class, score: found.score.unwrap_or(1.0) });
        }
    }
    Some(detections)
}
