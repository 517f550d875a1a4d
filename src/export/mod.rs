//! Predictions in forms that other programs and people read. One format a file.

mod annotated;
mod annotated_folder;

pub use annotated::{annotate, write_picture};
pub use annotated_folder::{AnnotatedFolder, AnnotatedFolderError};
