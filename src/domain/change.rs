//! What is written to a project file, one change at a time.

use super::{FileStamp, LabelSet, Prediction, RunId, RunInfo, SampleUri, Verdict, VerdictTarget};

/// A change of a project. Applied in the order in which they were made.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    AddRun(Box<RunInfo>),
    RenameRun(RunId, String),
    /// More class names of a run that gets them only with its predictions; known ones stay. Written before the
    /// predictions that need them.
    SetRunLabels(RunId, LabelSet),
    /// Deletes a run with its predictions and the verdicts on them.
    DeleteRun(RunId),
    /// Predictions of one run, or why there is none. They replace earlier ones of the same images.
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
    /// An empty text takes the note away.
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

/// The prediction of a run for one sample.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplePrediction {
    pub sample: SampleUri,
    /// The file that was predicted; another size or time means that the prediction is out of date.
    pub stamp: FileStamp,
    /// The prediction, or why there is none.
    pub result: Result<Prediction, String>,
}

impl SamplePrediction {
    /// Whether it is about this state of the file, as far as anybody knows.
    pub fn is_of(&self, file: &FileStamp) -> bool {
        self.stamp.is_of(file)
    }
}
