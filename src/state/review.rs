//! Commands, effects and events about searching, comparing and judging.

use crate::domain::{Saliency, SampleSet};
use crate::evaluation::Agreement;
use crate::review::{
    ArrangeRequest, Arrangement, FilmBox, FilmFrame, FilmOrder, FilmRequest, Sort, Statistics, Suppressed,
};
use crate::state::{
    Arc, CanvasView, CompareLayout, CompareRequest, CropRequest, ExplainRequest, Failure, Pace, RequestId, RunId,
    SampleId, SourceId, TaskId, Ticket, Verdict, ViewChange,
};

/// Commands about searching, comparing and judging.
#[derive(Debug, Clone, PartialEq)]
pub enum ReviewCommand {
    /// Changes the text in the search field.
    SetQuery(String),
    /// Shows the first image that the search finds.
    ShowFirstFound,
    SetSort(Sort),
    SetCanvas(CanvasView),
    SelectBox(Option<usize>),
    /// Shows one sample with one of its boxes selected.
    ShowBox(SampleId, FilmBox),
    /// Opens the strip with all boxes of a class, or shows this class in it.
    OpenFilmstrip(u32),
    SetFilmOrder(FilmOrder),
    /// `None` for all classes that a search about the ground truth finds.
    SetFilmClass(Option<u32>),
    /// The boxes of the strip on screen that have no pixels yet, most urgent first. Replaces the earlier request.
    LoadCrops(Vec<FilmFrame>),
    /// The class of a classifier that “Explain” is about; `None` is the top class.
    SelectClass(Option<u32>),
    HideExplanation,
    /// `0.0..=1.0`
    SetExplanationOpacity(f32),
    /// Holds the predictions of the run on screen against those of this one.
    Compare(RunId),
    /// Compares again with the current filters.
    CompareAgain,
    /// Changes the minimum scores of both runs, and compares again.
    SetComparedScores([f32; 2]),
    SetCompareLayout(CompareLayout),
    StopComparing,
    /// Begins or ends presentation mode.
    Present(bool),
    /// Whether images follow each other by themselves.
    PlaySlides(bool),
    SetSlideSecs(f32),
    /// Sets a verdict on the selected box, or else on every selected image; `None` clears it.
    /// Many images are judged only after a question.
    SetVerdict(Option<Verdict>),
    /// Yes, that many.
    ConfirmMassVerdict,
    /// Replaces the note of these images; an empty text takes it away.
    SetNote {
        samples: SampleSet,
        text: String,
    },
    /// Adds a tag to every selected image.
    AddTag(String),
    /// Removes a tag from every selected image.
    RemoveTag(String),
    ChangeView(ViewChange),
    SetThumbnailSide(f32),
}

/// Effects about searching, comparing and judging.
#[derive(Debug, Clone)]
pub enum ReviewEffect {
    /// Gather all boxes of a class. A newer request takes the place of one before.
    GatherFilmstrip { id: RequestId, what: Box<FilmRequest> },
    /// Cut boxes out of their images, most urgent first; replaces the earlier request.
    MakeCrops { source: SourceId, run: RunId, requested: Vec<CropRequest> },
    /// Find out which parts of an image carry a prediction.
    Explain { request: ExplainRequest, ticket: Ticket },
    /// Compare the predictions of two runs, left and right, image by image.
    Compare { request: CompareRequest, ticket: Ticket },
    /// Search, sort and count. Replaces the earlier request.
    Arrange {
        id: RequestId,
        pace: Pace,
        /// The run whose predictions are in the request: the positions of their boxes are in the project.
        run: Option<(SourceId, RunId)>,
        request: Box<ArrangeRequest>,
    },
}

/// Events about searching, comparing and judging.
#[derive(Debug)]
pub enum ReviewEvent {
    /// Two runs were held against each other, or why not.
    Compared {
        task: TaskId,
        result: Result<Agreement, Failure>,
    },
    /// The parts of the shown image that a prediction depends on, or why that is not known.
    Explained {
        task: TaskId,
        result: Result<Arc<Saliency>, Failure>,
    },
    /// All boxes of the class that the open strip shows.
    FilmstripGathered {
        id: RequestId,
        frames: Vec<FilmFrame>,
    },
    /// The requested order.
    Arranged {
        id: RequestId,
        arrangement: Arrangement,
        /// The boxes that are hidden by better ones, if the view hides any.
        suppressed: Option<Suppressed>,
    },
    /// The statistics of the order, which come last; `None` if there is no run.
    Counted {
        id: RequestId,
        statistics: Option<Statistics>,
    },
    ArrangeFailed {
        id: RequestId,
        reason: String,
    },
}
