//! Compares the classes in image names with predictions: accuracy and confusion matrix.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::domain::{LabelSet, Prediction, Sample};

/// The largest matrix; for more classes, the most frequent confusions are printed.
const MAX_COLUMNS: usize = 20;
const MAX_CONFUSIONS: usize = 20;

/// Counts as predictions arrive. Classes are equal if their names are, ignoring case.
pub(crate) struct NamedTruth {
    /// The names in order of occurrence, and their numbers by lowercase name.
    names: Vec<String>,
    numbers: BTreeMap<String, u32>,
    /// Whether an image name may contain a class without a label, because the labels are unknown.
    is_open: bool,
    /// Images by the numbers of their true and predicted class.
    counts: BTreeMap<(u32, u32), u64>,
    /// The number of images whose names have no class of the labels, and an example.
    unknown: u64,
    example: Option<String>,
}

impl NamedTruth {
    pub(crate) fn new(labels: &LabelSet) -> Self {
        let mut truth = Self {
            names: Vec::new(),
            numbers: BTreeMap::new(),
            is_open: labels.is_empty(),
            counts: BTreeMap::new(),
            unknown: 0,
            example: None,
        };
        for (_, name) in labels.iter() {
            truth.number(name);
        }
        truth
    }

    /// Adds the prediction for one image. One without any class is not counted.
    pub(crate) fn add(&mut self, sample: &Sample, prediction: &Prediction) {
        let is_open = self.is_open;
        let truth =
            truth_in_name(&sample.name).filter(|name| is_open || self.numbers.contains_key(&name.to_lowercase()));
        let Some(truth) = truth else {
            self.unknown += 1;
            self.example.get_or_insert_with(|| sample.name.clone());
            return;
        };
        if let Some(best) = prediction.classes().first() {
            let pair = (self.number(truth), self.number(&best.label));
            *self.counts.entry(pair).or_default() += 1;
        }
    }

    fn number(&mut self, name: &str) -> u32 {
        let next = self.names.len() as u32;
        let number = *self.numbers.entry(name.to_lowercase()).or_insert(next);
        if number == next {
            self.names.push(name.to_owned());
        }
        number
    }

    fn name(&self, number: u32) -> &str {
        self.names.get(number as usize).map_or("", String::as_str)
    }

    /// The report; ends with a line break.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |line: String| {
            text.push_str(&line);
            text.push('\n');
        };
        let count = |is_counted: fn(u32, u32) -> bool| -> u64 {
            self.counts
                .iter()
                .filter(|((truth, prediction), _)| is_counted(*truth, *prediction))
                .map(|(_, count)| count)
                .sum()
        };
        let (correct, all) = (count(|truth, prediction| truth == prediction), count(|_, _| true));
        match all {
            0 => line("no image name ends in a known class".to_owned()),
            _ => line(format!(
                "accuracy against image names: {:.2}% ({correct} of {all})",
                correct as f64 / all as f64 * 100.0
            )),
        }
        if let Some(example) = &self.example {
            line(format!("images without a known class in their name: {}, such as {example}", self.unknown));
        }
        match &self.classes()[..] {
            [] => {}
            classes if classes.len() <= MAX_COLUMNS => text.push_str(&self.table(classes)),
            _ => text.push_str(&self.confusions()),
        }
        text
    }

    /// All classes that occur, as truth or as prediction, lowest number first.
    fn classes(&self) -> Vec<u32> {
        let classes: BTreeSet<u32> = self.counts.keys().flat_map(|&(truth, prediction)| [truth, prediction]).collect();
        classes.into_iter().collect()
    }

    /// The fractions of a class's images that were predicted as each of `classes`; all zero without images.
    fn row(&self, truth: u32, classes: &[u32]) -> Vec<f64> {
        let count = |class: &u32| self.counts.get(&(truth, *class)).copied().unwrap_or(0);
        let all = classes.iter().map(count).sum::<u64>().max(1) as f64;
        classes.iter().map(|class| count(class) as f64 / all).collect()
    }

    /// Rows by truth, columns by prediction; each row adds up to 1.
    fn table(&self, classes: &[u32]) -> String {
        let names: Vec<&str> = classes.iter().map(|number| self.name(*number)).collect();
        let width = names.iter().map(|name| name.chars().count()).max();
        let width = width.unwrap_or(0).max(4);
        let mut table = format!(
            "confusion matrix: rows are true classes, columns are predictions, as fractions of the row\n{:width$}",
            ""
        );
        for name in &names {
            let _ = write!(table, " {name:>width$}");
        }
        for (name, class) in names.iter().zip(classes) {
            let _ = write!(table, "\n{name:width$}");
            for share in self.row(*class, classes) {
                let _ = write!(table, " {share:>width$.2}");
            }
        }
        table.push('\n');
        table
    }

    fn confusions(&self) -> String {
        let mut pairs: Vec<_> = self.counts.iter().filter(|((truth, prediction), _)| truth != prediction).collect();
        pairs.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let mut text = String::new();
        for ((truth, prediction), count) in pairs.iter().take(MAX_CONFUSIONS) {
            let (truth, prediction) = (self.name(*truth), self.name(*prediction));
            let _ = writeln!(text, "{truth} predicted as {prediction}: {count}");
        }
        if let Some(more) = pairs.len().checked_sub(MAX_CONFUSIONS).filter(|more| *more > 0) {
            let _ = writeln!(text, "and {more} more confusions");
        }
        text
    }
}

/// The class in an image name, as common for CIFAR-10: the letters before the extension, `cat` in `test/0017_cat.png`.
/// `None` if there are none.
pub(crate) fn truth_in_name(name: &str) -> Option<&str> {
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

    /// Written by `tests/outputs/make_confusion.py` with NumPy.
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
    fn accuracy_and_rows_match_numpy() {
        let expected: Expected = serde_json::from_str(include_str!("../../../tests/outputs/confusion.json")).unwrap();
        let mut truth = NamedTruth::new(&LabelSet::default());
        for pair in expected.truth.iter().copied().zip(expected.prediction) {
            *truth.counts.entry(pair).or_default() += 1;
        }
        let accuracy = format!("{:.2}% (", expected.accuracy * 100.0);
        assert!(truth.text().contains(&accuracy), "{accuracy}");
        assert_eq!(truth.classes(), expected.classes);
        let rows: Vec<Vec<f64>> = expected.classes.iter().map(|class| truth.row(*class, &expected.classes)).collect();
        assert_eq!(rows.len(), expected.by_row.len());
        for (row, expected) in rows.iter().zip(&expected.by_row) {
            assert_eq!(row.len(), expected.len());
            let is_close = row.iter().zip(expected).all(|(a, b)| (a - b).abs() < CLOSE);
            assert!(is_close, "{row:?} {expected:?}");
        }
    }

    #[test]
    fn name_suffix_is_the_class() {
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
