//! A classifier against what images are known to show.

use std::collections::BTreeMap;

/// Counts which class was taken for which: the truth by row, the first class of the prediction by column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfusionMatrix {
    /// The counts by truth and prediction.
    counts: BTreeMap<(u32, u32), u64>,
    total: u64,
    correct: u64,
}

impl ConfusionMatrix {
    /// Counts one image of class `truth` that was predicted as `prediction`, both as class ids.
    pub fn add(&mut self, truth: u32, prediction: u32) {
        *self.counts.entry((truth, prediction)).or_default() += 1;
        self.total += 1;
        self.correct += u64::from(truth == prediction);
    }

    /// Images that were counted.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Images whose first class was the right one.
    pub fn correct(&self) -> u64 {
        self.correct
    }

    /// Share of the images whose first class was the right one, `0.0..=1.0`; `None` without images.
    pub fn accuracy(&self) -> Option<f64> {
        (self.total > 0).then(|| self.correct as f64 / self.total as f64)
    }

    /// All classes that occur, as truth or as prediction, the lowest id first.
    pub fn classes(&self) -> Vec<u32> {
        let ids = self.counts.keys().flat_map(|&(truth, prediction)| [truth, prediction]);
        let mut classes: Vec<u32> = ids.collect();
        classes.sort_unstable();
        classes.dedup();
        classes
    }

    /// How often images that show `truth` were taken for `answer`.
    pub fn count(&self, truth: u32, prediction: u32) -> u64 {
        self.counts.get(&(truth, prediction)).copied().unwrap_or(0)
    }

    /// The truth, the prediction and the count of each pair that occurs.
    pub fn cells(&self) -> impl Iterator<Item = (u32, u32, u64)> {
        self.counts.iter().map(|(&(truth, prediction), &count)| (truth, prediction, count))
    }

    /// A row for each class of `classes`, with a share for each of them: which part of the images that show the class
    /// was taken for which. A row adds up to 1; one of a class that no image shows is all zero.
    pub fn by_row(&self, classes: &[u32]) -> Vec<Vec<f64>> {
        let row = |truth: &u32| {
            let counts: Vec<u64> = classes.iter().map(|prediction| self.count(*truth, *prediction)).collect();
            let all = counts.iter().sum::<u64>().max(1) as f64;
            counts.iter().map(|count| *count as f64 / all).collect()
        };
        classes.iter().map(row).collect()
    }
}

/// The class in the name of an image, as the images of CIFAR-10 are often named: the letters before the extension,
/// `cat` of `test/0017_cat.png`. `None` if there are none.
pub fn truth_in_name(name: &str) -> Option<&str> {
    let file = name.rsplit(['/', '\\']).next()?;
    let (stem, _) = file.rsplit_once('.')?;
    let letters = stem.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let truth = &stem[letters.len()..];
    (!truth.is_empty()).then_some(truth)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    /// Written by `tests/outputs/make_confusion.py`, with NumPy.
    #[derive(Deserialize)]
    struct Expected {
        truth: Vec<u32>,
        #[serde(rename = "answer")]
        prediction: Vec<u32>,
        accuracy: f64,
        classes: Vec<u32>,
        by_row: Vec<Vec<f64>>,
    }

    const CLOSE: f64 = 1e-12;

    #[test]
    fn accuracy_and_rows_are_those_of_numpy() {
        let expected: Expected = serde_json::from_str(include_str!("../../tests/outputs/confusion.json")).unwrap();
        let mut matrix = ConfusionMatrix::default();
        for (truth, prediction) in expected.truth.iter().zip(&expected.prediction) {
            matrix.add(*truth, *prediction);
        }
        assert!((matrix.accuracy().unwrap() - expected.accuracy).abs() < CLOSE);
        assert_eq!(matrix.classes(), expected.classes);
        let rows = matrix.by_row(&expected.classes);
        assert_eq!(rows.len(), expected.by_row.len());
        for (row, expected) in rows.iter().zip(&expected.by_row) {
            assert_eq!(row.len(), expected.len());
            let is_close = row.iter().zip(expected).all(|(a, b)| (a - b).abs() < CLOSE);
            assert!(is_close, "{row:?} {expected:?}");
        }
    }

    #[test]
    fn without_images_there_is_no_accuracy() {
        let nothing = ConfusionMatrix::default();
        assert_eq!(nothing.accuracy(), None);
        assert!(nothing.by_row(&[]).is_empty());
    }

    #[test]
    fn the_letters_before_the_extension_are_the_truth() {
        for (name, truth) in [
            ("0017_cat.png", Some("cat")),
            ("test/a.b/9-airplane.jpeg", Some("airplane")),
            ("frog.png", Some("frog")),
            ("12.png", None),
            ("cat", None),
            ("a/b", None),
            ("1_고양이.png", None),
            ("", None),
        ] {
            assert_eq!(truth_in_name(name), truth, "{name}");
        }
    }
}
