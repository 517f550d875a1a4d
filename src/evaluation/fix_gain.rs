//! The increase of AP if a single label is fixed.
//!
//! A fix changes the matching of one image and the number of objects. Everything else is ranked once, so a fix costs one
//! pass over the true positives of its classes per IoU.

use super::detection_draws::{ClassDraws, DetectionDraws, IOUS, Matched};

/// The effect of a fix on a class.
#[derive(Debug, Clone)]
pub(super) struct ClassChange {
    pub(super) class: u32,
    /// The increase of the number of objects.
    pub(super) truths: isize,
    /// The detections of the image that COCO counts, highest score first, as they match after the fix; empty if none
    /// changes.
    pub(super) matched: Vec<Matched>,
}

/// The ranked detections of all classes.
pub(super) struct FixGains {
    classes: Vec<RankedClass>,
    recalls: Vec<f64>,
    /// The sum of the AP of classes with objects, and their number.
    sum: f64,
    measured: isize,
}

struct RankedClass {
    truths: usize,
    /// Highest score first.
    matched: Vec<Matched>,
    /// The image and the rank of each detection, sorted.
    by_image: Vec<(u32, u32)>,
    /// At each IoU, the ranks of ignored detections.
    ignored: [Vec<u32>; IOUS],
    /// At each IoU, the positions of correct detections among those that are not ignored, from 1.
    correct: [Vec<u32>; IOUS],
    /// `None` without objects.
    ap: Option<f64>,
}

impl FixGains {
    /// `draws` must be sorted.
    pub(super) fn new(draws: &DetectionDraws) -> Self {
        let recalls = draws.params.rec_thrs.clone();
        let classes: Vec<RankedClass> = draws.classes.iter().map(|class| RankedClass::new(class, &recalls)).collect();
        let measured = || classes.iter().filter_map(|class| class.ap);
        let (sum, count) = (measured().sum(), measured().count() as isize);
        Self { classes, recalls, sum, measured: count }
    }

    /// The increase of AP after these changes, at most one per class, all in image number `image`; 0 if there is no AP
    /// before or after.
    pub(super) fn gain(&self, image: u32, changes: &[ClassChange]) -> f64 {
        let (mut sum, mut measured) = (self.sum, self.measured);
        for change in changes {
            let Some(class) = self.classes.get(change.class as usize) else { continue };
            let after = class.ap_after(image, change, &self.recalls);
            sum += after.unwrap_or_default() - class.ap.unwrap_or_default();
            measured += isize::from(after.is_some()) - isize::from(class.ap.is_some());
        }
        if self.measured == 0 || measured == 0 {
            return 0.0;
        }
        sum / measured as f64 - self.sum / self.measured as f64
    }
}

impl RankedClass {
    fn new(class: &ClassDraws, recalls: &[f64]) -> Self {
        let matched: Vec<Matched> = class.found.iter().map(|found| found.matched).collect();
        let mut by_image: Vec<(u32, u32)> = class.found.iter().map(|found| found.image).zip(0..).collect();
        by_image.sort_unstable();
        let ranks = |step: usize| matched.iter().zip(0..).filter(move |(found, _)| found.is_ignored(step));
        let ignored = std::array::from_fn(|step| ranks(step).map(|(_, rank)| rank).collect());
        let correct = std::array::from_fn(|step| correct_positions(&matched, step));
        let mut ranked = Self { truths: class.truths.len(), matched, by_image, ignored, correct, ap: None };
        let unchanged = ClassChange { class: 0, truths: 0, matched: Vec::new() };
        ranked.ap = ranked.ap_after(0, &unchanged, recalls);
        ranked
    }

    fn ap_after(&self, image: u32, change: &ClassChange, recalls: &[f64]) -> Option<f64> {
        let truths = self.truths.checked_add_signed(change.truths).filter(|truths| *truths > 0)?;
        let first = self.by_image.partition_point(|(other, _)| *other < image);
        let ranks = self.by_image[first..].iter().map(|(_, rank)| *rank);
        let changed: Vec<(u32, Matched)> = ranks.zip(change.matched.iter().copied()).collect();
        let ap = |step: usize| {
            let correct = self.correct_after(step, &changed);
            average_precision(correct.as_deref().unwrap_or(&self.correct[step]), truths, recalls)
        };
        Some((0..IOUS).map(ap).sum::<f64>() / IOUS as f64)
    }

    /// As [`Self::correct`], with these detections matched differently; `None` if that changes nothing.
    fn correct_after(&self, step: usize, changed: &[(u32, Matched)]) -> Option<Vec<u32>> {
        let before = |rank: u32| self.matched[rank as usize];
        if changed.iter().any(|(rank, after)| before(*rank).is_ignored(step) != after.is_ignored(step)) {
            let mut matched = self.matched.clone();
            for (rank, after) in changed {
                matched[*rank as usize] = *after;
            }
            return Some(correct_positions(&matched, step));
        }
        let others = changed.iter().filter(|(rank, after)| before(*rank).is_correct(step) != after.is_correct(step));
        let mut correct = None;
        for (rank, _) in others {
            let correct: &mut Vec<u32> = correct.get_or_insert_with(|| self.correct[step].clone());
            let position = rank + 1 - self.ignored[step].partition_point(|ignored| ignored < rank) as u32;
            match correct.binary_search(&position) {
                Ok(at) => {
                    correct.remove(at);
                }
                Err(at) => correct.insert(at, position),
            }
        }
        correct
    }
}

fn correct_positions(matched: &[Matched], step: usize) -> Vec<u32> {
    let counted = matched.iter().filter(|found| !found.is_ignored(step)).zip(1..);
    counted.filter(|(found, _)| found.is_correct(step)).map(|(_, position)| position).collect()
}

/// COCO's interpolated AP of a ranking with correct detections at these positions.
fn average_precision(correct: &[u32], truths: usize, recalls: &[f64]) -> f64 {
    let recall = |index: usize| (index + 1) as f64 / truths as f64;
    let (mut sum, mut envelope, mut reached) = (0.0, 0.0_f64, correct.len());
    // Precision at a recall is the highest one at any greater recall.
    for least in recalls.iter().rev() {
        let mut first = ((least * truths as f64) as usize).saturating_sub(2);
        while recall(first) < *least {
            first += 1;
        }
        while reached > first {
            reached -= 1;
            envelope = envelope.max((reached + 1) as f64 / f64::from(correct[reached]));
        }
        sum += envelope;
    }
    sum / recalls.len() as f64
}
