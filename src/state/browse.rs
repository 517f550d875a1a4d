//! Commands, effects and events about the open source and its images.

use std::path::PathBuf;
use std::sync::Arc;

use crate::domain::{ListingChange, Page, S3Place, Sample, SampleUri, TileKey};
use crate::review::Outcomes;
use crate::state::{
    AnnotationsPick, CacheUsage, DisplayInfo, FilePick, Prediction, Relisting, SampleId, SourceId, SourceSpec, Step,
    TaskId, ThumbnailRequest, Ticket, ViewSettings,
};

/// Commands about the open source and its images.
#[derive(Debug, Clone, PartialEq)]
pub enum BrowseCommand {
    /// A folder or file of images, a project, or an address in S3.
    Open(PathBuf),
    /// What was typed: any of these, or whatever else may be dropped on the window.
    OpenTyped(PathBuf),
    /// The path that was asked for because no file dialog appeared.
    TypePath(PathBuf),
    CancelPath,
    /// A place in S3, however it is to be reached.
    OpenPlace(Box<S3Place>),
    /// Files and folders dropped on the window.
    Drop(Vec<PathBuf>),
    PickAnnotations(AnnotationsPick),
    /// Shows one sample and selects only it.
    Show(SampleId),
    /// Adds a sample to the selection or takes it away.
    ToggleSelected(SampleId),
    /// Selects everything from the anchor of the selection to this sample.
    ExtendSelection(SampleId),
    /// Deselects all samples except the shown one.
    ClearSelection,
    Walk(Step),
    /// The thumbnails on screen that have no pixels yet, most urgent first. Replaces the earlier request.
    LoadThumbnails {
        /// The longer side in pixels.
        side: u32,
        requested: Vec<SampleId>,
    },
    /// Shows the first image whose name begins with this, or else contains it, or else the image at this position.
    GoTo(String),
    /// The next one after the shown image.
    GoToNext(String),
    /// The limit of the disk cache; zero disables it.
    SetCacheBytes(u64),
    /// How much is kept on disk.
    MeasureCache,
    ClearCache,
    /// Shows a file or folder in the file manager.
    Reveal(SampleUri),
    /// The visible tiles of the image that are missing, most urgent first. Replaces the earlier request.
    LoadTiles(Vec<TileKey>),
    /// The limit for images that are opened from now on.
    SetMaxMegapixels(u64),
    ForgetRecent(PathBuf),
    /// This place, however it was reached.
    ForgetRecentPlace(Box<S3Place>),
}

/// Effects about the open source and its images.
#[derive(Debug, Clone)]
pub enum BrowseEffect {
    Open {
        source: SourceId,
        spec: SourceSpec,
        ticket: Ticket,
    },
    /// The thumbnails to make, most urgent first; replaces the earlier request.
    MakeThumbnails {
        source: SourceId,
        /// The longer side in pixels.
        side: u32,
        requested: Vec<ThumbnailRequest>,
    },
    LimitCache(u64),
    MeasureCache,
    ClearCache,
    /// List the source again; changes are reported page by page.
    ListAgain {
        source: SourceId,
        ticket: Ticket,
    },
    /// Images that are likely to be looked at next, after everything that is on screen. Replaces the earlier list.
    ReadAhead {
        source: SourceId,
        samples: Vec<Sample>,
    },
    /// Replaces the earlier request.
    Display {
        source: SourceId,
        sample: SampleId,
        uri: SampleUri,
    },
    /// Tiles of the displayed image, most urgent first; replaces the earlier request.
    MakeTiles {
        source: SourceId,
        sample: SampleId,
        requested: Vec<TileKey>,
    },
    /// Refuse larger images from now on.
    LimitMegapixels(u64),
    /// The next file dialog begins in this folder, or in that of this file.
    BeginDialogsAt(PathBuf),
    /// Find out what was dropped while images are open.
    LookAtDropped {
        source: SourceId,
        paths: Vec<PathBuf>,
        ticket: Ticket,
    },
    Reveal(SampleUri),
    CopyImage {
        source: SourceId,
        uri: SampleUri,
        prediction: Option<Prediction>,
        view: ViewSettings,
        /// The boxes that are visible whatever the view.
        confirmed: Vec<u32>,
        /// How the boxes compare with ground truth.
        truth: Option<DrawnTruth>,
    },
}

/// The ground truth of an image as it is on screen.
#[derive(Debug, Clone)]
pub struct DrawnTruth {
    pub outcomes: Arc<Outcomes>,
    pub sample: SampleId,
    pub shows_objects: bool,
}

/// Events about the open source and its images.
#[derive(Debug)]
pub enum BrowseEvent {
    /// A source could be opened and its listing begins.
    Opened {
        source: SourceId,
        name: String,
        /// Its address in S3, if it is there.
        place: Option<S3Place>,
    },
    /// A part of a listing.
    Listed {
        source: SourceId,
        page: Page,
    },
    /// Files appeared, changed or vanished.
    ListingChanged {
        source: SourceId,
        change: ListingChange,
    },
    /// The size of the disk cache.
    CacheMeasured(CacheUsage),
    /// A place was listed again; what is there came as changes before.
    ListedAgain {
        source: SourceId,
        task: TaskId,
        result: Result<Relisting, String>,
    },
    ListingEnded {
        source: SourceId,
        task: TaskId,
        result: Result<(), String>,
    },
    /// A thumbnail that cannot be made.
    ThumbnailFailed {
        source: SourceId,
        sample: SampleId,
        /// The version of the file.
        version: u32,
        reason: String,
    },
    /// The image for the canvas has been decoded; its pixels went to `ui`.
    Displayed {
        source: SourceId,
        sample: SampleId,
        result: Result<DisplayInfo, String>,
    },
    FilesPicked(FilePick),
    /// What was dropped, or why it cannot be used.
    LookedAtDropped {
        source: SourceId,
        task: TaskId,
        paths: Vec<PathBuf>,
        result: Result<DroppedKind, String>,
    },
}

/// What files and folders are that were dropped while images are open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DroppedKind {
    /// Something to open in place of the open images.
    Images,
    /// Annotations with scores.
    Predictions,
    /// Annotations without scores.
    Truth,
}
