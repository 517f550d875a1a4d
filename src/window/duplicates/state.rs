//! Groups of duplicates among the open images, and values of each image by its embedding.

use std::collections::BTreeMap;

use crate::alike::{DEFAULT_DISTANCE, DEFAULT_SIMILARITY, HashIndex, METRIC, Measure};
use crate::domain::{Sample, SharedList, counted};
use crate::review::DuplicatePlaces;
use crate::window::state::{Arc, RunId, SourceId, State, TaskId};

/// What the sliders set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DuplicateOptions {
    /// The largest number of differing bits of near duplicates.
    pub distance: u32,
    /// The lowest similarity of embeddings.
    pub above: f32,
}

impl Default for DuplicateOptions {
    fn default() -> Self {
        Self { distance: DEFAULT_DISTANCE, above: DEFAULT_SIMILARITY }
    }
}

/// The search for duplicates.
#[derive(Debug, Default)]
pub struct DuplicateSearch {
    pub options: DuplicateOptions,
    pub(crate) task: Option<TaskId>,
    pub found: Option<Arc<FoundDuplicates>>,
}

#[derive(Debug, Clone)]
pub struct DuplicatesRequest {
    pub source: SourceId,
    /// The run whose embeddings are compared, and its number of predictions.
    pub predictions: Option<(RunId, usize)>,
    pub samples: SharedList<Sample>,
    /// Changes with the listing.
    pub revision: u64,
    pub options: DuplicateOptions,
}

#[derive(Debug)]
pub struct FoundDuplicates {
    pub source: SourceId,
    /// Differs between searches.
    pub number: u64,
    pub places: DuplicatePlaces,
    pub options: DuplicateOptions,
    /// What compared the images, for people; `None` without embeddings.
    pub encoder: Option<String>,
    /// Images that could not be read, and those nearly of one color.
    pub unreadable: usize,
    pub plain: usize,
}

impl FoundDuplicates {
    /// Metrics, thresholds and encoder.
    pub(crate) fn description(&self) -> String {
        let DuplicateOptions { distance, above } = self.options;
        let alike = self.encoder.as_ref();
        let alike = alike.map(|encoder| format!("\nAlike: {METRIC} ≥ {above:.2}, {encoder}")).unwrap_or_default();
        let (near, least) = (HashIndex::METRIC, HashIndex::similarity(distance));
        format!("Near: {near} ≥ {least:.2}, at most {distance} bits differ{alike}")
    }

    /// “3 groups with 5 copies: 2 exact, 3 near”
    pub(crate) fn summary(&self) -> String {
        let [exact, near, alike] = self.places.copies;
        let copies = exact + near + alike;
        if copies == 0 {
            return "No duplicates found".to_owned();
        }
        let alike = if self.encoder.is_some() { format!(", {alike} alike") } else { String::new() };
        format!(
            "{} with {}: {exact} exact, {near} near{alike}",
            counted(self.places.groups, "group", "groups"),
            counted(copies, "copy", "copies")
        )
    }
}

/// What values of images are computed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeasureBasis {
    pub source: SourceId,
    pub run: RunId,
    /// The number of predictions of the run.
    pub predicted: usize,
    pub measure: Measure,
}

/// Values of images by their embeddings, for sort orders.
#[derive(Debug, Clone)]
pub struct Measured {
    pub basis: MeasureBasis,
    /// Differs between computations.
    pub number: u64,
    /// By sample; NaN for images without an embedding.
    pub values: Arc<BTreeMap<Measure, Arc<[f32]>>>,
    /// For people.
    pub encoder: String,
}

impl Measured {
    /// The measure, its metric, and the encoder.
    pub(crate) fn description(&self, measure: Measure) -> String {
        let name: &str = measure.into();
        format!("Sorted by {name}: {}, {}", measure.metric(), self.encoder)
    }
}

/// The computation of [`Measured`].
#[derive(Debug, Default)]
pub(crate) struct Measuring {
    pub(crate) task: Option<TaskId>,
    /// The last attempt. It is repeated only after the sort order, the run or its predictions have changed.
    pub(crate) attempt: Option<MeasureBasis>,
    pub(crate) measured: Option<Measured>,
}

impl State {
    /// The duplicates among the images on screen.
    pub fn found_duplicates(&self) -> Option<&FoundDuplicates> {
        let source = self.source.as_ref()?.id;
        self.duplicates.found.as_deref().filter(|found| found.source == source)
    }

    /// Whether the groups are on screen.
    pub fn shows_duplicates(&self) -> bool {
        self.arranging.is_about_duplicates() && (self.found_duplicates().is_some() || self.duplicates.task.is_some())
    }

    /// The values of the images and the run on screen.
    pub(crate) fn measured(&self) -> Option<&Measured> {
        let (source, run) = (self.source.as_ref()?.id, self.run()?.id());
        let is_shown = |measured: &&Measured| (measured.basis.source, measured.basis.run) == (source, run);
        self.measuring.measured.as_ref().filter(is_shown)
    }
}
