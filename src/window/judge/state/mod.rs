//! Commands, effects and events about comparing and judging.

pub(crate) mod edges;
pub(crate) mod judgments;
pub(crate) mod spot_check;

use std::collections::HashMap;

use self::edges::Edges;
use self::spot_check::{SampleDesign, SampleRequest};
use crate::domain::{BoundingBox, RunInfo, Saliency, SampleSet, SampleUri, ViewSettings};
use crate::evaluation::Agreement;
use crate::project::export::options::ExportFormat;
use crate::review::{FilmBox, FilmFrame, FilmOrder, FilmRequest, LoadedSample, Outcomes, ReviewReport, SuspectOrder};
use crate::window::state::{
    Arc, CanvasView, CompareLayout, CompareRequest, CropRequest, ExplainRequest, Failure, RequestId, RunId, SampleId,
    SourceId, TaskId, Ticket, Verdict, ViewChange, ViewNumber,
};

#[derive(Debug, Clone, PartialEq)]
pub enum ReviewCommand {
    SetCanvas(CanvasView),
    SelectBox(Option<usize>),
    /// Selects an undetected object of the shown image by its index in the ground truth.
    SelectObject(usize),
    /// Adds a box of the filmstrip to the selected ones or removes it, or selects all up to it.
    SelectCrop {
        sample: SampleId,
        shows: FilmBox,
        extends: bool,
    },
    /// Shows one sample with one of its boxes selected.
    ShowBox(SampleId, FilmBox),
    /// Opens the strip with all boxes of a class, or switches it to this class.
    OpenFilmstrip(u32),
    SetFilmOrder(FilmOrder),
    SetSuspectOrder(SuspectOrder),
    /// `None` for all classes found by a search about the ground truth.
    SetFilmClass(Option<u32>),
    /// The boxes of the strip on screen that have no pixels yet, most urgent first. Replaces the previous request.
    LoadCrops(Vec<FilmFrame>),
    /// The class of a classifier that “Explain” refers to; `None` is the top class.
    SelectClass(Option<u32>),
    HideExplanation,
    /// Compares the predictions of the run on screen with those of this one.
    Compare(RunId),
    /// Compares again with the current filters.
    CompareAgain,
    /// Changes the minimum scores of both runs, and compares again.
    SetComparedScores([f32; 2]),
    /// Searches for images with this word about the comparison, or removes it from the search.
    ShowChanged(String),
    SetCompareLayout(CompareLayout),
    StopComparing,
    EndPresentation,
    /// Whether images advance automatically.
    PlaySlides(bool),
    /// Sets a verdict on the selected box, or else on every selected image; `None` clears it. Asks before judging many
    /// images.
    SetVerdict(Option<Verdict>),
    /// The user drew a box, in pixels of the upright image.
    DrawBox(BoundingBox),
    /// The user moved the edges of the selected box.
    MoveBox(BoundingBox),
    /// Moves edges of the selected box by pixels of the upright image, right and down.
    NudgeBox {
        by: [f32; 2],
        edges: Edges,
    },
    /// The class of the box that was drawn, or the right class of the selected box or the selected images.
    ChooseClass(String),
    /// Lets a digit from 1 to 9 choose a class, or frees it if it does already.
    ToggleClassDigit {
        digit: u8,
        class: String,
    },
    /// Frees all digits.
    ResetClassDigits,
    /// The name that is saved with verdicts; empty for none.
    SetReviewer(String),
    /// Answers the question for the reviewer: verdicts since then get the name, if there is one.
    NameReviewer,
    /// Draws a sample of the run on screen, and begins to judge it.
    DrawSample(SampleDesign),
    /// Judges the sample of the run on screen.
    JudgeSample,
    /// Sets the precision whose minimum score the review report shows.
    SetTargetPrecision(f64),
    /// Opens the export dialog with this format.
    Export(ExportFormat),
    /// Confirms the verdict for many images.
    ConfirmMassVerdict,
    /// Replaces the note of these images; an empty text removes it.
    SetNote {
        samples: SampleSet,
        text: String,
    },
    AddTag(String),
    RemoveTag(String),
    ChangeView(ViewChange),
    /// Changes the minimum scores of all runs on screen by this number of steps.
    StepMinScore(f32),
    /// Out of range, the nearest possible value.
    SetNumber(ViewNumber, f32),
}

#[derive(Debug, Clone)]
pub enum ReviewEffect {
    /// Gather all boxes of a class. A newer request replaces the previous one.
    GatherFilmstrip { id: RequestId, what: Box<FilmRequest> },
    /// Crop boxes from their images, most urgent first; replaces the previous request.
    MakeCrops { source: SourceId, run: RunId, requested: Vec<CropRequest> },
    /// Determine which parts of an image a prediction depends on.
    Explain { request: ExplainRequest, ticket: Ticket },
    /// Compute what the verdicts say about a run.
    Report { request: Box<ReportOfRun>, ticket: Ticket },
    /// Draw or read the sample of a run.
    Sample { request: Box<SampleRequest>, ticket: Ticket },
    /// Compare the predictions of two runs, left and right, image by image.
    Compare { request: CompareRequest, ticket: Ticket },
}

/// A run whose verdicts are to be summarized.
#[derive(Debug, Clone)]
pub struct ReportOfRun {
    pub source: SourceId,
    pub run: RunInfo,
    /// The filters on screen: they decide which boxes are judged, unless the run has a sample.
    pub view: ViewSettings,
    /// The outcomes of the boxes against ground truth, and the ids of the judged samples.
    pub truth: Option<(Arc<Outcomes>, HashMap<SampleUri, SampleId>)>,
}

#[derive(Debug)]
pub enum ReviewEvent {
    /// What the verdicts say about a run.
    Reported(TaskId, Result<Box<ReviewReport>, Failure>),
    /// The sample of a run.
    SampleLoaded(TaskId, Result<Box<LoadedSample>, Failure>),
    /// The result of comparing two runs.
    Compared(TaskId, Result<Agreement, Failure>),
    /// The parts of the shown image that a prediction depends on, or why they are unknown.
    Explained(TaskId, Result<Arc<Saliency>, Failure>),
    /// All boxes of the class in the open strip.
    FilmstripGathered { id: RequestId, frames: Vec<FilmFrame> },
}
