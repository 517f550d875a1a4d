//! Outputs of detectors. Each layout that fits is a reading, described like a card; the most likely one is used. The
//! meaning of its numbers is then derived from the boxes of test runs, with the same code that reads predictions.

mod boxes;
mod class_scores;
mod columns;
mod faces;
mod found;
mod grids;
mod packed;
mod ranking;
mod separate;

use boxes::Row;
use found::Found;

use super::finding::{Findings, Refusal};
use super::labels::{LABEL_FILE, label_count, misfit};
use super::notes::begin_with_background;
use super::probe::{Prober, Same, ToldSize};
use super::usual::Usual;
use super::{OutputPrediction, RecognitionRequest, RecognizeError};
use crate::domain::{BoxFormat, DetectionOutput, LabelSet, OutputConvention};
use crate::model::raw_candidates;

/// `None` if the graph is not a detector.
///
/// # Errors
/// A detector whose boxes cannot be read, or whose outputs cannot be distinguished.
pub(crate) fn recognize(
    model: &RecognitionRequest<'_>,
    prober: &mut Prober<'_, '_>,
    findings: &mut Findings,
) -> Result<Option<OutputPrediction>, RecognizeError> {
    let mut readings = readings(model, prober)?;
    if readings.first().is_some_and(|found| found.rows(prober).iter().any(Vec::is_empty)) && prober.run_unscaled() {
        readings = self::readings(model, prober)?;
    }
    if readings.is_empty() {
        return Ok(None);
    }
    let reading_texts: Vec<String> = readings.iter().map(|found| found.because.clone()).collect();
    let (reading, count) = (model.overrules.reading(), readings.len());
    if reading >= count {
        let reason = format!("reading {} does not exist; there are {count}", reading + 1);
        return Err(Refusal::new(reason).into());
    }
    let mut found = readings.swap_remove(reading);
    let rows = found.rows(prober);
    let side_multiple = prober.side_multiple().unwrap_or(1);
    findings.recognized("task", "detection", found.because.clone());
    findings.0.append(&mut found.parts);
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
        None => boxes::space(&rows, told != ToldSize::Ignored, prober.layout(), findings),
    };
    found.output.box_format = match found.decided_format.take() {
        Some((format, because)) => {
            findings.recognized("output.detection.box_format", format.into_str(), because);
            format
        }
        None => boxes::format(&rows, found.output.box_space, corners, prober, findings)?,
    };
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
    let naming = name_classes(&found, model, &rows, side_multiple, findings)?;
    found.output.class_offset = naming.offset;
    let used = found.output.output_names();
    // Rows of boxes without an image dimension belong to all images of a call.
    let is_of_rows = |name: &String| prober.values_of(name).all(|tensor| tensor.shape.len() > 2);
    if found.output.batch_index.is_none() && found.output.boxes.outputs.iter().all(is_of_rows) {
        prober.recognize_batches(&used, Same::Exactly, findings);
    }
    let unused = model.graph.outputs.iter().filter(|port| !used.contains(&port.name.as_str()));
    let ignored_outputs: Vec<String> = unused.map(|port| port.name.clone()).collect();
    let not_shown = found.not_shown.or_else(|| ignored_outputs.iter().find_map(|name| not_shown(name)));
    // super-gradients' names for the outputs of the postprocessing that its export appends.
    let is_yolo_nas = model.graph.outputs.iter().all(|port| port.name.starts_with("graph2_"));
    let usual = if is_yolo_nas {
        Some(Usual::YoloNas)
    } else if found.output.boxes.outputs == ["det_out"] {
        Some(Usual::Yolop)
    } else {
        found.usual
    };
    let usual = usual.map(|usual| usual.fitting(found.output.box_space, found.output.box_format));
    Ok(Some(OutputPrediction {
        not_shown,
        ignored_outputs,
        convention: OutputConvention::Detection(found.output),
        label_set: naming.label_set,
        labels_to_store: naming.labels_to_store,
        side_multiple,
        usual,
        readings: reading_texts,
    }))
}

/// The content of an unused output, by its name (torchvision's Mask R-CNN and Keypoint R-CNN, DETR).
fn not_shown(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    if name.contains("mask") {
        Some(found::NO_MASKS)
    } else if name.contains("keypoint") || name.contains("joint") || name.contains("landmark") {
        Some(found::NO_KEY_POINTS)
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

struct Naming {
    offset: i32,
    label_set: Option<String>,
    labels_to_store: Option<LabelSet>,
}

fn name_classes(
    found: &Found,
    model: &RecognitionRequest<'_>,
    rows: &[Vec<Row>],
    side_multiple: u32,
    findings: &mut Findings,
) -> Result<Naming, Refusal> {
    let seen = || rows.iter().flatten().map(|row| row.class);
    let highest = seen().fold(0.0, f64::max) as usize;
    let zero_seen = seen().any(|class| class == 0.0);
    let classes = found.classes;
    // With one score per class, the number is known, and no class is the background.
    let counts_all = classes.is_some() && found.output.labels.is_none();
    let is_tflite = found.usual == Some(Usual::TensorFlowLite);
    let because_of_file = "its names match the model's classes".to_owned();
    let noted = || {
        let fits = |labels: &LabelSet| match classes {
            Some(classes) if counts_all => classes == label_count(labels),
            _ => highest <= label_count(labels) && !((zero_seen || is_tflite) && begin_with_background(labels)),
        };
        model.notes.labels_if(fits)
    };
    let labels = match &model.labels {
        Some(labels) => Some((labels.clone(), because_of_file)),
        None => noted().map(|noted| (noted.value, noted.because)),
    };
    if let Some((labels, because)) = labels {
        let count = label_count(&labels);
        check_label_count(count, highest, classes, counts_all)?;
        let offset = if highest == count && !counts_all { -1 } else { 0 };
        let field = "output.detection.class_offset";
        if counts_all {
            findings.recognized(field, offset, format!("the number of names matches the {count} class scores"));
        } else {
            let seen = format!("{count} classes are named, and the highest class of the test images is {highest}");
            if offset != 0 || zero_seen {
                findings.recognized(field, offset, seen);
            } else {
                findings.assumed(field, offset, format!("{seen}, which also allows an offset of -1"));
            }
        }
        findings.recognized("labels", LABEL_FILE, because);
        return Ok(Naming { offset, label_set: Some(LABEL_FILE.to_owned()), labels_to_store: Some(labels) });
    }
    let (set, offset) = match classes {
        // One score for each of COCO's ids, from 1 to 90.
        Some(90) if counts_all => (Some("coco-91"), 1),
        Some(90 | 91) => (Some("coco-91"), 0),
        _ if (81..=90).contains(&highest) => (Some("coco-91"), i32::from(is_tflite)),
        Some(81) => (Some("coco-80"), -1),
        Some(80) => (Some("coco-80"), 0),
        // The ONNX Model Zoo's Faster R-CNN: COCO's 80 names after one for the background.
        _ if side_multiple > 1 && highest <= 80 && !zero_seen => (Some("coco-80"), -1),
        _ => (None, 0),
    };
    match set {
        Some(set) => {
            findings.assumed("labels", set, "most such detectors are trained on COCO, and the class numbers match");
        }
        None => findings.assumed(
            "labels",
            "none",
            "the classes have no names; they are shown by number until you add a label file or set labels=coco-91 \
             (or coco-80)",
        ),
    }
    findings.assumed("output.detection.class_offset", offset, "derived from the labels");
    Ok(Naming { offset, label_set: set.map(str::to_owned), labels_to_store: None })
}

fn check_label_count(count: usize, highest: usize, classes: Option<usize>, counts_all: bool) -> Result<(), Refusal> {
    match classes {
        _ if highest > count => Err(misfit(format!("returned class {highest}"), count)),
        Some(classes) if classes != count && (counts_all || classes != count + 1) => {
            Err(misfit(format!("has {classes} classes"), count))
        }
        _ => Ok(()),
    }
}
