//! cleanlab's `ObjectLab`: the quality of a detector's labels (cleanlab 2.9, `object_detection/rank.py`; Tkachenko,
//! Thyagarajan and Mueller, 2023, <https://arxiv.org/abs/2309.00832>).
//!
//! Where `ObjectLab` uses the lowest similarity in the dataset, which is almost 0, this uses 0. Distances are in pixels, so
//! they depend on the resolution of the image.

use super::objects::{DetectedObject, ImageObjects, TrueObject, iou};
use crate::domain::ExactBox;
use crate::review::SuspectKind;

/// Boxes from this score show swapped classes and overlooked objects.
const HIGH_SCORE: f64 = 0.95;
/// Boxes above this score show badly located labels.
const LOW_SCORE: f64 = 0.5;
/// The IoU from which two labels of different classes contradict each other.
const SAME_PLACE_IOU: f64 = 0.95;
/// The lower, the closer the softmin of scores is to the lowest one.
const TEMPERATURE: f64 = 0.1;
/// Keeps logarithms finite.
const TINY: f64 = 1e-100;

/// The score of a suspicious label: swapped, badly located or overlooked. `detection` and `truth` are indices. `None` if
/// `ObjectLab` does not consider the label, or for another reason.
pub(super) fn label_quality(
    image: &ImageObjects,
    kind: SuspectKind,
    detection: Option<usize>,
    truth: Option<usize>,
) -> Option<f64> {
    let object = truth.map(|truth| image.truths[truth]);
    match (kind, object) {
        (SuspectKind::Class, Some(object)) => Some(swap(image, object)),
        (SuspectKind::Misplaced, Some(object)) => Some(badloc(image, object)),
        (SuspectKind::Missing, _) => overlooked(image, image.detections[detection?]),
        _ => None,
    }
}

/// The quality of all labels of an image: the geometric mean of the softmins of the three kinds of scores.
pub(super) fn image_quality(image: &ImageObjects) -> f64 {
    let truths = || image.truths.iter().copied();
    let is_contradicted = |object: TrueObject| {
        let others = truths().filter(|other| other.class != object.class);
        others.into_iter().any(|other| iou(object.bounds, other.bounds, false) >= SAME_PLACE_IOU)
    };
    let scores = [
        image.detections.iter().filter_map(|found| overlooked(image, *found)).collect(),
        truths().map(|object| badloc(image, object)).collect(),
        truths().map(|object| if is_contradicted(object) { 0.0 } else { swap(image, object) }).collect(),
    ];
    let logarithms = scores.map(|scores: Vec<f64>| (TINY + softmin(&scores)).ln());
    (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp()
}

/// The mean of the scores, weighted by `exp(-score / temperature)`; 1 without scores.
fn softmin(scores: &[f64]) -> f64 {
    let lowest = scores.iter().copied().fold(f64::INFINITY, f64::min);
    let weights = scores.iter().map(|score| ((lowest - score) / TEMPERATURE).exp());
    let (weighted, sum) =
        weights.zip(scores).fold((0.0, 0.0), |(all, sum), (weight, score)| (all + weight * score, sum + weight));
    if scores.is_empty() { 1.0 } else { weighted / sum }
}

/// `1 - s`, with the similarity `s` of the most similar confident box of another class; 1 without one.
fn swap(image: &ImageObjects, object: TrueObject) -> f64 {
    let others = image.detections.iter().filter(|found| found.class != object.class && found.score > HIGH_SCORE);
    let most = others.map(|found| similarity(object.bounds, found.bounds)).max_by(f64::total_cmp);
    most.map_or(1.0, |most| 1.0 - most)
}

/// The similarity of the most similar box of the same class that overlaps the object; 1 without one.
fn badloc(image: &ImageObjects, object: TrueObject) -> f64 {
    let same = image.detections.iter().filter(|found| found.class == object.class && found.score > LOW_SCORE);
    let same = same.filter(|found| iou(found.bounds, object.bounds, false) > 0.0);
    same.map(|found| similarity(object.bounds, found.bounds)).max_by(f64::total_cmp).unwrap_or(1.0)
}

/// The similarity of the most similar label of the same class; 0 without one. `None` for a box that is not confident, or
/// overlaps a label.
fn overlooked(image: &ImageObjects, found: DetectedObject) -> Option<f64> {
    let is_alone = || image.truths.iter().all(|truth| iou(found.bounds, truth.bounds, false) <= 0.0);
    if found.score < HIGH_SCORE || !is_alone() {
        return None;
    }
    let same = image.truths.iter().filter(|truth| truth.class == found.class);
    Some(same.map(|truth| similarity(truth.bounds, found.bounds)).max_by(f64::total_cmp).unwrap_or_default())
}

/// Mostly the IoU, and to a tenth how close the centers are.
fn similarity(one: ExactBox, other: ExactBox) -> f64 {
    let center = |bounds: ExactBox| [bounds.left + bounds.width / 2.0, bounds.top + bounds.height / 2.0];
    let ([x, y], [other_x, other_y]) = (center(one), center(other));
    0.9 * iou(one, other, false) + 0.1 * (-0.1 * (x - other_x).hypot(y - other_y)).exp()
}
