//! Duplicates of all kinds: equal bytes, then equal looks, then similar embeddings.

use super::groups::{DuplicateGroup, DuplicateKind, Grouping, Sides};
use super::perceptual::{HashIndex, PerceptualHash};
use super::similar::SimilarRows;
use super::{Embeddings, NeighborGraph};

/// The properties that duplicates are found by, one entry per image.
#[derive(Clone, Copy)]
pub struct DuplicateEvidence<'e> {
    /// The hash of the bytes.
    pub digests: &'e [Option<[u8; 32]>],
    pub hashes: &'e [Option<PerceptualHash>],
    /// The embeddings, the nearest neighbors of each, and the row of each image.
    pub embeddings: Option<(&'e Embeddings, &'e NeighborGraph, &'e [Option<usize>])>,
}

impl DuplicateEvidence<'_> {
    /// The groups in the order of their first images. Near duplicates have hashes within `distance` (`None`: there are
    /// none); images are alike from the similarity `above` on. `None` if `proceed` returned false, which is asked per
    /// image.
    pub fn groups(
        &self,
        sides: Sides,
        distance: Option<u32>,
        above: f32,
        mut proceed: impl FnMut() -> bool,
    ) -> Option<Vec<DuplicateGroup>> {
        let mut grouping = Grouping::new(self.digests.len(), sides);
        grouping.add_equal(self.digests);
        if let Some(distance) = distance {
            let index = || HashIndex::new(distance);
            grouping.add_matching(DuplicateKind::Near, self.hashes, index, &mut proceed).then_some(())?;
        }
        if let Some((embeddings, graph, rows)) = self.embeddings {
            let references = || SimilarRows::new(embeddings, graph, rows, above);
            grouping.add_matching(DuplicateKind::Alike, rows, references, &mut proceed).then_some(())?;
        }
        Some(grouping.finish())
    }
}
