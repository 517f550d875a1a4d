//! The responses of our archive's handler, in the format of `spotcheck predict`.

use serde::Deserialize;

use crate::domain::{ClassScore, Detection, Prediction, PredictionContent};

#[derive(Deserialize)]
struct Line {
    status: String,
    error: Option<String>,
    width: Option<u32>,
    height: Option<u32>,
    classes: Option<Vec<ClassScore>>,
    detections: Option<Vec<Detection>>,
    #[serde(default)]
    warnings: Vec<String>,
}

/// The prediction, or why the handler refuses the image.
///
/// # Errors
/// It is not such a response.
pub(super) fn read(body: &[u8]) -> Result<Result<Prediction, String>, String> {
    let line: Line = serde_json::from_slice(body)
        .map_err(|error| format!("could not read the response ({error}): {}", beginning(body)))?;
    if line.status != "ok" {
        return Ok(Err(line.error.unwrap_or(line.status)));
    }
    let response = match (line.classes, line.detections) {
        (Some(classes), None) => PredictionContent::Classes(classes),
        (None, Some(detections)) => PredictionContent::Detections(detections),
        _ => {
            return Err(format!("the response must contain either classes or detections: {}", beginning(body)));
        }
    };
    match (line.width, line.height) {
        (Some(width), Some(height)) => Ok(Ok(Prediction { width, height, content: response, warnings: line.warnings })),
        _ => Err(format!("the response does not contain the image size: {}", beginning(body))),
    }
}

/// The start of a response, for messages.
pub(super) fn beginning(body: &[u8]) -> String {
    const SHOWN: usize = 200;
    let text = String::from_utf8_lossy(&body[..body.len().min(SHOWN)]);
    let ellipsis = if body.len() > SHOWN { "…" } else { "" };
    let words: Vec<&str> = text.split_whitespace().collect();
    format!("“{}{ellipsis}”", words.join(" "))
}
