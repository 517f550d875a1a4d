//! Every field of a card that people set: its label, meaning, unit and usual values, its range, and how it is edited.
//! The form, the check of a card and `--set` use these descriptions.

use serde_json::{Map, Value};
use strum::{EnumMessage, VariantArray};

use super::{
    Activation, Background, BoxFormat, BoxSpace, BoxesBack, CellPoint, ChannelOrder, ClassValues, Interpolation,
    LabelChoice, Position, ResizeRule, Rounding, SideRounding, Square, Tokens,
};

#[derive(Debug)]
pub struct CardField {
    /// The path in the card, such as `input.layout`; several if one editor sets several fields.
    pub paths: &'static [&'static str],
    pub label: &'static str,
    /// Its meaning, unit and usual values.
    pub help: &'static str,
    pub edit: Edit,
    /// Further conditions for its use; the card must also have the table that contains it.
    used: Used,
}

/// How a field is edited.
#[derive(Debug)]
pub enum Edit {
    Text,
    /// One of these words, or tables of these names, each with its text for display. The first one is the default.
    Words(fn() -> Vec<(&'static str, &'static str)>),
    /// A check box with this text.
    Flag(&'static str),
    Number(Number),
    /// Width and height.
    Size(Number),
    /// Red, green and blue.
    Color(Number),
    /// One number for each channel of the model.
    Channels(Number),
    /// A number that can be unset.
    Optional {
        number: Number,
        usual: f64,
        unset: &'static str,
    },
    /// Numbers or sizes, with an example.
    List {
        number: Number,
        example: &'static str,
    },
    /// An input or output of the graph, and the text for none.
    Port(Option<&'static str>),
    /// Columns of outputs, and the text for none.
    Columns(Option<&'static str>),
    /// The form has an editor for this field alone.
    Own,
}

/// The values of a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Number {
    pub min: f64,
    pub max: f64,
    pub is_whole: bool,
    /// With its space; empty if there is none.
    pub unit: &'static str,
}

#[derive(Debug)]
enum Used {
    Always,
    If(&'static str, &'static str),
    Unless(&'static str, &'static str),
    /// The card does not have this field.
    Without(&'static str),
}

/// No real model has a larger side; a card with one would only fill the memory.
pub const SIDE: Number = Number { unit: " px", ..whole(1, 16_384) };
/// No real output has more columns.
pub const COLUMN: Number = whole(0, 100_000);
const SHARE: Number = Number { min: 0.0, max: 1.0, is_whole: false, unit: "" };
const DECIMAL: Number = Number { min: f64::NEG_INFINITY, max: f64::INFINITY, ..SHARE };

const fn whole(min: u32, max: u32) -> Number {
    Number { min: min as f64, max: max as f64, is_whole: true, unit: "" }
}

/// Every field, in the order of the form.
pub const CARD_FIELDS: [&[CardField]; 4] = [MODEL_FIELDS, INPUT_FIELDS, OUTPUT_FIELDS, RARE_FIELDS];

pub const MODEL_FIELDS: &[CardField] = &[
    field(&["name"], "Name", Edit::Text, "The display name, for example the architecture and the dataset"),
    field(
        &["id"],
        "Id",
        Edit::Text,
        "The name for --model and the model folder: lowercase letters, digits, -, _ and .",
    ),
    field(
        &["task"],
        "Task",
        Edit::Own,
        "Classes describe the whole image; boxes locate objects; an encoder only computes embeddings",
    ),
    field(
        &["labels"],
        "Labels",
        Edit::Own,
        "Class names in training order: a built-in set, a file, or the names found with the model",
    )
    .used(Used::Without("output.embedding")),
];

pub const INPUT_FIELDS: &[CardField] = &[
    field(&["input.name"], "Image", Edit::Port(None), "The input of the graph that takes the image"),
    field(
        &["input.resize"],
        "Resize",
        Edit::Words(|| {
            vec![
                ("stretch", "Stretch"),
                ("letterbox", "Letterbox"),
                ("short-side-crop", "Short side, then crop"),
                ("short-side-pad", "Short side, then pad"),
                ("keep", "None: any size"),
            ]
        }),
        "How an image gets the size of the input. Usual: Letterbox for YOLO, Short side then crop for classifiers, \
         Stretch for most others",
    ),
    field(
        &["input.resize.stretch.width", "input.resize.stretch.height"],
        "Size",
        Edit::Size(SIDE),
        "Width and height of the input, in pixels. The image is resized to this size, ignoring its aspect ratio",
    ),
    field(&["input.resize.stretch.crop"], "Crop", Edit::Own, "Keeps only the middle of the resized image. Usual: off"),
    field(
        &["input.resize.stretch.crop.width", "input.resize.stretch.crop.height"],
        "Crop size",
        Edit::Size(SIDE),
        "Width and height of the middle part, in pixels: the size of the input",
    ),
    field(
        &["input.resize.stretch.crop.offset"],
        "Crop rounding",
        Edit::Words(words::<Rounding>),
        "Rounding of the crop's left and top edge to whole pixels. Usual: Nearest",
    ),
    field(
        &["input.resize.short-side-crop.short_side"],
        "Short side",
        Edit::Number(SIDE),
        "The length of the shorter side after resizing, in pixels. Usual: 256 for a crop of 224",
    ),
    field(
        &["input.resize.short-side-crop.crop_width", "input.resize.short-side-crop.crop_height"],
        "Crop",
        Edit::Size(SIDE),
        "Width and height of the middle part that is kept, in pixels: the size of the input. Usual: 224 × 224",
    ),
    field(
        &["input.resize.short-side-crop.long_side"],
        "Side rounding",
        Edit::Words(words::<Rounding>),
        "Rounding of the longer side to whole pixels. Usual: Down (torchvision)",
    ),
    field(
        &["input.resize.short-side-crop.crop_offset"],
        "Crop rounding",
        Edit::Words(words::<Rounding>),
        "Rounding of the crop's left and top edge to whole pixels. Usual: Nearest (torchvision)",
    ),
    field(
        &["input.resize.letterbox.width", "input.resize.letterbox.height"],
        "Size",
        Edit::Size(SIDE),
        "Width and height of the input, in pixels. The image keeps its aspect ratio and the rest is filled. Usual: \
         640 × 640",
    ),
    field(
        &["input.resize.letterbox.fill"],
        "Fill",
        Edit::Color(whole(0, 255)),
        "The color around the image: red, green and blue, 0 to 255. Usual: 114 each (YOLO)",
    ),
    field(
        &["input.resize.letterbox.position"],
        "Position",
        Edit::Words(words::<Position>),
        "Position of the image in the filled input. Usual: In the middle; Top left for YOLOX",
    ),
    field(
        &["input.resize.letterbox.rounding"],
        "Side rounding",
        Edit::Words(words::<Rounding>),
        "Rounding of the resized sides to whole pixels. Usual: Nearest; Down for YOLOX",
    ),
    field(
        &["input.resize.letterbox.stride"],
        "Pad to stride",
        Edit::Optional { number: Number { unit: "", ..SIDE }, usual: 32.0, unset: "off: full size" },
        "For inputs of any size: fills only up to the next multiple of this, in pixels, instead of the full size. \
         Usual: 32",
    ),
    field(
        &["input.resize.letterbox.boxes_back"],
        "Map boxes back",
        Edit::Words(words::<BoxesBack>),
        "How boxes are mapped to the image; exporters differ by up to one input pixel. Usual: Ratio of each axis",
    ),
    field(
        &["input.resize.short-side-pad.short_side"],
        "Short side",
        Edit::Number(SIDE),
        "The length of the shorter side after resizing, in pixels, unless the longer one gets too long. Usual: 800",
    ),
    field(
        &["input.resize.short-side-pad.max_long_side"],
        "Maximum long side",
        Edit::Number(SIDE),
        "Maximum length of the longer side, in pixels. Usual: 1333",
    ),
    field(
        &["input.resize.short-side-pad.pad_to_multiple"],
        "Pad to multiple",
        Edit::Number(SIDE),
        "Pads both sides to a multiple of this, in pixels. 1 adds no padding (DETR). Usual: 32",
    ),
    field(
        &["input.resize.short-side-pad.cut_to_multiple"],
        "Round down to multiple",
        Edit::Number(SIDE),
        "Rounds both sides down to a multiple of this, in pixels. Usual: 1 (no rounding); 16 for YOLOS",
    ),
    field(
        &["input.resize.short-side-pad.rounding"],
        "Side rounding",
        Edit::Words(words::<SideRounding>),
        "Rounding of the resized sides, and mapping of boxes back. Usual: By padding; halves up for MMDetection and \
         Detectron2; halves to even for keras-retinanet",
    ),
    field(
        &["input.square"],
        "Make square",
        Edit::Words(words::<Square>),
        "Makes the image square before it is resized. Usual: No; Crop for fastai and YOLOv5 classifiers",
    ),
    field(
        &["input.interpolation"],
        "Interpolation",
        Edit::Words(words::<Interpolation>),
        "How pixels are computed while resizing. Usual: Pillow bilinear for PyTorch, OpenCV linear for YOLO",
    ),
    field(
        &["input.channels"],
        "Channels",
        Edit::Words(words::<ChannelOrder>),
        "The order of the colors. Usual: RGB; BGR for models trained with OpenCV or Caffe; grayscale has one",
    ),
    field(
        &["input.divide_by"],
        "Divide by",
        Edit::Number(DECIMAL),
        "Each pixel, 0 to 255, is divided by this first. Usual: 255 for 0 to 1, or 1 for 0 to 255",
    )
    .used(Used::Unless("input.type", "uint8")),
    field(
        &["input.mean"],
        "Mean",
        Edit::Channels(DECIMAL),
        "Subtracted from each channel after the division. Usual: 0, or 0.485, 0.456, 0.406 (ImageNet, of 0 to 1)",
    )
    .used(Used::Unless("input.type", "uint8")),
    field(
        &["input.std"],
        "Std",
        Edit::Channels(DECIMAL),
        "Each channel is divided by this last. Usual: 1, or 0.229, 0.224, 0.225 (ImageNet, of 0 to 1)",
    )
    .used(Used::Unless("input.type", "uint8")),
    field(
        &["input.layout"],
        "Layout",
        Edit::Own,
        "The order of the dimensions. Usual: channels first for PyTorch, last for TensorFlow",
    ),
    field(&["input.type"], "Type", Edit::Own, "The type of the numbers in the input"),
    field(
        &["input.batches", "input.fixed_batch"],
        "Images per call",
        Edit::Own,
        "Images per call. Any number is fastest; One always works; Always the same number pads each call",
    ),
    field(&["input.auxiliary"], "Input", Edit::Own, "What this graph input receives in addition to the image"),
];

const BACKGROUND: &str = "The class that means “no object”; it is not shown. Usual: None; First class for TensorFlow";
const LABELS: &str = "output.detection.labels";
const GRID: &str = "output.detection.grid";

pub const OUTPUT_FIELDS: &[CardField] = &[
    field(&["output.classification.name"], "Output", Edit::Port(None), "The output with one number per class"),
    field(
        &["output.classification.values"],
        "Values",
        Edit::Words(words::<ClassValues>),
        "What the numbers are. Logits are any numbers and become scores by softmax or sigmoid; probabilities are 0 to 1",
    ),
    field(&["output.classification.background"], "Background", Edit::Words(words::<Background>), BACKGROUND)
        .used(Used::Unless("output.classification.values", "arg-max")),
    field(&["output.embedding.name"], "Output", Edit::Port(None), "The output with the embedding of an image"),
    field(
        &["output.embedding.tokens"],
        "Tokens",
        Edit::Words(words::<Tokens>),
        "What describes the image if the output has one vector per part of it",
    ),
    field(
        &["output.detection.boxes"],
        "Boxes",
        Edit::Columns(None),
        "The output with four numbers for each box, and their first column. Several outputs for several levels",
    ),
    field(
        &["output.detection.candidates_last"],
        "Candidates",
        Edit::Flag("Last dimension"),
        "Select this if the last dimension is the boxes, as in [1, 84, 8400] (YOLOv8 and later)",
    ),
    // The coding of a grid determines both.
    field(
        &["output.detection.box_format"],
        "Box format",
        Edit::Words(words::<BoxFormat>),
        "The meaning of a box’s four numbers. Usual: corners; center and size for YOLO and DETR",
    )
    .used(Used::Without(GRID)),
    field(
        &["output.detection.box_space"],
        "Box space",
        Edit::Words(words::<BoxSpace>),
        "The unit of a box’s numbers: pixels of the input or the image, or fractions of the input",
    )
    .used(Used::Without(GRID)),
    field(
        &["output.detection.scores"],
        "Scores",
        Edit::Columns(None),
        "The output with the scores, and their first column: one per class, or one per box",
    ),
    field(
        &[LABELS],
        "Class",
        Edit::Columns(Some("One score per class")),
        "The output with the class number of each box; without one, there is a score for each class",
    ),
    field(
        &["output.detection.activation"],
        "Activation",
        Edit::Words(words::<Activation>),
        "Function that turns the numbers into scores from 0 to 1. Usual: None; Sigmoid for raw outputs, Softmax for \
         DETR",
    ),
    field(
        &["output.detection.classes"],
        "Class columns",
        Edit::Optional { number: Number { min: 1.0, ..COLUMN }, usual: 80.0, unset: "up to the last column" },
        "Number of class score columns, if other columns follow (masks, key points)",
    )
    .used(Used::Without(LABELS)),
    field(
        &["output.detection.label_choice"],
        "Boxes per candidate",
        Edit::Words(words::<LabelChoice>),
        "Whether a candidate produces one box for its best class or one box per class. Usual: best",
    )
    .used(Used::Without(LABELS)),
    field(&["output.detection.background"], "Background", Edit::Words(words::<Background>), BACKGROUND)
        .used(Used::Without(LABELS)),
    field(
        &["output.detection.objectness"],
        "Objectness",
        Edit::Columns(Some("None")),
        "A score of the box itself, multiplied with its class scores (YOLOv5, YOLOv7, YOLOX)",
    ),
    field(
        &["output.detection.class_offset"],
        "Class offset",
        Edit::Number(Number { min: i32::MIN as f64, ..whole(0, i32::MAX as u32) }),
        "Added to the model’s class numbers to look up names. Usual: 0; −1 if classes begin at 1",
    ),
    field(
        &["output.detection.max_boxes"],
        "Maximum boxes",
        Edit::Optional { number: whole(1, u32::MAX), usual: 300.0, unset: "no limit" },
        "Maximum number of boxes per image, best first. Usual: all, or 300",
    ),
    field(
        &["output.detection.nms_iou"],
        "NMS (IoU)",
        Edit::Optional { number: SHARE, usual: 0.7, unset: "none" },
        "NMS IoU threshold per class, 0 to 1. Usual: 0.7 (YOLOv8), 0.45 (YOLOv5); none if the graph suppresses boxes",
    ),
    field(
        &["embedding"],
        "Embedding",
        Edit::Text,
        "The tensor inside the graph that describes an image, for finding similar images. Usual: empty, which uses the \
         input of the last layer",
    ),
];

/// Further fields of detectors, which few models need.
pub const RARE_FIELDS: &[CardField] = &[
    field(
        &["output.detection.count"],
        "Box count",
        Edit::Port(Some("None")),
        "The output with the number of valid boxes",
    ),
    field(
        &["output.detection.selected"],
        "Selected boxes",
        Edit::Port(Some("None")),
        "The output with image, class and number of each box that the graph’s own suppression keeps. Usual: none",
    ),
    field(
        &["output.detection.batch_index"],
        "Image number",
        Edit::Columns(Some("None")),
        "The output with the number of the image that a box belongs to",
    ),
    field(
        &["output.detection.angle"],
        "Angle",
        Edit::Columns(Some("None")),
        "The output with the rotation of each box, in radians clockwise (oriented boxes)",
    )
    .used(Used::If("output.detection.box_format", "cxcywh")),
    field(&[GRID], "Box decoding", Edit::Own, "Set this if boxes are relative to grid cells. Usual: None"),
    field(
        &["output.detection.grid.strides"],
        "Strides",
        Edit::List { number: SIDE, example: "8, 16, 32" },
        "Cell size of each level, in pixels of the input. Usual: 8, 16, 32",
    ),
    field(
        &["output.detection.grid.coding.distance-bins.bins"],
        "Bins",
        Edit::Number(whole(1, 1024)),
        "Numbers per box side. Usual: 8 (NanoDet), 16 (YOLOv8’s raw outputs)",
    ),
    field(
        &["output.detection.grid.coding.distances.anchors"],
        "Boxes per cell",
        Edit::Number(whole(1, 64)),
        "Number of consecutive boxes per cell. Usual: 2 (SCRFD)",
    ),
    field(
        &["output.detection.grid.coding.distance-bins.point"],
        "Point of a cell",
        Edit::Words(words::<CellPoint>),
        CELL_POINT,
    ),
    field(
        &["output.detection.grid.coding.distances.point"],
        "Point of a cell",
        Edit::Words(words::<CellPoint>),
        CELL_POINT,
    ),
    field(
        &["output.detection.grid.coding.anchors.sizes"],
        "Anchors",
        ANCHORS,
        "Width x height of each anchor, in pixels of the input, level by level. Usual: YOLOv5’s nine",
    ),
    field(
        &["output.detection.grid.coding.priors.sizes"],
        "Anchors",
        ANCHORS,
        "Width x height of each prior, in pixels of the input, level by level. Usual: RetinaFace’s six",
    ),
    field(
        &["output.detection.min_score_in_graph"],
        "Score in graph",
        Edit::Number(SHARE),
        "The graph drops boxes with a lower score, 0 to 1; the minimum score cannot go below it. Usual: 0",
    ),
    field(
        &["output.detection.nms_iou_in_graph"],
        "NMS in graph",
        Edit::Optional { number: SHARE, usual: 0.5, unset: "none" },
        "NMS IoU threshold in the graph, 0 to 1, if it suppresses boxes. Usual: none",
    ),
    field(
        &["output.detection.max_boxes_in_graph"],
        "Boxes in graph",
        Edit::Optional { number: whole(1, u32::MAX), usual: 100.0, unset: "any number" },
        "Maximum number of boxes that the graph returns. Usual: 100 or 300 if it ends with suppression",
    ),
];

const CELL_POINT: &str = "The point in a cell that distances are measured from. Usual: In the middle";
const ANCHORS: Edit = Edit::List { number: DECIMAL, example: "10x13, 16x30" };

const fn field(paths: &'static [&'static str], label: &'static str, edit: Edit, help: &'static str) -> CardField {
    CardField { paths, label, help, edit, used: Used::Always }
}

fn words<T>() -> Vec<(&'static str, &'static str)>
where
    T: Copy + EnumMessage + Into<&'static str> + VariantArray,
{
    T::VARIANTS.iter().map(|&value| (value.into(), text_of(value))).collect()
}

/// A value of the card for display.
pub fn text_of<T: Copy + EnumMessage + Into<&'static str>>(value: T) -> &'static str {
    value.get_message().unwrap_or_else(|| value.into())
}

impl CardField {
    const fn used(mut self, used: Used) -> Self {
        self.used = used;
        self
    }

    pub const fn path(&self) -> &'static str {
        self.paths[0]
    }

    /// Whether the model uses the field.
    pub fn is_used(&self, card: &Value) -> bool {
        let table = self.path().rsplit_once('.').map_or("", |(table, _)| table);
        let is = |path, word| value_at(card, path).and_then(Value::as_str) == Some(word);
        value_at(card, table).is_some()
            && match self.used {
                Used::Always => true,
                Used::If(path, word) => is(path, word),
                Used::Unless(path, word) => !is(path, word),
                Used::Without(path) => value_at(card, path).is_none(),
            }
    }

    /// The first number out of its range: its path, and what it must be.
    pub fn fault(&self, card: &Value) -> Option<(&'static str, String)> {
        let (Edit::Number(number)
        | Edit::Size(number)
        | Edit::Color(number)
        | Edit::Channels(number)
        | Edit::Optional { number, .. }
        | Edit::List { number, .. }) = &self.edit
        else {
            return None;
        };
        let is_valid = |value: &Value| value.as_f64().is_none_or(|value| number.contains(value));
        let are_valid = |path: &&str| match value_at(card, path) {
            Some(Value::Array(values)) => values.iter().all(is_valid),
            value => value.is_none_or(is_valid),
        };
        let path = *self.paths.iter().find(|path| !are_valid(path))?;
        Some((path, number.rule()))
    }
}

impl Number {
    pub fn contains(&self, value: impl Into<f64>) -> bool {
        (self.min..=self.max).contains(&value.into())
    }

    /// The rule for a value, to follow the name of the field.
    pub fn rule(&self) -> String {
        format!("must be {} to {}{}", self.min, self.max, self.unit)
    }
}

/// The field of a card that is read as JSON.
pub fn value_at<'c>(card: &'c Value, path: &str) -> Option<&'c Value> {
    card.pointer(&json_pointer(path))
}

pub fn value_at_mut<'c>(card: &'c mut Value, path: &str) -> Option<&'c mut Value> {
    card.pointer_mut(&json_pointer(path))
}

fn json_pointer(path: &str) -> String {
    match path {
        "" => String::new(),
        path => format!("/{}", path.replace('.', "/")),
    }
}

/// Whether `path` is inside the table at `table`.
pub fn is_below(path: &str, table: &str) -> bool {
    path.strip_prefix(table).is_some_and(|rest| rest.starts_with('.'))
}

/// Tables whose key is a choice: another key replaces it.
pub const CHOICES: [&str; 2] = [RESIZE, "output"];
const RESIZE: &str = "input.resize";

/// Sets a field of a card that is read as JSON, with the tables around it. A resize rule is set as a whole: its kind
/// (`letterbox` at `input.resize`), or some of its fields; the others are derived from the size in the current rule. A
/// field of another kind changes only the kind.
pub fn set_value(card: &mut Value, path: &str, value: Value) -> Result<(), String> {
    if set_resize(card, path, &value).is_some() {
        return Ok(());
    }
    let (mut table, mut place) = (card, String::new());
    let mut keys = path.split('.').peekable();
    while let Some(key) = keys.next() {
        let Some(fields) = table.as_object_mut() else {
            return Err(format!("{place} is not a table"));
        };
        if CHOICES.contains(&place.as_str()) {
            fields.retain(|present, _| present == key);
        }
        if keys.peek().is_none() {
            fields.insert(key.to_owned(), value);
            break;
        }
        if !place.is_empty() {
            place.push('.');
        }
        place.push_str(key);
        table = fields.entry(key).or_insert_with(|| Value::Object(Map::new()));
    }
    Ok(())
}

/// `None` if something is left to set.
fn set_resize(card: &mut Value, path: &str, value: &Value) -> Option<()> {
    let inner = path.strip_prefix(RESIZE)?;
    let present = value_at_mut(card, RESIZE)?;
    let mut keys = inner.split('.').skip(1);
    let kind = if inner.is_empty() { value.as_str()? } else { keys.next()? };
    let is_whole = keys.next().is_none();
    let rule: ResizeRule = serde_json::from_value(present.clone()).ok()?;
    let mut fields =
        rule.one_per_kind().iter().find_map(|rule| match serde_json::to_value(rule).ok()?.get_mut(kind)? {
            Value::Object(fields) => Some(std::mem::take(fields)),
            _ => None,
        })?;
    match value {
        _ if inner.is_empty() => {}
        Value::Object(given) if is_whole => fields.extend(given.clone()),
        _ if !is_whole && present.get(kind).is_none() => {}
        _ => return None,
    }
    *present = Value::Object(Map::from_iter([(kind.to_owned(), Value::Object(fields))]));
    is_whole.then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{
        CenterCrop, Columns, DetectionOutput, ElementType, EmbeddingOutput, Grid, GridCoding, ImageInput, Layout,
        ModelCard, ModelTask, OutputConvention,
    };

    /// A card for each resize rule, and for each kind of output.
    fn cards() -> Vec<Value> {
        let crop = CenterCrop { width: 8, height: 8, offset: Rounding::Down };
        let stretch = ResizeRule::Stretch { width: 8, height: 8, crop: Some(crop) };
        let rules = ResizeRule::stretch(8, 8).one_per_kind().into_iter().chain([stretch]);
        let classes = OutputConvention::for_predictions(ModelTask::Classification);
        let boxes = GridCoding::one_per_kind().map(|coding| {
            OutputConvention::Detection(DetectionOutput {
                labels: None,
                angle: Some(Columns::whole("angles")),
                box_format: BoxFormat::Cxcywh,
                grid: Some(Grid { strides: vec![8], coding }),
                ..DetectionOutput::separate("boxes", "labels", "scores")
            })
        });
        let free = OutputConvention::for_predictions(ModelTask::Detection);
        let embedding = EmbeddingOutput { name: "embedding".to_owned(), tokens: Tokens::Class };
        let outputs = boxes.into_iter().chain([classes, free, OutputConvention::Embedding(embedding)]);
        let card = |output| ModelCard::for_predictions("toy".to_owned(), "Toy".to_owned(), output);
        let with_rule = rules.map(|rule| ModelCard {
            input: ImageInput::new(Layout::Nchw, ElementType::Float32, rule),
            ..card(OutputConvention::for_predictions(ModelTask::Classification))
        });
        with_rule.chain(outputs.map(card)).map(|card| serde_json::to_value(card).unwrap()).collect()
    }

    #[test]
    fn every_field_is_in_a_card_and_takes_its_words() {
        let cards = cards();
        for field in CARD_FIELDS.iter().copied().flatten() {
            let mut uses = cards.iter().filter(|card| field.is_used(card)).peekable();
            assert!(uses.peek().is_some(), "no card uses {}", field.path());
            assert!(!field.help.is_empty() && !field.label.is_empty(), "{}", field.path());
            for card in uses {
                let sample =
                    |number: &Number| if number.is_whole { Value::from(number.max as i64) } else { 0.5.into() };
                let values = match &field.edit {
                    Edit::Words(words) => words().into_iter().map(|(word, _)| word.into()).collect(),
                    Edit::Flag(_) => vec![true.into()],
                    Edit::Number(number) | Edit::Size(number) => vec![sample(number)],
                    Edit::Optional { number, .. } => vec![Value::Null, sample(number)],
                    Edit::Text | Edit::Port(_) | Edit::Columns(_) => vec!["name".into()],
                    Edit::Color(_) | Edit::Channels(_) => vec![vec![1, 2, 3].into()],
                    Edit::List { .. } | Edit::Own => Vec::new(),
                };
                for (path, value) in field.paths.iter().flat_map(|path| values.iter().map(move |value| (path, value))) {
                    let mut changed = card.clone();
                    set_value(&mut changed, path, value.clone()).unwrap();
                    let read: ModelCard = serde_json::from_value(changed.clone()).unwrap_or_else(|error| {
                        panic!("{path} = {value}: {error}");
                    });
                    let written = serde_json::to_value(read).unwrap();
                    let is_kept = match value_at(&written, path) {
                        Some(Value::Object(table)) => value.as_str().is_some_and(|word| table.contains_key(word)),
                        Some(Value::Array(_) | Value::Number(_)) => true,
                        // Defaults are not written.
                        other => other.is_none_or(|other| other == value),
                    };
                    assert!(is_kept, "{path} = {value}: {written}");
                    assert_eq!(field.fault(&written), None);
                }
            }
        }
    }

    #[test]
    fn numbers_out_of_range_are_faults() {
        let fault = |path: &str, value: Value| {
            let mut cards = cards().into_iter().filter(|card| value_at(card, path).is_some());
            let mut card = cards.next().unwrap();
            set_value(&mut card, path, value).unwrap();
            CARD_FIELDS.iter().copied().flatten().find_map(|field| field.fault(&card)).map(|(path, _)| path)
        };
        for (path, value) in [
            ("input.resize.letterbox.height", 0.into()),
            ("output.detection.min_score_in_graph", 1.5.into()),
            ("output.detection.grid.strides", vec![8, 0].into()),
        ] {
            assert_eq!(fault(path, value), Some(path));
        }
    }
}
