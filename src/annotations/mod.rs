//! Ground truth, and predictions made by other programs, read from the files that such programs write.
//!
//! What a file or folder is, is recognized by its content. One reader for each format serves truth and predictions
//! alike. Knows nothing of models, projects and metrics; which class and which image of two sides are the same is
//! decided in [`crate::matching`].

mod class_names;
mod coco;
mod collect;
mod flag;
pub(crate) mod json;
mod json_lines;
mod judged;
mod lines;
mod names;
mod recognize;
pub(crate) mod rows;
mod run;
mod table;
mod tf_record;
mod voc;
mod yolo;

pub use class_names::{ClassNamesError, name_classes};
pub use judged::{JudgedImage, of_verdicts};
pub use names::of_file_names;
pub use run::{RunClasses, name_by, read_class_map, task_of};
pub use tf_record::of_records;

use std::fmt;

use self::recognize::Recognized;
use crate::domain::Annotations;
use crate::source::{FileEntry, Files, FilesError, SourceError};
use crate::tasks::{Cancelled, TaskControl};

/// What marks a text as UTF-8; skipped.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// What a file or folder was recognized as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnnotationFormat {
    /// Images, annotations and categories in one JSON file.
    Coco,
    /// A JSON list of boxes with `image_id`, `category_id` and `score`.
    CocoResults,
    /// A text file for each image, and `data.yaml`.
    Yolo,
    /// An XML file for each image.
    PascalVoc,
    /// A row for each box or class.
    Csv,
    /// A line for each image, as Spotcheck writes it.
    JsonLines,
    /// Images in folders by class.
    ClassFolders,
    /// The class is in the name of each image.
    FileNames,
    /// Stored with the images.
    TfRecord,
    /// What people judged in a project.
    Verdicts,
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
    #[error("{0}")]
    Source(SourceError),
    #[error("canceled")]
    Cancelled(#[from] Cancelled),
    #[error("{place} is empty")]
    Empty { place: String },
    #[error("{place} is in UTF-16; save it as UTF-8")]
    Utf16 { place: String },
    /// Nothing that is read here.
    #[error("{place} was not recognized as annotations: {reason}")]
    Unknown { place: String, reason: String },
    #[error("{place} has no split “{wanted}”; {}", known_splits(splits))]
    NoSplit { place: String, wanted: String, splits: Vec<String> },
    /// The form of the whole file is broken.
    #[error("{place} could not be read as {format}: {reason}")]
    Broken { place: String, format: AnnotationFormat, reason: String },
}

/// Reads the annotations of a file or folder, of a data set with splits those of the usual one (`val`). Progress is in
/// bytes.
///
/// # Errors
/// It cannot be read, is of no known format, or is broken as a whole. Single entries that cannot be used are among the
/// problems of the annotations instead.
pub fn open(files: &Files, control: &TaskControl) -> Result<Found, AnnotationsError> {
    open_split(files, None, control)
}

/// As [`open`], with the wanted split of a data set.
///
/// # Errors
/// As [`open`]; there is no such split.
pub fn open_split(files: &Files, split: Option<&str>, control: &TaskControl) -> Result<Found, AnnotationsError> {
    let found = open_any(files, split, control)?;
    match split {
        Some(wanted) if found.annotations.split.is_none() => {
            let (place, wanted) = (files.name(), wanted.to_owned());
            Err(AnnotationsError::NoSplit { place, wanted, splits: Vec::new() })
        }
        _ => Ok(found),
    }
}

fn known_splits(splits: &[String]) -> String {
    match splits {
        [] => "only a data.yaml with paths for train, val or test has splits".to_owned(),
        splits => format!("it has {}", splits.join(" and ")),
    }
}

fn open_any(files: &Files, split: Option<&str>, control: &TaskControl) -> Result<Found, AnnotationsError> {
    let mut files = files.clone();
    match recognize::recognize(&mut files, split, control)? {
        Recognized::File { format, file, first_line } => open_file(&files, &file, (format, &first_line), control),
        Recognized::Yolo(found) => {
            if found.labels.is_empty() {
                let reason = "there are no label files (.txt) in its folder".to_owned();
                return Err(AnnotationsError::Unknown { place: files.name(), reason });
            }
            yolo::read(&files, *found, control)
        }
        Recognized::PascalVoc(listed) => voc::read(&files, &listed, control),
        Recognized::Folders(images) => Ok(names::of_folders(images.iter().map(|image| image.name.as_str()))),
        Recognized::TfRecord => {
            let source = files.images(control).map_err(AnnotationsError::Source)?;
            of_records(&*source, control)
        }
    }
}

fn open_file(
    files: &Files,
    file: &FileEntry,
    (format, first_line): (AnnotationFormat, &str),
    control: &TaskControl,
) -> Result<Found, AnnotationsError> {
    control.set_total(Some(file.size_bytes));
    let mut reader = files.reader(file, control);
    let read = match format {
        AnnotationFormat::JsonLines => json_lines::read(&mut reader).map_err(|error| error.to_string()),
        AnnotationFormat::Csv => {
            let read = table::read(&mut reader, first_line).map_err(|error| error.to_string());
            read.and_then(|read| read)
        }
        _ => coco::read(&mut reader, format),
    };
    if let Some(error) = reader.take_error() {
        return Err(error.into());
    }
    read.map_err(|reason| AnnotationsError::Broken { place: files.name_of(file), format, reason })
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
            Self::Yolo => "YOLO",
            Self::PascalVoc => "Pascal VOC",
            Self::Csv => "CSV",
            Self::JsonLines => "JSON Lines",
            Self::ClassFolders => "folders by class",
            Self::FileNames => "classes in file names",
            Self::TfRecord => "TFRecord",
            Self::Verdicts => "verdicts",
        })
    }
}

/// The text of a file or line, without the mark of UTF-8.
///
/// # Errors
/// Words that follow its place.
fn text_of(bytes: &[u8]) -> Result<&str, &'static str> {
    if is_utf16(bytes) {
        return Err("is in UTF-16; save it as UTF-8");
    }
    std::str::from_utf8(bytes.strip_prefix(BOM).unwrap_or(bytes)).map_err(|_| "is not UTF-8; save the file as UTF-8")
}

/// Whether a text begins with the mark of UTF-16, or with two of its characters from ASCII.
fn is_utf16(bytes: &[u8]) -> bool {
    match bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => true,
        [0, one, 0, other, ..] | [one, 0, other, 0, ..] => *one != 0 && *other != 0,
        _ => false,
    }
}

/// The name of an image as a file gives it, with `/` between its parts.
fn image_name(given: &str) -> String {
    let name = given.replace('\\', "/");
    name.strip_prefix("./").map(str::to_owned).unwrap_or(name)
}
