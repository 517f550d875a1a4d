//! The project file of the open source, as far as the window knows it.

use std::path::PathBuf;

use super::TaskId;
use crate::domain::{JudgedSample, RunId, RunInfo};

/// Where answers and verdicts are kept, and how much of it is on the disk.
#[derive(Debug, Default)]
pub struct Project {
    pub status: ProjectStatus,
    /// `None` where nothing is written to a file.
    pub path: Option<PathBuf>,
    /// Why what was last changed could not be saved yet, and whether it is tried again.
    pub trouble: Option<String>,
    /// Predictions that are held until their predictions can be saved again.
    pub(super) held_back: Vec<TaskId>,
    /// Of the change made last.
    ticket: u64,
    /// Of the last change that is on the disk.
    saved_up_to: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ProjectStatus {
    /// Nothing is open.
    #[default]
    Closed,
    Opening,
    Writable,
    /// Nothing can be changed: another program holds it, or its folder cannot be written.
    ReadOnly {
        reason: String,
    },
    /// No file can be written, so everything is lost when the window is closed.
    InMemory {
        reason: String,
    },
}

/// What a project holds when it is opened; answers are read later.
#[derive(Debug, Clone, PartialEq)]
pub struct ProjectContent {
    pub path: Option<PathBuf>,
    pub status: ProjectStatus,
    pub runs: Vec<RunInfo>,
    /// No run has or had this id or a later one, also none that was deleted.
    pub next_run: RunId,
    pub judgements: Vec<JudgedSample>,
    /// How things are looked at, as JSON by name.
    pub views: Vec<(String, String)>,
    /// What a person should know: a damaged file was put aside.
    pub notes: Vec<String>,
}

impl Project {
    /// Whether changes can be made; `Err` says why not and what to do.
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

    /// As [`Project::check_writable`], for what can wait until the project is open.
    pub fn check_soon_writable(&self) -> Result<(), &'static str> {
        match self.status {
            ProjectStatus::Opening => Ok(()),
            _ => self.check_writable(),
        }
    }

    pub fn is_writable(&self) -> bool {
        self.check_writable().is_ok()
    }

    /// Whether the change with this ticket is on the disk.
    pub fn is_saved(&self, ticket: u64) -> bool {
        ticket <= self.saved_up_to
    }

    /// Changes that are not on the disk yet.
    pub fn unsaved(&self) -> u64 {
        self.ticket - self.saved_up_to
    }

    pub(super) fn next_ticket(&mut self) -> u64 {
        self.ticket += 1;
        self.ticket
    }

    pub(super) fn set_saved(&mut self, up_to: u64) {
        self.saved_up_to = self.saved_up_to.max(up_to.min(self.ticket));
        self.trouble = None;
    }

    /// Another source is being opened. Tickets go on, so that a late prediction about the former project means nothing.
    pub(super) fn reopen(&mut self) {
        *self = Self {
            status: ProjectStatus::Opening,
            ticket: self.ticket,
            saved_up_to: self.ticket,
            ..Self::default()
        };
    }
}
