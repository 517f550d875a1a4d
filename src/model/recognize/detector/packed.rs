//! Candidates whose boxes, scores and classes are columns of one output.

use super::columns::{CellGrid, Column, Table};
use super::{Found, MAX_FINAL_ROWS, NO_KEY_POINTS, NO_MASKS, columns};
use crate::domain::{Activation, BoxFormat, BoxSpace, CellPoint, Columns, DetectionOutput, Grid, GridCoding, Layout};
use crate::model::recognize::RecognitionRequest;
use crate::model::recognize::noted::{Noted, NotedTask};
use crate::model::recognize::probe::Prober;
use crate::model::recognize::signature::Port;
use crate::model::recognize::usual::Usual;

/// The possible number of bins per side of a box, in networks with generalized focal loss.
const BINS: std::ops::RangeInclusive<usize> = 4..=32;
/// The bins of networks with one output, most common first.
const USUAL_BINS: [usize; 3] = [8, 16, 17];
const UPRIGHT: &str = "rotated boxes are shown as the upright boxes around them";

/// Every reading of one output, or of one output per level, most common layouts first.
pub(super) fn find(model: &RecognitionRequest<'_>, prober: &Prober<'_, '_>) -> Vec<Found> {
    let outputs = &model.graph.outputs;
    let mut found: Vec<Found> = outputs.iter().filter_map(|port| final_rows(port, model, prober)).collect();
    found.extend(outputs.iter().filter_map(|port| with_labels(port, model, prober)));
    found.extend(outputs.iter().flat_map(|port| candidates(port, model, prober)));
    found.extend(raw_maps(model, prober));
    found.extend(levels(model, prober));
    found
}

/// The order of the columns in a final row.
struct Order {
    len: usize,
    boxes: u32,
    label: u32,
    score: u32,
    batch_index: Option<u32>,
    text: &'static str,
}

const ORDERS: [Order; 6] = [
    Order { len: 6, boxes: 0, label: 5, score: 4, batch_index: None, text: "box, score, class" },
    Order { len: 6, boxes: 2, label: 0, score: 1, batch_index: None, text: "class, score, box" },
    Order { len: 6, boxes: 0, label: 4, score: 5, batch_index: None, text: "box, class, score" },
    Order { len: 7, boxes: 1, label: 5, score: 6, batch_index: Some(0), text: "image, box, class, score" },
    Order { len: 7, boxes: 1, label: 6, score: 5, batch_index: Some(0), text: "image, box, score, class" },
    Order { len: 7, boxes: 3, label: 1, score: 2, batch_index: Some(0), text: "image, class, score, box" },
];

impl Order {
    /// Whether the values allow it: classes are whole numbers, scores are from 0 to 1.
    fn allows(&self, columns: &[Column]) -> bool {
        let label = &columns[self.label as usize];
        let batch_index = self.batch_index.map(|at| &columns[at as usize]);
        label.is_whole
            && columns[self.score as usize].is_share()
            && batch_index.is_none_or(|index| index.min == 0.0 && index.max == 0.0)
    }

    /// Whether the values are typical, so that this is the better of two orders.
    fn is_typical(&self, columns: &[Column]) -> bool {
        let score = &columns[self.score as usize];
        !score.is_whole || score.max == score.min
    }
}

/// Rows of six or seven numbers that need no suppression, as written by Ultralytics, PaddleDetection and YOLOv7.
fn final_rows(port: &Port, model: &RecognitionRequest<'_>, prober: &Prober<'_, '_>) -> Option<Found> {
    let table = Table::from_port(port, prober, false)?;
    let width = table.columns.len();
    // Masks, keypoints or an angle follow the six.
    let is_other_task = model.notes.task.as_ref().is_some_and(|task| task.value != NotedTask::Detect);
    let has_more = width > 6 && (is_other_task || mask_count(port, model, prober) == Some(width - 6));
    // With more rows, classes are selected but overlapping boxes remain (DeepStream-Yolo).
    let is_suppressed = table.rows <= MAX_FINAL_ROWS;
    if !(matches!(width, 6 | 7) || has_more) || table.is_empty() && !is_suppressed {
        return None;
    }
    let wanted = if has_more { 6 } else { width };
    let orders: Vec<&Order> = ORDERS.iter().filter(|order| order.len == wanted).collect();
    let allowed: Vec<&Order> =
        orders.iter().copied().filter(|order| table.is_empty() || order.allows(&table.columns)).collect();
    let typical = |order: &&Order| table.is_empty() || order.is_typical(&table.columns);
    let fed_size = !prober.auxiliary().is_empty();
    // PaddleDetection, whose graphs get the size of the image, has the class first. super-gradients' flat format has
    // the score before the class.
    let is_flat = port.name.contains("flat_predictions");
    let rank = |order: &&&Order| (!typical(order), (order.boxes == 2) != fed_size, is_flat && order.label != 6);
    let order = *allowed.iter().min_by_key(rank).filter(|order| is_suppressed || typical(order))?;
    let mut found = Found::new(DetectionOutput {
        batch_index: order.batch_index.map(|at| Columns::at(&port.name, at)),
        ..DetectionOutput::separate(&port.name, &port.name, &port.name)
    });
    found.output.boxes = Columns::at(&port.name, order.boxes);
    found.output.labels = Some(Columns::at(&port.name, order.label));
    found.output.scores = Columns::at(&port.name, order.score);
    found.output.nms_iou = (!is_suppressed).then_some(0.45);
    found.is_final = true;
    found.because = format!("{port} has rows of {width} numbers: {}", order.text);
    let is_known = !table.is_empty() && (allowed.len() == 1 || model.notes.is_ultralytics());
    let because = if table.is_empty() {
        "the test images had no boxes; this is the most common order"
    } else if is_known {
        "one column has whole numbers, one has numbers from 0 to 1"
    } else {
        "the values also allow another order; this is the most common one"
    };
    found.columns(is_known, because);
    if has_more {
        found.read_rest(model.notes.task.as_ref(), &port.name, width as u32 - 1);
    }
    found.usual = Some(match prober.layout() {
        Layout::Nhwc | Layout::Hwc => Usual::TensorFlow,
        Layout::Nchw if !model.notes.is_ultralytics() && is_from_effdet(&table, order, prober) => Usual::EffDet,
        Layout::Nchw | Layout::Chw if order.boxes == 2 => Usual::Paddle,
        Layout::Nchw | Layout::Chw if order.boxes == 3 => Usual::DetectionOut,
        Layout::Nchw | Layout::Chw if order.batch_index.is_some() => Usual::Yolov5,
        Layout::Nchw | Layout::Chw => Usual::Yolo,
    });
    Some(found)
}

/// Whether there are 100 rows with classes from 1 (`MAX_DETECTIONS_PER_IMAGE` and `generate_detections` in effdet's
/// `anchors.py`), for an input whose sides are a multiple of 128, like those of `EfficientDet`.
fn is_from_effdet(table: &Table, order: &Order, prober: &Prober<'_, '_>) -> bool {
    let [label, score] = [order.label, order.score].map(|column| &table.columns[column as usize]);
    let has_sides = prober.size().into_iter().all(|side| side.is_multiple_of(128));
    let from_one = label.is_whole && label.min >= 1.0 && label.max > label.min && score.is_share();
    order.boxes == 0 && order.label == 5 && table.rows == 100 && has_sides && from_one
}

/// The channels of an output `[1, channels, height, width]` other than `boxes`, if there is exactly one.
fn mask_count(boxes: &Port, model: &RecognitionRequest<'_>, prober: &Prober<'_, '_>) -> Option<usize> {
    let others = model.graph.outputs.iter().filter(|port| port.name != boxes.name);
    let shapes = others.filter_map(|port| prober.values_of(&port.name).next());
    let mut maps = shapes.filter_map(|tensor| match tensor.shape[..] {
        [1, channels, height, width] if height > 4 && width > 4 => Some(channels),
        _ => None,
    });
    maps.next().filter(|_| maps.next().is_none())
}

/// Boxes and scores in rows of five, or of six with an angle, with the classes in an output of whole numbers
/// (`MMDeploy`).
fn with_labels(port: &Port, model: &RecognitionRequest<'_>, prober: &Prober<'_, '_>) -> Option<Found> {
    let table = Table::from_port(port, prober, false)?;
    let score = table.columns.len().checked_sub(1)?;
    let is_rotated = score == 5;
    if !(4..=5).contains(&score) || !(table.is_empty() || table.columns[score].is_share()) {
        return None;
    }
    let rows = &prober.values_of(&port.name).next()?.shape;
    let fits = |other: &&Port| {
        let mut tensors = prober.values_of(&other.name);
        tensors.next().is_some_and(|tensor| {
            tensor.shape == rows[..rows.len() - 1] && matches!(tensor.data, crate::model::TensorData::I64(_))
        })
    };
    let labels = model.graph.outputs.iter().find(fits)?;
    let mut found = Found::new(DetectionOutput::separate(&port.name, &labels.name, &port.name));
    found.output.scores = Columns::at(&port.name, score as u32);
    found.is_final = true;
    found.because = format!("{port} has a box and a score in each row, {labels} its class");
    found.columns(true, "the last column has numbers from 0 to 1");
    if is_rotated {
        found.output.angle = Some(Columns::at(&port.name, 4));
        found.not_shown = Some(UPRIGHT);
        found.decided_format = Some((BoxFormat::Cxcywh, "an angle follows center and size".to_owned()));
    }
    found.usual = Some(Usual::MmDetection);
    Some(found)
}

/// Candidates with one score per class, before non-maximum suppression.
fn candidates(port: &Port, model: &RecognitionRequest<'_>, prober: &Prober<'_, '_>) -> Vec<Found> {
    let rank = prober.values_of(&port.name).next().map_or(0, |tensor| tensor.shape.len());
    if !(2..=3).contains(&rank) {
        return Vec::new();
    }
    let tables = [false, true].map(|candidates_last| Table::from_port(port, prober, candidates_last));
    let mut tables: Vec<Table> = tables.into_iter().flatten().filter(|table| table.columns.len() >= 5).collect();
    // There are more candidates than numbers for each.
    tables.sort_by_key(|table| table.columns.len());
    let of_tables = tables.into_iter().map(|table| {
        let grid = CellGrid::with_rows(table.rows, prober.size());
        let scores = table.columns[4..].iter().take_while(|column| column.is_share()).count();
        let boxes_are_shares = table.columns[..4].iter().all(Column::is_share);
        // Only a transformer's queries are not in a grid, and they are rows.
        let plausible = grid.is_some()
            || model.notes.is_ultralytics()
            || (boxes_are_shares && !table.candidates_last && table.rows > table.columns.len());
        let mut found: Vec<Found> = grid.iter().filter_map(|grid| with_bins(port, &table, grid)).collect();
        if scores > 0 && table.rows >= 10 && plausible && !table.has_rows_of_probabilities {
            found.extend(dense(port, &table, scores, grid.as_ref(), model, prober));
        }
        found
    });
    of_tables.into_iter().find(|found| !found.is_empty()).unwrap_or_default()
}

/// Box columns, possibly an objectness, then one score per class: two readings if both fit.
fn dense(
    port: &Port,
    table: &Table,
    scores: usize,
    grid: Option<&CellGrid>,
    model: &RecognitionRequest<'_>,
    prober: &Prober<'_, '_>,
) -> Vec<Found> {
    // Masks and keypoints come after the scores; the angle of a rotated box can look like another score.
    let task = model.notes.task.as_ref();
    let has_angle = task.is_some_and(|task| task.value == NotedTask::Obb) && scores > 1;
    let masks = mask_count(port, model, prober);
    let others = masks.unwrap_or(usize::from(has_angle));
    let without_others = (table.columns.len() - 4).checked_sub(others).filter(|left| (1..=scores).contains(left));
    let scores = without_others.unwrap_or(scores);
    let rest = table.columns.len() - 4 - scores;
    let is_explained = masks == Some(rest) || task.is_some_and(|task| task.value != NotedTask::Detect);
    let at_end = scores_at_end(table, scores, grid);
    let readings = objectness(table, scores, grid, model).into_iter().map(|(objectness, why)| {
        let (first, classes) = match at_end {
            Some(classes) => (table.columns.len() - classes, classes),
            None => (4 + usize::from(objectness), scores - usize::from(objectness)),
        };
        let mut found = Found::new(DetectionOutput {
            labels: None,
            candidates_last: table.candidates_last,
            ..DetectionOutput::separate(&port.name, "", &port.name)
        });
        found.output.scores = Columns::at(&port.name, first as u32);
        found.output.objectness = objectness.then(|| Columns::at(&port.name, 4));
        found.classes = Some(classes);
        let objectness_text = if objectness { ", an objectness score" } else { "" };
        found.because =
            format!("{port} has {} candidates with a box{objectness_text} and {classes} class scores each", table.rows);
        if at_end.is_some() {
            found.not_shown = Some(NO_KEY_POINTS);
        } else if rest > 0 {
            found.output.classes = Some(classes as u32);
            found.read_rest(task, &port.name, table.columns.len() as u32 - 1);
            found.unknown_columns = if is_explained { 0 } else { rest };
        }
        found.columns(found.unknown_columns == 0, &why);
        found.set_cells(table, grid, prober.size());
        if at_end.is_some() {
            found.output.nms_iou = Some(0.5);
        }
        found
    });
    readings.collect()
}

/// How many scores come after the key points (YOLOv5-face); `None` if they are right after the box.
fn scores_at_end(table: &Table, scores: usize, grid: Option<&CellGrid>) -> Option<usize> {
    let at_end = table.columns.iter().rev().take_while(|column| column.is_share()).count();
    let has_key_points = scores == 1 && (1..table.columns.len() - 5).contains(&at_end);
    grid.filter(|grid| grid.anchors == 3 && has_key_points).map(|_| at_end)
}

/// Whether the first score can be an objectness, more common case first.
fn objectness(
    table: &Table,
    scores: usize,
    grid: Option<&CellGrid>,
    model: &RecognitionRequest<'_>,
) -> Vec<(bool, String)> {
    let named = model.label_counts();
    let in_rows = "candidates in rows, one per cell, as in YOLOX, include an objectness score";
    if scores_at_end(table, scores, grid).is_some() {
        vec![(true, "key points between an objectness score and the class scores match YOLOv5-face".to_owned())]
    } else if scores < 2 {
        vec![(false, "a single score follows the box".to_owned())]
    } else if named.contains(&(scores - 1)) && !named.contains(&scores) {
        vec![(true, format!("{scores} scores and {} named classes: the first is the objectness", scores - 1))]
    } else if named.contains(&scores) {
        vec![(false, format!("{scores} scores and as many named classes"))]
    } else if table.columns[4].is_one() {
        vec![(true, "the first score is always 1, like YOLOv6's objectness".to_owned())]
    } else if let Some(grid) = grid.filter(|grid| grid.anchors > 1) {
        let because =
            format!("{} candidates per cell, as in YOLOv5 and YOLOv7, include an objectness score", grid.anchors);
        vec![(true, because)]
    } else if grid.is_some() && !table.candidates_last {
        vec![(true, in_rows.to_owned()), (false, "all numbers after the box can be class scores".to_owned())]
    } else {
        vec![(false, "candidates in columns, or a transformer's queries, have no objectness score".to_owned())]
    }
}

/// Scores first, then bins for the distances to the four sides (NanoDet).
fn with_bins(port: &Port, table: &Table, grid: &CellGrid) -> Option<Found> {
    let shares = table.columns.iter().take_while(|column| column.is_share()).count();
    let fits = |bins: &usize| {
        let scores = table.columns.len().checked_sub(4 * bins).filter(|scores| *scores > 0);
        scores.is_some_and(|scores| scores <= shares && !table.columns[scores..].iter().all(Column::is_share))
    };
    let bins = USUAL_BINS.into_iter().find(fits).filter(|_| grid.anchors == 1)?;
    let scores = table.columns.len() - 4 * bins;
    let mut found = Found::new(DetectionOutput {
        labels: None,
        classes: Some(scores as u32),
        candidates_last: table.candidates_last,
        ..DetectionOutput::separate(&port.name, "", &port.name)
    });
    found.output.boxes = Columns::at(&port.name, scores as u32);
    found.classes = Some(scores);
    found.because = format!("{port} has {} candidates with {scores} class scores and {bins} bins per side", table.rows);
    // NanoDet-Plus, which has a fourth level, counts from the corner of a cell; the first NanoDet from its center.
    let (point, usual) = match grid.strides.len() {
        ..=3 => (CellPoint::Center, Usual::NanoDet),
        _ => (CellPoint::TopLeft, Usual::NanoDetPlus),
    };
    found.set_bins(bins, point, usual, grid);
    Some(found)
}

impl Found {
    /// How boxes relate to the cells of their grid, and which exporter writes such boxes.
    fn set_cells(&mut self, table: &Table, grid: Option<&CellGrid>, size: [u32; 2]) {
        let has_objectness = self.output.objectness.is_some();
        match grid {
            Some(grid) if has_objectness && grid.anchors == 1 && !table.columns[4].is_one() => {
                self.output.nms_iou = Some(0.65);
                self.usual = Some(Usual::Yolox);
                self.is_in_cells = Some(true);
                if !table.is_decoded(grid, size) {
                    self.output.grid = Some(Grid { strides: grid.strides.clone(), coding: GridCoding::Offsets {} });
                    let because = format!(
                        "there is one candidate per cell of {:?} pixels, but the boxes are not at their cells",
                        grid.strides
                    );
                    self.part("grid", "set", true, &because);
                    self.is_in_cells = Some(table.has_offsets());
                }
            }
            Some(grid) => {
                self.output.nms_iou = Some(if has_objectness { 0.45 } else { 0.7 });
                self.usual = Some(if grid.anchors == 3 { Usual::Yolov5 } else { Usual::Yolo });
                self.is_in_cells = (grid.anchors == 1).then(|| table.is_decoded(grid, size));
            }
            // Ultralytics' YOLO with unusual strides.
            None if table.candidates_last => {
                self.output.nms_iou = Some(0.7);
                self.usual = Some(Usual::Yolo);
            }
            None => {
                // A transformer's queries need no suppression.
                self.output.nms_iou = (table.rows > MAX_FINAL_ROWS).then_some(0.7);
                self.usual = Some(Usual::UltralyticsRtDetr);
            }
        }
        if (grid.is_some() || table.candidates_last) && self.output.grid.is_none() && !table.is_corners() {
            self.decided_format = Some((BoxFormat::Cxcywh, "the boxes are around their cells".to_owned()));
        }
        if self.output.grid.is_some() {
            self.decided_format = Some((BoxFormat::Cxcywh, "decoded boxes are center and size".to_owned()));
            self.decided_space = Some((BoxSpace::ModelPixels, "decoded boxes are in pixels of the input".to_owned()));
        }
    }

    fn set_bins(&mut self, bins: usize, point: CellPoint, usual: Usual, grid: &CellGrid) {
        self.columns(true, "the scores are from 0 to 1, the bins are not");
        let because = format!("there is one candidate per cell of {:?} pixels", grid.strides);
        self.part("grid", "distance-bins", true, &because);
        let coding = GridCoding::DistanceBins { bins: bins as u32, point };
        self.output.grid = Some(Grid { strides: grid.strides.clone(), coding });
        self.decided_format = Some((BoxFormat::Xyxy, "distances give the four edges".to_owned()));
        self.decided_space = Some((BoxSpace::ModelPixels, "decoded boxes are in pixels of the input".to_owned()));
        self.output.nms_iou = Some(0.6);
        self.keep_all_classes();
        self.usual = Some(usual);
    }

    /// Records the position of each part.
    fn columns(&mut self, is_known: bool, because: &str) {
        let output = &self.output;
        let parts = [
            ("boxes", Some(&output.boxes)),
            ("labels", output.labels.as_ref()),
            ("scores", Some(&output.scores)),
            ("objectness", output.objectness.as_ref()),
            ("batch_index", output.batch_index.as_ref()),
        ];
        let values = parts.map(|(field, columns)| (field, columns.map(ToString::to_string)));
        for (field, value) in values {
            if let Some(value) = value {
                self.part(field, &value, is_known, because);
            }
        }
    }

    /// Interprets the columns after the scores.
    fn read_rest(&mut self, task: Option<&Noted<NotedTask>>, output: &str, last: u32) {
        self.not_shown = Some(match task.map(|task| task.value) {
            Some(NotedTask::Obb) => {
                self.output.angle = Some(Columns::at(output, last));
                UPRIGHT
            }
            Some(NotedTask::Pose) => NO_KEY_POINTS,
            Some(NotedTask::Segment) => NO_MASKS,
            _ => "masks or key points are not shown, only boxes",
        });
    }
}

/// One output per level, `[1, anchors, rows, columns, numbers]`, not decoded (YOLOv5, YOLOv7).
fn raw_maps(model: &RecognitionRequest<'_>, prober: &Prober<'_, '_>) -> Option<Found> {
    let shape = |port: &Port| prober.values_of(&port.name).next().map(|tensor| tensor.shape.clone());
    let mut maps: Vec<(&Port, Vec<usize>)> = model
        .graph
        .outputs
        .iter()
        .filter_map(|port| shape(port).map(|shape| (port, shape)))
        .filter(|(_, shape)| matches!(shape[..], [1, 3, _, _, numbers] if numbers >= 6))
        .collect();
    maps.sort_by_key(|(_, shape)| std::cmp::Reverse(shape[2]));
    let numbers = maps.first()?.1[4];
    let strides = columns::strides_of(maps.iter().map(|(_, shape)| [shape[3], shape[2]]), prober.size())?;
    if maps.len() != 3 || maps.iter().any(|(_, shape)| shape[4] != numbers) {
        return None;
    }
    let outputs: Vec<String> = maps.iter().map(|(port, _)| port.name.clone()).collect();
    let at = |column: u32| Columns { outputs: outputs.clone(), column };
    let mut found = Found::new(DetectionOutput {
        boxes: at(0),
        labels: None,
        scores: at(5),
        objectness: Some(at(4)),
        activation: Activation::Sigmoid,
        grid: Some(Grid { strides, coding: GridCoding::Anchors { sizes: GridCoding::YOLOV5_ANCHORS.to_vec() } }),
        nms_iou: Some(0.45),
        ..DetectionOutput::separate("", "", "")
    });
    found.classes = Some(numbers - 5);
    found.because = format!("three maps of {numbers} numbers for each of 3 anchors match YOLOv5 and YOLOv7");
    found.columns(true, "a box, an objectness and a score for each class");
    found.part(
        "grid",
        "set",
        false,
        "the maps have one cell each; YOLOv5's own anchors are assumed, because the graph does not contain them",
    );
    found.decided_format = Some((BoxFormat::Cxcywh, "decoded boxes are center and size".to_owned()));
    found.decided_space = Some((BoxSpace::ModelPixels, "decoded boxes are in pixels of the input".to_owned()));
    found.usual = Some(Usual::Yolov5);
    Some(found)
}

/// For each level, an output with scores and one with bins (the first `NanoDet`, `PicoDet`).
fn levels(model: &RecognitionRequest<'_>, prober: &Prober<'_, '_>) -> Option<Found> {
    let tables: Vec<(&Port, Table)> =
        model.graph.outputs.iter().filter_map(|port| Some((port, Table::from_port(port, prober, false)?))).collect();
    let grid =
        columns::USUAL_STRIDES.into_iter().filter(|strides| strides.len() * 2 == tables.len()).find_map(|strides| {
            let grid = CellGrid { strides: strides.to_vec(), anchors: 1 };
            let fits = |rows: usize| tables.iter().filter(|(_, table)| table.rows == rows).count() == 2;
            grid.level_rows(prober.size()).into_iter().all(fits).then_some(grid)
        })?;
    let (mut scores, mut boxes) = (Vec::new(), Vec::new());
    for rows in grid.level_rows(prober.size()) {
        let mut of_level: Vec<&(&Port, Table)> = tables.iter().filter(|(_, table)| table.rows == rows).collect();
        of_level.sort_by_key(|(_, table)| !table.columns.iter().all(Column::is_share));
        let [first, second] = of_level[..] else { return None };
        scores.push(first);
        boxes.push(second);
    }
    let (classes, numbers) = (scores.first()?.1.columns.len(), boxes.first()?.1.columns.len());
    let shares = |table: &Table| table.columns.iter().all(Column::is_share);
    let fits = scores.iter().all(|(_, table)| table.columns.len() == classes && shares(table))
        && boxes.iter().all(|(_, table)| table.columns.len() == numbers && !shares(table));
    if !fits || !numbers.is_multiple_of(4) || !BINS.contains(&(numbers / 4)) {
        return None;
    }
    let names = |parts: &[&(&Port, Table)]| Columns {
        outputs: parts.iter().map(|(port, _)| port.name.clone()).collect(),
        column: 0,
    };
    let mut found = Found::new(DetectionOutput {
        boxes: names(&boxes),
        labels: None,
        scores: names(&scores),
        ..DetectionOutput::separate("", "", "")
    });
    found.classes = Some(classes);
    found.because = format!("scores and {} bins per side for each of {} levels", numbers / 4, scores.len());
    let usual = if grid.strides.len() > 3 { Usual::PicoDet } else { Usual::NanoDet };
    found.set_bins(numbers / 4, CellPoint::Center, usual, &grid);
    Some(found)
}
