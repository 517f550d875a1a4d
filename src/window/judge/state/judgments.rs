//! Verdicts, notes and tags of the open source, with undo and redo.
//!
//! Most images have none, so they are stored by sample rather than as a column. An edit contains the values before and
//! after it: undo restores the former, redo the latter. The history keeps everything while the source is open.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::domain::{DrawnBox, JudgedSample, RunId, SampleId, SampleSet, SampleUri, Verdict, VerdictTarget};
use crate::review::{self, Marks, VerdictKind};

/// All judgments of the open source, as the user left them; some may not be in the project file yet.
#[derive(Debug, Default)]
pub struct Judgments {
    images: HashMap<SampleId, ImageJudgment>,
    /// Judgments from the project file about images that are not listed yet or no longer exist.
    unlisted: HashMap<SampleUri, ImageJudgment>,
    /// The run whose verdicts are on screen.
    run: Option<RunId>,
    /// The judgments in the form used for sorting and filtering.
    marks: Marks,
    /// The number of images with a verdict on each run's prediction or its boxes.
    judged_images: BTreeMap<RunId, usize>,
    /// The number of images with each tag.
    tags: BTreeMap<String, usize>,
    /// For each run, the number of verdicts that name each class.
    given_classes: BTreeMap<RunId, BTreeMap<String, usize>>,
    done: Vec<Edit>,
    undone: Vec<Edit>,
    /// The last ticket of each sample that is yet to be saved.
    saving: HashMap<SampleId, u64>,
    /// The samples that changed since [`Self::take_changed`].
    changed: Vec<SampleId>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageJudgment {
    /// Sorted by target; rarely more than a handful.
    verdicts: Vec<(VerdictTarget, Verdict)>,
    note: String,
    /// Sorted and unique.
    tags: Vec<String>,
}

/// One value of a judgment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mark {
    /// `None` for no verdict.
    Verdict(VerdictTarget, Option<Verdict>),
    /// Empty for no note.
    Note(String),
    /// Sorted and unique.
    Tags(Vec<String>),
}

/// One edit by the user, of any number of images.
#[derive(Debug, Clone)]
struct Edit {
    /// A label that follows “Undo: ”.
    label: String,
    steps: Vec<Step>,
}

#[derive(Debug, Clone)]
struct Step {
    sample: SampleId,
    before: Mark,
    after: Mark,
}

impl Step {
    /// Whether it concerns a verdict on a prediction of this run.
    fn is_about_run(&self, run: RunId) -> bool {
        matches!(self.after, Mark::Verdict(target, _) if target.run == Some(run))
    }
}

/// The changes of an edit, an undo or a redo.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct EditOutcome {
    /// The edit, in words.
    pub(crate) label: String,
    /// The values that now apply.
    pub(crate) marks: Vec<(SampleId, Mark)>,
}

impl EditOutcome {
    pub(crate) fn samples(&self) -> SampleSet {
        self.marks.iter().map(|(sample, _)| *sample).collect()
    }
}

impl ImageJudgment {
    pub fn verdict(&self, target: VerdictTarget) -> Option<&Verdict> {
        let position = self.position(target).ok()?;
        Some(&self.verdicts[position].1)
    }

    /// Lowest target first.
    pub fn verdicts(&self) -> &[(VerdictTarget, Verdict)] {
        &self.verdicts
    }

    /// The verdict on the image: on the prediction of `run`, or else the one given without a prediction.
    pub fn of_image(&self, run: Option<RunId>) -> Option<&Verdict> {
        let of = |run| self.verdict(VerdictTarget { run, box_index: None });
        of(run).or_else(|| of(None))
    }

    /// The verdicts on the boxes of a run's prediction, with their indexes.
    pub fn of_boxes(&self, run: RunId) -> impl Iterator<Item = (u32, &Verdict)> {
        self.verdicts.iter().filter_map(move |(target, verdict)| {
            let is_of_run = target.run == Some(run);
            Some((target.box_index.filter(|_| is_of_run)?, verdict))
        })
    }

    /// The verdict on an object of the ground truth that the run did not detect: the same box, added, or spurious.
    pub fn of_label(&self, run: RunId, label: &DrawnBox) -> Option<&(VerdictTarget, Verdict)> {
        self.verdicts.iter().find(|(target, verdict)| match verdict {
            Verdict::Added(drawn) => target.run == Some(run) && drawn == label,
            Verdict::Spurious(drawn) => drawn == label,
            _ => false,
        })
    }

    pub fn note(&self) -> &str {
        &self.note
    }

    pub fn tags(&self) -> &[String] {
        &self.tags
    }

    /// The judgment in the form used for sorting and filtering.
    fn mark(&self, run: Option<RunId>) -> review::Mark {
        let boxes = run.into_iter().flat_map(|run| self.of_boxes(run));
        review::Mark {
            verdict: self.of_image(run).map(VerdictKind::from),
            // Sorted, because the verdicts are.
            boxes: boxes.map(|(index, verdict)| (index, verdict.into())).collect(),
            has_wrong_label: self.verdicts.iter().any(|(_, verdict)| matches!(verdict, Verdict::Spurious(_))),
            note: (!self.note.is_empty()).then(|| Arc::from(self.note.as_str())),
            tags: self.tags.clone().into(),
        }
    }

    /// Whether this run's prediction, or one of its boxes, has a verdict.
    fn is_of_run(&self, run: RunId) -> bool {
        self.verdicts.iter().any(|(target, _)| target.run == Some(run))
    }

    fn is_empty(&self) -> bool {
        self.verdicts.is_empty() && self.note.is_empty() && self.tags.is_empty()
    }

    fn position(&self, target: VerdictTarget) -> Result<usize, usize> {
        self.verdicts.binary_search_by_key(&target, |(target, _)| *target)
    }

    /// The judgment after these changes.
    pub(crate) fn with(&self, marks: &[Mark]) -> Self {
        let mut after = self.clone();
        for mark in marks {
            after.set(mark.clone());
        }
        after
    }

    /// Returns the previous value.
    pub(crate) fn set(&mut self, mark: Mark) -> Mark {
        match mark {
            Mark::Note(text) => Mark::Note(std::mem::replace(&mut self.note, text)),
            Mark::Tags(tags) => Mark::Tags(std::mem::replace(&mut self.tags, tags)),
            Mark::Verdict(target, verdict) => {
                let before = match (self.position(target), verdict) {
                    (Ok(position), Some(verdict)) => Some(std::mem::replace(&mut self.verdicts[position].1, verdict)),
                    (Ok(position), None) => Some(self.verdicts.remove(position).1),
                    (Err(position), Some(verdict)) => {
                        self.verdicts.insert(position, (target, verdict));
                        None
                    }
                    (Err(_), None) => None,
                };
                Mark::Verdict(target, before)
            }
        }
    }
}

impl From<JudgedSample> for ImageJudgment {
    fn from(judged: JudgedSample) -> Self {
        let mut verdicts = judged.verdicts;
        verdicts.sort();
        verdicts.dedup_by_key(|(target, _)| *target);
        Self { verdicts, note: judged.note, tags: in_order(judged.tags) }
    }
}

impl Judgments {
    pub fn get(&self, sample: SampleId) -> Option<&ImageJudgment> {
        self.images.get(&sample)
    }

    /// The samples with a judgment, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (SampleId, &ImageJudgment)> {
        self.images.iter().map(|(sample, said)| (*sample, said))
    }

    /// The verdict on the image, for the run on screen.
    pub fn verdict(&self, sample: SampleId) -> Option<&Verdict> {
        self.get(sample)?.of_image(self.run)
    }

    /// The boxes of a run's prediction that the user accepted or assigned the right class, lowest index first; they are
    /// visible regardless of the filters.
    pub fn confirmed_boxes(&self, run: RunId, sample: SampleId) -> Vec<u32> {
        let boxes = self.get(sample).into_iter();
        let boxes = boxes.flat_map(|said| said.of_boxes(run));
        let confirmed = boxes.filter(|(_, verdict)| VerdictKind::from(*verdict).confirms());
        confirmed.map(|(index, _)| index).collect()
    }

    /// Whether the prediction of this run, or one of its boxes, has a verdict.
    pub fn is_prediction_judged(&self, run: RunId, sample: SampleId) -> bool {
        self.verdicts_on_prediction(run, sample).next().is_some()
    }

    /// The number of images with a verdict on this run's prediction or its boxes, including unlisted ones.
    pub(crate) fn judged_images(&self, run: RunId) -> usize {
        let unlisted = self.unlisted.values().filter(|said| said.is_of_run(run));
        self.judged_images.get(&run).copied().unwrap_or_default() + unlisted.count()
    }

    /// The verdicts on a run's prediction for a sample.
    pub(crate) fn verdicts_on_prediction(&self, run: RunId, sample: SampleId) -> impl Iterator<Item = VerdictTarget> {
        let verdicts = self.get(sample).map_or(&[][..], ImageJudgment::verdicts);
        let targets = verdicts.iter().map(|(target, _)| *target);
        targets.filter(move |target| target.run == Some(run))
    }

    /// The verdict on a box of the run on screen.
    pub fn box_verdict(&self, sample: SampleId, box_index: usize) -> Option<&Verdict> {
        let target = VerdictTarget { run: Some(self.run?), box_index: u32::try_from(box_index).ok() };
        // An index beyond `u32` would refer to the image.
        target.box_index?;
        self.get(sample)?.verdict(target)
    }

    /// Empty if there is none.
    pub fn note(&self, sample: SampleId) -> &str {
        self.get(sample).map_or("", ImageJudgment::note)
    }

    /// Sorted.
    pub fn tags(&self, sample: SampleId) -> &[String] {
        self.get(sample).map_or(&[], ImageJudgment::tags)
    }

    pub fn known_tags(&self) -> impl Iterator<Item = &str> {
        self.tags.keys().map(String::as_str)
    }

    /// The classes that verdicts on the run on screen name, with the number of verdicts, in the order of the alphabet.
    pub fn given_classes(&self) -> impl Iterator<Item = (&str, usize)> {
        let classes = self.run.and_then(|run| self.given_classes.get(&run));
        classes.into_iter().flatten().map(|(class, count)| (class.as_str(), *count))
    }

    /// The judgments in the form used for sorting and filtering; cheap to clone.
    pub fn marks(&self) -> &Marks {
        &self.marks
    }

    /// Whether a change of this sample is not in the project file yet.
    pub fn is_saving(&self, sample: SampleId) -> bool {
        self.saving.contains_key(&sample)
    }

    /// The number of samples that are yet to be saved.
    pub fn saving(&self) -> usize {
        self.saving.len()
    }

    /// The label of the edit that undo would revert: “reject 3 images”.
    pub fn undo_label(&self) -> Option<&str> {
        self.done.last().map(|edit| edit.label.as_str())
    }

    /// The label of the edit that redo would repeat.
    pub fn redo_label(&self) -> Option<&str> {
        self.undone.last().map(|edit| edit.label.as_str())
    }

    /// Makes an edit with this label. Marks without a change are skipped; if none is left, the history stays the same.
    pub(crate) fn edit(
        &mut self,
        label: String,
        marks: impl IntoIterator<Item = (SampleId, Mark)>,
    ) -> Option<EditOutcome> {
        let mut steps = Vec::new();
        for (sample, after) in marks {
            let before = self.put(sample, after.clone());
            if before != after {
                steps.push(Step { sample, before, after });
            }
        }
        if steps.is_empty() {
            return None;
        }
        let marks = steps.iter().map(|step| (step.sample, step.after.clone()));
        let outcome = EditOutcome { label: label.clone(), marks: marks.collect() };
        self.undone.clear();
        self.done.push(Edit { label, steps });
        Some(outcome)
    }

    pub(crate) fn undo(&mut self) -> Option<EditOutcome> {
        let edit = self.done.pop()?;
        let back = edit.steps.iter().rev();
        let outcome = self.put_all(&edit.label, back.map(|step| (step.sample, &step.before)));
        self.undone.push(edit);
        Some(outcome)
    }

    pub(crate) fn redo(&mut self) -> Option<EditOutcome> {
        let edit = self.undone.pop()?;
        let forth = edit.steps.iter();
        let outcome = self.put_all(&edit.label, forth.map(|step| (step.sample, &step.after)));
        self.done.push(edit);
        Some(outcome)
    }

    /// Adopts the content of a project file. This cannot be undone.
    pub(crate) fn restore(
        &mut self,
        stored: impl IntoIterator<Item = JudgedSample>,
        find: impl Fn(&SampleUri) -> Option<SampleId>,
    ) {
        for judged in stored {
            let found = find(&judged.sample);
            let uri = judged.sample.clone();
            self.unlisted.insert(uri.clone(), judged.into());
            if let Some(sample) = found {
                self.listed(sample, &uri);
            }
        }
    }

    /// Assigns the judgment from the project file to a newly listed sample.
    pub(crate) fn listed(&mut self, sample: SampleId, uri: &SampleUri) {
        let Some(said) = self.unlisted.remove(uri) else {
            return;
        };
        if !self.images.contains_key(&sample) {
            self.adopt(sample, said);
            return;
        }
        for (target, verdict) in said.verdicts {
            self.put(sample, Mark::Verdict(target, Some(verdict)));
        }
        if !said.note.is_empty() {
            self.put(sample, Mark::Note(said.note));
        }
        if !said.tags.is_empty() {
            self.put(sample, Mark::Tags(said.tags));
        }
    }

    /// Takes over a whole judgment, with one mark for all of it.
    fn adopt(&mut self, sample: SampleId, said: ImageJudgment) {
        let runs: BTreeSet<RunId> = said.verdicts.iter().filter_map(|(target, _)| target.run).collect();
        for run in runs {
            *self.judged_images.entry(run).or_default() += 1;
        }
        for tag in &said.tags {
            *self.tags.entry(tag.clone()).or_default() += 1;
        }
        for (target, verdict) in &said.verdicts {
            count_class(&mut self.given_classes, *target, verdict);
        }
        self.marks.set(sample, said.mark(self.run));
        self.changed.push(sample);
        if !said.is_empty() {
            self.images.insert(sample, said);
        }
    }

    /// Switches to another run: its verdicts are shown and counted.
    pub(crate) fn follow_run(&mut self, run: Option<RunId>) {
        if self.run == run {
            return;
        }
        self.run = run;
        for (&sample, said) in &self.images {
            self.marks.set(sample, said.mark(run));
        }
    }

    /// Removes the verdicts on the predictions of a deleted run, also from the history.
    pub(crate) fn forget_run(&mut self, run: RunId) {
        let judged = |(_, said): &(&SampleId, &ImageJudgment)| said.is_of_run(run);
        let samples: Vec<SampleId> = self.images.iter().filter(judged).map(|(id, _)| *id).collect();
        for sample in samples {
            let said = self.images.get(&sample).cloned().unwrap_or_default();
            for (target, _) in said.verdicts {
                if target.run == Some(run) {
                    self.put(sample, Mark::Verdict(target, None));
                }
            }
        }
        for said in self.unlisted.values_mut() {
            said.verdicts.retain(|(target, _)| target.run != Some(run));
        }
        self.forget_steps(|step| step.is_about_run(run));
        if self.run == Some(run) {
            self.follow_run(None);
        }
    }

    /// Handles new predictions of the run for these samples: undo must not restore verdicts on the old ones.
    pub(crate) fn forget_predictions(&mut self, run: RunId, samples: &SampleSet) {
        if !samples.is_empty() {
            self.forget_steps(|step| samples.contains(step.sample) && step.is_about_run(run));
        }
    }

    fn forget_steps(&mut self, is_forgotten: impl Fn(&Step) -> bool) {
        for history in [&mut self.done, &mut self.undone] {
            for edit in history.iter_mut() {
                edit.steps.retain(|step| !is_forgotten(step));
            }
            history.retain(|edit| !edit.steps.is_empty());
        }
    }

    /// Marks these samples as waiting for the project file under this ticket. Tickets increase.
    pub(crate) fn begin_saving(&mut self, ticket: u64, samples: &SampleSet) {
        for sample in samples.iter() {
            self.saving.insert(sample, ticket);
        }
    }

    /// Marks everything up to this ticket as saved.
    pub(crate) fn saved(&mut self, up_to: u64) {
        self.saving.retain(|_, ticket| *ticket > up_to);
    }

    /// Resets the judgments for a new source.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    fn put_all<'a>(&mut self, label: &str, marks: impl Iterator<Item = (SampleId, &'a Mark)>) -> EditOutcome {
        let mut outcome = EditOutcome { label: label.to_owned(), marks: Vec::new() };
        for (sample, mark) in marks {
            self.put(sample, mark.clone());
            outcome.marks.push((sample, mark.clone()));
        }
        outcome
    }

    /// The samples whose judgment changed since the last call, possibly several times.
    pub(crate) fn take_changed(&mut self) -> Vec<SampleId> {
        std::mem::take(&mut self.changed)
    }

    /// The only place where a known judgment changes; updates the marks. Returns the previous value.
    fn put(&mut self, sample: SampleId, mark: Mark) -> Mark {
        let is_tags = matches!(mark, Mark::Tags(_));
        let run = match &mark {
            Mark::Verdict(target, verdict) => {
                if let Some(verdict) = verdict {
                    count_class(&mut self.given_classes, *target, verdict);
                }
                target.run
            }
            Mark::Note(_) | Mark::Tags(_) => None,
        };
        let said = self.images.entry(sample).or_default();
        let was_judged = run.is_some_and(|run| said.is_of_run(run));
        if is_tags {
            for tag in &said.tags {
                forget_one(&mut self.tags, tag);
            }
        }
        let before = said.set(mark);
        if let Mark::Verdict(VerdictTarget { run: Some(run), .. }, Some(verdict)) = &before
            && let (Some(class), Some(counts)) = (verdict.right_class(), self.given_classes.get_mut(run))
        {
            forget_one(counts, class);
        }
        if let Some(run) = run {
            match (was_judged, said.is_of_run(run)) {
                (false, true) => *self.judged_images.entry(run).or_default() += 1,
                (true, false) => forget_one(&mut self.judged_images, &run),
                _ => {}
            }
        }
        self.marks.set(sample, said.mark(self.run));
        self.changed.push(sample);
        if is_tags {
            for tag in &said.tags {
                *self.tags.entry(tag.clone()).or_default() += 1;
            }
        }
        if said.is_empty() {
            self.images.remove(&sample);
        }
        before
    }
}

fn count_class(counts: &mut BTreeMap<RunId, BTreeMap<String, usize>>, target: VerdictTarget, verdict: &Verdict) {
    if let (Some(run), Some(class)) = (target.run, verdict.right_class()) {
        *counts.entry(run).or_default().entry(class.to_owned()).or_default() += 1;
    }
}

fn forget_one<K: Ord + Borrow<Q>, Q: Ord + ?Sized>(counts: &mut BTreeMap<K, usize>, key: &Q) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

/// Sorted and unique.
pub(crate) fn in_order(mut tags: Vec<String>) -> Vec<String> {
    tags.sort();
    tags.dedup();
    tags
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: RunId = RunId(1);
    const IMAGE: VerdictTarget = VerdictTarget { run: Some(RUN), box_index: None };
    const UNANSWERED: VerdictTarget = VerdictTarget { run: None, box_index: None };

    fn judgments() -> Judgments {
        let mut judgments = Judgments::default();
        judgments.follow_run(Some(RUN));
        judgments
    }

    fn verdict(sample: u32, verdict: Verdict) -> (SampleId, Mark) {
        (SampleId(sample), Mark::Verdict(IMAGE, Some(verdict)))
    }

    /// All judgments, to compare two moments.
    fn everything(judgments: &Judgments) -> BTreeMap<SampleId, ImageJudgment> {
        let said = judgments.iter();
        said.map(|(sample, said)| (sample, said.clone())).collect()
    }

    /// Checks that the marks match the judgments.
    fn check_marks(judgments: &Judgments) {
        for id in (0..8).map(SampleId) {
            let said = judgments.get(id).cloned().unwrap_or_default();
            assert_eq!(judgments.marks().get(id), said.mark(Some(RUN)), "{id:?}");
        }
    }

    /// The number of images with a verdict of their own.
    fn judged(judgments: &Judgments) -> usize {
        let marks = (0..8).map(|id| judgments.marks().get(SampleId(id)));
        marks.filter(|mark| mark.verdict.is_some()).count()
    }

    /// A small generator for reproducible failures, with the constants of Knuth's MMIX.
    struct Random(u64);

    impl Random {
        fn below(&mut self, end: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % end
        }

        fn mark(&mut self) -> Mark {
            let text = |random: &mut Self| ["", "a", "b", "blurry"][random.below(4) as usize];
            match self.below(6) {
                0 => Mark::Note(text(self).to_owned()),
                1 => {
                    let tags = (0..self.below(3)).map(|_| text(self).to_owned()).collect();
                    Mark::Tags(in_order(tags))
                }
                _ => {
                    let target = VerdictTarget {
                        run: [None, Some(RUN), Some(RunId(2))][self.below(3) as usize],
                        box_index: [None, Some(0), Some(7)][self.below(3) as usize],
                    };
                    let verdict = match self.below(5) {
                        0 => None,
                        1 => Some(Verdict::Accept),
                        2 => Some(Verdict::Reject),
                        3 => Some(Verdict::Unsure),
                        _ => Some(Verdict::WrongClass(text(self).to_owned())),
                    };
                    Mark::Verdict(target, verdict)
                }
            }
        }
    }

    #[test]
    fn undo_and_redo_reach_both_ends() {
        for seed in 0..20 {
            let mut random = Random(seed);
            let mut judgments = judgments();
            let mut moments = vec![everything(&judgments)];
            for number in 0..200 {
                let marks: Vec<(SampleId, Mark)> =
                    (0..=random.below(4)).map(|_| (SampleId(random.below(8) as u32), random.mark())).collect();
                if judgments.edit(number.to_string(), marks).is_some() {
                    moments.push(everything(&judgments));
                }
                check_marks(&judgments);
            }
            for expected in moments.iter().rev().skip(1) {
                judgments.undo().unwrap();
                assert_eq!(&everything(&judgments), expected, "seed {seed}");
                check_marks(&judgments);
            }
            assert_eq!(judgments.undo(), None);
            assert_eq!(judgments.known_tags().count(), 0);
            for expected in moments.iter().skip(1) {
                judgments.redo().unwrap();
                assert_eq!(&everything(&judgments), expected, "seed {seed}");
            }
            assert_eq!(judgments.redo(), None);
        }
    }

    #[test]
    fn undo_writes_the_current_state() {
        let mut judgments = judgments();
        judgments.edit("one".to_owned(), [verdict(0, Verdict::Accept)]);
        judgments.edit("two".to_owned(), [verdict(0, Verdict::Reject)]);
        let outcome = judgments.undo().unwrap();
        assert_eq!(outcome.label, "two");
        assert_eq!(outcome.marks, [verdict(0, Verdict::Accept)]);
        let outcome = judgments.undo().unwrap();
        assert_eq!(outcome.marks, [(SampleId(0), Mark::Verdict(IMAGE, None))]);
    }

    #[test]
    fn new_edit_clears_redo() {
        let mut judgments = judgments();
        judgments.edit("one".to_owned(), [verdict(0, Verdict::Accept)]);
        judgments.undo();
        let nothing = (SampleId(3), Mark::Note(String::new()));
        assert_eq!(judgments.edit("nothing".to_owned(), [nothing]), None);
        assert_eq!(judgments.redo_label(), Some("one"));
        judgments.edit("other".to_owned(), [verdict(1, Verdict::Unsure)]);
        assert_eq!(judgments.redo_label(), None);
        assert_eq!(judgments.undo_label(), Some("other"));
    }

    #[test]
    fn verdicts_belong_to_runs_or_to_all() {
        let mut judgments = judgments();
        let mark = Mark::Verdict(UNANSWERED, Some(Verdict::Unsure));
        judgments.edit("early".to_owned(), [(SampleId(0), mark)]);
        judgments.edit("late".to_owned(), [verdict(1, Verdict::Accept)]);
        assert_eq!(judged(&judgments), 2);
        judgments.follow_run(Some(RunId(2)));
        assert_eq!(judgments.verdict(SampleId(0)), Some(&Verdict::Unsure));
        assert_eq!(judgments.verdict(SampleId(1)), None);
        assert_eq!(judged(&judgments), 1);
    }

    #[test]
    fn stored_verdicts_wait_for_the_listing() {
        let uri = SampleUri::new("/photos/a.jpg");
        let mut judgments = judgments();
        let stored = JudgedSample {
            sample: uri.clone(),
            verdicts: vec![(IMAGE, Verdict::Reject)],
            note: String::new(),
            tags: vec!["night".to_owned()],
        };
        judgments.restore([stored], |_| None);
        assert_eq!(judged(&judgments), 0);
        judgments.listed(SampleId(4), &uri);
        assert_eq!(judgments.verdict(SampleId(4)), Some(&Verdict::Reject));
        assert_eq!(judgments.tags(SampleId(4)), ["night"]);
        assert_eq!(judgments.undo_label(), None, "it was not said just now");
    }

    #[test]
    fn deleted_run_loses_its_verdicts_only() {
        let mut judgments = judgments();
        judgments.edit("verdict".to_owned(), [verdict(0, Verdict::Accept)]);
        let note = (SampleId(0), Mark::Note("dark".to_owned()));
        judgments.edit("note".to_owned(), [note]);
        judgments.forget_run(RUN);
        assert_eq!(judged(&judgments), 0);
        assert_eq!(judgments.note(SampleId(0)), "dark");
        assert_eq!(judgments.undo().unwrap().label, "note");
        assert_eq!(judgments.undo(), None);
    }

    #[test]
    fn sample_is_saving_until_its_last_ticket() {
        let mut judgments = judgments();
        let both: SampleSet = [SampleId(0), SampleId(1)].into_iter().collect();
        let one: SampleSet = [SampleId(1)].into_iter().collect();
        judgments.begin_saving(5, &both);
        judgments.begin_saving(6, &one);
        judgments.saved(5);
        assert!(!judgments.is_saving(SampleId(0)));
        assert!(judgments.is_saving(SampleId(1)));
        judgments.saved(6);
        assert_eq!(judgments.saving(), 0);
    }
}
