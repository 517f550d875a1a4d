//! Perceptual hashes: nearly equal for images that look the same at a small size, whatever their format, quality and
//! size. As `phash` of `ImageHash` (<https://github.com/JohannesBuchner/imagehash>): the signs of the lowest spatial
//! frequencies around their median.

use std::collections::{HashMap, HashSet};
use std::f32::consts::PI;
use std::sync::LazyLock;

use super::groups::{Match, Reference};

/// Width and height of the gray image that is hashed.
pub const HASHED_SIDE: usize = 32;
/// The number of frequencies per axis.
const FREQUENCIES: usize = 8;
/// Below this standard deviation of gray values (0 to 255), an image has no structure to compare: blank pages, black
/// frames.
const LEAST_DEVIATION: f32 = 2.0;

/// The number of differing bits, of 64, up to which images are near duplicates.
pub const DEFAULT_DISTANCE: u32 = 6;
/// More differing bits would pair unrelated images: two random hashes differ in 32 ± 4.
pub const MAX_DISTANCE: u32 = 16;

/// The hash of an image, and of its mirror image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PerceptualHash {
    pub bits: u64,
    pub mirrored: u64,
}

impl PerceptualHash {
    /// The hash of [`HASHED_SIDE`]² gray values, row by row. `None` if they are nearly constant.
    pub fn new(gray: &[u8; HASHED_SIDE * HASHED_SIDE]) -> Option<Self> {
        let count = gray.len() as f32;
        let mean = gray.iter().map(|value| f32::from(*value)).sum::<f32>() / count;
        let variance = gray.iter().map(|value| (f32::from(*value) - mean).powi(2)).sum::<f32>() / count;
        if variance < LEAST_DEVIATION.powi(2) {
            return None;
        }
        let mut spectrum = low_frequencies(gray);
        let bits = above_median(&spectrum);
        // In a mirror image, the odd horizontal frequencies change their sign.
        for row in spectrum.chunks_exact_mut(FREQUENCIES) {
            row.iter_mut().skip(1).step_by(2).for_each(|value| *value = -*value);
        }
        Some(Self { bits, mirrored: above_median(&spectrum) })
    }
}

/// The discrete cosine transform (DCT-II), up to a constant factor: vertical frequency by horizontal frequency.
fn low_frequencies(gray: &[u8; HASHED_SIDE * HASHED_SIDE]) -> [f32; FREQUENCIES * FREQUENCIES] {
    static COSINES: LazyLock<[[f32; HASHED_SIDE]; FREQUENCIES]> = LazyLock::new(|| {
        let cosine = |frequency: usize, at: usize| {
            (PI * frequency as f32 * (2 * at + 1) as f32 / (2 * HASHED_SIDE) as f32).cos()
        };
        std::array::from_fn(|frequency| std::array::from_fn(|at| cosine(frequency, at)))
    });
    let mut along_rows = [[0.0_f32; FREQUENCIES]; HASHED_SIDE];
    for (row, sums) in gray.chunks_exact(HASHED_SIDE).zip(&mut along_rows) {
        for (sum, cosines) in sums.iter_mut().zip(COSINES.iter()) {
            *sum = row.iter().zip(cosines).map(|(value, cosine)| f32::from(*value) * cosine).sum();
        }
    }
    std::array::from_fn(|at| {
        let (vertical, horizontal) = (at / FREQUENCIES, at % FREQUENCIES);
        along_rows.iter().zip(&COSINES[vertical]).map(|(sums, cosine)| sums[horizontal] * cosine).sum()
    })
}

/// A bit per frequency, the first one highest.
fn above_median(spectrum: &[f32; FREQUENCIES * FREQUENCIES]) -> u64 {
    let mut sorted = *spectrum;
    sorted.sort_unstable_by(f32::total_cmp);
    let median = f32::midpoint(sorted[sorted.len() / 2 - 1], sorted[sorted.len() / 2]);
    spectrum.iter().fold(0, |bits, value| bits << 1 | u64::from(*value > median))
}

/// Finds hashes within a distance of another, without comparing all of them: if two hashes differ in at most `d` bits,
/// at least one of `d + 1` parts is equal.
pub struct HashIndex {
    max_distance: u32,
    /// The hashes and their images, in the order in which they were added.
    hashes: Vec<(u64, usize)>,
    /// Positions in `hashes`, by the number and the bits of a part.
    parts: HashMap<(u32, u64), Vec<u32>>,
    known: HashSet<u64>,
}

impl HashIndex {
    /// The name of the similarity in outputs and in the window.
    pub const METRIC: &str = "share of equal bits in 64-bit perceptual hashes (pHash)";

    /// The similarity of hashes with this many differing bits.
    pub fn similarity(distance: u32) -> f32 {
        1.0 - distance as f32 / 64.0
    }

    pub fn new(max_distance: u32) -> Self {
        let max_distance = max_distance.min(MAX_DISTANCE);
        Self { max_distance, hashes: Vec::new(), parts: HashMap::new(), known: HashSet::new() }
    }

    fn parts(&self, bits: u64) -> impl Iterator<Item = (u32, u64)> + use<> {
        let count = self.max_distance + 1;
        (0..count).map(move |part| {
            let (from, to) = (part * 64 / count, (part + 1) * 64 / count);
            let mask = if to - from == 64 { u64::MAX } else { (1 << (to - from)) - 1 };
            (part, bits >> from & mask)
        })
    }

    /// The first hash within the distance, and the number of differing bits.
    fn first_within(&self, bits: u64) -> Option<(usize, u32)> {
        let mut first: Option<(u32, u32)> = None;
        for part in self.parts(bits) {
            for &position in self.parts.get(&part).into_iter().flatten() {
                if first.is_some_and(|(found, _)| found <= position) {
                    break;
                }
                let distance = (self.hashes[position as usize].0 ^ bits).count_ones();
                if distance <= self.max_distance {
                    first = Some((position, distance));
                    break;
                }
            }
        }
        first.map(|(position, distance)| (self.hashes[position as usize].1, distance))
    }
}

impl Reference<PerceptualHash> for HashIndex {
    /// Images with the hash of an earlier one add nothing.
    fn add(&mut self, image: usize, hash: &PerceptualHash) {
        if !self.known.insert(hash.bits) {
            return;
        }
        let position = self.hashes.len() as u32;
        self.hashes.push((hash.bits, image));
        for part in self.parts(hash.bits) {
            self.parts.entry(part).or_default().push(position);
        }
    }

    /// A copy rather than a mirror image, if both are found.
    fn find(&mut self, _image: usize, hash: &PerceptualHash) -> Option<Match> {
        let upright = self.first_within(hash.bits).map(|found| (found, false));
        let ((reference, distance), is_mirrored) =
            upright.or_else(|| Some((self.first_within(hash.mirrored)?, true)))?;
        Some(Match { reference, similarity: Self::similarity(distance), is_mirrored })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The repository's `tests/cases/duplicates/make.py` computes them with `SciPy`, as `ImageHash` does.
    #[test]
    fn hashes_match_scipy() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cases/duplicates");
        let gray = std::fs::read(folder.join("gray.u8")).unwrap();
        let expected: Vec<[String; 2]> =
            serde_json::from_slice(&std::fs::read(folder.join("hashes.json")).unwrap()).unwrap();
        let (images, rest) = gray.as_chunks::<{ HASHED_SIDE * HASHED_SIDE }>();
        assert!(rest.is_empty() && images.len() == expected.len() && images.len() >= 8);
        for (image, [bits, mirrored]) in images.iter().zip(&expected) {
            let found = PerceptualHash::new(image).unwrap();
            assert_eq!(
                [format!("{:016x}", found.bits), format!("{:016x}", found.mirrored)],
                [bits.clone(), mirrored.clone()]
            );
        }
    }

    #[test]
    fn nearly_constant_images_have_no_hash() {
        assert_eq!(PerceptualHash::new(&[90; 1024]), None);
        let mut noisy = [90; 1024];
        noisy.iter_mut().step_by(2).for_each(|value| *value = 93);
        assert_eq!(PerceptualHash::new(&noisy), None);
    }

    #[test]
    fn index_finds_what_a_full_scan_finds() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut hashes: Vec<u64> = (0..300).map(|_| random.u64(..)).collect();
        for at in 0..300 {
            let flips = random.u32(0..12);
            hashes.push((0..flips).fold(hashes[at], |bits, _| bits ^ 1 << random.u32(0..64)));
        }
        for max_distance in [0, 1, 6, 10, MAX_DISTANCE] {
            let mut index = HashIndex::new(max_distance);
            let mut found = 0;
            for (image, &bits) in hashes.iter().enumerate() {
                let scan = hashes[..image].iter().position(|other| (other ^ bits).count_ones() <= max_distance);
                let first = index.first_within(bits).map(|(image, _)| image);
                assert_eq!(first, scan, "{max_distance}");
                found += usize::from(first.is_some());
                index.add(image, &PerceptualHash { bits, mirrored: !bits });
            }
            assert!(found > 20, "{found}");
        }
    }
}
