//! The JSON Lines that `spotcheck predict` writes: one object an image, keys in a fixed order.

use serde::Serialize;

use super::SampleResult;
use crate::domain::{ClassScore, Detection, ModelCard, SampleUri};

#[derive(Serialize)]
struct Predicted<'r> {
    uri: &'r SampleUri,
    status: &'static str,
    width: u32,
    height: u32,
    model: &'r str,
    task: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    classes: Option<&'r [ClassScore]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detections: Option<&'r [Detection]>,
}

#[derive(Serialize)]
struct Failed<'r> {
    uri: &'r SampleUri,
    status: &'static str,
    error: &'r str,
}

/// One line without its line break. Boxes are in pixels of the upright image, xyxy, not clipped; scores `0.0..=1.0`, in
/// the shortest digits that give the same 32-bit float again.
pub fn jsonl_line(uri: &SampleUri, model: &ModelCard, result: &SampleResult) -> String {
    use crate::domain::Answer;
    let line = match result {
        Ok(prediction) => serde_json::to_string(&Predicted {
            uri,
            status: "ok",
            width: prediction.width,
            height: prediction.height,
            model: &model.id,
            task: model.task.word(),
            classes: match &prediction.answer {
                Answer::Classes(classes) => Some(classes),
                Answer::Detections(_) => None,
            },
            detections: match &prediction.answer {
                Answer::Detections(detections) => Some(detections),
                Answer::Classes(_) => None,
            },
        }),
        Err(problem) => serde_json::to_string(&Failed {
            uri,
            status: "failed",
            error: &problem.message,
        }),
    };
    line.expect("numbers, strings and lists always serialise")
}
