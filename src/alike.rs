//! Embeddings of images, and how alike they are: the cosine similarity of vectors from which the mean of all images is
//! subtracted, as in `FiftyOne` (<https://docs.voxel51.com/brain.html>). Exact, without an index. Knows neither models nor
//! files.

mod pca;

use std::sync::OnceLock;

use half::f16;

pub use pca::Pca;

/// The name of the similarity measure in outputs and in the window.
pub const METRIC: &str = "cosine of mean-centered vectors";

/// A vector that describes an image: finite numbers, rounded to 16 bits.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding(Vec<f16>);

impl Embedding {
    /// `None` if there is no value, or one is not finite or larger than 65,504.
    pub fn new(values: &[f32]) -> Option<Self> {
        Self::from_half(values.iter().map(|&value| f16::from_f32(value)).collect())
    }

    fn from_half(values: Vec<f16>) -> Option<Self> {
        (!values.is_empty() && values.iter().all(|value| value.is_finite())).then_some(Self(values))
    }

    /// The inverse of [`Self::to_bytes`]; `None` for damaged bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (values, rest) = bytes.as_chunks::<2>();
        let values = values.iter().map(|&value| f16::from_le_bytes(value)).collect();
        rest.is_empty().then(|| Self::from_half(values)).flatten()
    }

    /// 16-bit floats, little-endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    pub fn dims(&self) -> usize {
        self.0.len()
    }
}

/// The embeddings of many images, by one encoder.
#[derive(Debug, Clone, Default)]
pub struct Embeddings {
    dims: usize,
    /// Row after row.
    values: Vec<f16>,
    center: OnceLock<Center>,
}

/// The mean of all rows, and the length of each row seen from there.
#[derive(Debug, Clone)]
struct Center {
    mean: Vec<f32>,
    norms: Vec<f32>,
}

/// An image that is like another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbor {
    pub row: usize,
    /// `-1.0..=1.0`
    pub similarity: f32,
}

impl Embeddings {
    /// Adds a row. The first one determines the number of dimensions; another number is rejected.
    #[must_use]
    pub fn push(&mut self, embedding: &Embedding) -> bool {
        if self.values.is_empty() {
            self.dims = embedding.dims();
        }
        let fits = self.dims == embedding.dims();
        if fits {
            self.values.extend_from_slice(&embedding.0);
            self.center.take();
        }
        fits
    }

    pub fn len(&self) -> usize {
        self.values.len() / self.dims.max(1)
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    pub fn dims(&self) -> usize {
        self.dims
    }

    pub fn row(&self, row: usize) -> Option<Embedding> {
        let start = row.checked_mul(self.dims)?;
        self.values.get(start..start + self.dims).map(|values| Embedding(values.to_vec()))
    }

    fn center(&self) -> &Center {
        self.center.get_or_init(|| {
            let mut sums = vec![0.0_f64; self.dims];
            let rows = self.values.chunks_exact(self.dims.max(1));
            for row in rows.clone() {
                for (sum, value) in sums.iter_mut().zip(row) {
                    *sum += f64::from(value.to_f32());
                }
            }
            let mean: Vec<f32> = sums.into_iter().map(|sum| (sum / self.len() as f64) as f32).collect();
            let norms = rows.map(|row| centered_dot(row, &mean, &centered(row, &mean)).sqrt()).collect();
            Center { mean, norms }
        })
    }

    /// The similarity of each row to `query`: the cosine of the angle between both, seen from the mean of all rows. A
    /// vector at the mean has no direction: its similarity is 1 to the same vector (all of a million identical images,
    /// or the only image) and 0 to any other. Empty if `query` has another number of dimensions.
    pub fn similarities(&self, query: &Embedding) -> Vec<f32> {
        if query.dims() != self.dims {
            return Vec::new();
        }
        let Center { mean, norms } = self.center();
        let query = centered(&query.0, mean);
        let query_norm = query.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt() as f32;
        let rows = self.values.chunks_exact(self.dims).zip(norms);
        let similarity = |(row, &norm): (&[f16], &f32)| match (norm > 0.0, query_norm > 0.0) {
            (true, true) => (centered_dot(row, mean, &query) / (norm * query_norm)).clamp(-1.0, 1.0),
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

fn centered(row: &[f16], mean: &[f32]) -> Vec<f32> {
    row.iter().zip(mean).map(|(value, mean)| value.to_f32() - mean).collect()
}

/// The dot product of `row - mean` with `query`. All have the same length.
fn centered_dot(row: &[f16], mean: &[f32], query: &[f32]) -> f32 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c") {
        // SAFETY: this processor has these instructions.
        return unsafe { avx2::centered_dot(row, mean, query) };
    }
    portable(row, mean, query)
}

fn portable(row: &[f16], mean: &[f32], query: &[f32]) -> f32 {
    const LANES: usize = 16;
    let mut sums = [0.0_f32; LANES];
    for ((row, mean), query) in row.chunks(LANES).zip(mean.chunks(LANES)).zip(query.chunks(LANES)) {
        for (lane, ((value, mean), query)) in row.iter().zip(mean).zip(query).enumerate() {
            sums[lane] += (value.to_f32() - mean) * query;
        }
    }
    sums.iter().sum()
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{
        _mm_loadu_si128, _mm256_cvtph_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_setzero_ps, _mm256_storeu_ps,
        _mm256_sub_ps,
    };

    use half::f16;

    const LANES: usize = 8;
    /// Sums that are independent of each other, so that additions overlap.
    const SUMS: usize = 4;

    #[target_feature(enable = "avx2,fma,f16c")]
    pub(super) fn centered_dot(row: &[f16], mean: &[f32], query: &[f32]) -> f32 {
        let mut sums = [_mm256_setzero_ps(); SUMS];
        let (rows, rest) = row.as_chunks::<{ LANES * SUMS }>();
        let (means, _) = mean.as_chunks::<{ LANES * SUMS }>();
        let (queries, _) = query.as_chunks::<{ LANES * SUMS }>();
        for ((row, mean), query) in rows.iter().zip(means).zip(queries) {
            for (at, sum) in sums.iter_mut().enumerate() {
                // SAFETY: the arrays have as many numbers as all steps load; `f16` is a transparent `u16`.
                let (row, mean, query) = unsafe {
                    (
                        _mm_loadu_si128(row.as_ptr().add(at * LANES).cast()),
                        _mm256_loadu_ps(mean.as_ptr().add(at * LANES)),
                        _mm256_loadu_ps(query.as_ptr().add(at * LANES)),
                    )
                };
                *sum = _mm256_fmadd_ps(_mm256_sub_ps(_mm256_cvtph_ps(row), mean), query, *sum);
            }
        }
        let mut lanes = [[0.0_f32; LANES]; SUMS];
        for (lanes, sum) in lanes.iter_mut().zip(sums) {
            // SAFETY: the array has eight numbers.
            unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), sum) };
        }
        let from = rows.len() * LANES * SUMS;
        lanes.as_flattened().iter().sum::<f32>() + super::portable(rest, &mean[from..], &query[from..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn embeddings(rows: &[&[f32]]) -> Embeddings {
        let mut all = Embeddings::default();
        for row in rows {
            assert!(all.push(&Embedding::new(row).unwrap()));
        }
        all
    }

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
        let all = embeddings(&[&[1.0, 0.0], &[-1.0, 0.0], &[1.0, 0.0], &[0.0, 1.0], &[0.0, -1.0]]);
        let rows = |count| all.nearest(&all.row(0).unwrap(), count).iter().map(|found| found.row).collect::<Vec<_>>();
        assert_eq!(rows(3), [0, 2, 3]);
        assert_eq!(rows(99), [0, 2, 3, 4, 1]);
        assert!(rows(0).is_empty());
    }

    #[test]
    fn vectors_without_a_direction_are_like_themselves() {
        let only = embeddings(&[&[3.0, 4.0]]);
        assert_eq!(only.similarities(&only.row(0).unwrap()), [1.0]);
        let row: &[f32] = &[0.1, 7.3, 1e-3];
        let identical = embeddings(&vec![row; 1000]);
        assert_eq!(identical.similarities(&identical.row(7).unwrap()), vec![1.0; 1000]);
        assert_eq!(identical.similarities(&Embedding::new(&[0.0, 1.0, 2.0]).unwrap()), vec![0.0; 1000]);
        // The last is at the mean.
        let balanced = embeddings(&[&[1.0, 0.0], &[-1.0, 0.0], &[0.0, 0.0]]);
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
        let mut all = embeddings(&[&[1.0, 2.0, 3.0]]);
        assert!(!all.push(&embedding), "another encoder");
        assert!(all.similarities(&embedding).is_empty());
        assert!(Embeddings::default().similarities(&embedding).is_empty());
    }
}
