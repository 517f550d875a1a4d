//! Recognizes what a user's own ONNX model expects and returns, and drafts its card.
//!
//! The evidence is what files state, typical output names of exporters, shapes, types and the values of a few test
//! runs. If several readings fit, the most likely one is used and the others are offered. What a graph cannot show (RGB
//! or BGR, mean and std) is *assumed* and marked as such. Knows nothing about ONNX Runtime: the caller passes in the
//! graph's signature and a function that runs it.

mod auxiliary;
mod classifier;
mod detector;
mod finding;
mod fit;
mod image_input;
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

use self::finding::Findings;
use self::noted::label_count;
use self::probe::Prober;
use super::Tensor;
use crate::domain::{LabelSet, ModelCard, ModelFile, ModelTask, OutputConvention};

pub use finding::{Basis, Finding, Nearest, Refusal};
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
    unsupported::check_purpose(&model)?;
    let mut findings = Findings::default();
    let input = image_input::recognize(&model, &mut findings)?;
    let mut prober = Prober::start(input, model.overrules, &mut findings, run)?;
    let prediction = match detector::recognize(&model, &mut prober, &mut findings) {
        Ok(None) => classifier::recognize(&model, &mut prober, &mut findings),
        Ok(Some(prediction)) => Ok(prediction),
        Err(error) => Err(error),
    };
    let prediction = prediction.map_err(|error| unsupported::explain(error, &model, &prober))?;
    check_reading(model.overrules.reading(), &prediction.readings)?;
    let sizes = prober.sizes();
    let mut image_input = prober.into_input();
    image_input::complete(&model, &prediction, &sizes, &mut image_input, &mut findings);
    let task = match prediction.convention {
        OutputConvention::Classification(_) => ModelTask::Classification,
        OutputConvention::Detection(_) => ModelTask::Detection,
    };
    let draft = ModelCard {
        id: model.id,
        name: model.name,
        task,
        license: ModelCard::UNKNOWN_LICENSE.to_owned(),
        origin: origin(model.graph),
        accuracy: None,
        assumed: Vec::new(),
        not_shown: prediction.not_shown.map(str::to_owned),
        labels: prediction.label_set,
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
