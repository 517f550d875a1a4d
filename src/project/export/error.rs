//! Errors of exports.

use std::io;
use std::path::{Path, PathBuf};

use crate::domain::NoPredictions;
use crate::project::StoreError;
use crate::project::export::options::ExportFormat;
use crate::tasks::Cancelled;

/// Why an export failed. Nothing was written under its name, and its partial output was deleted.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("a file or folder with that name exists; choose another name, or allow replacing it: {}", path.display())]
    Exists { path: PathBuf },
    #[error(
        "the folder contains files that Spotcheck did not write there, so it is never replaced; choose another name: {}",
         path.display()
    )]
    NotAnExport { path: PathBuf },
    #[error(
        "the table of the array would replace a file that no export of embeddings wrote; choose another name for the \
         array: {}",
        path.display()
    )]
    NotATable { path: PathBuf },
    #[error("the array needs another ending than .csv, which its table has: {}", path.display())]
    IsTable { path: PathBuf },
    #[error("this is the path of a folder; choose the name of a file: {}", path.display())]
    IsFolder { path: PathBuf },
    #[error("an image has that name and is never replaced; choose another name: {}", path.display())]
    IsImage { path: PathBuf },
    #[error("a project or another database has that name and is never replaced; choose another name: \
        {}", path.display())]
    IsProject { path: PathBuf },
    #[error("a pipe or a device has that name and is never replaced; choose the name of a file: {}", path.display())]
    IsDevice { path: PathBuf },
    #[error("the folder to write into does not exist; create it, or choose another one: {}", path.display())]
    NoFolder { path: PathBuf },
    #[error("{} is for boxes, but this run is a classifier's; choose JSON Lines, CSV, annotated images or the \
         report", format.name())]
    NeedsBoxes { format: ExportFormat },
    #[error(transparent)]
    NoPredictions(#[from] NoPredictions),
    #[error("the disk is full; free some space or choose another disk, then try again: {}", path.display())]
    DiskFull { path: PathBuf },
    #[error("could not be written: {reason}: {}", path.display())]
    Write { path: PathBuf, reason: io::Error },
    #[error("images cannot be compared with “{name}”: {reason}")]
    Similarity { name: String, reason: String },
    #[error("a plot could not be drawn: {0}")]
    Plot(String),
    #[error("the images can no longer be read, so nothing was written; try again once they can be: {0}")]
    SourceUnreachable(String),
    #[error("the predictions could not be read: {0}")]
    Rows(Box<dyn std::error::Error + Send + Sync>),
    #[error("{0}; nothing was written")]
    Cancelled(#[from] Cancelled),
}

impl From<StoreError> for ExportError {
    fn from(error: StoreError) -> Self {
        Self::Rows(Box::new(error))
    }
}

impl ExportError {
    /// For `map_err`: what went wrong while writing to `path`.
    pub fn write(path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |reason| {
            let path = path.clone();
            match reason.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull { path },
                _ => Self::Write { path, reason },
            }
        }
    }
}

/// Whether the next file will fail for the same reason.
pub(super) fn is_fatal(error: &io::Error) -> bool {
    use io::ErrorKind::{NotFound, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | ReadOnlyFilesystem | PermissionDenied | NotFound)
}
