//! AP of Pascal VOC, as its development kit measures it (`VOCevaldet.m`): a detection belongs to the object of its
//! class that it overlaps most, taken or not, with an IoU of at least 0.5.

use super::objects::{CORRECT_IOU, ImageObjects, Overlaps};
use crate::domain::BoxRole;

/// The detections of one class, in the order of the images.
#[derive(Debug, Clone, Default)]
pub(super) struct VocDetections {
    /// Score, and whether the detection is right; ignored ones are left out.
    scored: Vec<(f64, bool)>,
    truths: u64,
}

/// Adds an image to the detections of all classes.
pub(super) fn add(classes: &mut [VocDetections], image: &ImageObjects) {
    for truth in image.truths.iter().filter(|truth| truth.role == BoxRole::Object) {
        if let Some(class) = classes.get_mut(truth.class as usize) {
            class.truths += 1;
        }
    }
    let overlaps = Overlaps::of(image);
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
            Some(truth) => class.scored.push((found.score, !std::mem::replace(&mut is_taken[truth], true))),
            None => class.scored.push((found.score, false)),
        }
    }
}

impl VocDetections {
    /// AP with eleven points (2007), and as the area under the curve (from 2010 on); `None` without objects.
    pub(super) fn ap(mut self) -> Option<[f64; 2]> {
        if self.truths == 0 {
            return None;
        }
        self.scored.sort_by(|one, other| other.0.total_cmp(&one.0));
        let truths = self.truths as f64;
        let mut correct = 0.0;
        // Recall and precision after each detection.
        let mut curve: Vec<[f64; 2]> = Vec::with_capacity(self.scored.len());
        for (place, (_, is_correct)) in self.scored.iter().enumerate() {
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
}
