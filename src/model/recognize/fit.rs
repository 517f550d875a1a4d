//! Detects card settings that predictions prove wrong.

use super::{Dimension, Outputs, Port};
use crate::domain::{
    Background, ClassValues, ClassificationOutput, Detection, ImageInput, LabelSet, Layout, ModelCard,
    OutputConvention, Prediction, PredictionContent,
};
use crate::model::score_columns;

/// Boxes with at least this score must be plausible, `0.0..=1.0`.
const SURE: f32 = 0.25;
/// The number of best boxes that are checked.
const LOOKED_AT: usize = 20;
/// Boxes with a shorter side than this are too small to be seen, in pixels of the image.
const TINY: f32 = 2.0;
/// How far scores may be outside `0.0..=1.0`, and their sum from 1.
const TOLERANCE: f64 = 1e-3;

/// A field of a card with a wrong value, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// The path of the field in the card, `input.layout`.
    pub field: &'static str,
    pub text: String,
}

/// What is wrong with a card and labels that gave `prediction` for the `outputs` of a call with one image.
pub fn misfits(card: &ModelCard, labels: &LabelSet, outputs: &Outputs, prediction: &Prediction) -> Vec<Misfit> {
    let mut found = Vec::new();
    let mut add = |field: &'static str, text: String| found.push(Misfit { field, text });
    match (&card.output, &prediction.content) {
        (OutputConvention::Classification(output), PredictionContent::Classes(_)) => {
            if let Some(text) = value_misfit(output, outputs) {
                add("output.classification.values", text);
            }
        }
        (OutputConvention::Detection(_), PredictionContent::Detections(boxes)) => {
            if let Some((field, text)) = box_misfit(boxes, prediction) {
                add(field, text.to_owned());
            }
        }
        _ => {}
    }
    if let Some(text) = label_misfit(card, labels, outputs, prediction) {
        add("labels", text);
    }
    found
}

/// What is wrong with a tensor of `shape` for `port`, the graph's image input.
pub fn input_misfit(input: &ImageInput, port: &Port, shape: &[usize]) -> Option<Misfit> {
    let channel = match input.layout {
        Layout::Nchw => 1,
        Layout::Nhwc => 3,
        Layout::Chw => 0,
        Layout::Hwc => 2,
    };
    let differs = |axis: usize| {
        let declared = port.dims.get(axis).and_then(Dimension::fixed);
        declared.is_some_and(|side| shape.get(axis) != Some(&(side as usize)))
    };
    let (field, advice) = if port.dims.is_empty() {
        return None;
    } else if port.dims.len() != shape.len() || differs(channel) {
        ("input.layout", "choose another layout or other channels")
    } else if shape.len() == 4 && differs(0) {
        ("input.batches", "choose as many images per call")
    } else if (0..shape.len()).any(differs) {
        ("input.resize", "choose a size that fits")
    } else {
        return None;
    };
    Some(Misfit { field, text: format!("The graph takes {port}, but these choices result in {shape:?}: {advice}") })
}

/// The number of classes that the card reads, without the background; `None` if the output shapes do not show it.
pub fn class_count(card: &ModelCard, outputs: &Outputs) -> Option<usize> {
    let (count, background) = match &card.output {
        OutputConvention::Classification(output) => {
            if output.values == ClassValues::ArgMax {
                return None;
            }
            let count = scores_of(output, outputs)?.len();
            (if output.values == ClassValues::SecondProbability { 2 } else { count }, output.background)
        }
        OutputConvention::Detection(output) => {
            if output.labels.is_some() {
                return None;
            }
            (score_columns(output, outputs)?, output.background)
        }
        OutputConvention::Embedding(_) => return None,
    };
    Some(count.saturating_sub(usize::from(background != Background::None)))
}

/// The scores of the first image.
fn scores_of(output: &ClassificationOutput, outputs: &Outputs) -> Option<Vec<f64>> {
    let tensor = output.name.as_ref().map_or_else(|| outputs.values().next(), |name| outputs.get(name))?;
    let mut values = tensor.to_f64();
    let images = tensor.shape.first().filter(|_| tensor.shape.len() > 1).copied().unwrap_or(1);
    values.truncate(values.len() / images.max(1));
    Some(values)
}

fn label_misfit(card: &ModelCard, labels: &LabelSet, outputs: &Outputs, prediction: &Prediction) -> Option<String> {
    let named = labels.max_id()? as usize + 1;
    let first = match &card.output {
        OutputConvention::Detection(output) => output.class_offset,
        OutputConvention::Classification(_) | OutputConvention::Embedding(_) => 0,
    };
    if let Some(count) = class_count(card, outputs) {
        let end = count as i64 + i64::from(first);
        return (end != named as i64).then(|| {
            format!(
                "The model has {count} classes, but the labels name {named}: choose other labels, or correct the \
                background class"
            )
        });
    }
    let highest = match &prediction.content {
        PredictionContent::Classes(classes) => classes.iter().map(|class| class.index).max(),
        PredictionContent::Detections(boxes) => boxes.iter().map(|found| found.class_id).max(),
    };
    let highest = highest.filter(|class| *class as usize >= named)?;
    Some(format!("The model returned class {highest}, but the labels end at {}: choose other labels", named - 1))
}

fn value_misfit(output: &ClassificationOutput, outputs: &Outputs) -> Option<String> {
    let scores = scores_of(output, outputs)?;
    let (min, max) =
        scores.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(min, max), &score| (min.min(score), max.max(score)));
    let is_8_bit = max > 1.0 && scores.iter().all(|score| score.fract() == 0.0 && (0.0..=255.0).contains(score));
    let are_shares = min >= -TOLERANCE && max <= 1.0 + TOLERANCE;
    let sum: f64 = scores.iter().sum();
    match output.values {
        ClassValues::SecondProbability if scores.len() > 1 => {
            Some(format!("There are {} scores per image: choose probabilities or logits", scores.len()))
        }
        ClassValues::Probabilities | ClassValues::SecondProbability if !are_shares && !is_8_bit => {
            Some(format!("The scores range from {min:.2} to {max:.2}, so they are not probabilities: choose logits"))
        }
        ClassValues::Logits | ClassValues::SigmoidLogits
            if are_shares && scores.len() > 1 && (sum - 1.0).abs() <= TOLERANCE =>
        {
            Some("The scores already sum to 1: choose probabilities".to_owned())
        }
        _ => None,
    }
}

/// The symptoms of a wrong format or space of boxes.
fn box_misfit(boxes: &[Detection], prediction: &Prediction) -> Option<(&'static str, &'static str)> {
    let sure: Vec<&Detection> = boxes.iter().take_while(|found| found.score >= SURE).take(LOOKED_AT).collect();
    let mostly = |is_so: &dyn Fn(&Detection) -> bool| {
        !sure.is_empty() && sure.iter().filter(|found| is_so(found)).count() * 2 > sure.len()
    };
    let (width, height) = (prediction.width as f32, prediction.height as f32);
    if mostly(&|found| found.bounds.x2 <= found.bounds.x1 || found.bounds.y2 <= found.bounds.y1) {
        Some(("output.detection.box_format", "Most boxes end before they begin: choose another box format"))
    } else if mostly(&|found| {
        let bounds = found.bounds;
        bounds.x2 < 0.0 || bounds.y2 < 0.0 || bounds.x1 > width || bounds.y1 > height
    }) {
        Some(("output.detection.box_space", "Most boxes are outside the image: choose another box space or format"))
    } else if mostly(&|found| (found.bounds.x2 - found.bounds.x1).max(found.bounds.y2 - found.bounds.y1) < TINY) {
        Some(("output.detection.box_space", "Most boxes are smaller than two pixels: choose another box space"))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{BoundingBox, ClassScore, DetectionOutput, ElementType, ResizeRule};
    use crate::model::Tensor;
    use crate::model::recognize::PortElement;

    fn classifier(values: ClassValues, background: Background) -> ModelCard {
        let output = ClassificationOutput { name: None, values, background };
        ModelCard::for_predictions("toy".to_owned(), "Toy".to_owned(), OutputConvention::Classification(output))
    }

    fn outputs(shape: &[usize], values: &[f32]) -> Outputs {
        let tensor = Tensor::f32(shape, values.to_vec());
        Outputs::from([("scores".to_owned(), tensor)])
    }

    fn labels(count: u32) -> LabelSet {
        (0..count).map(|id| (id, format!("class {id}"))).collect()
    }

    fn texts(card: &ModelCard, named: u32, outputs: &Outputs, content: PredictionContent) -> Vec<String> {
        let prediction = Prediction::new([100, 50], content);
        misfits(card, &labels(named), outputs, &prediction).into_iter().map(|misfit| misfit.text).collect()
    }

    #[test]
    fn label_count_must_match_the_model() {
        let scores = outputs(&[1, 3], &[1.0, 5.0, -2.0]);
        let class = || PredictionContent::Classes(vec![ClassScore { index: 1, label: String::new(), score: 0.9 }]);
        let card = classifier(ClassValues::Logits, Background::None);
        assert_eq!(texts(&card, 3, &scores, class()), Vec::<String>::new());
        assert_eq!(texts(&card, 0, &scores, class()), Vec::<String>::new());
        let wrong = texts(&card, 2, &scores, class());
        assert!(wrong[0].contains("3 classes") && wrong[0].contains("labels name 2"), "{wrong:?}");
        let card = classifier(ClassValues::Logits, Background::First);
        assert_eq!(texts(&card, 2, &scores, class()), Vec::<String>::new());
    }

    #[test]
    fn logits_and_probabilities_are_distinguished() {
        let class = || PredictionContent::Classes(Vec::new());
        let logits = outputs(&[1, 2], &[-3.0, 7.5]);
        let shares = outputs(&[1, 2], &[0.25, 0.75]);
        let bytes = outputs(&[1, 2], &[64.0, 191.0]);
        for (values, outputs, part) in [
            (ClassValues::Probabilities, &logits, Some("choose logits")),
            (ClassValues::Probabilities, &shares, None),
            (ClassValues::Probabilities, &bytes, None),
            (ClassValues::Logits, &shares, Some("choose probabilities")),
            (ClassValues::Logits, &logits, None),
        ] {
            let found = texts(&classifier(values, Background::None), 0, outputs, class());
            assert_eq!(
                found.first().is_some_and(|text| text.contains(part.unwrap_or("-"))),
                part.is_some(),
                "{found:?}"
            );
        }
    }

    #[test]
    fn mismatched_dimension_is_named() {
        let dims = |sides: &[u64]| {
            let side = |&side| if side == 0 { Dimension::Free(String::new()) } else { Dimension::Fixed(side) };
            sides.iter().map(side).collect()
        };
        for (declared, layout, shape, field) in [
            (&[1, 3, 64, 64][..], Layout::Nchw, &[1, 3, 64, 64][..], None),
            (&[0, 3, 0, 0], Layout::Nchw, &[2, 3, 48, 64], None),
            (&[], Layout::Nchw, &[1, 3, 48, 64], None),
            (&[1, 3, 64, 64], Layout::Nhwc, &[1, 64, 64, 3], Some("input.layout")),
            (&[3, 64, 64], Layout::Nchw, &[1, 3, 64, 64], Some("input.layout")),
            (&[1, 3, 64, 64], Layout::Nchw, &[1, 3, 64, 96], Some("input.resize")),
            (&[4, 3, 64, 64], Layout::Nchw, &[1, 3, 64, 64], Some("input.batches")),
        ] {
            let port = Port { name: "image".to_owned(), element: PortElement::Float32, dims: dims(declared) };
            let input = ImageInput::new(layout, ElementType::Float32, ResizeRule::Keep {});
            let found = input_misfit(&input, &port, shape);
            assert_eq!(found.as_ref().map(|misfit| misfit.field), field, "{declared:?} {shape:?}: {found:?}");
        }
    }

    #[test]
    fn wrong_box_format_and_space_are_noticed() {
        let output = DetectionOutput::separate("scores", "scores", "scores");
        let card = ModelCard::for_predictions("t".to_owned(), "T".to_owned(), OutputConvention::Detection(output));
        for (corners, part) in [
            ([10.0, 10.0, 40.0, 30.0], None),
            ([40.0, 30.0, 10.0, 10.0], Some("end before")),
            ([400.0, 10.0, 480.0, 30.0], Some("outside")),
            ([0.1, 0.1, 0.9, 0.8], Some("two pixels")),
        ] {
            let [x1, y1, x2, y2] = corners;
            let bounds = BoundingBox { x1, y1, x2, y2 };
            let found = Detection::new(bounds, 0, "", 0.9);
            let found = texts(&card, 0, &Outputs::new(), PredictionContent::Detections(vec![found]));
            assert_eq!(
                found.first().is_some_and(|text| text.contains(part.unwrap_or("-"))),
                part.is_some(),
                "{found:?}"
            );
        }
    }
}
