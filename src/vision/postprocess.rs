//! From a model's named outputs to predictions.

use std::collections::BTreeMap;

use super::{PredictError, Prepared, Tensor};
use crate::domain::{
    BoundingBox, BoxFormat, BoxSpace, ClassScore, ClassValues, ClassificationOutput, Detection, DetectionOutput,
    KeepRule, LabelSet, OutputConvention, Prediction, PredictionContent,
};

/// Reads the outputs of one call, which had `batch` as its images: one prediction for each, in order.
///
/// # Errors
/// [`PredictError::Failed`] if an output is missing or has another shape than the card says, or if scores are
/// no numbers: a wrong prediction is worse than none.
pub fn postprocess(
    convention: &OutputConvention,
    labels: &LabelSet,
    keep: KeepRule,
    outputs: &BTreeMap<String, Tensor>,
    batch: &[Prepared],
) -> Result<Vec<Prediction>, PredictError> {
    let predictions = match convention {
        OutputConvention::Classification(output) => classify(output, labels, keep.top_k, outputs, batch.len())?,
        OutputConvention::Detection(output) => match batch {
            [prepared] => vec![detect(output, labels, keep.min_score, outputs, prepared)?],
            _ => return Err(failed("detectors take one image per call")),
        },
    };
    let predictions = predictions.into_iter().zip(batch).map(|(prediction, prepared)| {
        let [width, height] = prepared.image_size;
        Prediction { width, height, content: prediction, warnings: Vec::new() }
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
        return Err(failed(format!("the output of shape {:?} does not fit {count} images", tensor.shape)));
    }
    if values.iter().any(|value| !value.is_finite()) {
        return Err(failed("the model's scores are not numbers (NaN or infinite)"));
    }
    let of_image = values.chunks_exact(values.len() / count);
    let ranked = of_image.map(|values| match convention.values {
        ClassValues::ArgMax => rank_arg_max(values),
        ClassValues::Logits => Ok(softmax(values)),
        ClassValues::Probabilities => Ok(probabilities(tensor, values)),
    });
    let background = usize::from(convention.background);
    ranked
        .map(|scores| {
            let classes = rank_classes(&scores?, background, top_k).into_iter();
            let classes = classes.map(|(index, score)| ClassScore { index, label: labels.name(index), score });
            Ok(PredictionContent::Classes(classes.collect()))
        })
        .collect()
}

/// Score 1 for the one class that the model names.
fn rank_arg_max(values: &[f64]) -> Result<Vec<f64>, PredictError> {
    /// Far above any real model, far below what would fill the memory.
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

/// Probabilities that add up to 1, one for each of `logits`.
pub fn softmax(logits: &[f64]) -> Vec<f64> {
    let max = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let exponentials: Vec<f64> = logits.iter().map(|logit| (logit - max).exp()).collect();
    let sum: f64 = exponentials.iter().sum();
    exponentials.into_iter().map(|exponential| exponential / sum).collect()
}

fn probabilities(tensor: &Tensor, values: &[f64]) -> Vec<f64> {
    let full = if matches!(tensor.data, super::TensorData::U8(_)) { 255.0 } else { 1.0 };
    values.iter().map(|value| value / full).collect()
}

/// The best `top_k` classes with their scores, best first: the first `background` left out and subtracted; of equal
/// scores the lower class comes first.
pub fn rank_classes(scores: &[f64], background: usize, top_k: usize) -> Vec<(u32, f32)> {
    let mut order: Vec<usize> = (background..scores.len()).collect();
    let by_score = |left: &usize, right: &usize| scores[*right].total_cmp(&scores[*left]).then(left.cmp(right));
    if top_k < order.len() {
        order.select_nth_unstable_by(top_k, by_score);
        order.truncate(top_k);
    }
    order.sort_by(by_score);
    order.into_iter().map(|class| ((class - background) as u32, scores[class] as f32)).collect()
}

fn detect(
    convention: &DetectionOutput,
    labels: &LabelSet,
    min_score: f32,
    outputs: &BTreeMap<String, Tensor>,
    prepared: &Prepared,
) -> Result<PredictionContent, PredictError> {
    let boxes = output(outputs, &convention.boxes)?.to_f64();
    let classes = output(outputs, &convention.labels)?.to_f64();
    let scores = output(outputs, &convention.scores)?.to_f64();
    let given = scores.len();
    if boxes.len() != given * 4 || classes.len() != given {
        return Err(failed(format!(
            "the model's outputs do not fit together: {} numbers for boxes, {} classes and {given} scores",
            boxes.len(),
            classes.len()
        )));
    }
    let count = match &convention.count {
        Some(name) => box_count(output(outputs, name)?, given)?,
        None => given,
    };
    let mut detections = Vec::with_capacity(count);
    for index in 0..count {
        let score = scores[index] as f32;
        let bounds = read_box(convention, &boxes[index * 4..index * 4 + 4], prepared);
        if !score.is_finite() || !bounds.is_finite() {
            return Err(failed("the model's boxes or scores are not numbers (NaN or infinite)"));
        }
        if score < min_score {
            continue;
        }
        let class_id = class_id(classes[index], convention.class_offset)?;
        detections.push(Detection { bounds, class_id, label: labels.name(class_id), score });
    }
    // Stable: of equal scores the graph's own order stays.
    detections.sort_by(|left, right| right.score.total_cmp(&left.score));
    Ok(PredictionContent::Detections(detections))
}

fn box_count(tensor: &Tensor, given: usize) -> Result<usize, PredictError> {
    match tensor.to_f64()[..] {
        [count] if count >= 0.0 && count <= given as f64 => Ok(count as usize),
        ref other => Err(failed(format!("the model returned {given} boxes but a count of {other:?}"))),
    }
}

fn class_id(class: f64, offset: i32) -> Result<u32, PredictError> {
    let id = class + f64::from(offset);
    if id >= 0.0 && id <= f64::from(u32::MAX) && id.fract() == 0.0 {
        Ok(id as u32)
    } else {
        Err(failed(format!("the model returned class {class}, which is invalid with an offset of {offset}")))
    }
}

/// Brings a box of the graph to pixels of the upright image.
fn read_box(convention: &DetectionOutput, values: &[f64], prepared: &Prepared) -> BoundingBox {
    let [x1, y1, x2, y2] = match convention.box_format {
        BoxFormat::Xyxy => [values[0], values[1], values[2], values[3]],
        BoxFormat::Yxyx => [values[1], values[0], values[3], values[2]],
    };
    let [width, height] = match convention.box_space {
        BoxSpace::ModelPixels => [1.0, 1.0],
        BoxSpace::Normalised => prepared.canvas_size.map(f64::from),
    };
    let in_model =
        BoundingBox::new((x1 * width) as f32, (y1 * height) as f32, (x2 * width) as f32, (y2 * height) as f32);
    prepared.image_from_model.apply(in_model)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::AxisTransform;

    fn prepared() -> Prepared {
        Prepared {
            tensor: Tensor::u8([1, 1, 1, 3], vec![0; 3]),
            image_from_model: AxisTransform { scale: [2.0, 2.0], offset: [0.0, 0.0] },
            canvas_size: [100, 50],
            image_size: [200, 100],
        }
    }

    fn classifier(values: ClassValues, background: bool) -> OutputConvention {
        OutputConvention::Classification(ClassificationOutput { name: None, values, background })
    }

    fn run(
        convention: &OutputConvention,
        outputs: impl IntoIterator<Item = (&'static str, Tensor)>,
    ) -> Result<Prediction, PredictError> {
        let outputs = outputs.into_iter().map(|(name, tensor)| (name.to_owned(), tensor)).collect();
        let labels = LabelSet::parse("zero\none\ntwo").unwrap();
        postprocess(convention, &labels, KeepRule::default(), &outputs, &[prepared()])
            .map(|mut predictions| predictions.remove(0))
    }

    fn detector() -> DetectionOutput {
        DetectionOutput {
            boxes: "b".to_owned(),
            labels: "l".to_owned(),
            scores: "s".to_owned(),
            count: None,
            box_format: BoxFormat::Xyxy,
            box_space: BoxSpace::ModelPixels,
            class_offset: 0,
            min_score_in_graph: 0.0,
            nms_iou_in_graph: None,
            max_boxes_in_graph: None,
        }
    }

    fn tops(prediction: &Prediction) -> Vec<(u32, &str)> {
        prediction.classes().iter().map(|class| (class.index, class.label.as_str())).collect()
    }

    #[test]
    fn logits_get_a_softmax_and_come_best_first() {
        let outputs = [("y", Tensor::f32([1, 3], vec![0.0, 2.0, 1.0]))];
        let prediction = run(&classifier(ClassValues::Logits, false), outputs).unwrap();
        assert_eq!(tops(&prediction), [(1, "one"), (2, "two"), (0, "zero")]);
        assert!((prediction.classes()[0].score - 0.665_240_9).abs() < 1e-6);
    }

    #[test]
    fn background_is_left_out_and_subtracted() {
        let outputs = [("y", Tensor::u8([1, 4], vec![200, 0, 51, 255]))];
        let prediction = run(&classifier(ClassValues::Probabilities, true), outputs).unwrap();
        assert_eq!(tops(&prediction), [(2, "two"), (1, "one"), (0, "zero")]);
        assert!((prediction.classes()[1].score - 0.2).abs() < 1e-6);
    }

    #[test]
    fn an_arg_max_becomes_one_class_with_score_one() {
        let outputs = [("y", Tensor::i64([1], vec![2]))];
        let prediction = run(&classifier(ClassValues::ArgMax, true), outputs).unwrap();
        assert_eq!(prediction.classes()[0].label, "one");
        let negative = [("y", Tensor::i64([1], vec![-1]))];
        assert!(run(&classifier(ClassValues::ArgMax, false), negative).is_err());
    }

    #[test]
    fn scores_that_are_no_numbers_are_an_error_not_a_prediction() {
        let outputs = [("y", Tensor::f32([1, 2], vec![f32::NAN, 1.0]))];
        let error = run(&classifier(ClassValues::Logits, false), outputs).unwrap_err();
        assert!(error.to_string().contains("not numbers"), "{error}");
    }

    #[test]
    fn normalised_yxyx_boxes_come_back_in_image_pixels_and_only_as_many_as_counted() {
        let convention = DetectionOutput {
            count: Some("n".to_owned()),
            box_format: BoxFormat::Yxyx,
            box_space: BoxSpace::Normalised,
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
    fn boxes_below_the_cut_off_are_dropped_and_the_rest_sorted() {
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
    fn outputs_that_do_not_fit_together_or_are_missing_are_named() {
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
