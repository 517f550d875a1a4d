//! The dialog about an export, and what came of the last one.

use std::path::PathBuf;

use super::State;
use crate::domain::{ComparisonFormat, ExportFormat, ExportOptions, SampleId};

/// What is chosen in the dialog; kept for the next time it is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportDraft {
    pub options: ExportOptions,
    pub scope: ExportScope,
    /// In the dialog about the comparison of two runs.
    pub comparison: ComparisonFormat,
    /// Chosen in a file dialog; the path field takes it over once.
    pub picked: Option<PathBuf>,
}

impl Default for ExportDraft {
    fn default() -> Self {
        Self {
            options: ExportOptions::of_format(ExportFormat::Coco),
            scope: ExportScope::Filter,
            comparison: ComparisonFormat::default(),
            picked: None,
        }
    }
}

/// Which images are exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportScope {
    /// What the search shows, in its order.
    Filter,
    Selection,
    All,
}

impl ExportScope {
    pub const ALL: [Self; 3] = [Self::Filter, Self::Selection, Self::All];

    /// The name on screen.
    pub fn name(self) -> &'static str {
        match self {
            Self::Filter => "Images on screen",
            Self::Selection => "Selected images",
            Self::All => "All images",
        }
    }

    /// How many images that is; costs nothing.
    pub fn len(self, state: &State) -> usize {
        match self {
            Self::Filter => state.order().len(),
            Self::Selection => state.selection.selected().len(),
            Self::All => state.samples.len(),
        }
    }

    pub(super) fn ids(self, state: &State) -> Vec<SampleId> {
        match self {
            Self::Filter => state.order().ids().collect(),
            Self::Selection => state.selection.selected().iter().collect(),
            Self::All => state.samples.ids().collect(),
        }
    }
}

/// An export that is whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// The file or folder.
    pub path: PathBuf,
    /// “100 images and 532 boxes written: …”
    pub summary: String,
    /// What was left out, renamed or could not be read.
    pub notes: Vec<String>,
}
