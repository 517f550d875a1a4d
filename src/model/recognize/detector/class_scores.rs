//! Boxes in one output, and a score for each of their classes in another.

use super::boxes::are_normalized;
use super::columns::CellGrid;
use super::separate::could_be_boxes;
use super::{Found, MAX_FINAL_ROWS};
use crate::domain::{
    Activation, AuxiliaryInput, AuxiliaryValue, Background, BoxFormat, BoxSpace, DetectionOutput, LabelChoice, Layout,
};
use crate::model::recognize::RecognitionRequest;
use crate::model::recognize::noted::Noted;
use crate::model::recognize::probe::Prober;
use crate::model::recognize::signature::Port;
use crate::model::recognize::usual::Usual;
use crate::model::{Tensor, TensorData};

/// How many ids the classes of COCO have, unused ones included.
const COCO_IDS: usize = 91;
/// How far the sum of probabilities may be from 1.
const SUM_TOLERANCE: f64 = 1e-3;

/// One reading for each pair of matching outputs: a transformer's, or anchors before non-maximum suppression.
pub(super) fn find(model: &RecognitionRequest<'_>, prober: &Prober<'_, '_>) -> Vec<Found> {
    let outputs = &model.graph.outputs;
    // A transformer with four classes has two outputs with four columns, but logits can be negative.
    let has_sizes = |port: &&Port| {
        let values: Vec<f64> = prober.values_of(&port.name).flat_map(Tensor::to_f64).collect();
        let fits = values.chunks_exact(4).filter(|row| row[2] >= 0.0 && row[3] >= 0.0).count();
        fits * 200 >= values.len() * 49
    };
    let boxes = outputs.iter().filter(|port| could_be_boxes(port, prober) && follows_image(port, prober));
    let pairs = boxes.filter(has_sizes).flat_map(|boxes| {
        let scores = outputs.iter().filter(|port| port.name != boxes.name);
        scores.filter_map(move |scores| Some((boxes, scores, ClassTable::from_port(scores, boxes, prober)?)))
    });
    let mut pairs: Vec<(&Port, &Port, ClassTable)> = pairs.collect();
    // Hidden states of a transformer have many more columns than classes.
    pairs.sort_by_key(|(.., table)| table.classes);
    pairs.into_iter().map(|(boxes, scores, table)| class_scores(boxes, scores, &table, model, prober)).collect()
}

fn class_scores(
    boxes: &Port,
    scores: &Port,
    table: &ClassTable,
    model: &RecognitionRequest<'_>,
    prober: &Prober<'_, '_>,
) -> Found {
    let columns = table.classes;
    let mut found =
        Found::new(DetectionOutput { labels: None, ..DetectionOutput::separate(&boxes.name, "", &scores.name) });
    found.because = format!("{boxes} has four numbers per box, {scores} a score for each of its classes");
    found.part("boxes", &boxes.name, true, "four numbers per box");
    found.part("scores", &scores.name, true, "a number for each class of each box");
    let counts = model.label_counts();
    let has_background = counts.contains(&(columns - 1)) && !counts.contains(&columns);
    let known = Queries::known(model, boxes, scores);
    let (activation, background, because) = table.activation(has_background, known.as_ref());
    let says_activation = known.as_ref().is_some_and(|known| known.value != Queries::ByValues);
    let is_known = table.are_shares() || says_activation || has_background;
    found.part("activation", activation.into_str(), is_known, &because);
    found.part("background", background.into_str(), is_known, &because);
    found.output.activation = activation;
    found.output.background = background;
    found.classes = Some(columns - usize::from(background != Background::None));
    if let Some(Noted { because, .. }) = &known {
        found.is_identified = true;
        found.decided_format = Some((BoxFormat::Cxcywh, because.clone()));
        found.decided_space = Some((BoxSpace::Normalized, because.clone()));
    }
    if let Some(selected) = selected(boxes, table, model, prober) {
        found.output.selected = Some(selected.name.clone());
        found.is_final = true;
        found.part("selected", &selected.name, true, "three whole numbers per row: image, class and box");
    }
    let has_grid = || CellGrid::with_rows(table.boxes, prober.size()).is_some();
    if table.boxes > MAX_FINAL_ROWS || (table.are_shares() && known.is_none() && has_grid()) {
        found.set_anchors([boxes, scores], table, model, prober);
    } else {
        found.set_queries(known.map(|known| known.value), scores, table.boxes, is_known);
    }
    found
}

impl Found {
    /// The usual suppression and preprocessing of graphs with a box per anchor or cell.
    fn set_anchors(
        &mut self,
        [boxes, scores]: [&Port; 2],
        table: &ClassTable,
        model: &RecognitionRequest<'_>,
        prober: &Prober<'_, '_>,
    ) {
        let sum_to_one = table.sum_to_one();
        let nms_iou = match table.classes {
            _ if !sum_to_one => 0.6,
            // UltraFace has one class, pytorch-ssd several.
            ..=2 => 0.5,
            _ => 0.45,
        };
        let mut names = model.graph.outputs.iter().map(|port| &port.name);
        let is_normalized = are_normalized(&self.rows(prober)) == Some(true);
        self.usual = match prober.layout() {
            Layout::Nhwc | Layout::Hwc => None,
            _ if !prober.auxiliary().is_empty() => usual_of_sizes(prober.auxiliary()),
            _ if sum_to_one => Some(Usual::Ssd),
            _ if is_normalized => Some(Usual::Yolov4),
            // YOLO-World, which also has the scores first.
            _ if scores.name == "scores" => Some(Usual::Yolo),
            // DAMO-YOLO has the scores first, YOLO-NAS the boxes.
            _ if names.find(|name| [&boxes.name, &scores.name].contains(name)) == Some(&scores.name) => {
                Some(Usual::DamoYolo)
            }
            _ => Some(Usual::Yolo),
        };
        if self.output.selected.is_some() {
            return;
        }
        self.output.nms_iou = Some(if self.usual == Some(Usual::DamoYolo) { 0.7 } else { nms_iou });
        if self.usual != Some(Usual::Yolov4) {
            self.keep_all_classes();
        }
    }

    /// The usual selection and preprocessing of a transformer with this many queries.
    fn set_queries(&mut self, known: Option<Queries>, scores: &Port, count: usize, is_known: bool) {
        match self.output.activation {
            Activation::Sigmoid => {
                self.output.label_choice = LabelChoice::All;
                self.output.max_boxes = match known {
                    Some(Queries::Sigmoid { limit: Some(limit) }) => Some(limit),
                    _ => u32::try_from(count).ok(),
                };
                self.usual = Some(match known {
                    Some(Queries::RfDetr) => Usual::RfDetr,
                    Some(Queries::Sigmoid { limit: Some(_) }) => Usual::Detr,
                    // The name in the code of DETR, Deformable DETR and DINO; RT-DETR's own export has another.
                    _ if scores.name == "pred_logits" => Usual::Detr,
                    _ => Usual::RtDetr,
                });
                self.part("label_choice", "all", is_known, "the best scores across all queries and classes count");
            }
            Activation::Softmax => self.usual = Some(Usual::Detr),
            Activation::None | Activation::SquareRoot => {}
        }
    }
}

/// The scores of a transformer's queries, whose boxes are center and size from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Queries {
    /// The last class is “no object”.
    Softmax,
    /// The best over all queries and classes count, at most `limit` of them.
    Sigmoid { limit: Option<u32> },
    /// RF-DETR's, which also has a sigmoid.
    RfDetr,
    /// Only the boxes are known.
    ByValues,
}

impl Queries {
    /// What the files next to the model or the output names state.
    fn known(model: &RecognitionRequest<'_>, boxes: &Port, scores: &Port) -> Option<Noted<Self>> {
        let are_of_decoder = |boxes: &Port, scores: &Port| {
            matches!((boxes.name.as_str(), scores.name.as_str()), ("pred_boxes", "logits" | "pred_logits"))
        };
        let is_of_decoder = are_of_decoder(boxes, scores);
        let outputs = &model.graph.outputs;
        if !is_of_decoder && outputs.iter().any(|boxes| outputs.iter().any(|scores| are_of_decoder(boxes, scores))) {
            // Other outputs that look like boxes are the encoder's.
            return None;
        }
        if let Some(noted) = &model.notes.model_type {
            let value = match noted.value.as_str() {
                "detr" | "yolos" | "table-transformer" => Some(Self::Softmax),
                "rt_detr" | "rt_detr_v2" | "d_fine" | "deimv2" => Some(Self::Sigmoid { limit: None }),
                "deformable_detr" | "conditional_detr" | "dab-detr" | "deta" | "lw_detr" => {
                    Some(Self::Sigmoid { limit: Some(100) })
                }
                "rf_detr" => Some(Self::RfDetr),
                _ => None,
            };
            if let Some(value) = value {
                return Some(Noted { value, because: noted.because.clone() });
            }
        }
        let value = match (boxes.name.as_str(), scores.name.as_str()) {
            _ if is_of_decoder => Self::ByValues,
            ("dets", "labels") => Self::RfDetr,
            _ => return None,
        };
        let exporter = if value == Self::RfDetr { "RF-DETR" } else { "DETR and its successors" };
        let because = format!("outputs named {} and {} match {exporter}", boxes.name, scores.name);
        Some(Noted { value, because })
    }
}

/// The exporter whose graphs get such sizes.
fn usual_of_sizes(auxiliary: &[AuxiliaryInput]) -> Option<Usual> {
    auxiliary.iter().find_map(|input| match input.value {
        AuxiliaryValue::ImageHeightWidth => Some(Usual::Yolov3),
        AuxiliaryValue::ScaleFactor => Some(Usual::Paddle),
        _ => None,
    })
}

/// The scores of each class of each box.
struct ClassTable {
    boxes: usize,
    classes: usize,
    /// The scores of a box are consecutive, over all runs.
    values: Vec<f64>,
}

impl ClassTable {
    /// `None` if the output does not have enough numbers for each box.
    fn from_port(port: &Port, boxes: &Port, prober: &Prober<'_, '_>) -> Option<Self> {
        let mut table: Option<Self> = None;
        for (tensor, boxes) in prober.values_of(&port.name).zip(prober.values_of(&boxes.name)) {
            let rows = boxes.len() / 4;
            let values = tensor.to_f64();
            let classes = classes_of_boxes(tensor, rows)?;
            if !matches!(tensor.data, TensorData::F32(_)) || !values.iter().all(|value| value.is_finite()) {
                return None;
            }
            let table = table.get_or_insert_with(|| Self { boxes: 0, classes, values: Vec::new() });
            if table.classes != classes {
                return None;
            }
            table.boxes = table.boxes.max(rows);
            // Classes can come before boxes.
            if tensor.shape.last() == Some(&classes) {
                table.values.extend(values);
            } else {
                let of_box = |row: usize| values[row..].iter().step_by(rows).copied();
                table.values.extend((0..rows).flat_map(of_box));
            }
        }
        table
    }

    fn rows(&self) -> impl ExactSizeIterator<Item = &[f64]> {
        self.values.chunks_exact(self.classes)
    }

    fn are_shares(&self) -> bool {
        self.values.iter().all(|value| (-SUM_TOLERANCE..=1.0 + SUM_TOLERANCE).contains(value))
    }

    fn sum_to_one(&self) -> bool {
        self.are_shares() && self.rows().all(|row| (row.iter().sum::<f64>() - 1.0).abs() < SUM_TOLERANCE)
    }

    /// How the numbers become scores, which of them is no class, and why.
    fn activation(&self, has_background: bool, known: Option<&Noted<Queries>>) -> (Activation, Background, String) {
        let last = self.classes - 1;
        let (activation, background, because) = match known {
            _ if self.are_shares() && (self.sum_to_one() || has_background) => {
                let background = if self.mostly_best(0) {
                    Background::First
                } else if self.mostly_best(last) || has_background {
                    Background::Last
                } else {
                    Background::None
                };
                (Activation::None, background, "the numbers per box sum to 1: softmax is already applied")
            }
            _ if self.are_shares() => (Activation::None, Background::None, "the numbers are from 0 to 1"),
            Some(Noted { value: Queries::Softmax, because }) => {
                (Activation::Softmax, Background::Last, because.as_str())
            }
            Some(Noted { value: Queries::Sigmoid { .. } | Queries::RfDetr, because }) => {
                (Activation::Sigmoid, Background::None, because.as_str())
            }
            Some(_) if self.classes == COCO_IDS + 1 => {
                (Activation::Softmax, Background::Last, "92 numbers are those of COCO's 91 ids and “no object”")
            }
            _ if has_background => {
                let because = format!("{} numbers for {last} named classes: the last is “no object”", self.classes);
                return (Activation::Softmax, Background::Last, because);
            }
            _ if last > 0 && self.mostly_best(last) => {
                let because = "the last number is the largest in most boxes: “no object”";
                (Activation::Softmax, Background::Last, because)
            }
            _ if last > 0 && self.mostly_best(0) => {
                (Activation::Softmax, Background::First, "the first number is the largest in most boxes")
            }
            _ => {
                let because = "no number is the largest in most boxes, so none is “no object”";
                (Activation::Sigmoid, Background::None, because)
            }
        };
        (activation, background, because.to_owned())
    }

    /// Whether this class has the best score in most boxes.
    fn mostly_best(&self, class: usize) -> bool {
        let best = |row: &[f64]| (0..row.len()).max_by(|left, right| row[*left].total_cmp(&row[*right])).unwrap_or(0);
        self.rows().filter(|row| best(row) == class).count() * 2 > self.rows().len()
    }
}

/// The output with image, class and box of what the graph's own suppression keeps (the ONNX Model Zoo's `YOLOv3`).
fn selected<'g>(
    boxes: &Port,
    table: &ClassTable,
    model: &RecognitionRequest<'g>,
    prober: &Prober<'_, '_>,
) -> Option<&'g Port> {
    let fits = |tensor: &Tensor| {
        let values = tensor.to_f64();
        let mut rows = values.chunks_exact(3);
        matches!(tensor.shape[..], [_, 3] | [1, _, 3])
            && matches!(tensor.data, TensorData::I64(_))
            && rows.all(|row| {
                let is_filler = row.iter().any(|number| *number < 0.0);
                is_filler || row[0] == 0.0 && row[1] < table.classes as f64 && row[2] < table.boxes as f64
            })
    };
    let mut others = model.graph.outputs.iter().filter(|port| port.name != boxes.name);
    others.find(|port| prober.values_of(&port.name).next().is_some() && prober.values_of(&port.name).all(fits))
}

/// The number of values in an output for each of `boxes` boxes: `[1, boxes, classes]`, `[1, classes, boxes]`, or `[1,
/// boxes]` for one class.
fn classes_of_boxes(tensor: &Tensor, boxes: usize) -> Option<usize> {
    match tensor.shape[..] {
        [rows] | [1, rows] if rows == boxes => Some(1),
        [rows, classes] | [1, rows, classes] | [1, rows, 1, classes] if rows == boxes && classes > 0 => Some(classes),
        [1, classes, rows] if rows == boxes && classes > 0 => Some(classes),
        _ => None,
    }
}

/// Whether boxes differ between the test images; anchors do not.
fn follows_image(boxes: &Port, prober: &Prober<'_, '_>) -> bool {
    let mut runs = prober.values_of(&boxes.name);
    match (runs.next(), runs.next()) {
        (Some(first), Some(second)) => first.is_empty() || first != second,
        _ => true,
    }
}
