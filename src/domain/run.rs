//! A run: one model with its settings over the images of a source.

use serde::{Deserialize, Serialize};

use super::{DeviceChoice, LabelSet, ModelCard};

/// Identifies a run. Unique within a project and never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub u64);

/// What determines a run's predictions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunKey {
    pub model_id: String,
    /// The SHA-256 of the weights in lowercase hex: a different file under the same id is a different model. Empty if
    /// the weights are not on this computer.
    pub weights_sha256: String,
    pub device: DeviceChoice,
    /// `None` lets the device decide.
    pub batch: Option<usize>,
    /// `None` lets the device decide.
    pub threads: Option<usize>,
    pub keep: KeepRule,
    #[serde(default)]
    pub made: InferenceLocation,
}

/// Where a run was computed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InferenceLocation {
    /// On this computer, or on another one that ran Spotcheck.
    #[default]
    Here,
    /// Read from the outputs of a SageMaker Batch Transform job.
    TransformJob { name: String, region: String },
    /// Predicted by a SageMaker real-time endpoint.
    Endpoint { name: String, region: String },
    /// Predicted by TensorFlow Serving at this address.
    TfServing { address: String },
    /// Unknown: the outputs were in this folder, a path or `s3://bucket/folder/`.
    Outputs { folder: String },
}

impl InferenceLocation {
    pub fn is_here(&self) -> bool {
        *self == Self::Here
    }
}

/// “here”, “Batch Transform job photos-1 in eu-west-1”.
impl std::fmt::Display for InferenceLocation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Here => formatter.write_str("here"),
            Self::TransformJob { name, region } => {
                write!(formatter, "Batch Transform job {name} in {region}")
            }
            Self::Endpoint { name, region } => write!(formatter, "endpoint {name} in {region}"),
            Self::TfServing { address } => write!(formatter, "TensorFlow Serving at {address}"),
            Self::Outputs { folder } => write!(formatter, "outputs in {folder}"),
        }
    }
}

/// A run without its predictions: everything needed to read them without the model's files.
#[derive(Debug, Clone, PartialEq)]
pub struct RunInfo {
    pub id: RunId,
    /// Chosen by the user, or made from the model and its settings.
    pub name: String,
    pub key: RunKey,
    pub card: ModelCard,
    pub labels: LabelSet,
    /// Milliseconds since 1970-01-01 UTC.
    pub created_ms: i64,
}

/// How the origin of labels that were opened to correct them begins.
pub const LABELS_ORIGIN: &str = "labels in ";

impl RunInfo {
    /// Whether these are labels that were opened to correct them, rather than a model's predictions.
    pub fn is_labels(&self) -> bool {
        !self.key.made.is_here() && self.card.origin.starts_with(LABELS_ORIGIN)
    }
}

impl RunKey {
    /// A run of a model of which only predictions are known, without weights and settings.
    pub fn for_predictions(model_id: String, keep: KeepRule, made: InferenceLocation) -> Self {
        let weights_sha256 = String::new();
        Self { model_id, weights_sha256, device: DeviceChoice::Auto, batch: None, threads: None, keep, made }
    }

    /// The model's name, the location unless it is this computer, the settings that differ from the defaults, and a
    /// number if the name is taken.
    pub fn run_name(&self, model_name: &str, is_taken: impl Fn(&str) -> bool) -> String {
        let made = (!self.made.is_here()).then(|| self.made.to_string());
        let device = (self.device != DeviceChoice::Auto).then(|| self.device.to_string());
        let batch = self.batch.map(|batch| format!("batch {batch}"));
        let threads = self.threads.map(|threads| match threads {
            1 => "1 thread".to_owned(),
            count => format!("{count} threads"),
        });
        let usual = KeepRule::default();
        let min_score = (self.keep.min_score != usual.min_score).then(|| format!("scores ≥ {}", self.keep.min_score));
        let top_k = (self.keep.top_k != usual.top_k).then(|| format!("top {}", self.keep.top_k));
        let unusual = [made, device, batch, threads, min_score, top_k].into_iter().flatten();
        let parts: Vec<String> = std::iter::once(model_name.to_owned()).chain(unusual).collect();
        let name = parts.join(", ");
        let numbered = (2..).map(|number| format!("{name} ({number})"));
        std::iter::once(name.clone()).chain(numbered).find(|name| !is_taken(name)).unwrap_or(name)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct KeepRule {
    /// Detections below this score are dropped, `0.0..=1.0`. Does not apply to classes.
    pub min_score: f32,
    /// Maximum number of classes of a classifier.
    pub top_k: usize,
}

impl Default for KeepRule {
    fn default() -> Self {
        Self { min_score: 0.005, top_k: 5 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_is_named_after_model_and_options() {
        let usual = RunKey {
            model_id: "toy".to_owned(),
            weights_sha256: String::new(),
            device: DeviceChoice::Auto,
            batch: None,
            threads: None,
            keep: KeepRule::default(),
            made: InferenceLocation::Here,
        };
        assert_eq!(usual.run_name("Toy", |_| false), "Toy");
        let taken = ["Toy", "Toy (2)"];
        assert_eq!(usual.run_name("Toy", |name| taken.contains(&name)), "Toy (3)");
        let unusual = RunKey { batch: Some(4), keep: KeepRule { min_score: 0.25, top_k: 10 }, ..usual };
        let name = unusual.run_name("Toy", |_| false);
        assert_eq!(name, "Toy, batch 4, scores ≥ 0.25, top 10");
        let remote = RunKey {
            made: InferenceLocation::TransformJob { name: "photos-1".to_owned(), region: "eu-west-1".to_owned() },
            ..unusual
        };
        assert_eq!(
            remote.run_name("Toy", |_| false),
            "Toy, Batch Transform job photos-1 in eu-west-1, batch 4, scores ≥ 0.25, top 10"
        );
    }
}
