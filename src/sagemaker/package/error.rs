//! Errors of packing and unpacking.

use std::io;
use std::path::{Path, PathBuf};

use crate::aws::AwsError;
use crate::domain::human_bytes;
use crate::project::export::ExportError;
use crate::tasks::Cancelled;

/// An error; nothing was written under the requested name.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    #[error(transparent)]
    Target(#[from] ExportError),
    #[error("could not read {what}: {source}: {}", path.display())]
    Read {
        /// “the weights”
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error(
        "the weights do not match the card of {id}: their sha256 is {found}, not {expected}; download them again with \
        `spotcheck models fetch {id}`: {}", path.display()
    )]
    WrongWeights { id: String, found: String, expected: String, path: PathBuf },
    #[error("a file changed while it was packed; try again: {}", path.display())]
    Changed { path: PathBuf },
    #[error(
        "the folder contains no TensorFlow SavedModel: expected saved_model.pb, or one folder per version \
         (1/saved_model.pb): {}",
        path.display()
    )]
    NoSavedModel { path: PathBuf },
    #[error("{reason}, so the folder was not packed: {}", path.display())]
    RefusedFile { reason: String, path: PathBuf },
    #[error("the archive is damaged: {reason}; create or download it again: {}", path.display())]
    Damaged { reason: String, path: PathBuf },
    #[error("the archive is not accepted: {reason}: {}", path.display())]
    RefusedArchive { reason: String, path: PathBuf },
    #[error(
        "this is not an archive of `spotcheck transform package`: it contains neither spotcheck-model.json nor a \
        SavedModel (1/saved_model.pb): {}",
        path.display()
    )]
    Foreign { path: PathBuf },
    #[error(
        "the archive was not unpacked: it contains more than {}, and {reason}: {}",
        human_bytes(*limit_bytes), path.display()
    )]
    TooLarge { limit_bytes: u64, reason: String, path: PathBuf },
    #[error("could not unpack into {}: {source}", folder.display())]
    Unpack { folder: PathBuf, source: io::Error },
    #[error("{0}")]
    Aws(#[from] AwsError),
    #[error("{0}")]
    Cancelled(#[from] Cancelled),
}

impl PackageError {
    /// An adapter for `map_err`.
    pub(crate) fn read(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Read { what, path, source }
    }
}
