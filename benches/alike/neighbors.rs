//! The principal components of 100,000 embeddings of 1,280 numbers, the 15 nearest neighbors of each, and their map, on
//! all cores: `cargo bench --bench neighbors [-- ROWS]`. `benches/alike/neighbors_peer.py` finds the neighbors with
//! NumPy. Then the components that boxes are reduced to.

#![expect(clippy::print_stdout, reason = "it reports to people")]

use std::time::Instant;

use spotcheck::alike::{Embedding, Embeddings, NEIGHBORS, NeighborGraph, Pca, Point, Umap};
use spotcheck::tasks::{ProgressUnit, TaskControl};

const DIMS: usize = 1280;
/// Rows are near one of them, like images of the same kind.
const GROUPS: usize = 200;
/// As `project::embeddings` reduces the boxes of the SSD that comes with Spotcheck.
const BOXES_TO_FIT: usize = 16_384;
const BOX_DIMS: usize = 576;
const REDUCED_DIMS: usize = 96;

fn main() {
    let rows = std::env::args().skip(1).find_map(|text| text.parse().ok()).unwrap_or(100_000);
    let all = embeddings(rows, DIMS);
    println!("{rows} rows of {DIMS} numbers, {} MB", rows * DIMS * 2 / 1_000_000);
    let control = TaskControl::new(ProgressUnit::Steps);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let start = Instant::now();
    let Ok(components) = Pca::fit(&all, 2, threads, &control) else {
        return;
    };
    println!("PCA, 2 components: {:.1} s", start.elapsed().as_secs_f64());
    let start = Instant::now();
    let places: Vec<Point> =
        (0..rows).filter_map(|row| components.transform(&all.row(row)?)?.try_into().ok()).collect();
    println!("PCA, positions: {:.1} s", start.elapsed().as_secs_f64());
    let start = Instant::now();
    let Ok(graph) = NeighborGraph::build(&all, NEIGHBORS, &control) else {
        return;
    };
    let secs = start.elapsed().as_secs_f64();
    let operations = (rows * rows) as f64 * DIMS as f64;
    println!("{NEIGHBORS} neighbors: {secs:.1} s, {:.0} GFLOP/s", operations / secs / 1e9);
    println!("peak memory {} MB", peak_memory_mb().unwrap_or_default());
    for row in [0, rows / 2, rows - 1] {
        let expected = all.row(row).map(|query| all.nearest(&query, NEIGHBORS + 1)).unwrap_or_default();
        let expected = expected.iter().filter(|found| found.row != row);
        let is_same =
            expected.zip(graph.neighbors(row)).all(|(one, other)| (one.similarity - other.similarity).abs() < 1e-4);
        assert!(is_same, "row {row} has other neighbors than a search finds");
    }
    let start = Instant::now();
    let mut umap = Umap::new(&graph, &places, 1);
    let made = start.elapsed().as_secs_f64();
    while umap.step() {}
    println!("UMAP: graph {made:.1} s, {} epochs {:.1} s", umap.epochs(), start.elapsed().as_secs_f64() - made);
    drop((umap, graph, all));
    let boxes = embeddings(BOXES_TO_FIT, BOX_DIMS);
    let start = Instant::now();
    let fitted = Pca::fit(&boxes, REDUCED_DIMS, 1, &control).map_or(0, |components| components.count());
    let secs = start.elapsed().as_secs_f64();
    println!("PCA, {fitted} components of {BOXES_TO_FIT} boxes with {BOX_DIMS} numbers, on one core: {secs:.1} s");
}

/// Pseudo-random numbers, `0.0..1.0`.
fn random_numbers(seed: u32) -> impl FnMut() -> f32 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f32::from((state >> 16) as u16) / 65_536.0
    }
}

fn embeddings(rows: usize, dims: usize) -> Embeddings {
    let mut random = random_numbers(1);
    let centers: Vec<f32> = (0..GROUPS * dims).map(|_| random()).collect();
    let mut all = Embeddings::default();
    for row in 0..rows {
        let center = &centers[row % GROUPS * dims..][..dims];
        let values: Vec<f32> = center.iter().map(|center| center + random()).collect();
        assert!(Embedding::new(&values).is_some_and(|embedding| all.push(&embedding)));
    }
    all
}

/// `None` if the system does not report it.
fn peak_memory_mb() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = peak.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kilobytes / 1000)
}
