//! What a review changed in ground truth that was opened to correct it.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::annotations::AnnotationsError;
use crate::annotations::matching::{
    ClassCorrections, ClassMatches, CorrectionsError, ImageKey, ImageMatches, ImageReason, MatchRules, Unmatched,
    classes_of,
};
use crate::annotations::patch::{
    ChangeKind, Corrected, KnownLabel, KnownLabels, Label, LabelChange, LabelPatchError, class_name, kinds_of,
    known_labels,
};
use crate::domain::{
    AnnotationProblems, BoundingBox, BoxUnit, CardTask, Detection, DrawnBox, JudgedSample, LabelSet, Prediction,
    RunInfo, SampleUri, TruthLabel, Verdict, VerdictTarget, counted,
};
use crate::image::source::Files;
use crate::project::export::target::WholeFolder;
use crate::project::export::{ExportError, ExportTarget, WholeFile};
use crate::project::{Project, StoreError};
use crate::tasks::TaskControl;

/// The largest distance of an edge, in pixels, between a label in the file and in the project, which has 32 bits.
const SAME_EDGE: f32 = 0.01;

#[derive(Debug, thiserror::Error)]
pub enum LabelChangesError {
    #[error(transparent)]
    Labels(#[from] LabelPatchError),
    #[error(transparent)]
    Classes(#[from] CorrectionsError),
    #[error("“{0}” is a run of a model; only changes of opened labels can be listed")]
    NoLabels(String),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Export(#[from] ExportError),
}

impl LabelChangesError {
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Labels(LabelPatchError::Annotations(AnnotationsError::Cancelled(_))))
    }
}

/// What a review changed.
#[derive(Debug, Default)]
pub struct LabelChanges {
    pub changes: Vec<LabelChange>,
    /// Judged labels that the ground truth does not have, or that have no id; whole phrases.
    pub unknown: Vec<String>,
    /// Images that were rejected as a whole: nothing says which of their labels are wrong.
    pub rejected: Vec<String>,
    /// Images that are back to the labeler, who makes their labels again.
    pub returned: Vec<String>,
    /// Entries of the ground truth that are not used.
    pub problems: AnnotationProblems,
}

/// How many images of a kind a note names.
const EXAMPLES: usize = 5;

impl LabelChanges {
    /// What the verdicts on a run of the labels in `files` change. `rules` are those with which they were opened.
    ///
    /// # Errors
    /// The run is one of a model, its labels have a format whose changes cannot be applied, or something cannot be read.
    pub fn find(
        project: &Project,
        run: &RunInfo,
        files: &Files,
        split: Option<&str>,
        rules: MatchRules<'_>,
        control: &TaskControl,
    ) -> Result<Self, LabelChangesError> {
        if !run.is_labels() {
            return Err(LabelChangesError::NoLabels(run.name.clone()));
        }
        if run.card.task == CardTask::Classification {
            return Err(LabelPatchError::ImageClasses.into());
        }
        let known = known_labels(files, split, control)?;
        let classes = ClassNames::new(&known.classes, &run.labels, rules.corrections)?;
        let is_used = |(target, verdict): &(VerdictTarget, Verdict)| {
            target.run == Some(run.id) || matches!(verdict, Verdict::Spurious(_))
        };
        let mut judged = project.judgments()?;
        judged.retain(|judged| judged.verdicts.iter().any(is_used));
        let reviewers = project.reviewers(run.id)?;
        let uris: Vec<SampleUri> = judged.iter().map(|judged| judged.sample.clone()).collect();
        let root = project.root();
        let names: Vec<String> = uris.iter().map(|uri| uri.name_below(root.as_deref())).collect();
        let named: Vec<ImageKey> = known.images.iter().map(|image| ImageKey::named(&image.name)).collect();
        let own: Vec<ImageKey> = names.iter().map(|name| ImageKey::named(name)).collect();
        let matches = ImageMatches::between(&own, &named, rules.folders);
        let pairs = names.iter().zip(&matches.left);
        let mut prefixes =
            pairs.filter_map(|(name, matched)| known.images[matched.ok()?.0 as usize].name.strip_suffix(name.as_str()));
        let prefix = prefixes.next().unwrap_or_default();
        let truth = OpenedTruth { known: &known, classes, prefix };
        let mut found = Self::default();
        let predictions = project.predictions(run.id, &uris)?;
        for (((judged, name), matched), prediction) in judged.iter().zip(&names).zip(&matches.left).zip(predictions) {
            control.checkpoint().map_err(AnnotationsError::from).map_err(LabelPatchError::from)?;
            let mut of_image = judged.verdicts.iter().filter(|(target, _)| target.box_index.is_none());
            match of_image.rfind(|(target, _)| target.is_of(run.id)) {
                Some((_, Verdict::Reject)) => found.rejected.push(name.clone()),
                Some((_, Verdict::Returned)) => found.returned.push(name.clone()),
                _ => {
                    let author = |target: &VerdictTarget| reviewers.get(&(judged.sample.clone(), *target)).cloned();
                    let prediction = prediction.and_then(|found| found.result.ok());
                    match truth.image(*matched, name).zip(prediction.as_ref()) {
                        Some(image) => ImageReview::new(&truth, image, (judged, run), author).add_changes(&mut found),
                        None => found.unknown.push(format!("{name}: the ground truth has no such image")),
                    }
                }
            }
        }
        found.problems = known.problems;
        Ok(found)
    }

    /// One line per change.
    pub fn to_json_lines(&self) -> String {
        let line = |change| serde_json::to_string(change).expect("texts and numbers always serialize") + "\n";
        self.changes.iter().map(line).collect()
    }

    /// “3 changes: 2 added, 1 moved”
    pub fn summary(&self) -> String {
        let changes = counted(self.changes.len(), "change", "changes");
        if self.changes.is_empty() { changes } else { format!("{changes}: {}", kinds_of(&self.changes)) }
    }

    /// Which images have no changes, although they were judged.
    pub fn notes(&self) -> Vec<String> {
        let note = |images: &[String], [one, several]: [&str; 2]| {
            let more = if images.len() > EXAMPLES { " …" } else { "" };
            let named = images[..images.len().min(EXAMPLES)].join(", ");
            (!images.is_empty()).then(|| format!("{}: {named}{more}", counted(images.len(), one, several)))
        };
        let rejected = [
            "image rejected as a whole has no changes; to delete its labels, reject them",
            "images rejected as a whole have no changes; to delete their labels, reject them",
        ];
        let returned = ["image back to labeler has no changes yet", "images back to labeler have no changes yet"];
        [note(&self.rejected, rejected), note(&self.returned, returned)].into_iter().flatten().collect()
    }
}

/// Lists the files of a folder of corrected ground truth, so that only such a folder is replaced. Hidden, because the
/// other files are copied over the ground truth.
const FILES_LIST: &str = ".spotcheck-changes.json";

#[derive(Serialize, Deserialize)]
struct WrittenFiles {
    spotcheck: String,
    files: BTreeSet<String>,
}

/// Writes corrected ground truth: a file, or a folder with the changed files.
///
/// # Errors
/// As for any export.
pub fn write_corrected(corrected: &Corrected, target: &ExportTarget) -> Result<(), ExportError> {
    match corrected {
        Corrected::File(content) => WholeFile::create(target)?.commit_with(content),
        Corrected::Folder(files) => {
            let folder = WholeFolder::create_over(target, contains_only_written)?;
            let failed = ExportError::write(&target.path);
            for (name, content) in files {
                folder.write(name, content).map_err(&failed)?;
            }
            let written = WrittenFiles {
                spotcheck: env!("CARGO_PKG_VERSION").to_owned(),
                files: files.keys().cloned().collect(),
            };
            let list = serde_json::to_vec(&written).map_err(|error| failed(error.into()))?;
            folder.write(FILES_LIST, &list).map_err(&failed)?;
            folder.commit()
        }
    }
}

/// Whether a folder contains nothing but what `write_corrected` wrote. Ground truth over which that was copied has other
/// files.
fn contains_only_written(folder: &Path) -> bool {
    let list = std::fs::read(folder.join(FILES_LIST));
    let Some(mut written) = list.ok().and_then(|list| serde_json::from_slice::<WrittenFiles>(&list).ok()) else {
        return false;
    };
    written.files.insert(FILES_LIST.to_owned());
    let mut open = vec![(folder.to_owned(), String::new())];
    while let Some((path, prefix)) = open.pop() {
        let Ok(entries) = std::fs::read_dir(path) else { return false };
        for entry in entries {
            let Ok((kind, entry)) = entry.and_then(|entry| Ok((entry.file_type()?, entry))) else { return false };
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if kind.is_dir() {
                open.push((entry.path(), name + "/"));
            } else if !kind.is_file() || !written.files.contains(&name) {
                return false;
            }
        }
    }
    true
}

/// The ground truth that a run was opened from.
struct OpenedTruth<'t> {
    known: &'t KnownLabels,
    classes: ClassNames<'t>,
    /// What precedes the name of an image in it.
    prefix: &'t str,
}

impl<'t> OpenedTruth<'t> {
    /// The name and labels of an image.
    fn image(&self, matched: Result<(u32, ImageReason), Unmatched>, name: &str) -> Option<(String, &'t [KnownLabel])> {
        match matched {
            Ok((image, _)) => {
                let image = &self.known.images[image as usize];
                Some((image.name.clone(), &image.labels))
            }
            Err(Unmatched::Missing) if self.known.may_omit_images => Some((format!("{}{name}", self.prefix), &[])),
            Err(_) => None,
        }
    }
}

/// The class names of the ground truth, and those of the run in which it was opened.
struct ClassNames<'c> {
    labels: &'c LabelSet,
    /// The name in the run of each class that it has.
    in_run: BTreeMap<String, String>,
    /// Whether no class of the ground truth has a name.
    are_numbers: bool,
}

impl<'c> ClassNames<'c> {
    fn new(
        classes: &[TruthLabel],
        labels: &'c LabelSet,
        corrections: &ClassCorrections,
    ) -> Result<Self, CorrectionsError> {
        let of_run = classes_of(labels);
        let matches = ClassMatches::between(classes, &of_run, corrections)?;
        let name = |(class, index): (&TruthLabel, u32)| {
            Some((class_name(class), class_name(of_run.get(matches.index(index)? as usize)?)))
        };
        let in_run = classes.iter().zip(0..).filter_map(name).collect();
        Ok(Self { labels, in_run, are_numbers: classes.iter().all(|class| class.name.is_none()) })
    }

    fn is_of(&self, label: &Label, detection: &Detection) -> bool {
        self.in_run.get(&label.class) == Some(&detection.label)
    }

    /// The name in the ground truth of a class of the run. A label keeps its class if that is the same in the run.
    fn in_truth(&self, class: &str, before: Option<&Label>) -> String {
        let same = |(known, name): (&String, &String)| (name == class).then(|| known.clone());
        let kept = before.and_then(|label| same(self.in_run.get_key_value(&label.class)?));
        let number = || {
            let number = self.labels.id_of(class).filter(|_| self.are_numbers)?;
            Some(class_name(&TruthLabel { number: Some(number.into()), name: None }))
        };
        kept.or_else(|| self.in_run.iter().find_map(same)).or_else(number).unwrap_or_else(|| class.to_owned())
    }
}

/// Whether this is the box of a detection, which may have been clipped.
fn has_box(label: &Label, detection: &Detection, prediction: &Prediction) -> bool {
    let bounds = BoundingBox::from(label.bounds());
    let edges = |bounds: BoundingBox| <[f32; 4]>::from(bounds.clipped(prediction.width, prediction.height));
    edges(bounds).into_iter().zip(edges(detection.bounds)).all(|(one, other)| (one - other).abs() <= SAME_EDGE)
}

/// The verdicts on the labels of an image.
struct ImageReview<'r> {
    image: String,
    prediction: &'r Prediction,
    /// Each label in the ground truth, also in pixels.
    labels: Vec<(&'r KnownLabel, Label)>,
    /// The box, verdict and reviewer.
    verdicts: Vec<(u32, Verdict, Option<String>)>,
    /// Labels judged as wrong that the run does not have.
    unknown: Vec<&'r DrawnBox>,
    all: &'r KnownLabels,
    classes: &'r ClassNames<'r>,
}

impl<'r> ImageReview<'r> {
    fn new(
        truth: &'r OpenedTruth<'r>,
        ((image, labels), prediction): ((String, &'r [KnownLabel]), &'r Prediction),
        (judged, run): (&'r JudgedSample, &RunInfo),
        author: impl Fn(&VerdictTarget) -> Option<String>,
    ) -> Self {
        let size = [prediction.width, prediction.height];
        let own = judged.verdicts.iter().filter(|(target, _)| target.run == Some(run.id));
        let own = own.filter_map(|(target, verdict)| Some((target.box_index?, verdict.clone(), *target)));
        let verdicts = own.chain(judged.implied(run, prediction));
        let wrong = judged.wrong_labels().map(|(_, wrong)| wrong);
        Self {
            image,
            prediction,
            labels: labels.iter().map(|label| (label, truth.known.in_pixels(label, size))).collect(),
            verdicts: verdicts.map(|(index, verdict, target)| (index, verdict, author(&target))).collect(),
            unknown: wrong.filter(|wrong| prediction.drawn_as(wrong).next().is_none()).collect(),
            all: truth.known,
            classes: &truth.classes,
        }
    }

    fn add_changes(&self, found: &mut LabelChanges) {
        let mut taken = HashSet::new();
        let first = found.changes.len();
        for (index, verdict, author) in &self.verdicts {
            match verdict {
                Verdict::Added(drawn) => {
                    let after = Label::new(&self.classes.in_truth(drawn.class(), None), drawn.bounds());
                    found.changes.push(LabelChange {
                        image: self.image.clone(),
                        id: None,
                        change: ChangeKind::Added,
                        near: self.near(None, &[&after]),
                        before: None,
                        after: Some(after),
                        equal: None,
                        size: self.size_of_fractions(),
                        author: author.clone(),
                    });
                }
                Verdict::Reject | Verdict::WrongClass(_) | Verdict::Moved(_) => {
                    self.change(*index, verdict, author.as_deref(), &mut taken, found);
                }
                _ => {}
            }
        }
        for wrong in &self.unknown {
            let class = wrong.class();
            found.unknown.push(format!("{}: the run has no label like the “{class}” judged as wrong", self.image));
        }
        let changes = &mut found.changes[first..];
        for at in 0..changes.len() {
            let equal = changes.iter().filter(|other| other.has_same_labels(&changes[at])).count();
            changes[at].equal = Some(equal).filter(|equal| *equal > 1);
        }
    }

    /// The size of the image, if boxes are fractions of it.
    fn size_of_fractions(&self) -> Option<[u32; 2]> {
        (self.all.unit == BoxUnit::Fractions).then_some([self.prediction.width, self.prediction.height])
    }

    /// The labels, except the one that changes, that may be confused with others.
    fn near(&self, changed: Option<usize>, others: &[&Label]) -> Vec<Label> {
        if self.all.have_ids {
            return Vec::new();
        }
        let labels = self.labels.iter().enumerate().filter(|(at, _)| Some(*at) != changed).map(|(_, (_, label))| label);
        labels.filter(|label| others.iter().any(|other| label.is_near(other))).cloned().collect()
    }

    /// Adds the change of a label; a rejected one is deleted.
    fn change(
        &self,
        index: u32,
        verdict: &Verdict,
        author: Option<&str>,
        taken: &mut HashSet<usize>,
        found: &mut LabelChanges,
    ) {
        let detection = self.prediction.detections().get(index as usize);
        let labels = self.labels.iter().enumerate();
        let mut same = labels.filter(|(at, (_, label))| {
            let is_of = |detection: &Detection| {
                self.classes.is_of(label, detection) && has_box(label, detection, self.prediction)
            };
            !taken.contains(at) && detection.is_some_and(is_of)
        });
        let Some((at, (known, before))) = same.next() else {
            found.unknown.push(format!("{}: the ground truth has no label like box {index}", self.image));
            return;
        };
        taken.insert(at);
        if self.all.have_ids && known.id.is_null() {
            found.unknown.push(format!("{}: the label of box {index} has no id in the file", self.image));
            return;
        }
        let (change, after) = match verdict {
            Verdict::WrongClass(class) => {
                let class = self.classes.in_truth(class, Some(before));
                (ChangeKind::Class, Some(Label { class, bbox: before.bbox }))
            }
            Verdict::Moved(drawn) => {
                let after = Label::new(&self.classes.in_truth(drawn.class(), Some(before)), drawn.bounds());
                let is_moved = after.bbox != before.bbox;
                (if is_moved { ChangeKind::Moved } else { ChangeKind::Class }, Some(after))
            }
            _ => (ChangeKind::Deleted, None),
        };
        found.changes.push(LabelChange {
            image: self.image.clone(),
            id: Some(known.id.clone()).filter(|id| !id.is_null()),
            change,
            near: self.near(Some(at), &[Some(before), after.as_ref()].into_iter().flatten().collect::<Vec<_>>()),
            before: Some(before.clone()),
            after,
            equal: None,
            size: self.size_of_fractions(),
            author: author.map(str::to_owned),
        });
    }
}
