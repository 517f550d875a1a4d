//! The folders that contain the samples, with counts.

use std::collections::HashMap;
use std::sync::Arc;

use super::SAMPLES_PER_CHECK;
use super::candidate::Candidate;
use crate::domain::{Sample, SharedList};

/// All folders below the opened one, which comes first: each before the folders in it, in the order of their names.
#[derive(Debug, Clone, Default)]
pub struct Folders {
    pub tree: Arc<[Folder]>,
    /// By position in the tree, including the images of all folders inside.
    pub counts: Arc<[FolderCounts]>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// Relative to the opened folder, with `/` between its parts; empty for the opened folder.
    pub path: Arc<str>,
    /// 0 for the opened folder.
    pub depth: usize,
    /// Positions in the tree.
    pub parent: Option<usize>,
    /// The position after the last folder inside.
    pub end: usize,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FolderCounts {
    pub images: u32,
    pub judged: u32,
    /// Images with a false positive or a false negative, with ground truth.
    pub wrong: u32,
}

impl Folder {
    pub fn name(&self) -> &str {
        self.path.rsplit_once('/').map_or(&*self.path, |(_, name)| name)
    }
}

/// The folder of each sample. Names do not change, so only new ones are looked up.
#[derive(Debug, Default)]
pub(super) struct FolderIndex {
    listing: u64,
    /// By sample.
    folders: Vec<u32>,
    ids: HashMap<Arc<str>, u32>,
    /// By id: the path and the id of the parent.
    known: Vec<(Arc<str>, u32)>,
    tree: Arc<[Folder]>,
    /// The position in the tree by id.
    places: Vec<usize>,
}

impl FolderIndex {
    /// `None` if canceled.
    pub(super) fn follow(
        &mut self,
        listing: u64,
        samples: &SharedList<Sample>,
        cancelled: &dyn Fn() -> bool,
    ) -> Option<()> {
        if self.listing != listing || self.folders.len() > samples.len() {
            *self = Self { listing, ..Self::default() };
        }
        let mut last: Option<(&str, u32)> = None;
        for index in self.folders.len()..samples.len() {
            if index.is_multiple_of(SAMPLES_PER_CHECK) && cancelled() {
                return None;
            }
            let name = samples.get(index).map_or("", |sample| sample.name.as_str());
            let path = name.rsplit_once('/').map_or("", |(path, _)| path);
            let id = last.filter(|(before, _)| *before == path).map_or_else(|| self.id(path), |(_, id)| id);
            last = Some((path, id));
            self.folders.push(id);
        }
        if self.tree.len() != self.known.len() {
            self.lay_out();
        }
        Some(())
    }

    fn id(&mut self, path: &str) -> u32 {
        if let Some(id) = self.ids.get(path) {
            return *id;
        }
        // From the outside in, without recursion: a path may have many parts.
        let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
        let mut id = self.id_in("", 0);
        for end in ends.filter(|end| *end > 0) {
            id = self.id_in(&path[..end], id);
        }
        id
    }

    fn id_in(&mut self, path: &str, parent: u32) -> u32 {
        if let Some(id) = self.ids.get(path) {
            return *id;
        }
        let id = self.known.len() as u32;
        let path: Arc<str> = path.into();
        self.ids.insert(Arc::clone(&path), id);
        self.known.push((path, parent));
        id
    }

    fn lay_out(&mut self) {
        let mut inside: Vec<Vec<usize>> = vec![Vec::new(); self.known.len()];
        for (id, (_, parent)) in self.known.iter().enumerate().skip(1) {
            inside[*parent as usize].push(id);
        }
        let path = |id: &usize| &*self.known[*id].0;
        for ids in &mut inside {
            ids.sort_by(|left, right| alphanumeric_sort::compare_str(path(right), path(left)));
        }
        let mut tree: Vec<Folder> = Vec::with_capacity(self.known.len());
        self.places = vec![0; self.known.len()];
        let mut next: Vec<(usize, Option<usize>)> = vec![(0, None)];
        while let Some((id, parent)) = next.pop() {
            let place = tree.len();
            self.places[id] = place;
            let depth = parent.map_or(0, |parent: usize| tree[parent].depth + 1);
            tree.push(Folder { path: Arc::clone(&self.known[id].0), depth, parent, end: place + 1 });
            next.extend(inside[id].iter().map(|id| (*id, Some(place))));
        }
        for place in (1..tree.len()).rev() {
            if let Some(parent) = tree[place].parent {
                tree[parent].end = tree[parent].end.max(tree[place].end);
            }
        }
        self.tree = tree.into();
    }

    pub(super) fn empty_counts(&self) -> Vec<FolderCounts> {
        vec![FolderCounts::default(); self.tree.len()]
    }

    pub(super) fn count(&self, candidate: &Candidate<'_>, counts: &mut [FolderCounts]) {
        let place = self.folders.get(candidate.id.index()).and_then(|id| self.places.get(*id as usize));
        if let Some(counts) = place.and_then(|place| counts.get_mut(*place)) {
            counts.images += 1;
            counts.judged += u32::from(candidate.verdict.is_some());
            counts.wrong += u32::from(candidate.outcome_facts().is_some_and(|facts| facts.errors() > 0));
        }
    }

    /// Adds the counts of each folder to the folders around it.
    pub(super) fn finish(&self, mut counts: Vec<FolderCounts>) -> Folders {
        for (place, folder) in self.tree.iter().enumerate().rev() {
            let inner = counts[place];
            if let Some(outer) = folder.parent.and_then(|parent| counts.get_mut(parent)) {
                outer.images += inner.images;
                outer.judged += inner.judged;
                outer.wrong += inner.wrong;
            }
        }
        Folders { tree: Arc::clone(&self.tree), counts: counts.into() }
    }
}
