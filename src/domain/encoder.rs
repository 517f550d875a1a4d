//! What made the embeddings of images.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{BoundingBox, ImageInput, OutputConvention, RunInfo, Tokens};

/// What determines an embedding, apart from the image.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Encoder {
    pub model_id: String,
    pub weights_sha256: String,
    pub tensor: String,
    /// The layer that reads the tensor; can be empty.
    pub layer: String,
    /// For tokens of a model whose output is the embedding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    pub dims: usize,
    pub input: ImageInput,
    /// For a detector whose boxes also have vectors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boxes: Option<BoxEncoder>,
}

/// What determines the vector of a box, apart from the image and the box.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoxEncoder {
    pub features: BoxFeatures,
    pub dims: usize,
}

/// What has a vector.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ImagePart {
    Whole,
    /// The box at this position of the prediction.
    Box(u16),
    /// In pixels of the upright image.
    Region(BoundingBox),
}

/// Where the vector of a box comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoxFeatures {
    /// Feature maps with the same channels, averaged under the box. With several, the size of the box selects one.
    Maps(Vec<String>),
    /// A tensor with one vector per candidate.
    Candidates(String),
}

impl BoxFeatures {
    pub fn tensors(&self) -> &[String] {
        match self {
            Self::Maps(tensors) => tensors,
            Self::Candidates(tensor) => std::slice::from_ref(tensor),
        }
    }
}

/// `efficientnet-lite0, /Reshape_output_0 (1280 numbers)`
impl std::fmt::Display for Encoder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}, {} ({} numbers)", self.model_id, self.tensor_text(), self.dims)
    }
}

impl Encoder {
    /// The tensor, and how its tokens become one vector: `last_hidden_state, class token`.
    pub fn tensor_text(&self) -> Cow<'_, str> {
        match self.tokens {
            None => self.tensor.as_str().into(),
            Some(tokens) => format!("{}, {}", self.tensor, tokens.reading()).into(),
        }
    }

    /// The displayed text, for the vectors of boxes.
    pub fn text_of_boxes(&self) -> String {
        match &self.boxes {
            Some(BoxEncoder { features, dims }) => {
                format!("{}, {} ({dims} numbers)", self.model_id, features.tensors().join(", "))
            }
            None => self.to_string(),
        }
    }

    /// Whether the embeddings are those of a run: of its model, with the same preprocessing and reading of the output.
    pub fn is_of(&self, run: &RunInfo) -> bool {
        let RunInfo { key, card, .. } = run;
        let is_read_alike = match &card.output {
            OutputConvention::Embedding(output) => {
                self.tensor == output.name && self.tokens.is_none_or(|tokens| tokens == output.tokens)
            }
            _ => true,
        };
        self.model_id == key.model_id
            && self.weights_sha256 == key.weights_sha256
            && self.input == card.input
            && is_read_alike
    }
}
