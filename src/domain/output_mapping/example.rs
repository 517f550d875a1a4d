//! Answers to try a mapping on.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{JsonPlace, OutputMapping};
use crate::domain::SampleUri;

/// A response as it came, and the image that it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExampleResponse {
    pub uri: SampleUri,
    /// The name of the image.
    pub image: String,
    /// Width and height of the upright image in pixels, or why they are not known.
    pub image_size: Result<[u32; 2], String>,
    /// JSON, as it came.
    pub response: Arc<[u8]>,
}

/// Some outputs of one kind, and what the first of them contains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResponseExamples {
    pub responses: Vec<ExampleResponse>,
    /// The first: long lists are shortened.
    pub shown: String,
    /// The values of the first output, in its order.
    pub places: Vec<JsonPlace>,
}

/// How the outputs are to be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadingRequest {
    /// `None`: as is recognized.
    pub mapping: Option<Box<OutputMapping>>,
    /// A label set or a file of labels; empty: as is found.
    pub labels: String,
}
