//! What made the embeddings of images.

use serde::{Deserialize, Serialize};

use super::{ImageInput, RunKey};

/// What determines an embedding, apart from the image.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Encoder {
    pub model_id: String,
    pub weights_sha256: String,
    pub tensor: String,
    /// The layer that reads the tensor; can be empty.
    pub layer: String,
    pub dims: usize,
    pub input: ImageInput,
}

/// `efficientnet-lite0, /Reshape_output_0 (1280 numbers)`
impl std::fmt::Display for Encoder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}, {} ({} numbers)", self.model_id, self.tensor, self.dims)
    }
}

impl Encoder {
    /// Whether the embeddings are those of a run's model.
    pub fn is_of(&self, run: &RunKey) -> bool {
        self.model_id == run.model_id && self.weights_sha256 == run.weights_sha256
    }
}
