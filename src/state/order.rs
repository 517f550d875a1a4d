//! The order in which the samples are on screen.

use crate::domain::SampleId;

/// What the grid shows, first to last: places `0..len()`. The listing's own order.
#[derive(Debug, Clone)]
pub struct Order {
    len: usize,
}

impl Order {
    pub(super) fn of_listing(len: usize) -> Self {
        Self { len }
    }

    /// Samples on screen.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn at(&self, place: usize) -> Option<SampleId> {
        (place < self.len).then(|| SampleId::from_index(place))
    }

    /// `None` where the sample is not on screen.
    pub fn place_of(&self, sample: SampleId) -> Option<usize> {
        (sample.index() < self.len).then(|| sample.index())
    }

    pub fn ids(&self) -> impl Iterator<Item = SampleId> + use<> {
        (0..self.len).map(SampleId::from_index)
    }
}
