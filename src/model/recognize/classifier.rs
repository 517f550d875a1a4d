//! Outputs of classifiers: one row of scores per image, or the number of the best class.

use super::encoder::{self, Reason};
use super::noted::{Exporter, LABEL_FILE, Noted, NotedTask, Purpose, label_count, misfit};
use super::probe::{Prober, Same};
use super::signature::{Dimension, Port};
use super::unsupported::{self, Features, nearest};
use super::usual::Usual;
use super::{Basis, Findings, OutputPrediction, RecognitionRequest, RecognizeError, Refusal};
use crate::domain::{Background, ClassValues, ClassificationOutput, LabelSet, Layout, OutputConvention};
use crate::model::{Tensor, TensorData};

/// How far the sum of probabilities may be from 1.
const SUM_TOLERANCE: f64 = 1e-3;
/// The possible sums of 8-bit probabilities: each is rounded, and a thousand small ones are lost.
const SUM_OF_8_BIT: std::ops::RangeInclusive<f64> = 0.9..=1.1;
/// The same if most of them were rounded to 0.
const SUM_OF_8_BIT_MOSTLY_ZERO: std::ops::RangeInclusive<f64> = 0.5..=1.1;
/// The number of `ImageNet` classes.
const IMAGENET_CLASSES: usize = 1000;

/// The classes of FER+ (`emotion_table` in the Model Zoo's README).
const FER_PLUS: [&str; 8] = ["neutral", "happiness", "surprise", "sadness", "anger", "disgust", "fear", "contempt"];

/// An output that could be class scores.
#[derive(Debug)]
struct Scores<'g> {
    port: &'g Port,
    classes: usize,
    /// The class names in the output, if it has any.
    names: Vec<String>,
    values: Result<(Values, String), String>,
    /// What the numbers are, by name and values, if they do not look like scores.
    features: Option<Features>,
}

/// What the numbers in a row are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Values {
    /// Probabilities that sum to 1.
    Softmax,
    /// Logarithms of probabilities that sum to 1.
    LogSoftmax,
    /// Numbers from 0 to 1.
    Sigmoid,
    /// One number from 0 to 1.
    Single,
    Real,
}

pub(super) fn recognize(
    model: &RecognitionRequest<'_>,
    prober: &mut Prober<'_, '_>,
    findings: &mut Findings,
) -> Result<OutputPrediction, RecognizeError> {
    let wanted = model.overrules.text("output.classification.name");
    let ports = model.graph.outputs.iter();
    let ports: Vec<&Port> = ports.filter(|port| wanted.is_none_or(|name| port.name == name)).collect();
    // A single number next to other outputs can be anything.
    let is_row = |scores: &Scores<'_>| scores.classes > 1 || ports.len() == 1;
    let of_images = ports.iter().filter(|port| !counts_rows(port, prober));
    let scores = of_images.filter_map(|port| read_scores(port, prober)).filter(is_row).collect();
    let chosen = choose(model, scores)?;
    let is_encoder = chosen.as_ref().map_or_else(|| named_embedding(model), |chosen| chosen.is_embedding(model));
    if let Some(because) = is_encoder {
        return encoder::recognize(model, Reason { basis: Basis::Assumed, because }, prober, findings);
    }
    let output = match chosen {
        Some(chosen) => from_scores(model, chosen, findings)?,
        None => match ports.iter().find(|port| is_arg_max(port, prober) && !counts_boxes(port, prober)) {
            Some(port) => from_arg_max(model, port, prober, findings)?,
            None => return Err(unknown_outputs(model, prober).into()),
        },
    };
    let name = output.convention.name.clone().unwrap_or_default();
    prober.recognize_batches(&[&name], Same::Nearly, findings);
    Ok(OutputPrediction {
        ignored_outputs: ignored(model, &name),
        convention: OutputConvention::Classification(output.convention),
        label_set: output.label_set,
        labels_to_store: output.labels_to_store,
        side_multiple: 1,
        usual: if output.has_named_scores { Some(Usual::CustomVision) } else { usual(model, prober.layout()) },
        not_shown: None,
        readings: Vec::new(),
    })
}

/// The exporter that the metadata, the label file or the names are typical of.
fn usual(model: &RecognitionRequest<'_>, layout: Layout) -> Option<Usual> {
    let has_channels_last = matches!(layout, Layout::Nhwc | Layout::Hwc);
    if let Some(usual) = model_zoo_family(model) {
        Some(usual)
    } else if model.notes.exporter.as_ref().is_some_and(|exporter| exporter.value == Exporter::Yolov5) {
        Some(Usual::Yolov5Classifier)
    } else if !has_channels_last {
        None
    } else if model.notes.has_tags {
        Some(Usual::WdTagger)
    } else {
        model.notes.has_numbered_labels.then_some(Usual::TeachableMachine)
    }
}

/// A model of the ONNX Model Zoo with unmistakable names and sizes.
fn model_zoo_family(model: &RecognitionRequest<'_>) -> Option<Usual> {
    let sizes = |port: &Port| port.dims.iter().map(Dimension::fixed).collect::<Vec<_>>();
    let ([input], [output]) = (&model.graph.inputs[..], &model.graph.outputs[..]) else {
        return None;
    };
    match (&*input.name, &sizes(input)[..], &*output.name, &sizes(output)[..]) {
        ("images:0", [_, Some(224), Some(224), Some(3)], "Softmax:0", [_, Some(1000)]) => Some(Usual::EfficientNetLite),
        ("Input3", [_, Some(1), Some(64), Some(64)], "Plus692_Output_0", [_, Some(8)]) => Some(Usual::FerPlus),
        _ => None,
    }
}

struct Classes {
    convention: ClassificationOutput,
    /// Whether the output contains class names, as in Custom Vision.
    has_named_scores: bool,
    label_set: Option<String>,
    labels_to_store: Option<LabelSet>,
}

fn ignored(model: &RecognitionRequest<'_>, used: &str) -> Vec<String> {
    let outputs = model.graph.outputs.iter();
    outputs.filter(|port| port.name != used).map(|port| port.name.clone()).collect()
}

impl Scores<'_> {
    /// Why it is an embedding and not a row of class scores.
    fn is_embedding(&self, model: &RecognitionRequest<'_>) -> Option<String> {
        let features = self.features.as_ref().filter(|features| features.purpose == Purpose::Embedding)?;
        let is_known = !self.names.is_empty() || are_class_scores(model, self.classes, features.outweighs_count);
        (!is_known).then(|| format!("{} looks like an embedding: {}", self.port, features.because))
    }
}

/// Why an output that is no row of numbers is an embedding.
fn named_embedding(model: &RecognitionRequest<'_>) -> Option<String> {
    let port = model.graph.outputs.iter().find(|port| unsupported::names_embedding(&port.name))?;
    Some(format!("{port} looks like an embedding: its name suggests it"))
}

/// What Spotcheck can read, for a graph without any of it.
fn unknown_outputs(model: &RecognitionRequest<'_>, prober: &Prober<'_, '_>) -> Refusal {
    let features = model.graph.outputs.iter().find_map(|port| Some((port, Features::by_name(&port.name)?)));
    if let Some((port, features)) = features {
        return features.refusal(port);
    }
    let outputs: Vec<String> = model.graph.outputs.iter().map(ToString::to_string).collect();
    let first_run = prober.predictions.first().into_iter().flat_map(|outputs| outputs.values());
    let shapes: Vec<&[usize]> = first_run.map(|tensor| &*tensor.shape).collect();
    let nearest = nearest(&shapes, prober.size());
    let is_like = nearest.map_or_else(String::new, |nearest| {
        format!(
            ". These outputs are most like those of {}, which Spotcheck reads: {}",
            nearest.exporter, nearest.outputs
        )
    });
    let or_embedding = if encoder::could_be(model, prober) {
        ". If it computes an embedding (a vector, tokens or a feature map for each image), set task=embedding"
    } else {
        ""
    };
    let refusal = Refusal::new(format!(
        "Spotcheck does not support these outputs: {}. It reads classifiers (one score for each class, or the number \
        of the best class) and detectors after non-maximum suppression (boxes [n, 4], classes [n] and scores [n], \
        each as a separate output): export the model with such outputs{or_embedding}{is_like}",
        outputs.join(", ")
    ));
    Refusal { nearest, ..refusal }
}

/// Whether another output has one row per number of this one: then these are boxes, not classes (`BlazeFace`).
fn counts_rows(port: &Port, prober: &Prober<'_, '_>) -> bool {
    let count = prober.values_of(&port.name).next().map(Tensor::len);
    let mut outputs = prober.predictions.iter().flat_map(|outputs| outputs.values());
    outputs.any(|tensor| match tensor.shape[..] {
        [1, rows, columns] | [rows, columns] => Some(rows) == count && columns > 1 && columns < rows,
        _ => false,
    })
}

fn read_scores<'g>(port: &'g Port, prober: &Prober<'_, '_>) -> Option<Scores<'g>> {
    let rows: Vec<&Tensor> = prober.values_of(&port.name).collect();
    let classes = rows.first().and_then(|row| class_count(row))?;
    if !rows.iter().all(|row| class_count(row) == Some(classes)) {
        return None;
    }
    let values = class_values(&rows);
    let features = match values {
        Ok((Values::Softmax | Values::LogSoftmax, _)) | Err(_) => None,
        Ok(_) => {
            let rows: Vec<Vec<f64>> = rows.iter().map(|row| row.to_f64()).collect();
            let found = Features::by_name(&port.name).or_else(|| Features::by_values(&rows));
            found.filter(|found| found.purpose != Purpose::Embedding || !unsupported::names_scores(&port.name))
        }
    };
    let names = rows.first().map(|row| row.names.clone()).unwrap_or_default();
    Some(Scores { port, classes, names, values, features })
}

/// The number of classes in a row of scores; `None` if the tensor is not such a row.
fn class_count(tensor: &Tensor) -> Option<usize> {
    if matches!(tensor.data, TensorData::I64(_)) {
        return None;
    }
    let long_sides = tensor.shape.iter().filter(|side| **side != 1).count();
    (long_sides == 1 || tensor.len() == 1).then(|| tensor.len())
}

fn class_values(rows: &[&Tensor]) -> Result<(Values, String), String> {
    let is_8_bit = rows.iter().all(|row| matches!(row.data, TensorData::U8(_)));
    let scale = if is_8_bit { 255.0 } else { 1.0 };
    let rows: Vec<Vec<f64>> =
        rows.iter().map(|row| row.to_f64().into_iter().map(|value| value / scale).collect()).collect();
    let values = || rows.iter().flatten().copied();
    let (min, max) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    if !values().all(f64::is_finite) {
        return Err("its values are not numbers (NaN or infinite)".to_owned());
    }
    let is_single = rows.iter().all(|row| row.len() == 1);
    if is_single && min >= 0.0 && max <= 1.0 {
        return Ok((
            Values::Single,
            "it is one number from 0 to 1: the probability of the second of two classes".to_owned(),
        ));
    }
    if is_single {
        return Err(format!(
            "it is one number per image, from {min:.3} to {max:.3}: a regression, or a class score before its sigmoid, \
            which must be part of the graph"
        ));
    }
    if is_8_bit && rows.iter().all(|row| are_8_bit_probabilities(row)) {
        let because = "8-bit values that sum to 255, apart from rounding: softmax is already applied";
        return Ok((Values::Softmax, because.to_owned()));
    }
    if is_8_bit {
        return Err("its 8-bit values do not sum to 255, so their scale is unknown; export it with float \
            outputs"
            .to_owned());
    }
    let sums_to_one = |row: &Vec<f64>| (row.iter().sum::<f64>() - 1.0).abs() <= SUM_TOLERANCE;
    if min >= 0.0 && rows.iter().all(sums_to_one) {
        let because = "the values are not negative and sum to 1, so softmax is already applied";
        return Ok((Values::Softmax, because.to_owned()));
    }
    let exponentials = |row: &Vec<f64>| row.iter().map(|value| value.exp()).collect();
    if max <= 0.0 && rows.iter().map(exponentials).all(|row| sums_to_one(&row)) {
        let because = "their exponentials sum to 1, so they are logarithms of probabilities";
        return Ok((Values::LogSoftmax, because.to_owned()));
    }
    if min >= 0.0 && max <= 1.0 {
        let because = "the values go from 0 to 1 and do not sum to 1, so a sigmoid is already applied to each";
        return Ok((Values::Sigmoid, because.to_owned()));
    }
    Ok((Values::Real, format!("the values go from {min:.3} to {max:.3} and do not sum to 1")))
}

fn are_8_bit_probabilities(row: &[f64]) -> bool {
    let sum = row.iter().sum::<f64>();
    let zeros = row.iter().filter(|value| **value == 0.0).count();
    SUM_OF_8_BIT.contains(&sum) || (zeros * 2 > row.len() && SUM_OF_8_BIT_MOSTLY_ZERO.contains(&sum))
}

/// The output with the scores; `None` if there is none.
fn choose<'g>(model: &RecognitionRequest<'_>, mut scores: Vec<Scores<'g>>) -> Result<Option<Scores<'g>>, Refusal> {
    if scores.len() > 1 {
        let mut counts = model.labels.as_ref().map_or_else(|| model.label_counts(), |labels| vec![label_count(labels)]);
        if counts.is_empty() {
            counts.push(IMAGENET_CLASSES);
            // A name is better evidence than a count that no file states.
            if scores.iter().any(|scores| unsupported::names_scores(&scores.port.name)) {
                scores.retain(|scores| unsupported::names_scores(&scores.port.name));
            }
        }
        let fits =
            |scores: &Scores<'_>| counts.iter().any(|count| scores.classes == *count || scores.classes == *count + 1);
        if scores.iter().any(fits) {
            scores.retain(fits);
        }
    }
    // Coordinates in pixels often come with the same ones in another unit (MediaPipe).
    let is_regression = |features: &&Features| features.purpose == Purpose::Regression;
    let features: Vec<(usize, Features)> = scores
        .iter()
        .filter_map(|scores| Some((scores.classes, scores.features.as_ref().filter(is_regression)?.clone())))
        .collect();
    for scores in scores.iter_mut().filter(|scores| matches!(scores.values, Ok((Values::Sigmoid | Values::Real, _)))) {
        let same = features.iter().find(|(count, _)| *count == scores.classes);
        if let Some((_, features)) = same {
            scores.features = Some(features.clone());
        }
    }
    if scores.iter().any(|scores| scores.features.is_none()) {
        scores.retain(|scores| scores.features.is_none());
    } else {
        scores.truncate(1);
    }
    if scores.len() > 1 {
        let done = |scores: &Scores<'_>| matches!(scores.values, Ok((Values::Softmax | Values::Sigmoid, _)));
        if scores.iter().filter(|scores| done(scores)).count() == 1 {
            scores.retain(done);
        }
    }
    if scores.len() > 1 {
        let ports: Vec<String> = scores.iter().map(|scores| scores.port.to_string()).collect();
        return Err(Refusal::new(format!(
            "several outputs could be the classes: {}. Choose one with output.classification.name",
            ports.join(", ")
        )));
    }
    Ok(scores.pop())
}

fn from_scores(
    model: &RecognitionRequest<'_>,
    scores: Scores<'_>,
    findings: &mut Findings,
) -> Result<Classes, Refusal> {
    let Scores { port, classes: count, names, values, features } = scores;
    let classes = if matches!(values, Ok((Values::Single, _))) { 2 } else { count };
    let is_known = !names.is_empty() || are_class_scores(model, classes, false);
    if let Some(features) = features.filter(|_| !is_known) {
        return Err(features.refusal(port));
    }
    let (row, because) = values.map_err(|reason| Refusal::new(format!("the output is {port}: {reason}")))?;
    let shape = match count {
        1 => format!("{port} is one number per image"),
        _ => format!("{port} is one row of {count} numbers per image"),
    };
    if is_known || matches!(row, Values::Softmax | Values::LogSoftmax) {
        findings.recognized("task", "classification", shape);
    } else {
        let because = format!("{shape}; no file names that many classes, and a regression looks the same");
        findings.assumed("task", "classification", because);
    }
    findings.recognized("output.classification.name", &port.name, "no other output is a better match");
    let (values, basis, because) = match (row, &model.notes.multi_label) {
        (Values::Softmax | Values::Sigmoid, _) => (ClassValues::Probabilities, Basis::Recognized, because),
        (Values::LogSoftmax, _) => (ClassValues::Logits, Basis::Recognized, because),
        (Values::Single, _) => (ClassValues::SecondProbability, Basis::Recognized, because),
        (Values::Real, Some(Noted { value: true, because })) => {
            (ClassValues::SigmoidLogits, Basis::Recognized, because.clone())
        }
        (Values::Real, Some(Noted { value: false, because })) => {
            (ClassValues::Logits, Basis::Recognized, because.clone())
        }
        (Values::Real, None) => {
            let because = format!("{because}; set sigmoid-logits if several classes can apply to one image");
            (ClassValues::Logits, Basis::Assumed, because)
        }
    };
    findings.add(basis, "output.classification.values", &values.into_str(), because);
    let has_named_scores = !names.is_empty();
    let naming = match (&model.labels, names) {
        (None, names) if !names.is_empty() => {
            findings.recognized("labels", LABEL_FILE, format!("{port} names its {classes} classes"));
            let labels_to_store = Some((0..).zip(names).collect());
            Naming { background: false, label_set: Some(LABEL_FILE.to_owned()), labels_to_store }
        }
        _ => name_classes(model, classes, findings)?,
    };
    Ok(Classes {
        convention: ClassificationOutput {
            name: Some(port.name.clone()),
            values,
            background: Background::first_if(naming.background),
        },
        has_named_scores,
        label_set: naming.label_set,
        labels_to_store: naming.labels_to_store,
    })
}

/// Whether names, files or the user show that a row of this length is class scores. If nothing contradicts, `ImageNet`'s
/// count does as well.
fn are_class_scores(model: &RecognitionRequest<'_>, classes: usize, contradicts_count: bool) -> bool {
    let fits = |count: usize| classes == count || classes == count + 1;
    let notes = &model.notes;
    let is_classifier = notes.purpose.as_ref().is_some_and(|purpose| purpose.value == Purpose::Classification)
        || notes.task.as_ref().is_some_and(|task| task.value == NotedTask::Classify);
    let are_named = model.labels.is_some() || notes.labels.iter().any(|labels| fits(label_count(&labels.value)));
    let contradicts = notes.label_count.as_ref().is_some_and(|count| !fits(count.value));
    are_named
        || (is_classifier && !contradicts)
        || (fits(IMAGENET_CLASSES) && !contradicts_count)
        || unsupported::are_set(model.overrules)
}

/// Whether another output has boxes that this one can count.
fn counts_boxes(port: &Port, prober: &Prober<'_, '_>) -> bool {
    let mut outputs = prober.predictions.iter().flatten().filter(|(name, _)| **name != port.name);
    outputs.any(|(_, tensor)| matches!(tensor.shape[..], [_, 4] | [1, _, 4] | [1, _, 1, 4]))
}

/// Whether the output is one class number per image.
fn is_arg_max(port: &Port, prober: &Prober<'_, '_>) -> bool {
    let mut tensors = prober.values_of(&port.name).peekable();
    tensors.peek().is_some()
        && tensors.all(
            |tensor| matches!(&tensor.data, TensorData::I64(values) if matches!(values[..], [class] if class >= 0)),
        )
}

fn from_arg_max(
    model: &RecognitionRequest<'_>,
    port: &Port,
    prober: &Prober<'_, '_>,
    findings: &mut Findings,
) -> Result<Classes, Refusal> {
    findings.recognized("task", "classification", format!("{port} is one whole number per image"));
    findings.recognized("output.classification.name", &port.name, "no output contains scores");
    findings.recognized(
        "output.classification.values",
        "arg-max",
        "64-bit whole numbers, one per image, are class numbers",
    );
    let highest = prober.values_of(&port.name).flat_map(Tensor::to_f64).fold(0.0, f64::max);
    let naming = name_arg_max(model, highest as usize, findings)?;
    Ok(Classes {
        convention: ClassificationOutput {
            name: Some(port.name.clone()),
            values: ClassValues::ArgMax,
            background: Background::first_if(naming.background),
        },
        has_named_scores: false,
        label_set: naming.label_set,
        labels_to_store: naming.labels_to_store,
    })
}

struct Naming {
    background: bool,
    label_set: Option<String>,
    labels_to_store: Option<LabelSet>,
}

fn name_classes(model: &RecognitionRequest<'_>, classes: usize, findings: &mut Findings) -> Result<Naming, Refusal> {
    if let Some(labels) = &model.labels {
        let count = label_count(labels);
        let background = classes == count + 1;
        // A file with ids may omit the last classes; one with plain names has all of them.
        let has_gaps = labels.len() < count && count <= classes;
        if classes != count && !background && !has_gaps {
            return Err(misfit(format!("has {classes} classes"), count));
        }
        let because = format!("the label file has {count} classes and the model has {classes}");
        if background {
            background_first(classes, &because, findings);
        } else {
            findings.recognized("output.classification.background", Background::None.into_str(), &*because);
        }
        findings.recognized("labels", LABEL_FILE, because);
        return Ok(Naming {
            background,
            label_set: Some(LABEL_FILE.to_owned()),
            labels_to_store: Some(labels.clone()),
        });
    }
    if let Some(labels) = model.notes.labels_for(classes) {
        findings.recognized("labels", LABEL_FILE, labels.because);
        let labels_to_store = Some(labels.value);
        return Ok(Naming { background: false, label_set: Some(LABEL_FILE.to_owned()), labels_to_store });
    }
    if let Some(labels) = classes.checked_sub(1).and_then(|named| model.notes.labels_for(named)) {
        let because = format!("{} and the model has {classes}", labels.because);
        background_first(classes, &because, findings);
        findings.recognized("labels", LABEL_FILE, because);
        let labels_to_store = Some(labels.value);
        return Ok(Naming { background: true, label_set: Some(LABEL_FILE.to_owned()), labels_to_store });
    }
    Ok(assume_names(model, classes, findings))
}

/// The names of a dataset with this many classes.
fn assume_names(model: &RecognitionRequest<'_>, classes: usize, findings: &mut Findings) -> Naming {
    if model_zoo_family(model) == Some(Usual::FerPlus) {
        findings.assumed("labels", LABEL_FILE, "the graph's tensor names match the ONNX Model Zoo's FER+");
        let labels_to_store = Some((0..).zip(FER_PLUS.map(str::to_owned)).collect());
        return Naming { background: false, label_set: Some(LABEL_FILE.to_owned()), labels_to_store };
    }
    let background = classes == IMAGENET_CLASSES + 1;
    if background {
        findings.recognized(
            "output.classification.background",
            "first",
            "1001 classes are the background and ImageNet's 1000",
        );
    }
    let imagenet = background || classes == IMAGENET_CLASSES;
    if imagenet {
        let because = "ImageNet has the same number of classes; ONNX does not record their order";
        findings.assumed("labels", "imagenet", because);
    } else {
        findings.assumed(
            "labels",
            "none",
            format!("the {classes} classes have no names; they are shown by number until you add a label file"),
        );
    }
    Naming { background, label_set: imagenet.then(|| "imagenet".to_owned()), labels_to_store: None }
}

/// If there is one more class than names, it is the background; only for `ImageNet` it is known to be the first.
fn background_first(classes: usize, because: &str, findings: &mut Findings) {
    let (field, first) = ("output.classification.background", Background::First.into_str());
    if classes == IMAGENET_CLASSES + 1 {
        findings.recognized(field, first, because);
    } else {
        findings.assumed(field, first, format!("{because}; the background could also be the last class"));
    }
}

/// The class count of an arg-max is unknown; it is only above the `highest` number seen.
fn name_arg_max(model: &RecognitionRequest<'_>, highest: usize, findings: &mut Findings) -> Result<Naming, Refusal> {
    let Some(labels) = &model.labels else {
        findings.assumed(
            "output.classification.background",
            "none",
            "a class number does not show whether 0 is the background",
        );
        findings.assumed("labels", "none", "the class names are unknown; add a label file or set labels=imagenet");
        return Ok(Naming { background: false, label_set: None, labels_to_store: None });
    };
    let count = label_count(labels);
    if highest > count {
        return Err(misfit(format!("returned class {highest}"), count));
    }
    let background = highest == count;
    if background {
        findings.recognized(
            "output.classification.background",
            "first",
            format!("the model returned class {highest} but the label file has {count} classes"),
        );
    } else {
        findings.assumed(
            "output.classification.background",
            "none",
            "a class number does not show whether 0 is the background",
        );
    }
    findings.recognized("labels", LABEL_FILE, "set by you");
    Ok(Naming { background, label_set: Some(LABEL_FILE.to_owned()), labels_to_store: Some(labels.clone()) })
}
