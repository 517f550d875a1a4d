//! A map of embeddings: UMAP (`McInnes`, Healy and Melville 2018, <https://arxiv.org/abs/1802.03426>) in two dimensions,
//! from a graph of nearest neighbors. The constants are those of umap-learn (<https://umap-learn.readthedocs.io>). Other
//! than there, all points of an epoch move together, so the map is the same on any number of cores.

use super::{Neighbor, NeighborGraph};

/// A position on the map.
pub type Point = [f32; 2];

/// The curve `1 / (1 + a * d^(2b))` that is closest to umap-learn's defaults, a `min_dist` of 0.1 and a `spread` of 1.
const A: f32 = 1.576_943_5;
const B: f32 = 0.895_060_9;
/// Points that each point is pushed from, per neighbor that it is drawn to.
const NEGATIVES: usize = 5;
/// No single force moves a point further.
const MAX_FORCE: f32 = 4.0;
/// The side of the map at the start.
const SIDE: f32 = 10.0;
/// Separates points that start at the same position.
const NOISE: f32 = 1e-3;
/// Rows that a thread is worth starting for.
const ROWS_PER_THREAD: usize = 2000;

/// A map while it is made.
#[derive(Debug, Clone)]
pub struct Umap {
    /// The edges of a row are `edges[starts[row]..starts[row + 1]]`.
    starts: Vec<usize>,
    edges: Vec<Edge>,
    positions: Vec<Point>,
    before: Vec<Point>,
    seed: u64,
    epoch: usize,
    epochs: usize,
}

#[derive(Debug, Clone, Copy)]
struct Edge {
    row: u32,
    /// `0.0..=1.0`: the share of the epochs in which it draws.
    weight: f32,
}

impl Umap {
    /// Starts from a position per row of the graph, usually the first two principal components.
    pub fn new(graph: &NeighborGraph, start: &[Point], seed: u64) -> Self {
        let epochs = if graph.len() <= 10_000 { 500 } else { 200 };
        let (starts, edges) = symmetric_edges(graph, epochs);
        let mut positions = start.to_vec();
        positions.resize(graph.len(), [0.0; 2]);
        spread(&mut positions, seed);
        Self { starts, edges, before: positions.clone(), positions, seed, epoch: 0, epochs }
    }

    pub fn epoch(&self) -> usize {
        self.epoch
    }

    /// The number of epochs until the map is finished.
    pub fn epochs(&self) -> usize {
        self.epochs
    }

    /// A position per row.
    pub fn positions(&self) -> &[Point] {
        &self.positions
    }

    /// Moves all points by an epoch, on all cores. Returns whether the map is unfinished.
    pub fn step(&mut self) -> bool {
        if self.epoch >= self.epochs {
            return false;
        }
        self.before.copy_from_slice(&self.positions);
        let rows = self.positions.len();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = rows.div_ceil(ROWS_PER_THREAD).clamp(1, cores);
        let part = rows.div_ceil(threads).max(1);
        let mut positions = std::mem::take(&mut self.positions);
        std::thread::scope(|scope| {
            let mut parts = positions.chunks_mut(part).enumerate();
            let own = parts.next();
            let this = &*self;
            for (number, points) in parts {
                scope.spawn(move || this.move_points(number * part, points));
            }
            if let Some((_, points)) = own {
                this.move_points(0, points);
            }
        });
        self.positions = positions;
        self.epoch += 1;
        self.epoch < self.epochs
    }

    /// Moves the points from row `first` on.
    fn move_points(&self, first: usize, points: &mut [Point]) {
        let pace = 1.0 - self.epoch as f32 / self.epochs as f32;
        for (row, point) in (first..).zip(points) {
            let seed = self.seed ^ ((self.epoch as u64) << 40) ^ row as u64;
            let mut random = fastrand::Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            for edge in &self.edges[self.starts[row]..self.starts[row + 1]] {
                if !edge.is_due(self.epoch) {
                    continue;
                }
                // Twice: an edge draws both of its ends, from either side.
                for _ in 0..2 {
                    push(point, self.before[edge.row as usize], pace, attraction);
                }
                for _ in 0..NEGATIVES {
                    let other = random.usize(..self.before.len());
                    if other != row {
                        push(point, self.before[other], pace, repulsion);
                    }
                }
            }
        }
    }
}

impl Edge {
    /// Whether the edge draws in this epoch: as often as its weight, at even distances.
    fn is_due(self, epoch: usize) -> bool {
        let times = |epochs: usize| (epochs as f32 * self.weight).floor();
        epoch > 0 && times(epoch) > times(epoch - 1)
    }
}

/// Moves a point along the line to another one, by a force that depends on their squared distance.
fn push(point: &mut Point, other: Point, pace: f32, force: fn(f32) -> f32) {
    let difference = [point[0] - other[0], point[1] - other[1]];
    let squared = difference[0] * difference[0] + difference[1] * difference[1];
    let force = force(squared);
    for (value, difference) in point.iter_mut().zip(difference) {
        *value += (force * difference).clamp(-MAX_FORCE, MAX_FORCE) * pace;
    }
}

fn attraction(squared: f32) -> f32 {
    if squared <= 0.0 {
        return 0.0;
    }
    let power = squared.powf(B);
    -2.0 * A * B * power / (squared * (A * power + 1.0))
}

fn repulsion(squared: f32) -> f32 {
    if squared <= 0.0 {
        return 0.0;
    }
    2.0 * B / ((0.001 + squared) * (A * squared.powf(B) + 1.0))
}

/// Scales the map to [`SIDE`], with some noise.
fn spread(positions: &mut [Point], seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    for axis in 0..2 {
        let finite = positions.iter().map(|point| point[axis]).filter(|value| value.is_finite());
        let (low, high) =
            finite.fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        let scale = if high > low { SIDE / (high - low) } else { 0.0 };
        for point in &mut *positions {
            let value = if point[axis].is_finite() { (point[axis] - low) * scale } else { SIDE / 2.0 };
            point[axis] = value + NOISE * (random.f32() - 0.5);
        }
    }
}

/// The fuzzy union of the neighborhoods of all rows: for each row its edges, by how certainly either row is a neighbor
/// of the other.
fn symmetric_edges(graph: &NeighborGraph, epochs: usize) -> (Vec<usize>, Vec<Edge>) {
    let count = graph.count();
    let mut weights = Vec::with_capacity(graph.len() * count);
    for row in 0..graph.len() {
        weights.extend(memberships(graph.neighbors(row)));
    }
    let weight = |row: usize, other: usize| {
        let place = graph.neighbors(row).iter().position(|neighbor| neighbor.row == other);
        place.map(|place| weights[row * count + place])
    };
    let mut directed: Vec<(u32, Edge)> = Vec::new();
    for row in 0..graph.len() {
        for (neighbor, &forth) in graph.neighbors(row).iter().zip(&weights[row * count..]) {
            let back = weight(neighbor.row, row);
            let union = forth + back.unwrap_or(0.0) - forth * back.unwrap_or(0.0);
            let mut add = |from: usize, to: usize| directed.push((from as u32, Edge { row: to as u32, weight: union }));
            add(row, neighbor.row);
            if back.is_none() {
                add(neighbor.row, row);
            }
        }
    }
    let strongest = directed.iter().map(|(_, edge)| edge.weight).fold(f32::MIN_POSITIVE, f32::max);
    // An edge that would never draw.
    directed.retain(|(_, edge)| edge.weight * epochs as f32 >= strongest);
    directed.sort_unstable_by_key(|(from, edge)| (*from, edge.row));
    let mut starts = vec![0; graph.len() + 1];
    for (from, _) in &directed {
        starts[*from as usize + 1] += 1;
    }
    for row in 0..graph.len() {
        starts[row + 1] += starts[row];
    }
    let scaled = |(_, edge): (u32, Edge)| Edge { weight: edge.weight / strongest, ..edge };
    (starts, directed.into_iter().map(scaled).collect())
}

/// How certainly each neighbor belongs to the neighborhood of a row: 1 for the nearest, and less with the distance, so
/// that all together have the same weight in dense and sparse regions.
fn memberships(neighbors: &[Neighbor]) -> Vec<f32> {
    const TOLERANCE: f32 = 1e-5;
    const MAX_ITERATIONS: usize = 64;
    /// The scale is at least this share of the mean distance.
    const MIN_SCALE: f32 = 1e-3;
    let distances: Vec<f32> = neighbors.iter().map(|neighbor| (1.0 - neighbor.similarity).max(0.0)).collect();
    let nearest = distances.iter().copied().find(|&distance| distance > 0.0).unwrap_or(0.0);
    // The row itself is one of them in umap-learn, and has no distance.
    let wanted = ((neighbors.len() + 1) as f32).log2();
    let membership = |distance: f32, scale: f32| match distance - nearest {
        beyond if beyond > 0.0 => (-beyond / scale).exp(),
        _ => 1.0,
    };
    let (mut low, mut high, mut scale) = (0.0, f32::INFINITY, 1.0);
    for _ in 0..MAX_ITERATIONS {
        let sum: f32 = distances.iter().map(|&distance| membership(distance, scale)).sum();
        if (sum - wanted).abs() < TOLERANCE {
            break;
        }
        if sum > wanted {
            high = scale;
            scale = f32::midpoint(low, high);
        } else {
            low = scale;
            scale = if high.is_finite() { f32::midpoint(low, high) } else { scale * 2.0 };
        }
    }
    let mean = distances.iter().sum::<f32>() / distances.len().max(1) as f32;
    let scale = scale.max(MIN_SCALE * mean).max(f32::MIN_POSITIVE);
    distances.into_iter().map(|distance| membership(distance, scale)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alike::{Embeddings, NEIGHBORS, Pca, embeddings};
    use crate::tasks::{ProgressUnit, TaskControl};

    fn graph(rows: &Embeddings) -> NeighborGraph {
        NeighborGraph::build(rows, NEIGHBORS, &TaskControl::new(ProgressUnit::Steps)).unwrap()
    }

    fn map(rows: &Embeddings, start: &[Point], seed: u64) -> Vec<Point> {
        let mut umap = Umap::new(&graph(rows), start, seed);
        while umap.step() {}
        assert_eq!(umap.epoch(), umap.epochs());
        umap.positions().to_vec()
    }

    /// Venna and Kaski 2001: 1 if all neighbors on the map are also neighbors among the rows.
    fn trustworthiness(rows: &Embeddings, map: &[Point]) -> f64 {
        let mut penalty = 0;
        for (row, at) in map.iter().enumerate() {
            let ranks = rows.nearest(&rows.row(row).unwrap(), rows.len());
            let mut rank_of = vec![0; rows.len()];
            let others = ranks.iter().filter(|other| other.row != row);
            for (rank, other) in others.enumerate() {
                rank_of[other.row] = rank + 1;
            }
            let distance = |other: usize| (0..2).map(|axis| (map[other][axis] - at[axis]).powi(2)).sum::<f32>();
            let mut near: Vec<usize> = (0..map.len()).filter(|other| *other != row).collect();
            near.sort_by(|left, right| distance(*left).total_cmp(&distance(*right)));
            penalty += near[..NEIGHBORS].iter().map(|other| rank_of[*other].saturating_sub(NEIGHBORS)).sum::<usize>();
        }
        let (count, near) = (map.len() as f64, NEIGHBORS as f64);
        1.0 - penalty as f64 * 2.0 / (count * near * (2.0 * count - 3.0 * near - 1.0))
    }

    /// As `tests/cases/alike/make_map.py` computes it with umap-learn.
    #[test]
    fn map_keeps_neighborhoods_like_umap_learn() {
        const TOLERANCE: f64 = 0.01;
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cases/alike");
        let expected: serde_json::Value =
            serde_json::from_slice(&std::fs::read(folder.join("map.json")).unwrap()).unwrap();
        let digits = std::fs::read(folder.join("digits.u8")).unwrap();
        let digit = |row: &[u8]| row.iter().map(|value| f32::from(*value)).collect::<Vec<_>>();
        let rows = embeddings(digits.chunks(64).map(digit));
        assert_eq!(rows.len() as u64, expected["rows"].as_u64().unwrap());
        let pca = Pca::fit(&rows, 2, 1, &TaskControl::new(ProgressUnit::Steps)).unwrap();
        let start: Vec<Point> =
            (0..rows.len()).map(|row| pca.transform(&rows.row(row).unwrap()).unwrap().try_into().unwrap()).collect();
        let of_start = trustworthiness(&rows, &start);
        let expected_start = expected["pca"].as_f64().unwrap();
        assert!((of_start - expected_start).abs() < 2e-3, "{of_start}, expected {expected_start}, tolerance 0.002");
        let found = map(&rows, &start, 1);
        assert_eq!(found, map(&rows, &start, 1), "the same seed");
        let of_map = trustworthiness(&rows, &found);
        let maps: Vec<f64> = serde_json::from_value(expected["umap"].clone()).unwrap();
        let mean = maps.iter().sum::<f64>() / maps.len() as f64;
        assert!((of_map - mean).abs() < TOLERANCE, "{of_map}, expected {mean}, tolerance {TOLERANCE}");
    }

    #[test]
    fn few_and_identical_rows_have_finite_positions() {
        for count in [0, 1, 2, 40] {
            let rows = embeddings(vec![[1.0, 2.0]; count]);
            let found = map(&rows, &[[f32::NAN, 3.0]], 1);
            assert_eq!(found.len(), count);
            assert!(found.as_flattened().iter().all(|value| value.is_finite()), "{found:?}");
        }
    }
}
