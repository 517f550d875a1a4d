//! The listing of the open source.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::Arc;

use crate::domain::{Capture, Location, Problem, S3Place, Sample, SampleId, SampleSet, SampleUri, SharedList};
use crate::window::state::State;

/// The number of an opened source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(pub u64);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenSource {
    pub id: SourceId,
    /// The path for display.
    pub name: String,
    /// The folder, file or prefix, if there is exactly one.
    pub location: Option<Location>,
    /// The list of some of its images that was opened.
    pub list: Option<PathBuf>,
    pub listing: Listing,
    /// Why file changes are not detected, if they are not.
    pub unwatched: Option<String>,
    /// Notes about the listing: what was skipped.
    pub notes: Vec<String>,
}

/// The result of listing a source again, apart from the images themselves.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Relisting {
    pub problems: Vec<Problem>,
    pub notes: Vec<String>,
    /// All images of the source; `None` if the listing is incomplete, so that no image counts as deleted.
    pub present: Option<HashSet<SampleUri>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listing {
    Running,
    Done,
    Failed(String),
}

/// The samples in listing order, with one column per property that the grid needs.
#[derive(Debug, Default)]
pub struct Samples {
    entries: SharedList<Sample>,
    /// Why an image could not be shown; rare, so not a column.
    unreadable: std::collections::BTreeMap<SampleId, String>,
    by_uri: ByUri,
    revision: u64,
    /// The number of changes to a file since it was listed; rare, so not a column.
    versions: std::collections::BTreeMap<SampleId, u32>,
    gone: SampleSet,
    /// The number of samples with EXIF data.
    with_capture: usize,
    /// The cameras in them.
    cameras: BTreeSet<Arc<str>>,
}

/// The sample of each URI, in many small maps. One large map would move all of its entries when it grows, and delay a
/// frame; small ones grow one by one.
#[derive(Debug)]
struct ByUri {
    maps: Vec<HashMap<SampleUri, SampleId>>,
    /// Selects the map for a URI.
    hasher: RandomState,
}

impl ByUri {
    const MAPS: u64 = 256;

    fn get(&self, uri: &SampleUri) -> Option<SampleId> {
        self.maps.get(self.place(uri))?.get(uri).copied()
    }

    /// Adds a sample; false if it is known already.
    fn insert_new(&mut self, uri: &SampleUri, id: SampleId) -> bool {
        let place = self.place(uri);
        match self.maps[place].entry(uri.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(id);
                true
            }
            Entry::Occupied(_) => false,
        }
    }

    fn place(&self, uri: &SampleUri) -> usize {
        (self.hasher.hash_one(uri) % Self::MAPS) as usize
    }
}

impl Default for ByUri {
    fn default() -> Self {
        Self { maps: (0..Self::MAPS).map(|_| HashMap::new()).collect(), hasher: RandomState::new() }
    }
}

impl OpenSource {
    /// The root of image names: a folder, or a prefix in S3.
    pub(crate) fn root(&self) -> String {
        self.location.as_ref().map_or_else(String::new, Location::name)
    }
}

impl State {
    /// The open location, if there is exactly one.
    pub fn location(&self) -> Option<&Location> {
        self.source.as_ref()?.location.as_ref()
    }

    /// The open location in S3.
    pub fn place(&self) -> Option<&S3Place> {
        self.location()?.place()
    }
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

    /// The file name of an image, empty if it is not listed.
    pub fn file_name(&self, id: SampleId) -> &str {
        self.get(id).map_or("", |sample| sample.uri.file_name())
    }

    pub fn ids(&self) -> impl Iterator<Item = SampleId> + use<> {
        (0..self.entries.len()).map(SampleId::from_index)
    }

    pub fn find(&self, uri: &SampleUri) -> Option<SampleId> {
        self.by_uri.get(uri)
    }

    /// Why this image could not be decoded, if so.
    pub fn unreadable(&self, id: SampleId) -> Option<&str> {
        self.unreadable.get(&id).map(String::as_str)
    }

    /// A snapshot for a worker; it shares the entries.
    pub(crate) fn snapshot(&self) -> SharedList<Sample> {
        self.entries.clone()
    }

    /// The images that cannot be shown, because they are unreadable or deleted.
    pub(crate) fn all_unreadable(&self) -> SampleSet {
        let mut all = self.gone.clone();
        for id in self.unreadable.keys() {
            all.insert(*id);
        }
        all
    }

    /// A number that changes with every edit.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// A counter that increases with every detected change of the file; anything derived from an earlier version is
    /// outdated.
    pub fn version(&self, id: SampleId) -> u32 {
        self.versions.get(&id).copied().unwrap_or_default()
    }

    /// Whether the file no longer exists.
    pub fn is_gone(&self, id: SampleId) -> bool {
        self.gone.contains(id)
    }

    /// Adds samples, except known ones: a file that appears while a folder is listed is reported twice.
    pub(crate) fn append(&mut self, samples: Vec<Sample>) {
        self.revision += 1;
        for sample in samples {
            let id = SampleId::from_index(self.entries.len());
            if self.by_uri.insert_new(&sample.uri, id) {
                self.entries.push(sample);
            }
        }
    }

    /// Replaces a sample by the current state of its file.
    pub(crate) fn replace(&mut self, id: SampleId, sample: Sample) {
        if let Some(entry) = self.entries.get_mut(id.index()) {
            self.with_capture -= usize::from(entry.capture.is_some());
            *entry = sample;
            self.gone.remove(id);
            self.unreadable.remove(&id);
            *self.versions.entry(id).or_default() += 1;
            self.revision += 1;
        }
    }

    pub(crate) fn set_capture(&mut self, id: SampleId, capture: Arc<Capture>) {
        if let Some(entry) = self.entries.get_mut(id.index()) {
            self.with_capture += usize::from(entry.capture.is_none());
            self.cameras.extend(capture.camera.clone());
            entry.capture = Some(capture);
            self.revision += 1;
        }
    }

    /// Those in the EXIF data read so far.
    pub(crate) fn cameras(&self) -> &BTreeSet<Arc<str>> {
        &self.cameras
    }

    /// The number of samples whose EXIF data is unknown.
    pub(crate) fn without_capture(&self) -> usize {
        self.len() - self.with_capture
    }

    /// Marks a sample as deleted; true if it existed before.
    pub(crate) fn mark_gone(&mut self, id: SampleId) -> bool {
        self.revision += 1;
        self.gone.insert(id)
    }

    /// Forgets errors, so that the images are read again when shown.
    pub(crate) fn forget_unreadable(&mut self) {
        if !self.unreadable.is_empty() {
            self.revision += 1;
            self.unreadable.clear();
        }
    }

    /// Marks an image as unreadable; true if this was not known before.
    pub(crate) fn mark_unreadable(&mut self, id: SampleId, reason: String) -> bool {
        self.revision += 1;
        self.unreadable.insert(id, reason).is_none()
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uri_map_growth_never_blocks_a_frame() {
        let mut by_uri = ByUri::default();
        let uri = |number: usize| SampleUri::new(format!("/photos/{number}.jpg"));
        for number in 0..20_000 {
            assert!(by_uri.insert_new(&uri(number), SampleId::from_index(number)));
        }
        assert!(!by_uri.insert_new(&uri(7), SampleId::from_index(8)));
        assert_eq!(by_uri.get(&uri(7)), Some(SampleId::from_index(7)));
        assert_eq!(by_uri.get(&uri(20_000)), None);
        let largest = by_uri.maps.iter().map(HashMap::len).max().unwrap();
        assert!(largest < 200, "{largest}");
    }
}
