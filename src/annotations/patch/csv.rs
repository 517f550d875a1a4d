//! Changes in a CSV file: a label is a row.

use std::collections::HashMap;
use std::ops::Range;

use super::LabelPatchError;
use super::text::{
    LabelEdit, NewLabel, Output, PlacedLabel, TextFile, TextFormat, TextLabels, line_break, number_of, unnamed,
};
use crate::annotations::json::shortened;
use crate::annotations::rows::{each_row, escaped, fields};
use crate::annotations::table::{Bounds, Columns, PlacedRow, PlacedRows, placed_rows};
use crate::annotations::{AnnotationFormat, AnnotationsError};
use crate::domain::{BoxUnit, ExactBox, TruthLabel, column_delimiter};
use crate::image::source::{FileEntry, Files};
use crate::tasks::TaskControl;

pub(super) struct Csv {
    columns: Columns,
    unit: BoxUnit,
    delimiter: char,
    classes: HashMap<String, TruthLabel>,
    /// Whether there are classes, and none has a name.
    are_numbers: bool,
    /// The text of the first row of each image.
    first_of_image: HashMap<String, Range<usize>>,
    /// The columns of the header.
    width: usize,
    /// The position after the last row.
    end: usize,
}

impl TextLabels<Csv> {
    pub(super) fn open(
        files: &Files,
        entry: &FileEntry,
        header: &str,
        control: &TaskControl,
    ) -> Result<Self, LabelPatchError> {
        let content = files.read(entry, control).map_err(AnnotationsError::from)?;
        let broken = |reason: String| AnnotationsError::Broken {
            place: files.name_of(entry),
            format: AnnotationFormat::Csv,
            reason,
        };
        let file = TextFile::new(entry.name.clone(), &content).map_err(broken)?;
        let delimiter = column_delimiter(header);
        let spans = row_spans(file.text(), delimiter);
        let mut read = placed_rows(file.text(), delimiter).map_err(broken)?;
        let mut first_of_image = HashMap::new();
        let mut labels = Vec::new();
        for PlacedRow { line, image, label } in std::mem::take(&mut read.rows) {
            let Some(span) = spans.get(&line) else { continue };
            first_of_image.entry(image.clone()).or_insert_with(|| span.clone());
            labels.extend(label.map(|(class, bounds)| PlacedLabel::new(image, class, bounds, span.clone())));
        }
        let file_of = first_of_image.keys().map(|image| (image.clone(), Ok(0))).collect();
        let PlacedRows { columns, unit, classes, .. } = read;
        let end = spans.values().map(|span| span.end).max().unwrap_or_default();
        let are_numbers = !classes.is_empty() && classes.values().all(|class| class.name.is_none());
        let width = fields(header, delimiter).map_or(0, |names| names.len());
        let format = Csv { columns, unit, delimiter, classes, are_numbers, first_of_image, width, end };
        let unlisted = Some(0);
        Ok(Self { format, files: vec![file.with_labels(labels)], file_of, unlisted, output: Output::File })
    }
}

/// The text of each row with its line break, by the line in which it begins.
fn row_spans(text: &str, delimiter: char) -> HashMap<u64, Range<usize>> {
    let mut starts = vec![0];
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        if *byte == b'\n' || *byte == b'\r' && bytes.get(at + 1) != Some(&b'\n') {
            starts.push(at + 1);
        }
    }
    let mut lines = Vec::new();
    // Memory is never unreadable.
    let _ = each_row(bytes, delimiter, |line, _| lines.push(line));
    let start_of = |line: u64| starts.get(line as usize - 1).copied().unwrap_or(text.len());
    let ends = lines.iter().skip(1).map(|line| start_of(*line)).chain([text.len()]);
    let span = |(line, end): (&u64, usize)| {
        let start = start_of(*line);
        // Blank lines after a row, including lines of spaces, are not part of it.
        let row = &text[start..end];
        let content = row.trim_end().len();
        let row = row[content..].find(['\r', '\n']).map_or(row.len(), |at| content + at);
        let rest = &text[start + row..end];
        let line_break = ["\r\n", "\n", "\r"].into_iter().find(|known| rest.starts_with(known)).map_or(0, str::len);
        (*line, start..start + row + line_break)
    };
    lines.iter().zip(ends).map(span).collect()
}

impl Csv {
    /// A row with other cells.
    fn row(&self, text: &str, edit: impl FnOnce(&mut Vec<String>) -> Result<(), String>) -> Result<String, String> {
        let row = text.trim_end_matches(['\r', '\n']);
        let cells = fields(row, self.delimiter).map_err(|_| "its row has a quote that is not closed")?;
        let mut cells: Vec<String> = cells.into_iter().map(std::borrow::Cow::into_owned).collect();
        edit(&mut cells)?;
        let cells: Vec<String> = cells.iter().map(|cell| self.quoted(cell)).collect();
        Ok(cells.join(&self.delimiter.to_string()) + &text[row.len()..])
    }

    fn quoted(&self, cell: &str) -> String {
        let needs_quotes = cell.contains(['"', '\r', '\n', self.delimiter]);
        if needs_quotes { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
    }

    /// The number of a class without a name. Where no class has a name, 7 and “class 7” are the same.
    fn number(&self, class: &str) -> Option<i64> {
        number_of(class).filter(|_| self.are_numbers)
    }

    fn set_class(&self, cells: &mut Vec<String>, class: &str) -> Result<(), String> {
        let known = self.classes.get(class);
        let number = known.and_then(|known| known.number).or_else(|| self.number(class));
        if number.is_none() && self.are_numbers && self.columns.number.is_none() {
            return Err(format!(
                "the classes are numbers, which the name “{}” would turn into names; add a column class_id for the \
                 numbers, and apply the changes again",
                shortened(class)
            ));
        }
        if let Some(column) = self.columns.number {
            let next = || self.classes.values().filter_map(|class| class.number).max().map_or(0, |last| last + 1);
            let number = number.or_else(|| self.columns.name.is_some().then(next));
            let unknown = || format!("no class is named “{class}”, and the file has no column for class names");
            set(cells, column, number.ok_or_else(unknown)?.to_string());
        }
        if let Some(column) = self.columns.name {
            let name = match known {
                Some(known) => known.name.as_deref(),
                None if self.are_numbers && number.is_some() => None,
                None => Some(class),
            };
            let in_place_of_name = number.filter(|_| self.columns.number.is_none()).map(|number| number.to_string());
            set(cells, column, name.map(escaped).or(in_place_of_name).unwrap_or_default());
        }
        Ok(())
    }

    fn set_bounds(&self, cells: &mut Vec<String>, bounds: ExactBox) -> Result<(), String> {
        let ExactBox { left, top, width, height } = bounds;
        let text = |number: f64| match self.unit {
            BoxUnit::Pixels => number.to_string(),
            BoxUnit::Fractions => format!("{number:.7}"),
        };
        let (columns, numbers) = match self.columns.bounds.ok_or("the file has no columns for boxes")? {
            Bounds::Corners(columns) => (columns, [left, top, bounds.right(), bounds.bottom()]),
            Bounds::Size(columns) => (columns, [left, top, width, height]),
            Bounds::Center(columns) => (columns, [left + width / 2.0, top + height / 2.0, width, height]),
            Bounds::Whole(column) => {
                set(cells, column, format!("[{}]", [left, top, width, height].map(text).join(", ")));
                return Ok(());
            }
        };
        for (column, number) in columns.into_iter().zip(numbers) {
            set(cells, column, text(number));
        }
        Ok(())
    }
}

fn set(cells: &mut Vec<String>, column: usize, text: String) {
    // A row may lack the last cells.
    if cells.len() <= column {
        cells.resize(column + 1, String::new());
    }
    cells[column] = text;
}

impl TextFormat for Csv {
    fn unit(&self) -> BoxUnit {
        self.unit
    }

    fn class_as_read(&self, class: &str) -> String {
        self.number(class).map_or_else(|| class.to_owned(), unnamed)
    }

    fn changed(&self, label: &LabelEdit<'_>) -> Result<(String, bool), String> {
        let changed = self.row(label.text, |cells| {
            label.class.map_or(Ok(()), |class| self.set_class(cells, class))?;
            label.bounds.map_or(Ok(()), |bounds| self.set_bounds(cells, bounds))
        });
        Ok((changed?, false))
    }

    fn added(&self, file: &str, label: &NewLabel<'_>) -> Result<(usize, String), String> {
        let first =
            self.first_of_image.get(label.image).map(|first| file[first.clone()].trim_end_matches(['\r', '\n']));
        let row = self.row(first.unwrap_or_default(), |cells| {
            if first.is_none() {
                self.columns.name_image(cells, self.width, escaped(label.image), label.size);
            }
            let of_image = self.columns.of_image();
            for (column, cell) in cells.iter_mut().enumerate() {
                if !of_image.contains(&column) {
                    cell.clear();
                }
            }
            self.set_class(cells, label.class)?;
            if let (Some(column), Some(score)) = (self.columns.score, label.score) {
                set(cells, column, score.to_string());
            }
            self.set_bounds(cells, label.bounds)
        })?;
        let line_break = line_break(file);
        let is_open = !file[..self.end].ends_with(['\r', '\n']);
        Ok((self.end, if is_open { format!("{line_break}{row}") } else { row + line_break }))
    }

    /// The only row of an image, or one that describes more than its label, stays as an image without objects.
    fn deleted(&self, text: &str, is_last: bool) -> String {
        let [of_image, of_label] = [self.columns.of_image(), self.columns.of_label()];
        let emptied = self.row(text, |cells| {
            let lists_classes = self.columns.all_classes.and_then(|column| cells.get(column));
            let is_kept = is_last || lists_classes.is_some_and(|cell| !cell.trim().is_empty());
            if !is_kept {
                return Err(String::new());
            }
            for column in of_label.iter().filter(|column| !of_image.contains(column)) {
                set(cells, *column, String::new());
            }
            Ok(())
        });
        emptied.unwrap_or_default()
    }
}
