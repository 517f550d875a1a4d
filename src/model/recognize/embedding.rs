//! Which tensor inside a graph describes what the model sees: the input of the last layer with weights before the
//! scores. For a classifier, this is the vector (or feature map) that its classes are computed from; for a detector,
//! one feature map per level; for DETR, the hidden states of the queries; for Faster R-CNN, the features of its boxes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, Read, Seek};

use serde::{Deserialize, Serialize};

use super::layer_index::{Part, Pick};
use super::signature::{GraphNode, GraphNodes, Integers, read_nodes};
use crate::domain::{BoxEncoder, BoxFeatures, ModelCard, OutputConvention};
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

/// After these, rows are no longer in the order of the layer that computed them.
const SELECTING: [&str; 5] = ["GatherElements", "GatherND", "NonMaxSuppression", "TopK", "Compress"];
const POOLING: [&str; 2] = ["RoiAlign", "MaxRoiPool"];

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmbeddingTensor {
    /// In the graph, or a part of such a tensor, as in `hs[-1]`.
    pub name: String,
    /// The layer that reads it, such as `Gemm /_fc/Gemm`.
    pub layer: String,
    /// What the scores are computed from, if the tensor is a stack.
    #[serde(skip)]
    pub pick: Option<Pick>,
}

impl EmbeddingTensor {
    pub fn new(name: impl Into<String>, layer: impl Into<String>) -> Self {
        Self { name: name.into(), layer: layer.into(), pick: None }
    }
}

/// The tensors of a graph that can describe images and boxes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct EmbeddingTensors {
    /// Those to choose from for an image, the ones nearest to the scores first. Only the card's own, if it names one.
    pub of_image: Vec<EmbeddingTensor>,
    /// The inputs of the last layers before a detector's scores.
    pub before_scores: Vec<EmbeddingTensor>,
    /// The feature maps that a two-stage detector cuts its boxes out of, finest first.
    pub pooled_maps: Vec<EmbeddingTensor>,
    /// Whether the graph sorts or selects its boxes after those layers.
    pub are_boxes_selected: bool,
    /// Whether the scores are a part of several joined tensors, and it is unknown which.
    pub is_layer_unclear: bool,
}

impl EmbeddingTensors {
    /// All of them, some more than once.
    pub fn all(&self) -> impl Iterator<Item = &EmbeddingTensor> {
        self.of_image.iter().chain(&self.before_scores).chain(&self.pooled_maps)
    }

    /// Replaces stacks by their part that the scores are computed from, in the names and in `shapes`.
    pub fn pick(&mut self, shapes: &mut BTreeMap<String, Vec<usize>>) {
        for tensor in self.of_image.iter_mut().chain(&mut self.before_scores) {
            let shape = shapes.get(&tensor.name);
            let part = tensor.pick.zip(shape).and_then(|(pick, shape)| pick.in_stack(&tensor.name, shape));
            if let Some((name, shape)) = part {
                shapes.insert(name.clone(), shape);
                tensor.name = name;
            }
        }
    }

    /// Several vectors for the same thing of which only one describes it, and it is unknown which.
    ///
    /// # Errors
    /// The reason, as a clause.
    pub fn check_layer(
        &self,
        tensors: &[EmbeddingTensor],
        shape_of: impl Fn(&str) -> Option<Vec<usize>>,
        images: usize,
    ) -> Result<(), String> {
        let is_vector =
            |tensor: &&EmbeddingTensor| shape_of(&tensor.name).is_some_and(|shape| is_vector(&shape, images));
        let names: Vec<&str> = tensors.iter().filter(is_vector).map(|tensor| tensor.name.as_str()).collect();
        if self.is_layer_unclear && names.len() > 1 {
            let names = names.join(", ");
            return Err(format!(
                "the graph computes its scores from one of several tensors ({names}), and it is unclear which"
            ));
        }
        Ok(())
    }
}

/// # Errors
/// Why there is none, to follow a colon.
pub fn embedding_tensors(card: &ModelCard, file: impl Read + Seek) -> Result<EmbeddingTensors, String> {
    let mut graph = read_nodes(file).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => "the file is not a plain ONNX file".to_owned(),
        _ => error.to_string(),
    })?;
    for node in &graph.nodes {
        if node.inputs.iter().all(|input| input.is_empty() || graph.constants.contains(input)) {
            graph.constants.extend(node.outputs.iter().cloned());
        }
    }
    let maker_of: BTreeMap<&str, &GraphNode> =
        graph.nodes.iter().flat_map(|node| node.outputs.iter().map(move |output| (output.as_str(), node))).collect();
    let mut tensors = before_scores(card, &graph, &maker_of);
    if matches!(card.output, OutputConvention::Detection(_)) {
        tensors.pooled_maps = pooled_maps(&tensors.before_scores, &maker_of);
    }
    if let Some(wanted) = card.embedding.as_ref().filter(|name| !name.is_empty()) {
        if !maker_of.contains_key(wanted.as_str()) {
            return Err(format!("the graph has no tensor “{wanted}”, which the model card names"));
        }
        let reader = graph.nodes.iter().find(|node| node.inputs.contains(wanted));
        let layer = reader.map_or_else(String::new, layer);
        tensors.of_image = vec![EmbeddingTensor::new(wanted, layer)];
    } else if tensors.of_image.is_empty() {
        return Err(
            "no layer with weights leads to the scores; name a tensor in the model card’s field `embedding`".to_owned()
        );
    }
    Ok(tensors)
}

fn before_scores(card: &ModelCard, graph: &GraphNodes, maker_of: &BTreeMap<&str, &GraphNode>) -> EmbeddingTensors {
    let constants = &graph.constants;
    let outputs: Vec<&str> = match &card.output {
        OutputConvention::Classification(output) => {
            output.name.as_deref().or(graph.first_output.as_deref()).into_iter().collect()
        }
        OutputConvention::Detection(output) => output.scores.outputs.iter().map(String::as_str).collect(),
        OutputConvention::Embedding(_) => Vec::new(),
    };
    let is_value = |input: &&str| !input.is_empty() && !constants.contains(*input);
    let mut pending: VecDeque<(&str, Part)> = outputs.into_iter().map(|output| (output, Part::All)).collect();
    let mut seen = BTreeSet::new();
    let mut found: Vec<EmbeddingTensor> = Vec::new();
    let (mut are_boxes_selected, mut is_layer_unclear) = (false, false);
    while let Some((tensor, part)) = pending.pop_front() {
        let Some(node) = maker_of.get(tensor).filter(|node| seen.insert(node.outputs.first())) else {
            continue;
        };
        let values: Vec<&str> = node.inputs.iter().map(String::as_str).filter(is_value).collect();
        let has_weights = node.inputs.iter().any(|input| constants.contains(input));
        if LAYERS.contains(&node.op.as_str()) && has_weights {
            let name = values.first().copied().unwrap_or_default();
            // The image itself is not described by anything before it.
            if maker_of.contains_key(name) && found.iter().all(|known| known.name != name) {
                found.push(EmbeddingTensor {
                    pick: part.pick().filter(|_| node.op.contains("MatMul")),
                    ..EmbeddingTensor::new(name, layer(node))
                });
            }
            continue;
        }
        are_boxes_selected |= match node.op.as_str() {
            "Gather" => values.len() > 1 || reorders_boxes(node, &graph.integers),
            op => SELECTING.contains(&op),
        };
        let joined = if node.op == "Concat" { part.before_concat(node, maker_of, &graph.integers) } else { None };
        is_layer_unclear |= node.op == "Concat" && joined.is_none();
        let (inputs, part) = joined.unwrap_or_else(|| (values_read(node, values), part.before(node, &graph.integers)));
        pending.extend(inputs.into_iter().map(|input| (input, part)));
    }
    // A classifier has one last layer; others belong to additional heads.
    found.truncate(if matches!(card.output, OutputConvention::Classification(_)) { 1 } else { MAX_CANDIDATES });
    let before_scores = match card.output {
        OutputConvention::Detection(_) => found.clone(),
        OutputConvention::Classification(_) | OutputConvention::Embedding(_) => Vec::new(),
    };
    EmbeddingTensors {
        of_image: found,
        before_scores,
        are_boxes_selected,
        is_layer_unclear,
        ..EmbeddingTensors::default()
    }
}

/// Whether a `Gather` takes several constant indices of `[images, boxes, values]` along the boxes.
fn reorders_boxes(node: &GraphNode, integers: &BTreeMap<String, Integers>) -> bool {
    let axis = node.attributes.get("axis").map(|axis| axis.values.as_slice());
    let indices = node.inputs.get(1).and_then(|name| integers.get(name));
    axis == Some(&[1]) && indices.is_some_and(|indices| indices.values.len() > 1)
}

/// The inputs whose values are in the output; `values` are those that are not constant.
fn values_read<'g>(node: &'g GraphNode, values: Vec<&'g str>) -> Vec<&'g str> {
    let inputs = node.inputs.iter().map(String::as_str);
    match node.op.as_str() {
        "NonMaxSuppression" => inputs.skip(1).take(1).collect(),
        "Where" => inputs.skip(1).collect(),
        op if OF_FIRST_INPUT.contains(&op) => inputs.take(1).collect(),
        _ => values,
    }
}

/// The maps that `RoiAlign` reads on the way to these tensors.
fn pooled_maps(from: &[EmbeddingTensor], maker_of: &BTreeMap<&str, &GraphNode>) -> Vec<EmbeddingTensor> {
    let mut pending: Vec<&str> = from.iter().map(|tensor| tensor.name.as_str()).collect();
    let mut seen = BTreeSet::new();
    let mut found: Vec<EmbeddingTensor> = Vec::new();
    while let Some(tensor) = pending.pop() {
        let Some(node) = maker_of.get(tensor).filter(|node| seen.insert(node.outputs.first())) else {
            continue;
        };
        match (POOLING.contains(&node.op.as_str()), node.inputs.first()) {
            (true, Some(map)) if found.iter().all(|known| known.name != *map) => {
                found.push(EmbeddingTensor::new(map, layer(node)));
            }
            (true, _) => {}
            (false, _) => pending.extend(node.inputs.iter().map(String::as_str)),
        }
    }
    found.truncate(MAX_CANDIDATES);
    found
}

fn layer(node: &GraphNode) -> String {
    format!("{} {}", node.op, node.name).trim_end().to_owned()
}

/// The candidate for an image as a whole, by the tensors that a call with `images` images returned: the first with a
/// vector per image, box or query; otherwise the coarsest feature map with a stride up to 32, `input` being the width
/// and height of the model's input in pixels.
pub fn choose_embedding(shapes: &[Option<Vec<usize>>], images: usize, input: [u32; 2]) -> Option<usize> {
    let is_vector = |shape: &Vec<usize>| is_vector(shape, images);
    let first_vector = shapes.iter().position(|shape| shape.as_ref().is_some_and(is_vector));
    let stride = |shape: &Vec<usize>| stride(shape, images, input).filter(|stride| *stride < MAX_STRIDE);
    let strides = shapes.iter().enumerate().filter_map(|(index, shape)| Some((index, stride(shape.as_ref()?)?)));
    let coarsest = strides.reduce(|best, next| if next.1 > best.1 { next } else { best });
    let any =
        || shapes.iter().position(|shape| shape.as_ref().is_some_and(|shape| embedding_dims(shape, images).is_some()));
    match shapes.first() {
        Some(Some(shape)) if is_vector(shape) => Some(0),
        _ => coarsest.map(|(index, _)| index).or(first_vector).or_else(any),
    }
}

/// Whether a tensor has a vector per image, box or query.
fn is_vector(shape: &[usize], images: usize) -> bool {
    matches!(shape.len(), 2 | 3) && embedding_dims(shape, images).is_some()
}

/// The pixels of the input per cell of a feature map; `None` for a tensor of another kind.
fn stride(shape: &[usize], images: usize, input: [u32; 2]) -> Option<f64> {
    let &[first, _, height, width] = shape else {
        return None;
    };
    embedding_dims(shape, images)?;
    let [across, down] = [f64::from(input[0]) / width as f64, f64::from(input[1]) / height as f64];
    // A map whose cells are no squares is not one of pixels.
    let is_map = first == images && across / down < 1.5 && down / across < 1.5 && height.min(width) > 1;
    is_map.then_some(across.max(down))
}

/// What describes the boxes of a detector, by the shapes of the tensors that a call with `images` images returned:
/// the maps that its second stage reads; or the vector of each of its `candidates`; or the map of the last layers whose
/// stride is nearest to 16. Only one of those, because each level has its own weights, and their vectors cannot be
/// compared.
///
/// # Errors
/// Why there is none, as a clause.
pub fn choose_box_features(
    tensors: &EmbeddingTensors,
    shape_of: impl Fn(&str) -> Option<Vec<usize>>,
    images: usize,
    input: [u32; 2],
    candidates: Option<usize>,
) -> Result<BoxEncoder, String> {
    const BEST_STRIDE: f64 = 16.0;
    let channels = |tensor: &EmbeddingTensor| match shape_of(&tensor.name)?.as_slice() {
        &[first, channels, _, _] if first == images => Some(channels),
        _ => None,
    };
    let pooled: Option<Vec<usize>> = tensors.pooled_maps.iter().map(channels).collect();
    if let Some([dims, rest @ ..]) = pooled.as_deref()
        && rest.iter().all(|other| other == dims)
    {
        let mut maps = tensors.pooled_maps.clone();
        maps.sort_by_key(|tensor| std::cmp::Reverse(shape_of(&tensor.name).map_or(0, |shape| shape[2] * shape[3])));
        let names = maps.into_iter().map(|tensor| tensor.name).collect();
        return Ok(BoxEncoder { features: BoxFeatures::Maps(names), dims: *dims });
    }
    tensors.check_layer(&tensors.before_scores, &shape_of, images)?;
    let vectors = tensors.before_scores.first().and_then(|tensor| Some((tensor, shape_of(&tensor.name)?)));
    let dims = vectors.as_ref().and_then(|(_, shape)| match *shape.as_slice() {
        [first, rows, dims] if first == images && Some(rows) == candidates => Some(dims),
        [rows, dims] if images == 1 && Some(rows) == candidates => Some(dims),
        _ => None,
    });
    if let (Some((tensor, _)), Some(dims), false) = (&vectors, dims, tensors.are_boxes_selected) {
        return Ok(BoxEncoder { features: BoxFeatures::Candidates(tensor.name.clone()), dims });
    }
    let distance =
        |tensor: &EmbeddingTensor| Some((stride(&shape_of(&tensor.name)?, images, input)? / BEST_STRIDE).log2().abs());
    let maps = tensors.before_scores.iter().filter_map(|tensor| Some((tensor, channels(tensor)?, distance(tensor)?)));
    match maps.min_by(|left, right| left.2.total_cmp(&right.2)) {
        Some((tensor, dims, _)) => Ok(BoxEncoder { features: BoxFeatures::Maps(vec![tensor.name.clone()]), dims }),
        None if tensors.are_boxes_selected => {
            Err("the graph selects its boxes after it computed their features".to_owned())
        }
        None => Err("no feature map and no vector per box is the input of the last layers".to_owned()),
    }
}

/// The serialized model with these tensors as additional outputs: protobuf merges the messages of a repeated field, so
/// `graph { output { name } }` is appended (<https://protobuf.dev/programming-guides/encoding/#last-one-wins>). For a part
/// of a tensor, such as `hs[-1]`, a node `Gather` is also appended.
pub fn with_outputs(mut model: Vec<u8>, tensors: &[&str]) -> Vec<u8> {
    for tensor in tensors {
        let is_in_graph = || model.windows(tensor.len()).any(|bytes| bytes == tensor.as_bytes());
        if let Some((stack, pick)) = Pick::parse(tensor).filter(|_| !is_in_graph()) {
            model.extend(field(7, &picked(stack, pick, tensor)));
        }
        let value_info = field(1, tensor.as_bytes());
        model.extend(field(7, &field(12, &value_info)));
    }
    model
}

/// The graph `initializer { dims: 1 ... }, node { op_type: "Gather" ... }` that computes a part of a tensor.
fn picked(stack: &str, pick: Pick, output: &str) -> Vec<u8> {
    const INT: u8 = 2;
    const INT64: u8 = 7;
    let index = format!("{output} index");
    let axis = [field(1, b"axis"), vec![3 << 3, pick.axis() as u8, 20 << 3 | 128, 1, INT]].concat();
    let node =
        [field(1, stack.as_bytes()), field(1, index.as_bytes()), field(2, output.as_bytes()), field(4, b"Gather")];
    let tensor = [vec![2 << 3, INT64], field(8, index.as_bytes()), field(9, &pick.index().to_le_bytes())];
    [field(5, &tensor.concat()), field(1, &[node.concat(), field(5, &axis)].concat())].concat()
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
