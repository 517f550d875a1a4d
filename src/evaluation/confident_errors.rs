//! The errors with the highest scores, which no threshold removes.

use super::detection::FoundOutcomes;
use super::ground_truth::ImageSides;
use crate::domain::ExactBox;
use crate::review::OutcomeKind;

/// Maximum number of images.
const LEN: usize = 24;

/// An image with its most confident error.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfidentError {
    /// The path relative to the source, with `/`.
    pub image: String,
    pub kind: OutcomeKind,
    /// `0.0..=1.0`.
    pub score: f64,
    pub predicted: ErrorSide,
    /// The object that the box overlaps, or the class of the whole image; `None` if there is nothing.
    pub truth: Option<ErrorSide>,
}

/// A box, or the class of a whole image.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ErrorSide {
    /// Index into the classes of the evaluation, or [`OTHER_CLASS`](super::OTHER_CLASS).
    pub class: u32,
    /// `None` for the whole image.
    pub bounds: Option<ExactBox>,
}

/// Collects images one by one, and keeps those with the highest scores.
#[derive(Debug, Default)]
pub struct ConfidentErrors {
    /// The highest score first; ties in order of arrival.
    kept: Vec<ConfidentError>,
}

impl ConfidentErrors {
    /// Considers the boxes of an image, with the outcome of each. Boxes below the minimum score of their class are not
    /// visible, and so no errors.
    pub fn add_boxes(&mut self, image: &ImageSides, found: &FoundOutcomes, thresholds: &[f64]) {
        let objects = &image.objects;
        let is_shown = |class: u32, score: f64| thresholds.get(class as usize).is_some_and(|least| score >= *least);
        let boxes = objects.detections.iter().zip(found.outcomes()).enumerate();
        let wrong = boxes.filter(|(_, (found, outcome))| outcome.kind.is_wrong() && is_shown(found.class, found.score));
        // The first one on a tie.
        let worst = wrong.reduce(|worst, other| if other.1.0.score > worst.1.0.score { other } else { worst });
        let Some((index, (wrong, outcome))) = worst else {
            return;
        };
        self.offer(wrong.score, || {
            let truth = found.nearest(objects, index).filter(|_| outcome.kind != OutcomeKind::Background);
            let truth = truth.and_then(|(object, _)| objects.truths.get(object as usize));
            ConfidentError {
                image: image.name.clone(),
                kind: outcome.kind,
                score: wrong.score,
                predicted: ErrorSide { class: wrong.class, bounds: Some(wrong.bounds) },
                truth: truth.map(|truth| ErrorSide { class: truth.class, bounds: Some(truth.bounds) }),
            }
        });
    }

    /// Considers the top class of an image of class `truth`.
    pub fn add_class(&mut self, image: &ImageSides, truth: u32) {
        let Some(&(class, score)) = image.classes.first().filter(|(class, _)| *class != truth) else {
            return;
        };
        self.offer(score, || ConfidentError {
            image: image.name.clone(),
            kind: OutcomeKind::Class,
            score,
            predicted: ErrorSide { class, bounds: None },
            truth: Some(ErrorSide { class: truth, bounds: None }),
        });
    }

    /// The highest score first.
    pub fn finish(self) -> Vec<ConfidentError> {
        self.kept
    }

    fn offer(&mut self, score: f64, error: impl FnOnce() -> ConfidentError) {
        let place = self.kept.partition_point(|kept| kept.score >= score);
        if place < LEN {
            self.kept.insert(place, error());
            self.kept.truncate(LEN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::detection::{DetectionEvaluation, EvaluatedClass};
    use super::super::objects::{DetectedObject, ImageObjects, TrueObject};
    use super::*;
    use crate::domain::BoxRole;

    fn image(name: &str, found: &[(u32, f64, f64)]) -> ImageSides {
        let bounds = [10.0, 0.0, 10.0, 10.0].into();
        let truth = TrueObject { bounds, class: 0, area: 100.0, role: BoxRole::Object };
        let detections =
            found.iter().map(|&(class, x, score)| DetectedObject { bounds: [x, 0.0, 10.0, 10.0].into(), class, score });
        let objects = ImageObjects { truths: vec![truth], detections: detections.collect() };
        ImageSides { name: name.to_owned(), objects, ..ImageSides::default() }
    }

    fn errors(images: &[ImageSides]) -> Vec<ConfidentError> {
        let class = |name: &str| EvaluatedClass { id: None, name: name.to_owned() };
        let thresholds = vec![0.5, 0.8];
        let mut evaluation = DetectionEvaluation::new(vec![class("cat"), class("dog")], thresholds.clone());
        let mut errors = ConfidentErrors::default();
        for image in images {
            let found = evaluation.add(&image.objects);
            errors.add_boxes(image, &found, &thresholds);
        }
        errors.finish()
    }

    #[test]
    fn most_confident_error_above_the_class_minimum() {
        let errors = errors(&[
            image("right", &[(0, 10.0, 0.9)]),
            image("hidden", &[(1, 10.0, 0.79), (0, 50.0, 0.49)]),
            image("two", &[(0, 50.0, 0.6), (1, 10.0, 0.95), (0, 10.0, 0.97)]),
            image("one", &[(0, 10.0, 0.9), (0, 80.0, 0.7)]),
        ]);
        let said: Vec<(&str, OutcomeKind, f64)> =
            errors.iter().map(|error| (error.image.as_str(), error.kind, error.score)).collect();
        assert_eq!(said, [("two", OutcomeKind::Class, 0.95), ("one", OutcomeKind::Background, 0.7)]);
        let truth = ErrorSide { class: 0, bounds: Some([10.0, 0.0, 10.0, 10.0].into()) };
        assert_eq!((errors[0].truth, errors[1].truth), (Some(truth), None));
    }

    #[test]
    fn most_confident_errors_are_kept() {
        let images: Vec<ImageSides> = (0..100)
            .map(|number| image(&number.to_string(), &[(0, 50.0, 0.5 + f64::from(number % 10) / 100.0)]))
            .collect();
        let kept: Vec<String> = errors(&images).into_iter().map(|error| error.image).collect();
        assert_eq!(kept.len(), LEN);
        assert_eq!(kept[..3], ["9", "19", "29"]);
        assert_eq!(kept[20..], ["7", "17", "27", "37"]);
    }
}
