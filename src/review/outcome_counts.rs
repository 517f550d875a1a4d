//! Totals of the outcomes of all images with the current filters.

use std::collections::BTreeMap;

use strum::VariantArray;

use super::outcomes::{ClassOutcomes, OutcomeKind};
use super::{ArrangeRequest, SAMPLES_PER_CHECK, SuspectKind};

/// Counts by true and predicted class.
pub type Confusion = BTreeMap<(Option<u32>, Option<u32>), u64>;

/// Visible boxes by outcome, and missed objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutcomeCounts {
    /// Images with an evaluation against ground truth.
    pub images: u64,
    /// By ground-truth class.
    pub classes: Vec<ClassOutcomes>,
    /// In the order of `OutcomeKind::VARIANTS`.
    kinds: [u64; OutcomeKind::VARIANTS.len()],
    /// Wrong top classes of a classifier that the ground truth does not have.
    pub wrong_of_other_classes: u64,
    /// Objects that no box of any ground-truth class detects.
    pub undetected: u64,
    /// By class of the object (`None`: background) and class of the box, both as ground-truth classes. A box counts
    /// once. `None` for the box: no box of any class detects the object, or only one of a class that the ground truth
    /// does not have.
    pub confusion: Confusion,
    /// Suspicious labels, in the order of `SuspectKind::VARIANTS`.
    suspects: [u64; SuspectKind::VARIANTS.len()],
}

impl OutcomeCounts {
    pub fn kind(&self, kind: OutcomeKind) -> u64 {
        self.kinds[kind as usize]
    }

    pub fn suspects(&self, kind: SuspectKind) -> u64 {
        self.suspects[kind as usize]
    }

    pub fn all(&self) -> ClassOutcomes {
        let mut all = ClassOutcomes { wrong: self.wrong_of_other_classes, ..ClassOutcomes::default() };
        for class in &self.classes {
            all += *class;
        }
        all
    }
}

/// Counts all images, whatever the query. `None` without outcomes, or if `cancelled`, which is polled, returned true.
pub fn outcome_counts(request: &ArrangeRequest, cancelled: &dyn Fn() -> bool) -> Option<OutcomeCounts> {
    let outcomes = request.outcomes.as_ref()?;
    let (predictions, gate) = (request.predictions.as_ref()?, request.gate()?);
    let mut counts =
        OutcomeCounts { classes: vec![ClassOutcomes::default(); outcomes.classes.len()], ..OutcomeCounts::default() };
    let mut confusion = Cells::new(outcomes.classes.len());
    // Objects of an image that boxes of another class cover.
    let mut confused = Vec::new();
    for (number, (id, summary)) in predictions.iter().enumerate() {
        if number.is_multiple_of(SAMPLES_PER_CHECK) && cancelled() {
            return None;
        }
        let Some(shown) = request.shown_outcomes(id, summary, &gate) else {
            continue;
        };
        counts.images += 1;
        for found in shown.suspects() {
            counts.suspects[found.suspect.kind as usize] += 1;
        }
        confused.clear();
        for found in shown.boxes() {
            counts.kinds[found.kind as usize] += 1;
            if found.kind == OutcomeKind::Ignored {
                continue;
            }
            let is_about = matches!(found.kind, OutcomeKind::Correct | OutcomeKind::Class);
            let object = shown.outcomes.objects.get(found.outcome.object as usize).filter(|_| is_about);
            let Some(place) = outcomes.place_of(found.class) else {
                counts.wrong_of_other_classes += 1;
                continue;
            };
            if found.kind == OutcomeKind::Class {
                confused.push(found.outcome.object as usize);
            }
            confusion.add(object.map(|object| object.class), Some(place));
            if let Some(class) = counts.classes.get_mut(place as usize) {
                *(if found.kind == OutcomeKind::Correct { &mut class.correct } else { &mut class.wrong }) += 1;
            }
        }
        for missed in shown.missed() {
            if let Some(class) = counts.classes.get_mut(missed.object.class as usize) {
                class.false_negatives += 1;
            }
            if !confused.contains(&missed.index) {
                counts.undetected += 1;
                confusion.add(Some(missed.object.class), None);
            }
        }
    }
    counts.confusion = confusion.finish();
    Some(counts)
}

/// The confusion matrix while it is summed up: a flat list for usual numbers of classes, which is many times faster
/// than a map.
enum Cells {
    Dense { side: usize, counts: Vec<u64> },
    Sparse(Confusion),
}

impl Cells {
    /// With more classes, a list would take too much memory.
    const MOST_CLASSES: usize = 2000;

    fn new(classes: usize) -> Self {
        let side = classes + 1;
        if classes <= Self::MOST_CLASSES {
            Self::Dense { side, counts: vec![0; side * side] }
        } else {
            Self::Sparse(Confusion::new())
        }
    }

    /// The last row and column are for “no class”.
    fn add(&mut self, object: Option<u32>, found: Option<u32>) {
        match self {
            Self::Dense { side, counts } => {
                let place = |class: Option<u32>| class.map_or(*side - 1, |class| class as usize);
                if let Some(count) = counts.get_mut(place(object) * *side + place(found)) {
                    *count += 1;
                }
            }
            Self::Sparse(counts) => *counts.entry((object, found)).or_default() += 1,
        }
    }

    fn finish(self) -> Confusion {
        match self {
            Self::Dense { side, counts } => {
                let class = |place: usize| (place + 1 < side).then_some(place as u32);
                let cells = counts.into_iter().enumerate().filter(|(_, count)| *count > 0);
                cells.map(|(at, count)| ((class(at / side), class(at % side)), count)).collect()
            }
            Self::Sparse(counts) => counts,
        }
    }
}
