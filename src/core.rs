//! What Spotcheck does, without its front ends: the library below the window and the command line, in layers that import
//! only downward (see ARCHITECTURE.md).

pub use spotcheck_compute::{alike, cache, domain, review, tasks};

pub mod annotations;
pub mod aws;
pub mod dirs;
/// Metrics against ground truth, and the agreement of two runs.
pub mod evaluation {
    pub use spotcheck_compute::evaluation::*;

    pub mod pipeline;
}
/// Where images come from, and how their bytes become pixels.
pub mod image {
    pub use spotcheck_compute::image::decode;

    pub mod capture;
    pub mod fingerprint;
    pub mod size;
    pub mod source;
}
pub mod local_file;
/// Models: their arithmetic, their files, and how they run.
pub mod model {
    pub use spotcheck_compute::model::*;

    pub mod catalog;
    pub mod diagnostics;
    pub mod download;
    pub mod onnx;
    pub mod recognize;
    pub mod runtime;
}
pub mod predict;
pub mod project;
pub mod sagemaker;
pub mod similar;

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
