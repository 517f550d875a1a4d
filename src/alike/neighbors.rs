//! The nearest neighbors of every row: exact, by matrix products of blocks of rows. Every pair is compared once.

use std::sync::atomic::{AtomicUsize, Ordering};

use half::slice::HalfFloatSliceExt as _;
use parking_lot::Mutex;

use super::{Embeddings, Neighbor};
use crate::tasks::{Cancelled, ProgressUnit, TaskControl};

/// The usual number of neighbors.
pub const NEIGHBORS: usize = 15;

/// The rows that are compared in one step: the products of two blocks fit into a core's cache.
const BLOCK: usize = 512;

/// The nearest neighbors of every row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NeighborGraph {
    /// Neighbors per row.
    count: usize,
    rows: usize,
    neighbors: Vec<Neighbor>,
}

impl NeighborGraph {
    /// Finds the `count` most similar other rows of each row, or all if there are fewer: those that
    /// [`Embeddings::nearest`] finds, apart from rounding. Uses all cores; progress is in steps.
    ///
    /// # Errors
    /// [`Cancelled`]
    pub fn build(embeddings: &Embeddings, count: usize, control: &TaskControl) -> Result<Self, Cancelled> {
        let rows = embeddings.len();
        let count = count.min(rows.saturating_sub(1));
        control.begin(ProgressUnit::Steps);
        if count > 0 {
            Comparison::new(embeddings, count, control).run().map(|neighbors| Self { count, rows, neighbors })
        } else {
            control.checkpoint().map(|()| Self { rows, ..Self::default() })
        }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The number of neighbors of each row.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The neighbors of a row, most similar first; equally similar ones in their order.
    pub fn neighbors(&self, row: usize) -> &[Neighbor] {
        self.neighbors.get(row * self.count..(row + 1) * self.count).unwrap_or_default()
    }
}

/// The pairs of blocks to compare, and the best neighbors so far.
struct Comparison<'e> {
    embeddings: &'e Embeddings,
    control: &'e TaskControl,
    blocks: Vec<Mutex<Block>>,
    pairs: Vec<(usize, usize)>,
    next: AtomicUsize,
}

impl<'e> Comparison<'e> {
    fn new(embeddings: &'e Embeddings, count: usize, control: &'e TaskControl) -> Self {
        let starts = (0..embeddings.len()).step_by(BLOCK);
        let sizes = starts.map(|start| BLOCK.min(embeddings.len() - start));
        let blocks: Vec<_> = sizes.map(|rows| Mutex::new(Block::new(rows, count))).collect();
        let pairs: Vec<_> =
            (0..blocks.len()).flat_map(|one| (one..blocks.len()).map(move |other| (one, other))).collect();
        control.set_total(Some(pairs.len() as u64));
        Self { embeddings, control, blocks, pairs, next: AtomicUsize::new(0) }
    }

    fn run(self) -> Result<Vec<Neighbor>, Cancelled> {
        // The lengths of all rows are computed once, before several threads need them.
        self.embeddings.center();
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            let workers: Vec<_> = (1..threads).map(|_| scope.spawn(|| self.work())).collect();
            let own = self.work();
            let rest = workers.into_iter().map(|worker| match worker.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            rest.fold(own, Result::and)
        })?;
        Ok(self.blocks.into_iter().flat_map(|block| block.into_inner().best).collect())
    }

    fn work(&self) -> Result<(), Cancelled> {
        let (mut left, mut right) = (Directions::default(), Directions::default());
        let mut similarities = Vec::new();
        let mut found = Vec::new();
        loop {
            self.control.checkpoint()?;
            let Some(&(one, other)) = self.pairs.get(self.next.fetch_add(1, Ordering::Relaxed)) else {
                return Ok(());
            };
            left.read(self.embeddings, one);
            right.read(self.embeddings, other);
            multiply(&left, &right, &mut similarities);
            found.clear();
            let limits = [one, other].map(|block| self.blocks[block].lock().limits.clone());
            select(&similarities, [&limits[0], &limits[1]], one == other, &mut found);
            self.blocks[one].lock().take(
                found
                    .iter()
                    .map(|&(row, column, similarity)| (row, Neighbor { row: other * BLOCK + column, similarity })),
            );
            self.blocks[other].lock().take(
                found
                    .iter()
                    .map(|&(row, column, similarity)| (column, Neighbor { row: one * BLOCK + row, similarity })),
            );
            self.control.add_done(1);
        }
    }
}

/// The best neighbors so far of the rows of a block.
struct Block {
    count: usize,
    /// `count` per row, best first; at the beginning, the worst possible.
    best: Vec<Neighbor>,
    /// The similarity of the last neighbor of each row: what others must reach.
    limits: Vec<f32>,
}

impl Block {
    fn new(rows: usize, count: usize) -> Self {
        let nobody = Neighbor { row: usize::MAX, similarity: f32::NEG_INFINITY };
        Self { count, best: vec![nobody; rows * count], limits: vec![f32::NEG_INFINITY; rows] }
    }

    /// Keeps the best of the present and the new neighbors, which the rows of the block are paired with.
    fn take(&mut self, found: impl Iterator<Item = (usize, Neighbor)>) {
        for (row, neighbor) in found {
            let best = &mut self.best[row * self.count..(row + 1) * self.count];
            let is_better = |known: &Neighbor| {
                neighbor.similarity.total_cmp(&known.similarity).then(known.row.cmp(&neighbor.row)).is_gt()
            };
            let place = best.partition_point(|known| !is_better(known));
            if place < best.len() {
                best[place..].rotate_right(1);
                best[place] = neighbor;
                self.limits[row] = best[self.count - 1].similarity;
            }
        }
    }
}

/// The directions of a block's rows, seen from the mean: vectors of length 1.
#[derive(Default)]
struct Directions {
    block: Option<usize>,
    /// Row after row.
    values: Vec<f32>,
    rows: usize,
    dims: usize,
}

impl Directions {
    /// Reads a block, unless it is here already. One more dimension makes the product of two rows at the mean 1, and
    /// that of one of them with any other row 0.
    fn read(&mut self, embeddings: &Embeddings, block: usize) {
        if self.block == Some(block) {
            return;
        }
        let start = block * BLOCK;
        let end = embeddings.len().min(start + BLOCK);
        let dims = embeddings.dims();
        (self.block, self.rows, self.dims) = (Some(block), end - start, dims + 1);
        self.values.resize(self.rows * self.dims, 0.0);
        let center = embeddings.center();
        let rows = embeddings.values[start * dims..end * dims].chunks_exact(dims).zip(&center.norms[start..end]);
        for ((row, &norm), out) in rows.zip(self.values.chunks_exact_mut(self.dims)) {
            let (out, last) = out.split_at_mut(dims);
            row.convert_to_f32_slice(out);
            let scale = if norm > 0.0 { norm.recip() } else { 0.0 };
            for (value, mean) in out.iter_mut().zip(&center.mean) {
                *value = (*value - mean) * scale;
            }
            last[0] = if norm > 0.0 { 0.0 } else { 1.0 };
        }
    }
}

/// The products of all rows of `left` with all of `right`, row after row.
fn multiply(left: &Directions, right: &Directions, products: &mut Vec<f32>) {
    products.resize(left.rows * right.rows, 0.0);
    let dims = left.dims as isize;
    // SAFETY: both have `rows * dims` numbers, row after row; the second is read as its transpose.
    unsafe {
        matrixmultiply::sgemm(
            left.rows,
            left.dims,
            right.rows,
            1.0,
            left.values.as_ptr(),
            dims,
            1,
            right.values.as_ptr(),
            1,
            dims,
            0.0,
            products.as_mut_ptr(),
            right.rows as isize,
            1,
        );
    }
}

/// The pairs that one of both rows may need, with their similarity. Of a block with itself, each pair only once.
fn select(similarities: &[f32], limits: [&[f32]; 2], is_same: bool, found: &mut Vec<(usize, usize, f32)>) {
    const CHUNK: usize = 16;
    let [left, right] = limits;
    for (row, (similarities, &limit)) in similarities.chunks_exact(right.len()).zip(left).enumerate() {
        let chunks = similarities.chunks(CHUNK).zip(right.chunks(CHUNK));
        for (chunk, (similarities, limits)) in chunks.enumerate() {
            // Without branches, several at a time.
            let is_needed = |(&similarity, &other): (&f32, &f32)| similarity >= limit.min(other);
            if !similarities.iter().zip(limits).fold(false, |any, pair| any | is_needed(pair)) {
                continue;
            }
            for (place, pair) in similarities.iter().zip(limits).enumerate() {
                let column = chunk * CHUNK + place;
                if is_needed(pair) && (!is_same || row < column) {
                    found.push((row, column, pair.0.clamp(-1.0, 1.0)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alike::embeddings;

    fn control() -> TaskControl {
        TaskControl::new(ProgressUnit::Images)
    }

    fn random(rows: usize, dims: usize) -> Embeddings {
        let mut random = fastrand::Rng::with_seed(7);
        embeddings((0..rows).map(|_| (0..dims).map(|_| random.f32()).collect::<Vec<_>>()))
    }

    fn rows(neighbors: &[Neighbor]) -> Vec<usize> {
        neighbors.iter().map(|neighbor| neighbor.row).collect()
    }

    #[test]
    fn graph_equals_a_search_from_every_row() {
        const TOLERANCE: f32 = 1e-5;
        // Several blocks, the last of them not full.
        let all = random(2 * BLOCK + 77, 20);
        let control = control();
        let graph = NeighborGraph::build(&all, NEIGHBORS, &control).unwrap();
        assert_eq!((graph.len(), graph.count()), (all.len(), NEIGHBORS));
        assert_eq!(control.progress().fraction(), Some(1.0));
        for row in 0..all.len() {
            let expected = all.nearest(&all.row(row).unwrap(), NEIGHBORS + 1);
            let expected: Vec<Neighbor> = expected.into_iter().filter(|found| found.row != row).collect();
            for (found, expected) in graph.neighbors(row).iter().zip(&expected) {
                let error = (found.similarity - expected.similarity).abs();
                assert!(error <= TOLERANCE, "row {row}: {found:?}, expected {expected:?}, tolerance {TOLERANCE}");
            }
            assert!(!rows(graph.neighbors(row)).contains(&row));
        }
    }

    #[test]
    fn identical_rows_and_those_at_the_mean_are_neighbors() {
        let same = embeddings(vec![[0.5, 3.0, -1.0]; BLOCK + 1]);
        let graph = NeighborGraph::build(&same, 3, &control()).unwrap();
        assert_eq!(rows(graph.neighbors(0)), [1, 2, 3]);
        assert_eq!(rows(graph.neighbors(BLOCK)), [0, 1, 2]);
        assert!(graph.neighbors(9).iter().all(|neighbor| neighbor.similarity == 1.0));
        let mixed = embeddings([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]);
        let graph = NeighborGraph::build(&mixed, 9, &control()).unwrap();
        assert_eq!(graph.count(), 3);
        assert_eq!(graph.neighbors(2)[0], Neighbor { row: 3, similarity: 1.0 });
        assert_eq!(graph.neighbors(2)[1], Neighbor { row: 0, similarity: 0.0 });
        assert_eq!(graph.neighbors(0)[2], Neighbor { row: 1, similarity: -1.0 });
    }

    #[test]
    fn few_rows_and_cancellation_are_handled() {
        let graph = |rows| NeighborGraph::build(&random(rows, 4), NEIGHBORS, &control()).unwrap();
        assert!(graph(0).is_empty());
        assert_eq!((graph(1).len(), graph(1).count()), (1, 0));
        assert!(graph(1).neighbors(0).is_empty());
        assert_eq!(rows(graph(2).neighbors(1)), [0]);
        let canceled = control();
        canceled.cancel();
        assert_eq!(NeighborGraph::build(&random(5, 4), NEIGHBORS, &canceled), Err(Cancelled));
        assert_eq!(NeighborGraph::build(&random(1, 4), NEIGHBORS, &canceled), Err(Cancelled));
    }
}
