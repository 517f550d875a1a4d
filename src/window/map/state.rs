//! The map of embeddings: the positions of the images of a run, their groups, and what was selected on it.

use std::path::PathBuf;
use std::sync::Arc;

use crate::alike::Point;
use crate::domain::{ModelTask, RunId, Sample, SampleSet, SharedList};
use crate::review::{ArrangeRequest, GroupBy, Groups, MapRow};
use crate::window::search::state::Basis;
use crate::window::state::{Derived, Failure, Loadable, RequestId, SourceId, State, TaskId, Ticket};

#[derive(Debug, Clone, PartialEq)]
pub enum MapCommand {
    GroupBy(GroupBy),
    /// Whether the points are boxes or images.
    OfBoxes(bool),
    /// Selects these images in all panels, or shows these boxes in the filmstrip.
    Pick(Vec<MapRow>),
    /// Shows an image, or one of its boxes.
    Show(MapRow),
    /// Searches for the images that were selected last.
    SearchPicked,
    /// Makes the map anew, from the present embeddings.
    Renew,
}

#[derive(Debug, Clone)]
pub enum MapEffect {
    /// Place the images or boxes of a run by their embeddings.
    Lay { request: LayRequest, ticket: Ticket },
    /// Group the rows of a map; replaces the previous request.
    Group { id: RequestId, what: Box<GroupRequest> },
}

#[derive(Debug)]
pub enum MapEvent {
    /// The positions so far.
    Placed {
        task: TaskId,
        layout: Box<MapLayout>,
    },
    Ended {
        task: TaskId,
        result: Result<(), Failure>,
    },
    Grouped {
        id: RequestId,
        groups: MapGroups,
    },
}

#[derive(Debug, Clone)]
pub struct LayRequest {
    pub source: SourceId,
    pub run: RunId,
    pub samples: SharedList<Sample>,
    pub of_boxes: bool,
    /// The library that the user chose.
    pub runtime_library: Option<PathBuf>,
    /// The number of predicted images.
    pub predicted: usize,
}

#[derive(Debug, Clone)]
pub struct GroupRequest {
    pub images: ArrangeRequest,
    pub rows: Arc<[MapRow]>,
    pub clusters: Arc<[u8]>,
    /// The number of the clusters.
    pub number: u64,
    pub by: GroupBy,
}

/// The positions of the images or boxes of a run.
#[derive(Debug, Clone)]
pub struct MapLayout {
    pub source: SourceId,
    pub run: RunId,
    pub of_boxes: bool,
    /// Differs between all layouts.
    pub number: u64,
    /// In listing order.
    pub rows: Arc<[MapRow]>,
    pub points: Arc<[Point]>,
    /// The number of the cluster of each row.
    pub clusters: Arc<[u8]>,
    /// The same for all layouts of a map.
    pub clusters_number: u64,
    pub stage: MapStage,
    /// The number of predicted images when the map was begun.
    pub predicted: usize,
    /// Listed images without a usable embedding; boxes left out because there are too many.
    pub without: usize,
    /// The encoder and its layer, for people.
    pub encoder: String,
}

/// What the positions are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapStage {
    /// The first two principal components.
    Components,
    /// UMAP after some of its epochs.
    Moving {
        epoch: usize,
        epochs: usize,
    },
    Finished,
}

/// The groups of the rows, and their clusters.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MapGroups {
    /// Of the layout that they belong to.
    pub clusters_number: u64,
    pub groups: Groups,
    pub clusters: Vec<Cluster>,
}

/// Images or boxes with similar embeddings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cluster {
    /// As in [`MapLayout::clusters`].
    pub number: u8,
    pub rows: usize,
    /// The position of the most frequent group.
    pub most: usize,
    /// The rows of that group.
    pub count: usize,
}

/// The map in place of the image.
#[derive(Debug, Default)]
pub struct Map {
    pub is_shown: bool,
    /// As chosen; [`State::map_group_by`] is shown.
    pub group_by: GroupBy,
    /// For a detector: whether the points are boxes.
    pub of_boxes: bool,
    /// One of images and one of boxes per run: a map is not made twice.
    layouts: Vec<MapLayout>,
    /// The last attempt to make a map.
    pub(crate) attempt: Option<MapId>,
    pub status: Loadable<()>,
    pub(crate) groups: Derived<GroupBasis, Arc<MapGroups>>,
    /// The images that were selected last.
    pub picked: SampleSet,
    /// Changes with `picked`.
    pub(crate) picked_number: u64,
}

/// What is on a map: the images or, if `true`, the boxes of a run.
pub(crate) type MapId = (SourceId, RunId, bool);

/// Everything that groups depend on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GroupBasis {
    pub(crate) images: Basis,
    pub(crate) by: GroupBy,
    pub(crate) clusters: u64,
}

impl Map {
    pub(crate) fn layout_of(&self, map: MapId) -> Option<&MapLayout> {
        self.layouts.iter().find(|layout| layout.id() == map)
    }

    /// Replaces the layout of the same rows; those of other sources are dropped.
    pub(crate) fn place(&mut self, layout: MapLayout) {
        self.layouts.retain(|other| other.source == layout.source && other.id() != layout.id());
        self.layouts.push(layout);
    }

    /// Another source has other images. Its maps are made when they are shown.
    pub(crate) fn source_changed(&mut self) {
        *self = Self {
            is_shown: self.is_shown,
            group_by: self.group_by,
            of_boxes: self.of_boxes,
            picked_number: self.picked_number,
            ..Self::default()
        };
    }

    pub(crate) fn forget(&mut self, map: MapId) {
        self.layouts.retain(|layout| layout.id() != map);
        self.attempt = None;
    }
}

impl MapLayout {
    fn id(&self) -> MapId {
        (self.source, self.run, self.of_boxes)
    }
}

impl State {
    /// The map to show.
    pub(crate) fn map_id(&self) -> Option<MapId> {
        let run = self.run()?;
        let of_boxes = self.map.of_boxes && run.task() == Some(ModelTask::Detection);
        Some((self.source_id()?, run.id(), of_boxes))
    }

    /// What the colors of the map distinguish: as chosen, or folders for a run without predictions.
    pub fn map_group_by(&self) -> GroupBy {
        let chosen = self.map.group_by;
        if self.can_group_map_by(chosen) { chosen } else { GroupBy::Folder }
    }

    /// Whether the run on screen has what these groups need.
    pub(crate) fn can_group_map_by(&self, by: GroupBy) -> bool {
        let has_predictions = self.run().is_none_or(|run| run.task().is_some());
        has_predictions || !by.needs_predictions()
    }

    /// The map of the run on screen.
    pub fn map_layout(&self) -> Option<&MapLayout> {
        self.map.layout_of(self.map_id()?)
    }

    /// The groups of the rows of this map.
    pub fn map_groups(&self) -> Option<&Arc<MapGroups>> {
        let layout = self.map_layout()?;
        self.map.groups.value().filter(|groups| groups.clusters_number == layout.clusters_number)
    }

    /// Whether the last attempt was about the map to show.
    pub(crate) fn map_was_attempted(&self) -> bool {
        self.map.attempt.is_some() && self.map.attempt == self.map_id()
    }
}
