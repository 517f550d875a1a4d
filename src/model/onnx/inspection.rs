//! Inspects an ONNX file without a card.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use ort::logging::LogLevel;
use ort::session::builder::{AutoDevicePolicy, SessionBuilder};

use super::InferenceError;
use super::embedding::{EmbeddingLayer, encoder_layer, prove};
use super::session::OnnxSession;
use crate::domain::{LabelSet, ModelCard, NoPredictions, OutputConvention};
use crate::local_file;
use crate::model::PredictError;
use crate::model::catalog::{LibraryError, Model, built_in_labels, model_file};
use crate::model::recognize::{
    GraphSignature, KerasApplication, Neighbor, Notes, Overrules, Recognition, RecognitionRequest, RecognizeError,
    Refusal, find_name, recognize,
};
use crate::model::runtime::Loaded;
use crate::tasks::TaskControl;

/// Maximum number of files read per folder.
const MAX_NEIGHBORS: usize = 64;
/// Maximum size of such a file: the names of 22,000 classes, which some classifiers have, take 2 MB.
const MAX_NEIGHBOR_BYTES: u64 = 16_000_000;

/// A loaded graph without a card.
pub struct Inspection {
    pub session: OnnxSession,
    signature: GraphSignature,
    pub weights: PathBuf,
}

/// Why an ONNX file cannot be used without a card.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    #[error("canceled")]
    Cancelled,
    #[error("{} cannot be used: {reason}", path.display())]
    Refused { path: PathBuf, reason: RecognizeError },
    #[error(transparent)]
    NoPredictions(#[from] NoPredictions),
    #[error(transparent)]
    Library(#[from] LibraryError),
}

impl Inspection {
    /// Loads the graph on the CPU. Slow for large weights.
    ///
    /// # Errors
    /// [`InspectError::Refused`] with ONNX Runtime's message, and what to do, if it does not load.
    pub fn open(runtime: &Loaded, weights: &Path) -> Result<Self, InspectError> {
        // For these, ONNX Runtime's message reads like that for an invalid graph.
        let no_file = |source| LibraryError::NoFile { path: weights.to_owned(), source };
        let found = local_file::open(weights).and_then(|file| file.metadata()).map_err(no_file)?;
        if found.is_dir() {
            return Err(no_file(io::ErrorKind::IsADirectory.into()).into());
        }
        if found.len() == 0 {
            return Err(no_file(io::Error::new(io::ErrorKind::UnexpectedEof, "the file is empty")).into());
        }
        let session = OnnxSession::load(&runtime.environment, weights, quiet);
        let session = session.map_err(|error| {
            let text = match error {
                InferenceError::Load { reason, .. } => reason,
                other => other.to_string(),
            };
            refused(weights, Refusal::from_load_error(&text))
        })?;
        Ok(Self { signature: session.signature(), session, weights: weights.to_owned() })
    }

    pub fn signature(&self) -> &GraphSignature {
        &self.signature
    }

    /// Drafts the card. Runs the graph a few times on synthetic images.
    ///
    /// # Errors
    /// [`InspectError::Refused`] if Spotcheck cannot use the graph.
    pub fn recognize(
        &mut self,
        labels: Option<&LabelSet>,
        overrules: &Overrules,
        control: &TaskControl,
    ) -> Result<Recognition, InspectError> {
        let unknown = request(&self.weights, &self.signature, labels, overrules)?;
        let session = &mut self.session;
        let mut cancelled = false;
        let recognized = recognize(unknown, &mut |inputs| {
            session.run(inputs, &[], control).map_err(|error| {
                cancelled |= error == PredictError::Cancelled;
                error.to_string()
            })
        });
        if cancelled {
            return Err(InspectError::Cancelled);
        }
        recognized.map_err(|reason| refused(&self.weights, reason))
    }

    /// Where the embeddings of a model with this card come from. Loads the graph again, once or twice.
    ///
    /// # Errors
    /// Why it has none, as a clause.
    pub fn embedding(
        &mut self,
        runtime: &Loaded,
        card: &ModelCard,
        control: &TaskControl,
    ) -> Result<EmbeddingLayer, String> {
        if card.is_encoder() {
            return self.encoder(card, control);
        }
        let load =
            |tensors: &[&str]| OnnxSession::load_with_outputs(&runtime.environment, &self.weights, tensors, quiet);
        let images = card.input.fixed_batch.map_or(1, |images| images as usize);
        prove(card, &self.weights, images, &mut self.session, load, control).map(|(proof, _)| proof.layer)
    }

    /// Where the embeddings of an encoder with this card come from.
    ///
    /// # Errors
    /// The card's output is no embedding, or the graph does not run.
    pub fn encoder(&mut self, card: &ModelCard, control: &TaskControl) -> Result<EmbeddingLayer, String> {
        let OutputConvention::Embedding(output) = &card.output else {
            return Err("the model is no encoder".to_owned());
        };
        let images = card.input.fixed_batch.map_or(1, |images| images as usize);
        let layer = encoder_layer(card, output, images, &mut self.session, control);
        layer.map_err(|error| error.to_string())
    }

    /// The model with the recognized card, ready to load.
    pub fn model(&self, recognition: &Recognition) -> Model {
        Model { card: recognition.card.clone(), labels: labels_of(recognition), weights: self.weights.clone() }
    }
}

/// On the CPU. Failing runs are expected here and come back as errors; the log would repeat them.
fn quiet(builder: SessionBuilder) -> ort::Result<SessionBuilder> {
    Ok(builder.with_auto_device(AutoDevicePolicy::PreferCPU)?.with_log_level(LogLevel::Fatal)?)
}

pub(super) fn request<'m>(
    weights: &Path,
    graph: &'m GraphSignature,
    labels: Option<&LabelSet>,
    overrules: &'m Overrules,
) -> Result<RecognitionRequest<'m>, InspectError> {
    let file = model_file(weights)?;
    let stem = weights.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let notes = notes_of(weights, stem.as_deref().unwrap_or_default(), graph);
    Ok(RecognitionRequest {
        id: id_of(stem.as_deref().unwrap_or_default()),
        name: stem.unwrap_or_else(|| "model".to_owned()),
        file,
        graph,
        notes,
        labels: labels.cloned(),
        overrules,
    })
}

/// Facts from the graph's metadata and the files next to it.
fn notes_of(weights: &Path, stem: &str, signature: &GraphSignature) -> Notes {
    let (neighbors, remarks) = neighbors(weights, stem);
    let mut notes = Notes::read(stem, &signature.metadata, &neighbors);
    notes.remarks.extend(remarks);
    let names = local_file::open(weights).and_then(|file| find_name(file, KerasApplication::from_node));
    // ONNX Runtime also loads files in its own format, which has no such names.
    if let Ok(Some(application)) = names {
        notes.add_keras_application(&application);
    }
    notes
}

/// The relevant files next to a model, those of its own folder first, each folder by name; and the unreadable ones,
/// with the reason.
fn neighbors(weights: &Path, stem: &str) -> (Vec<Neighbor>, Vec<String>) {
    let own = weights.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut folders = vec![(own.to_owned(), "")];
    // Optimum and transformers.js store graphs in a folder of their own.
    let resolved = own.canonicalize().unwrap_or_else(|_| own.to_owned());
    if resolved.file_name().is_some_and(|name| name.eq_ignore_ascii_case("onnx")) {
        folders.extend(resolved.parent().map(|above| (above.to_owned(), "../")));
    }
    let (mut found, mut remarks) = (Vec::new(), Vec::new());
    for (folder, prefix) in folders {
        let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        let named = entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())));
        let mut files: Vec<(String, PathBuf)> =
            named.filter(|(name, path)| Notes::concern(name, stem) && path.is_file()).collect();
        files.sort_unstable();
        for (name, path) in files.into_iter().take(MAX_NEIGHBORS) {
            let name = format!("{prefix}{name}");
            match read_text(&path) {
                Ok(text) => found.push(Neighbor { name, text }),
                Err(reason) => remarks.push(format!("{name} was not used: {reason}")),
            }
        }
    }
    (found, remarks)
}

fn read_text(path: &Path) -> Result<String, String> {
    let file = local_file::open(path).map_err(|error| error.to_string())?;
    let mut text = String::new();
    file.take(MAX_NEIGHBOR_BYTES + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    if text.len() as u64 > MAX_NEIGHBOR_BYTES {
        return Err(format!("it is larger than {} MB", MAX_NEIGHBOR_BYTES / 1_000_000));
    }
    Ok(text)
}

pub(super) fn refused(path: &Path, reason: impl Into<RecognizeError>) -> InspectError {
    InspectError::Refused { path: path.to_owned(), reason: reason.into() }
}

/// The class names of a draft card.
pub fn labels_of(recognition: &Recognition) -> LabelSet {
    let built_in = || built_in_labels(recognition.card.labels.as_deref()?);
    recognition.labels.clone().or_else(built_in).unwrap_or_default()
}

/// A file name as an id.
fn id_of(stem: &str) -> String {
    let allowed = |c: char| match c.to_ascii_lowercase() {
        c @ ('a'..='z' | '0'..='9' | '-' | '_' | '.') => c,
        _ => '-',
    };
    let id: String = stem.chars().map(allowed).take(64).collect();
    let id = id.trim_start_matches('.');
    if id.is_empty() { "model".to_owned() } else { id.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_give_valid_ids() {
        for (stem, id) in [("ResNet 50 (v2)", "resnet-50--v2-"), ("..", "model"), ("모델", "--"), ("", "model")] {
            assert_eq!(id_of(stem), id);
        }
    }
}
