//! Which detections of an image are correct, which are wrong and how, which objects were missed, and the cost of each
//! kind of error, as in `tidecv` (TIDE, Bolya et al. 2020): the AP at IoU 0.50 that fixing only this kind would gain.
//!
//! For that cost, a detection with a wrong location or class is fixed by making it correct, if it has the highest score of
//! those for a missed object. All other wrong detections are fixed by removing them, and missed objects by not counting
//! them.

use std::collections::BTreeMap;

use hotcoco::metrics::counts::average_precision_ranked;
use hotcoco::params::{IouType, Params};
use serde::Serialize;

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

impl ImageObjects {
    /// Adds an object that counts, unless one of its class covers it. Returns whether it was added.
    pub fn add_object(&mut self, bounds: ExactBox, class: u32) -> bool {
        let is_same = |truth: &TrueObject| {
            truth.class == class && truth.role == BoxRole::Object && iou(bounds, truth.bounds, false) >= CORRECT_IOU
        };
        let is_new = !self.truths.iter().any(is_same);
        if is_new {
            self.truths.push(TrueObject { bounds, class, area: bounds.area(), role: BoxRole::Object });
        }
        is_new
    }
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
pub(super) fn iou(found: ExactBox, truth: ExactBox, is_crowd: bool) -> f64 {
    let width = found.right().min(truth.right()) - found.left.max(truth.left);
    let height = found.bottom().min(truth.bottom()) - found.top.max(truth.top);
    if width <= 0.0 || height <= 0.0 {
        return 0.0;
    }
    let union = if is_crowd { found.area() } else { found.area() + truth.area() - width * height };
    width * height / union
}

const UNDETECTED: &str = "missed";

/// The cost of one of TIDE's kinds of errors.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ErrorCost {
    /// Errors with any score.
    pub count: u64,
    /// The gain in AP at IoU 0.50 if only this kind of error were fixed.
    pub ap50_cost: f64,
}

#[derive(Debug, Clone, Default)]
pub(super) struct ClassErrors {
    /// Correct and wrong detections.
    found: Vec<Found>,
    /// The scores of detections of other classes that become correct in this one.
    incoming: Vec<f64>,
    truths: usize,
    undetected: usize,
}

#[derive(Debug, Clone, Copy)]
struct Found {
    score: f64,
    kind: OutcomeKind,
    /// Whether fixing it makes it correct.
    becomes_right: bool,
}

/// Adds an image to the errors of all classes. `outcomes` are those of `overlaps` at IoU 0.50.
pub(super) fn add_errors(classes: &mut [ClassErrors], image: &ImageObjects, overlaps: &Overlaps, outcomes: &[Outcome]) {
    let mut is_missed: Vec<bool> = image.truths.iter().map(|truth| truth.role == BoxRole::Object).collect();
    let counted: Vec<usize> = overlaps.counted(image, classes.len()).collect();
    for &index in &counted {
        if let Outcome { kind: OutcomeKind::Correct, truth: Some(truth) } = outcomes[index] {
            is_missed[truth] = false;
        }
    }
    let mut is_repaired = vec![false; image.truths.len()];
    for &index in &counted {
        let found = &image.detections[index];
        let Outcome { kind, truth } = outcomes[index];
        let target = match kind {
            OutcomeKind::Location => overlaps.nearest_of_class(image, index),
            OutcomeKind::Class => truth,
            _ => None,
        };
        let target = target.filter(|truth| is_missed[*truth] && !std::mem::replace(&mut is_repaired[*truth], true));
        if kind != OutcomeKind::Ignored {
            let found = Found { score: found.score, kind, becomes_right: target.is_some() };
            classes[image.detections[index].class as usize].found.push(found);
        }
        if let Some(truth) = target.filter(|_| kind == OutcomeKind::Class)
            && let Some(class) = classes.get_mut(image.truths[truth].class as usize)
        {
            class.incoming.push(found.score);
        }
    }
    for ((truth, is_missed), is_repaired) in image.truths.iter().zip(is_missed).zip(is_repaired) {
        if let Some(class) = classes.get_mut(truth.class as usize).filter(|_| truth.role == BoxRole::Object) {
            class.truths += 1;
            class.undetected += usize::from(is_missed && !is_repaired);
        }
    }
}

/// The number of errors of each kind, and their cost.
pub(super) fn error_costs(mut classes: Vec<ClassErrors>) -> BTreeMap<&'static str, ErrorCost> {
    let recalls = Params::new(IouType::Bbox).rec_thrs;
    for class in &mut classes {
        class.found.sort_by(|one, other| other.score.total_cmp(&one.score));
        class.incoming.sort_by(|one, other| other.total_cmp(one));
    }
    // Without objects a class has no AP.
    let measured: Vec<(&ClassErrors, f64)> = classes
        .iter()
        .filter(|class| class.truths > 0)
        .map(|class| (class, class.ap(None, class.truths, &recalls)))
        .collect();
    let gain = |repaired: &dyn Fn(&ClassErrors) -> f64| {
        let gains = measured.iter().map(|(class, ap)| repaired(class) - ap);
        if measured.is_empty() { 0.0 } else { gains.sum::<f64>() / measured.len() as f64 }
    };
    use OutcomeKind::{Background, Both, Class, Duplicate, Location};
    let kinds = [Class, Location, Both, Duplicate, Background].map(|kind| {
        let of_kind = |class: &ClassErrors| class.found.iter().filter(|found| found.kind == kind).count() as u64;
        let ap50_cost = gain(&|class| class.ap(Some(kind), class.truths, &recalls));
        (kind.into_str(), ErrorCost { count: classes.iter().map(of_kind).sum(), ap50_cost })
    });
    let ap50_cost = gain(&|class| class.ap(None, class.truths - class.undetected, &recalls));
    let undetected = ErrorCost { count: classes.iter().map(|class| class.undetected as u64).sum(), ap50_cost };
    kinds.into_iter().chain([(UNDETECTED, undetected)]).collect()
}

impl ClassErrors {
    /// The AP at IoU 0.50 with so many objects, if one kind of error is repaired.
    fn ap(&self, repaired: Option<OutcomeKind>, truths: usize, recalls: &[f64]) -> f64 {
        let incoming = if repaired == Some(OutcomeKind::Class) { &self.incoming[..] } else { &[] };
        let mut incoming = incoming.iter().peekable();
        let mut are_right = Vec::with_capacity(self.found.len() + incoming.len());
        for found in &self.found {
            while incoming.next_if(|score| **score > found.score).is_some() {
                are_right.push(true);
            }
            if repaired != Some(found.kind) {
                are_right.push(found.kind == OutcomeKind::Correct);
            } else if found.becomes_right && found.kind == OutcomeKind::Location {
                are_right.push(true);
            }
        }
        are_right.extend(incoming.map(|_| true));
        average_precision_ranked(&are_right, None, truths, recalls)
    }
}
