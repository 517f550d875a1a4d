//! The cost of each kind of error, as in `tidecv` (TIDE, Bolya et al. 2020): the AP at IoU 0.50 that fixing only this
//! kind would gain.
//!
//! A detection with a wrong location or class is fixed by making it correct, if it has the highest score of those for a
//! missed object. All other wrong detections are fixed by removing them, and missed objects by not counting them.

use std::collections::BTreeMap;

use hotcoco::metrics::counts::average_precision_ranked;
use hotcoco::params::{IouType, Params};
use serde::Serialize;

use super::objects::{ImageObjects, Outcome, Overlaps};
use crate::domain::BoxRole;
use crate::review::OutcomeKind;

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
pub(super) fn add(classes: &mut [ClassErrors], image: &ImageObjects, overlaps: &Overlaps, outcomes: &[Outcome]) {
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
pub(super) fn costs(mut classes: Vec<ClassErrors>) -> BTreeMap<&'static str, ErrorCost> {
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
