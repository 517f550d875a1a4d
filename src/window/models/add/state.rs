//! The form for a model of the user's own, before or after it is added to the library.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use crate::domain::card_fields::{is_below, value_at, value_at_mut};
use crate::domain::{ImageInput, LabelSet, Layout, ModelCard, OutputConvention, Prediction, SampleId, SampleUri};
use crate::review::NothingFound;
use crate::window::state::{Loadable, SourceId, Ticket};

/// The id of a request of the form. Opening the form and every change create a new one, which reveals late results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ImportId(pub u64);

#[derive(Debug)]
pub struct Import {
    pub id: ImportId,
    pub subject: ImportSubject,
    pub status: ImportStatus,
}

/// The model in the form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportSubject {
    /// An ONNX file to add.
    File(PathBuf),
    /// The id of a model that the user added earlier.
    Added(String),
}

#[derive(Debug)]
pub enum ImportStatus {
    /// The file is being read.
    Recognizing,
    /// The model cannot be added; the message says why and what to do.
    Refused(String),
    Form(Box<ImportForm>),
}

/// The fields of the form, and the results for them.
#[derive(Debug)]
pub struct ImportForm {
    /// As edited by the user.
    pub card: ModelCard,
    pub labels: LabelChoice,
    pub start: Arc<ImportStart>,
    /// The result of the last tested card.
    pub trial: Option<Box<ImportTrial>>,
    /// Whether a newer card is being tested.
    pub is_trying: bool,
    pub is_saving: bool,
    /// Why the model could not be added or saved.
    pub failure: Option<String>,
    /// Results of common ways to prepare images, on request.
    pub presets: Loadable<Arc<PresetTable>>,
}

/// Common ways to prepare images, side by side.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PresetTable {
    pub images: Vec<(SampleId, String)>,
    /// The likeliest first.
    pub rows: Vec<PresetRow>,
    /// What the images cannot decide.
    pub undecided: Option<String>,
}

/// The results of one way to prepare images.
#[derive(Debug, Clone, PartialEq)]
pub struct PresetRow {
    pub name: String,
    /// Its effect, on one line.
    pub about: String,
    /// The input of a card that prepares images this way.
    pub input: ImageInput,
    /// `0.0..=1.0`
    pub mean_top_score: f64,
    /// Of classifiers: 0 if the model is certain, 1 if all scores are equal.
    pub mean_entropy: Option<f64>,
    /// The fraction of images whose folder has the name of the best class; `None` if no folder names a class.
    pub accuracy: Option<f64>,
    /// The best class or the boxes of each image, or why there are none.
    pub best: Vec<String>,
}

/// The initial values of the form.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportStart {
    pub card: ModelCard,
    pub labels: LabelChoice,
    /// The names found with the model; empty if there are none.
    pub found_labels: LabelSet,
    pub findings: Vec<ImportFinding>,
    /// Why the conventions were not recognized and are only a first guess.
    pub refusal: Option<String>,
    /// Remarks about the files next to the model.
    pub remarks: Vec<String>,
    /// The equally plausible ways to read the outputs, likeliest first; empty for a classifier.
    pub readings: Vec<String>,
    /// The index of the reading that the card uses.
    pub reading: usize,
    pub inputs: Vec<ImportPort>,
    pub outputs: Vec<ImportPort>,
    /// The initial output conventions for the tasks that the model turns out to have.
    pub other_outputs: Vec<OutputConvention>,
}

/// The origin of a field's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportFinding {
    /// The path in the card, such as `input.layout`.
    pub field: String,
    /// The initial value as text.
    pub value: String,
    /// “recognized”, “assumed”.
    pub basis: String,
    pub is_assumed: bool,
    /// A clause that follows “because”; may be empty.
    pub because: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportPort {
    pub name: String,
    /// Type and dimensions, such as `float32 [batch, 84, 8400]`.
    pub shape: String,
    /// The layouts that the dimensions allow if it is an image, the likelier one first; empty otherwise.
    pub layouts: Vec<Layout>,
    /// The first of four dimensions, the images per call; `None` if the graph leaves it open.
    pub declared_batch: Option<u32>,
}

/// The source of the class names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum LabelChoice {
    /// Classes are shown by number.
    #[default]
    None,
    /// [`ImportStart::found_labels`]
    Found,
    /// A label set that comes with Spotcheck.
    BuiltIn(String),
    /// The user's label file; empty while its path is unknown.
    File(PathBuf),
}

/// The model's result for the current image.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ImportTrial {
    /// The image; `None` if none is open and a gray one was used.
    pub image: Option<SampleUri>,
    /// The shape of the tensor and a summary of its values, for display; empty if there is none.
    pub tensor: Vec<String>,
    /// `None` if the model could not run or its outputs could not be read: `problems` says why. Contains only boxes
    /// worth showing.
    pub prediction: Option<Prediction>,
    /// The number of values of an encoder's embedding.
    pub embedding_dims: Option<usize>,
    /// The number of boxes with a score of at least [`Self::MIN_SCORE`], after the model's non-maximum suppression.
    pub sure_boxes: usize,
    pub problems: Vec<ImportProblem>,
}

/// A choice that must be wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportProblem {
    /// The path of the field in the card; empty for the card as a whole.
    pub field: String,
    pub text: String,
    /// Whether it prevents adding the model.
    pub is_fatal: bool,
}

#[derive(Debug, Clone)]
pub struct RecognizeRequest {
    pub import: ImportId,
    pub subject: ImportSubject,
    /// An index into [`ImportStart::readings`]: 0 for the likeliest.
    pub reading: usize,
    pub runtime_library: Option<PathBuf>,
}

/// A card to test.
#[derive(Debug, Clone)]
pub struct TrialRequest {
    pub import: ImportId,
    pub card: ModelCard,
    pub labels: LabelChoice,
    pub image: Option<(SourceId, SampleUri)>,
}

/// Common ways to prepare images, to test on some of them.
#[derive(Debug, Clone)]
pub struct PresetsRequest {
    pub source: SourceId,
    pub card: ModelCard,
    pub labels: LabelChoice,
    pub images: Vec<(SampleId, SampleUri)>,
    pub ticket: Ticket,
}

/// A card to add to the library, or to replace there.
#[derive(Debug, Clone)]
pub struct SaveRequest {
    pub import: ImportId,
    pub subject: ImportSubject,
    pub card: ModelCard,
    pub labels: LabelChoice,
}

impl ImportTrial {
    /// The usual threshold of exporters, `0.0..=1.0`.
    pub const MIN_SCORE: f32 = NothingFound::MIN_SCORE;
}

impl fmt::Display for ImportPort {
    /// Such as `images float32 [batch, 3, 640, 640]`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.name, self.shape)
    }
}

impl ImportStart {
    /// The input of the graph that takes the image.
    pub fn image_port(&self, input: &ImageInput) -> Option<&ImportPort> {
        match &input.name {
            Some(name) => self.inputs.iter().find(|port| port.name == *name),
            None => self.inputs.first(),
        }
    }
}

impl Import {
    pub fn form(&self) -> Option<&ImportForm> {
        match &self.status {
            ImportStatus::Form(form) => Some(form),
            ImportStatus::Recognizing | ImportStatus::Refused(_) => None,
        }
    }
}

impl ImportForm {
    pub fn new(start: ImportStart) -> Self {
        Self {
            card: start.card.clone(),
            labels: start.labels.clone(),
            start: Arc::new(start),
            trial: None,
            is_trying: false,
            is_saving: false,
            failure: None,
            presets: Loadable::NotLoaded,
        }
    }

    /// The problems of the last tested card.
    pub fn problems(&self) -> &[ImportProblem] {
        self.trial.as_ref().map_or(&[], |trial| &trial.problems)
    }

    /// Whether the current card was tested and can be added.
    pub fn can_be_saved(&self) -> bool {
        let is_tried = self.trial.is_some() && !self.is_trying && !self.is_saving;
        is_tried && !self.problems().iter().any(|problem| problem.is_fatal)
    }

    pub fn evidence(&self) -> Evidence<'_> {
        let json = |card| serde_json::to_value(card).unwrap_or_default();
        Evidence { form: self, started: json(&self.start.card), now: json(&self.card) }
    }

    /// The fields of the card that still have their assumed values, as listed in the card.
    pub fn assumed(&self) -> Vec<String> {
        let evidence = self.evidence();
        let is_open = |finding: &&ImportFinding| finding.is_assumed && !evidence.is_changed(&finding.field);
        let text = |finding: &ImportFinding| format!("{} = {}", finding.field, finding.value);
        self.start.findings.iter().filter(is_open).map(text).collect()
    }
}

/// The origin of each value in the card.
#[derive(Debug)]
pub struct Evidence<'f> {
    form: &'f ImportForm,
    started: Value,
    now: Value,
}

impl Evidence<'_> {
    /// The card in the form as JSON.
    pub fn card(&self) -> &Value {
        &self.now
    }

    pub fn value(&self, field: &str) -> Option<&Value> {
        value_at(&self.now, field)
    }

    /// The finding about a field or a field within it.
    pub fn finding(&self, field: &str) -> Option<&ImportFinding> {
        self.form.start.findings.iter().find(|finding| finding.field == field || is_below(&finding.field, field))
    }

    pub fn is_changed(&self, field: &str) -> bool {
        if field == "labels" {
            return self.form.labels != self.form.start.labels;
        }
        value_at(&self.started, field) != self.value(field)
    }

    /// Like [`Self::is_changed`], for a field that is a choice between tables: their fields do not count.
    pub fn is_other_choice(&self, field: &str) -> bool {
        let choice = |card| match value_at(card, field) {
            Some(Value::Object(table)) => table.keys().next().cloned(),
            other => other.map(ToString::to_string),
        };
        choice(&self.started) != choice(&self.now)
    }

    /// The card and labels with the initial values of these fields; `None` if the card can no longer have them.
    pub fn undone(&self, fields: &[&str]) -> Option<(ModelCard, LabelChoice)> {
        if fields == ["labels"] {
            return Some((self.form.card.clone(), self.form.start.labels.clone()));
        }
        let mut card = self.now.clone();
        for field in fields {
            let (table, key) = field.rsplit_once('.').unwrap_or(("", field));
            let table = value_at_mut(&mut card, table)?.as_object_mut()?;
            match value_at(&self.started, field) {
                Some(before) => table.insert(key.to_owned(), before.clone()),
                None => table.remove(key),
            };
        }
        Some((serde_json::from_value(card).ok()?, self.form.labels.clone()))
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::domain::{
        Background, CardTask, ClassValues, ClassificationOutput, ElementType, ImageInput, Layout, ModelFile, ResizeRule,
    };

    /// A classifier with three assumed fields.
    pub(crate) fn start() -> ImportStart {
        let output = ClassificationOutput { name: None, values: ClassValues::Logits, background: Background::None };
        let output = OutputConvention::Classification(output);
        let resize = ResizeRule::stretch(32, 32);
        let card = ModelCard {
            file: ModelFile { name: "model.onnx".to_owned(), bytes: 1, sha256: String::new(), urls: Vec::new() },
            input: ImageInput::new(Layout::Nchw, ElementType::Float32, resize),
            task: CardTask::Classification,
            ..ModelCard::for_predictions("toy".to_owned(), "Toy".to_owned(), output.clone())
        };
        let finding = |field: &str, value: &str, is_assumed| ImportFinding {
            field: field.to_owned(),
            value: value.to_owned(),
            basis: String::new(),
            is_assumed,
            because: String::new(),
        };
        ImportStart {
            card,
            labels: LabelChoice::None,
            found_labels: LabelSet::default(),
            findings: vec![
                finding("input.channels", "rgb", true),
                finding("input.resize", "stretch to 32x32", true),
                finding("input.interpolation", "pillow-bilinear", true),
                finding("input.layout", "nchw", false),
            ],
            refusal: None,
            remarks: Vec::new(),
            readings: Vec::new(),
            reading: 0,
            inputs: Vec::new(),
            outputs: Vec::new(),
            other_outputs: vec![output],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{ChannelOrder, Interpolation, ResizeRule};

    #[test]
    fn set_field_is_not_assumed_and_can_be_undone() {
        let mut form = ImportForm::new(testing::start());
        // The card does not state the usual interpolation.
        let [channels, resize, interpolation] =
            ["input.channels = rgb", "input.resize = stretch to 32x32", "input.interpolation = pillow-bilinear"];
        assert_eq!(form.assumed(), [channels, resize, interpolation]);
        form.card.input.interpolation = Interpolation::PillowNearest;
        assert_eq!(form.assumed(), [channels, resize]);
        form.card.input.channels = ChannelOrder::Bgr;
        form.card.input.resize = ResizeRule::stretch(64, 32);
        assert_eq!(form.assumed(), Vec::<String>::new());
        let evidence = form.evidence();
        assert!(evidence.is_changed("input.channels") && evidence.is_changed("input.resize.stretch.width"));
        assert!(!evidence.is_changed("input.resize.stretch.height") && !evidence.is_other_choice("input.resize"));
        assert_eq!(evidence.finding("input.resize").unwrap().field, "input.resize");
        assert_eq!(evidence.finding("input.resize.stretch.width"), None);
        let (undone, _) = evidence.undone(&["input.channels"]).unwrap();
        assert_eq!((undone.input.channels, undone.input.resize), (ChannelOrder::Rgb, form.card.input.resize.clone()));
        assert_eq!(evidence.undone(&["input.resize.letterbox.width"]), None);
    }

    #[test]
    fn initially_unset_fields_are_undone_together() {
        let mut form = ImportForm::new(testing::start());
        let before = form.card.clone();
        form.card.input.batches = true;
        form.card.input.fixed_batch = Some(4);
        let evidence = form.evidence();
        assert!(evidence.is_changed("input.fixed_batch"));
        assert_eq!(evidence.undone(&["input.batches", "input.fixed_batch"]), Some((before, LabelChoice::None)));
    }
}
