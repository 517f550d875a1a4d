//! Ground truth and predictions from other tools, read from their files.
//!
//! The format of a file or folder is detected from its content. One reader per format handles both ground truth and
//! predictions. Knows nothing about models, projects and metrics; [`crate::annotations::matching`] decides which classes and images
//! of two sides correspond.

mod coco;
mod collect;
pub(crate) mod dataset_files;
mod flag;
pub mod import;
pub mod json;
mod json_lines;
mod judged;
mod names;
pub mod patch;
mod recognize;
pub mod rows;
mod run;
mod table;
mod tf_record;
mod voc;
mod yolo;

pub use spotcheck_compute::annotations::matching;

pub use judged::{JudgedImage, from_verdicts};
pub use names::{ClassNamesError, from_file_names, name_classes};
pub use run::{RunClasses, name_by, read_class_map, task_of};
pub use tf_record::from_records;

use std::fmt;

use self::recognize::Recognized;
use self::rows::{BOM, is_utf16, text_of};
use crate::domain::Annotations;
use crate::image::source::{FileEntry, Files, FilesError, SourceError};
use crate::tasks::{Cancelled, TaskControl};

/// The detected format of a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnnotationFormat {
    /// Images, annotations and categories in one JSON file.
    Coco,
    /// A JSON list of boxes with `image_id`, `category_id` and `score`.
    CocoResults,
    /// One text file per image, and `data.yaml`.
    Yolo,
    /// One XML file per image.
    PascalVoc,
    /// One row per box or class.
    Csv,
    /// One line per image, as Spotcheck writes it.
    JsonLines,
    /// Images in one folder per class.
    ClassFolders,
    /// The class is in the file name of each image.
    FileNames,
    /// Stored with the images.
    TfRecord,
    Verdicts,
}

#[derive(Debug)]
pub struct Found {
    pub format: AnnotationFormat,
    pub annotations: Annotations,
    pub files: u64,
    /// Lines or list entries that were read, usable or not.
    pub entries: u64,
    /// What was interpreted differently than written, and other notes; whole sentences.
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
    /// Not a supported format.
    #[error("{place} was not recognized as annotations: {reason}")]
    Unknown { place: String, reason: String },
    #[error("{place} has no split “{wanted}”; {}", known_splits(splits))]
    NoSplit { place: String, wanted: String, splits: Vec<String> },
    /// The file as a whole is invalid.
    #[error("{place} could not be read as {format}: {reason}")]
    Broken { place: String, format: AnnotationFormat, reason: String },
}

/// Reads the annotations of a file or folder; for a dataset with splits, the default one (`val`). Progress is in bytes.
///
/// # Errors
/// It cannot be read, has no known format, or is invalid as a whole. Single unusable entries become problems of the
/// annotations instead.
pub fn open(files: &Files, control: &TaskControl) -> Result<Found, AnnotationsError> {
    open_split(files, None, control)
}

/// As [`open`], with a given split of a dataset.
///
/// # Errors
/// As [`open`]; the split does not exist.
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
        Recognized::Folders(images) => Ok(names::from_folders(images.iter().map(|image| image.name.as_str()))),
        Recognized::TfRecord => {
            let source = files.images(control).map_err(AnnotationsError::Source)?;
            from_records(&*source, control)
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

/// The image name in a file, with `/` between its parts.
fn image_name(given: &str) -> String {
    let name = given.replace('\\', "/");
    name.strip_prefix("./").map(str::to_owned).unwrap_or(name)
}
