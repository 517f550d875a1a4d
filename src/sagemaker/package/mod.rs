//! `model.tar.gz`: a model packed so that SageMaker's containers, or any Python, can serve it.
//!
//! The archive contains the model's weights, card and a Python handler that does what `vision` does, so that its
//! responses equal those of a local run. The same version of Spotcheck packs the same model into the same bytes.

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
