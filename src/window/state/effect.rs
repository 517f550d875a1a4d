//! Work outside the state.

use std::path::PathBuf;
use std::sync::Arc;

use super::queue::areas;
use crate::domain::{BoundingBox, FileStamp, Prediction, RunId, S3Place, Sample, SampleId, SampleUri};
use crate::review::FilmBox;
use crate::tasks::TaskControl;
use crate::window::state::{
    BrowseEffect, EndpointsEffect, EvaluationEffect, ExportEffect, FileRequest, InferenceEffect, JobsEffect,
    ModelsEffect, OutputsEffect, ProjectEffect, ReviewEffect, S3Effect, UploadEffect,
};

/// An effect. `effects` runs them in order.
#[derive(Debug, Clone)]
pub enum Effect {
    Signal(TaskControl, TaskSignal),
    PickFile(FileRequest),
    CopyText {
        text: String,
        notice: String,
    },
    CopyDiagnostics {
        /// A description of the state: device report and recent problems.
        lines: Vec<String>,
    },
    OpenManual,
    OpenLog,
    Restart,
    Quit,
    Jobs(JobsEffect),
    Endpoints(EndpointsEffect),
    Outputs(OutputsEffect),
    Inference(InferenceEffect),
    Models(ModelsEffect),
    S3(S3Effect),
    Export(ExportEffect),
    Upload(UploadEffect),
    Project(ProjectEffect),
    Browse(BrowseEffect),
    Review(ReviewEffect),
    Evaluation(EvaluationEffect),
}

areas!(
    Effect:
        Jobs(JobsEffect),
        Endpoints(EndpointsEffect),
        Outputs(OutputsEffect),
        Inference(InferenceEffect),
        Models(ModelsEffect),
        S3(S3Effect),
        Export(ExportEffect),
        Upload(UploadEffect),
        Project(ProjectEffect),
        Browse(BrowseEffect),
        Review(ReviewEffect),
        Evaluation(EvaluationEffect),
);

/// A prediction to read from the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PredictionRequest {
    pub run: RunId,
    pub sample: SampleId,
    pub uri: SampleUri,
    /// The current state of the file: an outdated prediction does not count. `None` to request outdated ones too.
    pub stamp: Option<FileStamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThumbnailRequest {
    pub sample: SampleId,
    /// The version of the file; returned with the pixels.
    pub version: u32,
    pub entry: Sample,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceSpec {
    Path(PathBuf),
    Paths(Vec<PathBuf>),
    /// The sample images that come with Spotcheck.
    SampleImages,
    S3(S3Place),
    /// A project file: opens the images it was made for.
    Project(PathBuf),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskSignal {
    Pause,
    Resume,
    Cancel,
}

/// A box to crop from its image.
#[derive(Debug, Clone)]
pub struct CropRequest {
    pub sample: SampleId,
    pub shows: FilmBox,
    /// The bounds of a missed object, in pixels of the upright image.
    pub bounds: Option<BoundingBox>,
    pub uri: SampleUri,
    /// The prediction, if it is in memory; otherwise it is read from the project.
    pub prediction: Option<Arc<Prediction>>,
}
