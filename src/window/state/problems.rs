//! The list of problems, one line each.

use crate::domain::{Problem, SampleId, SampleSet};

/// Any further problems are only counted: a folder full of broken files must not fill the memory.
const MAX_KEPT: usize = 10_000;

#[derive(Debug, Default)]
pub struct ProblemList {
    entries: Vec<ProblemEntry>,
    dropped: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProblemEntry {
    pub problem: Problem,
    /// The target of a click on the line.
    pub sample: Option<SampleId>,
}

impl ProblemList {
    /// Oldest first.
    pub fn entries(&self) -> &[ProblemEntry] {
        &self.entries
    }

    pub fn len(&self) -> usize {
        self.entries.len() + self.dropped
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The number of problems beyond the limit.
    pub fn dropped(&self) -> usize {
        self.dropped
    }

    pub(crate) fn add(&mut self, problem: Problem, sample: Option<SampleId>) {
        let entry = ProblemEntry { problem, sample };
        // An image that fails to show also fails to predict; one entry is enough. Checking only the latest entries is
        // cheap.
        if self.entries.iter().rev().take(64).any(|known| *known == entry) {
            return;
        }
        if self.entries.len() < MAX_KEPT {
            self.entries.push(entry);
        } else {
            self.dropped += 1;
        }
    }

    pub(crate) fn add_general(&mut self, message: impl Into<String>) {
        self.add(Problem::general(message), None);
    }

    /// Drops entries about changed files.
    pub(crate) fn forget(&mut self, samples: &SampleSet) {
        let is_of_another = |entry: &ProblemEntry| !entry.sample.is_some_and(|id| samples.contains(id));
        self.entries.retain(is_of_another);
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
