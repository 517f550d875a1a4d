//! What a review changed in ground truth that was opened to correct it.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::annotations::AnnotationsError;
use crate::annotations::matching::{Folders, ImageKey, ImageMatches};
use crate::annotations::patch::{
    ChangeKind, Corrected, KnownLabel, KnownLabels, Label, LabelChange, LabelPatchError, kinds_of, known_labels,
};
use crate::domain::{
    BoundingBox, BoxUnit, CardTask, Detection, Prediction, RunInfo, SampleUri, Verdict, VerdictTarget, counted,
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
}

impl LabelChanges {
    /// What the verdicts on a run of the labels in `files` change.
    ///
    /// # Errors
    /// The run is one of a model, its labels have a format whose changes cannot be applied, or something cannot be read.
    pub fn find(
        project: &Project,
        run: &RunInfo,
        files: &Files,
        split: Option<&str>,
        control: &TaskControl,
    ) -> Result<Self, LabelChangesError> {
        if !run.is_labels() {
            return Err(LabelChangesError::NoLabels(run.name.clone()));
        }
        if run.card.task == CardTask::Classification {
            return Err(LabelPatchError::ImageClasses.into());
        }
        let known = known_labels(files, split, control)?;
        let judged = project.judgments()?;
        let judged: Vec<_> = judged
            .into_iter()
            .filter(|judged| judged.verdicts.iter().any(|(target, _)| target.run == Some(run.id)))
            .collect();
        let reviewers = project.reviewers(run.id)?;
        let uris: Vec<SampleUri> = judged.iter().map(|judged| judged.sample.clone()).collect();
        let root = project.root();
        let names: Vec<String> = uris.iter().map(|uri| uri.name_below(root.as_deref())).collect();
        let named: Vec<ImageKey> = known.images.iter().map(|image| ImageKey::named(&image.name)).collect();
        let own: Vec<ImageKey> = names.iter().map(|name| ImageKey::named(name)).collect();
        let matches = ImageMatches::between(&own, &named, Folders::Agree);
        let mut found = Self::default();
        let predictions = project.predictions(run.id, &uris)?;
        for (((judged, name), matched), prediction) in judged.iter().zip(&names).zip(&matches.left).zip(predictions) {
            control.checkpoint().map_err(AnnotationsError::from).map_err(LabelPatchError::from)?;
            let (Ok((image, _)), Some(Ok(prediction))) = (matched, prediction.map(|found| found.result)) else {
                found.unknown.push(format!("{name}: the ground truth has no such image"));
                continue;
            };
            let image = &known.images[*image as usize];
            let author = |target: &VerdictTarget| reviewers.get(&(judged.sample.clone(), *target)).cloned();
            let of_run = judged.verdicts.iter().filter(|(target, _)| target.run == Some(run.id));
            let verdicts = of_run.map(|(target, verdict)| (target.box_index, verdict, author(target))).collect();
            let size = [prediction.width, prediction.height];
            let labels: Vec<(&KnownLabel, Label)> =
                image.labels.iter().map(|label| (label, known.in_pixels(label, size))).collect();
            ImageReview { image: &image.name, prediction: &prediction, labels, verdicts, all: &known }
                .add_changes(&mut found);
        }
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

/// Whether this is the label of a detection, which may have been clipped.
fn is_of(label: &Label, detection: &Detection, prediction: &Prediction) -> bool {
    let bounds = BoundingBox::from(label.bounds());
    let edges = |bounds: BoundingBox| <[f32; 4]>::from(bounds.clipped(prediction.width, prediction.height));
    let near =
        edges(bounds).into_iter().zip(edges(detection.bounds)).all(|(one, other)| (one - other).abs() <= SAME_EDGE);
    near && label.class == detection.label
}

/// The verdicts on the labels of an image.
struct ImageReview<'r> {
    image: &'r str,
    prediction: &'r Prediction,
    /// Each label in the ground truth, also in pixels.
    labels: Vec<(&'r KnownLabel, Label)>,
    /// The box, verdict and reviewer.
    verdicts: Vec<(Option<u32>, &'r Verdict, Option<String>)>,
    all: &'r KnownLabels,
}

impl ImageReview<'_> {
    fn add_changes(&self, found: &mut LabelChanges) {
        let judged: HashSet<u32> = self.verdicts.iter().filter_map(|(index, ..)| *index).collect();
        let mut taken = HashSet::new();
        for (index, verdict, author) in &self.verdicts {
            match (index, verdict) {
                (None, Verdict::Reject) => {
                    let all = 0..self.prediction.detections().len() as u32;
                    for index in all.filter(|index| !judged.contains(index)) {
                        self.change(index, None, author.as_deref(), &mut taken, found);
                    }
                }
                (Some(_), Verdict::Added(drawn)) => {
                    let after = Label::new(drawn.class(), drawn.bounds());
                    found.changes.push(LabelChange {
                        image: self.image.to_owned(),
                        id: None,
                        change: ChangeKind::Added,
                        near: self.near(None, &[&after]),
                        before: None,
                        after: Some(after),
                        size: self.size_of_fractions(),
                        author: author.clone(),
                    });
                }
                (Some(index), Verdict::Reject | Verdict::WrongClass(_) | Verdict::Moved(_)) => {
                    self.change(*index, Some(verdict), author.as_deref(), &mut taken, found);
                }
                _ => {}
            }
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

    /// Adds the change of a label; without a verdict, it is deleted.
    fn change(
        &self,
        index: u32,
        verdict: Option<&Verdict>,
        author: Option<&str>,
        taken: &mut HashSet<usize>,
        found: &mut LabelChanges,
    ) {
        let detection = self.prediction.detections().get(index as usize);
        let labels = self.labels.iter().enumerate();
        let mut same = labels.filter(|(at, (_, label))| {
            !taken.contains(at) && detection.is_some_and(|detection| is_of(label, detection, self.prediction))
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
            Some(Verdict::WrongClass(class)) => {
                (ChangeKind::Class, Some(Label { class: class.clone(), bbox: before.bbox }))
            }
            Some(Verdict::Moved(drawn)) => {
                let after = Label::new(drawn.class(), drawn.bounds());
                let is_moved = after.bbox != before.bbox;
                (if is_moved { ChangeKind::Moved } else { ChangeKind::Class }, Some(after))
            }
            _ => (ChangeKind::Deleted, None),
        };
        found.changes.push(LabelChange {
            image: self.image.to_owned(),
            id: Some(known.id.clone()).filter(|id| !id.is_null()),
            change,
            near: self.near(Some(at), &[Some(before), after.as_ref()].into_iter().flatten().collect::<Vec<_>>()),
            before: Some(before.clone()),
            after,
            size: self.size_of_fractions(),
            author: author.map(str::to_owned),
        });
    }
}
