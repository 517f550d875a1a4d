//! Exact search: the similarity of every row to one vector.

use half::f16;

use super::dot::{centered, centered_dot};
use super::{Center, Embedding, Embeddings};

/// An image that is like another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbor {
    pub row: usize,
    /// `-1.0..=1.0`
    pub similarity: f32,
}

impl Embeddings {
    /// The similarity of each row to `query`: the cosine of the angle between both, seen from the mean of all rows. A
    /// vector at the mean has no direction: its similarity is 1 to the same vector (all of a million identical images,
    /// or the only image) and 0 to any other. Empty if `query` has another number of dimensions.
    pub fn similarities(&self, query: &Embedding) -> Vec<f32> {
        if query.dims() != self.dims {
            return Vec::new();
        }
        let Center { mean, norms } = self.center();
        let values = &*query.0;
        let query = centered(values, mean);
        let query_norm = query.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt() as f32;
        let rows = self.values.chunks_exact(self.dims).zip(norms);
        let similarity = |(row, &norm): (&[f16], &f32)| match (norm > 0.0, query_norm > 0.0) {
            (true, true) => snapped(centered_dot(row, mean, &query) / (norm * query_norm), row, values),
            (false, false) => 1.0,
            _ => 0.0,
        };
        rows.map(similarity).collect()
    }

    /// The `count` rows most similar to `query`, best first; equally similar ones in their order.
    pub fn nearest(&self, query: &Embedding, count: usize) -> Vec<Neighbor> {
        let similarities = self.similarities(query).into_iter().enumerate();
        let mut rows: Vec<Neighbor> = similarities.map(|(row, similarity)| Neighbor { row, similarity }).collect();
        let order = |left: &Neighbor, right: &Neighbor| {
            right.similarity.total_cmp(&left.similarity).then(left.row.cmp(&right.row))
        };
        if count < rows.len() {
            rows.select_nth_unstable_by(count, order);
            rows.truncate(count);
        }
        rows.sort_unstable_by(order);
        rows
    }
}

/// The similarity of two vectors without rounding beyond its ends: 1 for equal vectors.
pub(super) fn snapped(similarity: f32, one: &[f16], other: &[f16]) -> f32 {
    const ROUNDING: f32 = 1e-5;
    if (similarity - 1.0).abs() < ROUNDING && one == other { 1.0 } else { similarity.clamp(-1.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alike::dot::portable;
    use crate::alike::embeddings;

    /// As `tests/cases/alike/make.py` computes them with scikit-learn.
    #[test]
    fn similarities_match_scikit_learn() {
        const TOLERANCE: f64 = 1e-5;
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cases/alike");
        let bytes = std::fs::read(folder.join("vectors.f16")).unwrap();
        let expected: serde_json::Value =
            serde_json::from_slice(&std::fs::read(folder.join("expected.json")).unwrap()).unwrap();
        let dims = expected["dims"].as_u64().unwrap() as usize;
        let mut all = Embeddings::default();
        for row in bytes.chunks(dims * 2) {
            assert!(all.push(&Embedding::from_bytes(row).unwrap()));
        }
        assert!(all.len() > 100);
        for (query, expected) in expected["similarities"].as_array().unwrap().iter().enumerate() {
            let query = all.row(query).unwrap();
            let expected: Vec<f64> = serde_json::from_value(expected.clone()).unwrap();
            let found = all.similarities(&query);
            assert_eq!(found.len(), expected.len());
            for (row, (found, expected)) in found.iter().zip(&expected).enumerate() {
                let error = (f64::from(*found) - expected).abs();
                assert!(error <= TOLERANCE, "row {row}: {found}, expected {expected}, tolerance {TOLERANCE}");
            }
        }
        let mean = &all.center().mean;
        let query = centered(&all.row(0).unwrap().0, mean);
        for row in all.values.chunks_exact(dims) {
            let [fast, plain] = [centered_dot(row, mean, &query), portable(row, mean, &query)];
            assert!((fast - plain).abs() <= 1e-5 * plain.abs().max(1.0), "{fast}, {plain}");
        }
    }

    #[test]
    fn nearest_rows_come_first_in_a_stable_order() {
        let all = embeddings([&[1.0, 0.0], &[-1.0, 0.0], &[1.0, 0.0], &[0.0, 1.0], &[0.0, -1.0]]);
        let rows = |count| all.nearest(&all.row(0).unwrap(), count).iter().map(|found| found.row).collect::<Vec<_>>();
        assert_eq!(rows(3), [0, 2, 3]);
        assert_eq!(rows(99), [0, 2, 3, 4, 1]);
        assert!(rows(0).is_empty());
    }

    #[test]
    fn vectors_without_a_direction_are_like_themselves() {
        let only = embeddings([&[3.0, 4.0]]);
        assert_eq!(only.similarities(&only.row(0).unwrap()), [1.0]);
        let row: &[f32] = &[0.1, 7.3, 1e-3];
        let identical = embeddings(vec![row; 1000]);
        assert_eq!(identical.similarities(&identical.row(7).unwrap()), vec![1.0; 1000]);
        assert_eq!(identical.similarities(&Embedding::new(&[0.0, 1.0, 2.0]).unwrap()), vec![0.0; 1000]);
        // The last is at the mean.
        let balanced = embeddings([&[1.0, 0.0], &[-1.0, 0.0], &[0.0, 0.0]]);
        assert_eq!(balanced.similarities(&balanced.row(2).unwrap()), [0.0, 0.0, 1.0]);
        assert_eq!(balanced.similarities(&balanced.row(0).unwrap()), [1.0, -1.0, 0.0]);
    }

    #[test]
    fn unusable_vectors_are_rejected() {
        for values in [&[][..], &[1.0, f32::NAN], &[f32::INFINITY], &[70_000.0]] {
            assert_eq!(Embedding::new(values), None, "{values:?}");
        }
        assert_eq!(Embedding::from_bytes(&[0, 0, 0]), None);
        assert_eq!(Embedding::from_bytes(&[0xff, 0xff]), None);
        let embedding = Embedding::new(&[0.5, -2.0]).unwrap();
        assert_eq!(Embedding::from_bytes(&embedding.to_bytes()), Some(embedding.clone()));
        let mut all = embeddings([&[1.0, 2.0, 3.0]]);
        assert!(!all.push(&embedding), "another encoder");
        assert!(all.similarities(&embedding).is_empty());
        assert!(Embeddings::default().similarities(&embedding).is_empty());
    }
}
