//! Facts about a model from files, and how single values are read.

use serde_json::Value;

use super::Refusal;
use super::signature::MAX_SIDE;
use crate::domain::{BoxesBack, ChannelOrder, Fill, Interpolation, LabelSet, Position, Rounding, SideRounding, Square};

/// The label file next to the card, with names from the user's file or the metadata.
pub(super) const LABEL_FILE: &str = "labels.txt";

/// A fact and its source.
#[derive(Debug, Clone, PartialEq)]
pub struct Noted<T> {
    pub value: T,
    /// A clause to follow “because”: `config.json has model_type = detr`.
    pub because: String,
}

/// Everything that the files state; a field is empty if nothing does.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Notes {
    /// Class names, from the place closest to the model first. Not every set must fit the model.
    pub labels: Vec<Noted<LabelSet>>,
    /// Whether a label file numbers the names, as in Teachable Machine.
    pub has_numbered_labels: bool,
    /// Whether the names are the tags of a WD tagger.
    pub has_tags: bool,
    /// The number of classes, without a background.
    pub label_count: Option<Noted<usize>>,
    /// Width and height of the input, in pixels.
    pub input_size: Option<Noted<[u32; 2]>>,
    /// Sides of the input are a multiple of this, in pixels.
    pub stride: Option<Noted<u32>>,
    pub task: Option<Noted<NotedTask>>,
    /// Whether the graph returns final boxes without non-maximum suppression (YOLOv10, YOLO26).
    pub end_to_end: Option<Noted<bool>>,
    /// Whether the graph includes non-maximum suppression.
    pub nms_in_graph: Option<Noted<bool>>,
    /// Images per call.
    pub batch: Option<Noted<u32>>,
    pub channels: Option<Noted<u32>>,
    /// The IoU threshold of the non-maximum suppression after the graph.
    pub nms_iou: Option<Noted<f32>>,
    pub exporter: Option<Noted<Exporter>>,
    /// transformers' `model_type`: `detr`, `yolos`, `rt_detr_v2`, `d_fine`, `vit` …
    pub model_type: Option<Noted<String>>,
    pub purpose: Option<Noted<Purpose>>,
    /// Whether the classes of a classifier are not mutually exclusive, so that each has its own sigmoid.
    pub multi_label: Option<Noted<bool>>,
    /// The preprocessing that the files state.
    pub pixels: PixelNotes,
    /// The preprocessing that the files merely suggest.
    pub likely_pixels: PixelNotes,
    /// Notes for the user: which files are invalid, and what was not used.
    pub remarks: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum NotedTask {
    Detect,
    Segment,
    Pose,
    Obb,
    #[strum(to_string = "classify", serialize = "classification")]
    Classify,
}

/// What a model returns, according to `config.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Classification,
    Embedding,
    Regression,
}

/// The exporter that wrote the graph's metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exporter {
    Ultralytics,
    /// `export.py` of YOLOv5: `stride` and `names` only.
    Yolov5,
}

/// How pixels become the input.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PixelNotes {
    pub resize: Option<Noted<NotedResize>>,
    pub interpolation: Option<Noted<Interpolation>>,
    pub order: Option<Noted<ChannelOrder>>,
    pub divide_by: Option<Noted<f32>>,
    pub mean: Option<Noted<[f32; 3]>>,
    pub std: Option<Noted<[f32; 3]>>,
}

/// A resize rule without the size of the input.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NotedResize {
    Stretch,
    /// A stretched square.
    Square(Square),
    /// The center of an image resized to `size`, whatever its aspect ratio, if the input is as large as the notes
    /// state.
    StretchCrop {
        /// Width and height.
        size: [u32; 2],
        offset: Rounding,
    },
    /// The center of an image whose short side has `short_side` pixels, if the input is as large as the notes state.
    Crop {
        short_side: u32,
        long_side: Rounding,
        offset: Rounding,
    },
    ShortSidePad {
        short_side: u32,
        max_long_side: u32,
        pad_to_multiple: u32,
        rounding: SideRounding,
    },
    Letterbox {
        fill: Fill,
        position: Position,
        rounding: Rounding,
        boxes_back: BoxesBack,
    },
}

/// The number of classes of a label set, counting gaps between ids.
pub(super) fn label_count(labels: &LabelSet) -> usize {
    labels.max_id().map_or(0, |id| id as usize + 1)
}

/// The message for a label set of `count` classes if the model `has` another number.
pub(super) fn misfit(has: impl std::fmt::Display, count: usize) -> Refusal {
    Refusal::new(format!(
        "the model {has} but the label file has {count} classes: use the label file that the model was trained with"
    ))
}

/// A word or a number as nonempty text.
pub(super) fn text(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        Value::Number(number) => number.to_string(),
        Value::Bool(truth) => truth.to_string(),
        _ => return None,
    };
    (!text.is_empty()).then_some(text)
}

pub(super) fn whole(value: &Value) -> Option<u32> {
    match value {
        // Some versions of YOLOv5 write strides as a list with one tensor.
        Value::Array(values) => values.iter().filter_map(whole).max(),
        value => u32::try_from(value.as_u64()?).ok(),
    }
}

/// Python writes `True`, JSON `true`.
pub(super) fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(truth) => Some(*truth),
        Value::String(text) => text.to_lowercase().parse().ok(),
        _ => None,
    }
}

/// Width and height from `[height, width]` or one side.
pub(super) fn size(value: &Value) -> Option<[u32; 2]> {
    let side = |value: &Value| whole(value).filter(|side| (1..=MAX_SIDE).contains(side));
    match value {
        Value::Array(sides) => match &sides[..] {
            [height, width] => Some([side(width)?, side(height)?]),
            [only] => Some([side(only)?; 2]),
            _ => None,
        },
        value => Some([side(value)?; 2]),
    }
}
