//! A session that also returns the embedding of its images, proven to predict the same.

use std::collections::BTreeMap;
use std::path::Path;

use super::InferenceError;
use super::call::{call, join, used_outputs};
use super::session::OnnxSession;
use crate::domain::{Encoder, ModelCard, RgbImage};
use crate::local_file;
use crate::model::recognize::{EmbeddingTensor, Port, choose_embedding, embedding_tensors};
use crate::model::{Tensor, TensorData, embeddings_of, preprocess};
use crate::tasks::TaskControl;

/// Where a model's embeddings come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingLayer {
    pub tensor: EmbeddingTensor,
    /// Numbers per image.
    pub dims: usize,
}

impl EmbeddingLayer {
    /// What determines the embeddings of the model with this card.
    pub fn encoder(&self, card: &ModelCard) -> Encoder {
        Encoder {
            model_id: card.id.clone(),
            weights_sha256: card.file.sha256.clone(),
            tensor: self.tensor.name.clone(),
            layer: self.tensor.layer.clone(),
            dims: self.dims,
            input: card.input.clone(),
        }
    }
}

/// `/Reshape_output_0, input of Gemm /_fc/Gemm, 1280 numbers per image`
impl std::fmt::Display for EmbeddingLayer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { tensor: EmbeddingTensor { name, layer }, dims } = self;
        write!(formatter, "{name}, ")?;
        if !layer.is_empty() {
            write!(formatter, "input of {layer}, ")?;
        }
        write!(formatter, "{dims} numbers per image")
    }
}

/// Adds the embedding to a model's outputs. An additional output can keep ONNX Runtime from merging operations, which
/// changes rounding; so both sessions predict a trial image, and their outputs must be equal, bit for bit. `plain` is a
/// session without it; `load` loads one with additional outputs on the same device.
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
) -> Result<(EmbeddingLayer, OnnxSession), String> {
    let file = local_file::open(weights).map_err(|error| error.to_string())?;
    let mut candidates = embedding_tensors(card, file)?;
    let prepared = preprocess(&card.input, &trial_image()).map_err(|error| error.to_string())?;
    let batch = [prepared];
    let joined = join(&batch, images).map_err(|error| error.to_string())?;
    let used = used_outputs(card);
    let run = |session: &mut OnnxSession, more: &[&str]| {
        // All outputs of a graph with a single one.
        let names: Vec<&str> = if used.is_empty() { Vec::new() } else { used.iter().chain(more).copied().collect() };
        call(session, card, &joined, &names, control).map_err(|error| error.to_string())
    };
    let expected = run(plain, &[])?;
    loop {
        let names: Vec<&str> = candidates.iter().map(|tensor| tensor.name.as_str()).collect();
        let mut session = load(&names).map_err(|error| error.to_string())?;
        let mut outputs = run(&mut session, &names)?;
        let tensors: Vec<Option<Tensor>> = names.iter().map(|name| take(&mut outputs, name, &used)).collect();
        let shapes: Vec<_> = tensors.iter().map(|tensor| Some(tensor.as_ref()?.shape.clone())).collect();
        let chosen = choose_embedding(&shapes, images, batch[0].canvas_size);
        let Some((chosen, tensor)) = chosen.and_then(|chosen| Some((chosen, tensors[chosen].as_ref()?))) else {
            return Err(format!(
                "no vector or feature map of an image is the input of the last layers ({}); name a tensor in the model \
                 card’s field `embedding`",
                names.join(", ")
            ));
        };
        if candidates.len() > 1 {
            candidates = vec![candidates.swap_remove(chosen)];
            continue;
        }
        if expected.values().all(Tensor::is_empty) {
            return Err("the model found nothing in the trial image, so its predictions with and without embeddings \
                        could not be compared"
                .to_owned());
        }
        if !are_same(&expected, &outputs) {
            return Err("an additional output changes the model’s predictions".to_owned());
        }
        let embeddings = embeddings_of(tensor, images).map_err(|error| error.to_string())?;
        let dims = embeddings.first().map_or(0, Vec::len);
        return Ok((EmbeddingLayer { tensor: candidates.swap_remove(0), dims }, session));
    }
}

/// The tensors that are not outputs anyway.
pub(super) fn inside<'t>(tensors: &[&'t str], outputs: &[Port]) -> Vec<&'t str> {
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
