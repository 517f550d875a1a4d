//! Verdicts, and changes to a project file.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{DrawnBox, FileStamp, LabelSet, Prediction, RunId, RunInfo, SampleUri};

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
    /// The object is there, but not exactly in this position. Contains the right box, of the same or another class.
    Moved(DrawnBox),
    /// The model did not detect this object: the box is a person's. Its index follows those of the prediction and of
    /// other added boxes.
    Added(DrawnBox),
}

impl Verdict {
    /// The class that the person gave, where a verdict has one.
    pub fn right_class(&self) -> Option<&str> {
        match self {
            Self::WrongClass(class) => Some(class),
            Self::Moved(drawn) | Self::Added(drawn) => Some(drawn.class()),
            Self::Accept | Self::Reject | Self::Unsure => None,
        }
    }

    /// The box that the person drew, where a verdict has one.
    pub fn drawn(&self) -> Option<&DrawnBox> {
        match self {
            Self::Moved(drawn) | Self::Added(drawn) => Some(drawn),
            _ => None,
        }
    }
}

/// What a verdict applies to. A verdict belongs to the run whose prediction it judges; an image can be judged before
/// any model has predicted it. Notes and tags belong to the image, whatever the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct VerdictTarget {
    /// `None` if the image was judged without a prediction.
    pub run: Option<RunId>,
    /// Index into the detections of the stored prediction, followed by the boxes that a person added; `None` for the
    /// image as a whole.
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

/// A change to a project. Changes apply in the order in which they were made.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    AddRun(Box<RunInfo>),
    RenameRun(RunId, String),
    /// Adds class names to a run that learns them only from its predictions; known ones stay. Written before the
    /// predictions that need them.
    SetRunLabels(RunId, LabelSet),
    /// Deletes a run with its predictions and the verdicts on them.
    DeleteRun(RunId),
    /// Predictions of one run, or why there are none. They replace earlier ones of the same images.
    Predictions {
        run: RunId,
        predictions: Vec<SamplePrediction>,
    },
    /// `None` clears the verdict.
    SetVerdict {
        sample: SampleUri,
        target: VerdictTarget,
        verdict: Option<Verdict>,
        /// Who gave the verdict; `None` if nobody said.
        reviewer: Option<String>,
    },
    /// An empty text deletes the note.
    SetNote {
        sample: SampleUri,
        text: String,
    },
    /// Replaces all tags of the image.
    SetTags {
        sample: SampleUri,
        tags: Vec<String>,
    },
    /// View settings by name, as JSON.
    SetView {
        name: String,
        json: String,
    },
}

/// A run's prediction for one sample.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplePrediction {
    pub sample: SampleUri,
    /// The predicted file. A different size or time means that the prediction is outdated.
    pub stamp: FileStamp,
    pub result: Result<Prediction, String>,
}

impl SamplePrediction {
    /// Whether the prediction is of this version of the file, as far as is known.
    pub fn is_of(&self, file: &FileStamp) -> bool {
        self.stamp.is_of(file)
    }
}
