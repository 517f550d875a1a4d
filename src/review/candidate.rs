//! One image with everything that a query, a sort and the counts use.

use super::facts::{Facts, Gate};
use super::outcomes::{OutcomeFacts, ShownOutcomes};
use super::{Mark, Summary, VerdictKind};
use crate::domain::{ModelTask, Sample, SampleId};

pub(super) struct Candidate<'a> {
    pub(super) id: SampleId,
    pub(super) sample: &'a Sample,
    /// `None` if no run is shown.
    pub(super) gate: Option<&'a Gate<'a>>,
    pub(super) prediction: Option<(Summary<'a>, Facts)>,
    pub(super) mark: Option<&'a Mark>,
    /// `None` while the image is unjudged; see [`Mark::judged`].
    pub(super) verdict: Option<VerdictKind>,
    pub(super) has_problem: bool,
    pub(super) is_damaged: bool,
    pub(super) is_outdated: bool,
    /// How the boxes compare with the ground truth; `None` if that is not known.
    pub(super) outcomes: Option<ShownOutcomes<'a>>,
    pub(super) outcome_facts: Option<OutcomeFacts>,
    /// The same for the other of two runs.
    pub(super) other_facts: Option<OutcomeFacts>,
    /// How far the two compared runs differ on it, `0.0..=1.0`.
    pub(super) disagreement: Option<f32>,
}

impl Candidate<'_> {
    pub(super) fn facts(&self) -> Option<Facts> {
        self.prediction.map(|(_, facts)| facts)
    }

    /// The number of visible boxes; `None` without a prediction of a detector.
    pub(super) fn boxes(&self) -> Option<u32> {
        let is_detector = self.gate?.task() == ModelTask::Detection;
        self.facts().filter(|_| is_detector).map(|facts| facts.boxes)
    }

    /// How many errors fewer than the other run the one on screen makes.
    pub(super) fn gain(&self) -> Option<i64> {
        Some(self.other_facts?.errors() - self.outcome_facts?.errors())
    }

    pub(super) fn tags(&self) -> impl Iterator<Item = &str> {
        let tags = self.mark.into_iter().flat_map(|mark| mark.tags.iter());
        tags.map(String::as_str)
    }

    pub(super) fn note(&self) -> Option<&str> {
        self.mark?.note.as_deref()
    }
}
