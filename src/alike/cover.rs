//! Parts of a set of vectors: the rows that cover it, and how near each row is to the center of its cluster.

use super::dot::{centered, centered_dot};
use super::{Embedding, Embeddings};
use crate::tasks::{Cancelled, ProgressUnit, TaskControl};

/// Rows that cover all others, in the order in which they were chosen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cover {
    pub chosen: Vec<usize>,
    /// The most similar chosen row of each row, as a position in `chosen`.
    pub nearest: Vec<u32>,
    /// After each choice, the lowest similarity of a row to the most similar chosen one.
    pub coverage: Vec<f32>,
}

impl Cover {
    /// Chooses up to `count` rows: a random one, then the row that is least similar to those before it, as long as there
    /// is one that differs from all of them (greedy k-center; Gonzalez, Clustering to Minimize the Maximum Intercluster
    /// Distance, Theoretical Computer Science 1985). Its largest distance, as an angle, is at most twice the best
    /// possible.
    ///
    /// # Errors
    /// [`Cancelled`]
    pub fn choose(embeddings: &Embeddings, count: usize, seed: u64, control: &TaskControl) -> Result<Self, Cancelled> {
        let rows = embeddings.len();
        let count = count.min(rows);
        control.begin(ProgressUnit::Steps);
        control.set_total(Some(count as u64));
        let mut cover = Self { nearest: vec![0; rows], ..Self::default() };
        let mut best = vec![f32::NEG_INFINITY; rows];
        let mut next = if rows == 0 { None } else { Some(fastrand::Rng::with_seed(seed).usize(..rows)) };
        while let Some(row) = next.take_if(|_| cover.chosen.len() < count) {
            control.checkpoint()?;
            let position = cover.chosen.len() as u32;
            cover.chosen.push(row);
            let similarities = embeddings.row(row).map(|row| embeddings.similarities(&row)).unwrap_or_default();
            for ((best, nearest), similarity) in best.iter_mut().zip(&mut cover.nearest).zip(similarities) {
                if similarity > *best {
                    (*best, *nearest) = (similarity, position);
                }
            }
            // Rounding leaves a row less similar to itself than 1.
            best[row] = 1.0;
            cover.nearest[row] = position;
            let least = best.iter().enumerate().min_by(|one, other| one.1.total_cmp(other.1));
            cover.coverage.push(least.map_or(1.0, |(_, similarity)| *similarity));
            next = least.filter(|(_, similarity)| **similarity < SAME).map(|(row, _)| row);
            control.add_done(1);
        }
        Ok(cover)
    }
}

/// From this similarity on, rows differ only by rounding.
const SAME: f32 = 1.0 - 1e-5;

/// The name of what [`representativeness`] is computed from.
pub const CENTER_METRIC: &str = "Euclidean distance to the center of one of 20 clusters";

/// `FiftyOne`'s number of clusters.
const CLUSTERS: usize = 20;
const MAX_ROUNDS: usize = 100;

/// How near each row is to the center of its cluster: 1 at the center, 0 for the farthest row. As in `FiftyOne`'s
/// `compute_representativeness` (<https://docs.voxel51.com/brain.html#image-representativeness>), which reports 1 minus
/// this: the Euclidean distance to the center, of 20 clusters of k-means, relative to the largest in the cluster.
///
/// # Errors
/// [`Cancelled`]
pub fn representativeness(embeddings: &Embeddings, control: &TaskControl) -> Result<Vec<f32>, Cancelled> {
    control.begin(ProgressUnit::Steps);
    control.set_total(Some(MAX_ROUNDS as u64));
    let mut means = KMeans::new(embeddings);
    means.choose_centers(CLUSTERS, control)?;
    for _ in 0..MAX_ROUNDS {
        control.checkpoint()?;
        means.move_centers();
        if !means.assign() {
            break;
        }
        control.add_done(1);
    }
    let distances = means.exact_distances();
    let mut largest = vec![0.0_f32; means.centers.len()];
    for (&cluster, &distance) in means.cluster_of.iter().zip(&distances) {
        largest[cluster] = largest[cluster].max(distance);
    }
    let near = |(&cluster, &distance): (&usize, &f32)| {
        if largest[cluster] > 0.0 { 1.0 - distance / largest[cluster] } else { 1.0 }
    };
    Ok(means.cluster_of.iter().zip(&distances).map(near).collect())
}

/// Lloyd's algorithm, from centers that k-means++ chooses.
struct KMeans<'e> {
    embeddings: &'e Embeddings,
    /// Seen from the mean of all rows.
    centers: Vec<Vec<f32>>,
    cluster_of: Vec<usize>,
    /// Squared, of each row to the center of its cluster.
    distances: Vec<f32>,
}

impl<'e> KMeans<'e> {
    fn new(embeddings: &'e Embeddings) -> Self {
        let rows = embeddings.len();
        Self { embeddings, centers: Vec::new(), cluster_of: vec![0; rows], distances: vec![f32::INFINITY; rows] }
    }

    /// Chooses rows at random, in proportion to their squared distance to the centers so far (Arthur and Vassilvitskii,
    /// k-means++, SODA 2007), always the same ones.
    fn choose_centers(&mut self, count: usize, control: &TaskControl) -> Result<(), Cancelled> {
        let mut random = fastrand::Rng::with_seed(1);
        while self.centers.len() < count.min(self.embeddings.len()) {
            control.checkpoint()?;
            let row = if self.centers.is_empty() {
                random.usize(..self.embeddings.len())
            } else {
                let total: f64 = self.distances.iter().map(|distance| f64::from(*distance)).sum();
                let mut rest = random.f64() * total;
                let is_chosen = |distance: &f32| {
                    rest -= f64::from(*distance);
                    rest < 0.0
                };
                // All rows are at a center.
                let Some(row) = self.distances.iter().position(is_chosen) else { break };
                row
            };
            let Some(Embedding(values)) = self.embeddings.row(row) else { break };
            self.centers.push(centered(&values, &self.embeddings.center().mean));
            self.assign();
        }
        Ok(())
    }

    /// Finds the nearest center of each row, on all cores. Whether any row changed its cluster.
    fn assign(&mut self) -> bool {
        let Self { embeddings, centers, cluster_of, distances } = self;
        let (dims, center) = (embeddings.dims().max(1), embeddings.center());
        let squares: Vec<f32> = centers.iter().map(|center| center.iter().map(|value| value * value).sum()).collect();
        let nearest = |row: &[half::f16], norm: f32| {
            let distance = |cluster: usize| {
                let dot = centered_dot(row, &center.mean, &centers[cluster]);
                (norm * norm - 2.0 * dot + squares[cluster]).max(0.0)
            };
            let distances = (0..centers.len()).map(|cluster| (cluster, distance(cluster)));
            distances.min_by(|one, other| one.1.total_cmp(&other.1)).unwrap_or((0, 0.0))
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let part = cluster_of.len().div_ceil(threads).max(1);
        let parts = cluster_of.chunks_mut(part).zip(distances.chunks_mut(part));
        let rows = embeddings.values.chunks(part * dims).zip(center.norms.chunks(part));
        std::thread::scope(|scope| {
            let work = |clusters: &mut [usize], distances: &mut [f32], values: &[half::f16], norms: &[f32]| {
                let mut has_changed = false;
                let rows = values.chunks_exact(dims).zip(norms);
                for ((cluster, distance), (row, norm)) in clusters.iter_mut().zip(distances).zip(rows) {
                    let (found, at) = nearest(row, *norm);
                    has_changed |= found != *cluster;
                    (*cluster, *distance) = (found, at);
                }
                has_changed
            };
            let parts = parts.zip(rows).map(|((clusters, distances), (values, norms))| {
                scope.spawn(move || work(clusters, distances, values, norms))
            });
            let workers: Vec<_> = parts.collect();
            workers.into_iter().fold(false, |changed, worker| match worker.join() {
                Ok(has_changed) => changed | has_changed,
                Err(panic) => std::panic::resume_unwind(panic),
            })
        })
    }

    /// The distance of each row to the center of its cluster, which small differences of large squares would blur.
    fn exact_distances(&self) -> Vec<f32> {
        let mean = &self.embeddings.center().mean;
        let rows = self.embeddings.values.chunks_exact(self.embeddings.dims().max(1)).zip(&self.cluster_of);
        let distance = |(row, &cluster): (&[half::f16], &usize)| {
            let parts = row.iter().zip(mean).zip(&self.centers[cluster]);
            parts.map(|((value, mean), center)| (value.to_f32() - mean - center).powi(2)).sum::<f32>().sqrt()
        };
        rows.map(distance).collect()
    }

    /// Moves each center to the mean of its rows.
    fn move_centers(&mut self) {
        let (dims, mean) = (self.embeddings.dims().max(1), &self.embeddings.center().mean);
        let mut sums = vec![vec![0.0_f64; dims]; self.centers.len()];
        let mut counts = vec![0_usize; self.centers.len()];
        for (row, &cluster) in self.embeddings.values.chunks_exact(dims).zip(&self.cluster_of) {
            counts[cluster] += 1;
            for ((sum, value), mean) in sums[cluster].iter_mut().zip(row).zip(mean) {
                *sum += f64::from(value.to_f32() - mean);
            }
        }
        for ((center, sums), count) in self.centers.iter_mut().zip(sums).zip(counts) {
            if count > 0 {
                center.iter_mut().zip(sums).for_each(|(value, sum)| *value = (sum / count as f64) as f32);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::{NEIGHBORS, NeighborGraph, embeddings, outliers, uniqueness};
    use super::*;

    const TOLERANCE: f64 = 2e-4;

    fn control() -> TaskControl {
        TaskControl::new(ProgressUnit::Steps)
    }

    fn folder() -> std::path::PathBuf {
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cases")
    }

    /// Computed by `tests/cases/measures/make.py` with scikit-learn and cleanlab.
    fn expected() -> Value {
        serde_json::from_slice(&std::fs::read(folder().join("measures/expected.json")).unwrap()).unwrap()
    }

    fn read(file: &str, dims: &Value) -> Embeddings {
        let bytes = std::fs::read(folder().join(file)).unwrap();
        let mut all = Embeddings::default();
        for row in bytes.chunks(2 * dims.as_u64().unwrap() as usize) {
            assert!(all.push(&Embedding::from_bytes(row).unwrap()));
        }
        assert_eq!(all.len(), 300);
        all
    }

    fn check(what: &str, found: &[f32], expected: &Value) {
        let expected: Vec<f64> = serde_json::from_value(expected.clone()).unwrap();
        assert_eq!(found.len(), expected.len(), "{what}");
        for (row, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let error = (f64::from(*found) - expected).abs();
            assert!(error <= TOLERANCE, "{what}, row {row}: {found}, expected {expected}, tolerance {TOLERANCE}");
        }
    }

    #[test]
    fn uniqueness_and_outliers_match_scikit_learn_and_cleanlab() {
        let expected = expected();
        let all = read("alike/vectors.f16", &expected["dims"]);
        let graph = NeighborGraph::build(&all, NEIGHBORS, &control()).unwrap();
        check("uniqueness", &uniqueness(&graph), &expected["uniqueness"]);
        let found = outliers(&graph);
        check("outlier", &found.iter().map(|row| row.score).collect::<Vec<_>>(), &expected["outliers"]);
        let flagged: Vec<bool> = found.iter().map(|row| row.is_outlier).collect();
        assert_eq!(flagged, serde_json::from_value::<Vec<bool>>(expected["is_outlier"].clone()).unwrap());
        assert!(flagged.contains(&true));
    }

    #[test]
    fn representativeness_matches_scikit_learn() {
        let expected = expected();
        let all = read("measures/clusters.f16", &expected["cluster_dims"]);
        check("representativeness", &representativeness(&all, &control()).unwrap(), &expected["representativeness"]);
    }

    #[test]
    fn covers_match_scikit_learn() {
        let expected = expected();
        let all = read("alike/vectors.f16", &expected["dims"]);
        let covers = expected["covers"].as_array().unwrap();
        let mut compared = 0;
        for seed in 0..200 {
            let cover = Cover::choose(&all, 8, seed, &control()).unwrap();
            let Some(expected) = covers.get(cover.chosen[0]) else { continue };
            assert_eq!(serde_json::json!(cover.chosen), expected["chosen"]);
            check("coverage", &cover.coverage[7..], &serde_json::json!([expected["similarity"]]));
            for (row, nearest) in cover.nearest.iter().enumerate() {
                let similarity = |position: usize| all.similarity(row, cover.chosen[position]);
                let best = (0..8).map(similarity).fold(f32::NEG_INFINITY, f32::max);
                assert!(similarity(*nearest as usize) >= best - 1e-5, "row {row}");
            }
            assert_eq!(Cover::choose(&all, 8, seed, &control()).unwrap(), cover);
            compared += 1;
        }
        assert!(compared >= 3, "{compared}");
    }

    #[test]
    fn identical_few_and_no_vectors_have_values() {
        let rows = |rows: &[[f32; 2]]| embeddings(rows);
        for (all, unique) in [
            (rows(&[[1.0, 2.0]; 40]), 0.0),
            (rows(&[[0.0, 0.0]; 40]), 0.0),
            (rows(&[[1.0, 2.0]]), 1.0),
            (rows(&[[1.0, 2.0], [2.0, 1.0]]), 1.0),
            (rows(&[]), 1.0),
        ] {
            let graph = NeighborGraph::build(&all, NEIGHBORS, &control()).unwrap();
            assert_eq!(uniqueness(&graph), vec![unique; all.len()]);
            assert!(outliers(&graph).iter().all(|row| row.score.is_finite() && !row.is_outlier));
            let central = representativeness(&all, &control()).unwrap();
            assert!(
                central.len() == all.len() && central.iter().all(|value| (0.0..=1.0).contains(value)),
                "{central:?}"
            );
            let cover = Cover::choose(&all, 5, 1, &control()).unwrap();
            let different = if all.len() == 2 { 2 } else { all.len().min(1) };
            assert_eq!((cover.chosen.len(), cover.nearest.len()), (different, all.len()));
        }
        let cancelled = control();
        cancelled.cancel();
        assert_eq!(Cover::choose(&rows(&[[1.0, 0.0]; 4]), 2, 1, &cancelled), Err(Cancelled));
        assert_eq!(representativeness(&rows(&[[1.0, 0.0]; 4]), &cancelled), Err(Cancelled));
    }
}
