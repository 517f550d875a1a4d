//! The open source and its images: commands, effects and events, and which image is shown and selected.

pub(crate) mod folders;
pub(crate) mod samples;

use std::path::PathBuf;
use std::sync::Arc;

use crate::domain::{
    Capture, FileStamp, ImagePart, ListingChange, Location, Page, RunId, S3Place, Sample, SampleSet, SampleUri,
    SharedList, TileKey,
};
use crate::review::{BoxChoice, Outcomes};
use crate::window::state::{
    CacheUsage, DisplayInfo, DuplicateOptions, DuplicatesRequest, Failure, FilePick, FoundDuplicates, MeasureBasis,
    Measured, Order, Prediction, Relisting, SampleId, SourceId, SourceSpec, Step, TaskId, ThumbnailRequest, Ticket,
    ViewSettings,
};

#[derive(Debug, Clone, PartialEq)]
pub enum BrowseCommand {
    /// A folder or file of images, a project, or an address in S3.
    Open(PathBuf),
    /// A typed path or address: any of these, or anything else that can be dropped on the window.
    OpenTyped(PathBuf),
    /// A path typed because no file dialog appeared.
    TypePath(PathBuf),
    CancelPath,
    /// A location in S3, with the way to access it.
    OpenPlace(Box<S3Place>),
    /// Files and folders dropped on the window.
    Drop(Vec<PathBuf>),
    /// Shows one sample and selects only it.
    Show(SampleId),
    /// Adds a sample to the selection or removes it.
    ToggleSelected(SampleId),
    /// Selects everything from the anchor of the selection to this sample.
    ExtendSelection(SampleId),
    /// Deselects all samples except the shown one.
    ClearSelection,
    Walk(Step),
    /// Makes the thumbnails on screen that have no pixels yet, most urgent first. Replaces the previous request.
    LoadThumbnails {
        /// The longer side in pixels.
        side: u32,
        requested: Vec<SampleId>,
    },
    /// Shows the first image whose name starts with this text, or else contains it, or else the image at this position.
    GoTo(String),
    /// Selects this many images that cover those on screen.
    SelectCover(usize),
    /// Shows the next match after the shown image.
    GoToNext(String),
    /// Shows or hides the folders in this one.
    SetFolderOpen(Arc<str>, bool),
    /// The limit of the disk cache; zero disables it.
    SetCacheBytes(u64),
    /// Measures the size of the disk cache.
    MeasureCache,
    ClearCache,
    /// Shows a file or folder in the file manager.
    Reveal(SampleUri),
    /// Shows a folder of the tree in the file manager.
    RevealFolder(Arc<str>),
    CopyFolderPath(Arc<str>),
    /// Loads the missing visible tiles of the image, most urgent first. Replaces the previous request.
    LoadTiles(Vec<TileKey>),
    /// The limit for images opened from now on.
    SetMaxMegapixels(u64),
    ForgetRecent(PathBuf),
    /// Removes this location from the recent ones, however it was accessed.
    ForgetRecentPlace(Box<S3Place>),
    /// Groups duplicates by other thresholds.
    SetDuplicateOptions(DuplicateOptions),
    /// Shows all images in folder order again.
    CloseDuplicates,
}

#[derive(Debug, Clone)]
pub enum BrowseEffect {
    Open {
        source: SourceId,
        spec: SourceSpec,
        ticket: Ticket,
    },
    /// Make thumbnails, most urgent first; replaces the previous request.
    MakeThumbnails {
        source: SourceId,
        /// The longer side in pixels.
        side: u32,
        requested: Vec<ThumbnailRequest>,
    },
    /// Read the EXIF data of the images that lack it.
    ReadCaptures {
        source: SourceId,
        samples: SharedList<Sample>,
        ticket: Ticket,
    },
    LimitCache(u64),
    MeasureCache,
    ClearCache,
    /// List the source again; changes are reported page by page.
    ListAgain {
        source: SourceId,
        ticket: Ticket,
    },
    /// Decode the images likely to be viewed next, after everything on screen. Replaces the previous list.
    ReadAhead {
        source: SourceId,
        samples: Vec<Sample>,
    },
    /// Decode an image for the canvas; replaces the previous request.
    Display {
        source: SourceId,
        sample: SampleId,
        uri: SampleUri,
    },
    /// Make tiles of the displayed image, most urgent first; replaces the previous request.
    MakeTiles {
        source: SourceId,
        sample: SampleId,
        requested: Vec<TileKey>,
    },
    /// Reject larger images from now on.
    LimitMegapixels(u64),
    /// Start the next file dialog in this folder, or in the folder of this file.
    BeginDialogsAt(PathBuf),
    /// Identify what was dropped while images are open.
    LookAtDropped {
        source: SourceId,
        paths: Vec<PathBuf>,
        ticket: Ticket,
    },
    Reveal(SampleUri),
    FindAlike {
        request: Box<AlikeRequest>,
        ticket: Ticket,
    },
    FindDuplicates {
        request: DuplicatesRequest,
        ticket: Ticket,
    },
    /// Compute values of images by the embeddings of a run.
    Measure {
        basis: MeasureBasis,
        samples: SharedList<Sample>,
        ticket: Ticket,
    },
    CopyImage {
        source: SourceId,
        uri: SampleUri,
        drawn: Option<DrawnPrediction>,
        /// The file to save it to; `None` for the clipboard.
        to: Option<PathBuf>,
    },
}

/// What is drawn over an image, as on screen.
#[derive(Debug, Clone)]
pub struct DrawnPrediction {
    pub prediction: Prediction,
    pub view: ViewSettings,
    /// The boxes that are visible regardless of the view.
    pub confirmed: Vec<u32>,
    /// The comparison of the boxes with ground truth.
    pub truth: Option<DrawnTruth>,
}

/// The ground truth of an image as shown on screen.
#[derive(Debug, Clone)]
pub struct DrawnTruth {
    pub outcomes: Arc<Outcomes>,
    pub sample: SampleId,
    pub shows_objects: bool,
}

/// Compare all images, or boxes, with one, by the embeddings of a run.
#[derive(Debug, Clone)]
pub struct AlikeRequest {
    pub source: SourceId,
    pub run: RunId,
    pub to: AlikeTo,
    pub samples: SharedList<Sample>,
    /// The ONNX Runtime that the user chose.
    pub runtime_library: Option<PathBuf>,
}

/// What to compare with.
#[derive(Debug, Clone)]
pub enum AlikeTo {
    Part(SampleId, ImagePart),
    /// The image with this name or path, in lowercase.
    Named(String),
    /// Not with one image: those that cover these, and their number.
    Cover(SampleSet, usize),
}

/// The boxes that are similar to one, or selected on the map.
#[derive(Debug, Clone)]
pub struct ChosenBoxes {
    pub source: SourceId,
    pub run: RunId,
    pub boxes: Arc<BoxChoice>,
    /// A few words: “Most similar first”.
    pub title: &'static str,
    /// What they are: similar to which box, by which encoder and metric.
    pub description: String,
}

/// How similar all images are to one.
#[derive(Debug, Clone)]
pub struct Alike {
    pub source: SourceId,
    pub run: RunId,
    pub sample: SampleId,
    /// Differs between searches.
    pub number: u64,
    /// By sample, `-1.0..=1.0`; NaN for images without an embedding.
    pub similarity: Arc<[f32]>,
    /// The image, encoder and metric, for people.
    pub description: String,
}

/// The result of a search for what is similar.
#[derive(Debug)]
pub enum FoundAlike {
    Images(Alike),
    /// Images that cover others, and what they are, for people.
    Cover(SampleSet, String),
    Boxes(ChosenBoxes),
    /// No image has the name.
    Nothing,
}

#[derive(Debug)]
pub enum BrowseEvent {
    FoundAlike {
        task: TaskId,
        result: Result<FoundAlike, Failure>,
    },
    FoundDuplicates {
        task: TaskId,
        result: Result<Arc<FoundDuplicates>, Failure>,
    },
    Measured {
        task: TaskId,
        result: Result<Measured, Failure>,
    },
    /// A source was opened and its listing starts.
    Opened {
        source: SourceId,
        name: String,
        /// Its address in S3, if it is there.
        place: Option<S3Place>,
        /// What a list of images was drawn from. The name is that of the list.
        list_of: Option<Location>,
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
    /// A location was listed again; its changes were reported before.
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
    /// A thumbnail could not be made.
    ThumbnailFailed {
        source: SourceId,
        sample: SampleId,
        version: u32,
        reason: String,
    },
    /// The image for the canvas has been decoded; its pixels went to `ui`.
    Displayed {
        source: SourceId,
        sample: SampleId,
        result: Result<DisplayInfo, String>,
    },
    /// The EXIF data of some images.
    CapturesRead {
        source: SourceId,
        read: Vec<ReadCapture>,
    },
    CapturesEnded {
        task: TaskId,
        result: Result<(), Failure>,
    },
    FilesPicked(FilePick),
    /// The kind of what was dropped, or why it cannot be used.
    LookedAtDropped {
        source: SourceId,
        task: TaskId,
        paths: Vec<PathBuf>,
        result: Result<DroppedKind, String>,
    },
}

/// The EXIF data of a file, or why it could not be read.
#[derive(Debug)]
pub struct ReadCapture {
    pub sample: SampleId,
    /// The version of the file that was read.
    pub stamp: FileStamp,
    pub result: Result<Arc<Capture>, String>,
}

/// Whether the EXIF data is being read that a search or sort order needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CaptureReading {
    #[default]
    Idle,
    Running(TaskId),
    /// Canceled or failed. Nothing is read again until another search needs it.
    Stopped,
}

/// The kind of files and folders dropped while images are open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DroppedKind {
    /// A source to open in place of the open images.
    Images,
    /// Annotations with scores.
    Predictions,
    /// Annotations without scores.
    Truth,
}

/// The image that a source opens with: the last one viewed, from its project.
#[derive(Debug, Default)]
pub(crate) struct LastViewed {
    /// Its name in the project.
    pub(crate) name: Option<String>,
    /// Whether showing it now would be a surprise: the user has done something, or every image is listed.
    pub(crate) is_decided: bool,
}

/// The shown sample is always one of the selected.
#[derive(Debug, Default)]
pub struct Selection {
    shown: Option<SampleId>,
    selected: SampleSet,
    /// The anchor of a range selected with Shift.
    anchor: Option<SampleId>,
}

impl Selection {
    pub fn shown(&self) -> Option<SampleId> {
        self.shown
    }

    pub fn selected(&self) -> &SampleSet {
        &self.selected
    }

    pub fn contains(&self, id: SampleId) -> bool {
        self.selected.contains(id)
    }

    /// Shows and selects only this sample.
    pub(crate) fn show(&mut self, id: SampleId) {
        self.selected.clear();
        self.selected.insert(id);
        self.shown = Some(id);
        self.anchor = Some(id);
    }

    /// Adds or removes one image, and shows it if it was added.
    pub(crate) fn toggle(&mut self, id: SampleId) {
        let is_last = self.selected.len() == 1;
        if self.selected.contains(id) && !is_last {
            self.selected.remove(id);
            if self.shown == Some(id) {
                self.shown = self.selected.iter().next();
            }
        } else {
            self.selected.insert(id);
            self.shown = Some(id);
        }
        self.anchor = Some(id);
    }

    /// Selects everything on screen between the anchor and `id`, and shows `id`.
    pub(crate) fn extend_to(&mut self, id: SampleId, order: &Order) {
        let anchor = self.anchor.unwrap_or(id);
        let place = |id| order.place_of(id);
        let (Some(from), Some(to)) = (place(anchor).or(place(id)), place(id)) else {
            return;
        };
        self.selected = (from.min(to)..=from.max(to)).filter_map(|place| order.at(place)).collect();
        self.shown = Some(id);
        self.anchor = Some(anchor);
    }

    pub(crate) fn select_all(&mut self, ids: impl Iterator<Item = SampleId>) {
        self.selected = ids.collect();
        self.shown = self.shown.or_else(|| self.selected.iter().next());
    }

    /// Deselects all samples except the shown one.
    pub(crate) fn clear_to_shown(&mut self) {
        if let Some(shown) = self.shown {
            self.show(shown);
        }
    }

    /// Deselects all samples except those to keep. The shown one stays selected.
    pub(crate) fn keep_only(&mut self, is_kept: impl Fn(SampleId) -> bool) {
        if self.selected.len() > 1 {
            let shown = self.shown;
            self.selected = self.selected.iter().filter(|&id| is_kept(id) || shown == Some(id)).collect();
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(selection: &Selection) -> Vec<u32> {
        selection.selected().iter().map(|id| id.0).collect()
    }

    #[test]
    fn range_grows_and_shrinks_around_its_anchor() {
        let mut selection = Selection::default();
        selection.show(SampleId(5));
        let order = Order::from_listing(10);
        selection.extend_to(SampleId(7), &order);
        assert_eq!(selected(&selection), [5, 6, 7]);
        selection.extend_to(SampleId(4), &order);
        assert_eq!(selected(&selection), [4, 5]);
        assert_eq!(selection.shown(), Some(SampleId(4)));
    }

    #[test]
    fn removed_sample_yields_to_another_selected_one() {
        let mut selection = Selection::default();
        selection.show(SampleId(1));
        selection.toggle(SampleId(3));
        selection.toggle(SampleId(3));
        assert_eq!(selected(&selection), [1]);
        assert_eq!(selection.shown(), Some(SampleId(1)));
    }

    #[test]
    fn last_selected_sample_stays_selected() {
        let mut selection = Selection::default();
        selection.show(SampleId(1));
        selection.toggle(SampleId(1));
        assert_eq!(selected(&selection), [1]);
    }
}
