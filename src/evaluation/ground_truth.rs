//! Annotations used as ground truth, signs that their boxes do not follow their format, and the two sides of an
//! evaluation.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;

use super::detection::EvaluatedClass;
use super::objects::{DetectedObject, ImageObjects, TrueObject};
use crate::annotations::matching::{
    ClassCorrections, ClassMatches, CorrectionsError, CountedClasses, Doubt, ImageKey, MatchSummary,
};
use crate::domain::{
    AnnotatedBox, AnnotatedImage, AnnotatedImageId, AnnotationProblemKind, AnnotationProblems, Annotations, BoxRole,
    DatasetSplit, ExactBox, ModelTask, Prediction, PredictionStatus, SampleId, TruthLabel, counted, decimal,
    leaves_image,
};

/// Ground truth for many images, in file order.
#[derive(Debug, Clone)]
pub struct GroundTruth {
    /// The name of the file or folder.
    pub name: String,
    pub task: ModelTask,
    pub images: Vec<AnnotatedImage>,
    /// The classes as in the file; [`AnnotatedImage`] refers to these.
    pub labels: Vec<TruthLabel>,
    /// The number of objects, or images, of each class.
    pub objects: Vec<u64>,
    pub classes: EvaluatedClasses,
    /// Notes for the user: whole sentences.
    pub notes: Vec<String>,
    /// What could not be used.
    pub problems: AnnotationProblems,
    /// The split that was read, if the dataset has several.
    pub split: Option<DatasetSplit>,
}

/// Why annotations are not ground truth, to follow their name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoTruth {
    #[error("has scores, so these are predictions, not ground truth")]
    Scores,
    #[error("has neither boxes nor image classes")]
    Nothing,
    #[error("has only crowds and objects that are not counted (difficult), so nothing can be measured")]
    NothingCounts,
}

/// Predicted classes matched with ground-truth classes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MatchedClasses {
    /// One row per predicted class.
    pub matches: ClassMatches,
    /// The index of each among the classes of the evaluation.
    pub places: Vec<Option<u32>>,
}

impl GroundTruth {
    /// # Errors
    /// The annotations are predictions, or empty.
    pub fn new(name: String, mut annotations: Annotations, mut notes: Vec<String>) -> Result<Self, NoTruth> {
        if annotations.has_scores() {
            // Open Images has a confidence of 1 for human annotations. A model is never that sure of everything.
            if annotations.scores().any(|score| score != 1.0) {
                return Err(NoTruth::Scores);
            }
            annotations.set_scores(None);
            notes.push("All ground-truth scores are 1, so scores are ignored.".to_owned());
        }
        let Annotations { classes: labels, mut images, problems, split } = annotations;
        images.retain(|image| image.status == PredictionStatus::Predicted);
        let several = images.iter().filter(|image| image.labels.len() > 1).count();
        if several > 0 {
            notes.push(format!(
                "{} in the ground truth with several classes; only the first is used.",
                counted(several, "image", "images")
            ));
        }
        let with_boxes = images.iter().any(|image| !image.boxes.is_empty());
        let with_labels = images.iter().any(|image| !image.labels.is_empty());
        let task = match (with_boxes, with_labels) {
            (true, _) => ModelTask::Detection,
            (false, true) => ModelTask::Classification,
            (false, false) => return Err(NoTruth::Nothing),
        };
        let mut boxes = images.iter().flat_map(|image| &image.boxes).peekable();
        if boxes.peek().is_some() && boxes.all(|found| found.role != BoxRole::Object) {
            return Err(NoTruth::NothingCounts);
        }
        let mut objects = vec![0; labels.len()];
        for image in &images {
            let shown = image.labels.first().map(|label| label.class);
            for class in shown.into_iter().chain(image.boxes.iter().map(|found| found.class)) {
                objects[class as usize] += 1;
            }
        }
        let classes = EvaluatedClasses::new(&labels);
        Ok(Self { name, task, images, labels, objects, classes, notes, problems, split })
    }

    /// The classes in [`Self::labels`] with their objects.
    pub fn counted_classes(&self) -> CountedClasses<'_> {
        CountedClasses { labels: &self.labels, objects: &self.objects }
    }

    /// The name of a class in [`Self::labels`], or its number if it has none.
    pub fn class_name(&self, class: u32) -> String {
        let label = self.labels.get(class as usize);
        label.map_or_else(String::new, |label| label.name.clone().unwrap_or_else(|| label.to_string()))
    }

    pub fn keys(&self) -> Vec<ImageKey<'_>> {
        self.images.iter().map(ImageKey::new).collect()
    }

    /// # Errors
    /// A correction maps to a class that the ground truth does not have.
    pub fn match_classes(
        &self,
        predicted: &[TruthLabel],
        corrections: &ClassCorrections,
    ) -> Result<MatchedClasses, CorrectionsError> {
        let matches = ClassMatches::between(predicted, &self.labels, corrections)?;
        let place = |index: u32| self.classes.place(matches.index(index)?);
        let places = (0..predicted.len() as u32).map(place).collect();
        Ok(MatchedClasses { matches, places })
    }

    /// The objects or the class of an image, without predictions. `size`: that of the upright image in pixels, if
    /// known. `None` if its boxes are fractions and the size is unknown.
    pub fn image(&self, index: usize, size: Option<[u32; 2]>) -> Option<ImageSides> {
        let image = self.images.get(index)?;
        let truths = self.classes.truths(image, size.or(image.size))?;
        let truth_class = image.labels.first().and_then(|label| self.classes.place(label.class));
        let objects = ImageObjects { truths, detections: Vec::new() };
        Some(ImageSides { name: image.shown_name(), objects, truth_class, ..ImageSides::default() })
    }

    /// The image order that breaks ties between equal scores: by id if all ids are numbers, as in pycocotools,
    /// otherwise file order.
    pub fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.images.len()).collect();
        let is_numbered = self.images.iter().all(|image| matches!(image.id, Some(AnnotatedImageId::Number(_))));
        if is_numbered {
            order.sort_by_key(|&index| &self.images[index].id);
        }
        order
    }
}

/// Ground truth and predictions, matched image by image and class by class.
#[derive(Debug)]
pub struct Sides {
    pub task: ModelTask,
    pub classes: Vec<EvaluatedClass>,
    /// The predicted classes among these.
    pub matched: MatchedClasses,
    /// Each class id of the model that matches one of `classes`, with its index; empty without a model.
    pub model_classes: Vec<(u32, u32)>,
    /// In the order of [`GroundTruth::order`].
    pub images: Vec<ImageSides>,
    /// The minimum score of each class.
    pub thresholds: Vec<f64>,
    pub counted: Counted,
    pub matching: MatchSummary,
    /// The split of the ground truth, if the dataset has several.
    pub split: Option<String>,
    /// Notes to read before the numbers: whole sentences.
    pub notes: Vec<String>,
}

#[derive(Debug, Default)]
pub struct ImageSides {
    /// The path relative to the source, with `/`.
    pub name: String,
    /// That of the upright image in pixels, if known.
    pub size: Option<[u32; 2]>,
    pub objects: ImageObjects,
    /// The ground-truth class of the whole image.
    pub truth_class: Option<u32>,
    /// The predicted classes of the whole image with their scores, best first.
    pub classes: Vec<(u32, f64)>,
    /// The image in the source, if one is open.
    pub sample: Option<SampleId>,
    /// The index of each detection in its stored prediction.
    pub stored: Vec<u32>,
}

/// What was evaluated, and what was skipped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Counted {
    /// The run or file with the predictions.
    pub predictions: String,
    pub truth: String,
    /// Predicted images whose name fits several ground-truth images, or is not unique; skipped.
    pub images_ambiguous: u64,
    /// Ground-truth images without a prediction, not even a failed or outdated one. With a file of detections, they count as images without detections, as
    /// in pycocotools; with a project, they are skipped.
    pub images_without_prediction: u64,
    /// Predicted images without ground truth; skipped.
    pub images_without_truth: u64,
    /// Images whose prediction failed or is outdated; skipped.
    pub images_failed: u64,
    pub images_outdated: u64,
    /// Images whose sizes contradict each other, or are required and unknown; skipped.
    pub images_of_other_size: u64,
    pub images_without_size: u64,
    /// Detections, or top classes, of measured images, of classes without ground truth.
    pub predictions_of_other_classes: u64,
    /// Entries that could not be used, and annotations with a repeated id, by kind.
    pub problems: BTreeMap<&'static str, u64>,
}

impl Counted {
    /// Whether every image and entry was used.
    pub fn is_complete(&self) -> bool {
        let left_out = [
            self.images_without_truth,
            self.images_ambiguous,
            self.images_failed,
            self.images_outdated,
            self.images_of_other_size,
            self.images_without_size,
        ];
        left_out.iter().all(|count| *count == 0) && self.problems.is_empty()
    }

    /// What was skipped or is worth knowing, with nonzero counts only.
    pub fn texts(&self) -> impl Iterator<Item = (u64, &'static str)> {
        let of_kind = |kind: AnnotationProblemKind| self.problems.get(kind.word()).copied().unwrap_or_default();
        let repeated = of_kind(AnnotationProblemKind::RepeatedId);
        let unlabeled = of_kind(AnnotationProblemKind::Unlabeled);
        [
            (
                self.images_without_prediction,
                ["ground-truth image without a prediction", "ground-truth images without a prediction"],
            ),
            (
                self.images_without_truth,
                ["predicted image without ground truth, skipped", "predicted images without ground truth, skipped"],
            ),
            (
                self.images_ambiguous,
                ["predicted image with an ambiguous name, skipped", "predicted images with ambiguous names, skipped"],
            ),
            (self.images_failed, ["image whose prediction failed, skipped", "images whose prediction failed, skipped"]),
            (self.images_outdated, ["outdated image, skipped", "outdated images, skipped"]),
            (
                self.images_of_other_size,
                ["image with contradictory sizes, skipped", "images with contradictory sizes, skipped"],
            ),
            (self.images_without_size, ["image of unknown size, skipped", "images of unknown size, skipped"]),
            (
                self.predictions_of_other_classes,
                [
                    "prediction of a class that the ground truth does not have",
                    "predictions of classes that the ground truth does not have",
                ],
            ),
            (
                self.problems.values().sum::<u64>() - repeated - unlabeled,
                ["entry that could not be used", "entries that could not be used"],
            ),
            (
                unlabeled,
                ["image without a label file, treated as empty", "images without label files, treated as empty"],
            ),
            (repeated, ["annotation with a duplicate id, kept", "annotations with duplicate ids, kept"]),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, [one, several])| (count, if count == 1 { one } else { several }))
    }
}

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

/// Anomalies in the boxes of the ground truth or of predictions.
#[derive(Debug, Default)]
pub struct BoxChecks {
    boxes: u64,
    outside: Tally,
    /// Boxes outside the image that would be inside if their last two numbers were right and bottom.
    inside_as_edges: u64,
    /// Boxes with all numbers from 0 to 1.
    fractions: u64,
    repeated: Tally,
}

/// A count, and the first image.
#[derive(Debug, Default)]
struct Tally {
    count: u64,
    example: String,
}

impl Tally {
    fn add(&mut self, count: u64, image: &str) {
        if self.count == 0 && count > 0 {
            image.clone_into(&mut self.example);
        }
        self.count += count;
    }
}

impl BoxChecks {
    /// `boxes`: with the class, and the score of a prediction. `size`: width and height of the image, if known.
    pub fn add(
        &mut self,
        image: &str,
        size: Option<[u32; 2]>,
        boxes: impl ExactSizeIterator<Item = (ExactBox, u32, f64)>,
    ) {
        let mut seen = HashSet::with_capacity(boxes.len());
        let (mut outside, mut repeated) = (0, 0);
        for (bounds, class, score) in boxes {
            self.boxes += 1;
            let numbers = <[f64; 4]>::from(bounds);
            self.fractions += u64::from(numbers.iter().all(|number| (0.0..=1.0).contains(number)));
            repeated += u64::from(!seen.insert((numbers.map(f64::to_bits), class, score.to_bits())));
            let ExactBox { left, top, width, height } = bounds;
            if let Some(size) = size
                && leaves_image([left, top, bounds.right(), bounds.bottom()], size)
            {
                outside += 1;
                let is_inside_as_edges = width >= left && height >= top && !leaves_image(numbers, size);
                self.inside_as_edges += u64::from(is_inside_as_edges);
            }
        }
        self.outside.add(outside, image);
        self.repeated.add(repeated, image);
    }

    /// Reasons to doubt the boxes, and notes.
    pub fn finish(self, side: &'static str) -> (Vec<Doubt>, Vec<String>) {
        let Self { boxes, outside, inside_as_edges, fractions, repeated } = self;
        let are_edges = inside_as_edges == outside.count;
        let are_fractions = fractions == boxes && boxes > 0;
        let is_large = |tally: &Tally, share: u64| tally.count * share > boxes;
        let fractions = are_fractions.then_some(Doubt::Fractions { side });
        let (many_outside, many_repeated) = (is_large(&outside, 20), is_large(&repeated, 100));
        let outside = (outside.count > 0).then_some(Doubt::Outside {
            side,
            count: outside.count,
            of: boxes,
            example: outside.example,
            are_edges,
        });
        let repeated = (repeated.count > 0).then_some(Doubt::Repeated {
            side,
            count: repeated.count,
            of: boxes,
            example: repeated.example,
        });
        let weighed = [(fractions, true), (outside, many_outside), (repeated, many_repeated)];
        let (mut doubts, mut notes) = (Vec::new(), Vec::new());
        for (found, is_doubt) in weighed.into_iter().filter_map(|(found, is_doubt)| Some((found?, is_doubt))) {
            if is_doubt {
                doubts.push(found);
            } else {
                notes.push(found.to_string());
            }
        }
        (doubts, notes)
    }
}
