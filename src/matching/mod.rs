//! Which classes and which images of two sides are the same: ground truth and predictions, or annotations and the
//! images of a source.

mod classes;
mod images;
mod summary;

pub use classes::{ClassCorrections, ClassMatches, ClassReason, ClassRow, CorrectionsError, classes_of};
pub use images::{Folders, ImageKey, ImageMatches, ImageReason, OtherFolders, Unmatched};
pub use summary::{
    ClassList, ClassSummary, CountedClasses, Doubt, ImageSummary, MatchSummary, NumberedClass, UnmatchedClass,
};

use std::borrow::Cow;

/// What a person says of how two sides are matched.
#[derive(Debug, Clone, Copy)]
pub struct MatchRules<'r> {
    pub corrections: &'r ClassCorrections,
    pub folders: Folders,
}

/// The name as it is compared: macOS writes “é” in names of files as two characters, other programs as one.
fn composed(name: &str) -> Cow<'_, str> {
    icu_normalizer::ComposingNormalizerBorrowed::new_nfc().normalize(name)
}
