//! A random sample of images that is drawn while they are listed: nothing but the sample is kept, however many there
//! are.
//!
//! - **Priority.** That of an image is the first 8 bytes, as a big-endian number, of SHA-256 over the seed (8 bytes,
//!   little-endian) and the image's name (UTF-8). The `n` images of a stratum with the lowest priorities are a simple
//!   random sample without replacement (Sunter, List Sequential Sampling with Equal or Unequal Probabilities without
//!   Replacement, Applied Statistics 1977; known as a bottom-k sample: Cohen and Kaplan, Summarizing Data Using Bottom-k
//!   Sketches, PODC 2007). The order and the pages of the listing do not matter, and a higher count extends the sample.
//! - **Strata.** The first folders of the names. Each gets verdicts in proportion to its size, but at least two, because
//!   one shows no variance.

use std::collections::{BTreeMap, BinaryHeap};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use strum::{IntoStaticStr, VariantArray};

use super::Stratum;
use super::sampling::{LEAST_PER_STRATUM, allocate};

/// More folders are not told apart. Up to `count` images are kept for each.
const MAX_STRATA: usize = 100;
/// The stratum of images that are in none of the folders.
const NO_FOLDER: &str = "/";

/// How images are drawn from a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum DrawBy {
    /// All images are equally likely.
    Random,
    /// One stratum per folder or prefix at the top.
    Prefix,
}

/// Draws from a listing, image by image. `T` is what is kept of a drawn one.
pub struct ImageDraw<T> {
    count: usize,
    seed: u64,
    strata: BTreeMap<String, Lowest<T>>,
    /// Of an image that does not fit into a stratum, or `None` for its first folder.
    common: Option<&'static str>,
    is_merged: bool,
}

/// The images with the lowest priorities.
struct Lowest<T> {
    listed: usize,
    kept: BinaryHeap<Kept<T>>,
}

struct Kept<T> {
    priority: u64,
    name: String,
    image: T,
}

/// The images of a sample.
pub struct DrawnImages<T> {
    pub strata: Vec<Stratum>,
    /// With the index of their stratum; any first part is a sample of the same design.
    pub images: Vec<(usize, T)>,
    /// There were too many folders to tell them apart.
    pub is_merged: bool,
}

impl<T> ImageDraw<T> {
    pub fn new(by: DrawBy, count: usize, seed: u64) -> Self {
        let common = (by == DrawBy::Random).then_some("all");
        Self { count, seed, strata: BTreeMap::new(), common, is_merged: false }
    }

    /// Takes the next image of the listing. `image` is called only if it may be in the sample.
    pub fn add(&mut self, name: &str, image: impl FnOnce() -> T) {
        let first = name.split_once('/').map_or(NO_FOLDER, |(folder, _)| folder);
        if !self.strata.contains_key(self.common.unwrap_or(first)) {
            if self.strata.len() >= MAX_STRATA.min((self.count / LEAST_PER_STRATUM).max(1)) {
                self.merge();
            }
            self.strata.entry(self.common.unwrap_or(first).to_owned()).or_default();
        }
        let priority = priority(self.seed, name);
        if let Some(stratum) = self.strata.get_mut(self.common.unwrap_or(first)) {
            stratum.listed += 1;
            let is_full = stratum.kept.len() >= self.count;
            if !is_full || stratum.kept.peek().is_some_and(|highest| priority <= highest.priority) {
                stratum.kept.push(Kept { priority, name: name.to_owned(), image: image() });
                stratum.cut_to(self.count);
            }
        }
    }

    /// The number of images so far.
    pub fn listed(&self) -> usize {
        self.strata.values().map(|stratum| stratum.listed).sum()
    }

    /// Joins all strata: the lowest priorities of all are among the lowest of each.
    fn merge(&mut self) {
        let mut all = Lowest::default();
        for stratum in std::mem::take(&mut self.strata).into_values() {
            all.listed += stratum.listed;
            all.kept.extend(stratum.kept);
            all.cut_to(self.count);
        }
        self.common = Some("all");
        self.is_merged = true;
        self.strata.insert("all".to_owned(), all);
    }

    pub fn finish(self) -> DrawnImages<T> {
        let sizes: Vec<usize> = self.strata.values().map(|stratum| stratum.listed).collect();
        let weights: Vec<f64> = sizes.iter().map(|size| *size as f64).collect();
        let sampled = allocate(&sizes, &weights, self.count);
        let mut strata = Vec::new();
        let mut images = Vec::new();
        for ((name, stratum), sampled) in self.strata.into_iter().zip(sampled) {
            for (rank, kept) in stratum.kept.into_sorted_vec().into_iter().take(sampled).enumerate() {
                let share = (rank as f64 + 0.5) / sampled as f64;
                images.push((share, kept.priority, strata.len(), kept.image));
            }
            strata.push(Stratum { name, population: stratum.listed, sampled });
        }
        images.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        let images = images.into_iter().map(|(_, _, stratum, image)| (stratum, image)).collect();
        DrawnImages { strata, images, is_merged: self.is_merged }
    }
}

impl<T> Default for Lowest<T> {
    fn default() -> Self {
        Self { listed: 0, kept: BinaryHeap::new() }
    }
}

impl<T> Lowest<T> {
    fn cut_to(&mut self, count: usize) {
        while self.kept.len() > count {
            self.kept.pop();
        }
    }
}

impl<T> Kept<T> {
    fn key(&self) -> (u64, &str) {
        (self.priority, &self.name)
    }
}

impl<T> PartialEq for Kept<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Kept<T> {}

impl<T> PartialOrd for Kept<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Kept<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

fn priority(seed: u64, name: &str) -> u64 {
    let digest = Sha256::new().chain_update(seed.to_le_bytes()).chain_update(name).finalize();
    digest.iter().take(8).fold(0, |priority, byte| (priority << 8) | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(by: DrawBy, count: usize, seed: u64, names: impl Iterator<Item = String>) -> DrawnImages<String> {
        let mut draw = ImageDraw::new(by, count, seed);
        for name in names {
            draw.add(&name, || name.clone());
        }
        draw.finish()
    }

    fn names_of(drawn: DrawnImages<String>) -> Vec<String> {
        drawn.images.into_iter().map(|(_, name)| name).collect()
    }

    fn in_folders(images: usize) -> impl DoubleEndedIterator<Item = String> {
        (0..images).map(|image| format!("{}/{image}.jpg", ["a", "b", "c", "c"][image % 4]))
    }

    #[test]
    fn lowest_hashes_are_drawn_in_any_order() {
        // Python: sorted(names, key=lambda name: hashlib.sha256((7).to_bytes(8, "little") + name.encode()).digest())
        let expected = ["09735.jpg", "08692.jpg", "08661.jpg", "07453.jpg", "09873.jpg"];
        let names = |images| (0..images).map(|image| format!("{image:05}.jpg"));
        assert_eq!(names_of(drawn(DrawBy::Random, 5, 7, names(10_000))), expected);
        assert_eq!(names_of(drawn(DrawBy::Random, 5, 7, names(10_000).rev())), expected);
        assert_eq!(names_of(drawn(DrawBy::Random, 3, 7, names(10_000))), expected[..3]);
    }

    #[test]
    fn folders_are_strata_of_proportional_size() {
        let forth = drawn(DrawBy::Prefix, 20, 1, in_folders(4000));
        let strata: Vec<(&str, usize, usize)> =
            forth.strata.iter().map(|stratum| (stratum.name.as_str(), stratum.population, stratum.sampled)).collect();
        assert_eq!(strata, [("a", 1000, 5), ("b", 1000, 5), ("c", 2000, 10)]);
        for (stratum, name) in &forth.images {
            assert!(name.starts_with(&forth.strata[*stratum].name));
        }
        assert_eq!(drawn(DrawBy::Prefix, 20, 1, in_folders(4000).rev()).images, forth.images);
    }

    #[test]
    fn too_many_folders_are_drawn_from_as_one() {
        let names = || (0..1000).map(|image| format!("{}/{image}.jpg", image % 11));
        let merged = drawn(DrawBy::Prefix, 20, 1, names());
        assert!(merged.is_merged && merged.strata.len() == 1 && merged.strata[0].population == 1000);
        assert_eq!(merged.images, drawn(DrawBy::Random, 20, 1, names()).images);
    }

    #[test]
    fn few_images_are_all_drawn() {
        for by in DrawBy::VARIANTS {
            let all = drawn(*by, 100, 1, in_folders(7));
            assert_eq!(all.images.len(), 7, "{by:?}");
        }
    }

    #[test]
    fn every_image_is_drawn_equally_often() {
        let mut times = vec![0_u32; 100];
        for seed in 0..2000 {
            for (_, name) in drawn(DrawBy::Random, 10, seed, (0..100).map(|image| image.to_string())).images {
                times[name.parse::<usize>().unwrap()] += 1;
            }
        }
        // Each image is drawn 200 times on average, with variance 2000 * 0.1 * 0.9. The statistic has a chi-square
        // distribution with 99 degrees of freedom, because the counts add up to 20,000. The bounds are its 0.05% and
        // 99.95% quantiles (Wilson and Hilferty 1931).
        let square: f64 = times.iter().map(|times| (f64::from(*times) - 200.0).powi(2) / 180.0).sum();
        let statistic = square * 99.0 / 100.0;
        assert!((59.0..152.0).contains(&statistic), "{statistic}");
    }
}
