//! A model of the user's own on its way into the library.

use std::path::PathBuf;

use super::SourceId;
use crate::domain::SampleUri;

/// Which opening of the dialog, and which look at the model, a prediction belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ImportId(pub u64);

/// The dialog about an ONNX file.
#[derive(Debug)]
pub struct Import {
    /// Changes with every look, so that a late prediction is known.
    pub id: ImportId,
    pub weights: PathBuf,
    /// A label file of the user's.
    pub labels: Option<PathBuf>,
    /// What the user knows better: field of the card and value, in the order given.
    pub overrules: Vec<(String, String)>,
    pub status: ImportStatus,
}

/// A model of the user's own to recognise.
#[derive(Debug, Clone)]
pub struct RecogniseRequest {
    pub import: ImportId,
    pub weights: PathBuf,
    pub labels: Option<PathBuf>,
    /// Field of the card and value.
    pub overrules: Vec<(String, String)>,
    /// To show what the model would get of it.
    pub image: Option<(SourceId, SampleUri)>,
    pub runtime_library: Option<PathBuf>,
}

#[derive(Debug)]
pub enum ImportStatus {
    /// The file is being looked into.
    Recognising,
    /// It cannot be used as it is; the message says why and what to do.
    Refused(String),
    Draft(Box<ImportDraft>),
    /// It is being copied into the library.
    Adding,
}

/// What the model was recognised as.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportDraft {
    pub id: String,
    pub name: String,
    pub task: String,
    /// How many classes have names.
    pub named_classes: usize,
    /// What was found out or assumed, with the reasons.
    pub findings: Vec<ImportField>,
    /// Every other field of the card.
    pub other_fields: Vec<ImportField>,
    /// Outputs of the graph that are not used.
    pub ignored_outputs: Vec<String>,
    /// Shape of the tensor and the numbers in it, for people; empty without an image to try it on.
    pub tensor: Vec<String>,
}

/// A field of the card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportField {
    /// Its place in the card, `input.layout`.
    pub field: String,
    pub value: String,
    /// “recognised”, “assumed”, “given”; empty where nothing is known of it.
    pub basis: String,
    /// A clause that follows “because”; may be empty.
    pub because: String,
}

impl Import {
    pub fn is_recognising(&self) -> bool {
        matches!(self.status, ImportStatus::Recognising)
    }
}
