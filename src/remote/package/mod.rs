//! `model.tar.gz`: a model packed so that SageMaker's containers, or any Python, can serve it.
//!
//! A model card becomes weights, card and a handler in Python that does what `vision` does, so that the responses are
//! those of a run on this machine. The same version of Spotcheck packs the same model into the same bytes.

mod archive;
mod error;
mod fetch;
mod onnx;
mod peek;
mod saved_model;
mod unpack;

use std::path::PathBuf;

pub use error::PackageError;
pub use fetch::fetch;
pub use onnx::{PackageOptions, Processor, package_model};
pub use peek::{peek, peek_file};
pub use saved_model::{SavedModelOptions, package_saved_model, stamp_of_saved_model};
pub use unpack::{ArchiveKind, Unpacked, unpack};

/// An archive that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packaged {
    /// Absolute.
    pub path: PathBuf,
    pub bytes: u64,
    /// The sha256 of the whole file, lower-case hex.
    pub sha256: String,
    /// Names in the archive with their sizes, in its order.
    pub files: Vec<(String, u64)>,
}
