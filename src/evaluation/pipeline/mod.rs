//! The evaluation pipeline: opens ground truth, matches it with predictions, measures.
//!
//! The CLI and the window call the same functions, so both get the same numbers.

mod measure;
mod sides;
mod truth;

pub use measure::{Draws, measure, measure_all};
pub use sides::{FileSide, ListedSamples, RunSide, annotation_sides, run_sides};
pub use truth::{TruthFrom, TruthScores, open_truth, truth_of};

use crate::annotations::matching::CorrectionsError;
use crate::annotations::{AnnotationsError, ClassNamesError};
use crate::domain::{ModelTask, counted, grouped};
use crate::evaluation::NoTruth;
use crate::image::source::SourceError;
use crate::project::StoreError;
use crate::tasks::Cancelled;

/// The number of example names in a message.
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
    #[error("{name} has no usable entries, for example: {problem}")]
    NothingUsable { name: String, problem: String },
    #[error("The predictions have no scores, so they look like ground truth: {name}")]
    NoScores { name: String },
    /// Boxes against classes of images.
    #[error("The ground truth has {}, but {predictions} has {}", contents_of(*truth), other_contents_of(*truth))]
    OtherTask { truth: ModelTask, predictions: String },
    #[error("The class corrections do not match: {0}")]
    Corrections(#[from] CorrectionsError),
    #[error(
        "The ground truth and the predictions have no classes in common. Predictions: {predicted}; ground truth: \
         {truth}"
    )]
    NoClassInCommon { predicted: String, truth: String },
    #[error("No ground-truth image has a prediction. Ground truth: {truth}; predictions: {predicted}")]
    NoImageInCommon { predicted: String, truth: String },
    #[error(
        "{} the same file name on both sides, but their folders differ, so these may be different images. Ground \
         truth: {truth}; predictions: {predicted}",
        counted(*count, "image has", "images have")
    )]
    OtherFolders { count: usize, truth: String, predicted: String },
    #[error(
        "The image sizes contradict each other: {example}. Boxes for resized or rotated images do not match the \
         originals"
    )]
    OtherSizes { example: String },
    #[error("The boxes in {side} are fractions of images of unknown size, such as {image}")]
    UnknownSize { side: &'static str, image: String },
    #[error("The boxes could not be evaluated: {0}")]
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

/// What annotations for a task consist of.
fn contents_of(task: ModelTask) -> &'static str {
    match task {
        ModelTask::Detection => "boxes",
        ModelTask::Classification => "image classes",
    }
}

/// What annotations for the other task consist of.
fn other_contents_of(task: ModelTask) -> &'static str {
    match task {
        ModelTask::Detection => contents_of(ModelTask::Classification),
        ModelTask::Classification => contents_of(ModelTask::Detection),
    }
}

/// The first ones, as a list.
fn some_of<T: ToString>(names: impl ExactSizeIterator<Item = T>) -> String {
    let more = names.len().saturating_sub(MAX_NAMED);
    let mut list: Vec<String> = names.take(MAX_NAMED).map(|name| name.to_string()).collect();
    if more > 0 {
        list.push(format!("and {} more", grouped(more)));
    }
    list.join(", ")
}
