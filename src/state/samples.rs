//! The listing of the open source.

use std::path::PathBuf;

use crate::domain::{Sample, SampleId, SampleSet, SampleUri, SharedList};

/// Which opening of a source an answer belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(pub u64);

/// What was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenSource {
    pub id: SourceId,
    /// What people call it: a path.
    pub name: String,
    /// The folder or file, where it is a single one.
    pub path: Option<PathBuf>,
    pub listing: Listing,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listing {
    Running,
    Done,
    Failed(String),
}

/// One column per property that the grid needs, in listing order.
#[derive(Debug, Default)]
pub struct Samples {
    entries: SharedList<Sample>,
    /// Why an image could not be shown; few, so not a column.
    unreadable: std::collections::BTreeMap<SampleId, String>,
    by_uri: std::collections::HashMap<SampleUri, SampleId>,
    revision: u64,
}

impl Samples {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn get(&self, id: SampleId) -> Option<&Sample> {
        self.entries.get(id.index())
    }

    pub fn ids(&self) -> impl Iterator<Item = SampleId> + use<> {
        (0..self.entries.len()).map(SampleId::from_index)
    }

    pub fn find(&self, uri: &SampleUri) -> Option<SampleId> {
        self.by_uri.get(uri).copied()
    }

    /// Why this image could not be decoded, where it could not.
    pub fn unreadable(&self, id: SampleId) -> Option<&str> {
        self.unreadable.get(&id).map(String::as_str)
    }

    /// For a worker; shares its entries.
    pub(super) fn snapshot(&self) -> SharedList<Sample> {
        self.entries.clone()
    }

    pub(super) fn all_unreadable(&self) -> SampleSet {
        self.unreadable.keys().copied().collect()
    }

    /// Another number after every change.
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    pub(super) fn append(&mut self, samples: Vec<Sample>) {
        self.revision += 1;
        for sample in samples {
            let id = SampleId::from_index(self.entries.len());
            self.by_uri.insert(sample.uri.clone(), id);
            self.entries.push(sample);
        }
    }

    /// True where this was not known before.
    pub(super) fn mark_unreadable(&mut self, id: SampleId, reason: String) -> bool {
        self.revision += 1;
        self.unreadable.insert(id, reason).is_none()
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
