//! The prediction of a model for one image.

use serde::{Deserialize, Serialize};

use super::BoundingBox;

/// The stored prediction for one image: everything the model gave above the cut-off of the run, before any view
/// setting. `width` and `height` are those of the upright image, in pixels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    pub width: u32,
    pub height: u32,
    #[serde(rename = "prediction", alias = "answer")]
    pub content: PredictionContent,
    /// What is wrong with the image that was predicted all the same, such as “is damaged: …”: words that follow its
    /// name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PredictionContent {
    /// The best classes, best first.
    Classes(Vec<ClassScore>),
    /// The boxes, highest score first; an empty list means that the model found nothing.
    Detections(Vec<Detection>),
}

/// One class of a classifier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassScore {
    /// Index into the model's classes, background already subtracted.
    pub index: u32,
    pub label: String,
    /// Probability, `0.0..=1.0`.
    pub score: f32,
}

/// One box of a detector.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Detection {
    /// The box in pixels of the upright image, not clipped to it.
    #[serde(rename = "box")]
    pub bounds: BoundingBox,
    /// The id that the label set knows (for COCO its 1..=90).
    pub class_id: u32,
    pub label: String,
    /// `0.0..=1.0`.
    pub score: f32,
}

impl Prediction {
    pub fn detections(&self) -> &[Detection] {
        match &self.content {
            PredictionContent::Detections(detections) => detections,
            PredictionContent::Classes(_) => &[],
        }
    }

    pub fn classes(&self) -> &[ClassScore] {
        match &self.content {
            PredictionContent::Classes(classes) => classes,
            PredictionContent::Detections(_) => &[],
        }
    }
}
