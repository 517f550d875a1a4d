//! How unusual each image is among all, by the distances to its nearest neighbors: 1 minus their similarity.

use strum::IntoStaticStr;

use super::{CENTER_METRIC, METRIC, NeighborGraph};

/// What an embedding says about an image among all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Measure {
    Uniqueness,
    #[strum(serialize = "outlier score")]
    Outlier,
    Representativeness,
}

impl Measure {
    /// The distance or similarity that it is computed from.
    pub fn metric(self) -> &'static str {
        match self {
            Self::Uniqueness | Self::Outlier => METRIC,
            Self::Representativeness => CENTER_METRIC,
        }
    }
}

/// The part of each of the three nearest neighbors in the uniqueness.
const UNIQUENESS_WEIGHTS: [f32; 3] = [0.6, 0.3, 0.1];
/// The number of neighbors in the outlier score.
const OUTLIER_NEIGHBORS: usize = 10;
/// How many interquartile ranges above the third quartile the distance of an outlier is: `1 / 0.37037 - 1`.
const OUTLIER_RANGES: f32 = 1.7;
/// Smaller distances are rounding errors.
const LEAST_DISTANCE: f32 = 1e-5;

/// The uniqueness of each row, from 0 to 1 for the most unique one, as in `FiftyOne`'s `compute_uniqueness`
/// (<https://docs.voxel51.com/brain.html#image-uniqueness>): the weighted distances to the three nearest neighbors,
/// relative to the largest. 1 for all rows if there are at most three.
pub fn uniqueness(graph: &NeighborGraph) -> Vec<f32> {
    if graph.len() <= UNIQUENESS_WEIGHTS.len() {
        return vec![1.0; graph.len()];
    }
    let weighted =
        |row| distances(graph, row).zip(UNIQUENESS_WEIGHTS).map(|(distance, weight)| distance * weight).sum::<f32>();
    let mut values: Vec<f32> = (0..graph.len()).map(weighted).collect();
    let largest = values.iter().copied().fold(0.0, f32::max);
    if largest > 0.0 {
        for value in &mut values {
            *value /= largest;
        }
    }
    values
}

/// The outlier score of each row, from 1 for typical ones to 0, and whether it is an outlier, as in cleanlab's `Datalab`
/// (<https://docs.cleanlab.ai/stable/cleanlab/datalab/guide/issue_type_description.html#outlier-issue>): the mean
/// distance to the ten nearest neighbors as `exp(-distance / median)`, and beyond `Q3 + 1.7 IQR`.
pub fn outliers(graph: &NeighborGraph) -> Vec<OutlierScore> {
    let mean = |row| {
        let (sum, count) =
            distances(graph, row).take(OUTLIER_NEIGHBORS).fold((0.0, 0), |(sum, count), next| (sum + next, count + 1));
        sum / count.max(1) as f32
    };
    let means: Vec<f32> = (0..graph.len()).map(mean).collect();
    let mut sorted = means.clone();
    sorted.sort_unstable_by(f32::total_cmp);
    let [lower, median, upper] = [0.25, 0.5, 0.75].map(|part| quantile(&sorted, part));
    let limit = upper + OUTLIER_RANGES * (upper - lower);
    let score = |distance: f32| match distance {
        ..LEAST_DISTANCE => 1.0,
        _ => (-distance / median.max(f32::EPSILON)).exp(),
    };
    let scored = means.into_iter().map(|mean| OutlierScore { score: score(mean), is_outlier: mean > limit });
    scored.collect()
}

/// The outlier score of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OutlierScore {
    /// 1 for typical ones, near 0 for outliers.
    pub score: f32,
    pub is_outlier: bool,
}

fn distances(graph: &NeighborGraph, row: usize) -> impl Iterator<Item = f32> {
    graph.neighbors(row).iter().map(|neighbor| (1.0 - neighbor.similarity).max(0.0))
}

/// Between the two closest values, as in NumPy; 0 without values.
fn quantile(sorted: &[f32], part: f32) -> f32 {
    let at = part * sorted.len().saturating_sub(1) as f32;
    let value = |index: f32| sorted.get(index as usize).copied().unwrap_or_default();
    value(at.floor()) + (value(at.ceil()) - value(at.floor())) * at.fract()
}
