//! Predictions from other tools as a run.

use std::collections::HashSet;
use std::path::Path;

use super::collect::class_name;
use crate::annotations::matching::{
    ClassCorrections, ClassMatches, CorrectionsError, Folders, ImageKey, ImageMatches, classes_of,
};
use crate::domain::{
    AnnotatedBox, AnnotatedImage, AnnotatedImageId, Annotations, BoundingBox, ClassScore, Detection, LabelSet,
    ModelTask, Prediction, PredictionContent, TruthLabel,
};
use crate::local_file;

/// The classes of a run, and those of annotations mapped to them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunClasses {
    pub labels: LabelSet,
    /// Id and name of each class of the annotations; `None` if the run does not have the class.
    pub of_annotations: Vec<Option<(u32, String)>>,
    /// Corrected classes that the annotations do not have.
    pub unused_corrections: Vec<String>,
}

impl RunClasses {
    /// The classes in `labels`, or else those of the annotations: with their numbers if each has its own, otherwise
    /// counted from 0.
    ///
    /// # Errors
    /// A correction maps to a class that the run does not have.
    pub fn new(
        annotations: &Annotations,
        labels: Option<LabelSet>,
        corrections: &ClassCorrections,
    ) -> Result<Self, CorrectionsError> {
        let labels = labels.unwrap_or_else(|| own_labels(&annotations.classes));
        let targets: Vec<(u32, String)> = labels.iter().map(|(id, name)| (id, name.to_owned())).collect();
        let matches = ClassMatches::between(&annotations.classes, &classes_of(&labels), corrections)?;
        let target = |class: u32| targets.get(matches.index(class)? as usize).cloned();
        let of_annotations = (0..annotations.classes.len() as u32).map(target).collect();
        Ok(Self { labels, of_annotations, unused_corrections: matches.unused_corrections })
    }

    /// The prediction for an image of `size`. Boxes and classes that the run does not have are dropped.
    ///
    /// # Errors
    /// Why there is none, to follow the image name.
    pub fn prediction(
        &self,
        image: &AnnotatedImage,
        task: ModelTask,
        size @ [width, height]: [u32; 2],
    ) -> Result<Prediction, String> {
        if let Some([known_width, known_height]) = image.size.filter(|known| *known != size) {
            return Err(format!(
                "is {width} × {height}, but {known_width} × {known_height} in the predictions; import them for the \
                 images that were predicted"
            ));
        }
        let class = |class: u32| self.of_annotations.get(class as usize)?.clone();
        let content = match task {
            ModelTask::Classification => {
                let labels = image.labels.iter().filter_map(|label| {
                    let (index, name) = class(label.class)?;
                    Some(ClassScore { index, label: name, score: label.score? as f32 })
                });
                PredictionContent::Classes(labels.collect())
            }
            ModelTask::Detection => {
                let found = image.boxes.iter().filter_map(|found| {
                    let (class_id, label) = class(found.class)?;
                    Some(Detection {
                        bounds: bounds(found, size)?,
                        class_id,
                        label,
                        score: found.score? as f32,
                        runners_up: Vec::new(),
                    })
                });
                let mut found: Vec<Detection> = found.collect();
                found.sort_by(|one, other| other.score.total_cmp(&one.score));
                PredictionContent::Detections(found)
            }
        };
        Ok(Prediction { width, height, content, warnings: Vec::new() })
    }
}

/// Class corrections in a CSV file.
///
/// # Errors
/// What is wrong with the file, for the user.
pub fn read_class_map(path: &Path) -> Result<ClassCorrections, String> {
    let name = path.display();
    let bytes = local_file::read(path).map_err(|error| format!("Could not read {name}: {error}"))?;
    let text = String::from_utf8(bytes).map_err(|_| format!("{name} is not UTF-8; save it as UTF-8"))?;
    ClassCorrections::parse(&text).map_err(|error| format!("Could not use {name}: {error}"))
}

fn own_labels(classes: &[TruthLabel]) -> LabelSet {
    let number = |class: &TruthLabel| class.number.and_then(|number| u32::try_from(number).ok());
    let numbers: Option<Vec<u32>> = classes.iter().map(number).collect();
    let numbers = numbers.filter(|numbers| numbers.iter().collect::<HashSet<_>>().len() == numbers.len());
    let numbers = numbers.unwrap_or_else(|| (0..classes.len() as u32).collect());
    numbers.into_iter().zip(classes.iter().map(class_name)).collect()
}

fn bounds(found: &AnnotatedBox, size: [u32; 2]) -> Option<BoundingBox> {
    let bounds = BoundingBox::from(found.in_pixels(Some(size))?);
    bounds.is_finite().then_some(bounds)
}

/// Whether the predictions are boxes or classes of whole images. `None` if they are both.
pub fn task_of(annotations: &Annotations) -> Option<ModelTask> {
    let has_labels = annotations.images.iter().any(|image| !image.labels.is_empty());
    let has_boxes = annotations.images.iter().any(|image| !image.boxes.is_empty());
    match (has_labels, has_boxes) {
        (true, true) => None,
        (true, false) => Some(ModelTask::Classification),
        (false, _) => Some(ModelTask::Detection),
    }
}

/// Gives names and sizes from ground truth to images and classes that have only numbers, and adds its other images:
/// COCO results leave out images in which nothing was found.
pub fn name_by(
    annotations: &mut Annotations,
    truth_classes: &[TruthLabel],
    truth_images: &[AnnotatedImage],
) -> Result<Vec<String>, CorrectionsError> {
    let classes = ClassMatches::between(&annotations.classes, truth_classes, &ClassCorrections::default())?;
    for (class, row) in annotations.classes.iter_mut().zip(&classes.rows) {
        if let Some((index, _)) = row.matched {
            *class = truth_classes[index as usize].clone();
        }
    }
    let keys = |images: &[AnnotatedImage]| {
        images.iter().map(|image| (image.id.clone(), image.name.clone())).collect::<Vec<_>>()
    };
    let (left, right) = (keys(&annotations.images), keys(truth_images));
    let [left, right] = [&left, &right].map(|side| side.iter().map(key).collect::<Vec<_>>());
    let matches = ImageMatches::between(&left, &right, Folders::Agree);
    for (index, image) in annotations.images.iter_mut().enumerate() {
        if let Some(known) = matches.index(index) {
            let known = &truth_images[known as usize];
            image.name.clone_from(&known.name);
            image.size = image.size.or(known.size);
        }
    }
    for (index, _) in &matches.right_unmatched {
        let AnnotatedImage { id, name, size, .. } = truth_images[*index as usize].clone();
        annotations.images.push(AnnotatedImage { id, name, size, ..AnnotatedImage::default() });
    }
    Ok(classes.unmatched().map(ToString::to_string).collect())
}

fn key((id, name): &(Option<AnnotatedImageId>, String)) -> ImageKey<'_> {
    ImageKey { id: id.as_ref(), name, original: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{BoxRole, BoxUnit};

    fn image(name: &str, bounds: [f64; 4], unit: BoxUnit) -> AnnotatedImage {
        let found =
            AnnotatedBox { bounds: bounds.into(), unit, class: 0, score: Some(0.5), area: None, role: BoxRole::Object };
        let better = AnnotatedBox { class: 1, score: Some(0.75), ..found };
        AnnotatedImage { name: name.to_owned(), boxes: vec![found, better], ..AnnotatedImage::default() }
    }

    fn class(number: Option<i64>, name: Option<&str>) -> TruthLabel {
        TruthLabel { number, name: name.map(str::to_owned) }
    }

    #[test]
    fn boxes_are_in_pixels_sorted_by_score() {
        let annotations = Annotations {
            classes: vec![class(Some(17), Some("cat")), class(Some(18), Some("dog"))],
            ..Annotations::default()
        };
        let classes = RunClasses::new(&annotations, None, &ClassCorrections::default()).unwrap();
        assert_eq!(classes.labels.get(17), Some("cat"));
        let image = image("a.jpg", [0.25, 0.5, 0.5, 0.25], BoxUnit::Fractions);
        let prediction = classes.prediction(&image, ModelTask::Detection, [100, 80]).unwrap();
        let first = &prediction.detections()[0];
        assert_eq!((first.class_id, first.label.as_str(), first.score), (18, "dog", 0.75));
        assert_eq!(first.bounds, BoundingBox::new(25.0, 40.0, 75.0, 60.0));
        let other = AnnotatedImage { size: Some([10, 10]), ..image };
        assert!(classes.prediction(&other, ModelTask::Detection, [100, 80]).unwrap_err().contains("10 × 10"));
    }

    #[test]
    fn classes_unknown_to_the_model_are_skipped() {
        let annotations =
            Annotations { classes: vec![class(None, Some("Cat")), class(None, Some("cow"))], ..Annotations::default() };
        let labels = LabelSet::parse("dog\ncat").unwrap();
        let classes = RunClasses::new(&annotations, Some(labels), &ClassCorrections::default()).unwrap();
        assert_eq!(classes.of_annotations, [Some((1, "cat".to_owned())), None]);
        let image = image("a.jpg", [1.0, 2.0, 3.0, 4.0], BoxUnit::Pixels);
        let prediction = classes.prediction(&image, ModelTask::Detection, [100, 80]).unwrap();
        assert_eq!(prediction.detections().len(), 1);
    }

    #[test]
    fn results_use_ground_truth_names() {
        let id = |number: i64| Some(AnnotatedImageId::Number(number));
        let mut results = Annotations {
            classes: vec![class(Some(3), None), class(Some(1), None)],
            images: vec![AnnotatedImage { id: id(7), ..image("", [1.0; 4], BoxUnit::Pixels) }],
            ..Annotations::default()
        };
        let listed = |number: i64, name: &str| AnnotatedImage {
            id: id(number),
            name: name.to_owned(),
            size: Some([4, 4]),
            ..AnnotatedImage::default()
        };
        let truth = Annotations {
            classes: vec![class(Some(1), Some("person")), class(Some(3), Some("car"))],
            images: vec![listed(5, "five.jpg"), listed(7, "seven.jpg")],
            ..Annotations::default()
        };
        name_by(&mut results, &truth.classes, &truth.images).unwrap();
        let names: Vec<&str> = results.images.iter().map(|image| image.name.as_str()).collect();
        assert_eq!(names, ["seven.jpg", "five.jpg"]);
        assert_eq!(results.classes[0].name.as_deref(), Some("car"));
        assert!(results.images[1].boxes.is_empty());
    }
}
