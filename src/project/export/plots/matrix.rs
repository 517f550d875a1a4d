//! The confusion matrix.

use std::collections::{BTreeMap, BTreeSet};

use super::plot::{Anchor, Plot, Shapes, WIDTH, width_of};
use crate::evaluation::{ConfusionCell, EvaluatedClass};

/// Maximum number of classes with a row and a column; the most confused ones.
const MOST_CLASSES: usize = 20;
const LABELS: f64 = 130.0;
/// Maximum width of column names.
const LONGEST_NAME: f64 = 110.0;
/// The sine of the angle of column names.
const RISE: f64 = 0.77;
const SMALLEST_CELL: f64 = 26.0;
const LARGEST_CELL: f64 = 64.0;

/// A row or column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Line {
    Class(u32),
    /// All classes without a line of their own.
    Others,
    /// As a row: no object. As a column: no detection, or a class that the ground truth does not have.
    Nothing,
}

/// The names of the row and column for [`Line::Nothing`].
pub(super) struct Words {
    pub no_truth: &'static str,
    pub no_prediction: &'static str,
    /// What is counted, and what a row without truth and a column without prediction mean, if they exist.
    pub counted: &'static str,
    pub about_no_truth: &'static str,
    pub about_no_prediction: &'static str,
}

pub(super) const WORDS_OF_DETECTION: Words = Words {
    no_truth: "background",
    no_prediction: "not detected",
    counted: "Detections above the minimum score and undetected objects, at IoU ≥ 0.50.",
    about_no_truth: " Row “background”: detections without an object.",
    about_no_prediction: " Column “not detected”: objects without a detection.",
};

pub(super) const WORDS_OF_CLASSIFICATION: Words = Words {
    no_truth: "no class",
    no_prediction: "unknown class",
    counted: "Images by true class and predicted top class.",
    about_no_truth: "",
    about_no_prediction: " Column “unknown class”: predicted as a class that the ground truth does not have.",
};

pub(super) fn plot(classes: &[&EvaluatedClass], cells: &[ConfusionCell], words: &Words) -> Option<Plot> {
    let matrix = Matrix::new(classes, cells, words);
    let Matrix { rows, columns, shown, others, .. } = &matrix;
    if rows.is_empty() || columns.is_empty() {
        return None;
    }
    let side = ((WIDTH - LABELS) / columns.len() as f64).clamp(SMALLEST_CELL, LARGEST_CELL);
    let longest = columns.iter().map(|column| width_of(&matrix.column_name(*column))).fold(0.0, f64::max);
    let head = (longest.min(LONGEST_NAME) * RISE + 20.0).max(44.0);
    let mut body = Shapes::default();
    body.text("weak", Anchor::End, [LABELS - 8.0, head - 26.0], "Columns: predicted");
    body.text("weak", Anchor::End, [LABELS - 8.0, head - 8.0], "Rows: ground truth");
    for (place, column) in columns.iter().enumerate() {
        let x = LABELS + (place as f64 + 0.5) * side + 4.0;
        body.name(Anchor::Start, [x, head - 6.0], -50, &matrix.column_name(*column), LONGEST_NAME);
    }
    for (place, row) in rows.iter().enumerate() {
        matrix.draw_row(&mut body, *row, head + place as f64 * side, side);
    }
    let [width, height] = [columns.len(), rows.len()].map(|lines| side * lines as f64);
    body.rect("right", [LABELS, head, width, height], 1.0, "");
    let some = if *others > 0 {
        let occurring = shown.len() + others;
        format!("The {} most confused of {occurring} classes; the others are combined. ", shown.len())
    } else {
        String::new()
    };
    Some(Plot {
        name: "confusion-matrix",
        title: "Confusion matrix",
        caption: format!(
            "{some}{}{}{} Darker cells are larger fractions of their row. Framed cells are correct.",
            words.counted,
            if rows.contains(&Line::Nothing) { words.about_no_truth } else { "" },
            if columns.contains(&Line::Nothing) { words.about_no_prediction } else { "" }
        ),
        size: [(LABELS + width + 64.0).max(WIDTH), head + height + 4.0],
        body,
    })
}

struct Matrix<'m> {
    classes: &'m [&'m EvaluatedClass],
    words: &'m Words,
    /// The classes with a line.
    shown: Vec<u32>,
    /// The number of other classes that occur.
    others: usize,
    /// Counts by row and column.
    counts: BTreeMap<[Line; 2], u64>,
    rows: Vec<Line>,
    columns: Vec<Line>,
}

impl<'m> Matrix<'m> {
    fn new(classes: &'m [&'m EvaluatedClass], cells: &[ConfusionCell], words: &'m Words) -> Self {
        let shown = shown(cells);
        let line = |class: Option<u32>| match class {
            Some(class) if shown.contains(&class) => Line::Class(class),
            Some(_) => Line::Others,
            None => Line::Nothing,
        };
        let mut counts: BTreeMap<[Line; 2], u64> = BTreeMap::new();
        for cell in cells {
            *counts.entry([line(cell.truth), line(cell.predicted)]).or_default() += cell.count;
        }
        let [rows, columns] = [0, 1].map(|side: usize| {
            let mut lines: Vec<Line> = shown.iter().map(|class| Line::Class(*class)).collect();
            let rest = [Line::Others, Line::Nothing].into_iter();
            lines.extend(rest.filter(|rest| counts.keys().any(|cell| cell[side] == *rest)));
            lines
        });
        let others = occurring(cells).len() - shown.len();
        Self { classes, words, shown, others, counts, rows, columns }
    }

    fn name(&self, line: Line, nothing: &str) -> String {
        match line {
            Line::Class(class) => {
                self.classes.get(class as usize).map_or_else(|| class.to_string(), |class| class.name.clone())
            }
            Line::Others => format!("{} other classes", self.others),
            Line::Nothing => nothing.to_owned(),
        }
    }

    fn column_name(&self, column: Line) -> String {
        self.name(column, self.words.no_prediction)
    }

    /// Draws a row of cells, `side` pixels wide and high, at `y`.
    fn draw_row(&self, body: &mut Shapes, row: Line, y: f64, side: f64) {
        let row_name = self.name(row, self.words.no_truth);
        body.name(Anchor::End, [LABELS - 8.0, y + side / 2.0 + 4.5], 0, &row_name, LABELS - 12.0);
        let count_of = |column: &Line| self.counts.get(&[row, *column]).copied().unwrap_or(0);
        let whole = self.columns.iter().map(count_of).sum::<u64>().max(1) as f64;
        for (place, column) in self.columns.iter().enumerate() {
            let (count, x) = (count_of(column), LABELS + place as f64 * side);
            let share = count as f64 / whole;
            if count > 0 {
                let column_name = self.column_name(*column);
                let title = format!("{row_name} predicted as {column_name}: {count} ({:.1}%)", 100.0 * share);
                // At least half a shade, so that no count is on bare paper.
                body.rect("fill", [x, y, side, side], 0.06 + 0.94 * share, &title);
                let style = if share > 0.75 { "small on" } else { "small" };
                body.text(style, Anchor::Middle, [x + side / 2.0, y + side / 2.0 + 4.0], &short_count(count));
            }
            if row == *column && matches!(row, Line::Class(_)) {
                body.rect("right", [x + 1.0, y + 1.0, side - 2.0, side - 2.0], 1.0, "");
            }
        }
    }
}

/// The classes with a line, in order: all, or those with the most confusions with other classes; among those that are
/// never confused, the ones with the most errors.
fn shown(cells: &[ConfusionCell]) -> Vec<u32> {
    let mut errors: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for class in occurring(cells) {
        errors.insert(class, (0, 0));
    }
    for cell in cells.iter().filter(|cell| cell.truth != cell.predicted) {
        let is_confusion = cell.truth.is_some() && cell.predicted.is_some();
        for class in [cell.truth, cell.predicted].into_iter().flatten() {
            let (confusions, all) = errors.entry(class).or_default();
            *confusions += if is_confusion { cell.count } else { 0 };
            *all += cell.count;
        }
    }
    let mut classes: Vec<(u32, (u64, u64))> = errors.into_iter().collect();
    classes.sort_by_key(|(class, errors)| (std::cmp::Reverse(*errors), *class));
    let mut classes: Vec<u32> = classes.into_iter().take(MOST_CLASSES).map(|(class, _)| class).collect();
    classes.sort_unstable();
    classes
}

/// Classes that occur in a cell.
fn occurring(cells: &[ConfusionCell]) -> BTreeSet<u32> {
    cells.iter().flat_map(|cell| [cell.truth, cell.predicted]).flatten().collect()
}

/// `950`, `12k`, `3.4M`: fits into a cell.
fn short_count(count: u64) -> String {
    match count {
        0..=9_999 => count.to_string(),
        10_000..=999_499 => format!("{}k", (count + 500) / 1000),
        _ => format!("{:.1}M", count as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrix_groups_rarely_confused_classes() {
        let cell = |truth, predicted, count| ConfusionCell { truth: Some(truth), predicted: Some(predicted), count };
        let mut cells: Vec<ConfusionCell> = (0..50).map(|class| cell(class, class, 100)).collect();
        cells.push(cell(40, 41, 7));
        cells.push(ConfusionCell { truth: Some(3), predicted: None, count: 900 });
        let classes: Vec<EvaluatedClass> =
            (0..50).map(|id| EvaluatedClass { id: Some(id), name: format!("class <{id}>") }).collect();
        assert!([3, 40, 41].iter().all(|class| shown(&cells).contains(class)));
        let words = WORDS_OF_DETECTION;
        let plot = plot(&classes.iter().collect::<Vec<_>>(), &cells, &words).unwrap();
        let svg = plot.svg();
        assert!(plot.caption.starts_with("The 20 most confused of 50 classes;"), "{}", plot.caption);
        for text in ["class &lt;41&gt; predicted as class &lt;41&gt;: 100", "30 other classes: 3000", ">900<"] {
            assert!(svg.contains(text), "{text}: {svg}");
        }
    }

    #[test]
    fn counts_fit_into_cells() {
        let texts = [0, 9_999, 12_345, 999_499, 999_500].map(short_count);
        assert_eq!(texts, ["0", "9999", "12k", "999k", "1.0M"]);
    }
}
