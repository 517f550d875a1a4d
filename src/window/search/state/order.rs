//! The order of the samples on screen.

use std::sync::Arc;

use crate::domain::SampleId;
use crate::review::Arrangement;

/// The order of the grid: positions `0..len()`. A clone is cheap.
#[derive(Debug, Clone)]
pub struct Order(Kind);

#[derive(Debug, Clone)]
enum Kind {
    /// All samples, in the listing's own order.
    Listing(usize),
    /// The samples that match the query, sorted.
    Arranged(Arc<Arrangement>),
}

/// Compares identity, which is cheap; two orders with the same content may differ.
impl PartialEq for Order {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Kind::Listing(left), Kind::Listing(right)) => left == right,
            (Kind::Arranged(left), Kind::Arranged(right)) => Arc::ptr_eq(left, right),
            _ => false,
        }
    }
}

impl Order {
    pub(crate) fn from_listing(len: usize) -> Self {
        Self(Kind::Listing(len))
    }

    pub(crate) fn arranged(arrangement: Arc<Arrangement>) -> Self {
        Self(Kind::Arranged(arrangement))
    }

    /// The number of samples on screen.
    pub fn len(&self) -> usize {
        match &self.0 {
            Kind::Listing(len) => *len,
            Kind::Arranged(arrangement) => arrangement.order().len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn at(&self, place: usize) -> Option<SampleId> {
        match &self.0 {
            Kind::Listing(len) => (place < *len).then(|| SampleId::from_index(place)),
            Kind::Arranged(arrangement) => arrangement.order().get(place).copied(),
        }
    }

    /// The position of a sample; `None` if it is not on screen.
    pub fn place_of(&self, sample: SampleId) -> Option<usize> {
        match &self.0 {
            Kind::Listing(len) => (sample.index() < *len).then(|| sample.index()),
            Kind::Arranged(arrangement) => arrangement.place_of(sample),
        }
    }

    pub fn ids(&self) -> impl Iterator<Item = SampleId> + use<> {
        let order = self.clone();
        (0..order.len()).filter_map(move |place| order.at(place))
    }
}
