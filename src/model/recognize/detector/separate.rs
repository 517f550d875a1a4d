//! Boxes, classes and scores in separate outputs, distinguished by shapes, types and values.

use super::boxes::are_normalized;
use super::{Found, MAX_FINAL_ROWS};
use crate::domain::{DetectionOutput, Layout};
use crate::model::recognize::probe::Prober;
use crate::model::recognize::signature::{GraphSignature, Port};
use crate::model::recognize::usual::Usual;
use crate::model::recognize::{Overrules, Refusal};
use crate::model::{Tensor, TensorData};

/// Words in the names of outputs with classes.
const LABEL_WORDS: [&str; 2] = ["class", "label"];

/// An output, and why it has this role.
#[derive(Debug)]
struct Role<'g> {
    port: &'g Port,
    because: String,
    by_name_only: bool,
}

/// The kind of values in an output with one number per box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    WholeType,
    /// Floats that are whole numbers, some above 1.
    WholeValues,
    /// Floats in `0.0..=1.0`, some of them fractions.
    Fractions,
    /// Floats that are all 0 or 1, or no values: classes or scores.
    Either,
    Neither,
}

/// Boxes with one class and one score each; `None` if the graph has no such outputs.
///
/// # Errors
/// Outputs that qualify but cannot be distinguished.
pub(super) fn find(
    graph: &GraphSignature,
    overrules: &Overrules,
    prober: &Prober<'_, '_>,
) -> Result<Option<Found>, Refusal> {
    let mut found = Vec::new();
    let mut problem = None;
    let wanted = overrules.text("output.detection.boxes");
    for boxes in &graph.outputs {
        if wanted.is_some_and(|name| name != boxes.name) || !could_be_boxes(boxes, prober) {
            continue;
        }
        match around(boxes, graph, overrules, prober) {
            Ok(Some(detector)) => found.push((boxes, detector)),
            Ok(None) => {}
            Err(refusal) => problem = Some(refusal),
        }
    }
    // There are more raw boxes before non-maximum suppression than after it.
    found.sort_by_key(|(boxes, _)| prober.values_of(&boxes.name).map(Tensor::len).sum::<usize>());
    match (found.into_iter().next(), problem) {
        (Some((_, detector)), _) => Ok(Some(detector)),
        (None, Some(refusal)) => Err(refusal),
        (None, None) => Ok(None),
    }
}

/// The detector with these boxes; `None` if their classes or scores are missing.
fn around(
    boxes: &Port,
    graph: &GraphSignature,
    overrules: &Overrules,
    prober: &Prober<'_, '_>,
) -> Result<Option<Found>, Refusal> {
    let of_box: Vec<(&Port, Kind)> = graph
        .outputs
        .iter()
        .filter(|port| port.name != boxes.name && has_one_number_a_box(port, boxes, prober))
        .filter(|port| !is_count(port, boxes, prober))
        .map(|port| (port, kind(port, boxes, prober)))
        .collect();
    let count = graph.outputs.iter().find(|port| is_count(port, boxes, prober));
    match (&of_box[..], count) {
        ([(scores, Kind::Fractions | Kind::Either)], Some(count)) => {
            return Ok(Some(single_class(boxes, scores, count)));
        }
        ([] | [_], _) => return Ok(None),
        _ => {}
    }
    let place = |name: &str| graph.outputs.iter().position(|port| port.name == name);
    let are_boxes_first = place(&boxes.name) < place(&of_box[0].0.name);
    let scores = find_scores(&of_box, are_boxes_first, overrules, prober)?;
    let classes = class_count_of(graph, boxes, prober);
    let labels = find_labels(&of_box, &scores, classes, overrules, prober)?;
    let mut found = Found::new(DetectionOutput {
        count: count.map(|port| port.name.clone()),
        max_boxes_in_graph: max_boxes(boxes),
        ..DetectionOutput::separate(&boxes.name, &labels.port.name, &scores.port.name)
    });
    found.because = format!("{boxes} has four numbers per box, with classes and scores for as many boxes");
    found.classes = classes;
    found.part("boxes", &boxes.name, true, "four numbers per box");
    for (field, role) in [("labels", &labels), ("scores", &scores)] {
        found.part(field, &role.port.name, !role.by_name_only, &role.because);
    }
    if let Some(count) = count {
        found.part("count", &count.name, true, "one whole number, never above the number of boxes");
    }
    let rows = prober.values_of(&boxes.name).map(|tensor| tensor.len() / 4).max().unwrap_or_default();
    if rows > MAX_FINAL_ROWS {
        found.output.nms_iou = Some(0.45);
    } else if let Some(limit) = found.output.max_boxes_in_graph {
        found.part("max_boxes_in_graph", &limit.to_string(), true, "the graph fixes the number of boxes");
    }
    found.is_final = true;
    found.usual = usual(boxes, rows, &found, graph, prober);
    Ok(Some(found))
}

/// A graph that counts the boxes that it keeps and knows a single class (YOLO-NAS-POSE).
fn single_class(boxes: &Port, scores: &Port, count: &Port) -> Found {
    let mut found = Found::new(DetectionOutput {
        labels: None,
        count: Some(count.name.clone()),
        max_boxes_in_graph: max_boxes(boxes),
        ..DetectionOutput::separate(&boxes.name, "", &scores.name)
    });
    found.because = format!("{boxes} has four numbers per box, {scores} one score, and {count} counts the boxes");
    found.classes = Some(1);
    found.part("boxes", &boxes.name, true, "four numbers per box");
    found.part("scores", &scores.name, true, "numbers from 0 to 1, one per box");
    found.part("count", &count.name, true, "one whole number, never above the number of boxes");
    found.is_final = true;
    found
}

/// The exporter of graphs with such boxes, if there is evidence.
fn usual(boxes: &Port, rows: usize, found: &Found, graph: &GraphSignature, prober: &Prober<'_, '_>) -> Option<Usual> {
    let [width, height] = prober.size().map(f64::from);
    let is_size = |port: &&Port| prober.values_of(&port.name).all(|tensor| tensor.to_f64() == [height, width]);
    let takes_any_size = prober.sizes().width.is_none();
    let are_shares = are_normalized(&found.rows(prober));
    let ends_like_yolo = (found.output.count.is_some() || rows > MAX_FINAL_ROWS) && prober.auxiliary().is_empty();
    match prober.layout() {
        _ if boxes.name.starts_with("filtered_detections") => Some(Usual::KerasRetinaNet),
        Layout::Nchw if boxes.name == "detected_boxes" => Some(Usual::CustomVision),
        Layout::Nchw if are_shares == Some(true) && found.output.count.is_none() && rows <= MAX_FINAL_ROWS => {
            Some(Usual::MlPerfSsd)
        }
        Layout::Nhwc if are_shares != Some(false) && !takes_any_size => Some(Usual::TensorFlowLite),
        Layout::Chw if graph.outputs.iter().any(|port| is_size(&port)) => Some(Usual::Detectron2),
        Layout::Nchw if ends_like_yolo && are_shares != Some(true) => Some(Usual::Yolo),
        _ => None,
    }
}

fn max_boxes(boxes: &Port) -> Option<u32> {
    let dims = &boxes.dims;
    let fixed = dims.get(dims.len().checked_sub(2)?)?.fixed()?;
    u32::try_from(fixed).ok()
}

/// Whether every run returned `[n, 4]` or `[1, n, 4]` floats that are not a row of probabilities. With three classes
/// and a background, TensorFlow's `detection_multiclass_scores` have this shape as well.
pub(super) fn could_be_boxes(port: &Port, prober: &Prober<'_, '_>) -> bool {
    let mut tensors = prober.values_of(&port.name).peekable();
    tensors.peek().is_some()
        && !port.name.to_lowercase().contains("score")
        && tensors.all(|tensor| {
            let four_a_row = matches!(tensor.shape[..], [_, 4] | [1, _, 4] | [1, _, 1, 4]);
            let is_float = matches!(tensor.data, TensorData::F32(_));
            let values = tensor.to_f64();
            let is_probability =
                |row: &[f64]| row.iter().all(|value| *value >= 0.0) && (row.iter().sum::<f64>() - 1.0).abs() < 1e-3;
            let probabilities = !values.is_empty() && values.chunks_exact(4).all(is_probability);
            four_a_row && is_float && !probabilities
        })
}

/// Whether the output's shape is that of the boxes without the four, or with a one in its place, in every run.
fn has_one_number_a_box(port: &Port, boxes: &Port, prober: &Prober<'_, '_>) -> bool {
    let tensors = prober.values_of(&port.name);
    let mut pairs = tensors.zip(prober.values_of(&boxes.name)).peekable();
    let fits = |tensor: &Tensor, boxes: &Tensor| {
        let rows = &boxes.shape[..boxes.shape.len() - 1];
        let of_boxes = tensor.shape.strip_suffix(&[1]).filter(|_| tensor.shape.len() > rows.len());
        of_boxes.unwrap_or(&tensor.shape) == rows
    };
    pairs.peek().is_some() && pairs.all(|(tensor, boxes)| fits(tensor, boxes))
}

fn kind(port: &Port, boxes: &Port, prober: &Prober<'_, '_>) -> Kind {
    let is_whole_type = |tensor: &Tensor| !matches!(tensor.data, TensorData::F32(_));
    // Some graphs pad with boxes of -1 (YOLO-NAS, GluonCV) or 0 (MMYOLO, YOLO-World, whose class is then -1).
    let is_box = |edges: &[f64]| edges.iter().any(|edge| *edge != edges[0]);
    let runs = prober.values_of(&port.name).zip(prober.values_of(&boxes.name));
    let values: Vec<f64> = runs
        .flat_map(|(tensor, boxes)| {
            let boxes = boxes.to_f64();
            let values = tensor.to_f64().into_iter().enumerate();
            values.filter(move |(row, _)| boxes.get(row * 4..row * 4 + 4).is_some_and(is_box))
        })
        .map(|(_, value)| value)
        .collect();
    if values.iter().any(|value| !value.is_finite() || *value < 0.0) {
        Kind::Neither
    } else if prober.values_of(&port.name).any(is_whole_type) {
        Kind::WholeType
    } else if values.iter().all(|value| value.fract() == 0.0) {
        if values.iter().any(|value| *value > 1.0) { Kind::WholeValues } else { Kind::Either }
    } else if values.iter().all(|value| *value <= 1.0) {
        Kind::Fractions
    } else {
        Kind::Neither
    }
}

/// Whether the output is a count of boxes: one whole number per image, at most the number of boxes, and not one per
/// box. With a single box, the name decides.
fn is_count(port: &Port, boxes: &Port, prober: &Prober<'_, '_>) -> bool {
    let mut pairs = prober.values_of(&port.name).zip(prober.values_of(&boxes.name)).peekable();
    let is_of_image = || port.name.starts_with("num") || !has_one_number_a_box(port, boxes, prober);
    pairs.peek().is_some()
        && is_of_image()
        && pairs.all(|(tensor, boxes)| {
            let limit = (boxes.len() / 4) as f64;
            matches!(tensor.to_f64()[..], [count] if count.fract() == 0.0 && (0.0..=limit).contains(&count))
        })
}

fn chosen<'g>(of_box: &[(&'g Port, Kind)], overrules: &Overrules, field: &str) -> Option<Role<'g>> {
    let name = overrules.text(field)?;
    let (port, _) = of_box.iter().find(|(port, _)| port.name == name)?;
    Some(Role { port, because: "set by you".to_owned(), by_name_only: false })
}

fn find_scores<'g>(
    of_box: &[(&'g Port, Kind)],
    are_boxes_first: bool,
    overrules: &Overrules,
    prober: &Prober<'_, '_>,
) -> Result<Role<'g>, Refusal> {
    if let Some(role) = chosen(of_box, overrules, "output.detection.scores") {
        return Ok(role);
    }
    let of_kind = |kind: Kind| -> Vec<&'g Port> {
        of_box.iter().filter(|(_, other)| *other == kind).map(|(port, _)| *port).collect()
    };
    let mut fractions = of_kind(Kind::Fractions);
    if fractions.len() > 1 && fractions.iter().any(|port| falls(port, prober)) {
        fractions.retain(|port| falls(port, prober));
    }
    match (&fractions[..], &of_kind(Kind::Either)[..]) {
        ([port], _) => Ok(Role { port, because: "fractions from 0 to 1, one per box".to_owned(), by_name_only: false }),
        ([], [port]) => Ok(Role {
            port,
            because: "floats, one per box, and no other output could be scores".to_owned(),
            by_name_only: false,
        }),
        ([], []) => Err(Refusal::new("no output other than the boxes contains scores from 0 to 1, one per box")),
        ([], several) | (several, _) => {
            let role = by_name(several, &["score"], "output.detection.scores");
            // TensorFlow Lite's names say nothing; the order is boxes, classes, scores, or the other way around.
            let last = if are_boxes_first { several.last() } else { several.first() };
            let because = "by its place: classes are mostly next to the boxes, scores follow; the test images had too few \
                boxes to compare values";
            match last {
                Some(port) if role.is_err() && several.len() == 2 => {
                    Ok(Role { port, because: because.to_owned(), by_name_only: true })
                }
                _ => role,
            }
        }
    }
}

fn find_labels<'g>(
    of_box: &[(&'g Port, Kind)],
    scores: &Role<'_>,
    classes: Option<usize>,
    overrules: &Overrules,
    prober: &Prober<'_, '_>,
) -> Result<Role<'g>, Refusal> {
    if let Some(role) = chosen(of_box, overrules, "output.detection.labels") {
        return Ok(role);
    }
    let mut candidates: Vec<(&Port, Kind, f64)> = of_box
        .iter()
        .filter(|(port, kind)| {
            port.name != scores.port.name && matches!(kind, Kind::WholeType | Kind::WholeValues | Kind::Either)
        })
        .map(|(port, kind)| {
            let max = prober.values_of(&port.name).flat_map(Tensor::to_f64).fold(0.0, f64::max);
            (*port, *kind, max)
        })
        .collect();
    let is_named = |port: &Port| LABEL_WORDS.iter().any(|word| port.name.to_lowercase().contains(word));
    if candidates.iter().any(|(port, ..)| is_named(port)) {
        candidates.retain(|(port, ..)| is_named(port));
    }
    // Anchor numbers are also whole, but range up to the number of anchors.
    if let Some(classes) = classes.filter(|_| candidates.len() > 1) {
        candidates.retain(|(_, _, max)| *max <= classes as f64);
    }
    candidates.sort_by(|left, right| left.2.total_cmp(&right.2));
    match &candidates[..] {
        [] => Err(Refusal::new(
            "no output other than the boxes contains whole numbers, one per box, that could be \
                classes",
        )),
        [(port, kind, _)] => {
            let by_name_only = scores.by_name_only && *kind == Kind::Either;
            Ok(Role { port, because: label_reason(*kind), by_name_only })
        }
        [(port, kind, max), (_, _, next), ..] if max < next => Ok(Role {
            port,
            because: format!("{}; it has the lowest values of the outputs with whole numbers", label_reason(*kind)),
            by_name_only: false,
        }),
        several => {
            let ports: Vec<&Port> = several.iter().map(|(port, _, _)| *port).collect();
            by_name(&ports, &LABEL_WORDS, "output.detection.labels")
        }
    }
}

fn label_reason(kind: Kind) -> String {
    match kind {
        Kind::WholeType => "whole numbers by type, one per box",
        _ => "floats that are all whole numbers, one per box",
    }
    .to_owned()
}

/// The last resort if the values of several outputs allow the same role.
fn by_name<'g>(ports: &[&'g Port], words: &[&str], field: &str) -> Result<Role<'g>, Refusal> {
    let is_named = |port: &&&Port| words.iter().any(|word| port.name.to_lowercase().contains(word));
    let named: Vec<&&Port> = ports.iter().filter(is_named).collect();
    if let [port] = named[..] {
        return Ok(Role {
            port,
            because: "by its name; the test images had too few boxes to compare values".to_owned(),
            by_name_only: true,
        });
    }
    let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
    Err(Refusal::new(format!("{} cannot be distinguished by their values: choose one with {field}", ports.join(", "))))
}

/// Whether the values never rise within a run, like the scores of sorted boxes.
fn falls(port: &Port, prober: &Prober<'_, '_>) -> bool {
    prober.values_of(&port.name).all(|tensor| tensor.to_f64().is_sorted_by(|left, right| left >= right))
}

/// The number of classes, if another output has a score for each class of each box.
fn class_count_of(graph: &GraphSignature, boxes: &Port, prober: &Prober<'_, '_>) -> Option<usize> {
    let of_boxes = &prober.values_of(&boxes.name).next()?.shape;
    let ports = graph.outputs.iter().filter(|port| port.name != boxes.name);
    let tables = ports.filter_map(|port| prober.values_of(&port.name).next());
    let mut classes = tables.filter_map(|table| {
        let (classes, rows) = table.shape.split_last()?;
        let is_of_boxes = of_boxes.split_last().is_some_and(|(_, boxes)| boxes == rows);
        let is_float = matches!(table.data, TensorData::F32(_));
        (is_of_boxes && is_float && *classes > 4).then_some(*classes)
    });
    classes.next()
}
