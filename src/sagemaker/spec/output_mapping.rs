//! How JSON from another model is read: where scores, boxes and classes are, and what they mean.
//!
//! A mapping is to outputs what a model card is to a graph. It is a TOML file next to the user's model cards. Unknown
//! fields are rejected, so that a misspelled one is never silently ignored.

mod draft;

pub use draft::{BoxesDraft, ClassesDraft, MappingDraft, WHOLE_OUTPUT};

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::domain::{ModelTask, SampleUri};

/// `mappings/<id>.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputMapping {
    /// Lowercase letters, digits, `-`, `_` and `.`; also the name of the mapping's file.
    pub id: String,
    pub name: String,
    /// A built-in label set (`imagenet`, `coco-80`, `coco-91`, `cifar-10`), or a label file or label map (`.pbtxt`)
    /// next to the mapping; without it, classes are shown by number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<String>,
    #[serde(rename = "prediction", alias = "answer")]
    pub content: MappedContent,
}

/// The task, and where its values are in an output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MappedContent {
    Classification(MappedClasses),
    Detection(MappedBoxes),
}

/// The classes of an image. `scores`, `classes` or both are set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MappedClasses {
    /// One number per class in order or, with `classes`, one for each of those. Without it, every class has a score of
    /// 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scores: Option<JsonPointer>,
    /// Ids or names of the predicted classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<JsonPointer>,
    #[serde(default)]
    pub values: ScoreValues,
    /// Whether class 0 is “background” and class `n` has label `n - 1`.
    #[serde(default)]
    pub background: bool,
    /// The index of the best class, in the order of the scores. An output whose scores disagree is reported as a
    /// problem.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<JsonPointer>,
}

/// What the scores represent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum ScoreValues {
    /// `0.0..=1.0`
    #[default]
    Probabilities,
    /// Any real numbers, one per class; Spotcheck applies the softmax in 64-bit floats.
    Logits,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MappedBoxes {
    /// Four numbers per box.
    pub boxes: JsonPointer,
    /// The id or name of each box's class.
    pub classes: JsonPointer,
    /// The score of each box, `0.0..=1.0`.
    pub scores: JsonPointer,
    /// The number of valid boxes, if the output contains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<JsonPointer>,
    pub box_format: MappedBoxFormat,
    pub box_space: MappedBoxSpace,
    /// Added to the output's class to get the id in the labels.
    #[serde(default)]
    pub class_offset: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(const_into_str)]
pub enum MappedBoxFormat {
    /// left, top, right, bottom
    #[strum(serialize = "left, top, right, bottom")]
    Xyxy,
    /// top, left, bottom, right
    #[strum(serialize = "top, left, bottom, right")]
    Yxyx,
    /// left, top, width, height
    #[strum(serialize = "left, top, width, height")]
    Xywh,
    /// center x, center y, width, height
    #[strum(serialize = "center, width, height")]
    Cxcywh,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(const_into_str)]
pub enum MappedBoxSpace {
    /// Pixels of the upright image.
    #[strum(serialize = "in pixels")]
    Pixels,
    /// `0.0..=1.0` of the upright image.
    #[strum(serialize = "as fractions of the image")]
    #[serde(alias = "normalised")]
    Normalized,
}

impl OutputMapping {
    pub fn task(&self) -> ModelTask {
        match self.content {
            MappedContent::Classification(_) => ModelTask::Classification,
            MappedContent::Detection(_) => ModelTask::Detection,
        }
    }

    /// The whole mapping in one line: `scores at /predictions/0/probabilities, as probabilities, class 0 is
    /// background`.
    pub fn description(&self) -> String {
        let mut parts = Vec::new();
        let mut at = |what: &str, pointer: Option<&JsonPointer>| {
            parts.extend(pointer.map(|pointer| match pointer.as_str() {
                "" => format!("{what} are the whole output"),
                path => format!("{what} at {path}"),
            }));
        };
        match &self.content {
            MappedContent::Classification(classes) => {
                at("scores", classes.scores.as_ref());
                at("classes", classes.classes.as_ref());
                at("best class", classes.best.as_ref());
                parts.push(format!("as {}", classes.values.into_str()));
                if classes.background {
                    parts.push("class 0 is background".to_owned());
                }
            }
            MappedContent::Detection(boxes) => {
                at("boxes", Some(&boxes.boxes));
                at("classes", Some(&boxes.classes));
                at("scores", Some(&boxes.scores));
                at("count", boxes.count.as_ref());
                let (format, space) = (boxes.box_format.into_str(), boxes.box_space.into_str());
                parts.push(format!("boxes as {format} {space}"));
                if boxes.class_offset != 0 {
                    parts.push(format!("class ids changed by {:+}", boxes.class_offset));
                }
            }
        }
        parts.join(", ")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MappingField {
    Name,
    Id,
    Labels,
    Scores,
    Values,
    Classes,
    Best,
    Boxes,
    Count,
}

/// An invalid field of a mapping.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct MappingFault {
    pub field: MappingField,
    pub reason: String,
}

impl MappingFault {
    pub fn new(field: MappingField, reason: impl Into<String>) -> Self {
        Self { field, reason: reason.into() }
    }
}

impl MappedClasses {
    /// Checks what the types cannot express.
    ///
    /// # Errors
    /// The first invalid field.
    pub fn check(&self) -> Result<(), MappingFault> {
        if self.scores.is_none() && self.classes.is_none() {
            return Err(MappingFault::new(MappingField::Scores, "enter the path of the scores, the classes, or both"));
        }
        if self.values == ScoreValues::Logits && self.classes.is_some() {
            return Err(MappingFault::new(
                MappingField::Values,
                "logits require the scores of all classes in class order, without a separate class list",
            ));
        }
        if self.best.is_some() && (self.classes.is_some() || self.scores.is_none()) {
            return Err(MappingFault::new(
                MappingField::Best,
                "the best class is checked against the scores of all classes in class order; set scores but not \
                 classes",
            ));
        }
        Ok(())
    }
}

/// A JSON pointer as in RFC 6901: `/predictions/0/scores`; the empty text is the whole document. `*` matches every
/// element of a list: `/detections/*/box`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct JsonPointer {
    text: String,
    steps: Vec<JsonStep>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonStep {
    /// Every element of a list.
    Each,
    /// A key of an object or, if it is a number, an index into a list, from 0.
    To(String),
}

/// The text that is not a pointer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("“{0}” is not a path in JSON; write it as /predictions/0/scores, with * for every element of a list")]
pub struct JsonPointerError(String);

impl JsonPointer {
    pub fn parse(text: &str) -> Result<Self, JsonPointerError> {
        let error = || JsonPointerError(text.to_owned());
        let steps = match text.strip_prefix('/') {
            None if text.is_empty() => Vec::new(),
            None => return Err(error()),
            Some(rest) => rest.split('/').map(JsonStep::parse).collect(),
        };
        Ok(Self { text: text.to_owned(), steps })
    }

    /// The steps from the root inward.
    pub fn steps(&self) -> &[JsonStep] {
        &self.steps
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl JsonStep {
    fn parse(text: &str) -> Self {
        match text {
            "*" => Self::Each,
            // In this order, as in RFC 6901: `~01` is `~1`.
            key => Self::To(key.replace("~1", "/").replace("~0", "~")),
        }
    }
}

impl std::fmt::Display for JsonPointer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl std::str::FromStr for JsonPointer {
    type Err = JsonPointerError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl TryFrom<String> for JsonPointer {
    type Error = JsonPointerError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<JsonPointer> for String {
    fn from(pointer: JsonPointer) -> Self {
        pointer.text
    }
}

/// A response as received, and its image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExampleResponse {
    pub uri: SampleUri,
    pub image: String,
    /// Width and height of the upright image in pixels, or why they are unknown.
    pub image_size: Result<[u32; 2], String>,
    /// JSON, as received.
    pub response: Arc<[u8]>,
}

/// Some outputs of one kind, and what the first of them contains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResponseExamples {
    pub responses: Vec<ExampleResponse>,
    /// The first output, with long lists shortened.
    pub shown: String,
    /// The values in the first output, in its order.
    pub places: Vec<JsonPlace>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadingRequest {
    /// `None`: detected.
    pub mapping: Option<Box<OutputMapping>>,
    /// A label set or label file; empty: detected.
    pub labels: String,
}

/// A position in an output, and its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPlace {
    pub pointer: JsonPointer,
    pub holds: PlaceContent,
}

/// The kind of a value, as far as it matters for a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceContent {
    Number,
    Text,
    /// Numbers, and whether each of them is in `0.0..=1.0`.
    Numbers {
        count: usize,
        are_parts: bool,
    },
    Texts {
        count: usize,
    },
    /// Rows of four numbers, as in boxes, and whether each number is in `0.0..=1.0`.
    Rows {
        count: usize,
        are_parts: bool,
    },
}

impl JsonPlace {
    /// Whether a field of a mapping can be read from here.
    pub fn suits(&self, field: MappingField) -> bool {
        use PlaceContent::{Number, Numbers, Rows, Text, Texts};
        matches!(
            (field, self.holds),
            (MappingField::Scores | MappingField::Classes, Number | Numbers { .. })
                | (MappingField::Classes, Text | Texts { .. })
                | (MappingField::Boxes, Rows { .. } | Numbers { count: 4, .. })
                | (MappingField::Count | MappingField::Best, Number | Numbers { count: 1, .. })
        )
    }

    /// The number of values at this place.
    pub fn count(&self) -> usize {
        match self.holds {
            PlaceContent::Number | PlaceContent::Text => 1,
            PlaceContent::Numbers { count, .. } | PlaceContent::Texts { count } | PlaceContent::Rows { count, .. } => {
                count
            }
        }
    }

    /// Whether each number here is in `0.0..=1.0`; true if there are none.
    pub fn are_parts(&self) -> bool {
        match self.holds {
            PlaceContent::Numbers { are_parts, .. } | PlaceContent::Rows { are_parts, .. } => are_parts,
            PlaceContent::Number | PlaceContent::Text | PlaceContent::Texts { .. } => true,
        }
    }

    /// Whether the last named part of the pointer contains one of these words.
    pub fn is_called(&self, words: &[&str]) -> bool {
        let parts = self.pointer.as_str().rsplit('/');
        let is_name = |part: &&str| *part != "*" && part.parse::<usize>().is_err();
        let name = parts.filter(|part| !part.is_empty()).find(is_name);
        let name = name.unwrap_or_default().to_lowercase();
        words.iter().any(|word| name.contains(word))
    }
}

impl PlaceContent {
    /// The kind as text: “1001 numbers”.
    pub fn words(self) -> String {
        let several = |count: usize, one: &str, many: &str| match count {
            1 => format!("1 {one}"),
            count => format!("{count} {many}"),
        };
        match self {
            Self::Number => "a number".to_owned(),
            Self::Text => "a string".to_owned(),
            Self::Numbers { count, .. } => several(count, "number", "numbers"),
            Self::Texts { count } => several(count, "string", "strings"),
            Self::Rows { count, .. } => {
                format!("{} of 4 numbers", several(count, "row", "rows"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_follow_rfc_6901() {
        let to = |key: &str| JsonStep::To(key.to_owned());
        for (text, steps) in [
            ("", vec![]),
            ("/", vec![to("")]),
            ("/a/0", vec![to("a"), to("0")]),
            ("/a~1b/m~0n/~01", vec![to("a/b"), to("m~n"), to("~1")]),
            ("/detections/*/box", vec![to("detections"), JsonStep::Each, to("box")]),
        ] {
            assert_eq!(JsonPointer::parse(text).unwrap().steps(), steps, "{text}");
        }
        assert!(JsonPointer::parse("predictions/0").is_err());
    }
}
