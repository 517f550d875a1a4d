//! The model card: everything needed to feed an image to a model and interpret its outputs.
//!
//! A card is a `model.toml` next to the weights. Unknown fields are rejected, so that a misspelled one is never
//! silently ignored.

pub mod fields;
mod input;
mod output;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

pub use input::{
    AuxiliaryInput, AuxiliaryValue, BoxesBack, CenterCrop, ChannelOrder, ElementType, Fill, ImageInput, Interpolation,
    Layout, Position, ResizeRule, Rounding, SideRounding, Square,
};
pub use output::{
    Activation, Background, BoxFormat, BoxSpace, CellPoint, ClassValues, ClassificationOutput, Columns,
    DetectionOutput, EmbeddingOutput, Grid, GridCoding, LabelChoice, OutputConvention, Tokens,
};

/// `models/<id>/model.toml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelCard {
    /// Lowercase letters, digits, `-`, `_` and `.`; also the name of the model's folder.
    pub id: String,
    pub name: String,
    pub task: CardTask,
    /// SPDX identifier, or “unknown”.
    #[serde(alias = "licence")]
    pub license: String,
    pub origin: String,
    /// The accuracy that its authors state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<String>,
    /// Fields that the graph does not record and Spotcheck assumed, as text: “channel order RGB”. Shown wherever the
    /// model is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumed: Vec<String>,
    /// What Spotcheck does not show of the model's predictions, as a sentence: “masks are not shown, only boxes”.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_shown: Option<String>,
    /// A built-in label set (`imagenet`, `coco-80`, `coco-91`, `cifar-10`) or a label file next to the card; without
    /// it, classes are shown by number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<String>,
    /// The tensor inside the graph that serves as embedding; without it, Spotcheck chooses one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedding: Option<String>,
    pub file: ModelFile,
    pub input: ImageInput,
    pub output: OutputConvention,
}

/// What a model computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum CardTask {
    Classification,
    Detection,
    /// Only embeddings: the model is an encoder and predicts nothing.
    Embedding,
}

/// What predictions, and the annotations that they are compared with, contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum ModelTask {
    Classification,
    Detection,
}

impl CardTask {
    /// `None` for an encoder.
    pub fn predictions(self) -> Option<ModelTask> {
        match self {
            Self::Classification => Some(ModelTask::Classification),
            Self::Detection => Some(ModelTask::Detection),
            Self::Embedding => None,
        }
    }
}

impl From<ModelTask> for CardTask {
    fn from(task: ModelTask) -> Self {
        match task {
            ModelTask::Classification => Self::Classification,
            ModelTask::Detection => Self::Detection,
        }
    }
}

/// Why something cannot be done with an encoder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the model {model} is an encoder: it computes embeddings and predicts nothing. Choose a classifier or detector; \
    encoders are for similar images, duplicates, the map and the export of embeddings"
)]
pub struct NoPredictions {
    pub model: String,
}

impl ModelTask {
    /// What one verdict judges, in singular and plural.
    pub fn judged_words(self) -> [&'static str; 2] {
        match self {
            Self::Detection => ["box", "boxes"],
            Self::Classification => ["image", "images"],
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelFile {
    /// The file's name in the model's folder.
    pub name: String,
    pub bytes: u64,
    /// Lowercase hexadecimal.
    pub sha256: String,
    /// Mirrors, tried in this order; empty if the weights cannot be downloaded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub urls: Vec<String>,
}

impl ModelCard {
    /// The license of models that do not name theirs.
    pub const UNKNOWN_LICENSE: &str = "unknown";

    /// The card of a remote model: name and task, without weights and input.
    pub fn for_predictions(id: String, name: String, output: OutputConvention) -> Self {
        Self {
            id,
            name,
            task: output.task(),
            license: Self::UNKNOWN_LICENSE.to_owned(),
            origin: String::new(),
            accuracy: None,
            assumed: Vec::new(),
            not_shown: None,
            labels: None,
            embedding: None,
            file: ModelFile { name: String::new(), bytes: 0, sha256: String::new(), urls: Vec::new() },
            input: ImageInput::new(Layout::Nhwc, ElementType::Uint8, ResizeRule::Keep {}),
            output,
        }
    }

    /// The card of a model that is known only by its responses. `id` is changed as necessary for a card; `origin`
    /// describes the location of the model or its predictions.
    pub fn from_remote(id: &str, task: ModelTask, assumed: Vec<String>, origin: String) -> Self {
        let mut plain = id
            .to_ascii_lowercase()
            .replace(|letter: char| !letter.is_ascii_alphanumeric() && !matches!(letter, '-' | '_' | '.'), "-");
        if plain.is_empty() {
            "remote".clone_into(&mut plain);
        }
        let output = OutputConvention::for_predictions(task);
        Self { origin, assumed, ..Self::for_predictions(plain, id.to_owned(), output) }
    }

    /// Whether a model with this card and the same weights returns the same predictions, apart from class names.
    pub fn predicts_as(&self, other: &Self) -> bool {
        self.input == other.input && self.output == other.output
    }

    /// Whether it only computes embeddings.
    pub fn is_encoder(&self) -> bool {
        self.task == CardTask::Embedding
    }

    /// What its predictions contain, for everything that needs some.
    ///
    /// # Errors
    /// It is an encoder.
    pub fn must_predict(&self) -> Result<ModelTask, NoPredictions> {
        self.task.predictions().ok_or_else(|| NoPredictions { model: self.id.clone() })
    }

    /// The kind of what is stored for its images: for those of an encoder, predictions without any class.
    pub fn stored_as(&self) -> ModelTask {
        self.task.predictions().unwrap_or(ModelTask::Classification)
    }

    /// The IoU threshold of the exporter's own non-maximum suppression after the graph: the default of the view
    /// setting.
    pub fn nms_iou(&self) -> Option<f32> {
        match &self.output {
            OutputConvention::Detection(output) => output.nms_iou,
            OutputConvention::Classification(_) | OutputConvention::Embedding(_) => None,
        }
    }

    /// The lowest useful score threshold: the graph itself drops anything below it.
    pub fn min_score_in_graph(&self) -> f32 {
        match &self.output {
            OutputConvention::Detection(output) => output.min_score_in_graph,
            OutputConvention::Classification(_) | OutputConvention::Embedding(_) => 0.0,
        }
    }
}

/// Whether a field has its default value, so that a file does not need it.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_model_card_round_trips() {
        for task in [ModelTask::Classification, ModelTask::Detection] {
            let card = ModelCard::from_remote("My Endpoint", task, Vec::new(), "endpoint".to_owned());
            assert_eq!(card.id, "my-endpoint");
            assert_eq!(card.task, task.into());
            let text = serde_json::to_string(&card).unwrap();
            assert_eq!(serde_json::from_str::<ModelCard>(&text).unwrap(), card);
        }
    }
}
