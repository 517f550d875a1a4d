//! Outputs of detectors: boxes, classes and scores, each an output of its own.

use super::finding::{Findings, Refusal};
use super::labels::{self, LABEL_FILE, label_count, misfit};
use super::probe::Prober;
use super::signature::{GraphSignature, Port};
use super::{OutputPrediction, Overrules, RecogniseError, RecognitionRequest};
use crate::domain::{BoundingBox, BoxFormat, BoxSpace, DetectionOutput, LabelSet, OutputConvention};
use crate::vision::{Tensor, TensorData};

/// Boxes whose largest value is above this are in pixels.
const MAX_NORMALISED: f64 = 1.5;
/// How far the best box has to move, as a share of the image, to follow the patch of the probes.
const MIN_MOVE: f64 = 0.15;

/// The outputs of a detector, distinguished by shapes, types and values.
#[derive(Debug)]
pub(super) struct Detector<'g> {
    boxes: &'g Port,
    labels: Role<'g>,
    scores: Role<'g>,
    count: Option<&'g Port>,
}

/// An output and why it has this part.
#[derive(Debug)]
struct Role<'g> {
    port: &'g Port,
    because: String,
    by_name_only: bool,
}

/// One box that a test run gave.
#[derive(Debug, Clone, Copy)]
struct Row {
    /// The edges in the graph's own order and space.
    edges: [f64; 4],
    class: f64,
    score: f64,
}

/// What the values of an output with one number a box can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The output has an integer type.
    WholeType,
    /// Floats that are whole numbers, some above 1.
    WholeValues,
    /// Floats in `0.0..=1.0`, some of them fractions.
    Fractions,
    /// Floats that are all 0 or 1, or none at all: classes or scores.
    Either,
    Neither,
}

impl<'g> Detector<'g> {
    /// `None` if the graph is not a detector.
    ///
    /// # Errors
    /// A detector whose boxes cannot be read, or whose outputs cannot be distinguished.
    pub(super) fn find(
        graph: &'g GraphSignature,
        overrules: &Overrules,
        prober: &Prober<'_, '_>,
    ) -> Result<Option<Self>, Refusal> {
        let mut found = Vec::new();
        let mut problem = None;
        let wanted = overrules.text("output.detection.boxes");
        for boxes in &graph.outputs {
            if wanted.is_some_and(|name| name != boxes.name) || !could_be_boxes(boxes, prober) {
                continue;
            }
            match Self::around(boxes, graph, overrules, prober) {
                Ok(Some(detector)) => found.push(detector),
                Ok(None) => {}
                Err(refusal) => problem = Some(refusal),
            }
        }
        // Raw boxes before non-maximum suppression are more than those after it.
        let number = |detector: &Self| prober.values_of(&detector.boxes.name).map(Tensor::len).sum::<usize>();
        found.sort_by_key(number);
        match (found.into_iter().next(), problem) {
            (Some(detector), _) if !detector.has_corners(prober) => Err(Refusal::new(format!(
                "the boxes of {} are not given by two corners (perhaps by centre and size): export the model with \
                boxes as left, top, right, bottom",
                detector.boxes
            ))),
            (Some(detector), _) => Ok(Some(detector)),
            (None, Some(refusal)) => Err(refusal),
            (None, None) => Ok(None),
        }
    }

    /// The detector with these boxes; `None` if their classes or scores are missing.
    fn around(
        boxes: &'g Port,
        graph: &'g GraphSignature,
        overrules: &Overrules,
        prober: &Prober<'_, '_>,
    ) -> Result<Option<Self>, Refusal> {
        let of_box: Vec<(&Port, Kind)> = graph
            .outputs
            .iter()
            .filter(|port| port.name != boxes.name && has_one_number_a_box(port, boxes, prober))
            .map(|port| (port, kind(port, prober)))
            .collect();
        if of_box.len() < 2 {
            return Ok(None);
        }
        let count = graph.outputs.iter().find(|port| is_count(port, boxes, prober));
        let scores = find_scores(&of_box, overrules, prober)?;
        let classes = class_count_of(graph, boxes, prober);
        let labels = find_labels(&of_box, scores.port, classes, overrules, prober)?;
        Ok(Some(Self { boxes, labels, scores, count }))
    }

    /// The boxes that count in each run, in the graph's order.
    fn rows(&self, prober: &Prober<'_, '_>) -> Vec<Vec<Row>> {
        let runs = 0..prober.predictions.len();
        let values = |port: &Port, run: usize| {
            let tensor = prober.predictions[run].get(&port.name);
            tensor.map(Tensor::to_f64).unwrap_or_default()
        };
        let rows_of = |run| {
            let counted = self.count.and_then(|port| values(port, run).first().copied());
            let limit = counted.map_or(usize::MAX, |count| count as usize);
            let (boxes, classes, scores) =
                (values(self.boxes, run), values(self.labels.port, run), values(self.scores.port, run));
            let numbers = boxes.chunks_exact(4).zip(classes).zip(scores).take(limit);
            let rows = numbers.map(|((edges, class), score)| Row {
                edges: [edges[0], edges[1], edges[2], edges[3]],
                class,
                score,
            });
            // Graphs of fixed size fill up with zeros.
            rows.filter(|row| row.score > 0.0).collect()
        };
        runs.map(rows_of).collect()
    }

    /// Whether the second corner is right of and below the first one.
    fn has_corners(&self, prober: &Prober<'_, '_>) -> bool {
        let rows: Vec<_> = self.rows(prober).concat();
        let ordered = rows.iter().filter(|Row { edges, .. }| edges[2] >= edges[0] && edges[3] >= edges[1]).count();
        // A few untrained or degenerate boxes are no other convention.
        ordered * 50 >= rows.len() * 49
    }

    pub(super) fn recognise(
        self,
        model: &RecognitionRequest<'_>,
        prober: &mut Prober<'_, '_>,
        findings: &mut Findings,
    ) -> Result<OutputPrediction, RecogniseError> {
        if self.rows(prober).iter().any(Vec::is_empty) {
            prober.run_unscaled();
        }
        let side_multiple = prober.side_multiple().unwrap_or(1);
        findings.recognised(
            "task",
            "detection",
            format!("{} has four numbers per box, with classes and scores for as many boxes", self.boxes),
        );
        findings.recognised("output.detection.boxes", &self.boxes.name, "four numbers per box");
        for (field, role) in [("labels", &self.labels), ("scores", &self.scores)] {
            let field = format!("output.detection.{field}");
            if role.by_name_only {
                findings.assumed(&field, &role.port.name, role.because.clone());
            } else {
                findings.recognised(&field, &role.port.name, role.because.clone());
            }
        }
        if let Some(count) = self.count {
            findings.recognised(
                "output.detection.count",
                &count.name,
                "one whole number, never above the number of boxes",
            );
        }
        let rows = self.rows(prober);
        let box_space = recognise_space(&rows, findings);
        let box_format = recognise_format(&rows, box_space, prober.size(), findings);
        let max_boxes = self.max_boxes();
        if let Some(limit) = max_boxes {
            findings.recognised("output.detection.max_boxes_in_graph", limit, "the graph fixes the number of boxes");
        }
        let naming = self.name_classes(model, &rows, side_multiple, prober, findings)?;
        Ok(OutputPrediction {
            ignored_outputs: self.ignored(model),
            convention: OutputConvention::Detection(DetectionOutput {
                count: self.count.map(|port| port.name.clone()),
                box_format,
                box_space,
                class_offset: naming.offset,
                max_boxes_in_graph: max_boxes,
                ..DetectionOutput::separate(&self.boxes.name, &self.labels.port.name, &self.scores.port.name)
            }),
            label_set: naming.label_set,
            labels_to_store: naming.labels_to_store,
            side_multiple,
        })
    }

    fn max_boxes(&self) -> Option<u32> {
        let dims = &self.boxes.dims;
        let fixed = dims.get(dims.len().checked_sub(2)?)?.fixed()?;
        u32::try_from(fixed).ok()
    }

    fn ignored(&self, model: &RecognitionRequest<'_>) -> Vec<String> {
        let used = [Some(self.boxes), Some(self.labels.port), Some(self.scores.port), self.count];
        let outputs = model.graph.outputs.iter();
        outputs.filter(|port| !used.contains(&Some(*port))).map(|port| port.name.clone()).collect()
    }
}

/// Whether every run gave `[n, 4]` or `[1, n, 4]` floats that are not a row of probabilities.
fn could_be_boxes(port: &Port, prober: &Prober<'_, '_>) -> bool {
    let mut tensors = prober.values_of(&port.name).peekable();
    tensors.peek().is_some()
        && tensors.all(|tensor| {
            let four_a_row = matches!(tensor.shape[..], [_, 4] | [1, _, 4]);
            let is_float = matches!(tensor.data, TensorData::F32(_));
            let values = tensor.to_f64();
            let is_probability =
                |row: &[f64]| row.iter().all(|value| *value >= 0.0) && (row.iter().sum::<f64>() - 1.0).abs() < 1e-3;
            let probabilities = !values.is_empty() && values.chunks_exact(4).all(is_probability);
            four_a_row && is_float && !probabilities
        })
}

/// Whether the output's shape is that of the boxes without the four, in every run.
fn has_one_number_a_box(port: &Port, boxes: &Port, prober: &Prober<'_, '_>) -> bool {
    let tensors = prober.values_of(&port.name);
    let mut pairs = tensors.zip(prober.values_of(&boxes.name)).peekable();
    pairs.peek().is_some() && pairs.all(|(tensor, boxes)| tensor.shape == boxes.shape[..boxes.shape.len() - 1])
}

fn kind(port: &Port, prober: &Prober<'_, '_>) -> Kind {
    let is_whole_type = |tensor: &Tensor| !matches!(tensor.data, TensorData::F32(_));
    let values: Vec<f64> = prober.values_of(&port.name).flat_map(Tensor::to_f64).collect();
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
/// box.
fn is_count(port: &Port, boxes: &Port, prober: &Prober<'_, '_>) -> bool {
    let mut pairs = prober.values_of(&port.name).zip(prober.values_of(&boxes.name)).peekable();
    pairs.peek().is_some()
        && !has_one_number_a_box(port, boxes, prober)
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
        ([], []) => Err(Refusal::new("no output besides the boxes contains scores from 0 to 1, one per box")),
        ([], several) | (several, _) => by_name(several, "score", "output.detection.scores"),
    }
}

fn find_labels<'g>(
    of_box: &[(&'g Port, Kind)],
    scores: &Port,
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
            port.name != scores.name && matches!(kind, Kind::WholeType | Kind::WholeValues | Kind::Either)
        })
        .map(|(port, kind)| {
            let max = prober.values_of(&port.name).flat_map(Tensor::to_f64).fold(0.0, f64::max);
            (*port, *kind, max)
        })
        .collect();
    // Numbers of anchors are whole too, but go up to the number of anchors.
    if let Some(classes) = classes.filter(|_| candidates.len() > 1) {
        candidates.retain(|(_, _, max)| *max <= classes as f64);
    }
    candidates.sort_by(|left, right| left.2.total_cmp(&right.2));
    match &candidates[..] {
        [] => {
            Err(Refusal::new("no output besides the boxes contains whole numbers, one per box, that could be classes"))
        }
        [(port, kind, _)] => Ok(Role { port, because: label_reason(*kind), by_name_only: false }),
        [(port, kind, max), (_, _, next), ..] if max < next => Ok(Role {
            port,
            because: format!("{}; of the outputs with whole numbers it has the lowest", label_reason(*kind)),
            by_name_only: false,
        }),
        several => {
            let ports: Vec<&Port> = several.iter().map(|(port, _, _)| *port).collect();
            by_name(&ports, "class", "output.detection.labels")
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

/// The last resort, if the values of several outputs allow the same part.
fn by_name<'g>(ports: &[&'g Port], word: &str, field: &str) -> Result<Role<'g>, Refusal> {
    let named: Vec<&&Port> = ports.iter().filter(|port| port.name.to_lowercase().contains(word)).collect();
    if let [port] = named[..] {
        return Ok(Role {
            port,
            because: "by its name; the test images gave too few boxes to compare values".to_owned(),
            by_name_only: true,
        });
    }
    let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
    Err(Refusal::new(format!("the values do not show which of {} is which: choose with {field}", ports.join(", "))))
}

/// Whether the values never rise within a run, as scores of sorted boxes do.
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

fn recognise_space(runs: &[Vec<Row>], findings: &mut Findings) -> BoxSpace {
    let edges = runs.iter().flatten().flat_map(|row| row.edges);
    let field = "output.detection.box_space";
    match edges.reduce(f64::max) {
        Some(largest) if largest <= MAX_NORMALISED => {
            findings.recognised(field, "normalised", format!("the largest box value is {largest:.3}"));
            BoxSpace::Normalised
        }
        Some(largest) => {
            findings.recognised(field, "model-pixels", format!("the largest box value is {largest:.1}"));
            BoxSpace::ModelPixels
        }
        None => {
            findings.assumed(field, "model-pixels", "the test images gave no boxes; most detectors return pixels");
            BoxSpace::ModelPixels
        }
    }
}

fn recognise_format(
    runs: &[Vec<Row>],
    space: BoxSpace,
    [width, height]: [u32; 2],
    findings: &mut Findings,
) -> BoxFormat {
    let field = "output.detection.box_format";
    let extent = match space {
        BoxSpace::ModelPixels | BoxSpace::ImagePixels => [f64::from(width), f64::from(height)],
        BoxSpace::Normalised => [1.0, 1.0],
    };
    if let Some((format, because)) = format_by_motion(runs, extent[0].max(extent[1])) {
        findings.recognised(field, format.into_str(), because);
        return format;
    }
    if let Some((format, because)) = format_by_extent(runs, extent) {
        findings.recognised(field, format.into_str(), because);
        return format;
    }
    if let Some((format, because)) = format_by_mirror(runs, extent[0]) {
        findings.recognised(field, format.into_str(), because);
        return format;
    }
    let (format, because) = match space {
        BoxSpace::Normalised => (BoxFormat::Yxyx, "the values allow both; normalised boxes are mostly TensorFlow's"),
        BoxSpace::ModelPixels | BoxSpace::ImagePixels => {
            (BoxFormat::Xyxy, "the values allow both; boxes in pixels are mostly left, top, right, bottom")
        }
    };
    findings.assumed(field, format.into_str(), because);
    format
}

/// Which coordinate of the best box followed the patch to the right.
fn format_by_motion(runs: &[Vec<Row>], extent: f64) -> Option<(BoxFormat, String)> {
    let best = |run: &Vec<Row>| {
        let row = run.iter().max_by(|left, right| left.score.total_cmp(&right.score))?;
        let [x1, y1, x2, y2] = row.edges;
        Some([x1 + x2, y1 + y2].map(|sum| sum / 2.0 / extent))
    };
    let [left, right] = runs else { return None };
    let (left, right) = (best(left)?, best(right)?);
    let moved = [right[0] - left[0], right[1] - left[1]];
    let because =
        |first, second| format!("the best box followed a bright patch to the right in its {first} and {second} value");
    if moved[0] > MIN_MOVE && moved[1].abs() * 4.0 < moved[0] {
        Some((BoxFormat::Xyxy, because("first", "third")))
    } else if moved[1] > MIN_MOVE && moved[0].abs() * 4.0 < moved[1] {
        Some((BoxFormat::Yxyx, because("second", "fourth")))
    } else {
        None
    }
}

/// The probes mirror each other, and so do the boxes that a trained net gives, in the coordinates that are x.
fn format_by_mirror(runs: &[Vec<Row>], width: f64) -> Option<(BoxFormat, String)> {
    /// The best boxes of a run; the rest is mostly chance.
    const COMPARED: usize = 10;
    /// Mean IoU of a box and its nearest mirror image; chance alone reaches a half.
    const MIN_OVERLAP: f64 = 0.65;
    const MIN_ADVANTAGE: f64 = 0.15;
    let [left, right] = runs else { return None };
    let mut best = left.clone();
    best.sort_by(|left, right| right.score.total_cmp(&left.score));
    best.truncate(COMPARED);
    let overlap_mirrored = |first: usize| {
        let nearest = best.iter().map(|row| {
            let mut mirrored = row.edges;
            mirrored[first] = width - row.edges[first + 2];
            mirrored[first + 2] = width - row.edges[first];
            right.iter().map(|other| overlap(mirrored, other.edges)).fold(0.0, f64::max)
        });
        nearest.sum::<f64>() / best.len().max(1) as f64
    };
    let [xyxy, yxyx] = [overlap_mirrored(0), overlap_mirrored(1)];
    let because = |which: &str| format!("mirroring the test image mirrored the boxes in their {which} values");
    if xyxy > MIN_OVERLAP && xyxy - yxyx > MIN_ADVANTAGE {
        Some((BoxFormat::Xyxy, because("first and third")))
    } else if yxyx > MIN_OVERLAP && yxyx - xyxy > MIN_ADVANTAGE {
        Some((BoxFormat::Yxyx, because("second and fourth")))
    } else {
        None
    }
}

/// Intersection over union, whichever axis comes first.
fn overlap(left: [f64; 4], right: [f64; 4]) -> f64 {
    let bounds = |[a, b, c, d]: [f64; 4]| BoundingBox::new(a as f32, b as f32, c as f32, d as f32);
    f64::from(bounds(left).iou(&bounds(right)))
}

/// Which coordinate goes beyond the image's short side.
fn format_by_extent(runs: &[Vec<Row>], [width, height]: [f64; 2]) -> Option<(BoxFormat, String)> {
    let reach = |pair: [usize; 2]| {
        let edges = runs.iter().flatten().flat_map(|row| pair.map(|edge| row.edges[edge]));
        edges.fold(0.0, f64::max)
    };
    let (first, second) = (reach([0, 2]), reach([1, 3]));
    // A pixel of tolerance; unclipped boxes reach beyond the image on both axes and decide nothing.
    let (short, long) = (width.min(height) + 1.0, width.max(height) + 1.0);
    let (is_long, is_short) = (|reach: f64| reach > short && reach <= long, |reach: f64| reach <= short);
    let wide = width > height;
    let because =
        |which: &str| format!("its {which} values exceed the short side of the test image, the others do not");
    if short + 1.0 >= long {
        None
    } else if is_long(first) && is_short(second) {
        let format = if wide { BoxFormat::Xyxy } else { BoxFormat::Yxyx };
        Some((format, because("first and third")))
    } else if is_long(second) && is_short(first) {
        let format = if wide { BoxFormat::Yxyx } else { BoxFormat::Xyxy };
        Some((format, because("second and fourth")))
    } else {
        None
    }
}

struct Naming {
    offset: i32,
    label_set: Option<String>,
    labels_to_store: Option<LabelSet>,
}

impl Detector<'_> {
    fn name_classes(
        &self,
        model: &RecognitionRequest<'_>,
        rows: &[Vec<Row>],
        side_multiple: u32,
        prober: &Prober<'_, '_>,
        findings: &mut Findings,
    ) -> Result<Naming, Refusal> {
        let seen = || rows.iter().flatten().map(|row| row.class);
        let highest = seen().fold(0.0, f64::max) as usize;
        let zero_seen = seen().any(|class| class == 0.0);
        let classes = class_count_of(model.graph, self.boxes, prober);
        if let Some(labels) = model.labels.clone().or_else(|| labels::from_metadata(model)) {
            let count = label_count(&labels);
            check_label_count(count, highest, classes)?;
            let offset = if highest == count { -1 } else { 0 };
            let because = format!("{count} classes are named, and the highest class of the test images is {highest}");
            if offset != 0 || zero_seen {
                findings.recognised("output.detection.class_offset", offset, because);
            } else {
                let because = format!("{because}, which allows an offset of -1 too");
                findings.assumed("output.detection.class_offset", offset, because);
            }
            findings.recognised("labels", LABEL_FILE, "its names fit the model's classes");
            return Ok(Naming { offset, label_set: Some(LABEL_FILE.to_owned()), labels_to_store: Some(labels) });
        }
        let field = "labels";
        let (set, offset) = match classes {
            Some(90 | 91) => (Some("coco-91"), 0),
            _ if (81..=90).contains(&highest) => (Some("coco-91"), 0),
            Some(81) => (Some("coco-80"), -1),
            Some(80) => (Some("coco-80"), 0),
            // The ONNX Model Zoo's Faster R-CNN: COCO's 80 names behind one for the background.
            _ if side_multiple > 1 && highest <= 80 && !zero_seen => (Some("coco-80"), -1),
            _ => (None, 0),
        };
        match set {
            Some(set) => findings.assumed(
                field,
                set,
                "most such detectors are trained on COCO, and the class numbers \
                fit",
            ),
            None => findings.assumed(
                field,
                "none",
                "the classes have no names; they are shown by number until a \
                label file is given or labels=coco-91 (or coco-80) is set",
            ),
        }
        findings.assumed("output.detection.class_offset", offset, "derived from the labels");
        Ok(Naming { offset, label_set: set.map(str::to_owned), labels_to_store: None })
    }
}

fn check_label_count(count: usize, highest: usize, classes: Option<usize>) -> Result<(), Refusal> {
    match classes {
        _ if highest > count => Err(misfit(format!("returned class {highest}"), count)),
        Some(classes) if classes != count && classes != count + 1 => {
            Err(misfit(format!("has {classes} classes"), count))
        }
        _ => Ok(()),
    }
}
