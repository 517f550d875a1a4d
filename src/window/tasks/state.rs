//! The running tasks and the last finished ones.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::domain::{RunId, SampleId, SampleSet, grouped};
use crate::tasks::TaskControl;
use crate::window::predict::state::RuntimeKind;

const MAX_FINISHED: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId(pub u64);

/// The handle of a background task: the id for its result, its progress, and its cancellation.
#[derive(Debug, Clone)]
pub struct Ticket {
    pub id: TaskId,
    pub control: TaskControl,
}

pub struct TaskEntry {
    pub id: TaskId,
    pub kind: TaskKind,
    /// “Predict 812 images with ResNet-50”.
    pub title: String,
    pub control: TaskControl,
}

impl TaskEntry {
    /// What happens to a long task if the program ends now; `None` if no warning is needed.
    pub fn unfinished_text(&self) -> Option<String> {
        let title = &self.title;
        let progress = self.control.progress();
        match self.kind {
            TaskKind::Predict { .. } => Some(format!(
                "{title}: {} of {} images are predicted and saved. Choose “Predict all” later to predict the others",
                grouped(progress.done as usize),
                grouped(progress.total.unwrap_or_default() as usize)
            )),
            TaskKind::Upload => Some(format!("{title} is not finished. To resume it, upload the same images again")),
            TaskKind::Export => Some(format!("{title} is not finished. Nothing will be written")),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskKind {
    List,
    Predict {
        run: RunId,
        samples: SampleSet,
    },
    /// Finding or installing ONNX Runtime and loading a model.
    Prepare,
    /// Determining the response format of a remote model.
    Connect,
    /// Predicting one image with a remote model.
    RemotePrediction {
        run: RunId,
        sample: SampleId,
    },
    /// Checking whether a remote model is available.
    CheckRemoteModel,
    /// Reading the predictions of a run from the project.
    LoadRun {
        run: RunId,
    },
    InstallRuntime(RuntimeKind),
    /// Requesting the identity for S3.
    SignIn,
    /// Browsing buckets for a location to open.
    Browse,
    /// Reading EXIF data for a search or sort order.
    ReadCaptures,
    /// Finding similar images or boxes.
    FindAlike,
    FindDuplicates,
    /// Computing what images are sorted by.
    Measure,
    /// Comparing two runs.
    Compare,
    /// Summarizing the verdicts on a run.
    ReviewReport,
    /// Reading ground truth.
    ReadTruth,
    /// Placing images by their embeddings.
    Map,
    /// Evaluating a run against ground truth.
    Evaluate,
    /// Determining which parts of an image a prediction depends on.
    Explain,
    /// Writing predictions and verdicts for other tools.
    Export,
    PlanUpload,
    /// Sending files to S3.
    Upload,
    /// Checking a planned job for problems.
    CheckJob,
    /// Testing a job on this computer.
    Rehearse,
    /// Packing and uploading what a job needs, and starting it.
    StartJob,
    /// Reading outputs of remote jobs, or predictions from other tools.
    ReadOutputs,
    /// Identifying what was dropped on the window.
    LookAtDropped,
    WatchJob,
    /// A short task about jobs: listing, stopping, cleaning up.
    Jobs,
    /// A task about endpoints: listing, watching, deploying, deleting.
    Endpoints,
    /// Running a model with common ways to prepare images.
    TryPresets,
    /// Downloading a model.
    Fetch {
        model_id: String,
    },
}

impl TaskEntry {
    /// Whether pausing is useful to the user.
    pub fn can_pause(&self) -> bool {
        matches!(self.kind, TaskKind::Predict { .. })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskOutcome {
    /// A summary for display: “812 images in 41 s”.
    Done(String),
    Cancelled,
    Failed(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedTask {
    pub id: TaskId,
    pub kind: TaskKind,
    pub title: String,
    pub outcome: TaskOutcome,
    /// The time worked, without pauses.
    pub elapsed: Duration,
}

#[derive(Default)]
pub struct TaskList {
    running: Vec<TaskEntry>,
    finished: Vec<FinishedTask>,
    /// Failures that are hidden where the task was started.
    dismissed: BTreeSet<TaskId>,
}

impl TaskList {
    /// Oldest first.
    pub fn running(&self) -> &[TaskEntry] {
        &self.running
    }

    /// Newest first.
    pub fn finished(&self) -> impl Iterator<Item = &FinishedTask> {
        self.finished.iter().rev()
    }

    pub fn is_idle(&self) -> bool {
        self.running.is_empty()
    }

    pub fn get(&self, id: TaskId) -> Option<&TaskEntry> {
        self.running.iter().find(|task| task.id == id)
    }

    /// Whether this model is being downloaded.
    pub fn fetches(&self, model_id: &str) -> bool {
        self.running.iter().any(|task| matches!(&task.kind, TaskKind::Fetch { model_id: id } if id == model_id))
    }

    /// Whether ONNX Runtime is being installed.
    pub fn installs_runtime(&self) -> bool {
        let is_it = |task: &TaskEntry| matches!(task.kind, TaskKind::InstallRuntime(_));
        self.running.iter().any(is_it)
    }

    /// The last task of a kind, if it failed and was not dismissed, and the reason.
    pub fn failure(&self, is_it: impl Fn(&TaskKind) -> bool) -> Option<(&TaskKind, &str)> {
        if self.running.iter().any(|task| is_it(&task.kind)) {
            return None;
        }
        let last = self.finished().find(|task| is_it(&task.kind))?;
        if self.dismissed.contains(&last.id) {
            return None;
        }
        match &last.outcome {
            TaskOutcome::Failed(why) => Some((&last.kind, why)),
            TaskOutcome::Done(_) | TaskOutcome::Cancelled => None,
        }
    }

    /// Why the last download of this model failed.
    pub fn fetch_failure(&self, model_id: &str) -> Option<&str> {
        let is_it = |kind: &TaskKind| matches!(kind, TaskKind::Fetch { model_id: id } if id == model_id);
        self.failure(is_it).map(|(_, why)| why)
    }

    /// Whether a task predicts this image for this run.
    pub(crate) fn predicts(&self, run: RunId, sample: SampleId) -> bool {
        self.running.iter().any(|task| match &task.kind {
            TaskKind::RemotePrediction { run: of, sample: about } => (*of, *about) == (run, sample),
            TaskKind::Predict { run: of, samples } => *of == run && samples.contains(sample),
            _ => false,
        })
    }

    pub fn prediction_is_running(&self) -> bool {
        self.running.iter().any(|task| matches!(task.kind, TaskKind::Predict { .. }))
    }

    pub(crate) fn start(&mut self, task: TaskEntry) {
        self.running.push(task);
    }

    /// Removes a task from the running ones; `None` if it is not among them.
    pub(crate) fn end(&mut self, id: TaskId, outcome: TaskOutcome) -> Option<TaskEntry> {
        let position = self.running.iter().position(|task| task.id == id)?;
        let task = self.running.remove(position);
        self.finished.push(FinishedTask {
            id,
            kind: task.kind.clone(),
            title: task.title.clone(),
            outcome,
            elapsed: task.control.progress().elapsed,
        });
        if self.finished.len() > MAX_FINISHED {
            self.finished.remove(0);
        }
        Some(task)
    }

    /// Removes a task without a trace, because a successful listing is not worth an entry.
    pub(crate) fn forget(&mut self, id: TaskId) {
        self.running.retain(|task| task.id != id);
    }

    /// Hides the failed tasks of a kind except in the task list.
    pub(crate) fn dismiss(&mut self, is_it: impl Fn(&TaskKind) -> bool) {
        let ended = self.finished.iter().filter(|task| is_it(&task.kind));
        self.dismissed.extend(ended.map(|task| task.id));
    }

    pub(crate) fn clear_finished(&mut self) {
        self.finished.clear();
    }
}
