//! Confident learning: which labels of a classifier's images are probably wrong. Computes what cleanlab 2.9 does for
//! `find_label_issues(filter_by="confident_learning")` (`count.py`, `filter.py` and `rank.py`; Northcutt, Jiang and
//! Chuang, 2021, <https://doi.org/10.1613/jair.1.12125>).
//!
//! The threshold of a class is its mean probability over the images with its label. An image whose probability of a
//! class reaches the threshold of the class confidently has this class; if it reaches several, the most probable class
//! of all. The label is an issue if the image confidently has another class, and the most probable class is another.
//!
//! cleanlab needs the probability of every class, but a prediction often contains only the best ones. The classes that
//! it leaves out then share what is missing to a sum of 1 in equal parts.

use super::classification::OTHER_CLASS;

/// The tolerance of cleanlab's comparisons of probabilities.
const TOLERANCE: f64 = 1e-6;

/// The thresholds of all classes.
#[derive(Debug, Default)]
pub struct ConfidentThresholds {
    /// The number of classes that have a probability.
    classes: usize,
    /// By ground-truth class; `None` without images of the class.
    by_class: Vec<Option<f64>>,
    incomplete: u64,
}

/// The probabilities of an image.
struct Probabilities<'p> {
    /// Classes with their probabilities, best first.
    known: &'p [(u32, f64)],
    /// The number of other classes, and the probability of each.
    missing: usize,
    of_missing: f64,
}

impl ConfidentThresholds {
    /// `images`: the label of each image, and its predicted classes with their scores, best first. `truths` is the
    /// number of ground-truth classes, `predicted` that of the model's classes.
    pub fn new<'i>(images: impl IntoIterator<Item = (u32, &'i [(u32, f64)])>, truths: usize, predicted: usize) -> Self {
        let mut thresholds = Self { classes: truths.max(predicted), ..Self::default() };
        let mut sums = vec![(0.0, 0_u64); truths];
        for (label, known) in images.into_iter().filter(|(_, known)| !known.is_empty()) {
            let probabilities = thresholds.probabilities(known);
            thresholds.incomplete += u64::from(probabilities.missing > 0);
            if let Some((sum, count)) = sums.get_mut(label as usize) {
                *sum += probabilities.of(label);
                *count += 1;
            }
        }
        let mean = |(sum, count): (f64, u64)| (count > 0).then(|| (sum / count as f64).max(2.0 * TOLERANCE));
        thresholds.by_class = sums.into_iter().map(mean).collect();
        thresholds
    }

    /// The number of images whose predictions leave out classes.
    pub fn incomplete(&self) -> u64 {
        self.incomplete
    }

    fn probabilities<'p>(&self, known: &'p [(u32, f64)]) -> Probabilities<'p> {
        let missing = self.classes.saturating_sub(known.len());
        let rest = 1.0 - known.iter().map(|(_, score)| score).sum::<f64>();
        Probabilities { known, missing, of_missing: if missing > 0 { rest.max(0.0) / missing as f64 } else { 0.0 } }
    }

    /// cleanlab's self-confidence: the probability of the label.
    pub fn self_confidence(&self, label: u32, known: &[(u32, f64)]) -> f64 {
        self.probabilities(known).of(label)
    }

    /// cleanlab's normalized margin: `(p - q + 1) / 2`, with the probability `p` of the label and the highest one `q`
    /// of another class.
    pub fn normalized_margin(&self, label: u32, known: &[(u32, f64)]) -> f64 {
        let probabilities = self.probabilities(known);
        let is_missing = probabilities.missing > usize::from(!known.iter().any(|(class, _)| *class == label));
        let other = known.iter().find(|(class, _)| *class != label).map(|(_, score)| *score);
        let other = other.unwrap_or(if is_missing { probabilities.of_missing } else { 0.0 });
        f64::midpoint(probabilities.of(label) - other, 1.0)
    }

    /// Whether the label is an issue.
    pub fn is_issue(&self, label: u32, known: &[(u32, f64)]) -> bool {
        let Some(&(best, score)) = known.first() else { return false };
        let is_predicted = best == label || self.self_confidence(label, known) + TOLERANCE >= score;
        !is_predicted && self.confident_class(known).is_some_and(|class| class != label)
    }

    /// [`OTHER_CLASS`] for a class that the ground truth does not have; `None` if no probability reaches its threshold.
    fn confident_class(&self, known: &[(u32, f64)]) -> Option<u32> {
        let probabilities = self.probabilities(known);
        let is_confident =
            |class: u32, score: f64| self.threshold(class).is_some_and(|threshold| score >= threshold - TOLERANCE);
        let of_known = known.iter().filter(|(class, score)| is_confident(*class, *score)).map(|(class, _)| *class);
        let is_unknown = |class: &u32| known.iter().all(|(other, _)| other != class);
        let missing = (0..self.by_class.len() as u32).filter(|class| {
            probabilities.missing > 0 && is_confident(*class, probabilities.of_missing) && is_unknown(class)
        });
        let mut confident = of_known.chain(missing);
        let only = confident.next()?;
        Some(if confident.next().is_some() { known.first().map_or(only, |(best, _)| *best) } else { only })
    }

    fn threshold(&self, class: u32) -> Option<f64> {
        self.by_class.get(class as usize).copied().flatten()
    }
}

impl Probabilities<'_> {
    fn of(&self, class: u32) -> f64 {
        let known = self.known.iter().find(|(known, _)| *known == class && *known != OTHER_CLASS);
        known.map_or(self.of_missing, |(_, score)| *score)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const CLOSE: f64 = 1e-12;

    /// As cleanlab computes them: `tests/evaluation/make_confident_learning.py`.
    #[test]
    fn label_issues_match_cleanlab() {
        let text = include_str!("../../tests/evaluation/classification/confident_learning.json");
        let cases: Value = serde_json::from_str(text).unwrap();
        let cases = cases.as_array().unwrap();
        assert_eq!(cases.len(), 5);
        for case in cases {
            let name = case["name"].as_str().unwrap();
            let labels: Vec<u32> = serde_json::from_value(case["labels"].clone()).unwrap();
            let predictions: Vec<Vec<(u32, f64)>> = serde_json::from_value(case["predictions"].clone()).unwrap();
            let classes = case["classes"].as_u64().unwrap() as usize;
            let images = || labels.iter().copied().zip(predictions.iter().map(Vec::as_slice));
            let thresholds = ConfidentThresholds::new(images(), classes, classes);
            let is_incomplete = case["kept"].as_u64().unwrap() < classes as u64;
            assert_eq!(thresholds.incomplete(), if is_incomplete { labels.len() as u64 } else { 0 }, "{name}");
            let issues: Vec<usize> = images()
                .enumerate()
                .filter(|(_, (label, known))| thresholds.is_issue(*label, known))
                .map(|(at, _)| at)
                .collect();
            assert_eq!(serde_json::to_value(issues).unwrap(), case["issues"], "{name}");
            for (at, (label, known)) in images().enumerate() {
                for (field, found) in [
                    ("self_confidence", thresholds.self_confidence(label, known)),
                    ("normalized_margin", thresholds.normalized_margin(label, known)),
                ] {
                    let expected = case[field][at].as_f64().unwrap();
                    assert!(
                        (found - expected).abs() < CLOSE,
                        "{name}, image {at}: {field} {found}, expected {expected}"
                    );
                }
            }
        }
    }

    #[test]
    fn few_or_no_probabilities_give_no_issue() {
        let empty = ConfidentThresholds::new([(0, &[][..])], 2, 2);
        assert_eq!((empty.incomplete(), empty.is_issue(0, &[]), empty.is_issue(0, &[(1, 0.9)])), (0, false, false));
        let only: &[(u32, f64)] = &[(0, 1.0)];
        let one = ConfidentThresholds::new([(0, only)], 1, 1);
        assert_eq!(
            (one.is_issue(0, only), one.self_confidence(0, only), one.normalized_margin(0, only)),
            (false, 1.0, 1.0)
        );
        let foreign: &[(u32, f64)] = &[(OTHER_CLASS, 0.9), (0, 0.1)];
        let other = ConfidentThresholds::new([(0, foreign)], 1, 2);
        assert!(!other.is_issue(0, foreign), "the only confident class is the label");
    }
}
