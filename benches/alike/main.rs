//! One search among 100,000 embeddings of 1,280 numbers, on one core: `cargo bench --bench alike`. The limit is reading
//! the vectors from memory once; `benches/alike/numpy_peer.py` does the same with NumPy and 32-bit floats.

#![expect(clippy::print_stdout, reason = "it reports to people")]

use std::time::Instant;

use spotcheck::alike::{Embedding, Embeddings};

const ROWS: usize = 100_000;
const DIMS: usize = 1280;

fn main() {
    let mut state = 1_u32;
    let mut number = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f32::from((state >> 16) as u16) / 65_536.0
    };
    let mut all = Embeddings::default();
    for _ in 0..ROWS {
        let values: Vec<f32> = (0..DIMS).map(|_| number()).collect();
        assert!(Embedding::new(&values).is_some_and(|embedding| all.push(&embedding)));
    }
    let Some(query) = all.row(7) else { return };
    let start = Instant::now();
    let first = all.nearest(&query, 20);
    println!("first search, with the mean: {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
    let times = (0..15).map(|_| {
        let start = Instant::now();
        assert_eq!(all.nearest(&query, 20), first);
        start.elapsed().as_secs_f64() * 1e3
    });
    let mut times: Vec<f64> = times.collect();
    times.sort_by(f64::total_cmp);
    println!("next searches: median {:.1} ms, best {:.1} ms, worst {:.1} ms", times[7], times[0], times[14]);
    let start = Instant::now();
    let clusters = all.clusters(60, || false).map_or(0, |clusters| clusters.examples.len());
    println!("{clusters} clusters: {:.1} s", start.elapsed().as_secs_f64());
    let bytes = (ROWS * DIMS * 2) as u64;
    println!("{} MB of vectors, {:.1} GB/s", bytes / 1_000_000, bytes as f64 / times[7] / 1e6);
}
