//! `model.tar.gz`: a model packed so that SageMaker's containers, or any Python, can serve it.
//!
//! The archive contains the model's weights, card and a Python handler that does what `model` does, so that its
//! responses equal those of a local run. The same version of Spotcheck packs the same model into the same bytes.

mod archive;
mod onnx;
mod saved_model;
mod unpack;

use std::io;
use std::path::{Path, PathBuf};

pub use onnx::{PackageOptions, Processor, package_model};
pub use saved_model::{SavedModelOptions, package_saved_model, stamp_of_saved_model};
pub use unpack::{ArchiveKind, Unpacked, fetch, peek, peek_file, unpack};

use crate::aws::AwsError;
use crate::domain::human_bytes;
use crate::project::export::ExportError;
use crate::tasks::Cancelled;

/// A finished archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packaged {
    /// Absolute.
    pub path: PathBuf,
    pub bytes: u64,
    /// The SHA-256 of the whole file, in lowercase hex.
    pub sha256: String,
    /// The names in the archive with their sizes, in order.
    pub files: Vec<(String, u64)>,
}

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
    pub fn read(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Read { what, path, source }
    }
}
