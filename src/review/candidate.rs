//! One image with everything that queries, sorting and counts use.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::duplicates::GroupPlace;
use super::facts::{Facts, Gate};
use super::outcomes::{OutcomeFacts, ShownOutcomes};
use super::{Mark, Summary, VerdictKind};
use crate::alike::Measure;
use crate::domain::{Capture, ModelTask, Sample, SampleId, SampleSet};

#[expect(clippy::struct_excessive_bools, reason = "each is a separate fact")]
pub struct Candidate<'a> {
    pub id: SampleId,
    pub sample: &'a Sample,
    /// `None` if no run is shown.
    pub gate: Option<&'a Gate<'a>>,
    pub summary: Option<Summary<'a>>,
    pub mark: Option<&'a Mark>,
    /// `None` while the image is unjudged; see [`Mark::judged`].
    pub verdict: Option<VerdictKind>,
    pub has_problem: bool,
    pub is_damaged: bool,
    pub is_outdated: bool,
    /// Whether it is in the sample to judge, or one of its boxes.
    pub is_sampled: bool,
    /// The images of each error pattern.
    pub patterns: &'a [SampleSet],
    /// Whether it was selected on the map.
    pub is_picked: bool,
    /// The outcomes of boxes against the ground truth; `None` if unknown.
    pub outcomes: Option<ShownOutcomes<'a>>,
    /// The same for the other of two runs.
    pub other_outcomes: Option<ShownOutcomes<'a>>,
    /// The disagreement of the two compared runs, `0.0..=1.0`.
    pub disagreement: Option<f32>,
    /// The similarity to the image of a search for similar ones, `-1.0..=1.0`.
    pub similarity: Option<f32>,
    /// The distance to the location of the search, if images are sorted by it.
    pub distance_km: Option<f32>,
    /// The group of duplicates.
    pub duplicate: Option<GroupPlace>,
    /// Values by embedding, of all images.
    pub measured: &'a BTreeMap<Measure, Arc<[f32]>>,
    pub counted: Counted,
}

/// Values that require a pass over the boxes, computed on demand.
#[derive(Default)]
pub struct Counted {
    facts: OnceCell<Option<Facts>>,
    /// For the run on screen and for the other one.
    outcomes: [OnceCell<Option<OutcomeFacts>>; 2],
}

impl Candidate<'_> {
    pub fn facts(&self) -> Option<Facts> {
        let facts = || Some(self.gate?.facts(self.id, self.summary?));
        *self.counted.facts.get_or_init(facts)
    }

    pub fn outcome_facts(&self) -> Option<OutcomeFacts> {
        *self.counted.outcomes[0].get_or_init(|| self.outcomes.map(ShownOutcomes::facts))
    }

    pub fn other_facts(&self) -> Option<OutcomeFacts> {
        *self.counted.outcomes[1].get_or_init(|| self.other_outcomes.map(ShownOutcomes::facts))
    }

    /// A value by its embedding.
    pub fn measure(&self, measure: Measure) -> Option<f32> {
        self.measured.get(&measure)?.get(self.id.index()).copied()
    }

    /// The number of visible boxes; `None` without a detector's prediction.
    pub fn boxes(&self) -> Option<u32> {
        let is_detector = self.gate?.task() == ModelTask::Detection;
        self.facts().filter(|_| is_detector).map(|facts| facts.boxes)
    }

    /// How many fewer errors the run on screen makes than the other one.
    pub fn gain(&self) -> Option<i64> {
        Some(self.other_facts()?.errors() - self.outcome_facts()?.errors())
    }

    /// Whether the run on screen and the other one make errors.
    pub fn has_errors(&self) -> Option<[bool; 2]> {
        Some([self.outcome_facts()?, self.other_facts()?].map(|facts| facts.errors() > 0))
    }

    /// `None` until the EXIF data is read.
    pub fn capture(&self) -> Option<&Capture> {
        self.sample.capture.as_deref()
    }

    pub fn tags(&self) -> impl Iterator<Item = &str> {
        let tags = self.mark.into_iter().flat_map(|mark| mark.tags.iter());
        tags.map(String::as_str)
    }

    pub fn note(&self) -> Option<&str> {
        self.mark?.note.as_deref()
    }
}
