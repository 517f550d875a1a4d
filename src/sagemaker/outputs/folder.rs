//! A folder of outputs, local or in S3. Listed and read, never written.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::json::{MAX_RESPONSE_BYTES, too_long};
use crate::aws::{Aws, AwsError, AwsErrorKind};
use crate::domain::{Location, Problem, S3Address};
use crate::image::source::{FileEntry, Files, FilesError, Links};
use crate::tasks::{Cancelled, TaskControl};

/// Links can lead anywhere, and SageMaker writes none.
const LINKS: Links = Links::Skip;

/// A folder of outputs. Clones share its state.
#[derive(Clone)]
pub struct OutputFolder {
    pub files: Files,
    /// Why the folder became unreadable.
    outage: Arc<OnceLock<String>>,
}

impl OutputFolder {
    pub fn local(path: &Path) -> Self {
        Self { files: Files::local(path), outage: Arc::default() }
    }

    /// Everything below a location. Sends no request yet.
    pub fn new(aws: &Aws, location: &Location) -> Self {
        let files = Files::new(aws, location);
        let folder = files.address().and_then(|address| files.at_address(address.as_folder()));
        Self { files: folder.unwrap_or(files), outage: Arc::default() }
    }

    /// The prefix of its keys; empty for a local folder.
    pub fn address(&self) -> S3Address {
        self.files.address().cloned().unwrap_or_default()
    }

    /// Another folder with the same access; `None` if local.
    pub fn at_address(&self, address: &S3Address) -> Option<Self> {
        let files = self.files.at_address(address.as_folder())?;
        Some(Self { files, outage: Arc::clone(&self.outage) })
    }

    /// The file with this name below the folder, with `/` between its parts.
    ///
    /// # Errors
    /// It could not be checked whether the file exists.
    pub fn find(&self, name: &str, control: &TaskControl) -> Result<Option<FileEntry>, String> {
        self.files.find(name, LINKS, control).map_err(|error| error.to_string())
    }

    /// All files whose names end in `.out`, in byte order of their keys.
    ///
    /// # Errors
    /// The folder cannot be listed completely: a partial list would look like missing outputs.
    pub fn list(&self, control: &TaskControl) -> Result<Vec<FileEntry>, OutputsError> {
        let mut files = self.files.list_all(LINKS, control, |count| control.add_done(count))?;
        files.retain(|file| file.key.ends_with(super::OUT));
        Ok(files)
    }

    /// The whole file with the response for one image.
    ///
    /// # Errors
    /// It cannot be read, differs from the listed one, or is implausibly long.
    pub fn read(&self, file: &FileEntry, control: &TaskControl) -> Result<Vec<u8>, String> {
        if file.size_bytes > MAX_RESPONSE_BYTES {
            return Err(too_long(file.size_bytes));
        }
        self.read_range(file, 0..file.size_bytes, control)
    }

    /// A range of a file; shorter at its end.
    pub fn read_range(&self, file: &FileEntry, range: Range<u64>, control: &TaskControl) -> Result<Vec<u8>, String> {
        self.files.read_range(file, range, control).map_err(|error| {
            let is_of_all = concerns_all(&error).unwrap_or_else(|| {
                // It is unclear, and a listing worked before.
                self.files.check_folder(control).is_err_and(|error| concerns_all(&error).unwrap_or(true))
            });
            let reason = error.to_string();
            if is_of_all {
                self.outage.get_or_init(|| reason.clone());
            }
            reason
        })
    }

    /// Why the folder became unreadable.
    pub fn outage(&self) -> Option<&str> {
        self.outage.get().map(String::as_str)
    }
}

/// Whether an error affects all outputs; `None` if unclear.
fn concerns_all(error: &FilesError) -> Option<bool> {
    use AwsErrorKind as Kind;
    match error {
        FilesError::Cancelled(_) => Some(false),
        FilesError::Local { .. } | FilesError::NoSuchPlace { .. } => None,
        FilesError::Aws(error) => match error.kind {
            Kind::Server | Kind::Throttled | Kind::Timeout | Kind::Cut => None,
            Kind::Local | Kind::NotS3 => Some(false),
            kind => Some(kind.concerns_everything()),
        },
    }
}

/// Why outputs cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OutputsError {
    #[error("canceled")]
    Cancelled(#[from] Cancelled),
    #[error("could not list the output folder: {0}")]
    Folder(FilesError),
    #[error("{0}")]
    Aws(AwsError),
    #[error(
        "No outputs in {0}: no file name ends in .out. A running job writes outputs one by one; a completed job \
         without outputs found no input"
    )]
    NoOutput(String),
    /// A job has ended without an output for any of the images.
    #[error("None of the {} images has an output. {}", .0.len(), first_of(.0))]
    AllFailed(Vec<Problem>),
    #[error(
        "none of the {outputs} outputs matches one of the {images} images: for example output {example} and image \
        {image}. {}",
        what_to_open(.example)
    )]
    NoImage { outputs: usize, images: usize, example: String, image: String },
    #[error("could not read any of the first outputs; {example}: {reason}")]
    Broken { example: String, reason: String },
    #[error("{reason}")]
    Unknown { example: String, reason: String },
}

fn first_of(problems: &[Problem]) -> String {
    problems.first().map_or_else(String::new, Problem::to_string)
}

/// The advice if no output matches an image.
fn what_to_open(example: &str) -> &'static str {
    let input = example.strip_suffix(super::OUT).unwrap_or(example);
    let input = input.to_ascii_lowercase();
    if [".rec", ".recordio"].iter().any(|end| input.ends_with(end)) {
        "Spotcheck does not read RecordIO files; write the images as files or TFRecord files, and send those"
    } else {
        "Open the input folder of the job"
    }
}

impl From<FilesError> for OutputsError {
    fn from(error: FilesError) -> Self {
        match error {
            FilesError::Cancelled(cancelled) => Self::Cancelled(cancelled),
            FilesError::Aws(error) if error.kind == AwsErrorKind::Cancelled => Self::Cancelled(Cancelled),
            FilesError::Aws(error) => Self::Aws(error),
            error => Self::Folder(error),
        }
    }
}
