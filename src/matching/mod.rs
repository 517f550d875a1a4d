//! Which classes and which images of two sides are the same: ground truth and predictions, or annotations and the
//! images of a source.

mod classes;
mod images;

pub use classes::{ClassCorrections, ClassMatches, ClassReason, ClassRow, CorrectionsError, classes_of};
pub use images::{ImageKey, ImageMatches, ImageReason, Unmatched};
