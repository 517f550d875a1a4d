//! The model card: everything that must be known about a model to feed it an image and read its prediction.
//!
//! A card is a `model.toml` beside the weights. Unknown fields are refused, so that a misspelt one cannot
//! silently mean nothing.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

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
    pub licence: String,
    /// The origin of the weights, as text.
    pub origin: String,
    /// The accuracy its makers state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<String>,
    /// Fields of this card that the graph does not record and that Spotcheck assumed, as text: “channel order RGB”.
    /// Shown wherever the model is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumed: Vec<String>,
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

/// How an image becomes the model's input tensor. For each channel:
/// `value = (pixel / divide_by - mean) / std`, with `pixel` in `0..=255`, computed in 32-bit floats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageInput {
    /// The graph's input; the only one if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub layout: Layout,
    #[serde(rename = "type")]
    pub element_type: ElementType,
    #[serde(default)]
    pub channels: ChannelOrder,
    /// `1.0` leaves pixels in `0..=255`; `255.0` brings them to `0.0..=1.0`. Must be left at `1.0` for `uint8`.
    #[serde(default = "one")]
    pub divide_by: f32,
    /// In the model's channel order.
    #[serde(default)]
    pub mean: [f32; 3],
    /// In the model's channel order.
    #[serde(default = "ones")]
    pub std: [f32; 3],
    /// Whether the graph takes several images of one size in one call (its first dimension is free).
    #[serde(default)]
    pub batches: bool,
    pub resize: ResizeRule,
}

fn one() -> f32 {
    1.0
}

fn ones() -> [f32; 3] {
    [1.0; 3]
}

/// The order of the tensor's dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// `[batch, channel, row, column]`
    Nchw,
    /// `[batch, row, column, channel]`
    Nhwc,
    /// `[channel, row, column]`, one image
    Chw,
    /// `[row, column, channel]`, one image
    Hwc,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElementType {
    Float32,
    Float16,
    Uint8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChannelOrder {
    #[default]
    Rgb,
    Bgr,
}

/// How the image gets the size of the model's input. All resizing is bilinear and antialiased on 8-bit values, as
/// Pillow's `Image.resize(…, BILINEAR)`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ResizeRule {
    /// The upright image as it is; the graph takes any size.
    Keep {},
    /// Resizes both sides to the given size, whatever the aspect ratio.
    Stretch { width: u32, height: u32 },
    /// The short side to `short_side`, the long side in proportion and rounded by `long_side`, then the middle
    /// `crop_width` x `crop_height`, its left and top offset rounded by `crop_offset`.
    ShortSideCrop { short_side: u32, long_side: Rounding, crop_width: u32, crop_height: u32, crop_offset: Rounding },
    /// Scaled in proportion to fit (side lengths rounded to the nearest), centred, the rest filled with `fill`.
    Letterbox { width: u32, height: u32, fill: u8 },
    /// Scaled in proportion so that the short side has `short_side` pixels but the long one at most `max_long_side`
    /// (side lengths rounded down), then zeros (after normalisation) to the right and below up to a multiple of
    /// `pad_to_multiple`.
    ShortSidePad { short_side: u32, max_long_side: u32, pad_to_multiple: u32 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rounding {
    /// Towards zero, as Python's `int()` (torchvision's long side).
    Down,
    /// Rounds to the nearest, halves to the even neighbour, as Python's `round()` (torchvision's crop offset).
    HalfEven,
}

/// How the graph's outputs are read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputConvention {
    Classification(ClassificationOutput),
    Detection(DetectionOutput),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassificationOutput {
    /// The graph's output, `[batch, classes]` (trailing ones are ignored) or, for `arg-max`, `[batch]`; the only one
    /// if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub values: ClassValues,
    /// Whether class 0 is “background” and class `n` stands for label `n - 1`.
    #[serde(default)]
    pub background: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClassValues {
    /// Any real numbers; Spotcheck applies the softmax, in 64-bit floats.
    Logits,
    /// Softmax is part of the graph. 8-bit values are divided by 255.
    Probabilities,
    /// One class number per image without a score; shown with score 1.
    ArgMax,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DetectionOutput {
    /// The graph's output with the boxes, `[n, 4]` or `[1, n, 4]`.
    pub boxes: String,
    /// Class of each box, `[n]` or `[1, n]`, any number type.
    pub labels: String,
    /// Score of each box, `[n]` or `[1, n]`, `0.0..=1.0`.
    pub scores: String,
    /// The number of valid boxes, if the graph has such an output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<String>,
    pub box_format: BoxFormat,
    pub box_space: BoxSpace,
    /// Added to the graph's class to get the id that the labels know.
    #[serde(default)]
    pub class_offset: i32,
    /// Boxes below this score never leave the graph; the threshold's slider ends here.
    #[serde(default)]
    pub min_score_in_graph: f32,
    /// Non-maximum suppression inside the graph, as IoU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nms_iou_in_graph: Option<f32>,
    /// The most boxes the graph gives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_boxes_in_graph: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BoxFormat {
    /// left, top, right, bottom
    Xyxy,
    /// top, left, bottom, right
    Yxyx,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoxSpace {
    /// Pixels of the image the model was given, before any padding was removed.
    ModelPixels,
    /// `0.0..=1.0` of the image the model was given.
    Normalised,
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
            licence: "unknown".to_owned(),
            origin: String::new(),
            accuracy: None,
            assumed: Vec::new(),
            labels: None,
            file: ModelFile { name: String::new(), bytes: 0, sha256: String::new(), urls: Vec::new() },
            input: ImageInput {
                name: None,
                layout: Layout::Nhwc,
                element_type: ElementType::Uint8,
                channels: ChannelOrder::Rgb,
                divide_by: 1.0,
                mean: [0.0; 3],
                std: [1.0; 3],
                batches: false,
                resize: ResizeRule::Keep {},
            },
            output,
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
