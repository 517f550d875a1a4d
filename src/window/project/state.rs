//! The project file of the open source, as far as the window knows it.

use std::path::PathBuf;

use crate::domain::{Change, JudgedSample, RunId, RunInfo};
use crate::window::state::{
    Failure, MergeCommand, MergeEffect, MergeEvent, Prediction, PredictionRequest, SampleId, SourceId, StoredRow,
    TaskId, Ticket,
};

#[derive(Debug, Clone, PartialEq)]
pub enum ProjectCommand {
    /// The samples whose complete predictions are shown, most urgent first. Replaces the previous request.
    LoadPredictions(Vec<SampleId>),
    /// Shows the predictions of another run.
    SwitchRun(RunId),
    RenameRun(RunId, String),
    /// Deletes a run with its predictions and the verdicts on them.
    DeleteRun(RunId),
    SaveAs(PathBuf),
    /// Opens a copy without verdicts in this file, for a second reviewer.
    StartSecondPass(PathBuf),
    /// Changes the folder of the open project's images to this one.
    Move(PathBuf),
    Merge(MergeCommand),
}

#[derive(Debug, Clone)]
pub enum ProjectEffect {
    /// Write changes to the project of the source.
    Save {
        source: SourceId,
        /// Returned when the changes are on disk.
        ticket: u64,
        changes: Vec<Change>,
    },
    /// Read the summary of a run's predictions.
    LoadRun {
        source: SourceId,
        run: RunId,
        ticket: Ticket,
    },
    /// Read complete predictions, most urgent first. Replaces the previous request.
    LoadPredictions {
        source: SourceId,
        requested: Vec<PredictionRequest>,
    },
    /// Continue with a copy of the project in this file.
    SaveAs {
        source: SourceId,
        path: PathBuf,
    },
    /// Write a copy of the project without verdicts to this file, and open it.
    StartSecondPass {
        source: SourceId,
        path: PathBuf,
        ticket: Ticket,
    },
    /// Change the folder of the project's images and reopen the project.
    Move {
        source: SourceId,
        folder: PathBuf,
    },
    Merge(MergeEffect),
}

#[derive(Debug)]
pub enum ProjectEvent {
    /// The project of the source, with its content except the predictions.
    Opened {
        source: SourceId,
        content: Box<ProjectContent>,
    },
    /// Everything up to this ticket is on disk.
    Saved {
        source: SourceId,
        up_to: u64,
    },
    /// The changes could not be saved; they are kept and saved later.
    SaveFailed {
        source: SourceId,
        reason: String,
    },
    /// A part of a run's summary, read from the project.
    RunLoaded {
        source: SourceId,
        run: RunId,
        predictions: Vec<StoredRow>,
    },
    RunLoadingEnded {
        source: SourceId,
        run: RunId,
        task: TaskId,
        result: Result<(), String>,
    },
    /// Complete predictions, read from the project; `None` for those it does not have.
    PredictionsLoaded {
        source: SourceId,
        predictions: Vec<(RunId, SampleId, Option<Prediction>)>,
    },
    /// The project continues in another file, where this run id and all later ones are unused.
    SavedAs {
        source: SourceId,
        result: Result<(PathBuf, RunId), String>,
    },
    Merge(MergeEvent),
    /// The copy of the project for a second pass is complete, or was canceled.
    SecondPassWritten {
        source: SourceId,
        task: TaskId,
        result: Result<PathBuf, Failure>,
    },
}

/// The file with predictions and verdicts, and its saving progress.
#[derive(Debug, Default)]
pub struct Project {
    pub status: ProjectStatus,
    /// `None` if nothing is written to a file.
    pub path: Option<PathBuf>,
    /// Whether the verdicts of a first reviewer were removed.
    pub is_second_pass: bool,
    /// While the window asks for the reviewer: the verdicts since then, to be saved again with the name.
    pub unnamed: Option<Vec<Change>>,
    /// Why the last changes could not be saved, and whether saving is retried.
    pub trouble: Option<String>,
    /// Prediction tasks that are paused until their predictions can be saved again.
    pub(crate) held_back: Vec<TaskId>,
    /// The ticket of the last change.
    ticket: u64,
    /// The ticket of the last saved change.
    saved_up_to: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ProjectStatus {
    #[default]
    Closed,
    Opening,
    Writable,
    /// The project cannot be changed: another program has it open, or its folder is read-only.
    ReadOnly {
        reason: String,
    },
    /// No file can be written, so everything is lost when the window closes.
    InMemory {
        reason: String,
    },
}

/// The content of a project when it is opened; predictions are read later.
#[derive(Debug, Clone, PartialEq)]
pub struct ProjectContent {
    pub path: Option<PathBuf>,
    pub status: ProjectStatus,
    pub runs: Vec<RunInfo>,
    /// No run has or had this id or a later one, including deleted runs.
    pub next_run: RunId,
    pub judgments: Vec<JudgedSample>,
    /// The view settings by name, as JSON.
    pub views: Vec<(String, String)>,
    /// Notes for the user, for example that a damaged file was moved aside.
    pub notes: Vec<String>,
}

impl Project {
    /// Checks whether the project can be changed.
    ///
    /// # Errors
    /// Why not, and what to do.
    pub fn check_writable(&self) -> Result<(), &'static str> {
        match &self.status {
            ProjectStatus::Closed => Err("Open a folder first"),
            ProjectStatus::Opening => Err("The project is still being opened"),
            ProjectStatus::Writable | ProjectStatus::InMemory { .. } => Ok(()),
            ProjectStatus::ReadOnly { .. } => {
                Err("This project is read-only; “Save project as…” makes a copy to work on")
            }
        }
    }

    /// Like [`Project::check_writable`], for changes that can wait until the project is open.
    pub fn check_soon_writable(&self) -> Result<(), &'static str> {
        match self.status {
            ProjectStatus::Opening => Ok(()),
            _ => self.check_writable(),
        }
    }

    pub fn is_writable(&self) -> bool {
        self.check_writable().is_ok()
    }

    /// Whether the change with this ticket is on disk.
    pub fn is_saved(&self, ticket: u64) -> bool {
        ticket <= self.saved_up_to
    }

    /// The number of changes that are not on disk yet.
    pub fn unsaved(&self) -> u64 {
        self.ticket - self.saved_up_to
    }

    pub(crate) fn next_ticket(&mut self) -> u64 {
        self.ticket += 1;
        self.ticket
    }

    pub(crate) fn set_saved(&mut self, up_to: u64) {
        self.saved_up_to = self.saved_up_to.max(up_to.min(self.ticket));
        self.trouble = None;
    }

    /// Resets the project for another source. Tickets continue, so that late events about the previous project are
    /// ignored.
    pub(crate) fn reopen(&mut self) {
        *self =
            Self { status: ProjectStatus::Opening, ticket: self.ticket, saved_up_to: self.ticket, ..Self::default() };
    }
}
