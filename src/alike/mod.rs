//! Embeddings of images, and how alike they are: the cosine similarity of vectors from which the mean of all images is
//! subtracted, as in `FiftyOne` (<https://docs.voxel51.com/brain.html>). Exact, without an index. Knows neither models nor
//! files.

mod clusters;
mod cover;
mod dot;
mod duplicates;
mod groups;
mod measures;
mod neighbors;
mod pca;
mod perceptual;
mod scatter;
mod search;
mod similar;
mod stored;
mod umap;

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::OnceLock;

use half::f16;

pub use self::clusters::Clusters;
pub use self::cover::{CENTER_METRIC, Cover, representativeness};
use self::dot::{centered, centered_dot};
pub use self::duplicates::DuplicateEvidence;
pub use self::groups::{Duplicate, DuplicateGroup, DuplicateKind, Sides};
pub use self::measures::{Measure, OutlierScore, outliers, uniqueness};
pub use self::neighbors::{NEIGHBORS, NeighborGraph};
pub use self::pca::Pca;
pub use self::perceptual::{DEFAULT_DISTANCE, HASHED_SIDE, HashIndex, MAX_DISTANCE, PerceptualHash};
pub use self::scatter::{Dot, DotLayer, MapView, draw, inside};
pub use self::search::Neighbor;
pub use self::similar::DEFAULT_SIMILARITY;
pub use self::stored::{BoxEmbedding, ImageEmbeddings, from_8_bits, to_8_bits};
pub use self::umap::{Point, Umap};

/// The displayed and exported name of the similarity measure.
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

    /// The numbers, as 32-bit floats.
    pub fn values(&self) -> impl Iterator<Item = f32> + Clone {
        self.0.iter().map(|value| value.to_f32())
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

    fn values_of(&self, row: usize) -> &[f16] {
        &self.values[row * self.dims..(row + 1) * self.dims]
    }

    /// The number of rows that are equal to an earlier one, apart from the sign of zeros.
    pub fn repeated(&self) -> usize {
        let (mut known, mut bits) = (HashSet::new(), Vec::new());
        let is_known = |row: &[f16]| {
            bits.clear();
            bits.extend(row.iter().map(|value| if *value == f16::ZERO { 0 } else { value.to_bits() }));
            let mut hasher = DefaultHasher::new();
            bits.hash(&mut hasher);
            !known.insert(hasher.finish())
        };
        self.values.chunks_exact(self.dims.max(1)).map(is_known).filter(|is_known| *is_known).count()
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
}
/// One row per vector, for tests.
#[cfg(test)]
fn embeddings<R: AsRef<[f32]>>(rows: impl IntoIterator<Item = R>) -> Embeddings {
    let mut all = Embeddings::default();
    for row in rows {
        assert!(all.push(&Embedding::new(row.as_ref()).unwrap()));
    }
    all
}
