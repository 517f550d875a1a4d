//! Finished maps in the disk cache: the same embeddings have the same map, so it is computed once.

use crate::alike::{Embeddings, NEIGHBORS, Point};
use crate::cache::{CacheError, CacheKey, DiskCache, EntryKind};

/// The same map for the same embeddings.
pub(super) const SEED: u64 = 1;
/// The most clusters that a list of them can show at a glance.
pub(super) const MAX_CLUSTERS: usize = 12;
/// Increased when maps are computed or stored in another way.
const VERSION: u64 = 1;
/// Two 32-bit coordinates, and the number of the cluster.
const BYTES_PER_ROW: usize = 9;

/// The positions and clusters of some vectors.
pub(super) struct KeptMap {
    pub(super) points: Vec<Point>,
    pub(super) clusters: Vec<u8>,
}

impl KeptMap {
    /// Differs if the map does.
    pub(super) fn key(vectors: &Embeddings) -> CacheKey {
        let parameters = [VERSION, SEED, NEIGHBORS as u64, MAX_CLUSTERS as u64].map(u64::to_le_bytes);
        CacheKey::new(EntryKind::Map, &[parameters.as_flattened(), &vectors.fingerprint()])
    }

    /// `None` if there is no usable map of so many vectors.
    pub(super) fn read(cache: &DiskCache, key: &CacheKey, rows: usize) -> Option<Self> {
        let bytes = cache.get(key)?;
        let (entries, rest) = bytes.as_chunks::<BYTES_PER_ROW>();
        let entry = |&[a, b, c, d, e, f, g, h, cluster]: &[u8; BYTES_PER_ROW]| {
            let point = [[a, b, c, d], [e, f, g, h]].map(f32::from_le_bytes);
            let is_valid = point.iter().all(|value| value.is_finite()) && usize::from(cluster) < MAX_CLUSTERS;
            is_valid.then_some((point, cluster))
        };
        let (points, clusters): (Vec<_>, _) =
            entries.iter().map(entry).collect::<Option<Vec<_>>>()?.into_iter().unzip();
        (rest.is_empty() && points.len() == rows).then_some(Self { points, clusters })
    }

    pub(super) fn write(&self, cache: &DiskCache, key: &CacheKey) -> Result<(), CacheError> {
        let entry = |(point, cluster): (&Point, &u8)| {
            let coordinates = point.iter().flat_map(|value| value.to_le_bytes());
            coordinates.chain([*cluster]).collect::<Vec<u8>>()
        };
        let bytes: Vec<u8> = self.points.iter().zip(&self.clusters).flat_map(entry).collect();
        cache.put(key, &bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alike::Embedding;

    #[test]
    fn only_the_same_vectors_have_the_map() {
        let folder = tempfile::tempdir().unwrap();
        let cache = DiskCache::new(folder.path().to_owned(), 1 << 30);
        let vectors = |rows: &[&[f32]]| {
            let mut all = Embeddings::default();
            assert!(rows.iter().all(|row| all.push(&Embedding::new(row).unwrap())));
            all
        };
        let two = KeptMap::key(&vectors(&[&[1.0, 2.0], &[3.0, 4.0]]));
        let map = KeptMap { points: vec![[0.5, -3.25], [7.0, 1e-3]], clusters: vec![1, 0] };
        map.write(&cache, &two).unwrap();
        let read = KeptMap::read(&cache, &two, 2).unwrap();
        assert_eq!((read.points, read.clusters), (map.points.clone(), map.clusters.clone()));
        for other in [&[&[1.0, 2.0][..], &[3.0, 4.5]][..], &[&[1.0, 2.0, 3.0, 4.0]], &[&[3.0, 4.0], &[1.0, 2.0]]] {
            assert!(KeptMap::read(&cache, &KeptMap::key(&vectors(other)), other.len()).is_none(), "{other:?}");
        }
        for (points, clusters) in [(vec![[f32::NAN, 0.0]; 2], vec![0, 0]), (vec![[0.0; 2]; 2], vec![0, 99])] {
            KeptMap { points, clusters }.write(&cache, &two).unwrap();
            assert!(KeptMap::read(&cache, &two, 2).is_none());
        }
        map.write(&cache, &two).unwrap();
        assert!(KeptMap::read(&cache, &two, 3).is_none());
    }
}
