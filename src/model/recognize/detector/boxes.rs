//! What the numbers of a box mean: their order and their space.

use crate::domain::{BoundingBox, BoxFormat, BoxSpace, Layout};
use crate::model::recognize::probe::Prober;
use crate::model::recognize::{Findings, Refusal};

/// Numbers above this are pixels.
const MAX_NORMALIZED: f64 = 1.5;
/// How far the best box must move, as a fraction of the image, to follow the patch of the probes, which moves by half.
const MIN_MOVE: f64 = 0.35;

/// A box from a test run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    /// The four numbers in the graph's order and space.
    pub edges: [f64; 4],
    pub class: f64,
    pub score: f64,
}

/// Whether nearly all numbers are small enough for fractions of the image; `None` without boxes.
pub(super) fn are_normalized(runs: &[Vec<Row>]) -> Option<bool> {
    let edges = || runs.iter().flatten().flat_map(|row| row.edges);
    let small = edges().filter(|edge| *edge <= MAX_NORMALIZED).count();
    (edges().count() > 0).then(|| small * 50 >= edges().count() * 49)
}

/// Whether boxes are in pixels or from 0 to 1. `of_image`: the graph gets the size of the image.
pub(super) fn space(runs: &[Vec<Row>], of_image: bool, layout: Layout, findings: &mut Findings) -> BoxSpace {
    let largest = runs.iter().flatten().flat_map(|row| row.edges).fold(0.0, f64::max);
    let field = "output.detection.box_space";
    match are_normalized(runs) {
        Some(true) => {
            findings.recognized(field, "normalized", format!("the largest box value is {largest:.3}"));
            BoxSpace::Normalized
        }
        Some(false) if of_image => {
            findings.recognized(field, "image-pixels", "the boxes scale with the image size passed to the graph");
            BoxSpace::ImagePixels
        }
        Some(false) => {
            findings.recognized(field, "model-pixels", format!("the largest box value is {largest:.1}"));
            BoxSpace::ModelPixels
        }
        None if of_image => {
            findings.assumed(
                field,
                "image-pixels",
                "the image size is passed to the graph, and the test images had no boxes",
            );
            BoxSpace::ImagePixels
        }
        None if matches!(layout, Layout::Nhwc | Layout::Hwc) => {
            findings.assumed(field, "normalized", "the test images had no boxes; those of TensorFlow are from 0 to 1");
            BoxSpace::Normalized
        }
        None => {
            findings.assumed(field, "model-pixels", "the test images had no boxes; most detectors return pixels");
            BoxSpace::ModelPixels
        }
    }
}

/// The order of a box's numbers. `corners` is the order of corners, if it is known.
///
/// # Errors
/// The numbers are neither corners nor center and size.
pub(super) fn format(
    runs: &[Vec<Row>],
    space: BoxSpace,
    corners: Option<(BoxFormat, String)>,
    prober: &Prober<'_, '_>,
    findings: &mut Findings,
) -> Result<BoxFormat, Refusal> {
    let field = "output.detection.box_format";
    let rows = || runs.iter().flatten();
    // A few untrained or degenerate boxes do not make another format.
    let mostly =
        |fits: &dyn Fn(&[f64; 4]) -> bool| rows().filter(|row| fits(&row.edges)).count() * 50 >= rows().count() * 49;
    if !mostly(&|edges| edges[2] >= edges[0] && edges[3] >= edges[1]) {
        if !mostly(&|edges| edges[2] >= 0.0 && edges[3] >= 0.0) {
            return Err(Refusal::new(
                "the boxes are neither two corners nor center and size: their third and fourth numbers are negative. \
                Export the model with decoded boxes",
            ));
        }
        let because = "the third and fourth number are often below the first and second, so they are a size";
        findings.recognized(field, "cxcywh", because);
        return Ok(BoxFormat::Cxcywh);
    }
    let [width, height] = prober.size();
    let extent = match space {
        BoxSpace::ModelPixels | BoxSpace::ImagePixels => [f64::from(width), f64::from(height)],
        BoxSpace::Normalized => [1.0, 1.0],
    };
    let shown = corners
        .or_else(|| format_by_motion(runs, extent[0].max(extent[1])))
        .or_else(|| format_by_extent(runs, extent))
        .or_else(|| format_by_mirror(runs, extent[0]));
    if let Some((format, because)) = shown {
        findings.recognized(field, format.into_str(), because);
        return Ok(format);
    }
    let (format, because) = match (space, prober.layout()) {
        (BoxSpace::Normalized, Layout::Nhwc | Layout::Hwc) => (
            BoxFormat::Yxyx,
            "the values fit yxyx and xyxy; normalized boxes of a channels-last model are usually from TensorFlow",
        ),
        _ => (BoxFormat::Xyxy, "the values fit xyxy and yxyx; outside TensorFlow, boxes are usually xyxy"),
    };
    findings.assumed(field, format.into_str(), because);
    Ok(format)
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
        |first, second| format!("the best box followed a bright patch to the right in its {first} and {second} values");
    if moved[0] > MIN_MOVE && moved[1].abs() * 4.0 < moved[0] {
        Some((BoxFormat::Xyxy, because("first", "third")))
    } else if moved[1] > MIN_MOVE && moved[0].abs() * 4.0 < moved[1] {
        Some((BoxFormat::Yxyx, because("second", "fourth")))
    } else {
        None
    }
}

/// The probes are mirror images, and so are the boxes of a trained network, in their x coordinates.
fn format_by_mirror(runs: &[Vec<Row>], width: f64) -> Option<(BoxFormat, String)> {
    /// Only the best boxes of a run; the rest is mostly chance.
    const COMPARED: usize = 10;
    /// The mean IoU of a box and its closest mirror image; chance alone reaches 0.5.
    const MIN_OVERLAP: f64 = 0.65;
    const MIN_ADVANTAGE: f64 = 0.15;
    let best_of = |run: &[Row], count: usize| {
        let mut best = run.to_vec();
        best.sort_by(|left, right| right.score.total_cmp(&left.score));
        best.truncate(count);
        best
    };
    let [left, right] = runs else { return None };
    // Among thousands of candidates, one is always close.
    let (best, right) = (best_of(left, COMPARED), best_of(right, 2 * COMPARED));
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

/// Which coordinate exceeds the image's short side.
fn format_by_extent(runs: &[Vec<Row>], [width, height]: [f64; 2]) -> Option<(BoxFormat, String)> {
    let reach = |pair: [usize; 2]| {
        let edges = runs.iter().flatten().flat_map(|row| pair.map(|edge| row.edges[edge]));
        edges.fold(0.0, f64::max)
    };
    let (first, second) = (reach([0, 2]), reach([1, 3]));
    // One pixel of tolerance; unclipped boxes extend past the image on both axes and decide nothing.
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
