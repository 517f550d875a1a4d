//! The facts that files say about a model, and how single values of them are read.

use serde_json::Value;

use super::signature::MAX_SIDE;
use crate::domain::{BoxesBack, ChannelOrder, Fill, Interpolation, LabelSet, Position, Rounding, Square};

/// A fact, and where it is written.
#[derive(Debug, Clone, PartialEq)]
pub struct Noted<T> {
    pub value: T,
    /// A clause that follows “because”: `config.json says model_type = detr`.
    pub because: String,
}

/// Everything that was said; a field is empty if nothing was.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Notes {
    /// The names of the classes, from the place nearest to the model first. Not every set has to fit the model.
    pub labels: Vec<Noted<LabelSet>>,
    /// Whether a label file numbers the names, as Teachable Machine does.
    pub has_numbered_labels: bool,
    /// Whether the names are the tags of one of WD's taggers.
    pub has_tags: bool,
    /// How many classes there are, without a background.
    pub label_count: Option<Noted<usize>>,
    /// Width and height of the input, in pixels.
    pub input_size: Option<Noted<[u32; 2]>>,
    /// Sides of the input are a multiple of this, in pixels.
    pub stride: Option<Noted<u32>>,
    pub task: Option<Noted<NotedTask>>,
    /// Whether the graph gives final boxes without non-maximum suppression (YOLOv10, YOLO26).
    pub end_to_end: Option<Noted<bool>>,
    /// Whether non-maximum suppression is part of the graph.
    pub nms_in_graph: Option<Noted<bool>>,
    /// Images in one call.
    pub batch: Option<Noted<u32>>,
    /// Channels of an image.
    pub channels: Option<Noted<u32>>,
    pub exporter: Option<Noted<Exporter>>,
    /// transformers' `model_type`: `detr`, `yolos`, `rt_detr_v2`, `d_fine`, `vit` …
    pub model_type: Option<Noted<String>>,
    pub purpose: Option<Noted<Purpose>>,
    /// Whether the classes of a classifier do not exclude one another, so that each has a sigmoid of its own.
    pub multi_label: Option<Noted<bool>>,
    /// The preprocessing that the files state.
    pub pixels: PixelNotes,
    /// The preprocessing that the files only make likely.
    pub likely_pixels: PixelNotes,
    /// What the user should know of the files: which are broken, and what was not used.
    pub remarks: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum NotedTask {
    Detect,
    Segment,
    Pose,
    Obb,
    Classify,
}

/// What a model returns, according to `config.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Classification,
    Embedding,
    Regression,
}

/// The program that wrote the metadata of the graph.
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
    /// The middle of an image of `size`, whatever its aspect ratio, if the input is as large as the notes say.
    StretchCrop {
        /// Width and height.
        size: [u32; 2],
        offset: Rounding,
    },
    /// The middle of an image whose short side has `short_side` pixels, if the input is as large as the notes say.
    Crop {
        short_side: u32,
        long_side: Rounding,
        offset: Rounding,
    },
    ShortSidePad {
        short_side: u32,
        max_long_side: u32,
    },
    Letterbox {
        fill: Fill,
        position: Position,
        rounding: Rounding,
        boxes_back: BoxesBack,
    },
}

/// A word or a number as text, not empty.
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
        // YOLOv5 writes its strides as a list of one tensor in some versions.
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
