//! Merges the verdicts of two people who judged the same run in two projects.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use super::files::nameless;
use super::names::{from_stored, to_stored};
use super::{OpenMode, OpenRequest, Project, StoreError};
use crate::domain::{
    Change, DrawnBox, JudgedSample, Pair, Prediction, PredictionContent, Prefer, RunId, RunInfo, SamplePrediction,
    SampleUri, Verdict, VerdictTarget, ViewSettings,
};
use crate::tasks::TaskControl;

/// The largest distance between two edges of the same box, in pixels: computers differ in the last digits.
const SAME_EDGE: f32 = 0.5;

/// What the second project adds to the first.
#[derive(Debug, Default)]
pub struct Merge {
    /// For a copy of the first project.
    pub changes: Vec<Change>,
    /// What both have judged.
    pub pairs: Vec<Pair>,
    /// Verdicts that only the second project has.
    pub added: usize,
    /// What was assumed.
    pub notes: Vec<String>,
}

/// A verdict and its reviewer.
#[derive(Debug, Clone, PartialEq)]
struct Given {
    verdict: Verdict,
    reviewer: Option<String>,
}

impl Given {
    /// The object of an added box, or of a label that is wrong. A label of an undetected object that is right is an
    /// added box with its class and position.
    fn object(&self) -> Option<&DrawnBox> {
        self.verdict.drawn().filter(|_| !matches!(self.verdict, Verdict::Moved(_)))
    }
}

/// The verdicts on an image and one run. Those of the second project have the run of the first.
type OfImage = BTreeMap<VerdictTarget, Given>;

/// One person's verdicts on an image, and the boxes that the person saw.
struct Review {
    verdicts: OfImage,
    visible: BTreeSet<u32>,
}

/// A person's verdict on a box, label or image.
#[derive(Clone, Copy)]
struct Opinion<'r> {
    given: &'r Given,
    /// Where the merged project stores it; `None` for a verdict on the image that rules out an added box.
    target: Option<VerdictTarget>,
    /// Whether it is the verdict on the whole image.
    is_inherited: bool,
}

impl Review {
    /// The verdict on the image: of the run, or else the one given without a prediction, which comes first.
    fn of_image(&self) -> Option<(&VerdictTarget, &Given)> {
        self.verdicts.iter().rfind(|(target, _)| target.box_index.is_none())
    }

    /// The verdicts without the one on the image that another one replaces.
    fn current(&self) -> impl Iterator<Item = (&VerdictTarget, &Given)> {
        let of_image = self.of_image().map(|(target, _)| *target);
        self.verdicts.iter().filter(move |(target, _)| target.box_index.is_some() || Some(**target) == of_image)
    }

    /// This person's verdict on what the other one judged at `target`.
    fn opinion(&self, target: VerdictTarget, other: &Given) -> Option<Opinion<'_>> {
        let own = match (other.object(), target.box_index) {
            (Some(object), _) => self.verdicts.iter().find(|(_, given)| given.object() == Some(object)),
            (None, Some(_)) => self.verdicts.get_key_value(&target),
            (None, None) => self.of_image(),
        };
        if let Some((target, given)) = own {
            return Some(Opinion { given, target: Some(*target), is_inherited: false });
        }
        let (_, given) = self.of_image()?;
        let target = match (&other.verdict, target.box_index) {
            (Verdict::Spurious(_), _) | (_, None) => None,
            (Verdict::Added(_), _) => given.verdict.rules_out_missing().then_some(None),
            (_, Some(index)) => {
                let applies = given.verdict.applies_to_boxes() && self.visible.contains(&index);
                applies.then_some(Some(target))
            }
        };
        Some(Opinion { given, target: target?, is_inherited: true })
    }
}

#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    #[error("the projects have no predicted images in common; both must contain the same images in the same folders")]
    NoCommonImages,
    #[error("the run “{run}” of the {} project has no predictions; predict with `spotcheck predict` first", side)]
    NoPredictions { side: &'static str, run: String },
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
    #[error(
        "the second project has no run of the model of “{run}” with the same weights; it has {}",
        if others.is_empty() { "no runs" } else { others.as_str() }
    )]
    NoSuchRun { run: String, others: String },
    #[error(
        "could not write into the folder ({source}); change its permissions, or choose another one: {}",
        folder.display()
    )]
    Scratch { folder: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The run of the same model in another project.
///
/// # Errors
/// There is none, or the project cannot be read.
pub fn run_to_merge(project: &Project, run: &RunInfo) -> Result<RunInfo, MergeError> {
    let runs = project.runs()?;
    let is_same = |other: &&RunInfo| {
        other.key.model_id == run.key.model_id
            && other.key.weights_sha256 == run.key.weights_sha256
            && other.card.task == run.card.task
    };
    let of_model: Vec<&RunInfo> = runs.iter().filter(is_same).collect();
    let named = of_model.iter().find(|other| other.name == run.name).or(of_model.last());
    named.map(|other| (*other).clone()).ok_or_else(|| {
        let others: Vec<String> = runs.iter().map(|other| format!("“{}”", other.name)).collect();
        MergeError::NoSuchRun { run: run.name.clone(), others: others.join(", ") }
    })
}

/// Writes a copy of the project with the changes. It appears under its name once all of them are saved.
///
/// # Errors
/// Canceled, or the copy cannot be written.
pub fn write_merged(
    project: &Project,
    changes: &[Change],
    out: &Path,
    program: &str,
    control: &TaskControl,
) -> Result<PathBuf, MergeError> {
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let scratch = tempfile::Builder::new().prefix(".spotcheck-").tempdir_in(folder);
    let scratch =
        scratch.map_err(|error| MergeError::Scratch { folder: folder.to_owned(), source: nameless(&error) })?;
    let path = project.save_as(&scratch.path().join("merged.spotcheck"), program)?;
    let request = OpenRequest { path: &path, root: None, mode: OpenMode::WriteExisting, program };
    let merged = Project::open(&request, |_| ())?.project;
    control.checkpoint().map_err(StoreError::from)?;
    merged.write_together(changes)?;
    control.checkpoint().map_err(StoreError::from)?;
    Ok(merged.save_as(out, program)?)
}

/// Compares the verdicts on two runs that should be equal. Verdicts on images without a run, notes and tags are merged
/// as well; different notes on an image are joined. A verdict on an image counts for the boxes that its reviewer saw.
/// `prefer` decides conflicts.
///
/// # Errors
/// The runs differ, or a project cannot be read.
pub fn merge_verdicts(
    [first, second]: [&Project; 2],
    runs: [&RunInfo; 2],
    prefer: impl Fn(&Pair) -> Prefer,
    control: &TaskControl,
) -> Result<Merge, MergeError> {
    let [first_run, second_run] = runs.map(|run| run.id);
    for (side, project, run) in [("first", first, runs[0]), ("second", second, runs[1])] {
        if project.prediction_counts(run.id)?.predicted == 0 {
            return Err(MergeError::NoPredictions { side, run: run.name.clone() });
        }
    }
    let (root, second_root) = (first.root(), second.root());
    let name = |sample: &SampleUri| from_stored(root.as_deref(), &to_stored(second_root.as_deref(), sample));
    let mut predictions = compare_predictions([first, second], [first_run, second_run], &name, control)?;
    let reviewers = [first.reviewers(first_run)?, second.reviewers(second_run)?];
    let [(view, note), (second_view, second_note)] = [first.view_of_run(runs[0])?, second.view_of_run(runs[1])?];
    let views = [view, second_view];
    let of_image = |judged: &JudgedSample, side: usize| -> OfImage {
        let is_of_run = |of: Option<RunId>| of.is_none_or(|of| of == [first_run, second_run][side]);
        let of_run = judged.verdicts.iter().filter(|(target, _)| is_of_run(target.run));
        let given = |(target, verdict): &(VerdictTarget, Verdict)| {
            let reviewer = reviewers[side].get(&(judged.sample.clone(), *target)).cloned();
            let target = VerdictTarget { run: target.run.map(|_| first_run), ..*target };
            (target, Given { verdict: verdict.clone(), reviewer })
        };
        of_run.map(given).collect()
    };
    let known: HashMap<SampleUri, JudgedSample> =
        first.judgments()?.into_iter().map(|judged| (judged.sample.clone(), judged)).collect();
    let mut merge = Merge { notes: [note, second_note].into_iter().flatten().collect(), ..Merge::default() };
    for theirs in second.judgments()? {
        let sample = name(&theirs.sample);
        let ours = known.get(&sample);
        merge.merge_notes(&sample, &theirs, ours);
        let prediction = predictions.remove(&sample);
        let theirs = of_image(&theirs, 1);
        if prediction.is_none() && theirs.keys().any(|target| target.run.is_some()) {
            return Err(MergeError::OnlyInSecond(sample.to_string()));
        }
        let before = ours.map(|ours| of_image(ours, 0)).unwrap_or_default();
        let [ours, theirs] = [(before, &views[0]), (theirs, &views[1])]
            .map(|(verdicts, view)| Review { verdicts, visible: visible_boxes(view, prediction.as_ref()) });
        let mut after = merge.merge_image(&sample, prediction.as_ref(), [&ours, &theirs], first_run, &prefer);
        if let Some(prediction) = &prediction {
            number_added(&mut after, first_run, prediction.detections().len());
        }
        merge.changes.extend(changes(&sample, &ours.verdicts, &after));
    }
    Ok(merge)
}

fn visible_boxes(view: &ViewSettings, prediction: Option<&Prediction>) -> BTreeSet<u32> {
    let visible = prediction.map(|prediction| view.visible_detections(prediction, &[])).unwrap_or_default();
    visible.into_iter().filter_map(|index| u32::try_from(index).ok()).collect()
}

/// Gives the added boxes the indices that follow those of the prediction.
fn number_added(verdicts: &mut OfImage, run: RunId, predicted: usize) {
    let is_added = |given: &Given| matches!(given.verdict, Verdict::Added(_));
    let added: Vec<Given> = verdicts.values().filter(|given| is_added(given)).cloned().collect();
    verdicts.retain(|_, given| !is_added(given));
    let target = |index| VerdictTarget { run: Some(run), box_index: Some(index) };
    verdicts.extend((predicted as u32..).map(target).zip(added));
}

/// What turns the verdicts on an image into others.
fn changes<'v>(sample: &'v SampleUri, before: &'v OfImage, after: &'v OfImage) -> impl Iterator<Item = Change> + 'v {
    let targets: BTreeSet<VerdictTarget> = before.keys().chain(after.keys()).copied().collect();
    let changed = targets.into_iter().filter(|target| before.get(target) != after.get(target));
    changed.map(|target| {
        let given = after.get(&target).cloned();
        let (verdict, reviewer) = given.map_or((None, None), |given| (Some(given.verdict), given.reviewer));
        Change::SetVerdict { sample: sample.clone(), target, verdict, reviewer }
    })
}

impl Merge {
    /// Returns the merged verdicts on an image.
    fn merge_image(
        &mut self,
        sample: &SampleUri,
        prediction: Option<&Prediction>,
        reviews: [&Review; 2],
        run: RunId,
        prefer: impl Fn(&Pair) -> Prefer,
    ) -> OfImage {
        let [ours, theirs] = reviews;
        let mut merged: OfImage = ours.current().map(|(target, given)| (*target, given.clone())).collect();
        let mut compared = Vec::new();
        for (&target, their) in theirs.current() {
            let own = Opinion { given: their, target: Some(target), is_inherited: false };
            if let Some(our) = ours.opinion(target, their) {
                compared.push([our, own]);
            } else {
                self.added += usize::from(insert(&mut merged, target, their.clone()));
            }
        }
        for (&target, our) in ours.current() {
            let own = Opinion { given: our, target: Some(target), is_inherited: false };
            let their = theirs.opinion(target, our).filter(|their| their.is_inherited);
            compared.extend(their.map(|their| [own, their]));
        }
        let mut left_open = BTreeSet::new();
        for [our, their] in compared {
            if our.given.verdict.implies(&their.given.verdict) && !their.is_inherited {
                continue;
            }
            let is_implied = their.given.verdict.implies(&our.given.verdict) && !our.is_inherited;
            let kept = if is_implied {
                self.added += 1;
                Prefer::Second
            } else {
                self.compare(sample, prediction, [our, their], &prefer)
            };
            if let Some(target) = our.target {
                merged.remove(&target);
            }
            let kept = match kept {
                Prefer::First => our,
                Prefer::Second => their,
                Prefer::None => {
                    left_open.extend(our.target.or(their.target));
                    continue;
                }
            };
            if let Some(target) = kept.target {
                insert(&mut merged, target, kept.given.clone());
            }
        }
        if !left_open.is_empty() {
            split_image_verdict(&mut merged, reviews, run, &left_open);
        }
        merged
    }

    /// Adds a pair, and returns which verdict to keep.
    fn compare(
        &mut self,
        sample: &SampleUri,
        prediction: Option<&Prediction>,
        opinions: [Opinion<'_>; 2],
        prefer: impl Fn(&Pair) -> Prefer,
    ) -> Prefer {
        let target = opinions.iter().find_map(|opinion| opinion.target);
        let object = opinions.iter().find_map(|opinion| opinion.given.object());
        let box_index = target.and_then(|target| target.box_index).filter(|_| object.is_none());
        let class = match object {
            Some(object) => Some(object.class().to_owned()),
            None => prediction.and_then(|prediction| class_of(prediction, box_index)),
        };
        let pair = Pair {
            sample: sample.clone(),
            box_index,
            class,
            verdicts: opinions.map(|opinion| opinion.given.verdict.clone()),
            are_of_image: opinions.map(|opinion| opinion.is_inherited),
            reviewers: opinions.map(|opinion| opinion.given.reviewer.clone()),
        };
        let own = if opinions[0].is_inherited { Prefer::Second } else { Prefer::First };
        let kept = if pair.is_conflict() { prefer(&pair) } else { own };
        self.pairs.push(pair);
        kept
    }

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

/// Replaces the verdict on an image by verdicts on the boxes that its reviewer saw, except those that are left open:
/// they would inherit it, or count as judged.
fn split_image_verdict(
    merged: &mut OfImage,
    [ours, theirs]: [&Review; 2],
    run: RunId,
    left_open: &BTreeSet<VerdictTarget>,
) {
    let Some((&target, given)) = merged.iter().rfind(|(target, _)| target.box_index.is_none()) else {
        return;
    };
    let (is_of_boxes, given) = (given.verdict.applies_to_boxes(), given.clone());
    if !is_of_boxes && given.verdict != Verdict::Complete {
        return;
    }
    merged.remove(&target);
    let review = if ours.verdicts.get(&target) == Some(&given) { ours } else { theirs };
    for &index in review.visible.iter().filter(|_| is_of_boxes) {
        let target = VerdictTarget { run: Some(run), box_index: Some(index) };
        if !left_open.contains(&target) {
            merged.entry(target).or_insert_with(|| given.clone());
        }
    }
}

/// Adds a verdict; an added box or a label gets the next free index. False if there is the same: one person can add a box
/// twice.
fn insert(verdicts: &mut OfImage, mut target: VerdictTarget, given: Given) -> bool {
    if given.object().is_some() {
        if verdicts.values().any(|other| other.object() == given.object()) {
            return false;
        }
        while verdicts.contains_key(&target) {
            target.box_index = target.box_index.map(|index| index + 1);
        }
    }
    verdicts.insert(target, given);
    true
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

fn class_of(prediction: &Prediction, box_index: Option<u32>) -> Option<String> {
    match box_index {
        Some(index) => prediction.detections().get(index as usize).map(|found| found.label.clone()),
        None => prediction.classes().first().map(|top| top.label.clone()),
    }
}
