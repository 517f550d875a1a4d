//! Ranks the readings of the outputs by likelihood.

use std::cmp::Reverse;

use super::Found;
use super::boxes::are_normalized;
use crate::model::recognize::probe::Prober;
use crate::model::recognize::{Basis, RecognitionRequest, Refusal};

/// The class counts of public datasets: VOC, COCO, its ids, Objects365, Open Images, LVIS.
const USUAL_CLASS_COUNTS: [usize; 7] = [20, 80, 90, 91, 365, 601, 1203];
/// The fraction of a reading's boxes that may be implausible.
const MAX_STRAY_SHARE: f64 = 0.1;

/// Evidence for a reading, strongest first. Readings with equal evidence fit equally well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Evidence {
    /// Files next to the model or output names identify it.
    is_identified: bool,
    names: NameFit,
    /// The graph selected a class for each box.
    is_final: bool,
    /// Outputs and columns about the same boxes that the reading does not explain.
    unexplained: Reverse<usize>,
    boxes_make_sense: bool,
}

/// Whether the number of names fits the reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum NameFit {
    Differs,
    Unknown,
    Fits,
}

/// The equally plausible readings, most likely first.
///
/// # Errors
/// The best reading leaves most of the information about boxes unread.
pub(super) fn rank(
    readings: Vec<Found>,
    model: &RecognitionRequest<'_>,
    prober: &Prober<'_, '_>,
) -> Result<Vec<Found>, Refusal> {
    let mut weighed: Vec<(Evidence, Found)> =
        readings.into_iter().map(|found| (weigh(&found, model, prober), found)).collect();
    // The sort is stable: common layouts come first.
    let is_usual = |found: &Found| found.classes.is_some_and(|count| USUAL_CLASS_COUNTS.contains(&count));
    weighed.sort_by_key(|(evidence, found)| Reverse((*evidence, is_usual(found))));
    let Some((best, found)) = weighed.first() else {
        return Ok(Vec::new());
    };
    let unread = related_outputs(found, model, prober);
    if !best.is_identified && !best.is_final && unread.len() >= found.output.output_names().len() {
        return Err(Refusal::new(format!(
            "only {} could be read as boxes with scores, but {} also belong to the boxes, so the boxes are not \
             decoded. Export the model with decoded boxes, scores and classes",
            found.output.output_names().join(" and "),
            unread.join(", ")
        )));
    }
    let best = *best;
    let mut equal: Vec<Found> =
        weighed.into_iter().take_while(|(evidence, _)| *evidence == best).map(|(_, found)| found).collect();
    mark_doubt(&mut equal, best);
    Ok(equal)
}

fn weigh(found: &Found, model: &RecognitionRequest<'_>, prober: &Prober<'_, '_>) -> Evidence {
    let counts = model.label_counts();
    let names = match found.classes {
        _ if counts.is_empty() => NameFit::Unknown,
        // A class per box does not show how many classes there are.
        _ if found.output.labels.is_some() => NameFit::Fits,
        Some(classes) if counts.contains(&classes) => NameFit::Fits,
        Some(_) => NameFit::Differs,
        None => NameFit::Unknown,
    };
    Evidence {
        is_identified: found.is_identified,
        names,
        is_final: found.is_final,
        unexplained: Reverse(related_outputs(found, model, prober).len() + found.unknown_columns.min(1)),
        boxes_make_sense: found.is_in_cells.unwrap_or(true) && boxes_make_sense(found, prober),
    }
}

/// Outputs that the reading does not use and that have one row for each of its boxes, or for those of another level.
fn related_outputs<'g>(found: &Found, model: &RecognitionRequest<'g>, prober: &Prober<'_, '_>) -> Vec<&'g str> {
    let used = found.output.output_names();
    let shape = |name: &str| prober.values_of(name).next().map(|tensor| tensor.shape.clone());
    let boxes: Vec<Vec<usize>> = found.output.boxes.outputs.iter().filter_map(|name| shape(name)).collect();
    let numbers = |shape: &[usize]| match shape {
        [.., numbers, _] if found.output.candidates_last => *numbers,
        [.., numbers] => *numbers,
        [] => 1,
    };
    let mut rows: Vec<usize> =
        boxes.iter().map(|shape| shape.iter().product::<usize>() / numbers(shape).max(1)).collect();
    rows.push(rows.iter().sum());
    // One output with everything can occur twice (YOLOv9).
    let is_packed = used.len() == 1;
    let is_related = |shape: &[usize]| {
        if is_packed && boxes.iter().any(|boxes| boxes == shape) {
            return false;
        }
        let has_rows = shape.iter().any(|side| *side > 1 && rows.contains(side));
        // The boxes of another level have the same number of values each.
        let is_level = boxes.iter().any(|boxes| {
            let differing = boxes.iter().zip(shape).filter(|(left, right)| left != right).count();
            boxes.len() == shape.len() && differing <= 1
        });
        has_rows || is_level
    };
    let unused = model.graph.outputs.iter().map(|port| port.name.as_str()).filter(|name| !used.contains(name));
    unused.filter(|name| shape(name).is_some_and(|shape| is_related(&shape))).collect()
}

/// Whether nearly all boxes are in or around the image and not much larger, as center and size or as corners.
fn boxes_make_sense(found: &Found, prober: &Prober<'_, '_>) -> bool {
    let rows = found.rows(prober);
    let edges = || rows.iter().flatten().map(|row| row.edges);
    let size = prober.size().map(f64::from);
    // If the graph gets an image size, boxes are in pixels of the test image.
    let extent = if are_normalized(&rows) == Some(true) { [1.0; 2] } else { size };
    let is_sane = |center: [f64; 2], sides: [f64; 2]| {
        (0..2).all(|axis| {
            let (center, side) = (center[axis] / extent[axis], sides[axis] / extent[axis]);
            (-0.5..=1.5).contains(&center) && (0.0..=4.0).contains(&side)
        })
    };
    let makes_sense = |[a, b, c, d]: [f64; 4]| {
        is_sane([a, b], [c, d]) || is_sane([f64::midpoint(a, c), f64::midpoint(b, d)], [c - a, d - b])
    };
    let count = edges().count() as f64;
    edges().filter(|edges| !makes_sense(*edges)).count() as f64 <= count * MAX_STRAY_SHARE
}

/// Marks as assumed whatever differs in the second best reading, or everything if the boxes are implausible.
fn mark_doubt(readings: &mut [Found], evidence: Evidence) {
    let Some((best, others)) = readings.split_first_mut() else {
        return;
    };
    for part in best.parts.iter_mut().filter(|part| part.basis == Basis::Recognized) {
        let differs = others
            .iter()
            .any(|other| !other.parts.iter().any(|theirs| theirs.field == part.field && theirs.value == part.value));
        if differs {
            part.basis = Basis::Assumed;
            part.because = format!("{}; other readings are also possible", part.because);
        } else if !evidence.boxes_make_sense {
            part.basis = Basis::Assumed;
            part.because = format!("{}, but most boxes on the test images are implausible", part.because);
        }
    }
}
