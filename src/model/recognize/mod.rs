//! Recognizes what a user's own ONNX model expects and returns, and drafts its card, with the reason for each value.
//!
//! The evidence is what files state, typical output names of exporters, shapes, types and the values of a few test
//! runs. If several readings fit, the most likely one is used and the others are offered. What a graph cannot show (RGB
//! or BGR, mean and std) is *assumed* and marked as such. Knows nothing about ONNX Runtime: the caller passes in the
//! graph's signature and a function that runs it.

mod auxiliary;
mod classifier;
mod detector;
mod embedding;
mod encoder;
mod fit;
mod image_input;
mod layer_index;
mod manual;
mod noted;
mod notes;
mod overrules;
mod pipelines;
mod preprocessing;
mod presets;
mod preview;
mod probe;
mod signature;
mod unsupported;
mod usual;

use std::collections::BTreeMap;
use std::fmt;

use super::Tensor;
use crate::domain::{LabelSet, ModelCard, ModelFile, OutputConvention};
use noted::label_count;
use probe::Prober;

pub use embedding::{
    EmbeddingTensor, EmbeddingTensors, choose_box_features, choose_embedding, embedding_tensors, with_outputs,
};
pub use fit::{Misfit, class_count, input_misfit, misfits};
pub use image_input::image_layouts;
pub use manual::{draft_card, draft_output, found_labels};
pub use noted::{Exporter, Noted, NotedResize, NotedTask, Notes, PixelNotes, Purpose};
pub use notes::{Neighbor, read_labels};
pub use overrules::{OverruleError, Overrules};
pub use preprocessing::KerasApplication;
pub use presets::{Preset, preset, presets};
pub use preview::{ChannelRange, TensorPreview, preview};
pub use signature::{Dimension, GraphSignature, Port, PortElement, find_name};

pub type Outputs = BTreeMap<String, Tensor>;

/// Runs the graph on named inputs; an error is ONNX Runtime's message.
pub type RunGraph<'r> = dyn FnMut(&[(&str, &Tensor)]) -> Result<Outputs, String> + 'r;

/// A graph without a card, and the user's values for the card.
#[derive(Debug)]
pub struct RecognitionRequest<'m> {
    /// The id of the draft card.
    pub id: String,
    /// The display name of the draft card.
    pub name: String,
    pub file: ModelFile,
    pub graph: &'m GraphSignature,
    /// Facts from the graph's metadata and the files next to the model.
    pub notes: Notes,
    /// The class names in the user's label file.
    pub labels: Option<LabelSet>,
    pub overrules: &'m Overrules,
}

/// A draft card with the reason for each field that is not obvious.
#[derive(Debug, Clone, PartialEq)]
pub struct Recognition {
    pub card: ModelCard,
    /// The class names to store next to the card as `card.labels`; `None` if the card uses a built-in set or none.
    pub labels: Option<LabelSet>,
    /// In the order of the card.
    pub findings: Vec<Finding>,
    pub ignored_outputs: Vec<String>,
    /// Notes for the user about the files next to the model.
    pub remarks: Vec<String>,
    /// The equally plausible readings of the outputs, most likely first; empty for a classifier.
    pub readings: Vec<String>,
    /// The index of the reading in the card.
    pub reading: usize,
}

impl Recognition {
    pub fn with_basis(&self, basis: Basis) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.basis == basis)
    }
}

/// Why there is no draft card.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecognizeError {
    /// Spotcheck cannot use this graph.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The user set an unknown field, or an invalid value.
    #[error(transparent)]
    Overrule(#[from] OverruleError),
}

/// Drafts the card of `model`, running it a few times through `run` on synthetic images.
///
/// # Errors
/// [`RecognizeError::Refused`] if there is no image input, the outputs follow no supported convention, the label file
/// does not fit the model's classes, or the graph does not run.
pub fn recognize(model: RecognitionRequest<'_>, run: &mut RunGraph<'_>) -> Result<Recognition, RecognizeError> {
    let encoder = encoder::stated(&model);
    if encoder.is_none() {
        unsupported::check_purpose(&model)?;
    }
    let mut findings = Findings::default();
    let input = image_input::recognize(&model, &mut findings)?;
    let mut prober = Prober::start(input, model.overrules, &mut findings, run)?;
    let prediction = match encoder {
        Some(reason) => encoder::recognize(&model, reason, &mut prober, &mut findings),
        None => match detector::recognize(&model, &mut prober, &mut findings) {
            Ok(None) => classifier::recognize(&model, &mut prober, &mut findings),
            Ok(Some(prediction)) => Ok(prediction),
            Err(error) => Err(error),
        },
    };
    let prediction = prediction.map_err(|error| unsupported::explain(error, &model, &prober))?;
    check_reading(model.overrules.reading(), &prediction.readings)?;
    let sizes = prober.sizes();
    let mut image_input = prober.into_input();
    image_input::complete(&model, &prediction, &sizes, &mut image_input, &mut findings);
    let draft = ModelCard {
        id: model.id,
        name: model.name,
        task: prediction.convention.task(),
        license: ModelCard::UNKNOWN_LICENSE.to_owned(),
        origin: origin(model.graph),
        accuracy: None,
        assumed: Vec::new(),
        not_shown: prediction.not_shown.map(str::to_owned),
        labels: prediction.label_set,
        embedding: None,
        file: model.file,
        input: image_input,
        output: prediction.convention,
    };
    let mut card = model.overrules.apply("", &draft)?;
    let mut findings = findings.0;
    model.overrules.apply_to_findings(&mut findings);
    findings.sort_by_key(|finding| place_in_card(&finding.field));
    card.assumed = findings
        .iter()
        .filter(|finding| finding.basis == Basis::Assumed)
        .map(|finding| format!("{} = {}", finding.field, finding.value))
        .collect();
    let other_labels = model.overrules.text("labels").is_some();
    Ok(Recognition {
        card,
        labels: prediction.labels_to_store.filter(|_| !other_labels),
        findings,
        ignored_outputs: prediction.ignored_outputs,
        readings: prediction.readings,
        reading: model.overrules.reading(),
        remarks: model.notes.remarks,
    })
}

fn check_reading(reading: usize, readings: &[String]) -> Result<(), OverruleError> {
    if reading == 0 || reading < readings.len() {
        return Ok(());
    }
    let [field, reason] = ["reading", "there is only one reading"].map(str::to_owned);
    Err(OverruleError { field, value: (reading + 1).to_string(), reason })
}

struct OutputPrediction {
    convention: OutputConvention,
    /// The label set for the card's `labels`.
    label_set: Option<String>,
    labels_to_store: Option<LabelSet>,
    ignored_outputs: Vec<String>,
    /// Sides of the input must be a multiple of this, in pixels; 1 if any size is accepted.
    side_multiple: u32,
    /// The usual preprocessing of the exporter of such outputs.
    usual: Option<usual::Usual>,
    /// What is not shown of the prediction.
    not_shown: Option<&'static str>,
    /// The equally plausible readings of the outputs, most likely first.
    readings: Vec<String>,
}

impl RecognitionRequest<'_> {
    /// The possible class counts according to names and files.
    fn label_counts(&self) -> Vec<usize> {
        let given = self.labels.iter().chain(self.notes.labels.iter().map(|noted| &noted.value)).map(label_count);
        given.chain(self.notes.label_count.as_ref().map(|noted| noted.value)).collect()
    }
}

fn origin(graph: &GraphSignature) -> String {
    if graph.producer.is_empty() {
        "the user's own file".to_owned()
    } else {
        format!("the user's own file, written by {}", graph.producer)
    }
}

fn place_in_card(field: &str) -> usize {
    const ORDER: [&str; 11] = [
        "task",
        "labels",
        "input.name",
        "input.layout",
        "input.type",
        "input.batches",
        "input.resize",
        "input.interpolation",
        "input.",
        "output",
        "",
    ];
    let place = ORDER.iter().position(|start| field.starts_with(start));
    place.unwrap_or(ORDER.len())
}

/// A field of the draft card with the reason for its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The path of the field in the card, `input.layout`.
    pub field: String,
    /// The value as it would be in the card.
    pub value: String,
    pub basis: Basis,
    /// A clause to follow “because”.
    pub because: String,
}

/// What a finding is based on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Basis {
    /// Shapes, types or values show it.
    Recognized,
    /// Assumed: the graph does not record it, and this is the most likely value.
    Assumed,
    /// Set by the user.
    Given,
}

/// Why a graph cannot be used: what is wrong, each with what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .reasons.join("; "))]
pub struct Refusal {
    pub reasons: Vec<String>,
    /// The supported convention that is most similar to unsupported outputs.
    pub nearest: Option<Nearest>,
}

/// A supported convention, named after its best-known exporter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nearest {
    pub exporter: &'static str,
    /// A description of its outputs.
    pub outputs: &'static str,
}

impl Refusal {
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reasons: vec![reason.into()], nearest: None }
    }

    /// The finding for a graph that ONNX Runtime does not load, with its message.
    pub fn from_load_error(text: &str) -> Self {
        let lower = text.to_lowercase();
        let advice = if lower.contains("opset") && lower.contains("under development")
            || lower.contains("ir_version") && lower.contains("max supported")
            || lower.contains("unsupported model ir version")
        {
            "The model is newer than this ONNX Runtime: export it with an older opset (17 suits every exporter), or \
            use a newer runtime"
        } else if lower.contains("not a registered function/op")
            || lower.contains("no op registered")
            || lower.contains("no opset import for domain")
            || lower.contains("not_implemented")
            || lower.contains("could not find an implementation")
        {
            "The graph uses an operator that this ONNX Runtime does not have: export it with standard ONNX operators \
            only, or with an older opset"
        } else if lower.contains("protobuf") {
            "The file is damaged or is not an ONNX model: export or copy it again"
        } else if lower.contains("external data") || lower.contains("external_data") {
            "The weights are in a second file that must be next to the model: export the model as one file"
        } else {
            "Check the model with `python -m onnx.checker` or export it again"
        };
        Self::new(format!("ONNX Runtime could not load it: {}. {advice}", text.trim().trim_end_matches('.')))
    }
}

/// Collects findings under one prefix.
#[derive(Debug, Default)]
struct Findings(pub Vec<Finding>);

impl Findings {
    fn recognized(&mut self, field: &str, value: impl fmt::Display, because: impl Into<String>) {
        self.add(Basis::Recognized, field, &value, because.into());
    }

    fn assumed(&mut self, field: &str, value: impl fmt::Display, because: impl Into<String>) {
        self.add(Basis::Assumed, field, &value, because.into());
    }

    fn add(&mut self, basis: Basis, field: &str, value: &dyn fmt::Display, because: String) {
        self.0.push(Finding { field: field.to_owned(), value: value.to_string(), basis, because });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_error_keeps_the_runtime_text() {
        for (text, advice) in [
            ("Opset 99 is under development and support for this is limited.", "older opset"),
            ("Fatal error: acme:Frobnicate(-1) is not a registered function/op", "operator"),
            ("Protobuf parsing failed.", "damaged"),
            ("something else", "onnx.checker"),
        ] {
            let refusal = Refusal::from_load_error(text).to_string();
            assert!(refusal.contains(text.trim_end_matches('.')), "{refusal}");
            assert!(refusal.contains(advice), "{refusal}");
        }
    }
}
