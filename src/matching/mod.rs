//! Which classes and which images of two sides are the same: ground truth and predictions, or annotations and the
//! images of a source.

mod classes;
mod images;

pub use classes::{ClassCorrections, ClassMatches, ClassReason, ClassRow, CorrectionsError, classes_of};
pub use images::{ImageKey, ImageMatches, ImageReason, Unmatched};

use std::borrow::Cow;

/// The name as it is compared: macOS writes “é” in names of files as two characters, other programs as one.
fn composed(name: &str) -> Cow<'_, str> {
    icu_normalizer::ComposingNormalizerBorrowed::new_nfc().normalize(name)
}
