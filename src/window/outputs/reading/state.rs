//! How remote responses are read: the user's mappings, and the result of the edited one on examples.

use std::path::PathBuf;
use std::sync::Arc;

use crate::domain::Prediction;
use crate::sagemaker::spec::output_mapping::{OutputMapping, ReadingRequest, ResponseExamples};
use crate::sagemaker::spec::remote_model::RemoteAddress;

/// The state of the mapping dialog, apart from its fields.
#[derive(Debug, Default)]
pub struct Reading {
    /// The user's mappings, as last listed.
    pub saved: Vec<SavedMapping>,
    /// Why some of them cannot be used.
    pub problems: Vec<String>,
    /// Examples for open images.
    pub(crate) examples: Option<Arc<ResponseExamples>>,
    /// The model that returned those responses; `None` if they are outputs of a job.
    pub examples_of: Option<RemoteAddress>,
    /// A counter of requests, so that late results are dropped.
    pub(crate) question: u64,
    pub requested: Option<ReadingRequest>,
    /// The last prediction, until there is a newer one.
    pub trial: Option<ReadingTrial>,
    /// A mapping that was just read from a file or saved, to fill the fields, and a number that distinguishes two of
    /// them.
    pub loaded: Option<(u64, SavedMapping)>,
    /// Why a mapping could not be loaded or saved.
    pub failure: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedMapping {
    /// Without its labels.
    pub mapping: OutputMapping,
    /// The label set it refers to, or the label file next to it; empty for none.
    pub labels: String,
    pub path: PathBuf,
}

/// The result of reading the examples.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadingTrial {
    pub request: ReadingRequest,
    /// The format for display, or why it is unknown.
    pub description: Result<String, String>,
    /// The recognized mapping, if none was requested.
    pub recognized: Option<OutputMapping>,
    /// The assumptions that the predictions do not confirm, for display.
    pub assumed: Vec<String>,
    /// The prediction of each example, or why it cannot be read.
    pub readings: Vec<Result<Prediction, String>>,
}

impl Reading {
    /// Responses for open images, for testing a mapping.
    pub fn examples(&self) -> Option<&ResponseExamples> {
        self.examples.as_deref()
    }

    /// Drops the examples, because their images are no longer open or another model is chosen.
    pub(crate) fn forget_examples(&mut self) {
        self.examples = None;
        self.examples_of = None;
        self.requested = None;
        self.trial = None;
    }

    /// Whether a prediction is pending.
    pub fn is_asking(&self) -> bool {
        let predicted = self.trial.as_ref().map(|trial| &trial.request);
        self.requested.is_some() && self.requested.as_ref() != predicted
    }
}
