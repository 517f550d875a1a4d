//! CSV as in RFC 4180: one row per box, one per class of a classifier, or one for an image that has neither.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::PathBuf;

use super::row::{ChosenContent, ChosenImage, ExportContext, inside, right_box};
use super::tally::Tally;
use super::target::{ExportTarget, WholeFile};
use super::{ExportError, Writer};
pub(super) use crate::annotations::rows::{escaped as escape_formula, unescaped};
use crate::domain::{BoundingBox, ClassScore, Verdict};
use crate::project::export::options::ExportOptions;

/// A CSV file that appears under its name when complete, or CSV in memory.
pub(super) struct Table<W: Write = WholeFile> {
    writer: csv::Writer<W>,
    path: PathBuf,
}

impl Table {
    pub(super) fn create(target: &ExportTarget, columns: &[&str]) -> Result<Self, ExportError> {
        Self::new(WholeFile::create(target)?, target.path.clone(), columns)
    }

    pub(super) fn commit(self) -> Result<(), ExportError> {
        self.into_inner()?.commit()
    }
}

impl Table<Vec<u8>> {
    pub(super) fn in_memory(columns: &[&str]) -> Result<Self, ExportError> {
        Self::new(Vec::new(), PathBuf::from("memory"), columns)
    }
}

impl<W: Write> Table<W> {
    fn new(output: W, path: PathBuf, columns: &[&str]) -> Result<Self, ExportError> {
        let writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(output);
        let mut table = Self { writer, path };
        table.row(columns)?;
        Ok(table)
    }

    pub(super) fn row(&mut self, cells: &[impl AsRef<[u8]>]) -> Result<(), ExportError> {
        self.writer.write_record(cells).map_err(|error| ExportError::write(&self.path)(io_error(error)))
    }

    pub(super) fn into_inner(self) -> Result<W, ExportError> {
        self.writer.into_inner().map_err(|error| ExportError::write(&self.path)(error.into_error()))
    }
}

/// The header. `index` counts the stored boxes (or classes) of an image from 0; boxes are in pixels of the upright
/// image and clipped to it. `class_id`, `label` and `x1` to `y2` are the model's unless `author` is `person`;
/// `right_class` and `right_x1` to `right_y2` are the verdict's.
const COLUMNS: [&str; 26] = [
    "image",
    "status",
    "width",
    "height",
    "index",
    "x1",
    "y1",
    "x2",
    "y2",
    "class_id",
    "label",
    "score",
    "author",
    "verdict",
    "right_class",
    "right_x1",
    "right_y1",
    "right_x2",
    "right_y2",
    "image_verdict",
    "image_right_class",
    "note",
    "tags",
    "model",
    "error",
    "uri",
];

/// A column of corrected labels.
const ALL_CLASSES: &str = "all_classes";

/// The cells of a box or class: the columns from `index` to `right_y2`.
type BoxCells = [String; 15];

/// Text from outside never becomes a formula: if it looks like one, it gets a leading apostrophe, which spreadsheets do
/// not show (OWASP, “CSV Injection”). Tags are separated by spaces.
pub(super) struct CsvWriter {
    table: Table,
    model: String,
    /// All classes of corrected labels as JSON, for the first row.
    all_classes: Option<String>,
}

impl CsvWriter {
    pub(super) fn create(
        target: &ExportTarget,
        context: &ExportContext,
        options: ExportOptions,
    ) -> Result<Self, ExportError> {
        let all_classes = context.all_classes(options).map(|classes| classes.to_string());
        let added = all_classes.as_ref().map(|_| ALL_CLASSES);
        let columns: Vec<&str> = COLUMNS.into_iter().chain(added).collect();
        Ok(Self { table: Table::create(target, &columns)?, model: escape_formula(&context.run.card.id), all_classes })
    }
}

/// One row of cells per box or class.
fn box_cells(image: &ChosenImage, tally: &mut Tally) -> Vec<BoxCells> {
    let Ok(prediction) = &image.prediction else {
        return Vec::new();
    };
    let cells = |index: usize,
                 bounds: [String; 4],
                 class_id: u32,
                 label: &str,
                 score: f32,
                 verdict: Option<&Verdict>,
                 author| {
        let [x1, y1, x2, y2] = bounds;
        let [index, class_id, score] = [index.to_string(), class_id.to_string(), score.to_string()];
        let author = str::to_owned(author);
        let word = verdict.map_or("", Verdict::into_str).to_owned();
        let right = escape_formula(verdict.and_then(Verdict::right_class).unwrap_or_default());
        let [rx1, ry1, rx2, ry2] = right_box(verdict).map(edge_texts).unwrap_or_default();
        let label = escape_formula(label);
        [index, x1, y1, x2, y2, class_id, label, score, author, word, right, rx1, ry1, rx2, ry2]
    };
    let boxes = match &prediction.content {
        ChosenContent::Classes(classes) => {
            let is_corrected = matches!((classes, &image.row.verdict), (Cow::Owned(_), Some(Verdict::WrongClass(_))));
            let author = if is_corrected { "person" } else { "model" };
            let cells = |(index, class): (usize, &ClassScore)| {
                cells(index, Default::default(), class.index, &class.label, class.score, None, author)
            };
            return classes.iter().enumerate().map(cells).collect();
        }
        ChosenContent::Boxes(boxes) => boxes,
    };
    let rows = boxes.iter().filter_map(|chosen| {
        let found = &chosen.detection;
        let bounds = edge_texts(inside(&found.bounds, prediction.size)?);
        let author = chosen.author_of_detection();
        Some(cells(chosen.index, bounds, found.class_id, &found.label, found.score, chosen.verdict, author))
    });
    let rows: Vec<BoxCells> = rows.collect();
    tally.outside += (boxes.len() - rows.len()) as u64;
    rows
}

fn edge_texts(bounds: BoundingBox) -> [String; 4] {
    <[f32; 4]>::from(bounds).map(|edge| edge.to_string())
}

impl Writer for CsvWriter {
    fn write(&mut self, image: &ChosenImage, tally: &mut Tally) -> Result<(), ExportError> {
        let (status, error, size) = match &image.prediction {
            Ok(prediction) => ("ok", None, prediction.size.map(|side| side.to_string())),
            Err(unpredicted) => (unpredicted.status(), unpredicted.reason(), Default::default()),
        };
        let row = image.row;
        let verdict = row.verdict.as_ref();
        let tags: Vec<&str> = row.tags.iter().map(String::as_str).collect();
        let [width, height] = size;
        let of_image = [escape_formula(&row.sample.name), status.to_owned(), width, height];
        let rest = [
            verdict.map_or("", Verdict::into_str).to_owned(),
            escape_formula(verdict.and_then(Verdict::right_class).unwrap_or_default()),
            escape_formula(row.note.as_deref().unwrap_or_default()),
            escape_formula(&tags.join(" ")),
            self.model.clone(),
            escape_formula(error.unwrap_or_default()),
            escape_formula(row.sample.uri.as_str()),
        ];
        let boxes = box_cells(image, tally);
        tally.images += 1;
        tally.boxes += boxes.len() as u64;
        let without_boxes = boxes.is_empty().then(BoxCells::default);
        for cells in boxes.iter().chain(&without_boxes) {
            let cells: Vec<&String> = of_image.iter().chain(cells).chain(&rest).chain(&self.all_classes).collect();
            self.table.row(&cells)?;
            if let Some(all_classes) = &mut self.all_classes {
                all_classes.clear();
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>, _: &mut Tally) -> Result<(), ExportError> {
        self.table.commit()
    }
}

/// Keeps the kind of an I/O error.
pub(super) fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use crate::project::export::options::ExportFormat;
    use crate::project::export::sampler;
    use crate::project::export::sampler::Sampled;

    #[test]
    fn each_box_or_empty_image_is_a_row() {
        let rows = vec![
            sampler::row("a.jpg", &[(1, 0.9, [-5.0, 2.0, 30.5, 400.0]), (2, 0.8, [200.0, 0.0, 300.0, 5.0])]),
            sampler::row("b.jpg", &[]),
        ];
        let written = Sampled::new(ExportFormat::Csv, rows);
        let lines: Vec<&str> = written.text.split("\r\n").collect();
        assert_eq!(lines.len(), 4, "{}", written.text);
        assert!(lines[1].starts_with("a.jpg,ok,100,80,0,0,2,30.5,80,1,cat,0.9,"), "{}", lines[1]);
        assert!(lines[2].starts_with("b.jpg,ok,100,80,,,"), "{}", lines[2]);
        assert_eq!((written.report.images, written.report.boxes), (2, 1));
        assert!(
            written.report.notes[0].contains("1 box skipped because no part is inside"),
            "{:?}",
            written.report.notes
        );
    }

    #[test]
    fn names_and_notes_are_never_formulas() {
        let mut row = sampler::row("=HYPERLINK(\"x\").jpg", &[]);
        row.note = Some("@SUM(A1)".to_owned());
        row.tags = ["-1+1".to_owned()].into();
        let written = Sampled::new(ExportFormat::Csv, vec![row]);
        let line = written.text.split("\r\n").nth(1).unwrap();
        assert!(line.starts_with("\"'=HYPERLINK(\"\"x\"\").jpg\",ok,"), "{line}");
        assert!(line.contains(",'@SUM(A1),'-1+1,"), "{line}");
    }
}
