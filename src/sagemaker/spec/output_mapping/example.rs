//! Example responses to try a mapping on.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{JsonPlace, OutputMapping};
use crate::domain::SampleUri;

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
