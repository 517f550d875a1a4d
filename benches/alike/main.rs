//! One search among 100,000 embeddings of 1,280 numbers, on one core: `cargo bench --bench alike`. The limit is reading
//! the vectors from memory once; `benches/alike/numpy_peer.py` does the same with NumPy and 32-bit floats. Then the
//! same among 1,000,000 reduced boxes, and the clusters and tests of error patterns.

#![expect(clippy::print_stdout, reason = "it reports to people")]

use std::time::Instant;

use spotcheck::alike::{Clusters, Embedding, Embeddings};
use spotcheck::annotations::matching::MatchSummary;
use spotcheck::domain::ModelTask;
use spotcheck::evaluation::{
    Attribute, Counted, EvaluatedClass, ImageGroup, ImageSides, MatchedClasses, Sides, find_patterns,
};

const ROWS: usize = 100_000;
const DIMS: usize = 1280;
const BOXES: usize = 1_000_000;
/// Of a reduced box.
const BOX_DIMS: usize = 96;
/// As many as an evaluation makes of so many images.
const CLUSTERS: usize = 60;
const CLASSES: u32 = 100;

fn main() {
    let all = random(ROWS, DIMS);
    search(&all);
    let start = Instant::now();
    let clusters = all.clusters(CLUSTERS, || false).unwrap_or_default();
    println!("{} clusters: {:.1} s", clusters.examples.len(), start.elapsed().as_secs_f64());
    drop(all);
    search(&random(BOXES, BOX_DIMS));
    find_error_patterns(&clusters);
}

fn random(rows: usize, dims: usize) -> Embeddings {
    let mut state = 1_u32;
    let mut number = || f32::from(next(&mut state)) / 65_536.0;
    let mut all = Embeddings::default();
    for _ in 0..rows {
        let values: Vec<f32> = (0..dims).map(|_| number()).collect();
        assert!(Embedding::new(&values).is_some_and(|embedding| all.push(&embedding)));
    }
    all
}

fn search(all: &Embeddings) {
    println!("{} vectors of {} numbers", all.len(), all.dims());
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
    let bytes = (all.len() * all.dims() * 2) as u64;
    println!("{} MB of vectors, {:.1} GB/s", bytes / 1_000_000, bytes as f64 / times[7] / 1e6);
}

fn next(state: &mut u32) -> u16 {
    *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    (*state >> 16) as u16
}

fn below(state: &mut u32, limit: u32) -> u32 {
    (u32::from(next(state)) * limit) >> 16
}

/// Errors of a classifier with as many classes in a fifth of the images, in the clusters and in seven other groupings.
fn find_error_patterns(clusters: &Clusters) {
    let mut state = 1_u32;
    let mut image = |at: usize| {
        let truth = below(&mut state, CLASSES);
        let predicted = if below(&mut state, 5) == 0 { below(&mut state, CLASSES) } else { truth };
        let (name, classes) = (format!("{at}.jpg"), vec![(predicted, 0.9)]);
        ImageSides { name, truth_class: Some(truth), classes, ..ImageSides::default() }
    };
    let images = (0..ROWS).map(&mut image).collect();
    let sides = Sides {
        task: ModelTask::Classification,
        classes: vec![EvaluatedClass::default(); CLASSES as usize],
        matched: MatchedClasses::default(),
        model_classes: Vec::new(),
        images,
        thresholds: vec![0.5; CLASSES as usize],
        counted: Counted::default(),
        matching: MatchSummary::default(),
        split: None,
        notes: Vec::new(),
    };
    let mut groups: Vec<Vec<u32>> = vec![Vec::new(); CLUSTERS];
    for (cluster, image) in clusters.of_row.iter().zip(0..) {
        groups[cluster.unwrap_or_default() as usize].push(image);
    }
    for count in [4, 4, 4, 3, 20, 100, 1000] {
        let first = groups.len();
        groups.resize(first + count, Vec::new());
        (0..ROWS as u32).for_each(|image| groups[first + below(&mut state, count as u32) as usize].push(image));
    }
    let group = |images| ImageGroup { attribute: Attribute::Likeness, value: String::new(), images };
    let groups: Vec<ImageGroup> = groups.into_iter().map(group).collect();
    let start = Instant::now();
    let found = find_patterns(&sides, None, &groups, || false).unwrap_or_default();
    let seconds = start.elapsed().as_secs_f64();
    println!("{} tests of {ROWS} images: {seconds:.2} s; {} patterns", found.tests, found.patterns.len());
}
