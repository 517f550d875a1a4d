//! Merges the verdicts of two people who judged the same run in two projects.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use strum::{IntoStaticStr, VariantArray};

use super::names::{from_stored, to_stored};
use super::{Project, StoreError};
use crate::domain::{
    Change, JudgedSample, Prediction, PredictionContent, RunId, SamplePrediction, SampleUri, Verdict, VerdictTarget,
};
use crate::tasks::TaskControl;

/// The largest distance between two edges of the same box, in pixels: computers differ in the last digits.
const SAME_EDGE: f32 = 0.5;

/// Whose verdict counts where two differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum Prefer {
    First,
    Second,
    /// Neither: the box or image becomes unjudged.
    None,
}

/// What the second project adds to the first.
#[derive(Debug, Default)]
pub struct Merge {
    /// For a copy of the first project.
    pub changes: Vec<Change>,
    /// What both have judged.
    pub pairs: Vec<Pair>,
    /// Verdicts that only the second project has.
    pub added: usize,
}

/// A box or image that both have judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// In the first project.
    pub sample: SampleUri,
    pub box_index: Option<u32>,
    /// The model's class id; `None` for the image of a detector.
    pub class: Option<u32>,
    pub verdicts: [Verdict; 2],
    pub reviewers: [Option<String>; 2],
}

impl Pair {
    pub fn is_conflict(&self) -> bool {
        self.verdicts[0] != self.verdicts[1]
    }
}

#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    #[error("the projects have no predicted images in common; both must contain the same images in the same folders")]
    NoCommonImages,
    #[error(
        "the second project has verdicts on an image that the first has no prediction for; predict it there, with the \
         same model: {0}"
    )]
    OnlyInSecond(String),
    #[error(
        "the projects have different predictions for an image, so verdicts on one do not apply to the other; start \
         from copies of one project: {0}"
    )]
    OtherPrediction(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Compares the verdicts on two runs that should be equal. Verdicts on images without a run, notes and tags are merged
/// as well; different notes on an image are joined.
///
/// # Errors
/// The runs differ, or a project cannot be read.
pub fn merge_verdicts(
    [first, second]: [&Project; 2],
    [first_run, second_run]: [RunId; 2],
    prefer: Prefer,
    control: &TaskControl,
) -> Result<Merge, MergeError> {
    let (root, second_root) = (first.root(), second.root());
    let name = |sample: &SampleUri| from_stored(root.as_deref(), &to_stored(second_root.as_deref(), sample));
    let mut predictions = compare_predictions([first, second], [first_run, second_run], &name, control)?;
    let reviewers = [first.reviewers(first_run)?, second.reviewers(second_run)?];
    let known: HashMap<SampleUri, JudgedSample> =
        first.judgments()?.into_iter().map(|judged| (judged.sample.clone(), judged)).collect();
    let mut merge = Merge::default();
    for theirs in second.judgments()? {
        let sample = name(&theirs.sample);
        let ours = known.get(&sample);
        merge.merge_notes(&sample, &theirs, ours);
        let prediction = predictions.remove(&sample);
        let mut taken: BTreeMap<VerdictTarget, &Verdict> =
            ours.into_iter().flat_map(|ours| &ours.verdicts).map(|(target, verdict)| (*target, verdict)).collect();
        for (their_target, verdict) in &theirs.verdicts {
            let run = match their_target.run {
                Some(of) if of == second_run => Some(first_run),
                None => None,
                Some(_) => continue,
            };
            if run.is_some() && prediction.is_none() {
                return Err(MergeError::OnlyInSecond(sample.to_string()));
            }
            let mut target = VerdictTarget { run, ..*their_target };
            if matches!(verdict, Verdict::Added(_) | Verdict::Spurious(_)) {
                if taken.values().any(|taken| *taken == verdict) {
                    continue;
                }
                while taken.contains_key(&target) {
                    target.box_index = target.box_index.map(|index| index + 1);
                }
            }
            let reviewer = reviewers[1].get(&(theirs.sample.clone(), *their_target)).cloned();
            let set = |verdict: Option<&Verdict>, reviewer: Option<String>| Change::SetVerdict {
                sample: sample.clone(),
                target,
                verdict: verdict.cloned(),
                reviewer,
            };
            let Some(our_verdict) = taken.get(&target).copied() else {
                taken.insert(target, verdict);
                merge.added += 1;
                merge.changes.push(set(Some(verdict), reviewer));
                continue;
            };
            let our_reviewer = reviewers[0].get(&(sample.clone(), target)).cloned();
            let pair = Pair {
                sample: sample.clone(),
                box_index: target.box_index,
                class: prediction.as_ref().and_then(|prediction| class_of(prediction, target.box_index)),
                verdicts: [our_verdict.clone(), verdict.clone()],
                reviewers: [our_reviewer, reviewer.clone()],
            };
            match prefer {
                Prefer::Second if pair.is_conflict() => merge.changes.push(set(Some(verdict), reviewer)),
                Prefer::None if pair.is_conflict() => merge.changes.push(set(None, None)),
                _ => {}
            }
            merge.pairs.push(pair);
        }
    }
    Ok(merge)
}

impl Merge {
    fn merge_notes(&mut self, sample: &SampleUri, theirs: &JudgedSample, ours: Option<&JudgedSample>) {
        let our_note = ours.map_or("", |ours| &ours.note);
        if !theirs.note.is_empty() && !our_note.contains(&theirs.note) {
            let text = if our_note.is_empty() { theirs.note.clone() } else { format!("{our_note}\n{}", theirs.note) };
            self.changes.push(Change::SetNote { sample: sample.clone(), text });
        }
        let our_tags: BTreeSet<&String> = ours.into_iter().flat_map(|ours| &ours.tags).collect();
        let tags: BTreeSet<&String> = our_tags.iter().copied().chain(&theirs.tags).collect();
        if tags.len() > our_tags.len() {
            let tags = tags.into_iter().cloned().collect();
            self.changes.push(Change::SetTags { sample: sample.clone(), tags });
        }
    }
}

/// The predictions of the images that both runs have.
fn compare_predictions(
    [first, second]: [&Project; 2],
    [first_run, second_run]: [RunId; 2],
    name: &impl Fn(&SampleUri) -> SampleUri,
    control: &TaskControl,
) -> Result<HashMap<SampleUri, Prediction>, MergeError> {
    let mut common = HashMap::new();
    let mut result = Ok(());
    second.each_prediction(second_run, control, |page| {
        let samples: Vec<SampleUri> = page.iter().map(|theirs| name(&theirs.sample)).collect();
        let ours = match first.predictions(first_run, &samples) {
            Ok(ours) => ours,
            Err(error) => {
                result = Err(error.into());
                return;
            }
        };
        for (ours, theirs) in ours.into_iter().zip(page) {
            match (ours, theirs.result) {
                (Some(SamplePrediction { sample, result: Ok(ours), .. }), Ok(theirs)) => {
                    if result.is_ok() && !is_same(&ours, &theirs) {
                        result = Err(MergeError::OtherPrediction(sample.to_string()));
                    }
                    common.insert(sample, ours);
                }
                (Some(SamplePrediction { sample, .. }), theirs) if result.is_ok() && theirs.is_ok() => {
                    result = Err(MergeError::OtherPrediction(sample.to_string()));
                }
                _ => {}
            }
        }
    })?;
    result?;
    if common.is_empty() { Err(MergeError::NoCommonImages) } else { Ok(common) }
}

/// Whether an index means the same in both.
fn is_same(ours: &Prediction, theirs: &Prediction) -> bool {
    if (ours.width, ours.height) != (theirs.width, theirs.height) {
        return false;
    }
    match (&ours.content, &theirs.content) {
        (PredictionContent::Classes(ours), PredictionContent::Classes(theirs)) => {
            ours.first().map(|top| top.index) == theirs.first().map(|top| top.index)
        }
        (PredictionContent::Detections(ours), PredictionContent::Detections(theirs)) => {
            let is_close = |one: f32, other: f32| (one - other).abs() <= SAME_EDGE;
            ours.len() == theirs.len()
                && ours.iter().zip(theirs).all(|(ours, theirs)| {
                    let edges = <[f32; 4]>::from(ours.bounds).into_iter().zip(<[f32; 4]>::from(theirs.bounds));
                    ours.class_id == theirs.class_id && edges.into_iter().all(|(one, other)| is_close(one, other))
                })
        }
        _ => false,
    }
}

fn class_of(prediction: &Prediction, box_index: Option<u32>) -> Option<u32> {
    match box_index {
        Some(index) => prediction.detections().get(index as usize).map(|found| found.class_id),
        None => prediction.classes().first().map(|top| top.index),
    }
}
