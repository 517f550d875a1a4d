//! A model of the user's own on its way into the library.

use std::path::PathBuf;

use super::SourceId;
use crate::domain::SampleUri;

/// The number of a recognition of a model; each opening of the dialog and each change begins another one.
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
    /// The corrections of the user: field of the card and value, in the order given.
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
    /// The shown image, for a preview of the model's input.
    pub image: Option<(SourceId, SampleUri)>,
    pub runtime_library: Option<PathBuf>,
}

#[derive(Debug)]
pub enum ImportStatus {
    /// The file is being looked into.
    Recognising,
    /// The model cannot be used as it is; the message says why and what to do.
    Refused(String),
    Draft(Box<ImportDraft>),
    /// The model is being copied into the library.
    Adding,
}

/// The recognised properties of the model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportDraft {
    pub id: String,
    pub name: String,
    pub task: String,
    /// How many classes have names.
    pub named_classes: usize,
    /// The properties that were recognised or assumed, with the reasons.
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
    /// The path in the card, `input.layout`.
    pub field: String,
    pub value: String,
    /// “recognised”, “assumed”, “given”; empty if it is unknown.
    pub basis: String,
    /// A clause that follows “because”; may be empty.
    pub because: String,
}

impl Import {
    pub fn is_recognising(&self) -> bool {
        matches!(self.status, ImportStatus::Recognising)
    }
}
