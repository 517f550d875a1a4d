//! The pipeline of an evaluation: opens ground truth, matches it with predictions, measures.
//!
//! The command line and the window call the same functions, so both give the same numbers.

mod measure;
mod sides;
mod truth;

pub use measure::{Draws, measure, measure_all};
pub use sides::{FileSide, ListedSample, RunSide, of_annotations, of_run};
pub use truth::{TruthFrom, TruthScores, open_truth, truth_of};

use crate::annotations::{AnnotationsError, ClassNamesError};
use crate::domain::counted;
use crate::evaluation::NoTruth;
use crate::matching::CorrectionsError;
use crate::source::SourceError;
use crate::store::StoreError;
use crate::tasks::Cancelled;

/// The names that a message gives as examples.
const MAX_NAMED: usize = 5;

/// Why there is no evaluation.
#[derive(Debug, thiserror::Error)]
pub enum EvaluateError {
    #[error("canceled")]
    Cancelled(#[from] Cancelled),
    #[error("{0}")]
    Annotations(AnnotationsError),
    #[error("{0}")]
    Store(#[from] StoreError),
    #[error("{0}")]
    Source(#[from] SourceError),
    #[error("{name} {reason}")]
    NoTruth { name: String, reason: NoTruth },
    #[error("{name} {reason}")]
    ClassNames { name: String, reason: ClassNamesError },
    #[error("{name} has nothing that can be used, for example: {problem}")]
    NothingUsable { name: String, problem: String },
    #[error("The predictions have no scores, so they look like ground truth: {name}")]
    NoScores { name: String },
    /// Boxes against classes of images.
    #[error("The ground truth is for {truth}, and {predictions} is not")]
    OtherTask { truth: &'static str, predictions: String },
    #[error("The corrections of the classes do not fit: {0}")]
    Corrections(#[from] CorrectionsError),
    #[error(
        "The ground truth has none of the classes of the predictions. Classes of the predictions: {predicted}; of the \
        ground truth: {truth}"
    )]
    NoClassInCommon { predicted: String, truth: String },
    #[error(
        "No image of the ground truth has a prediction. Images of the ground truth: {truth}; with predictions: \
        {predicted}"
    )]
    NoImageInCommon { predicted: String, truth: String },
    #[error(
        "{} the same file name on both sides, but no folder is the same, so these may be different images. Ground \
        truth: {truth}; predictions: {predicted}",
        counted(*count, "image has", "images have")
    )]
    OtherFolders { count: usize, truth: String, predicted: String },
    #[error(
        "The sizes of the images contradict each other: {example}. Boxes of images that were resized or rotated do not \
        fit the originals"
    )]
    OtherSizes { example: String },
    #[error("The boxes of {side} are fractions of images whose sizes are unknown, such as {image}")]
    UnknownSize { side: &'static str, image: String },
    #[error("The boxes could not be measured: {0}")]
    Unmeasured(String),
}

impl From<AnnotationsError> for EvaluateError {
    fn from(error: AnnotationsError) -> Self {
        match error {
            AnnotationsError::Cancelled(cancelled) => Self::Cancelled(cancelled),
            error => Self::Annotations(error),
        }
    }
}

/// The first ones, as a list.
fn some_of<T: ToString>(names: impl ExactSizeIterator<Item = T>) -> String {
    let more = names.len().saturating_sub(MAX_NAMED);
    let mut list: Vec<String> = names.take(MAX_NAMED).map(|name| name.to_string()).collect();
    if more > 0 {
        list.push(format!("and {more} more"));
    }
    list.join(", ")
}
