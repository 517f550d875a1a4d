//! COCO's metrics, computed by `hotcoco`.

use hotcoco::params::{IouType, Params};
use hotcoco::{Annotation, COCOeval, Category, EvalMode, Image, StreamingEval};

use super::mean;
use super::objects::ImageObjects;
use crate::domain::BoxRole;

/// Minimum number of boxes that are matched together.
const BATCH_LEN: usize = 20_000;

/// The area of an object that does not count: outside every area range, so that all ranges ignore it.
const AREA_OF_IGNORED: f64 = -1.0;

/// Collects images one by one. `hotcoco` matches them in batches and keeps only what it needs, not the boxes.
pub(super) struct CocoBuilder {
    evaluation: StreamingEval,
    /// The category of each class; `None` for one without objects, which has nothing to measure: `hotcoco` uses 100 KB
    /// per category.
    categories: Vec<Option<u64>>,
    next_image: u64,
    images: Vec<Image>,
    truth: Vec<Annotation>,
    found: Vec<Annotation>,
    /// Why boxes were rejected.
    refused: Result<(), String>,
}

/// COCO's metrics. Values are `None` if there is nothing to measure.
pub(super) struct CocoNumbers {
    /// AP at 0.50:0.95, 0.50, 0.75, small, medium, large; AR with 1, 10, 100 detections, small, medium, large.
    pub summary: [Option<f64>; 12],
    /// AP at 0.50:0.95 and at 0.50, per class.
    pub by_class: Vec<[Option<f64>; 2]>,
    /// Interpolated precision at IoU 0.50 by class, at recall 0.00, 0.01 … 1.00; empty without objects.
    pub curves: Vec<Vec<f64>>,
}

impl CocoBuilder {
    /// `have_objects`: whether each class has an object.
    pub(super) fn new(have_objects: &[bool]) -> Self {
        let mut next = 0..;
        let categories: Vec<Option<u64>> =
            have_objects.iter().map(|has_objects| has_objects.then(|| next.next()).flatten()).collect();
        let category = |id: &u64| Category { id: *id, name: format!("class {id}"), ..Category::default() };
        let listed = categories.iter().flatten().map(category).collect();
        let evaluation = StreamingEval::new(Params::new(IouType::Bbox), EvalMode::Coco, listed);
        Self {
            evaluation: evaluation.expect("only the mode of Open Images is refused"),
            categories,
            next_image: 0,
            images: Vec::new(),
            truth: Vec::new(),
            found: Vec::new(),
            refused: Ok(()),
        }
    }

    fn category(&self, class: u32) -> Option<u64> {
        self.categories.get(class as usize).copied().flatten()
    }

    /// The next image, in the order that breaks ties between equal scores. Objects and detections of other classes are
    /// skipped.
    pub(super) fn add(&mut self, image: &ImageObjects) {
        let image_id = self.next_image;
        self.next_image += 1;
        self.images.push(Image { id: image_id, ..Image::default() });
        for object in &image.truths {
            let Some(category_id) = self.category(object.class) else { continue };
            let area = if object.role == BoxRole::Ignored { AREA_OF_IGNORED } else { object.area };
            self.truth.push(Annotation {
                image_id,
                category_id,
                bbox: Some(object.bounds.into()),
                area: Some(area),
                iscrowd: object.role == BoxRole::Crowd,
                ..Annotation::default()
            });
        }
        for found in &image.detections {
            let Some(category_id) = self.category(found.class) else { continue };
            self.found.push(Annotation {
                image_id,
                category_id,
                bbox: Some(found.bounds.into()),
                score: Some(found.score),
                ..Annotation::default()
            });
        }
        if self.truth.len() + self.found.len() >= BATCH_LEN {
            self.match_batch();
        }
    }

    fn match_batch(&mut self) {
        let [truth, found] = [&mut self.truth, &mut self.found].map(std::mem::take);
        let images = std::mem::take(&mut self.images);
        if self.refused.is_ok() {
            self.refused = self.evaluation.update(images, truth, found).map_err(|error| error.to_string());
        }
    }

    /// # Errors
    /// `hotcoco` rejects the boxes, with its message.
    pub(super) fn evaluate(mut self) -> Result<CocoNumbers, String> {
        self.match_batch();
        self.refused?;
        let mut evaluation = self.evaluation.finalize();
        evaluation.accumulate();
        // Returns what pycocotools prints; the metrics are in `stats`.
        evaluation.summarize_lines();
        let stats = evaluation.stats().unwrap_or_default();
        let summary = std::array::from_fn(|place| stats.get(place).copied().and_then(measured));
        let numbers = |category: &Option<u64>| category.map(|category| class_numbers(&evaluation, category as usize));
        let of_class = self.categories.iter().map(|category| numbers(category).unwrap_or_default());
        let (by_class, curves) = of_class.unzip();
        Ok(CocoNumbers { summary, by_class, curves })
    }
}

/// COCO uses -1 if there is nothing to measure.
fn measured(number: f64) -> Option<f64> {
    (number > -1.0).then_some(number)
}

/// AP at 0.50:0.95 and at 0.50, and the curve of one class: all areas, 100 detections.
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
    let at_half = curve(0);
    ([mean((0..shape.t).flat_map(curve)), mean(at_half.iter().copied())], at_half)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_classes_have_no_category() {
        let mut have_objects = vec![false; 100_000];
        have_objects[70_000] = true;
        let numbers = CocoBuilder::new(&have_objects).evaluate().unwrap();
        assert_eq!((numbers.by_class.len(), numbers.curves.len()), (100_000, 100_000));
        let categories = CocoBuilder::new(&have_objects).categories;
        assert_eq!(categories.iter().flatten().count(), 1);
        assert_eq!(categories[70_000], Some(0));
    }
}
