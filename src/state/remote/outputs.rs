//! Outputs that were made elsewhere, on their way to become a run of the open images.

use std::path::PathBuf;
use std::sync::Arc;

use super::JobId;
use crate::domain::{LabelSet, ModelCard, ReadingRequest, ResponseExamples, RunKey, S3Place};
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
pub struct OutputsRequest {
    pub at: OutputsAt,
    pub reading: ReadingRequest,
}

/// The dialog about outputs, and what came of the last wish.
#[derive(Debug, Default)]
pub struct OpeningOutputs {
    pub task: Option<TaskId>,
    /// What was wished for last.
    pub request: Option<OutputsRequest>,
    pub failure: Option<OutputsFailure>,
}

/// Why outputs did not become a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputsFailure {
    Cancelled,
    Failed {
        message: String,
        /// The first predictions, where their shape is not known.
        examples: Option<Arc<ResponseExamples>>,
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
