//! A session that also returns the embeddings of its images and boxes, proven to predict the same.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::InferenceError;
use super::call::{call, join, used_outputs};
use super::session::OnnxSession;
use crate::domain::{
    BoxEncoder, BoxFeatures, DetectionOutput, EmbeddingOutput, Encoder, ModelCard, OutputConvention, RgbImage, Tokens,
};
use crate::local_file;
use crate::model::recognize::{
    EmbeddingTensor, EmbeddingTensors, Port, choose_box_features, choose_embedding, embedding_tensors,
};
use crate::model::{PredictError, Tensor, TensorData, embedding_dims, encoded, preprocess};
use crate::tasks::TaskControl;

/// Where a model's embeddings come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmbeddingLayer {
    pub tensor: EmbeddingTensor,
    /// How the tokens of an encoder's output become one vector, if it has some.
    #[serde(default)]
    pub tokens: Option<Tokens>,
    /// Numbers per image.
    pub dims: usize,
    /// Where the vectors of boxes come from, or why there are none; `None` for a classifier.
    pub boxes: Option<Result<BoxEncoder, String>>,
    /// Why embeddings need a session of their own, if they do.
    pub own_session: Option<String>,
}

impl EmbeddingLayer {
    /// What determines the embeddings of the model with this card.
    pub fn encoder(&self, card: &ModelCard) -> Encoder {
        Encoder {
            model_id: card.id.clone(),
            weights_sha256: card.file.sha256.clone(),
            tensor: self.tensor.name.clone(),
            layer: self.tensor.layer.clone(),
            tokens: self.tokens,
            dims: self.dims,
            input: card.input.clone(),
            boxes: self.box_encoder().cloned(),
        }
    }

    pub fn box_encoder(&self) -> Option<&BoxEncoder> {
        self.boxes.as_ref()?.as_ref().ok()
    }

    /// The tensors to return, each once.
    pub(super) fn tensors(&self) -> Vec<&str> {
        let mut names = vec![self.tensor.name.as_str()];
        for name in self.box_encoder().iter().flat_map(|boxes| boxes.features.tensors()) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names
    }

    /// What else to say about the embeddings, one line each.
    pub fn notes(&self) -> Vec<String> {
        let boxes = self.boxes.as_ref().map(|boxes| match boxes {
            Ok(BoxEncoder { features, dims }) => {
                let source = match features {
                    BoxFeatures::Maps(maps) => format!("{} averaged under each box", maps.join(", ")),
                    BoxFeatures::Candidates(tensor) => format!("the vectors of {tensor}"),
                };
                format!("embeddings of boxes: {source}, {dims} numbers per box")
            }
            Err(reason) => format!("no embeddings of boxes, because {reason}"),
        });
        let own_session = self.own_session.as_ref();
        let session = own_session.map(|reason| {
            format!("embeddings are computed in a second session, which takes about as long again, because {reason}")
        });
        boxes.into_iter().chain(session).collect()
    }
}

/// `/Reshape_output_0, input of Gemm /_fc/Gemm, 1280 numbers per image`
impl std::fmt::Display for EmbeddingLayer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { tensor: EmbeddingTensor { name, layer, .. }, tokens, dims, .. } = self;
        write!(formatter, "{name}, ")?;
        if !layer.is_empty() {
            write!(formatter, "input of {layer}, ")?;
        }
        if let Some(tokens) = tokens {
            write!(formatter, "{}, ", tokens.reading())?;
        }
        write!(formatter, "{dims} numbers per image")
    }
}

/// Where the embeddings of an encoder come from, by the output for a trial image.
///
/// # Errors
/// The output describes no images.
pub(super) fn encoder_layer(
    card: &ModelCard,
    output: &EmbeddingOutput,
    images: usize,
    session: &mut OnnxSession,
    control: &TaskControl,
) -> Result<EmbeddingLayer, PredictError> {
    let prepared = preprocess(&card.input, &trial_image())?;
    let batch = [prepared];
    let mut outputs = call(session, card, &join(&batch, images)?, &[&output.name], control)?;
    let found = outputs.remove(&output.name);
    let found = found.ok_or_else(|| PredictError::Failed(format!("the graph has no output “{}”", output.name)))?;
    let given = found.shape.clone();
    let vectors = encoded(found, images, card.input.layout, output.tokens);
    let dims = embedding_dims(&vectors.shape, images);
    let dims = dims.ok_or_else(|| {
        PredictError::Failed(format!(
            "the output “{}” of shape {given:?} is no embedding: neither one vector per image, nor tokens or a feature \
             map; correct output.embedding.name in the model card",
            output.name
        ))
    })?;
    // Otherwise, dimensions of 1 are around a vector.
    let has_tokens = given.len() == 3 && given.iter().skip(1).all(|side| *side > 1);
    let tensor = EmbeddingTensor::new(&output.name, "");
    let tokens = has_tokens.then_some(output.tokens);
    Ok(EmbeddingLayer { tensor, tokens, dims, boxes: None, own_session: None })
}

/// What a load needs to know about the embeddings.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Proof {
    pub layer: EmbeddingLayer,
    /// The tensors of the layer that are not outputs of the graph anyway.
    pub additional: Vec<String>,
}

/// Adds the embeddings to a model's outputs. An additional output can keep ONNX Runtime from merging operations, which
/// changes rounding; so both sessions predict a trial image. Unless their outputs are equal, bit for bit, the embeddings
/// need a session of their own. `plain` is a session without them; `load` loads one with additional outputs on the same
/// device.
///
/// # Errors
/// Why the model has no usable embedding, as a clause.
pub(super) fn prove(
    card: &ModelCard,
    weights: &Path,
    images: usize,
    plain: &mut OnnxSession,
    load: impl Fn(&[&str]) -> Result<OnnxSession, InferenceError>,
    control: &TaskControl,
) -> Result<(Proof, OnnxSession), String> {
    let file = local_file::open(weights).map_err(|error| error.to_string())?;
    let mut tensors = embedding_tensors(card, file)?;
    let prepared = preprocess(&card.input, &trial_image()).map_err(|error| error.to_string())?;
    let input = prepared.canvas_size;
    let batch = [prepared];
    let joined = join(&batch, images).map_err(|error| error.to_string())?;
    let used = used_outputs(card);
    let run = |session: &mut OnnxSession, more: &[&str]| {
        // All outputs of a graph with a single one.
        let names: Vec<&str> = if used.is_empty() { Vec::new() } else { used.iter().chain(more).copied().collect() };
        call(session, card, &joined, &names, control).map_err(|error| error.to_string())
    };
    let expected = run(plain, &[])?;
    let ports = plain.signature().outputs;
    let load = |names: &[&str]| load(&inside(names, &ports)).map_err(|error| error.to_string());
    let all: BTreeSet<&str> = tensors.all().map(|tensor| tensor.name.as_str()).collect();
    let all: Vec<String> = all.into_iter().map(str::to_owned).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let mut session = load(&all)?;
    let mut outputs = run(&mut session, &all)?;
    let mut shapes = outputs.iter().map(|(name, tensor)| (name.clone(), tensor.shape.clone())).collect();
    tensors.pick(&mut shapes);
    let mut layer = choose(card, &tensors, |name| shapes.get(name).cloned(), images, input)?;
    let names = layer.tensors();
    if !all.iter().all(|name| names.contains(name)) {
        session = load(&names)?;
        outputs = run(&mut session, &names)?;
    }
    for name in &names {
        take(&mut outputs, name, &used);
    }
    layer.own_session = if expected.values().all(Tensor::is_empty) {
        Some("the model found nothing in the trial image, so its predictions could not be compared".to_owned())
    } else {
        (!are_same(&expected, &outputs)).then(|| "an additional output changes the model’s predictions".to_owned())
    };
    let additional = inside(&layer.tensors(), &ports).into_iter().map(str::to_owned).collect();
    Ok((Proof { layer, additional }, session))
}

/// The tensors for the image and the boxes, by their shapes.
fn choose(
    card: &ModelCard,
    tensors: &EmbeddingTensors,
    shape_of: impl Fn(&str) -> Option<Vec<usize>>,
    images: usize,
    input: [u32; 2],
) -> Result<EmbeddingLayer, String> {
    tensors.check_layer(&tensors.of_image, &shape_of, images)?;
    let shapes: Vec<_> = tensors.of_image.iter().map(|tensor| shape_of(&tensor.name)).collect();
    let chosen = choose_embedding(&shapes, images, input);
    let dims = chosen.and_then(|chosen| embedding_dims(shapes[chosen].as_ref()?, images));
    let (Some(chosen), Some(dims)) = (chosen, dims) else {
        let names: Vec<&str> = tensors.of_image.iter().map(|tensor| tensor.name.as_str()).collect();
        return Err(format!(
            "no vector or feature map of an image is the input of the last layers ({}); name a tensor in the model \
             card’s field `embedding`",
            names.join(", ")
        ));
    };
    let tensor = tensors.of_image[chosen].clone();
    let boxes = match &card.output {
        OutputConvention::Classification(_) | OutputConvention::Embedding(_) => None,
        OutputConvention::Detection(output) => {
            let candidates = candidates(output, &shape_of, images);
            let rows = match shapes[chosen].as_deref() {
                Some(&[_, rows, _]) if !tensors.are_boxes_selected => rows,
                _ => 0,
            };
            let per_box = candidates.filter(|count| rows.is_multiple_of(*count)).map_or(0, |count| rows / count);
            if per_box > 1 {
                return Err(format!(
                    "{} has {per_box} vectors per box, perhaps of several layers, and it is unclear which one describes it",
                    tensor.name
                ));
            }
            Some(choose_box_features(tensors, shape_of, images, input, candidates))
        }
    };
    Ok(EmbeddingLayer { tensor, tokens: None, dims, boxes, own_session: None })
}

/// The number of boxes that a detector returns for an image, before any selection.
fn candidates(output: &DetectionOutput, shape_of: impl Fn(&str) -> Option<Vec<usize>>, images: usize) -> Option<usize> {
    let [name] = output.scores.outputs.as_slice() else {
        return None;
    };
    let count = match *shape_of(name)?.as_slice() {
        [_, _, candidates] if output.candidates_last => candidates,
        [_, candidates, _] => candidates,
        [first, candidates] => {
            if first == images && images > 1 {
                candidates
            } else {
                first
            }
        }
        _ => return None,
    };
    Some(count).filter(|count| *count > 0)
}

/// The tensors that are not outputs anyway.
fn inside<'t>(tensors: &[&'t str], outputs: &[Port]) -> Vec<&'t str> {
    let is_inside = |name: &&str| outputs.iter().all(|output| output.name != *name);
    tensors.iter().copied().filter(is_inside).collect()
}

/// Removes the output `name`, unless the prediction also uses it.
pub(super) fn take(outputs: &mut BTreeMap<String, Tensor>, name: &str, used: &[&str]) -> Option<Tensor> {
    if used.contains(&name) { outputs.get(name).cloned() } else { outputs.remove(name) }
}

/// Whether every bit is the same.
fn are_same(left: &BTreeMap<String, Tensor>, right: &BTreeMap<String, Tensor>) -> bool {
    let is_same = |left: &Tensor, right: &Tensor| {
        left.shape == right.shape
            && match (&left.data, &right.data) {
                (TensorData::F32(left), TensorData::F32(right)) => {
                    left.iter().map(|value| value.to_bits()).eq(right.iter().map(|value| value.to_bits()))
                }
                (left, right) => left == right,
            }
    };
    left.len() == right.len() && left.iter().all(|(name, tensor)| right.get(name).is_some_and(|to| is_same(tensor, to)))
}

/// Smooth and sharp, bright and dark, with noise: so that differences in rounding show.
fn trial_image() -> RgbImage {
    const SIZE: [u32; 2] = [320, 240];
    let mut noise = 1_u32;
    let pixels = (0..SIZE[1]).flat_map(|y| (0..SIZE[0]).map(move |x| (x, y))).flat_map(|(x, y)| {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let grain = noise >> 28;
        let is_inside = (60..180).contains(&x) && (40..200).contains(&y);
        let base = if is_inside { [200, 90, 40] } else { [x * 255 / SIZE[0], y * 255 / SIZE[1], 120] };
        base.map(|level| (level + grain).min(255) as u8)
    });
    RgbImage::new(SIZE[0], SIZE[1], pixels.collect()).expect("it has three levels per pixel")
}
