//! The export dialogs and the result of the last export.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use strum::{IntoStaticStr, VariantArray};

use crate::domain::{Location, RunId, RunInfo, Sample, SampleId, SampleSet, SampleUri, SharedList, ViewSettings};
use crate::evaluation::Evaluated;
use crate::project::export::options::{
    ComparisonFormat, EmbeddedPart, EvaluationFormat, ExportFormat, ExportOptions, VerdictChoice,
};
use crate::review::{Marks, Outcomes, Predictions, Suppressed};
use crate::window::state::{
    Derived, EvaluateRequest, Failure, Loadable, Order, Overlay, RequestId, SourceId, State, TaskId, Ticket,
};

#[derive(Debug, Clone, PartialEq)]
pub enum ExportCommand {
    /// Changes the choices in the export dialog.
    Set(ExportOptions, ExportScope),
    /// Chooses whose embeddings are exported; `None` exports predictions.
    SetEmbeddings(Option<EmbeddedPart>),
    SetComparisonFormat(ComparisonFormat),
    SetEvaluationFormat(EvaluationFormat),
    /// Chooses the target of the open export dialog.
    PickTarget,
    /// Exports what the open dialog is for: the predictions or the evaluation of the run on screen, or the comparison.
    Start {
        path: PathBuf,
        /// Whether to replace an existing file or folder of this name.
        replaces: bool,
    },
    Dismiss,
}

#[derive(Debug, Clone)]
pub enum ExportEffect {
    /// Write what the project contains for these samples, in this order.
    Start {
        request: Box<ExportRequest>,
        ticket: Ticket,
    },
    /// Write a run's embeddings.
    StartEmbeddings {
        request: Box<ExportEmbeddingsRequest>,
        ticket: Ticket,
    },
    /// Write the agreement of two runs, left and right, over these samples.
    StartComparison {
        request: ExportComparisonRequest,
        ticket: Ticket,
    },
    /// Measure a run and write the metrics.
    StartEvaluation {
        request: Box<ExportEvaluationRequest>,
        ticket: Ticket,
    },
    /// Write what a review changed in ground truth.
    StartChanges {
        request: Box<ExportChangesRequest>,
        ticket: Ticket,
    },
    CountBoxes {
        id: RequestId,
        what: Box<BoxCountRequest>,
    },
}

#[derive(Debug)]
pub enum ExportEvent {
    Ended(TaskId, Result<Exported, Failure>),
    /// The number of boxes available for export; `None` if counting failed.
    BoxesCounted {
        id: RequestId,
        counts: Option<BoxCounts>,
    },
}

/// The choices in the dialog; kept for the next time it opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportDraft {
    pub options: ExportOptions,
    /// The user's choice of verdicts, if there is one.
    pub chosen_verdicts: Option<VerdictChoice>,
    pub scope: ExportScope,
    /// Exports these embeddings instead of predictions.
    pub embeddings: Option<EmbeddedPart>,
    /// The choice in the dialog that exports a comparison.
    pub comparison: ComparisonFormat,
    /// The choice in the dialog that exports an evaluation.
    pub evaluation: EvaluationFormat,
    /// The path from a file dialog; the path field takes it once.
    pub picked: Option<PathBuf>,
    /// The confirmed export; the dialog stays open until it is done.
    pub stage: Loadable<()>,
}

/// A file or folder to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportFile {
    pub path: PathBuf,
    /// Whether to replace an existing file or folder of this name.
    pub replaces: bool,
}

/// An export of these samples of the project, in this order.
#[derive(Debug, Clone)]
pub struct ExportRequest {
    pub source: SourceId,
    pub source_name: String,
    pub run: Box<RunInfo>,
    pub view: ViewSettings,
    pub options: ExportOptions,
    pub samples: Vec<Sample>,
    /// The evaluation to measure for the report.
    pub evaluation: Option<EvaluateRequest>,
    /// The outcomes of the boxes against ground truth, and the ids of the samples.
    pub truth: Option<(Arc<Outcomes>, HashMap<SampleUri, SampleId>)>,
    /// As in [`State`](crate::window::state::State).
    pub target_precision: f64,
    pub target: ExportFile,
}

/// An export of all embeddings of a run.
#[derive(Debug, Clone)]
pub struct ExportEmbeddingsRequest {
    pub source: SourceId,
    pub run: Box<RunInfo>,
    pub part: EmbeddedPart,
    /// The images with their present versions.
    pub samples: SharedList<Sample>,
    /// The library that the user chose.
    pub runtime_library: Option<PathBuf>,
    pub target: ExportFile,
}

/// A comparison to export: the agreement of two runs, left and right, over these samples.
#[derive(Debug, Clone)]
pub struct ExportComparisonRequest {
    pub source: SourceId,
    pub source_name: String,
    pub runs: Box<[RunInfo; 2]>,
    pub views: Box<[ViewSettings; 2]>,
    pub samples: SharedList<Sample>,
    /// Both runs against the ground truth, if it is open.
    pub evaluated: Option<[Arc<Evaluated>; 2]>,
    pub format: ComparisonFormat,
    pub target: ExportFile,
}

#[derive(Debug, Clone)]
pub struct ExportEvaluationRequest {
    pub evaluation: EvaluateRequest,
    pub format: EvaluationFormat,
    pub target: ExportFile,
}

#[derive(Debug, Clone)]
pub struct ExportChangesRequest {
    pub source: SourceId,
    pub run: Box<RunInfo>,
    /// The ground truth that the run was opened from, and its split.
    pub truth: (Location, Option<String>),
    pub target: ExportFile,
}

impl Default for ExportDraft {
    fn default() -> Self {
        Self {
            options: ExportOptions::for_format(ExportFormat::Coco),
            chosen_verdicts: None,
            scope: ExportScope::Filter,
            embeddings: None,
            comparison: ComparisonFormat::default(),
            evaluation: EvaluationFormat::default(),
            picked: None,
            stage: Loadable::NotLoaded,
        }
    }
}

impl State {
    /// The default folder of the open dialog: next to the source, or else the home folder.
    pub fn suggested_export(&self) -> PathBuf {
        let (what, extension) = self.export_kind();
        let path = self.location().and_then(Location::path);
        let stem = self.source_stem();
        let ending = extension.map_or_else(String::new, |extension| format!(".{extension}"));
        let folder = path.and_then(Path::parent).unwrap_or(Path::new("~"));
        folder.join(format!("{stem}-{what}{ending}"))
    }

    /// The extension of the file that the open dialog writes; `None` for a folder.
    pub fn export_extension(&self) -> Option<&'static str> {
        self.export_kind().1
    }

    fn export_kind(&self) -> (&'static str, Option<&'static str>) {
        if self.overlay == Overlay::ExportComparison {
            return ("comparison", Some(self.export.comparison.into_str()));
        }
        if self.overlay == Overlay::ExportLabelChanges {
            return ("changes", Some("jsonl"));
        }
        if self.overlay == Overlay::ExportEvaluation {
            let format = self.export.evaluation;
            let what = if format == EvaluationFormat::Plots { "plots" } else { "evaluation" };
            return (what, format.extension());
        }
        if self.export.embeddings.is_some() {
            return ("embeddings", Some("npy"));
        }
        let format = self.export.options.format;
        (format.content_word(), format.extension())
    }

    /// The base for file names: the name of a folder, of a file without its extension, or of a prefix.
    pub(crate) fn source_stem(&self) -> String {
        let name = match self.location() {
            Some(Location::Path(path)) => self.stem_of(path),
            Some(Location::S3(place)) => Some(place.address.last_part().to_owned()),
            None => None,
        };
        let name = name.filter(|name| !name.is_empty());
        name.unwrap_or_else(|| "images".to_owned())
    }

    fn stem_of(&self, path: &Path) -> Option<String> {
        let first = self.samples.ids().next();
        let first = first.and_then(|id| self.samples.get(id));
        let is_file = first.is_some_and(|sample| Path::new(sample.uri.file()) == path);
        let name = if is_file { path.file_stem() } else { path.file_name() };
        Some(name?.to_string_lossy().into_owned())
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(const_into_str)]
pub enum ExportScope {
    /// The images that match the search, in its order.
    #[strum(serialize = "Search results")]
    Filter,
    #[strum(serialize = "Selected images")]
    Selection,
    #[default]
    #[strum(serialize = "All images")]
    All,
}

impl ExportScope {
    /// The number of images; cheap.
    pub fn len(self, state: &State) -> usize {
        match self {
            Self::Filter => state.order().len(),
            Self::Selection => state.selection.selected().len(),
            Self::All => state.samples.len(),
        }
    }

    pub(crate) fn ids(self, state: &State) -> Vec<SampleId> {
        match self {
            Self::Filter => state.order().ids().collect(),
            Self::Selection => state.selection.selected().iter().collect(),
            Self::All => state.samples.ids().collect(),
        }
    }
}

/// The images and filters for counting boxes.
#[derive(Debug, Clone)]
pub struct BoxCountRequest {
    pub predictions: Predictions,
    /// The live filters; `None` counts all stored boxes.
    pub view: Option<ViewSettings>,
    pub suppressed: Option<Suppressed>,
    pub marks: Marks,
    /// Images whose predictions are outdated and not exported.
    pub outdated: SampleSet,
    pub order: Order,
    pub selected: SampleSet,
}

/// The boxes for each choice of images, before verdicts exclude any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoxCounts {
    pub filter: usize,
    pub selection: usize,
    pub all: usize,
}

impl BoxCounts {
    pub fn in_scope(self, scope: ExportScope) -> usize {
        match scope {
            ExportScope::Filter => self.filter,
            ExportScope::Selection => self.selection,
            ExportScope::All => self.all,
        }
    }
}

/// The number of boxes to export, counted while the dialog is open; `None` if counting failed.
pub type BoxCounter = Derived<CountBasis, Option<BoxCounts>>;

/// Everything that the counts depend on.
#[derive(Debug, Clone, PartialEq)]
pub struct CountBasis {
    pub(crate) run: RunId,
    pub(crate) predictions: u64,
    pub(crate) marks: u64,
    pub(crate) view: Option<ViewSettings>,
    /// The revision of the known overlaps.
    pub(crate) hidden: u64,
    pub(crate) outdated: SampleSet,
    pub(crate) order: Order,
    pub(crate) selected: SampleSet,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    pub path: PathBuf,
    /// “100 images and 532 boxes written: …”
    pub summary: String,
    /// Notes about anything skipped, renamed or unreadable.
    pub notes: Vec<String>,
}
