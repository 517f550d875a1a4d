//! The user's commands.

use std::path::PathBuf;

use crate::window::state::queue::{Queue, areas};
use crate::window::state::{
    Action, BrowseCommand, EndpointsCommand, EvaluationCommand, ExportCommand, InferenceCommand, JobsCommand,
    ModelsCommand, OutputsCommand, Overlay, ProjectCommand, ReviewCommand, S3Command, TaskId, TaskSignal,
    UploadCommand,
};

/// A command, sent by panels and at startup.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// The program has started: read the library, and open `source` and `model` if given.
    Start {
        source: Option<PathBuf>,
        model: Option<String>,
    },
    /// The renderer of the window, for diagnostics.
    DrawnBy(String),
    Do(Action),
    /// Copies a terminal command to the clipboard.
    CopyCommand(String),
    SignalTask(TaskId, TaskSignal),
    ClearFinishedTasks,
    Restart,
    SetOverlay(Overlay),
    DismissNotice,
    Jobs(JobsCommand),
    Endpoints(EndpointsCommand),
    Outputs(OutputsCommand),
    Inference(InferenceCommand),
    Models(ModelsCommand),
    S3(S3Command),
    Export(ExportCommand),
    Upload(UploadCommand),
    Project(ProjectCommand),
    Browse(BrowseCommand),
    Review(ReviewCommand),
    Evaluation(EvaluationCommand),
}

areas!(
    Command:
        Jobs(JobsCommand),
        Endpoints(EndpointsCommand),
        Outputs(OutputsCommand),
        Inference(InferenceCommand),
        Models(ModelsCommand),
        S3(S3Command),
        Export(ExportCommand),
        Upload(UploadCommand),
        Project(ProjectCommand),
        Browse(BrowseCommand),
        Review(ReviewCommand),
        Evaluation(EvaluationCommand),
);

/// The commands of a frame, in order.
pub type Commands = Queue<Command>;

impl Command {
    pub const CLOSE_OVERLAY: Self = Self::SetOverlay(Overlay::None);
}

/// A step through the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Moves by this many samples, backward if negative; stops at the ends.
    By(i64),
    /// Like `By`, and selects everything in between.
    ExtendBy(i64),
    First,
    Last,
}

/// A change of the live filters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ViewChange {
    MinScore(f32),
    /// `None` makes the class use the global threshold again.
    ClassMinScore(u32, Option<f32>),
    ShowClass(u32),
    HideClass(u32),
    Solo(Option<u32>),
    NmsIou(Option<f32>),
    TopK(usize),
    MinClassScore(f32),
}

impl From<Action> for Command {
    fn from(action: Action) -> Self {
        Self::Do(action)
    }
}
