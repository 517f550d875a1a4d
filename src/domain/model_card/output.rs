//! How the outputs of a graph become a prediction.

use std::fmt;

use serde::{Deserialize, Serialize};
use strum::{EnumMessage, IntoStaticStr, VariantArray};

use super::{CardTask, ModelTask, is_default};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::large_enum_variant, reason = "there is one for each model, and none is moved around")]
pub enum OutputConvention {
    Classification(ClassificationOutput),
    Detection(DetectionOutput),
    Embedding(EmbeddingOutput),
}

impl OutputConvention {
    pub fn task(&self) -> CardTask {
        match self {
            Self::Classification(_) => CardTask::Classification,
            Self::Detection(_) => CardTask::Detection,
            Self::Embedding(_) => CardTask::Embedding,
        }
    }

    /// The convention of predictions without a graph: probabilities, or boxes, labels and scores.
    pub fn for_predictions(task: ModelTask) -> Self {
        match task {
            ModelTask::Classification => Self::Classification(ClassificationOutput {
                name: None,
                values: ClassValues::Probabilities,
                background: Background::None,
            }),
            ModelTask::Detection => Self::Detection(DetectionOutput::separate("boxes", "labels", "scores")),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassificationOutput {
    /// The graph's output, `[batch, classes]` (trailing ones are ignored) or, for `arg-max`, `[batch]`; optional if
    /// there is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub values: ClassValues,
    /// The class that stands for none of the labels. If it is the first, class `n` has label `n - 1`.
    #[serde(default)]
    pub background: Background,
}

/// The output of an encoder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmbeddingOutput {
    /// The graph's output: a vector `[batch, dims]` (dimensions of 1 are ignored), tokens `[batch, tokens, dims]`, or a
    /// feature map, which is averaged over space. Its dimensions are ordered as those of the input.
    pub name: String,
    #[serde(default, skip_serializing_if = "is_default")]
    pub tokens: Tokens,
}

/// How several tokens `[batch, tokens, dims]` become one vector.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, EnumMessage, IntoStaticStr, VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum Tokens {
    #[default]
    #[strum(message = "Mean of all")]
    Mean,
    /// The first one, which vision transformers such as `DINOv2` and CLIP reserve for the image as a whole.
    #[strum(message = "Class token (the first)")]
    Class,
}

impl Tokens {
    /// As text to follow the name of the output.
    pub fn reading(self) -> &'static str {
        match self {
            Self::Mean => "mean of tokens",
            Self::Class => "class token",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, EnumMessage, IntoStaticStr, VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum ClassValues {
    /// Any real numbers; Spotcheck applies the softmax in 64-bit floats.
    #[strum(message = "Logits (softmax follows)")]
    Logits,
    /// Any real numbers; Spotcheck applies the sigmoid to each in 64-bit floats. For classes that are not mutually
    /// exclusive.
    #[strum(message = "Logits (sigmoid follows)")]
    SigmoidLogits,
    /// The graph includes the softmax or sigmoid. 8-bit values are divided by 255.
    #[strum(message = "Probabilities")]
    Probabilities,
    /// One number per image, already a sigmoid: the probability of class 1. Class 0 has the rest.
    #[strum(message = "One probability, of the second of two classes")]
    SecondProbability,
    /// One class number per image without a score; shown with a score of 1.
    #[strum(message = "Number of the best class")]
    ArgMax,
}

/// The class that means “no object” or “none of the classes”.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, EnumMessage, IntoStaticStr, VariantArray,
)]
#[serde(from = "BackgroundForm", rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum Background {
    #[default]
    #[strum(message = "None")]
    None,
    #[strum(message = "First class")]
    First,
    #[strum(message = "Last class")]
    Last,
}

impl Background {
    pub fn first_if(is_first: bool) -> Self {
        if is_first { Self::First } else { Self::None }
    }
}

/// Cards of earlier versions have `true` for the first class.
#[derive(Deserialize)]
#[serde(untagged)]
enum BackgroundForm {
    IsFirst(bool),
    Word(BackgroundWord),
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum BackgroundWord {
    None,
    First,
    Last,
}

impl From<BackgroundForm> for Background {
    fn from(form: BackgroundForm) -> Self {
        match form {
            BackgroundForm::IsFirst(false) | BackgroundForm::Word(BackgroundWord::None) => Self::None,
            BackgroundForm::IsFirst(true) | BackgroundForm::Word(BackgroundWord::First) => Self::First,
            BackgroundForm::Word(BackgroundWord::Last) => Self::Last,
        }
    }
}

/// How boxes, classes and scores are read. A graph returns *candidates*: rows of numbers, each with a box and either
/// one class and its score, or one score per class. The numbers of a row can be columns of one output, or come from
/// several outputs with the same number of rows.
///
/// In an output of rank 3 or more, the first dimension is the batch; all others except the columns are flattened into
/// rows, in the graph's order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DetectionOutput {
    /// The four numbers of each box (`4 x bins` for distance bins).
    pub boxes: Columns,
    /// The class number of each candidate, of any number type. Without it, `scores` has one column per class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Columns>,
    /// The score of each candidate or, without `labels`, of each of its classes.
    pub scores: Columns,
    /// Number of columns of `scores` without `labels`, including the background; up to the last one if not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<u32>,
    /// A factor for every score of the candidate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objectness: Option<Columns>,
    /// Applied to scores and objectness.
    #[serde(default, skip_serializing_if = "is_default")]
    pub activation: Activation,
    /// The column of `scores` without `labels` that means “no object”; dropped after the activation. If it is the
    /// first, the next column is class 0.
    #[serde(default, skip_serializing_if = "is_default")]
    pub background: Background,
    /// Which classes of a candidate become boxes, without `labels`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub label_choice: LabelChoice,
    /// Whether candidates are the last dimension of their outputs and columns the one before: `[batch, columns,
    /// candidates]`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub candidates_last: bool,
    /// The batch index of the image that a row belongs to, if rows of all images are concatenated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_index: Option<Columns>,
    /// The rotation of each box around its center, in radians, clockwise on screen. The upright box around the rotated
    /// one is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub angle: Option<Columns>,
    /// The output with the number of valid candidates per image, if the graph has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<String>,
    /// The output with the candidates that the graph's own non-maximum suppression keeps, as in ONNX's
    /// `NonMaxSuppression`: rows of image, class and candidate, concatenated over images and padded with negative
    /// numbers. All other candidates are dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected: Option<String>,
    /// Set if boxes are still relative to the cells of a grid. They are first decoded to the format of the coding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grid: Option<Grid>,
    pub box_format: BoxFormat,
    pub box_space: BoxSpace,
    /// Added to the graph's class to get the id in the labels.
    #[serde(default)]
    pub class_offset: i32,
    /// Maximum number of boxes per image, best scores first, before any non-maximum suppression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_boxes: Option<u32>,
    /// IoU threshold of the non-maximum suppression within each class that the exporter's own code applies after the
    /// graph. The default of the view setting; candidates are stored without suppression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nms_iou: Option<f32>,
    /// Boxes below this score never leave the graph; the threshold slider ends here.
    #[serde(default)]
    pub min_score_in_graph: f32,
    /// IoU threshold of the non-maximum suppression inside the graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nms_iou_in_graph: Option<f32>,
    /// Maximum number of boxes that the graph returns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_boxes_in_graph: Option<u32>,
}

impl DetectionOutput {
    /// One output each for boxes, classes and scores: left, top, right and bottom in pixels of the input.
    pub fn separate(boxes: &str, labels: &str, scores: &str) -> Self {
        Self {
            boxes: Columns::whole(boxes),
            labels: Some(Columns::whole(labels)),
            scores: Columns::whole(scores),
            classes: None,
            objectness: None,
            activation: Activation::None,
            background: Background::None,
            label_choice: LabelChoice::Best,
            candidates_last: false,
            batch_index: None,
            angle: None,
            count: None,
            selected: None,
            grid: None,
            box_format: BoxFormat::Xyxy,
            box_space: BoxSpace::ModelPixels,
            class_offset: 0,
            max_boxes: None,
            nms_iou: None,
            min_score_in_graph: 0.0,
            nms_iou_in_graph: None,
            max_boxes_in_graph: None,
        }
    }

    /// Every output that is read, each once.
    pub fn output_names(&self) -> Vec<&str> {
        let columns = [Some(&self.boxes), self.labels.as_ref(), Some(&self.scores), self.objectness.as_ref()];
        let others = [self.batch_index.as_ref(), self.angle.as_ref()];
        let all = columns.into_iter().chain(others).flatten().flat_map(|columns| &columns.outputs);
        let mut names: Vec<&str> = all.chain(&self.count).chain(&self.selected).map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// One column, or several consecutive ones, of each candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "ColumnsForm", into = "ColumnsForm")]
pub struct Columns {
    /// The graph's outputs: several, in order, if each holds the candidates of one level of a grid. Never empty.
    pub outputs: Vec<String>,
    /// The first column, counted from 0.
    pub column: u32,
}

impl Columns {
    /// An output from its first column on.
    pub fn whole(output: &str) -> Self {
        Self::at(output, 0)
    }

    pub fn at(output: &str, column: u32) -> Self {
        Self { outputs: vec![output.to_owned()], column }
    }
}

impl fmt::Display for Columns {
    /// `output0, column 4`
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.outputs.join(" + "))?;
        if self.column > 0 { write!(formatter, ", column {}", self.column) } else { Ok(()) }
    }
}

/// In a card: `"boxes"`, `["boxes_8", "boxes_16"]`, or `{ output = "output0", column = 4 }`.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum ColumnsForm {
    Whole(OutputNames),
    At {
        output: OutputNames,
        #[serde(default)]
        column: u32,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum OutputNames {
    One(String),
    Several(Vec<String>),
}

impl From<ColumnsForm> for Columns {
    fn from(form: ColumnsForm) -> Self {
        let (names, column) = match form {
            ColumnsForm::Whole(names) => (names, 0),
            ColumnsForm::At { output, column } => (output, column),
        };
        let outputs = match names {
            OutputNames::One(name) => vec![name],
            OutputNames::Several(names) => names,
        };
        Self { outputs, column }
    }
}

impl From<Columns> for ColumnsForm {
    fn from(Columns { mut outputs, column }: Columns) -> Self {
        let names = match (outputs.pop(), outputs.is_empty()) {
            (Some(only), true) => OutputNames::One(only),
            (last, _) => {
                outputs.extend(last);
                OutputNames::Several(outputs)
            }
        };
        if column == 0 { Self::Whole(names) } else { Self::At { output: names, column } }
    }
}

/// How the graph's numbers become scores from 0 to 1.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, EnumMessage, IntoStaticStr, VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum Activation {
    /// They already are scores.
    #[default]
    #[strum(message = "None")]
    None,
    /// Of each number by itself.
    #[strum(message = "Sigmoid")]
    Sigmoid,
    /// Of each number by itself, clamped to 0 to 1: with an objectness, the geometric mean of both (`YuNet`).
    SquareRoot,
    /// Over the classes of a candidate, background included.
    #[strum(message = "Softmax")]
    Softmax,
}

/// Which classes of a candidate become boxes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, EnumMessage, IntoStaticStr, VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum LabelChoice {
    /// The class with the highest score; the first one if equal.
    #[default]
    #[strum(message = "Best class only")]
    Best,
    /// Every class, each with its own box.
    #[strum(message = "Every class")]
    All,
}

/// The cells that boxes are relative to. The rows of a level go from left to right and from top to bottom; the number
/// of cells is the input size divided by the stride, rounded up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grid {
    /// Cell side of each level in pixels of the input, in the order of the candidates.
    pub strides: Vec<u32>,
    pub coding: GridCoding,
}

/// How the four numbers of a box are decoded; `cell` is the column and row of the cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum GridCoding {
    /// YOLOX: the center is `(xy + cell) * stride`, the size `exp(wh) * stride`.
    Offsets {},
    /// NanoDet (generalized focal loss): `bins` numbers per side, whose softmax gives the expected distance from the
    /// cell's point to the left, top, right and bottom edge, in strides.
    DistanceBins { bins: u32, point: CellPoint },
    /// SCRFD: distances from the cell's point to the left, top, right and bottom edge, in strides. The candidates of a
    /// cell are consecutive.
    Distances { anchors: u32, point: CellPoint },
    /// YOLOv5 and YOLOv7: with the sigmoid `s` of each number, the center is `(2 s - 0.5 + cell) * stride`, the size
    /// `(2 s)^2 * anchor`.
    Anchors {
        /// Width and height in pixels of the input: the same number for each level, level by level. The candidates of a
        /// level's first anchor come before those of its second.
        sizes: Vec<[f32; 2]>,
    },
    /// SSD with its variances of 0.1 and 0.2 (RetinaFace): the center is `(cell + 0.5) * stride + 0.1 * xy * prior`, the
    /// size `prior * exp(0.2 * wh)`. The candidates of a cell are consecutive.
    Priors {
        /// Width and height in pixels of the input: the same number for each level, level by level.
        sizes: Vec<[f32; 2]>,
    },
}

impl GridCoding {
    /// Anchors of three levels in the configuration files of YOLOv5 and YOLOv7, in pixels.
    pub const YOLOV5_ANCHORS: [[f32; 2]; 9] = [
        [10.0, 13.0],
        [16.0, 30.0],
        [33.0, 23.0],
        [30.0, 61.0],
        [62.0, 45.0],
        [59.0, 119.0],
        [116.0, 90.0],
        [156.0, 198.0],
        [373.0, 326.0],
    ];
    /// Priors of three levels in the configuration of `biubug6/Pytorch_Retinaface` (`data/config.py`, `min_sizes`), in
    /// pixels.
    pub const RETINA_FACE_PRIORS: [[f32; 2]; 6] = [[16.0; 2], [32.0; 2], [64.0; 2], [128.0; 2], [256.0; 2], [512.0; 2]];

    /// One of each kind, with the numbers of its best-known exporter.
    pub fn one_per_kind() -> [Self; 5] {
        [
            Self::Offsets {},
            Self::DistanceBins { bins: 8, point: CellPoint::Center },
            Self::Distances { anchors: 2, point: CellPoint::TopLeft },
            Self::Anchors { sizes: Self::YOLOV5_ANCHORS.to_vec() },
            Self::Priors { sizes: Self::RETINA_FACE_PRIORS.to_vec() },
        ]
    }

    /// The format of decoded boxes.
    pub fn box_format(&self) -> BoxFormat {
        match self {
            Self::Offsets {} | Self::Anchors { .. } | Self::Priors { .. } => BoxFormat::Cxcywh,
            Self::DistanceBins { .. } | Self::Distances { .. } => BoxFormat::Xyxy,
        }
    }
}

/// The point of a cell that distances start from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, EnumMessage, IntoStaticStr, VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum CellPoint {
    #[serde(alias = "centre")]
    #[strum(message = "In the middle")]
    Center,
    #[strum(message = "Top left")]
    TopLeft,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, EnumMessage, IntoStaticStr, VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum BoxFormat {
    /// left, top, right, bottom
    #[strum(message = "Left, top, right, bottom")]
    Xyxy,
    /// top, left, bottom, right
    #[strum(message = "Top, left, bottom, right")]
    Yxyx,
    /// center and size: x, y, width, height
    #[strum(message = "Center x, y, width, height")]
    Cxcywh,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, EnumMessage, IntoStaticStr, VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum BoxSpace {
    /// Pixels of the model's input image, before any padding is removed.
    #[strum(message = "Pixels of the input")]
    ModelPixels,
    /// `0.0..=1.0` of the model's input image.
    #[serde(alias = "normalised")]
    #[strum(message = "0 to 1 of the input")]
    Normalized,
    /// Pixels of the upright image, whose size the graph gets as an auxiliary input.
    #[strum(message = "Pixels of the image")]
    ImagePixels,
}
