//! Which detections of an image are correct, which are wrong and how, and which objects were missed.

use crate::domain::{BoxRole, ExactBox};
use crate::review::OutcomeKind;

/// The default IoU from which a detection of the right class is correct.
pub const CORRECT_IOU: f64 = 0.5;
/// The IoU up to which a detection counts as background (TIDE, Bolya et al. 2020).
pub const BACKGROUND_IOU: f64 = 0.1;

/// Maximum number of detections per class and image that COCO counts.
const MOST_DETECTIONS: usize = 100;

/// The ground truth and the detections of one image. Classes are indices into those of the evaluation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ImageObjects {
    pub truths: Vec<TrueObject>,
    pub detections: Vec<DetectedObject>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrueObject {
    pub bounds: ExactBox,
    pub class: u32,
    /// In square pixels. Decides whether the object is small, medium or large.
    pub area: f64,
    pub role: BoxRole,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DetectedObject {
    pub bounds: ExactBox,
    pub class: u32,
    /// `0.0..=1.0`.
    pub score: f64,
}

/// The outcome of a detection at any minimum score: only detections with a higher score decide which objects are taken.
/// The kinds of errors are those of TIDE, in its order; the first one that fits applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    pub kind: OutcomeKind,
    /// The object that it detects, or that it covers with another class: an index into the truths.
    pub truth: Option<usize>,
}

impl From<OutcomeKind> for Outcome {
    fn from(kind: OutcomeKind) -> Self {
        Self { kind, truth: None }
    }
}

/// The outcome of each detection of an image, in the order of [`ImageObjects::detections`], with COCO's matching: from
/// the highest score down (ties in input order), each detection takes the free object of its class that it overlaps
/// most (on a tie, the last one), if the IoU is at least `iou`; objects that do not count come last.
pub fn outcomes(image: &ImageObjects, iou: f64) -> Vec<Outcome> {
    Overlaps::new(image).outcomes(image, iou)
}

/// The IoU of each detection with each object.
pub(super) struct Overlaps {
    /// By detection, then by truth.
    ious: Vec<f64>,
    /// The detections, highest score first.
    order: Vec<usize>,
    truths: usize,
}

impl Overlaps {
    pub(super) fn new(image: &ImageObjects) -> Self {
        let mut order: Vec<usize> = (0..image.detections.len()).collect();
        order.sort_by(|&one, &other| image.detections[other].score.total_cmp(&image.detections[one].score));
        let mut ious = Vec::with_capacity(image.detections.len() * image.truths.len());
        for found in &image.detections {
            let overlap = |truth: &TrueObject| iou(found.bounds, truth.bounds, truth.role == BoxRole::Crowd);
            ious.extend(image.truths.iter().map(overlap));
        }
        Self { ious, order, truths: image.truths.len() }
    }

    /// The detections, highest score first; ties in input order.
    pub(super) fn order(&self) -> &[usize] {
        &self.order
    }

    /// The detections that COCO counts, in the same order: at most 100 per class.
    pub(super) fn counted<'o>(&'o self, image: &'o ImageObjects, classes: usize) -> impl Iterator<Item = usize> + 'o {
        let mut of_class = vec![0; classes];
        self.order.iter().copied().filter(move |&index| {
            let of_class = of_class.get_mut(image.detections[index].class as usize);
            of_class.is_some_and(|of_class| {
                *of_class += 1;
                *of_class <= MOST_DETECTIONS
            })
        })
    }

    pub(super) fn row(&self, detection: usize) -> &[f64] {
        &self.ious[detection * self.truths..(detection + 1) * self.truths]
    }

    /// As [`outcomes`].
    pub(super) fn outcomes(&self, image: &ImageObjects, iou: f64) -> Vec<Outcome> {
        let matches = self.matches(image, iou);
        let mut is_taken = vec![false; image.truths.len()];
        for partner in matches.iter().flatten() {
            is_taken[*partner] = true;
        }
        let outcome = |(index, partner): (usize, &Option<usize>)| match *partner {
            Some(truth) if image.truths[truth].role == BoxRole::Object => {
                Outcome { kind: OutcomeKind::Correct, truth: *partner }
            }
            Some(_) => OutcomeKind::Ignored.into(),
            None => self.error(image, index, iou, &is_taken),
        };
        matches.iter().enumerate().map(outcome).collect()
    }

    /// The object for a detection with this outcome, with the IoU: the one that it detects, or else the one that it
    /// overlaps most, of its own class for a localization error; `None` if it overlaps none.
    pub(super) fn nearest(&self, image: &ImageObjects, detection: usize, outcome: Outcome) -> Option<(u32, f64)> {
        let row = self.row(detection);
        if let Some(truth) = outcome.truth {
            return Some((truth as u32, *row.get(truth)?));
        }
        let is_of_class = matches!(outcome.kind, OutcomeKind::Location | OutcomeKind::Duplicate);
        let is_ignored = outcome.kind == OutcomeKind::Ignored;
        let class = image.detections[detection].class;
        let truths = image.truths.iter().zip(row).enumerate();
        let fitting = truths.filter(|(_, (truth, iou))| {
            let is_wanted = (truth.role != BoxRole::Object) == is_ignored && (!is_of_class || truth.class == class);
            **iou > 0.0 && is_wanted
        });
        let most = fitting.max_by(|(_, (_, one)), (_, (_, other))| one.total_cmp(other));
        most.map(|(index, (_, iou))| (index as u32, *iou))
    }

    /// The object of its class that counts and that a detection overlaps most; the first one on a tie.
    pub(super) fn nearest_of_class(&self, image: &ImageObjects, detection: usize) -> Option<usize> {
        let class = image.detections[detection].class;
        let of_class = image.truths.iter().zip(self.row(detection)).enumerate();
        let of_class = of_class.filter(|(_, (truth, _))| truth.class == class && truth.role == BoxRole::Object).rev();
        let most = of_class.max_by(|(_, (_, iou)), (_, (_, other))| iou.total_cmp(other));
        most.map(|(index, _)| index)
    }

    /// The object that each detection takes.
    pub(super) fn matches(&self, image: &ImageObjects, iou: f64) -> Vec<Option<usize>> {
        let mut matches = vec![None; image.detections.len()];
        let mut is_taken = vec![false; image.truths.len()];
        for &detection in &self.order {
            let class = image.detections[detection].class;
            let row = self.row(detection);
            let best = |counts: bool| {
                let mut best: Option<usize> = None;
                // As in pycocotools: slightly below 1, so that equal boxes match at a threshold of 1.
                let mut most = iou.min(1.0 - 1e-10);
                for (index, truth) in image.truths.iter().enumerate() {
                    let is_free = !is_taken[index] || truth.role == BoxRole::Crowd;
                    let is_wanted = truth.class == class && (truth.role == BoxRole::Object) == counts;
                    if is_wanted && is_free && row[index] >= most {
                        most = row[index];
                        best = Some(index);
                    }
                }
                best
            };
            matches[detection] = best(true).or_else(|| best(false));
            if let Some(taken) = matches[detection] {
                is_taken[taken] = true;
            }
        }
        matches
    }

    /// The error of a detection that matches nothing. Only objects that count are considered: crowds and ignored
    /// objects excuse detections that match them, and no others.
    fn error(&self, image: &ImageObjects, detection: usize, iou: f64, is_taken: &[bool]) -> Outcome {
        let class = image.detections[detection].class;
        let (mut same, mut other) = (0.0_f64, 0.0_f64);
        let mut other_truth = None;
        let mut is_duplicate = false;
        let counting = image.truths.iter().enumerate().filter(|(_, truth)| truth.role == BoxRole::Object);
        for (index, truth) in counting {
            let overlap = self.row(detection)[index];
            if truth.class == class {
                same = same.max(overlap);
                is_duplicate |= overlap >= iou && is_taken[index];
            } else if overlap > other {
                other = overlap;
                other_truth = Some(index);
            }
        }
        let kind = match other_truth {
            _ if (BACKGROUND_IOU..=iou).contains(&same) => OutcomeKind::Location,
            Some(_) if other >= iou => return Outcome { kind: OutcomeKind::Class, truth: other_truth },
            _ if is_duplicate => OutcomeKind::Duplicate,
            _ if other <= BACKGROUND_IOU => OutcomeKind::Background,
            _ => OutcomeKind::Both,
        };
        kind.into()
    }
}

/// Intersection over union; over the area of the detection alone if the object is a crowd (`bbIou` in pycocotools'
/// `maskApi.c`).
fn iou(found: ExactBox, truth: ExactBox, is_crowd: bool) -> f64 {
    let width = found.right().min(truth.right()) - found.left.max(truth.left);
    let height = found.bottom().min(truth.bottom()) - found.top.max(truth.top);
    if width <= 0.0 || height <= 0.0 {
        return 0.0;
    }
    let union = if is_crowd { found.area() } else { found.area() + truth.area() - width * height };
    width * height / union
}
