//! A run: one model with its settings over the images of a source.

use serde::{Deserialize, Serialize};

use super::{DeviceChoice, LabelSet, ModelCard};

/// Which run an answer belongs to. Unique within a project and never given twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub u64);

/// What makes two runs give the same answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunKey {
    pub model_id: String,
    /// Of the weights, lower-case hexadecimal: another file under the same id is another model.
    pub weights_sha256: String,
    pub device: DeviceChoice,
    /// `None` leaves it to the device.
    pub batch: Option<usize>,
    /// `None` leaves it to the device.
    pub threads: Option<usize>,
    pub keep: KeepRule,
}

/// What is known of a run beside its answers; enough to read them without the model's files.
#[derive(Debug, Clone, PartialEq)]
pub struct RunInfo {
    pub id: RunId,
    /// Given by the user, or made of the model and its settings.
    pub name: String,
    pub key: RunKey,
    pub card: ModelCard,
    pub labels: LabelSet,
    /// Milliseconds since 1970-01-01 UTC.
    pub created_ms: i64,
}

/// What of the model's answer is kept.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct KeepRule {
    /// Detections below this score are dropped, `0.0..=1.0`. Classes are not.
    pub min_score: f32,
    /// How many classes of a classifier are kept.
    pub top_k: usize,
}

impl Default for KeepRule {
    fn default() -> Self {
        Self {
            min_score: 0.005,
            top_k: 5,
        }
    }
}
