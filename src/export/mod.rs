//! Predictions in forms that other programs and people read. One format a file.

mod annotated;
mod annotated_folder;
mod drawing;
mod picture_file;

pub use annotated::annotate;
pub use annotated_folder::{AnnotatedFolder, AnnotatedFolderError};
pub use picture_file::{PictureFileError, write_picture};
