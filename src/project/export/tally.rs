//! The results of an export, counted while it runs and reported at its end.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::domain::{ModelTask, Problem, counted};
use crate::project::export::options::ExportFormat;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportReport {
    /// The file or folder.
    pub path: PathBuf,
    /// Whether `boxes` are boxes or classes.
    pub task: ModelTask,
    pub images: u64,
    /// Boxes, or classes of a classifier.
    pub boxes: u64,
    /// Deviations that one may not expect: what was skipped, renamed or not corrected.
    pub notes: Vec<String>,
    /// Images that could not be read, and why; everything else was written.
    pub problems: Vec<Problem>,
}

/// `100 images and 532 boxes written: /home/me/cats.csv`
impl std::fmt::Display for ExportReport {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let images = counted(self.images, "image", "images");
        let boxes = match self.task {
            ModelTask::Detection => counted(self.boxes, "box", "boxes"),
            ModelTask::Classification => counted(self.boxes, "class", "classes"),
        };
        let path = self.path.display();
        write!(formatter, "{images} and {boxes} written: {path}")
    }
}

/// The number of images that a note names.
const MAX_NAMES: usize = 5;

#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Whether COCO's category ids are not the model's.
    pub moves_category_ids: bool,
    pub images: u64,
    pub boxes: u64,
    pub left_out_by_verdict: u64,
    /// Images without a verdict, if corrected labels are exported.
    pub unjudged: u64,
    /// Other images whose verdicts do not cover everything in them.
    pub uncovered: u64,
    /// The names of the first of them.
    pub first_uncovered: Vec<String>,
    /// Images that go back to the labeler.
    pub returned: u64,
    /// Images that datasets and annotated images cannot contain, because they have no prediction.
    pub unpredicted: u64,
    pub failed: u64,
    /// Images whose prediction is of an older version of the file.
    pub outdated: u64,
    /// Those with verdicts, which are skipped as well.
    pub outdated_judged: u64,
    /// Boxes that are entirely outside the image.
    pub outside: u64,
    pub relabeled: u64,
    /// Boxes of the model in a position that a person gave.
    pub moved: u64,
    /// Boxes that a person added.
    pub added: u64,
    /// Classes that a person gave and the model does not have.
    pub new_classes: BTreeSet<String>,
    /// Files that could not have the name of their image.
    pub renamed: u64,
    /// The first of them: image and file.
    pub first_renamed: Option<(String, String)>,
    pub problems: Vec<Problem>,
}

impl Tally {
    pub(super) fn rename(&mut self, image: &str, file: &str) {
        self.renamed += 1;
        self.first_renamed.get_or_insert_with(|| (image.to_owned(), file.to_owned()));
    }

    /// A judged image that is left out of corrected labels.
    pub(super) fn leave_uncovered(&mut self, image: &str) {
        self.uncovered += 1;
        if self.first_uncovered.len() < MAX_NAMES {
            self.first_uncovered.push(image.to_owned());
        }
    }

    pub(super) fn notes(&self, format: ExportFormat, task: ModelTask) -> Vec<String> {
        let mut notes = Vec::new();
        let mut note = |amount: u64, one: &str, many: &str, text: &str| {
            if amount > 0 {
                notes.push(format!("{} {text}", counted(amount, one, many)));
            }
        };
        note(self.left_out_by_verdict, "image", "images", "skipped because of the verdicts");
        note(self.unjudged, "image", "images", "skipped because not judged");
        let names = self.first_uncovered.join(", ");
        let rest = if self.uncovered > self.first_uncovered.len() as u64 { ", …" } else { "" };
        let text = format!(
            "skipped because the verdicts leave something open (a visible box without a verdict or unsure, or the whole \
             image rejected or unsure): {names}{rest}"
        );
        note(self.uncovered, "image", "images", &text);
        note(self.returned, "image", "images", "skipped because marked as back to labeler");
        note(self.unpredicted, "image", "images", "skipped because not predicted yet");
        note(self.failed, "image", "images", "skipped because the prediction failed");
        note(self.outdated, "prediction", "predictions", "skipped because outdated; predict again");
        let text = "skipped with its verdicts, because the file changed after it was judged";
        let texts = "skipped with their verdicts, because the files changed after they were judged";
        note(
            self.outdated_judged,
            "judged image",
            "judged images",
            if self.outdated_judged == 1 { text } else { texts },
        );
        note(self.outside, "box", "boxes", "skipped because no part is inside the image");
        let [one, many] = task.judged_words();
        note(self.relabeled, one, many, "written with the corrected class");
        note(self.moved, "box", "boxes", "moved by a person");
        note(self.added, "box", "boxes", "added by a person");
        let new_classes = self.new_classes.iter().map(String::as_str).collect::<Vec<_>>().join("”, “");
        let text = format!("that the model does not have: “{new_classes}”");
        note(self.new_classes.len() as u64, "new class", "new classes", &text);
        if let Some((image, file)) = &self.first_renamed {
            let text = format!("renamed, because the image name was taken or cannot be used ({image} became {file})");
            note(self.renamed, "file", "files", &text);
        }
        if self.moves_category_ids {
            notes.push("category ids are the model's plus 1, because tools treat 0 as no category".to_owned());
        }
        if format.is_dataset() && self.images == 0 {
            notes.push("the dataset is empty: no images were left to write".to_owned());
        }
        notes
    }
}
