//! Outputs of detectors. Each layout that fits is a reading, described like a card; the most likely one is used. The
//! meaning of its numbers is then derived from the boxes of test runs, with the same code that reads predictions.

mod boxes;
mod class_scores;
mod columns;
mod faces;
mod naming;
mod packed;
mod ranking;
mod separate;

use super::probe::{Prober, Same, ToldSize};
use super::usual::Usual;
use super::{Basis, Finding, Findings, OutputPrediction, RecognitionRequest, RecognizeError, Refusal, unsupported};
use crate::domain::{BoxFormat, BoxSpace, CardTask, DetectionOutput, LabelChoice, OutputConvention};
use crate::model::raw_candidates;
use boxes::Row;

/// `None` if the graph is not a detector.
///
/// # Errors
/// A detector whose boxes cannot be read, or whose outputs cannot be distinguished.
pub(super) fn recognize(
    model: &RecognitionRequest<'_>,
    prober: &mut Prober<'_, '_>,
    findings: &mut Findings,
) -> Result<Option<OutputPrediction>, RecognizeError> {
    if are_embeddings(model, model.graph.outputs.iter().map(|port| &*port.name)) {
        return Ok(None);
    }
    let mut all = readings(model, prober)?;
    if all.first().is_some_and(|found| found.rows(prober).iter().any(Vec::is_empty)) && prober.run_unscaled() {
        all = readings(model, prober)?;
    }
    if all.is_empty() {
        return Ok(None);
    }
    let reading_texts: Vec<String> = all.iter().map(|found| found.because.clone()).collect();
    let (reading, count) = (model.overrules.reading(), all.len());
    if reading >= count {
        let reason = format!("reading {} does not exist; there are {count}", reading + 1);
        return Err(Refusal::new(reason).into());
    }
    let mut found = all.swap_remove(reading);
    let rows = found.rows(prober);
    let side_multiple = prober.side_multiple().unwrap_or(1);
    findings.recognized("task", "detection", found.because.clone());
    findings.0.append(&mut found.parts);
    understand_boxes(&mut found, &rows, prober, findings)?;
    find_suppression(&mut found, model, findings);
    let naming = naming::name_classes(&found, model, &rows, side_multiple, findings)?;
    found.output.class_offset = naming.offset;
    let used = found.output.output_names();
    // Rows of boxes without an image dimension belong to all images of a call.
    let is_of_rows = |name: &String| prober.values_of(name).all(|tensor| tensor.shape.len() > 2);
    if found.output.batch_index.is_none() && found.output.boxes.outputs.iter().all(is_of_rows) {
        prober.recognize_batches(&used, Same::Exactly, findings);
    }
    let unused = model.graph.outputs.iter().filter(|port| !used.contains(&port.name.as_str()));
    let ignored_outputs: Vec<String> = unused.map(|port| port.name.clone()).collect();
    Ok(Some(OutputPrediction {
        not_shown: found.not_shown.or_else(|| ignored_outputs.iter().find_map(|name| not_shown(name))),
        ignored_outputs,
        usual: usual(&found, model),
        convention: OutputConvention::Detection(found.output),
        label_set: naming.label_set,
        labels_to_store: naming.labels_to_store,
        side_multiple,
        readings: reading_texts,
    }))
}

/// Whether the names of all these outputs suggest embeddings, and nothing suggests boxes: tokens can look like boxes with
/// scores.
fn are_embeddings<'n>(model: &RecognitionRequest<'_>, mut outputs: impl Iterator<Item = &'n str>) -> bool {
    let is_set = model.overrules.text("task") == Some(CardTask::Detection.into_str());
    !is_set && model.label_counts().is_empty() && outputs.all(unsupported::names_embedding)
}

/// Sets what the numbers of a box mean.
fn understand_boxes(
    found: &mut Found,
    rows: &[Vec<Row>],
    prober: &mut Prober<'_, '_>,
    findings: &mut Findings,
) -> Result<(), Refusal> {
    let every_box = found.every_box();
    let told = prober.told_size(|outputs, size| extent_of(&every_box, outputs, size), findings);
    let follows = |side: &str| format!("the first number of a box follows the {side} passed to the graph");
    let corners = match told {
        ToldSize::FollowedHeightFirst => Some((BoxFormat::Yxyx, follows("height"))),
        ToldSize::FollowedWidthFirst => Some((BoxFormat::Xyxy, follows("width"))),
        ToldSize::Ignored | ToldSize::Followed => None,
    };
    found.output.box_space = match found.decided_space.take() {
        Some((space, because)) => {
            findings.recognized("output.detection.box_space", space.into_str(), because);
            space
        }
        None => boxes::space(rows, told != ToldSize::Ignored, prober.layout(), findings),
    };
    found.output.box_format = match found.decided_format.take() {
        Some((format, because)) => {
            findings.recognized("output.detection.box_format", format.into_str(), because);
            format
        }
        None => boxes::format(rows, found.output.box_space, corners, prober, findings)?,
    };
    Ok(())
}

/// The threshold for overlaps, if the graph does not suppress them.
fn find_suppression(found: &mut Found, model: &RecognitionRequest<'_>, findings: &mut Findings) {
    match (found.output.nms_iou, &model.notes.nms_iou) {
        (Some(_), Some(noted)) => {
            found.output.nms_iou = Some(noted.value);
            findings.recognized("output.detection.nms_iou", noted.value, noted.because.clone());
        }
        (Some(iou), None) => {
            let because = "the graph does not suppress overlapping boxes; this is the exporter's own default";
            findings.assumed("output.detection.nms_iou", iou, because);
        }
        (None, _) => {}
    }
}

/// The exporter that writes such outputs.
fn usual(found: &Found, model: &RecognitionRequest<'_>) -> Option<Usual> {
    // super-gradients' names for the outputs of the postprocessing that its export appends.
    let usual = if model.graph.outputs.iter().all(|port| port.name.starts_with("graph2_")) {
        Some(Usual::YoloNas)
    } else if found.output.boxes.outputs == ["det_out"] {
        Some(Usual::Yolop)
    } else {
        found.usual
    };
    usual.map(|usual| usual.fitting(found.output.box_space, found.output.box_format))
}

/// The content of an unused output, by its name (torchvision's Mask R-CNN and Keypoint R-CNN, DETR).
fn not_shown(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    if name.contains("mask") {
        Some(NO_MASKS)
    } else if name.contains("keypoint") || name.contains("joint") || name.contains("landmark") {
        Some(NO_KEY_POINTS)
    } else {
        None
    }
}

/// The readings of the outputs that fit equally well, most likely first.
fn readings(model: &RecognitionRequest<'_>, prober: &Prober<'_, '_>) -> Result<Vec<Found>, Refusal> {
    if let Some(found) = faces::find(model, prober) {
        return ranking::rank(vec![found], model, prober);
    }
    let mut others = packed::find(model, prober);
    others.extend(class_scores::find(model, prober));
    others.retain(|found| !are_embeddings(model, found.output.output_names().into_iter()));
    match separate::find(model.graph, model.overrules, prober) {
        Ok(found) => ranking::rank(found.into_iter().chain(others).collect(), model, prober),
        // Undecoded parts of boxes explain why there is no choice.
        Err(ambiguous) => ranking::rank(others, model, prober).and(Err(ambiguous)),
    }
}

/// The largest first and second number of the boxes, ignoring padding.
fn extent_of(output: &DetectionOutput, outputs: &super::Outputs, size: [u32; 2]) -> Option<[f64; 2]> {
    let candidates = raw_candidates(output, outputs, size).ok()?;
    let largest = |first: usize| {
        let numbers = candidates.iter().flat_map(|candidate| [candidate.numbers[first], candidate.numbers[first + 2]]);
        numbers.map(f64::abs).fold(0.0, f64::max)
    };
    (!candidates.is_empty()).then(|| [largest(0), largest(1)])
}

const NO_MASKS: &str = "masks are not shown, only boxes";
const NO_KEY_POINTS: &str = "key points are not shown, only boxes";

/// Graphs that end with a selection of the best return at most this many boxes.
const MAX_FINAL_ROWS: usize = 1000;

/// The outputs of a detector as a draft.
#[derive(Debug)]
struct Found {
    pub output: DetectionOutput,
    /// Why this is a detector.
    pub because: String,
    pub parts: Vec<Finding>,
    /// The number of classes with a score, without the background.
    pub classes: Option<usize>,
    /// Whether files next to the model or output names identify this reading.
    pub is_identified: bool,
    /// Whether the graph selected the class of each box.
    pub is_final: bool,
    /// The number of unexplained columns.
    pub unknown_columns: usize,
    /// Whether the boxes are near their cells; `None` if they belong to none.
    pub is_in_cells: Option<bool>,
    /// The box format, if the layout alone determines it.
    pub decided_format: Option<(BoxFormat, String)>,
    pub decided_space: Option<(BoxSpace, String)>,
    /// The exporter that writes such outputs, for what the graph does not record.
    pub usual: Option<Usual>,
    /// What is not shown of the prediction.
    pub not_shown: Option<&'static str>,
}

impl Found {
    fn new(output: DetectionOutput) -> Self {
        Self {
            output,
            because: String::new(),
            parts: Vec::new(),
            classes: None,
            is_identified: false,
            is_final: false,
            unknown_columns: 0,
            is_in_cells: None,
            decided_format: None,
            decided_space: None,
            usual: None,
            not_shown: None,
        }
    }

    fn part(&mut self, field: &str, value: &str, is_known: bool, because: &str) {
        self.parts.push(Finding {
            field: format!("output.detection.{field}"),
            value: value.to_owned(),
            basis: if is_known { Basis::Recognized } else { Basis::Assumed },
            because: because.to_owned(),
        });
    }

    /// Keeps every class of a box, as exporters do that suppress overlaps within each class.
    fn keep_all_classes(&mut self) {
        self.output.label_choice = LabelChoice::All;
        let because =
            "the graph does not record this; such exporters keep every class of a box with a sufficient score";
        self.part("label_choice", "all", false, because);
    }

    /// Reads every box once, with its best class, whatever the graph's own suppression keeps: synthetic images rarely
    /// leave a box.
    fn every_box(&self) -> DetectionOutput {
        DetectionOutput { selected: None, label_choice: LabelChoice::Best, ..self.output.clone() }
    }

    /// The boxes that count in each run, with their numbers as returned by the graph.
    fn rows(&self, prober: &Prober<'_, '_>) -> Vec<Vec<Row>> {
        let output = self.every_box();
        let of_run = |outputs| {
            let candidates = raw_candidates(&output, outputs, prober.size()).unwrap_or_default().into_iter();
            let rows = candidates.map(|candidate| Row {
                edges: candidate.numbers,
                class: candidate.class,
                score: f64::from(candidate.score),
            });
            // Graphs of fixed size pad with zeros.
            rows.filter(|row| row.score > 0.0).collect()
        };
        prober.predictions.iter().map(of_run).collect()
    }
}
