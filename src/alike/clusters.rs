//! Groups of rows that are alike: spherical k-means (Dhillon and Modha, 2001, <https://doi.org/10.1023/A:1007612920971>)
//! on the centered vectors, started as in k-means++ (Arthur and Vassilvitskii, 2007). The centers are found on a sample of
//! the rows, evenly spaced, so that all rows are compared with them only once. The same rows always give the same groups.

use super::dot::{centered, centered_dot};
use super::{Center, Embeddings};

/// The rows that the centers are found on, and how often these are moved.
const SAMPLE: usize = 2048;
const ITERATIONS: usize = 10;
/// The rows compared between two checks for cancellation.
const ROWS_PER_CHECK: usize = 512;

/// Rows in groups.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Clusters {
    /// The group of each row; `None` for a vector at the mean of all, which has no direction.
    pub of_row: Vec<Option<u32>>,
    /// The row that is closest to the center of each group; `None` for an empty group.
    pub examples: Vec<Option<usize>>,
}

impl Embeddings {
    /// Divides the rows into at most `count` groups. `None` if `is_cancelled`.
    pub fn clusters(&self, count: usize, is_cancelled: impl Fn() -> bool) -> Option<Clusters> {
        let directed: Vec<usize> = (0..self.len()).filter(|row| self.center().norms[*row] > 0.0).collect();
        let step = directed.len().div_ceil(SAMPLE).max(1);
        let sample: Vec<usize> = directed.iter().copied().step_by(step).collect();
        let mut centers = self.first_centers(&sample, count, &is_cancelled)?;
        for _ in 0..ITERATIONS {
            if is_cancelled() {
                return None;
            }
            self.move_centers(&sample, &mut centers);
        }
        let mut groups = Clusters { of_row: vec![None; self.len()], examples: vec![None; centers.len()] };
        let mut highest = vec![f32::NEG_INFINITY; centers.len()];
        for (number, row) in directed.into_iter().enumerate() {
            if number.is_multiple_of(ROWS_PER_CHECK) && is_cancelled() {
                return None;
            }
            let Some((group, similarity)) = self.closest(row, &centers) else { continue };
            groups.of_row[row] = Some(group as u32);
            if similarity > highest[group] {
                highest[group] = similarity;
                groups.examples[group] = Some(row);
            }
        }
        Some(groups)
    }

    /// Rows that are far from each other: each next one with a probability proportional to its distance, `1 -
    /// similarity`, from the closest one so far.
    fn first_centers(&self, sample: &[usize], count: usize, is_cancelled: impl Fn() -> bool) -> Option<Vec<Vec<f32>>> {
        let mut random = fastrand::Rng::with_seed(1);
        let mut distances = vec![1.0_f32; sample.len()];
        let mut centers: Vec<Vec<f32>> = Vec::new();
        while centers.len() < count {
            if is_cancelled() {
                return None;
            }
            let sum: f64 = distances.iter().map(|distance| f64::from(*distance)).sum();
            // All others are the same as a center, apart from rounding.
            if sum <= 1e-3 {
                break;
            }
            let mut left = random.f64() * sum;
            let chosen = distances.iter().position(|distance| {
                left -= f64::from(*distance);
                left < 0.0
            });
            let Some(&row) = chosen.and_then(|at| sample.get(at)) else { break };
            let center = normalized(centered(self.values_of(row), &self.center().mean));
            for (distance, row) in distances.iter_mut().zip(sample) {
                *distance = distance.min((1.0 - self.similarity_to(*row, &center)).max(0.0));
            }
            centers.push(center);
        }
        Some(centers)
    }

    /// Moves each center to the mean direction of the rows closest to it. One without rows stays.
    fn move_centers(&self, sample: &[usize], centers: &mut [Vec<f32>]) {
        let Center { mean, norms } = self.center();
        let mut sums = vec![vec![0.0_f32; self.dims()]; centers.len()];
        for &row in sample {
            let Some((group, _)) = self.closest(row, centers) else { continue };
            for ((sum, value), mean) in sums[group].iter_mut().zip(self.values_of(row)).zip(mean) {
                *sum += (value.to_f32() - mean) / norms[row];
            }
        }
        for (center, sum) in centers.iter_mut().zip(sums) {
            if sum.iter().any(|value| *value != 0.0) {
                *center = normalized(sum);
            }
        }
    }

    /// The first of the most similar centers.
    fn closest(&self, row: usize, centers: &[Vec<f32>]) -> Option<(usize, f32)> {
        let similarities = centers.iter().map(|center| self.similarity_to(row, center)).enumerate();
        similarities.rev().max_by(|(_, one), (_, other)| one.total_cmp(other))
    }

    fn similarity_to(&self, row: usize, center: &[f32]) -> f32 {
        let Center { mean, norms } = self.center();
        centered_dot(self.values_of(row), mean, center) / norms[row]
    }
}

/// The vector with a length of 1. It is not 0.
fn normalized(mut vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt() as f32;
    for value in &mut vector {
        *value /= length;
    }
    vector
}

#[cfg(test)]
mod tests {
    use super::super::embeddings;
    use super::*;

    #[test]
    fn separate_clouds_become_groups() {
        const CLOUDS: usize = 6;
        const DIMS: usize = 16;
        let mut random = fastrand::Rng::with_seed(3);
        // More than the sample, in random order.
        let clouds: Vec<usize> = (0..3 * SAMPLE).map(|_| random.usize(..CLOUDS)).collect();
        let mut row = |cloud: usize| -> Vec<f32> {
            (0..DIMS).map(|at| f32::from(u8::from(at == 2 * cloud)) + 0.05 * random.f32()).collect()
        };
        let all = embeddings(clouds.iter().map(|cloud| row(*cloud)));
        let groups = all.clusters(CLOUDS, || false).unwrap();
        let mut cloud_of = [None; CLOUDS];
        for (found, cloud) in groups.of_row.iter().zip(&clouds) {
            let expected = cloud_of[found.unwrap() as usize].get_or_insert(*cloud);
            assert_eq!(expected, cloud);
        }
        assert!(cloud_of.iter().all(Option::is_some), "every cloud has a group");
        for (group, example) in groups.examples.iter().enumerate() {
            assert_eq!(groups.of_row[example.unwrap()], Some(group as u32));
        }
        assert_eq!(all.clusters(CLOUDS, || false), Some(groups), "the same every time");
        assert_eq!(all.clusters(CLOUDS, || true), None);
    }

    #[test]
    fn vectors_without_a_direction_have_no_group() {
        for rows in [vec![], vec![vec![3.0, 4.0]], vec![vec![0.0, 0.0]; 9], vec![vec![0.1, 7.3]; 50]] {
            let count = rows.len();
            let groups = embeddings(rows).clusters(4, || false).unwrap();
            assert_eq!(groups, Clusters { of_row: vec![None; count], examples: Vec::new() });
        }
        // The last is at the mean, and two groups are enough.
        let balanced = embeddings([vec![1.0, 0.0], vec![-1.0, 0.0], vec![0.0, 0.0]]);
        let groups = balanced.clusters(9, || false).unwrap();
        assert!(groups.of_row[0].is_some() && groups.of_row[1].is_some() && groups.of_row[0] != groups.of_row[1]);
        assert_eq!((groups.of_row[2], groups.examples.len()), (None, 2));
    }
}
