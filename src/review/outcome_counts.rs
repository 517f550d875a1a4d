//! What the outcomes of all images come to at the filters on screen.

use std::collections::BTreeMap;

use strum::VariantArray;

use super::outcomes::OutcomeKind;
use super::{ArrangeRequest, NO_OBJECT, SAMPLES_PER_CHECK};
use crate::domain::SampleId;

/// Boxes on screen by their outcome, and missed objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutcomeCounts {
    /// Images that are compared with ground truth.
    pub images: u64,
    /// By class of the ground truth.
    pub classes: Vec<ClassOutcomes>,
    /// In the order of `OutcomeKind::VARIANTS`.
    kinds: [u64; OutcomeKind::VARIANTS.len()],
    /// Wrong top classes of a classifier that the ground truth does not have.
    pub wrong_of_other_classes: u64,
    /// Objects that no box of any class shows.
    pub missed: u64,
    /// By class of the object (`None`: there is none) and class of the box, both as classes of the ground truth. A box
    /// counts once. `None` for the box: no box of any class shows the object, or a class shows it that the ground truth
    /// does not have.
    pub confusion: BTreeMap<(Option<u32>, Option<u32>), u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClassOutcomes {
    /// Boxes of the class that are right.
    pub correct: u64,
    /// Boxes of the class that are wrong.
    pub wrong: u64,
    /// Objects of the class without a right box.
    pub missed: u64,
}

impl OutcomeCounts {
    /// Boxes with this outcome.
    pub fn kind(&self, kind: OutcomeKind) -> u64 {
        self.kinds[kind as usize]
    }

    /// All classes together.
    pub fn all(&self) -> ClassOutcomes {
        let others = ClassOutcomes { wrong: self.wrong_of_other_classes, ..ClassOutcomes::default() };
        self.classes.iter().fold(others, |all, class| ClassOutcomes {
            correct: all.correct + class.correct,
            wrong: all.wrong + class.wrong,
            missed: all.missed + class.missed,
        })
    }
}

impl ClassOutcomes {
    /// `None` without boxes.
    pub fn precision(&self) -> Option<f64> {
        share(self.correct, self.correct + self.wrong)
    }

    /// `None` without objects.
    pub fn recall(&self) -> Option<f64> {
        share(self.correct, self.correct + self.missed)
    }

    /// `None` if there are neither boxes nor objects.
    pub fn f1(&self) -> Option<f64> {
        share(2 * self.correct, 2 * self.correct + self.wrong + self.missed)
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Counts all images, whatever the query. `None` without outcomes, or if `cancelled`, which is called now and then,
/// returned true.
pub fn outcome_counts(request: &ArrangeRequest, cancelled: &dyn Fn() -> bool) -> Option<OutcomeCounts> {
    let outcomes = request.outcomes.as_ref()?;
    let (predictions, gate) = (request.predictions.as_ref()?, request.gate()?);
    let mut counts =
        OutcomeCounts { classes: vec![ClassOutcomes::default(); outcomes.classes.len()], ..OutcomeCounts::default() };
    for (number, (id, summary)) in predictions.iter().enumerate() {
        if number.is_multiple_of(SAMPLES_PER_CHECK) && cancelled() {
            return None;
        }
        if let Some(shown) = request.shown_outcomes(SampleId::from_index(id.index()), summary, &gate) {
            counts.images += 1;
            for found in shown.boxes() {
                counts.kinds[found.kind as usize] += 1;
                if found.kind == OutcomeKind::Ignored {
                    continue;
                }
                let is_about = matches!(found.kind, OutcomeKind::Correct | OutcomeKind::Class);
                let object = found.outcome.object;
                let object = (is_about && object != NO_OBJECT).then(|| shown.outcomes.objects.get(object as usize));
                let object = object.flatten().map(|object| object.class);
                let place = outcomes.place_of(found.class);
                *counts.confusion.entry((object, place)).or_default() += 1;
                match place.and_then(|place| counts.classes.get_mut(place as usize)) {
                    Some(class) if found.kind == OutcomeKind::Correct => class.correct += 1,
                    Some(class) => class.wrong += 1,
                    None => counts.wrong_of_other_classes += 1,
                }
            }
            for missed in shown.missed() {
                if let Some(class) = counts.classes.get_mut(missed.object.class as usize) {
                    class.missed += 1;
                }
                if !missed.is_confused {
                    counts.missed += 1;
                    *counts.confusion.entry((Some(missed.object.class), None)).or_default() += 1;
                }
            }
        }
    }
    Some(counts)
}
