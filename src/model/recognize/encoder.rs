//! Outputs of encoders: one vector per image, or tokens or a feature map that become one. Only used for a graph that a
//! file, the user, or the outputs themselves show to be an encoder.

use super::noted::{Noted, Purpose};
use super::probe::{Prober, Same};
use super::signature::Port;
use super::unsupported::{self, TOO_FEW_FEATURES};
use super::usual::Usual;
use super::{Basis, Findings, OutputPrediction, RecognitionRequest, RecognizeError, Refusal};
use crate::domain::{CardTask, EmbeddingOutput, OutputConvention, Tokens};
use crate::model::{MAX_DIMS, Tensor, TensorData, embedding_dims, encoded};

/// Tokens before those of the patches: one for the class, and four registers (`DINOv2` with registers, `DINOv3`).
const TOKENS_BEFORE_PATCHES: [usize; 2] = [1, 5];

/// Why a graph is an encoder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reason {
    pub basis: Basis,
    /// A clause to follow “because”.
    pub because: String,
}

/// The reason that the user or a file states.
pub(super) fn stated(model: &RecognitionRequest<'_>) -> Option<Reason> {
    let overrules = model.overrules;
    let is_set = overrules.text("task") == Some(CardTask::Embedding.into_str())
        || ["name", "tokens"].iter().any(|field| overrules.text(&format!("output.embedding.{field}")).is_some());
    if is_set {
        return Some(Reason { basis: Basis::Given, because: "set by you".to_owned() });
    }
    match &model.notes.purpose {
        Some(Noted { value: Purpose::Embedding, because })
            if model.labels.is_none() && !unsupported::are_set(overrules) =>
        {
            Some(Reason { basis: Basis::Recognized, because: because.clone() })
        }
        _ => None,
    }
}

pub(super) fn recognize(
    model: &RecognitionRequest<'_>,
    reason: Reason,
    prober: &mut Prober<'_, '_>,
    findings: &mut Findings,
) -> Result<OutputPrediction, RecognizeError> {
    check_fields(model, &reason)?;
    let wanted = model.overrules.text("output.embedding.name");
    let ports = model.graph.outputs.iter().filter(|port| wanted.is_none_or(|name| port.name == name));
    let candidates = ports.filter_map(|port| Candidate::new(port, prober));
    let Some(Candidate { port, shape, dims, .. }) = candidates.min_by_key(|candidate| candidate.rank) else {
        let outputs: Vec<String> = model.graph.outputs.iter().map(ToString::to_string).collect();
        return Err(Refusal::new(format!(
            "the model is an encoder, because {}, but none of its outputs describes an image: {}. Spotcheck reads \
             vectors [batch, dims], tokens [batch, tokens, dims] and feature maps with {TOO_FEW_FEATURES} to {MAX_DIMS} \
             dimensions as floats: export the model with such an output",
            reason.because,
            outputs.join(", ")
        ))
        .into());
    };
    findings.add(reason.basis, "task", &CardTask::Embedding.into_str(), reason.because);
    let because = format!("{port} has {dims} numbers for each image or part of it, and no output fits better");
    findings.recognized("output.embedding.name", &port.name, because);
    let tokens = match shape[..] {
        [_, tokens, _] => {
            let has_class = TOKENS_BEFORE_PATCHES.iter().any(|before| is_square(tokens.saturating_sub(*before)));
            let (value, because) = if has_class {
                (Tokens::Class, "more than a square of patches: the first one usually describes the image")
            } else {
                (Tokens::Mean, "without one for the image as a whole")
            };
            let because = format!("{port} has {tokens} tokens, {because}");
            findings.assumed("output.embedding.tokens", value.into_str(), because);
            value
        }
        _ if model.overrules.text("output.embedding.tokens") == Some(Tokens::Class.into_str()) => {
            return Err(Refusal::new(format!(
                "{port} has no tokens, so there is none of the class: leave output.embedding.tokens out, or choose an \
                 output with tokens by output.embedding.name"
            ))
            .into());
        }
        _ => Tokens::Mean,
    };
    let name = port.name.clone();
    prober.recognize_batches(&[&name], Same::Nearly, findings);
    let others = model.graph.outputs.iter().filter(|port| port.name != name);
    Ok(OutputPrediction {
        ignored_outputs: others.map(|port| port.name.clone()).collect(),
        usual: usual(model, &name),
        convention: OutputConvention::Embedding(EmbeddingOutput { name, tokens }),
        label_set: None,
        labels_to_store: None,
        side_multiple: 1,
        not_shown: None,
        readings: Vec::new(),
    })
}

/// Refuses what the user set for another kind of model.
fn check_fields(model: &RecognitionRequest<'_>, reason: &Reason) -> Result<(), Refusal> {
    let set = |field: &str, encoder: &str| model.overrules.text(field).filter(|value| *value != encoder);
    let (field, value) = match (set("task", CardTask::Embedding.into_str()), set("labels", "null")) {
        (Some(task), _) => ("task", task),
        (None, Some(labels)) => ("labels", labels),
        (None, None) => return Ok(()),
    };
    Err(Refusal::new(format!(
        "{field} cannot be {value}: the model is an encoder, because {}. If one of its outputs contains class scores, \
         add the label file (--labels) or set output.classification.values",
        reason.because
    )))
}

/// Whether an output could be the embedding if the user says so.
pub(super) fn could_be(model: &RecognitionRequest<'_>, prober: &Prober<'_, '_>) -> bool {
    model.graph.outputs.iter().any(|port| Candidate::new(port, prober).is_some())
}

/// An output that could be the embedding.
struct Candidate<'g> {
    port: &'g Port,
    shape: Vec<usize>,
    dims: usize,
    rank: usize,
}

impl<'g> Candidate<'g> {
    fn new(port: &'g Port, prober: &Prober<'_, '_>) -> Option<Self> {
        let tensor = prober.values_of(&port.name).next()?;
        let name = port.name.to_lowercase();
        if !matches!(tensor.data, TensorData::F32(_)) || name.contains("text") {
            return None;
        }
        let Tensor { shape, .. } = encoded(tensor.clone(), 1, prober.layout(), Tokens::Mean);
        let dims = embedding_dims(&shape, 1).filter(|dims| *dims >= TOO_FEW_FEATURES)?;
        Some(Self { port, rank: rank(&name, &shape), shape, dims })
    }
}

/// The order of preference: the vector that other images are compared by, then pooled ones, then what has to be pooled.
fn rank(name: &str, shape: &[usize]) -> usize {
    match shape.len() {
        _ if unsupported::names_scores(name) => 6,
        2 if name.contains("image_embed") => 0,
        2 if name.contains("embed") => 1,
        2 if name.contains("pool") => 2,
        2 => 3,
        3 => 4,
        _ => 5,
    }
}

fn is_square(count: usize) -> bool {
    count > 0 && count.isqrt().pow(2) == count
}

/// The family whose preprocessing the names suggest. Only CLIP names an output `image_embeds`.
fn usual(model: &RecognitionRequest<'_>, output: &str) -> Option<Usual> {
    let model_type = model.notes.model_type.as_ref().map_or("", |noted| &noted.value);
    let names = format!("{} {model_type}", model.name).to_lowercase();
    match () {
        () if names.contains("siglip") => Some(Usual::SigLip),
        () if names.contains("mobileclip") => Some(Usual::MobileClip),
        () if names.contains("clip") || output == "image_embeds" => Some(Usual::Clip),
        () if names.contains("dino") => Some(Usual::Dino),
        () => None,
    }
}

/// Whether the declared dimensions or the name of an output suggest an embedding: the length of a vector is a multiple
/// of 64, unlike nearly all numbers of classes.
pub(super) fn is_likely(port: &Port) -> bool {
    let sizes = port.dims.iter().skip(1).map(super::Dimension::fixed);
    let long: Vec<Option<u64>> = sizes.filter(|size| *size != Some(1)).collect();
    let has_typical_length = matches!(long[..], [Some(size)] if unsupported::is_typical_length(size as usize));
    unsupported::names_embedding(&port.name) || has_typical_length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_come_before_tokens_and_maps() {
        let outputs: [(&str, &[usize]); 6] = [
            ("image_embeds", &[1, 512]),
            ("embedding", &[1, 512]),
            ("pooler_output", &[1, 768]),
            ("output", &[1, 768]),
            ("last_hidden_state", &[1, 197, 768]),
            ("features", &[1, 512, 7, 7]),
        ];
        let ranks = outputs.map(|(name, shape)| rank(name, shape));
        assert_eq!(ranks, [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn class_tokens_exceed_a_square_of_patches() {
        // ViT-B/16, DINOv2, DINOv2 with registers, CLIP ViT-B/32; SigLIP and Swin have none.
        for (tokens, expected) in [(197, true), (257, true), (261, true), (50, true), (196, false), (49, false)] {
            let has_class = TOKENS_BEFORE_PATCHES.iter().any(|before| is_square(tokens - before));
            assert_eq!(has_class, expected, "{tokens}");
        }
    }
}
