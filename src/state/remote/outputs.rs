//! Outputs that were made elsewhere, on their way to become a run of the open images.

use std::path::PathBuf;

use super::JobId;
use crate::domain::{LabelSet, ModelCard, RunKey, S3Place};
use crate::state::TaskId;

/// Where outputs lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputsAt {
    Job(JobId),
    Place(Box<S3Place>),
    /// A folder of this machine.
    Folder(PathBuf),
}

impl OutputsAt {
    /// For people.
    pub fn name(&self) -> String {
        match self {
            Self::Job(id) => format!("the job {}", id.name),
            Self::Place(place) => place.address.to_string(),
            Self::Folder(path) => path.display().to_string(),
        }
    }
}

/// Which outputs are opened, and how they are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputsWish {
    pub at: OutputsAt,
    /// A label set or a file of labels; empty: as is found.
    pub labels: String,
    /// A mapping as text, or its id or file; empty: as is recognised.
    pub mapping: String,
    /// Whether the text of the mapping is kept for the next time.
    pub saves_mapping: bool,
}

/// The dialog about outputs, and what came of the last wish.
#[derive(Debug, Default)]
pub struct OpeningOutputs {
    pub task: Option<TaskId>,
    /// What was wished for last.
    pub wish: Option<OutputsWish>,
    pub failure: Option<OutputsFailure>,
}

/// Why outputs did not become a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputsFailure {
    Cancelled,
    Failed {
        message: String,
        /// The beginning of the first output, where its shape is not known.
        raw: Option<String>,
    },
}

/// What the outputs turned out to be.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundRun {
    pub at: OutputsAt,
    pub key: RunKey,
    pub card: ModelCard,
    pub labels: LabelSet,
}
