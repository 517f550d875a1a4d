//! How remote responses are read: the user's mappings, and what examples read as with the one that is being edited.

use std::path::PathBuf;
use std::sync::Arc;

use crate::domain::{OutputMapping, Prediction, ReadingRequest, RemoteAddress, ResponseExamples};

/// The state of the mapping dialog besides its fields.
#[derive(Debug, Default)]
pub struct Reading {
    /// The user's mappings, as they were listed last.
    pub saved: Vec<SavedMapping>,
    /// Why some of them cannot be used.
    pub problems: Vec<String>,
    /// About images that are open.
    pub(in crate::state) examples: Option<Arc<ResponseExamples>>,
    /// The model that returned those responses; `None` if they are outputs of a job.
    pub examples_of: Option<RemoteAddress>,
    /// Counts up with the questions, so that a late result is dropped.
    pub(in crate::state) question: u64,
    /// The last request.
    pub requested: Option<ReadingRequest>,
    /// The last prediction, until there is a newer one.
    pub trial: Option<ReadingTrial>,
    /// A mapping that was read from a file or has just been saved, for the fields to show, and a number that tells two
    /// of them apart.
    pub loaded: Option<(u64, SavedMapping)>,
    /// Why a mapping was not loaded or saved.
    pub failure: Option<String>,
}

/// A mapping in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedMapping {
    /// Without its labels.
    pub mapping: OutputMapping,
    /// The label set that it names, or the file of labels beside it; empty for none.
    pub labels: String,
    pub path: PathBuf,
}

/// The result of reading the examples.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadingTrial {
    pub request: ReadingRequest,
    /// How they are read, for people, or why that is not known.
    pub description: Result<String, String>,
    /// The mapping that was recognized, if none was requested.
    pub recognized: Option<OutputMapping>,
    /// The assumptions that the predictions do not confirm, for people.
    pub assumed: Vec<String>,
    /// The prediction of each example, or why it cannot be read.
    pub readings: Vec<Result<Prediction, String>>,
}

impl Reading {
    /// Responses for images that are open, to try a mapping on.
    pub fn examples(&self) -> Option<&ResponseExamples> {
        self.examples.as_deref()
    }

    /// Drops the examples: they are about images that are no longer open, or of another model.
    pub(in crate::state) fn forget_examples(&mut self) {
        self.examples = None;
        self.examples_of = None;
        self.requested = None;
        self.trial = None;
    }

    /// Whether a prediction is on its way.
    pub fn is_asking(&self) -> bool {
        let predicted = self.trial.as_ref().map(|trial| &trial.request);
        self.requested.is_some() && self.requested.as_ref() != predicted
    }
}
