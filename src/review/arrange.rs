//! The samples that match a query, in sorted order.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use strum::VariantArray;

use super::candidate::{Candidate, Counted};
use super::duplicates::DuplicatePlaces;
use super::facts::Gate;
use super::folders::{FolderIndex, Folders};
use super::outcomes::{OutcomeClass, Outcomes, ShownOutcomes};
use super::query::Filter;
use super::{
    ClassChanges, ClassOutcomes, Direction, Marks, Predictions, Query, SAMPLES_PER_CHECK, Sort, SortBy, Summary,
    Suppressed, VerdictKind,
};
use crate::alike::Measure;
use crate::domain::{LabelSet, ModelTask, Sample, SampleId, SampleSet, SharedList, ViewSettings};

/// Snapshots of everything that the order depends on.
#[derive(Debug, Clone, Default)]
pub struct ArrangeRequest {
    /// Identifies the listing. While it stays the same, samples are only added.
    pub listing: u64,
    pub samples: SharedList<Sample>,
    /// Samples that cannot be shown: not decodable, or deleted.
    pub unreadable: SampleSet,
    /// The predictions of the run on screen.
    pub predictions: Option<Predictions>,
    /// Samples whose file changed after prediction.
    pub outdated: SampleSet,
    /// Samples in the random sample to judge.
    pub sampled: SampleSet,
    /// Samples selected on the map.
    pub picked: SampleSet,
    pub labels: LabelSet,
    pub view: ViewSettings,
    /// Boxes suppressed by better ones, as far as known.
    pub suppressed: Option<Suppressed>,
    pub marks: Marks,
    /// The disagreement of the two compared runs on each sample, `0.0..=1.0`; NaN if unknown. Can be shorter than the
    /// listing.
    pub disagreement: Option<Arc<[f32]>>,
    /// The similarity of each sample to one of them; NaN if unknown. Can be shorter than the listing.
    pub similarity: Option<Arc<[f32]>>,
    /// The images of each error pattern, in the order of the list.
    pub patterns: Arc<[SampleSet]>,
    /// The groups of duplicates, if they were searched for.
    pub duplicates: DuplicatePlaces,
    /// Values of each sample by its embedding, NaN if unknown. Can be shorter than the listing.
    pub measured: Arc<BTreeMap<Measure, Arc<[f32]>>>,
    /// The class changes between the two compared runs; empty without a comparison.
    pub changes: Arc<ClassChanges>,
    /// The outcomes of boxes against the ground truth, if any is open.
    pub outcomes: Option<Arc<Outcomes>>,
    /// The run to compare with, if both are compared with ground truth.
    pub other: Option<OtherRun>,
    pub query: Query,
    pub sort: Sort,
}

/// A second run against the same ground truth.
#[derive(Debug, Clone)]
pub struct OtherRun {
    pub predictions: Predictions,
    pub outcomes: Arc<Outcomes>,
    pub view: ViewSettings,
}

#[derive(Debug, Clone, Default)]
pub struct Arrangement {
    order: Arc<[SampleId]>,
    /// The position of each sample; [`NOWHERE`] if it does not match.
    places: Arc<[u32]>,
    pub counts: FilterCounts,
    /// Over the whole listing.
    pub folders: Folders,
}

const NOWHERE: u32 = u32::MAX;

/// The number of samples that each quick filter would show, over the whole listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FilterCounts {
    pub all: usize,
    pub predicted: usize,
    /// Images that could not be shown or predicted.
    pub problems: usize,
    /// Images that were predicted although the file is or may be damaged.
    pub damaged: usize,
    /// Images whose file changed after prediction.
    pub outdated: usize,
    /// Images in which a detector shows no box.
    pub no_box: usize,
    /// Images without a verdict on the image itself or on all visible boxes. Together with `verdicts`, this counts
    /// every image once.
    pub unjudged: usize,
    /// Images by their verdict ([`super::Mark::judged`]), in the order of `VerdictKind::VARIANTS`.
    pub verdicts: [usize; VerdictKind::VARIANTS.len()],
    /// Images with this verdict on the image or one of its boxes, in the order of `VerdictKind::VARIANTS`.
    pub with_verdict: [usize; VerdictKind::VARIANTS.len()],
    /// Images with an evaluation against ground truth.
    pub evaluated: usize,
    /// Images with a visible false positive.
    pub with_wrong: usize,
    /// Images with an object that no visible box detects.
    pub with_missed: usize,
    /// Images with a visible true positive.
    pub with_correct: usize,
    /// The visible boxes of the run on screen and of the other run.
    pub outcomes: [ClassOutcomes; 2],
    /// Images with fewer errors than in the other run.
    pub better: usize,
    /// Images with more errors than in the other run.
    pub worse: usize,
    /// Images with errors in the other run, but none in the run on screen.
    pub fixed: usize,
    /// Images with errors in the run on screen, but none in the other run.
    pub regressed: usize,
    /// False while suppression is on but not computed for some samples: all of their boxes are counted.
    pub is_exact: bool,
}

/// Arranges repeatedly, reusing the order of names and the folders.
#[derive(Debug, Default)]
pub struct Arranger {
    names: NameOrder,
    folders: FolderIndex,
}

/// Arranges once. `None` if `cancelled`, which is polled, returned true.
pub fn arrange(request: &ArrangeRequest, cancelled: &dyn Fn() -> bool) -> Option<Arrangement> {
    Arranger::default().arrange(request, cancelled)
}

impl Arranger {
    /// As [`arrange`].
    pub fn arrange(&mut self, request: &ArrangeRequest, cancelled: &dyn Fn() -> bool) -> Option<Arrangement> {
        let gate = request.gate();
        let other = request.other.as_ref().map(OtherRun::gate);
        let filter = request.filter();
        let mut counts = FilterCounts { is_exact: true, ..FilterCounts::default() };
        self.folders.follow(request.listing, &request.samples, cancelled)?;
        let mut folder_counts = self.folders.empty_counts();
        let mut ranked = Vec::with_capacity(if filter.is_open() { request.samples.len() } else { 0 });
        for (index, sample) in request.samples.iter().enumerate() {
            if index.is_multiple_of(SAMPLES_PER_CHECK) && cancelled() {
                return None;
            }
            let id = SampleId::from_index(index);
            let candidate = request.candidate(id, sample, gate.as_ref(), other.as_ref());
            counts.add(&candidate, &request.view);
            self.folders.count(&candidate, &mut folder_counts);
            if filter.passes(&candidate) {
                let rank = request.sort.by.rank(&candidate);
                ranked.push(Ranked::new(rank, request.sort.direction, id));
            }
        }
        if request.sort.by == SortBy::Camera {
            let cameras = cameras(&request.samples);
            for entry in &mut ranked {
                let rank = request.samples.get(entry.id.index()).and_then(camera).and_then(|name| cameras.get(name));
                *entry = Ranked::new(rank.copied(), request.sort.direction, entry.id);
            }
        }
        if request.sort.by == SortBy::Name {
            let ranks = self.names.ranks(request, cancelled)?;
            for entry in &mut ranked {
                let rank = ranks.get(entry.id.index()).copied().unwrap_or(NOWHERE);
                *entry = Ranked::new(Some(rank.into()), request.sort.direction, entry.id);
            }
        }
        if request.sort != Sort::default() {
            ranked.sort_unstable();
        }
        let order = ranked.iter().map(|entry| entry.id).collect();
        let folders = self.folders.finish(folder_counts);
        Some(Arrangement { counts, folders, ..Arrangement::new(order, request.samples.len()) })
    }
}

fn camera(sample: &Sample) -> Option<&str> {
    sample.capture.as_ref()?.camera.as_deref()
}

/// The rank of each camera.
fn cameras(samples: &SharedList<Sample>) -> HashMap<&str, u64> {
    let names: BTreeSet<&str> = samples.iter().filter_map(camera).collect();
    names.into_iter().zip(0..).collect()
}

impl ArrangeRequest {
    /// The distance of an image to the location of the search, if images are sorted by it.
    fn distance_km(&self, sample: &Sample) -> Option<f32> {
        if self.sort.by != SortBy::Distance {
            return None;
        }
        let location = sample.capture.as_ref()?.location?;
        Some(self.query.center()?.distance_km(location) as f32)
    }

    pub fn gate(&self) -> Option<Gate<'_>> {
        let predictions = self.predictions.as_ref()?;
        Some(Gate::new(predictions.task(), &self.view, self.suppressed.as_ref(), Some(&self.marks)))
    }

    pub fn filter(&self) -> Filter {
        Filter::new(&self.query, &self.labels, self.truth_classes(), &self.changes)
    }

    pub fn truth_classes(&self) -> &[OutcomeClass] {
        self.outcomes.as_ref().map_or(&[], |outcomes| &outcomes.classes)
    }

    /// How an image with this prediction compares with the ground truth; `None` if unknown.
    pub fn shown_outcomes<'a>(
        &'a self,
        id: SampleId,
        summary: Summary<'a>,
        gate: &'a Gate<'a>,
    ) -> Option<ShownOutcomes<'a>> {
        ShownOutcomes::new(self.outcomes.as_deref()?, id, summary, gate)
    }

    pub fn candidate<'a>(
        &'a self,
        id: SampleId,
        sample: &'a Sample,
        gate: Option<&'a Gate<'a>>,
        other: Option<&'a Gate<'a>>,
    ) -> Candidate<'a> {
        let predictions = self.predictions.as_ref();
        let summary = predictions.and_then(|predictions| predictions.summary(id));
        let mark = self.marks.of(id);
        let failed = predictions.is_some_and(|predictions| predictions.failure(id).is_some());
        let outcomes = summary.zip(gate).and_then(|(summary, gate)| self.shown_outcomes(id, summary, gate));
        Candidate {
            outcomes,
            other_outcomes: self.other.as_ref().zip(other).and_then(|(run, gate)| run.shown_outcomes(id, gate)),
            id,
            sample,
            gate,
            summary: summary.filter(|_| gate.is_some()),
            mark,
            verdict: match summary.zip(gate) {
                Some((summary, gate)) => gate.verdict(id, summary),
                None => mark.and_then(|mark| mark.verdict),
            },
            has_problem: failed || self.unreadable.contains(id),
            is_damaged: predictions.is_some_and(|predictions| !predictions.warnings(id).is_empty()),
            is_outdated: self.outdated.contains(id),
            is_sampled: self.sampled.contains(id),
            patterns: &self.patterns,
            is_picked: self.picked.contains(id),
            disagreement: self.disagreement.as_ref().and_then(|all| all.get(id.index()).copied()),
            similarity: self.similarity.as_ref().and_then(|all| all.get(id.index()).copied()),
            distance_km: self.distance_km(sample),
            duplicate: self.duplicates.get(id.index()),
            measured: &self.measured,
            counted: Counted::default(),
        }
    }
}

impl OtherRun {
    /// Verdicts apply to the run on screen.
    pub fn gate(&self) -> Gate<'_> {
        Gate::new(self.predictions.task(), &self.view, None, None)
    }

    fn shown_outcomes<'a>(&'a self, id: SampleId, gate: &'a Gate<'a>) -> Option<ShownOutcomes<'a>> {
        ShownOutcomes::new(&self.outcomes, id, self.predictions.summary(id)?, gate)
    }
}

/// Samples sorted by `key`: those without a rank last, ties in listing order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ranked {
    is_last: bool,
    key: u64,
    id: SampleId,
}

impl Ranked {
    fn new(rank: Option<u64>, direction: Direction, id: SampleId) -> Self {
        let key = rank.unwrap_or_default();
        Self {
            is_last: rank.is_none(),
            key: match direction {
                Direction::Ascending => key,
                Direction::Descending => !key,
            },
            id,
        }
    }
}

impl FilterCounts {
    pub fn verdict(&self, kind: VerdictKind) -> usize {
        self.verdicts[kind as usize]
    }

    fn add(&mut self, candidate: &Candidate<'_>, view: &ViewSettings) {
        self.all += 1;
        self.problems += usize::from(candidate.has_problem);
        self.damaged += usize::from(candidate.is_damaged);
        self.outdated += usize::from(candidate.is_outdated);
        match candidate.verdict {
            Some(kind) => self.verdicts[kind as usize] += 1,
            None => self.unjudged += 1,
        }
        if let Some(mark) = candidate.mark {
            for (count, kind) in self.with_verdict.iter_mut().zip(VerdictKind::VARIANTS) {
                *count += usize::from(mark.has(*kind));
            }
        }
        for (all, facts) in self.outcomes.iter_mut().zip([candidate.outcome_facts(), candidate.other_facts()]) {
            if let Some(facts) = facts {
                all.correct += u64::from(facts.correct);
                all.wrong += u64::from(facts.wrong);
                all.false_negatives += u64::from(facts.false_negatives);
            }
        }
        if let Some(facts) = candidate.outcome_facts() {
            self.evaluated += 1;
            self.with_wrong += usize::from(facts.wrong > 0);
            self.with_missed += usize::from(facts.false_negatives > 0);
            self.with_correct += usize::from(facts.correct > 0);
        }
        if let Some(gain) = candidate.gain() {
            self.better += usize::from(gain > 0);
            self.worse += usize::from(gain < 0);
        }
        self.fixed += usize::from(candidate.has_errors() == Some([false, true]));
        self.regressed += usize::from(candidate.has_errors() == Some([true, false]));
        if let (Some(facts), Some(gate)) = (candidate.facts(), candidate.gate) {
            let is_detection = gate.task() == ModelTask::Detection;
            self.predicted += 1;
            self.no_box += usize::from(is_detection && facts.boxes == 0);
            let hides_overlaps = is_detection && view.nms_iou.is_some();
            self.is_exact &= !hides_overlaps || gate.knows_overlaps(candidate.id);
        }
    }
}

impl Arrangement {
    /// Without counts.
    fn new(order: Arc<[SampleId]>, listed: usize) -> Self {
        let mut places = vec![NOWHERE; listed];
        for (place, id) in order.iter().enumerate() {
            places[id.index()] = place as u32;
        }
        Self { order, places: places.into(), ..Self::default() }
    }

    pub fn order(&self) -> &Arc<[SampleId]> {
        &self.order
    }

    /// The position of a sample; `None` if it does not match.
    pub fn place_of(&self, id: SampleId) -> Option<usize> {
        let place = *self.places.get(id.index())?;
        (place != NOWHERE).then_some(place as usize)
    }

    /// The position of the sample that was at `place` in an earlier order, or the one after its nearest remaining
    /// predecessor.
    pub fn place_after(&self, before: &dyn Fn(usize) -> Option<SampleId>, place: usize) -> usize {
        let earlier = (0..place).rev().filter_map(before);
        let mut places = earlier.filter_map(|id| self.place_of(id));
        places.next().map_or(0, |place| place + 1)
    }
}

/// The samples by name. Names do not change, so only new ones are sorted.
#[derive(Debug, Default)]
struct NameOrder {
    listing: u64,
    sorted: Vec<SampleId>,
    /// The rank by sample; equal names have equal ranks.
    ranks: Vec<u32>,
}

impl NameOrder {
    fn ranks(&mut self, request: &ArrangeRequest, cancelled: &dyn Fn() -> bool) -> Option<&[u32]> {
        let samples = &request.samples;
        if self.listing != request.listing || self.sorted.len() > samples.len() {
            *self = Self { listing: request.listing, ..Self::default() };
        }
        if self.sorted.len() < samples.len() {
            if cancelled() {
                return None;
            }
            let name = |id: SampleId| samples.get(id.index()).map_or("", |sample| sample.name.as_str());
            let compare = |left: SampleId, right: SampleId| alphanumeric_sort::compare_str(name(left), name(right));
            let new = (self.sorted.len()..samples.len()).map(SampleId::from_index);
            self.sorted.extend(new);
            // The sort exploits parts that are already in order: earlier results, and the listing's own order.
            self.sorted.sort_by(|left, right| compare(*left, *right));
            self.ranks = vec![0; samples.len()];
            let mut rank = 0;
            for pair in self.sorted.windows(2) {
                rank += u32::from(compare(pair[0], pair[1]).is_ne());
                self.ranks[pair[1].index()] = rank;
            }
        }
        Some(&self.ranks)
    }
}

#[cfg(test)]
mod tests;
