//! Compares the classes in image names with predictions: accuracy and confusion matrix.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::domain::{LabelSet, Prediction, Sample};
use crate::evaluation::{ConfusionMatrix, truth_in_name};

/// The largest matrix; for more classes, the most frequent confusions are printed.
const MAX_COLUMNS: usize = 20;
const MAX_CONFUSIONS: usize = 20;

/// Counts as predictions come. Classes are the same where their names are, in upper or lower case.
pub(super) struct NamedTruth {
    /// The names as they were met, and their number by the name in lower case.
    names: Vec<String>,
    numbers: BTreeMap<String, u32>,
    /// Whether an image name may contain a class that no label has, because the labels are unknown.
    is_open: bool,
    matrix: ConfusionMatrix,
    /// The number of images whose names have no class of the labels, and one of them.
    unknown: u64,
    example: Option<String>,
}

impl NamedTruth {
    pub(super) fn new(labels: &LabelSet) -> Self {
        let mut truth = Self {
            names: Vec::new(),
            numbers: BTreeMap::new(),
            is_open: labels.is_empty(),
            matrix: ConfusionMatrix::default(),
            unknown: 0,
            example: None,
        };
        for (_, name) in labels.iter() {
            truth.number(name);
        }
        truth
    }

    /// The prediction about one image. One without any class is counted nowhere.
    pub(super) fn add(&mut self, sample: &Sample, prediction: &Prediction) {
        let is_open = self.is_open;
        let truth =
            truth_in_name(&sample.name).filter(|name| is_open || self.numbers.contains_key(&name.to_lowercase()));
        let Some(truth) = truth else {
            self.unknown += 1;
            self.example.get_or_insert_with(|| sample.name.clone());
            return;
        };
        if let Some(best) = prediction.classes().first() {
            let (truth, prediction) = (self.number(truth), self.number(&best.label));
            self.matrix.add(truth, prediction);
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
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |line: String| {
            text.push_str(&line);
            text.push('\n');
        };
        match self.matrix.accuracy() {
            None => line("no image name ends in a class of the labels".to_owned()),
            Some(accuracy) => line(format!(
                "accuracy by image names: {:.2} %, {} of {}",
                accuracy * 100.0,
                self.matrix.correct(),
                self.matrix.total()
            )),
        }
        if let Some(example) = &self.example {
            line(format!("images whose name has no class of the labels: {}, such as {example}", self.unknown));
        }
        let classes = self.matrix.classes();
        if classes.is_empty() {
            return text;
        }
        if classes.len() <= MAX_COLUMNS {
            text.push_str(&self.table(&classes));
        } else {
            text.push_str(&self.confusions(&classes));
        }
        text
    }

    /// Row by truth, column by answer; each row adds up to 1.
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
        for (name, row) in names.iter().zip(self.matrix.by_row(classes)) {
            let _ = write!(table, "\n{name:width$}");
            for share in row {
                let _ = write!(table, " {share:>width$.2}");
            }
        }
        table.push('\n');
        table
    }

    fn confusions(&self, classes: &[u32]) -> String {
        let pairs = classes.iter().flat_map(|truth| {
            let predictions = classes.iter().filter(move |prediction| *prediction != truth);
            predictions.map(move |prediction| (self.matrix.count(*truth, *prediction), *truth, *prediction))
        });
        let mut pairs: Vec<(u64, u32, u32)> = pairs.filter(|(count, ..)| *count > 0).collect();
        pairs.sort_by_key(|(count, ..)| std::cmp::Reverse(*count));
        let mut text = String::new();
        for (count, truth, prediction) in pairs.iter().take(MAX_CONFUSIONS) {
            let (truth, prediction) = (self.name(*truth), self.name(*prediction));
            let _ = writeln!(text, "{truth} predicted as {prediction}: {count}");
        }
        if let Some(more) = pairs.len().checked_sub(MAX_CONFUSIONS).filter(|more| *more > 0) {
            let _ = writeln!(text, "and {more} more confusions");
        }
        text
    }
}
