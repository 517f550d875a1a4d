//! Matches the classes and images of two sides: ground truth and predictions, or annotations and the images of a
//! source.

mod classes;
mod images;
mod summary;

pub use classes::{ClassCorrections, ClassMatches, ClassReason, ClassRow, CorrectionsError, classes_of};
pub use images::{Folders, ImageKey, ImageMatches, ImageReason, OtherFolders, Unmatched};
pub use summary::{
    ClassList, ClassSummary, CountedClasses, Doubt, ImageSummary, MatchSummary, NumberedClass, UnmatchedClass,
};

use std::borrow::Cow;

/// The user's rules for matching two sides.
#[derive(Debug, Clone, Copy)]
pub struct MatchRules<'r> {
    pub corrections: &'r ClassCorrections,
    pub folders: Folders,
}

/// The name in composed form: macOS writes “é” in file names as two characters, other systems as one.
fn composed(name: &str) -> Cow<'_, str> {
    icu_normalizer::ComposingNormalizerBorrowed::new_nfc().normalize(name)
}
