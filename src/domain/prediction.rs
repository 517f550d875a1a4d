use serde::{Deserialize, Serialize};

use super::BoundingBox;

/// A model's stored prediction for one image: everything above the run's minimum score, before any view setting.
/// `width` and `height` are those of the upright image, in pixels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    pub width: u32,
    pub height: u32,
    #[serde(rename = "prediction", alias = "answer")]
    pub content: PredictionContent,
    /// Problems of an image that was predicted anyway, such as “is damaged: …”, to follow its name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PredictionContent {
    /// The best classes, best first.
    Classes(Vec<ClassScore>),
    /// The boxes, highest score first; empty if the model found nothing.
    Detections(Vec<Detection>),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassScore {
    /// Index into the model's classes, without the background.
    pub index: u32,
    pub label: String,
    /// Probability, `0.0..=1.0`.
    pub score: f32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Detection {
    /// In pixels of the upright image, not clipped to it.
    #[serde(rename = "box")]
    pub bounds: BoundingBox,
    /// The id in the label set (for COCO, 1..=90).
    pub class_id: u32,
    pub label: String,
    /// `0.0..=1.0`.
    pub score: f32,
    /// The other classes of this box, best first; empty if the model reports one class per box, or none of the others
    /// reaches the run's minimum score.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runners_up: Vec<RunnerUp>,
}

impl Detection {
    pub fn new(bounds: impl Into<BoundingBox>, class_id: u32, label: impl Into<String>, score: f32) -> Self {
        Self { bounds: bounds.into(), class_id, label: label.into(), score, runners_up: Vec::new() }
    }
}

/// Another class that a detector considered for a box.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RunnerUp {
    /// The id in the label set.
    pub class_id: u32,
    /// `0.0..=1.0`.
    pub score: f32,
}

impl RunnerUp {
    /// Maximum number per box.
    pub const MAX: usize = 3;
}

impl Prediction {
    pub fn new([width, height]: [u32; 2], content: PredictionContent) -> Self {
        Self { width, height, content, warnings: Vec::new() }
    }

    pub fn detections(&self) -> &[Detection] {
        match &self.content {
            PredictionContent::Detections(detections) => detections,
            PredictionContent::Classes(_) => &[],
        }
    }

    /// Whether it is a detector's.
    pub fn is_of_boxes(&self) -> bool {
        matches!(self.content, PredictionContent::Detections(_))
    }

    pub fn classes(&self) -> &[ClassScore] {
        match &self.content {
            PredictionContent::Classes(classes) => classes,
            PredictionContent::Detections(_) => &[],
        }
    }
}

/// The decimal number that a 32-bit float is written as: 0.3, not 0.30000001192092896. A score or threshold is then the
/// same number whether it comes from a project or a file.
pub fn decimal(score: f32) -> f64 {
    score.to_string().parse().unwrap_or_else(|_| f64::from(score))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_round_to_decimal_hundredths() {
        for hundredth in 0..=100 {
            let written = f64::from(hundredth) / 100.0;
            assert_eq!(decimal(written as f32), written);
        }
    }

    #[test]
    fn decimal_numbers_keep_the_order_of_floats() {
        let mut score = 0.3_f32;
        for _ in 0..10_000 {
            let next = score.next_up();
            assert!(decimal(score) < decimal(next) && decimal(score) as f32 == score, "{score}");
            score = next;
        }
        assert!(decimal(f32::NAN).is_nan());
    }
}
