//! What Spotcheck does, without its front ends: the library below the window and the command line, in layers that import
//! only downward (see ARCHITECTURE.md).

pub mod annotations;
pub mod aws;
pub mod cache;
pub mod dirs;
pub mod domain;
pub mod evaluation;
/// Where images come from, and how their bytes become pixels.
pub mod image {
    pub mod decode;
    pub mod source;
}
pub mod local_file;
pub mod model;
pub mod predict;
pub mod project;
pub mod review;
pub mod sagemaker;
pub mod tasks;

use std::sync::OnceLock;

/// The commit that the program was built from, if the build named it in `SPOTCHECK_COMMIT`. Only `main.rs` knows it, so
/// that nothing else is compiled again after a commit.
pub static COMMIT: OnceLock<&str> = OnceLock::new();

/// The address of the Python package index that ONNX Runtime is downloaded from by default, if the build named it in
/// `SPOTCHECK_PACKAGE_INDEX`.
pub static PACKAGE_INDEX: OnceLock<&str> = OnceLock::new();

/// `0.1.0 (9605c893)`
pub fn version() -> String {
    let version = env!("CARGO_PKG_VERSION");
    COMMIT.get().map_or_else(|| version.to_owned(), |commit| format!("{version} ({commit})"))
}
