//! One image with everything that a query, a sort and the counts use.

use std::cell::OnceCell;

use super::facts::{Facts, Gate};
use super::outcomes::{OutcomeFacts, ShownOutcomes};
use super::{Mark, Summary, VerdictKind};
use crate::domain::{ModelTask, Sample, SampleId};

pub(super) struct Candidate<'a> {
    pub(super) id: SampleId,
    pub(super) sample: &'a Sample,
    /// `None` if no run is shown.
    pub(super) gate: Option<&'a Gate<'a>>,
    pub(super) summary: Option<Summary<'a>>,
    pub(super) mark: Option<&'a Mark>,
    /// `None` while the image is unjudged; see [`Mark::judged`].
    pub(super) verdict: Option<VerdictKind>,
    pub(super) has_problem: bool,
    pub(super) is_damaged: bool,
    pub(super) is_outdated: bool,
    /// How the boxes compare with the ground truth; `None` if that is not known.
    pub(super) outcomes: Option<ShownOutcomes<'a>>,
    /// The same for the other of two runs.
    pub(super) other_outcomes: Option<ShownOutcomes<'a>>,
    /// How far the two compared runs differ on it, `0.0..=1.0`.
    pub(super) disagreement: Option<f32>,
    pub(super) counted: Counted,
}

/// What takes a walk over the boxes, once it was asked.
#[derive(Default)]
pub(super) struct Counted {
    facts: OnceCell<Option<Facts>>,
    /// Of the run on screen and of the other one.
    outcomes: [OnceCell<Option<OutcomeFacts>>; 2],
}

impl Candidate<'_> {
    pub(super) fn facts(&self) -> Option<Facts> {
        let facts = || Some(self.gate?.facts(self.id, self.summary?));
        *self.counted.facts.get_or_init(facts)
    }

    /// What the outcomes of the run on screen come to.
    pub(super) fn outcome_facts(&self) -> Option<OutcomeFacts> {
        *self.counted.outcomes[0].get_or_init(|| self.outcomes.map(ShownOutcomes::facts))
    }

    /// What those of the other run come to.
    pub(super) fn other_facts(&self) -> Option<OutcomeFacts> {
        *self.counted.outcomes[1].get_or_init(|| self.other_outcomes.map(ShownOutcomes::facts))
    }

    /// The number of visible boxes; `None` without a prediction of a detector.
    pub(super) fn boxes(&self) -> Option<u32> {
        let is_detector = self.gate?.task() == ModelTask::Detection;
        self.facts().filter(|_| is_detector).map(|facts| facts.boxes)
    }

    /// How many errors fewer than the other run the one on screen makes.
    pub(super) fn gain(&self) -> Option<i64> {
        Some(self.other_facts()?.errors() - self.outcome_facts()?.errors())
    }

    pub(super) fn tags(&self) -> impl Iterator<Item = &str> {
        let tags = self.mark.into_iter().flat_map(|mark| mark.tags.iter());
        tags.map(String::as_str)
    }

    pub(super) fn note(&self) -> Option<&str> {
        self.mark?.note.as_deref()
    }
}
