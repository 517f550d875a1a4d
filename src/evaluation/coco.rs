//! The numbers of COCO, by `hotcoco`.

use hotcoco::params::{IouType, Params};
use hotcoco::{Annotation, COCOeval, Category, EvalMode, Image, StreamingEval};

use super::objects::ImageObjects;
use crate::domain::BoxRole;

/// Boxes that are matched together, at least.
const BATCH_LEN: usize = 20_000;

/// The area of an object that does not count: outside every range of areas, so that all of them ignore it.
const AREA_OF_IGNORED: f64 = -1.0;

/// Collects images one by one. `hotcoco` matches them in batches and keeps what it needs of them, not the boxes.
pub(super) struct CocoBuilder {
    evaluation: StreamingEval,
    classes: usize,
    next_image: u64,
    images: Vec<Image>,
    truth: Vec<Annotation>,
    found: Vec<Annotation>,
    /// Why boxes were refused.
    refused: Result<(), String>,
}

/// What COCO measures. Values are `None` if there is nothing to measure.
pub(super) struct CocoNumbers {
    /// AP at 0.50:0.95, 0.50, 0.75, small, medium, large; AR with 1, 10, 100 detections, small, medium, large.
    pub(super) summary: [Option<f64>; 12],
    /// Of each class: AP at 0.50:0.95 and at 0.50.
    pub(super) by_class: Vec<[Option<f64>; 2]>,
    /// Interpolated precision at IoU 0.50 by class, at the recalls 0.00, 0.01 … 1.00; empty without objects.
    pub(super) curves: Vec<Vec<f64>>,
}

impl CocoBuilder {
    pub(super) fn new(classes: usize) -> Self {
        let category = |id: usize| Category { id: id as u64, name: format!("class {id}"), ..Category::default() };
        let categories = (0..classes).map(category).collect();
        let evaluation = StreamingEval::new(Params::new(IouType::Bbox), EvalMode::Coco, categories);
        Self {
            evaluation: evaluation.expect("only the mode of Open Images is refused"),
            classes,
            next_image: 0,
            images: Vec::new(),
            truth: Vec::new(),
            found: Vec::new(),
            refused: Ok(()),
        }
    }

    /// The next image, in the order that decides between equal scores. Objects and detections of other classes are left
    /// out.
    pub(super) fn add(&mut self, image: &ImageObjects) {
        let image_id = self.next_image;
        self.next_image += 1;
        self.images.push(Image { id: image_id, ..Image::default() });
        for object in image.truths.iter().filter(|object| (object.class as usize) < self.classes) {
            let area = if object.role == BoxRole::Ignored { AREA_OF_IGNORED } else { object.area };
            self.truth.push(Annotation {
                image_id,
                category_id: object.class.into(),
                bbox: Some(object.bounds),
                area: Some(area),
                iscrowd: object.role == BoxRole::Crowd,
                ..Annotation::default()
            });
        }
        let found = image.detections.iter().filter(|found| (found.class as usize) < self.classes);
        self.found.extend(found.map(|found| Annotation {
            image_id,
            category_id: found.class.into(),
            bbox: Some(found.bounds),
            score: Some(found.score),
            ..Annotation::default()
        }));
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
    /// `hotcoco` refuses the boxes, in its words.
    pub(super) fn evaluate(mut self) -> Result<CocoNumbers, String> {
        self.match_batch();
        self.refused?;
        let mut evaluation = self.evaluation.finalize();
        evaluation.accumulate();
        // Returns what pycocotools prints; the numbers are in `stats`.
        evaluation.summarize_lines();
        let stats = evaluation.stats().unwrap_or_default();
        let summary = std::array::from_fn(|place| stats.get(place).copied().and_then(measured));
        let (by_class, curves) = (0..self.classes).map(|class| class_numbers(&evaluation, class)).unzip();
        Ok(CocoNumbers { summary, by_class, curves })
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
