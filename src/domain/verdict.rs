use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{RunId, SampleUri};

/// A person's judgment of an image's prediction, or of one of its boxes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum Verdict {
    Accept,
    Reject,
    Unsure,
    /// The position is right, the class is not. Contains the right class, which need not be one of the model's.
    #[strum(serialize = "wrong")]
    WrongClass(String),
}

/// What a verdict applies to. A verdict belongs to the run whose prediction it judges; an image can be judged before
/// any model has predicted it. Notes and tags belong to the image, whatever the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct VerdictTarget {
    /// `None` if the image was judged without a prediction.
    pub run: Option<RunId>,
    /// Index into the detections of the stored prediction; `None` for the image as a whole.
    pub box_index: Option<u32>,
}

/// The verdicts, note and tags of one image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedSample {
    pub sample: SampleUri,
    pub verdicts: Vec<(VerdictTarget, Verdict)>,
    /// Empty if there is none.
    pub note: String,
    pub tags: Vec<String>,
}
