//! Principal components: the orthogonal directions in which vectors differ most. The covariance matrix is computed
//! exactly; its largest eigenvectors are found by subspace iteration (Halko, Martinsson and Tropp 2011, algorithm 4.4,
//! <https://arxiv.org/abs/0909.4061>). The result does not depend on the number of threads.

use half::f16;

use super::{Embedding, Embeddings};
use crate::tasks::{Cancelled, TaskControl};

/// Rows per step: their transpose stays in the cache of a core.
const BLOCK: usize = 128;
/// Multiplications for the covariance matrix; of more rows, evenly spaced ones are used.
const MAX_MULTIPLICATIONS: usize = 200_000_000_000;
/// Additional vectors, which speed up convergence.
const OVERSAMPLING: usize = 12;
const MAX_ITERATIONS: usize = 200;
/// The relative change of the variances at which the iteration ends.
const CONVERGED: f64 = 1e-7;

/// The mean of some vectors and their main directions.
#[derive(Debug, Clone, PartialEq)]
pub struct Pca {
    mean: Vec<f32>,
    /// Row after row, orthonormal, largest variance first. The largest number of each is positive.
    components: Vec<f32>,
    variances: Vec<f32>,
}

impl Pca {
    /// The first `count` components, or fewer if the vectors are shorter, on `threads` threads.
    ///
    /// # Errors
    /// The task was canceled.
    pub fn fit(rows: &Embeddings, count: usize, threads: usize, control: &TaskControl) -> Result<Self, Cancelled> {
        let dims = rows.dims();
        let most = (MAX_MULTIPLICATIONS / (dims * dims).max(1)).max(2);
        let step = rows.len().div_ceil(most).max(1);
        let picked: Vec<&[f16]> = rows.values.chunks_exact(dims.max(1)).step_by(step).collect();
        let mean = mean(&picked, dims);
        let covariance = covariance(&picked, &mean, threads.max(1), control)?;
        let (components, variances) = largest_eigenvectors(&covariance, dims, count.min(dims), control)?;
        Ok(Self { mean, components, variances })
    }

    /// The number of components.
    pub fn count(&self) -> usize {
        self.variances.len()
    }

    /// The numbers of a vector before it is reduced.
    pub fn dims(&self) -> usize {
        self.mean.len()
    }

    /// The variance along each component, largest first.
    pub fn variances(&self) -> &[f32] {
        &self.variances
    }

    /// The coordinates of a vector along the components, seen from the mean; `None` if it has another length.
    pub fn transform(&self, vector: &Embedding) -> Option<Vec<f32>> {
        let components = self.components.chunks_exact(self.mean.len().max(1));
        let centered = super::centered(&vector.0, &self.mean);
        let coordinate = |component: &[f32]| dot(component, &centered);
        (vector.dims() == self.mean.len()).then(|| components.map(coordinate).collect())
    }

    /// Everything as 32-bit floats, little-endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        let counts = [self.mean.len() as u32, self.count() as u32].map(u32::to_le_bytes);
        let numbers = self.mean.iter().chain(&self.components).chain(&self.variances);
        counts.into_iter().chain(numbers.map(|number| number.to_le_bytes())).flatten().collect()
    }

    /// The inverse of [`Self::to_bytes`]; `None` for damaged bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (words, rest) = bytes.as_chunks::<4>();
        let (counts, numbers) = words.split_at_checked(2)?;
        let [dims, count] = [counts[0], counts[1]].map(|word| u32::from_le_bytes(word) as usize);
        let expected = dims.checked_mul(count)?.checked_add(dims)?.checked_add(count)?;
        let numbers: Vec<f32> = numbers.iter().map(|&word| f32::from_le_bytes(word)).collect();
        let is_valid = rest.is_empty() && numbers.len() == expected && numbers.iter().all(|number| number.is_finite());
        is_valid.then(|| Self {
            mean: numbers[..dims].to_vec(),
            components: numbers[dims..dims + dims * count].to_vec(),
            variances: numbers[dims + dims * count..].to_vec(),
        })
    }
}

fn mean(rows: &[&[f16]], dims: usize) -> Vec<f32> {
    let mut sums = vec![0.0_f64; dims];
    for row in rows {
        for (sum, value) in sums.iter_mut().zip(*row) {
            *sum += f64::from(value.to_f32());
        }
    }
    sums.into_iter().map(|sum| (sum / rows.len().max(1) as f64) as f32).collect()
}

/// The symmetric matrix, row after row. Threads share its rows, so that each sum has one order.
fn covariance(rows: &[&[f16]], mean: &[f32], threads: usize, control: &TaskControl) -> Result<Vec<f32>, Cancelled> {
    let dims = mean.len();
    let mut matrix = vec![0.0_f32; dims * dims];
    let mut block = vec![0.0_f32; dims * BLOCK];
    for rows in rows.chunks(BLOCK) {
        control.checkpoint()?;
        block.fill(0.0);
        for (at, row) in rows.iter().enumerate() {
            for (dim, (value, mean)) in row.iter().zip(mean).enumerate() {
                block[dim * BLOCK + at] = value.to_f32() - mean;
            }
        }
        let block = &block;
        let add = |first: usize, part: &mut [f32]| {
            for (index, sums) in part.chunks_exact_mut(dims).enumerate() {
                add_products(block, first + index, sums);
            }
        };
        if threads == 1 || dims < 64 {
            add(0, &mut matrix);
            continue;
        }
        std::thread::scope(|scope| {
            let mut rest = matrix.as_mut_slice();
            let mut first = 0;
            for end in shares(dims, threads) {
                let (part, after) = rest.split_at_mut((end - first) * dims);
                scope.spawn(move || add(first, part));
                (rest, first) = (after, end);
            }
        });
    }
    let count = rows.len().saturating_sub(1).max(1) as f32;
    for row in 0..dims {
        for column in row..dims {
            let value = matrix[row * dims + column] / count;
            matrix[row * dims + column] = value;
            matrix[column * dims + row] = value;
        }
    }
    Ok(matrix)
}

/// Where the rows of a triangle are cut into parts of about equal area.
fn shares(dims: usize, threads: usize) -> impl Iterator<Item = usize> {
    (1..=threads).map(move |part| {
        let left = 1.0 - part as f64 / threads as f64;
        dims - (dims as f64 * left.sqrt()).round() as usize
    })
}

/// Adds the products of dimension `row` with itself and all later ones, over the vectors of a transposed block.
fn add_products(block: &[f32], row: usize, sums: &mut [f32]) {
    let columns = block[row * BLOCK..].chunks_exact(BLOCK);
    let own = &block[row * BLOCK..(row + 1) * BLOCK];
    for (sum, column) in sums[row..].iter_mut().zip(columns) {
        *sum += dot(own, column);
    }
}

fn dot(left: &[f32], right: &[f32]) -> f32 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: this processor has these instructions.
        return unsafe { dot_avx2(left, right) };
    }
    dot_portable(left, right)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn dot_avx2(left: &[f32], right: &[f32]) -> f32 {
    dot_portable(left, right)
}

/// The order of additions is the same on every machine.
#[inline]
fn dot_portable(left: &[f32], right: &[f32]) -> f32 {
    const LANES: usize = 32;
    let mut sums = [0.0_f32; LANES];
    let (lefts, left_rest) = left.as_chunks::<LANES>();
    let (rights, right_rest) = right.as_chunks::<LANES>();
    for (left, right) in lefts.iter().zip(rights) {
        for (sum, (left, right)) in sums.iter_mut().zip(left.iter().zip(right)) {
            *sum += left * right;
        }
    }
    let rest: f32 = left_rest.iter().zip(right_rest).map(|(left, right)| left * right).sum();
    sums.iter().sum::<f32>() + rest
}

/// The eigenvectors of a symmetric matrix with the `count` largest eigenvalues, row after row, and the eigenvalues.
fn largest_eigenvectors(
    matrix: &[f32],
    dims: usize,
    count: usize,
    control: &TaskControl,
) -> Result<(Vec<f32>, Vec<f32>), Cancelled> {
    let width = (count + OVERSAMPLING.max(count / 2)).min(dims);
    let mut random = fastrand::Rng::with_seed(7);
    let mut basis: Vec<Vec<f32>> = (0..width).map(|_| (0..dims).map(|_| random.f32() * 2.0 - 1.0).collect()).collect();
    orthonormalize(&mut basis);
    let mut values = vec![0.0; width];
    for _ in 0..MAX_ITERATIONS {
        control.checkpoint()?;
        let images: Vec<Vec<f32>> =
            basis.iter().map(|vector| matrix.chunks_exact(dims.max(1)).map(|row| dot(row, vector)).collect()).collect();
        let mut small: Vec<Vec<f64>> =
            basis.iter().map(|left| images.iter().map(|right| f64::from(dot(left, right))).collect()).collect();
        let (found, rotation) = symmetric_eigen(&mut small);
        let rotated =
            |vectors: &[Vec<f32>]| -> Vec<Vec<f32>> { rotation.iter().map(|row| combined(vectors, row)).collect() };
        let largest = found.first().copied().unwrap_or(0.0).max(f64::MIN_POSITIVE);
        let change = found.iter().zip(&values).take(count).map(|(new, old): (&f64, &f64)| (new - old).abs() / largest);
        let is_converged = change.fold(0.0, f64::max) < CONVERGED;
        values = found;
        if is_converged {
            basis = rotated(&basis);
            break;
        }
        basis = rotated(&images);
        orthonormalize(&mut basis);
    }
    let mut components = Vec::with_capacity(count * dims);
    for mut vector in basis.into_iter().take(count) {
        let largest =
            vector.iter().copied().fold(0.0_f32, |best, value| if value.abs() > best.abs() { value } else { best });
        for value in &mut vector {
            *value *= largest.signum();
        }
        components.extend(vector);
    }
    Ok((components, values.iter().take(count).map(|value| value.max(0.0) as f32).collect()))
}

/// The sum of the vectors, each times its weight.
fn combined(vectors: &[Vec<f32>], weights: &[f64]) -> Vec<f32> {
    let mut sum = vec![0.0_f64; vectors.first().map_or(0, Vec::len)];
    for (vector, weight) in vectors.iter().zip(weights) {
        for (sum, value) in sum.iter_mut().zip(vector) {
            *sum += weight * f64::from(*value);
        }
    }
    sum.into_iter().map(|value| value as f32).collect()
}

/// Modified Gram-Schmidt, twice. A vector that depends on earlier ones is replaced by a unit vector.
fn orthonormalize(basis: &mut [Vec<f32>]) {
    for index in 0..basis.len() {
        let (before, rest) = basis.split_at_mut(index);
        let vector = &mut rest[0];
        let norm = |vector: &[f32]| dot(vector, vector).sqrt();
        for attempt in 0..=vector.len() {
            let length = norm(vector);
            if length > 0.0 {
                for value in vector.iter_mut() {
                    *value /= length;
                }
                for _ in 0..2 {
                    for other in &*before {
                        let share = dot(other, vector);
                        vector.iter_mut().zip(other).for_each(|(value, other)| *value -= share * other);
                    }
                }
            }
            let length = norm(vector);
            if length > 1e-4 {
                for value in vector.iter_mut() {
                    *value /= length;
                }
                break;
            }
            vector.fill(0.0);
            if let Some(value) = vector.get_mut((index + attempt) % before.first().map_or(1, Vec::len).max(1)) {
                *value = 1.0;
            }
        }
    }
}

/// All eigenvalues, largest first, and their eigenvectors as rows, by cyclic Jacobi rotations (Golub and Van Loan,
/// section 8.5).
fn symmetric_eigen(matrix: &mut [Vec<f64>]) -> (Vec<f64>, Vec<Vec<f64>>) {
    const SWEEPS: usize = 30;
    let size = matrix.len();
    let mut vectors: Vec<Vec<f64>> = (0..size).map(|row| (0..size).map(|at| f64::from(row == at)).collect()).collect();
    let scale: f64 = (0..size).map(|at| matrix[at][at].abs()).fold(0.0, f64::max);
    for _ in 0..SWEEPS {
        let mut largest = 0.0_f64;
        for row in 0..size {
            for column in row + 1..size {
                let off = matrix[row][column];
                largest = largest.max(off.abs());
                if off.abs() <= scale * 1e-15 {
                    continue;
                }
                let slope = (matrix[column][column] - matrix[row][row]) / (2.0 * off);
                let tangent = slope.signum() / (slope.abs() + slope.hypot(1.0));
                let cosine = 1.0 / tangent.hypot(1.0);
                let sine = tangent * cosine;
                for line in &mut *matrix {
                    let (left, right) = (line[row], line[column]);
                    line[row] = cosine * left - sine * right;
                    line[column] = sine * left + cosine * right;
                }
                rotate_rows(matrix, row, column, cosine, sine);
                rotate_rows(&mut vectors, row, column, cosine, sine);
            }
        }
        if largest <= scale * 1e-12 {
            break;
        }
    }
    let mut order: Vec<usize> = (0..size).collect();
    order.sort_by(|left, right| matrix[*right][*right].total_cmp(&matrix[*left][*left]));
    (order.iter().map(|&at| matrix[at][at]).collect(), order.iter().map(|&at| vectors[at].clone()).collect())
}

fn rotate_rows(matrix: &mut [Vec<f64>], row: usize, column: usize, cosine: f64, sine: f64) {
    let (above, below) = matrix.split_at_mut(column);
    for (left, right) in above[row].iter_mut().zip(&mut below[0]) {
        (*left, *right) = (cosine * *left - sine * *right, sine * *left + cosine * *right);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alike::embeddings;
    use crate::tasks::ProgressUnit;

    fn fit(rows: &Embeddings, count: usize, threads: usize) -> Pca {
        Pca::fit(rows, count, threads, &TaskControl::new(ProgressUnit::Steps)).unwrap()
    }

    /// As `tests/cases/alike/make.py` computes them with scikit-learn.
    #[test]
    fn components_match_scikit_learn() {
        const TOLERANCE: f64 = 1e-3;
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cases/alike");
        let bytes = std::fs::read(folder.join("vectors.f16")).unwrap();
        let expected: serde_json::Value =
            serde_json::from_slice(&std::fs::read(folder.join("components.json")).unwrap()).unwrap();
        let numbers = |key: &str| -> Vec<f64> { serde_json::from_value(expected[key].clone()).unwrap() };
        let mut rows = Embeddings::default();
        for row in bytes.chunks(expected["dims"].as_u64().unwrap() as usize * 2) {
            assert!(rows.push(&Embedding::from_bytes(row).unwrap()));
        }
        let found = fit(&rows, numbers("variances").len(), 2);
        let check = |found: Vec<f32>, expected: Vec<f64>| {
            assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(&expected) {
                let error = (f64::from(*found) - expected).abs();
                assert!(error <= TOLERANCE, "{found}, expected {expected}, tolerance {TOLERANCE}");
            }
        };
        check(found.variances.clone(), numbers("variances"));
        check(found.components.clone(), numbers("components"));
        check(found.transform(&rows.row(0).unwrap()).unwrap(), numbers("first"));
        assert_eq!(Pca::from_bytes(&found.to_bytes()).as_ref(), Some(&found));
    }

    #[test]
    fn threads_do_not_change_the_components() {
        let mut random = fastrand::Rng::with_seed(3);
        let rows = embeddings((0..300).map(|_| (0..100).map(|_| random.f32()).collect::<Vec<_>>()));
        assert_eq!(fit(&rows, 7, 1), fit(&rows, 7, 3));
    }

    #[test]
    fn vectors_without_variance_have_components() {
        let same = embeddings(vec![vec![1.0, 2.0, 3.0]; 5]);
        let found = fit(&same, 9, 1);
        assert_eq!((found.count(), found.variances()), (3, &[0.0; 3][..]));
        assert_eq!(found.transform(&same.row(0).unwrap()), Some(vec![0.0; 3]));
        let line = embeddings((0..9).map(|at| vec![at as f32, 0.0, 0.0]));
        let found = fit(&line, 2, 1);
        assert!((found.components[0] - 1.0).abs() < 1e-6 && found.variances[1] < 1e-6, "{found:?}");
        assert_eq!(found.transform(&Embedding::new(&[1.0]).unwrap()), None);
        assert_eq!(fit(&Embeddings::default(), 2, 1).count(), 0);
    }

    #[test]
    fn damaged_bytes_are_rejected() {
        let bytes = fit(&embeddings([vec![1.0, 2.0], vec![0.0, 1.0]]), 1, 1).to_bytes();
        for length in 0..bytes.len() {
            assert_eq!(Pca::from_bytes(&bytes[..length]), None, "{length} bytes");
        }
        assert_eq!(Pca::from_bytes(&[0xff; 64]), None);
    }
}
