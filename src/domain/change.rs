//! Changes to a project file.

use super::{FileStamp, LabelSet, Prediction, RunId, RunInfo, SampleUri, Verdict, VerdictTarget};

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
