//! Opens ground truth.

use super::EvaluateError;
use crate::annotations::{self, Found};
use crate::domain::counted;
use crate::evaluation::GroundTruth;
use crate::source::Files;
use crate::tasks::TaskControl;

/// Where ground truth is.
#[derive(Clone)]
pub enum TruthFrom {
    /// A file or folder of annotations.
    Files(Files),
}

/// Reads ground truth; its format is recognised by its content. Progress is in bytes. The notes of the result say what
/// it was recognised as.
///
/// # Errors
/// It cannot be read or is not ground truth.
pub fn open_truth(from: &TruthFrom, control: &TaskControl) -> Result<GroundTruth, EvaluateError> {
    control.set_step("reading the ground truth");
    let TruthFrom::Files(files) = from;
    let found = annotations::open(files, control)?;
    let (name, notes) = (files.name(), notes_of(&files.name(), &found));
    GroundTruth::of(name.clone(), found.annotations, notes).map_err(|reason| EvaluateError::NoTruth { name, reason })
}

/// What annotations were recognised as, and what is worth knowing of them.
pub(super) fn notes_of(name: &str, found: &Found) -> Vec<String> {
    let annotations = &found.annotations;
    let mut notes = vec![format!(
        "{name}: {}, {}, {}.",
        found.format,
        counted(annotations.images.len(), "image", "images"),
        counted(annotations.classes.len(), "class", "classes")
    )];
    notes.extend(found.notes.iter().cloned());
    notes
}
