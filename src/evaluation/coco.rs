//! The numbers of COCO and TIDE, by `hotcoco`.

use std::sync::Arc;

use hotcoco::params::IouType;
use hotcoco::{Annotation, COCO, COCOeval, Category, Dataset, Image};

use super::objects::{BACKGROUND_IOU, CORRECT_IOU, ImageObjects};
use crate::domain::BoxRole;

/// The area of an object that does not count: outside every range of areas, so that all of them ignore it.
const AREA_OF_IGNORED: f64 = -1.0;

/// Collects images one by one, so that no more than one copy of the boxes is in memory.
pub(super) struct CocoBuilder {
    truth: Dataset,
    found: Dataset,
}

/// What COCO and TIDE measure. Values are `None` if there is nothing to measure.
pub(super) struct CocoNumbers {
    /// AP at 0.50:0.95, 0.50, 0.75, small, medium, large; AR with 1, 10, 100 detections, small, medium, large.
    pub(super) summary: [Option<f64>; 12],
    /// Of each class: AP at 0.50:0.95 and at 0.50.
    pub(super) by_class: Vec<[Option<f64>; 2]>,
    /// Interpolated precision at IoU 0.50 by class, at the recalls 0.00, 0.01 … 1.00; empty without objects.
    pub(super) curves: Vec<Vec<f64>>,
    /// Kinds of errors: name, count, cost in AP at 0.50.
    pub(super) errors: Vec<(&'static str, u64, f64)>,
}

impl CocoBuilder {
    pub(super) fn new(classes: usize) -> Self {
        let category = |id: usize| Category { id: id as u64, name: format!("class {id}"), ..Category::default() };
        let categories: Vec<Category> = (0..classes).map(category).collect();
        let truth = Dataset { categories: categories.clone(), ..Dataset::default() };
        Self { truth, found: Dataset { categories, ..Dataset::default() } }
    }

    /// The next image, in the order that decides between equal scores.
    pub(super) fn add(&mut self, image: &ImageObjects) {
        let image_id = self.truth.images.len() as u64;
        self.truth.images.push(Image { id: image_id, ..Image::default() });
        for object in &image.truths {
            let area = if object.role == BoxRole::Ignored { AREA_OF_IGNORED } else { object.area };
            self.truth.annotations.push(Annotation {
                id: self.truth.annotations.len() as u64 + 1,
                image_id,
                category_id: object.class.into(),
                bbox: Some(object.bounds),
                area: Some(area),
                iscrowd: object.role == BoxRole::Crowd,
                ..Annotation::default()
            });
        }
        for found in &image.detections {
            let [_, _, width, height] = found.bounds;
            self.found.annotations.push(Annotation {
                id: self.found.annotations.len() as u64 + 1,
                image_id,
                category_id: found.class.into(),
                bbox: Some(found.bounds),
                area: Some(width * height),
                score: Some(found.score),
                ..Annotation::default()
            });
        }
    }

    /// # Errors
    /// `hotcoco` refuses the boxes, in its words.
    pub(super) fn evaluate(mut self) -> Result<CocoNumbers, String> {
        self.found.images.clone_from(&self.truth.images);
        let classes = self.truth.categories.len();
        let truth = Arc::new(COCO::from_dataset(self.truth));
        let mut evaluation = COCOeval::new(truth, COCO::from_dataset(self.found), IouType::Bbox);
        evaluation.evaluate().map_err(|error| error.to_string())?;
        evaluation.accumulate();
        // Returns what pycocotools prints; the numbers are in `stats`.
        evaluation.summarize_lines();
        let stats = evaluation.stats().unwrap_or_default();
        let summary = std::array::from_fn(|place| stats.get(place).copied().and_then(measured));
        let (by_class, curves) = (0..classes).map(|class| class_numbers(&evaluation, class)).unzip();
        Ok(CocoNumbers { summary, by_class, curves, errors: errors(&evaluation)? })
    }
}

/// COCO says -1 if there is nothing to measure.
fn measured(number: f64) -> Option<f64> {
    (number > -1.0).then_some(number)
}

/// AP at 0.50:0.95 and at 0.50, and the curve, of one class: all areas, 100 detections.
fn class_numbers(evaluation: &COCOeval, class: usize) -> ([Option<f64>; 2], Vec<f64>) {
    let Some(accumulated) = evaluation.accumulated() else {
        return ([None; 2], Vec::new());
    };
    let shape = accumulated.shape;
    let (area, most) = (evaluation.params.all_area_idx(), evaluation.params.max_det_idx());
    let curve = |threshold: usize| -> Vec<f64> {
        let places = (0..shape.r).map(|recall| shape.precision_idx(threshold, recall, class, area, most));
        places.filter_map(|place| measured(accumulated.precision[place])).collect()
    };
    let mean = |numbers: &[f64]| (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64);
    let all: Vec<f64> = (0..shape.t).flat_map(curve).collect();
    let at_half = curve(0);
    ([mean(&all), mean(&at_half)], at_half)
}

fn errors(evaluation: &COCOeval) -> Result<Vec<(&'static str, u64, f64)>, String> {
    let errors = evaluation.tide_errors(CORRECT_IOU, BACKGROUND_IOU).map_err(|error| error.to_string())?;
    let names = [
        ("class", "Cls"),
        ("location", "Loc"),
        ("both", "Both"),
        ("duplicate", "Dupe"),
        ("background", "Bkg"),
        ("missed", "Miss"),
    ];
    let row = |(name, key): (&'static str, &str)| {
        let cost = errors.delta_ap.get(key).copied().unwrap_or(0.0);
        (name, errors.counts.get(key).copied().unwrap_or(0), cost)
    };
    Ok(names.into_iter().map(row).collect())
}
