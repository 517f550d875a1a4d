//! Which tensor inside a graph describes what the model sees: the input of the last layer with weights before the
//! scores. For a classifier, this is the vector (or feature map) that its classes are computed from; for a detector,
//! one feature map per level; for DETR, the hidden states of the queries; for Faster R-CNN, the features of its boxes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, Read, Seek};

use super::signature::{GraphNode, read_nodes};
use crate::domain::{ModelCard, OutputConvention};
use crate::model::embedding_dims;

/// More candidates than any detector has levels.
const MAX_CANDIDATES: usize = 12;
/// The coarsest feature map that describes an image, in pixels of the input per cell.
const MAX_STRIDE: f64 = 33.0;
const LAYERS: [&str; 11] = [
    "Gemm",
    "MatMul",
    "Conv",
    "ConvTranspose",
    "FusedMatMul",
    "MatMulInteger",
    "MatMulNBits",
    "QGemm",
    "QLinearMatMul",
    "QLinearConv",
    "ConvInteger",
];

/// Only the first input of these holds values; the others are positions, sizes or ranges.
const OF_FIRST_INPUT: [&str; 20] = [
    "Cast",
    "Clip",
    "DequantizeLinear",
    "Expand",
    "Gather",
    "GatherElements",
    "GatherND",
    "Pad",
    "QuantizeLinear",
    "ReduceMax",
    "ReduceMean",
    "ReduceSum",
    "Reshape",
    "Resize",
    "Slice",
    "Split",
    "Squeeze",
    "Tile",
    "TopK",
    "Transpose",
];

/// A tensor inside a graph that can serve as embedding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingTensor {
    pub name: String,
    /// The layer that reads it, such as `Gemm /_fc/Gemm`.
    pub layer: String,
}

/// The tensors to choose from, the ones nearest to the scores first. Only the card's own, if it names one.
///
/// # Errors
/// Why there is none, to follow a colon.
pub fn embedding_tensors(card: &ModelCard, file: impl Read + Seek) -> Result<Vec<EmbeddingTensor>, String> {
    let graph = read_nodes(file).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => "the file is not a plain ONNX file".to_owned(),
        _ => error.to_string(),
    })?;
    let reader_of = |tensor: &str| graph.nodes.iter().find(|node| node.inputs.iter().any(|input| input == tensor));
    if let Some(wanted) = card.embedding.as_ref().filter(|name| !name.is_empty()) {
        let is_made = graph.nodes.iter().any(|node| node.outputs.contains(wanted));
        return match reader_of(wanted) {
            _ if !is_made => Err(format!("the graph has no tensor “{wanted}”, which the model card names")),
            reader => Ok(vec![EmbeddingTensor { name: wanted.clone(), layer: reader.map_or_else(String::new, layer) }]),
        };
    }
    let mut constants = graph.constants;
    for node in &graph.nodes {
        if node.inputs.iter().all(|input| input.is_empty() || constants.contains(input)) {
            constants.extend(node.outputs.iter().cloned());
        }
    }
    let maker_of: BTreeMap<&str, &GraphNode> =
        graph.nodes.iter().flat_map(|node| node.outputs.iter().map(move |output| (output.as_str(), node))).collect();
    let mut pending: VecDeque<&str> = match &card.output {
        OutputConvention::Classification(output) => output.name.as_deref().or(graph.first_output.as_deref()),
        OutputConvention::Detection(_) => None,
    }
    .into_iter()
    .collect();
    if let OutputConvention::Detection(output) = &card.output {
        pending.extend(output.scores.outputs.iter().map(String::as_str));
    }
    let mut seen = BTreeSet::new();
    let mut found: Vec<EmbeddingTensor> = Vec::new();
    while let Some(tensor) = pending.pop_front() {
        let Some(node) = maker_of.get(tensor).filter(|node| seen.insert(node.outputs.first())) else {
            continue;
        };
        let is_value = |input: &&str| !input.is_empty() && !constants.contains(*input);
        let values: Vec<&str> = node.inputs.iter().map(String::as_str).filter(is_value).collect();
        let has_weights = node.inputs.iter().any(|input| constants.contains(input));
        if LAYERS.contains(&node.op.as_str()) && has_weights {
            let name = values.first().copied().unwrap_or_default();
            // The image itself is not described by anything before it.
            if maker_of.contains_key(name) && found.iter().all(|known| known.name != name) {
                found.push(EmbeddingTensor { name: name.to_owned(), layer: layer(node) });
            }
            continue;
        }
        match node.op.as_str() {
            "NonMaxSuppression" => pending.extend(node.inputs.get(1).map(String::as_str)),
            "Where" => pending.extend(node.inputs.iter().skip(1).map(String::as_str)),
            op if OF_FIRST_INPUT.contains(&op) => pending.extend(node.inputs.first().map(String::as_str)),
            _ => pending.extend(values),
        }
    }
    if found.is_empty() {
        return Err(
            "no layer with weights leads to the scores; name a tensor in the model card’s field `embedding`".to_owned()
        );
    }
    // A classifier has one last layer; others belong to additional heads.
    found.truncate(if matches!(card.output, OutputConvention::Classification(_)) { 1 } else { MAX_CANDIDATES });
    Ok(found)
}

fn layer(node: &GraphNode) -> String {
    format!("{} {}", node.op, node.name).trim_end().to_owned()
}

/// The candidate for an image as a whole, by the tensors that a call with `images` images returned: the first with a
/// vector per image, box or query; otherwise the coarsest feature map with a stride up to 32, `input` being the width
/// and height of the model's input in pixels.
pub fn choose_embedding(shapes: &[Option<Vec<usize>>], images: usize, input: [u32; 2]) -> Option<usize> {
    let is_vector = |shape: &Vec<usize>| matches!(shape.len(), 2 | 3) && embedding_dims(shape, images).is_some();
    let first_vector = shapes.iter().position(|shape| shape.as_ref().is_some_and(is_vector));
    let stride = |shape: &Vec<usize>| {
        let &[first, _, height, width] = shape.as_slice() else {
            return None;
        };
        embedding_dims(shape, images)?;
        let [across, down] = [f64::from(input[0]) / width as f64, f64::from(input[1]) / height as f64];
        // A map whose cells are no squares is not one of pixels.
        let is_map = first == images && across / down < 1.5 && down / across < 1.5 && height.min(width) > 1;
        (is_map && across.max(down) < MAX_STRIDE).then_some(across)
    };
    let strides = shapes.iter().enumerate().filter_map(|(index, shape)| Some((index, stride(shape.as_ref()?)?)));
    let coarsest = strides.reduce(|best, next| if next.1 > best.1 { next } else { best });
    let any =
        || shapes.iter().position(|shape| shape.as_ref().is_some_and(|shape| embedding_dims(shape, images).is_some()));
    match shapes.first() {
        Some(Some(shape)) if is_vector(shape) => Some(0),
        _ => coarsest.map(|(index, _)| index).or(first_vector).or_else(any),
    }
}

/// The serialized model with these tensors as additional outputs: protobuf merges the messages of a repeated field, so
/// `graph { output { name } }` is appended (<https://protobuf.dev/programming-guides/encoding/#last-one-wins>).
pub fn with_outputs(mut model: Vec<u8>, tensors: &[&str]) -> Vec<u8> {
    for tensor in tensors {
        let value_info = field(1, tensor.as_bytes());
        model.extend(field(7, &field(12, &value_info)));
    }
    model
}

/// A length-delimited field of a message.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    let mut length = content.len();
    while length >= 0x80 {
        bytes.push(length as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes.extend_from_slice(content);
    bytes
}
