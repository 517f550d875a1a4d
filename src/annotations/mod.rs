//! Ground truth, and predictions made by other programs, read from the files that such programs write.
//!
//! What a file or folder is, is recognised by its content. One reader for each format serves truth and predictions
//! alike. Knows nothing of models, projects and metrics; which class and which image of two sides are the same is
//! decided in [`matching`].

mod coco;
mod json;
pub mod matching;
mod recognise;

use std::fmt;

use crate::domain::Annotations;
use crate::source::{Files, FilesError};
use crate::tasks::{Cancelled, TaskControl};

/// What marks a text as UTF-8; skipped.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// What a file or folder was recognised as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnnotationFormat {
    /// Images, annotations and categories in one JSON file.
    Coco,
    /// A JSON list of boxes with `image_id`, `category_id` and `score`.
    CocoResults,
}

/// What was read.
#[derive(Debug)]
pub struct Found {
    pub format: AnnotationFormat,
    pub annotations: Annotations,
    /// Files that were read.
    pub files: u64,
    /// Lines, or entries of a list, that were read: those that can be used and those that cannot.
    pub entries: u64,
    /// What was used in another way than the file says it, and other things worth knowing; whole sentences.
    pub notes: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum AnnotationsError {
    #[error("{0}")]
    Files(FilesError),
    #[error("cancelled")]
    Cancelled(#[from] Cancelled),
    #[error("{place} is empty")]
    Empty { place: String },
    #[error("{place} is in UTF-16; save it as UTF-8")]
    Utf16 { place: String },
    /// Nothing that is read here.
    #[error("{place} was not recognised as annotations: {reason}")]
    Unknown { place: String, reason: String },
    /// The form of the whole file is broken.
    #[error("{place} could not be read as {format}: {reason}")]
    Broken { place: String, format: AnnotationFormat, reason: String },
}

/// Reads the annotations of a file or folder. Progress is in bytes.
///
/// # Errors
/// It cannot be read, is of no known format, or is broken as a whole. Single entries that cannot be used are among the
/// problems of the annotations instead.
pub fn open(files: &Files, control: &TaskControl) -> Result<Found, AnnotationsError> {
    let listed = files.list(control)?;
    let recognised = recognise::recognise(files, &listed, control)?;
    let place = || files.name_of(&recognised.file);
    control.set_total(Some(recognised.file.size_bytes));
    let mut reader = files.reader(&recognised.file, control);
    let read = coco::read(&mut reader, recognised.format);
    if let Some(error) = reader.take_error() {
        return Err(error.into());
    }
    read.map_err(|reason| AnnotationsError::Broken { place: place(), format: recognised.format, reason })
}

impl From<FilesError> for AnnotationsError {
    fn from(error: FilesError) -> Self {
        match error {
            FilesError::Cancelled(cancelled) => Self::Cancelled(cancelled),
            error => Self::Files(error),
        }
    }
}

impl fmt::Display for AnnotationFormat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Coco => "COCO JSON",
            Self::CocoResults => "COCO results",
        })
    }
}

/// The name of an image as a file gives it, with `/` between its parts.
fn image_name(given: &str) -> String {
    let name = given.replace('\\', "/");
    name.strip_prefix("./").map(str::to_owned).unwrap_or(name)
}
