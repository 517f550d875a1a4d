//! From a model's named outputs to predictions.

mod detections;
mod grid;

pub use detections::{candidates_of_boxes, raw_candidates, score_columns};

use std::collections::BTreeMap;

use super::{PredictError, Prepared, Tensor};
use crate::domain::{
    Background, ClassScore, ClassValues, ClassificationOutput, KeepRule, LabelSet, OutputConvention, Prediction,
    PredictionContent,
};

/// One image of a model call.
#[derive(Debug, Clone, Copy)]
struct Call {
    /// The number of images in the call, including padding.
    images: usize,
    index: usize,
}

/// Reads the outputs of a call with `images` images, of which the first `batch` are real: one prediction for each of
/// those, in order.
///
/// # Errors
/// [`PredictError::Failed`] if an output is missing or has another shape than the card states, or if scores are NaN: a
/// wrong prediction is worse than none.
pub fn postprocess(
    convention: &OutputConvention,
    labels: &LabelSet,
    keep: KeepRule,
    outputs: &BTreeMap<String, Tensor>,
    batch: &[Prepared],
    images: usize,
) -> Result<Vec<Prediction>, PredictError> {
    if images == 0 || batch.len() > images {
        return Err(failed(format!("{} images do not match a call with {images}", batch.len())));
    }
    let predictions = match convention {
        OutputConvention::Classification(output) => classify(output, labels, keep.top_k, outputs, images)?,
        OutputConvention::Detection(output) => {
            let detections = batch.iter().enumerate().map(|(index, prepared)| {
                let call = Call { images, index };
                detections::detect(output, labels, keep.min_score, outputs, call, prepared)
            });
            detections.map(|detections| detections.map(PredictionContent::Detections)).collect::<Result<_, _>>()?
        }
        OutputConvention::Embedding(_) => vec![PredictionContent::Classes(Vec::new()); batch.len()],
    };
    let predictions = predictions.into_iter().zip(batch).map(|(prediction, prepared)| {
        let [width, height] = prepared.image_size;
        Prediction::new([width, height], prediction)
    });
    Ok(predictions.collect())
}

fn failed(message: impl Into<String>) -> PredictError {
    PredictError::Failed(message.into())
}

fn output<'o>(outputs: &'o BTreeMap<String, Tensor>, name: &str) -> Result<&'o Tensor, PredictError> {
    outputs.get(name).ok_or_else(|| {
        let mut names: Vec<&str> = outputs.keys().map(String::as_str).collect();
        names.sort_unstable();
        failed(format!("the model has no output “{name}”; it has {}; correct the model card", names.join(", ")))
    })
}

fn classify(
    convention: &ClassificationOutput,
    labels: &LabelSet,
    top_k: usize,
    outputs: &BTreeMap<String, Tensor>,
    count: usize,
) -> Result<Vec<PredictionContent>, PredictError> {
    let tensor = match &convention.name {
        Some(name) => output(outputs, name)?,
        None => outputs.values().next().ok_or_else(|| failed("the model returned no output"))?,
    };
    let values = tensor.to_f64();
    if values.is_empty() || !values.len().is_multiple_of(count) {
        return Err(failed(format!("the output of shape {:?} does not match {count} images", tensor.shape)));
    }
    if values.iter().any(|value| !value.is_finite()) {
        return Err(failed("the model's scores are not numbers (NaN or infinite)"));
    }
    let of_image = values.chunks_exact(values.len() / count);
    let ranked = of_image.map(|values| match convention.values {
        ClassValues::ArgMax => rank_arg_max(values),
        ClassValues::Logits => Ok(softmax(values)),
        ClassValues::SigmoidLogits => Ok(values.iter().copied().map(sigmoid).collect()),
        ClassValues::Probabilities => Ok(probabilities(tensor, values)),
        ClassValues::SecondProbability => both_probabilities(&probabilities(tensor, values)),
    });
    ranked
        .map(|scores| {
            let classes = rank_classes(&scores?, convention.background, top_k).into_iter();
            let classes = classes.map(|(index, score)| ClassScore { index, label: labels.name(index), score });
            Ok(PredictionContent::Classes(classes.collect()))
        })
        .collect()
}

/// A score of 1 for the class that the model returns.
fn rank_arg_max(values: &[f64]) -> Result<Vec<f64>, PredictError> {
    /// Far above any real model, and far below what would fill the memory.
    const MAX_CLASSES: f64 = 1e6;
    match values {
        [class] if (0.0..MAX_CLASSES).contains(class) => {
            let mut scores = vec![0.0; *class as usize + 1];
            scores[*class as usize] = 1.0;
            Ok(scores)
        }
        _ => Err(failed(format!("the model must return one class per image, it returned {values:?}"))),
    }
}

/// The probabilities of two classes, from the probability of the second.
fn both_probabilities(values: &[f64]) -> Result<Vec<f64>, PredictError> {
    match values {
        [second] if (0.0..=1.0).contains(second) => Ok(vec![1.0 - second, *second]),
        _ => Err(failed(format!("the model must return one probability per image, it returned {values:?}"))),
    }
}

/// Probabilities that add up to 1, one per logit.
pub fn softmax(logits: &[f64]) -> Vec<f64> {
    let max = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let exponentials: Vec<f64> = logits.iter().map(|logit| (logit - max).exp()).collect();
    let sum: f64 = exponentials.iter().sum();
    exponentials.into_iter().map(|exponential| exponential / sum).collect()
}

/// `1 / (1 + e^-x)`
fn sigmoid(number: f64) -> f64 {
    1.0 / (1.0 + (-number).exp())
}

fn probabilities(tensor: &Tensor, values: &[f64]) -> Vec<f64> {
    let full = if matches!(tensor.data, super::TensorData::U8(_)) { 255.0 } else { 1.0 };
    values.iter().map(|value| value / full).collect()
}

/// The best `top_k` classes with their scores, best first, without the background: if it is the first, class 1 becomes
/// class 0. Of equal scores, the lower class comes first.
pub fn rank_classes(scores: &[f64], background: Background, top_k: usize) -> Vec<(u32, f32)> {
    let (first, end) = match background {
        Background::None => (0, scores.len()),
        Background::First => (1, scores.len()),
        Background::Last => (0, scores.len().saturating_sub(1)),
    };
    let mut order: Vec<usize> = (first..end).collect();
    let by_score = |left: &usize, right: &usize| scores[*right].total_cmp(&scores[*left]).then(left.cmp(right));
    if top_k < order.len() {
        order.select_nth_unstable_by(top_k, by_score);
        order.truncate(top_k);
    }
    order.sort_by(by_score);
    order.into_iter().map(|class| ((class - first) as u32, scores[class] as f32)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{AxisTransform, BoxFormat, BoxSpace, DetectionOutput};

    fn prepared() -> Prepared {
        Prepared {
            tensor: Tensor::u8([1, 1, 1, 3], vec![0; 3]),
            auxiliary: Vec::new(),
            image_from_model: AxisTransform { scale: [2.0, 2.0], offset: [0.0, 0.0] },
            canvas_size: [100, 50],
            image_size: [200, 100],
        }
    }

    fn classifier(values: ClassValues, background: Background) -> OutputConvention {
        OutputConvention::Classification(ClassificationOutput { name: None, values, background })
    }

    fn run(
        convention: &OutputConvention,
        outputs: impl IntoIterator<Item = (&'static str, Tensor)>,
    ) -> Result<Prediction, PredictError> {
        let outputs = outputs.into_iter().map(|(name, tensor)| (name.to_owned(), tensor)).collect();
        let labels = LabelSet::parse("zero\none\ntwo").unwrap();
        postprocess(convention, &labels, KeepRule::default(), &outputs, &[prepared()], 1)
            .map(|mut predictions| predictions.remove(0))
    }

    fn detector() -> DetectionOutput {
        DetectionOutput::separate("b", "l", "s")
    }

    fn tops(prediction: &Prediction) -> Vec<(u32, &str)> {
        prediction.classes().iter().map(|class| (class.index, class.label.as_str())).collect()
    }

    #[test]
    fn logits_get_softmax_and_are_sorted() {
        let outputs = [("y", Tensor::f32([1, 3], vec![0.0, 2.0, 1.0]))];
        let prediction = run(&classifier(ClassValues::Logits, Background::None), outputs).unwrap();
        assert_eq!(tops(&prediction), [(1, "one"), (2, "two"), (0, "zero")]);
        assert!((prediction.classes()[0].score - 0.665_240_9).abs() < 1e-6);
    }

    #[test]
    fn background_is_dropped_and_ids_shifted() {
        let outputs = [("y", Tensor::u8([1, 4], vec![200, 0, 51, 255]))];
        let prediction = run(&classifier(ClassValues::Probabilities, Background::First), outputs).unwrap();
        assert_eq!(tops(&prediction), [(2, "two"), (1, "one"), (0, "zero")]);
        assert!((prediction.classes()[1].score - 0.2).abs() < 1e-6);
    }

    #[test]
    fn arg_max_is_one_class_with_score_one() {
        let outputs = [("y", Tensor::i64([1], vec![2]))];
        let prediction = run(&classifier(ClassValues::ArgMax, Background::First), outputs).unwrap();
        assert_eq!(prediction.classes()[0].label, "one");
        let negative = [("y", Tensor::i64([1], vec![-1]))];
        assert!(run(&classifier(ClassValues::ArgMax, Background::None), negative).is_err());
    }

    #[test]
    fn single_probability_covers_two_classes() {
        let outputs = |value: f32| [("y", Tensor::f32([1, 1], vec![value]))];
        let convention = classifier(ClassValues::SecondProbability, Background::None);
        let prediction = run(&convention, outputs(0.25)).unwrap();
        assert_eq!(tops(&prediction), [(0, "zero"), (1, "one")]);
        assert_eq!(prediction.classes()[0].score, 0.75);
        assert!(run(&convention, outputs(1.5)).is_err());
    }

    #[test]
    fn nan_scores_are_an_error() {
        let outputs = [("y", Tensor::f32([1, 2], vec![f32::NAN, 1.0]))];
        let error = run(&classifier(ClassValues::Logits, Background::None), outputs).unwrap_err();
        assert!(error.to_string().contains("not numbers"), "{error}");
    }

    #[test]
    fn normalized_yxyx_boxes_become_pixels_up_to_the_count() {
        let convention = DetectionOutput {
            count: Some("n".to_owned()),
            box_format: BoxFormat::Yxyx,
            box_space: BoxSpace::Normalized,
            class_offset: -1,
            ..detector()
        };
        let outputs = [
            ("b", Tensor::f32([1, 2, 4], vec![0.1, 0.2, 0.5, 0.6, 0., 0., 1., 1.])),
            ("l", Tensor::f32([1, 2], vec![2.0, 1.0])),
            ("s", Tensor::f32([1, 2], vec![0.9, 0.8])),
            ("n", Tensor::f32([1], vec![1.0])),
        ];
        let prediction = run(&OutputConvention::Detection(convention), outputs).unwrap();
        let [detection] = prediction.detections() else { panic!("{prediction:?}") };
        assert_eq!(detection.label, "one");
        let edges: [f32; 4] = detection.bounds.into();
        for (got, expected) in edges.iter().zip([40.0, 10.0, 120.0, 50.0]) {
            assert!((got - expected).abs() < 1e-4, "{edges:?}");
        }
    }

    #[test]
    fn boxes_below_the_cutoff_are_dropped() {
        let outputs = [
            ("b", Tensor::f32([3, 4], vec![0.0; 12])),
            ("l", Tensor::i64([3], vec![0, 1, 2])),
            ("s", Tensor::f32([3], vec![0.3, 0.001, 0.7])),
        ];
        let prediction = run(&OutputConvention::Detection(detector()), outputs).unwrap();
        let labels: Vec<&str> = prediction.detections().iter().map(|box_| box_.label.as_str()).collect();
        assert_eq!(labels, ["two", "zero"]);
    }

    #[test]
    fn inconsistent_and_missing_outputs_are_named() {
        let misfit = [
            ("b", Tensor::f32([2, 4], vec![0.0; 8])),
            ("l", Tensor::i64([3], vec![0, 1, 2])),
            ("s", Tensor::f32([3], vec![0.5; 3])),
        ];
        assert!(run(&OutputConvention::Detection(detector()), misfit).is_err());
        let missing = [("other", Tensor::f32([1], vec![0.0]))];
        let error = run(&OutputConvention::Detection(detector()), missing).unwrap_err();
        assert!(error.to_string().contains("it has other"), "{error}");
    }
}
