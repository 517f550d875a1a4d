//! AP of Pascal VOC, as its development kit measures it (`VOCevaldet.m`): a detection belongs to the object of its
//! class that it overlaps most, taken or not, with an IoU of at least 0.5.

use super::objects::{CORRECT_IOU, ImageObjects, Overlaps};
use super::operating_point::{ScoredOutcomes, add_truths};
use crate::domain::BoxRole;

/// Adds an image to the detections of all classes; ignored ones are left out.
pub(super) fn add(classes: &mut [ScoredOutcomes], image: &ImageObjects, overlaps: &Overlaps) {
    add_truths(classes, image);
    let mut is_taken = vec![false; image.truths.len()];
    for &index in overlaps.order() {
        let found = &image.detections[index];
        let Some(class) = classes.get_mut(found.class as usize) else {
            continue;
        };
        let mut most = f64::NEG_INFINITY;
        let mut best = None;
        for (truth, overlap) in overlaps.row(index).iter().enumerate() {
            if image.truths[truth].class == found.class && *overlap > most {
                most = *overlap;
                best = Some(truth);
            }
        }
        match best.filter(|_| most >= CORRECT_IOU) {
            Some(truth) if image.truths[truth].role != BoxRole::Object => {}
            Some(truth) => class.add(found.score, !std::mem::replace(&mut is_taken[truth], true)),
            None => class.add(found.score, false),
        }
    }
}

/// AP with eleven points (2007), and as the area under the curve (from 2010 on), of the sorted detections of a class;
/// `None` without objects.
pub(super) fn ap(detections: &ScoredOutcomes) -> Option<[f64; 2]> {
    if detections.truths() == 0 {
        return None;
    }
    let truths = detections.truths() as f64;
    let mut correct = 0.0;
    // Recall and precision after each detection.
    let mut curve: Vec<[f64; 2]> = Vec::with_capacity(detections.scored().len());
    for (place, (_, is_correct)) in detections.scored().iter().enumerate() {
        correct += f64::from(u8::from(*is_correct));
        curve.push([correct / truths, correct / (place + 1) as f64]);
    }
    let eleven_points = (0..=10).map(|tenth| {
        let reached = curve.iter().filter(|[recall, _]| *recall >= f64::from(tenth) / 10.0);
        reached.map(|[_, precision]| *precision).fold(0.0, f64::max)
    });
    let eleven_points = eleven_points.sum::<f64>() / 11.0;
    let mut envelope = 0.0_f64;
    let mut area = 0.0;
    for place in (0..curve.len()).rev() {
        envelope = envelope.max(curve[place][1]);
        let before = place.checked_sub(1).map_or(0.0, |before| curve[before][0]);
        area += (curve[place][0] - before) * envelope;
    }
    Some([eleven_points, area])
}
