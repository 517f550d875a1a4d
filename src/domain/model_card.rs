//! The model card: everything that must be known about a model to feed it an image and read its prediction.
//!
//! A card is a `model.toml` beside the weights. Unknown fields are refused, so that a misspelt one cannot
//! silently mean nothing.

mod input;
mod output;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

pub use input::{
    AuxiliaryInput, AuxiliaryValue, BoxesBack, CenterCrop, ChannelOrder, ElementType, Fill, ImageInput, Interpolation,
    Layout, Position, ResizeRule, Rounding, Square,
};
pub use output::{
    Activation, Background, BoxFormat, BoxSpace, CellPoint, ClassValues, ClassificationOutput, Columns,
    DetectionOutput, Grid, GridCoding, LabelChoice, OutputConvention,
};

/// `models/<id>/model.toml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelCard {
    /// Lower-case letters, digits, `-`, `_` and `.`; also the name of the model's folder.
    pub id: String,
    /// The name on screen.
    pub name: String,
    pub task: ModelTask,
    /// SPDX identifier, or “unknown”.
    #[serde(alias = "licence")]
    pub license: String,
    /// The origin of the weights, as text.
    pub origin: String,
    /// The accuracy its makers state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<String>,
    /// Fields of this card that the graph does not record and that Spotcheck assumed, as text: “channel order RGB”.
    /// Shown wherever the model is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumed: Vec<String>,
    /// What Spotcheck does not show of the model's predictions, as a sentence: “masks are not shown, only boxes”.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_shown: Option<String>,
    /// A built-in label set (`imagenet`, `coco-80`, `coco-91`, `cifar-10`) or a label file beside the card; without it
    /// classes are shown by number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<String>,
    pub file: ModelFile,
    pub input: ImageInput,
    pub output: OutputConvention,
}

/// The kind of prediction that the model returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum ModelTask {
    Classification,
    Detection,
}

/// The weights.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelFile {
    /// The file's name in the model's folder.
    pub name: String,
    pub bytes: u64,
    /// Lower-case hexadecimal.
    pub sha256: String,
    /// Mirrors to download it from, tried in this order; empty if the weights cannot be downloaded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub urls: Vec<String>,
}

impl ModelCard {
    /// The card of a remote model: its name and task, without weights and input.
    pub fn of_predictions(id: String, name: String, output: OutputConvention) -> Self {
        Self {
            id,
            name,
            task: match output {
                OutputConvention::Classification(_) => ModelTask::Classification,
                OutputConvention::Detection(_) => ModelTask::Detection,
            },
            license: "unknown".to_owned(),
            origin: String::new(),
            accuracy: None,
            assumed: Vec::new(),
            not_shown: None,
            labels: None,
            file: ModelFile { name: String::new(), bytes: 0, sha256: String::new(), urls: Vec::new() },
            input: ImageInput::new(Layout::Nhwc, ElementType::Uint8, ResizeRule::Keep {}),
            output,
        }
    }

    /// Whether a model with this card and the same weights gives the same predictions, up to the names of classes.
    pub fn predicts_as(&self, other: &Self) -> bool {
        self.input == other.input && self.output == other.output
    }

    /// The non-maximum suppression that the exporter's own code applies to the graph's boxes, as IoU: the default of
    /// the view setting.
    pub fn nms_iou(&self) -> Option<f32> {
        match &self.output {
            OutputConvention::Detection(output) => output.nms_iou,
            OutputConvention::Classification(_) => None,
        }
    }

    /// The lowest score a threshold can reach: what the graph itself cuts off.
    pub fn min_score_in_graph(&self) -> f32 {
        match &self.output {
            OutputConvention::Detection(output) => output.min_score_in_graph,
            OutputConvention::Classification(_) => 0.0,
        }
    }
}
