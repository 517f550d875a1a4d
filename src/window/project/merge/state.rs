//! Merging the verdicts of another person's project into a copy of the open one.

use std::path::PathBuf;

use crate::domain::{Pair, Prefer, RunInfo};
use crate::review::Kappa;
use crate::window::state::{Failure, Loadable, SourceId, TaskId, Ticket};

#[derive(Debug, Clone, PartialEq)]
pub enum MergeCommand {
    /// Compares the verdicts of this project with those of the open one.
    Compare(PathBuf),
    /// Shows another conflict.
    Go(usize),
    /// Decides the conflict on screen and shows the next undecided one.
    Decide(Prefer),
    /// Chooses the file of the merged project.
    PickTarget,
    /// Writes the merged project to this file, and opens it.
    Save(PathBuf),
}

#[derive(Debug, Clone)]
pub enum MergeEffect {
    Compare { request: MergeRequest, ticket: Ticket },
    Save { request: MergeRequest, choices: Vec<(Pair, Prefer)>, target: PathBuf, ticket: Ticket },
}

#[derive(Debug)]
pub enum MergeEvent {
    Compared(TaskId, Result<MergeFindings, Failure>),
    Saved(TaskId, Result<PathBuf, Failure>),
}

#[derive(Debug, Clone)]
pub struct MergeRequest {
    pub source: SourceId,
    /// The run on screen.
    pub run: Box<RunInfo>,
    /// The other person's project.
    pub other: PathBuf,
}

/// What the two projects have in common, and where they differ.
#[derive(Debug, Clone)]
pub struct MergeFindings {
    /// Verdicts that only the other project has.
    pub added: usize,
    /// What both have judged.
    pub pairs: usize,
    pub conflicts: Vec<Pair>,
    /// Of all pairs.
    pub kappa: Kappa,
    /// `None` for the images of a detector.
    pub classes: Vec<(Option<String>, Kappa)>,
    pub notes: Vec<String>,
}

/// A merge, while its dialog is open.
#[derive(Debug)]
pub struct Merging {
    pub request: MergeRequest,
    pub findings: Loadable<MergeFindings>,
    /// The decision on each conflict.
    pub choices: Vec<Option<Prefer>>,
    /// The conflict on screen.
    pub current: usize,
    pub saving: Loadable<PathBuf>,
}

impl Merging {
    pub fn conflicts(&self) -> &[Pair] {
        self.findings.ready().map_or(&[], |found| &found.conflicts)
    }

    /// The number of conflicts without a decision.
    pub fn undecided(&self) -> usize {
        self.choices.iter().filter(|choice| choice.is_none()).count()
    }

    /// The next conflict without a decision, around the end of the list.
    pub(crate) fn next_undecided(&self) -> Option<usize> {
        let count = self.choices.len();
        (1..=count).map(|step| (self.current + step) % count).find(|at| self.choices[*at].is_none())
    }

    /// The decisions; undecided conflicts become unjudged.
    pub(crate) fn decisions(&self) -> Vec<(Pair, Prefer)> {
        let choices = self.choices.iter().map(|choice| choice.unwrap_or(Prefer::None));
        self.conflicts().iter().cloned().zip(choices).collect()
    }

    /// The file name of the other project.
    pub fn name(&self) -> String {
        let name = self.request.other.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }
}
