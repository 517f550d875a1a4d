//! CSV as in RFC 4180: one row per box, one per class of a classifier, or one for an image that has neither.

use std::io;

use super::row::{ChosenImage, ChosenPrediction, right_class};
use super::tally::Tally;
use super::target::{ExportTarget, WholeFile};
use super::{ExportError, Writer};
use crate::domain::Verdict;

/// The header. `index` counts the stored boxes (or classes) of an image from 0; boxes are in pixels of the upright
/// image and clipped to it. `class_id` and `label` are the model's, `right_class` is the verdict's.
const COLUMNS: [&str; 21] = [
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
    "verdict",
    "right_class",
    "image_verdict",
    "image_right_class",
    "note",
    "tags",
    "model",
    "error",
    "uri",
];

/// Text from outside never becomes a formula: if it looks like one, it gets a leading apostrophe, which spreadsheets do
/// not show (OWASP, “CSV Injection”). Tags are separated by spaces.
pub(crate) struct CsvWriter {
    table: csv::Writer<WholeFile>,
    target: ExportTarget,
    model: String,
}

/// The cells that all rows of an image share, and those of a single row.
#[derive(Default)]
struct Cells {
    status: &'static str,
    width: String,
    height: String,
    index: String,
    bounds: [String; 4],
    class_id: String,
    label: String,
    score: String,
    verdict: &'static str,
    right_class: String,
    error: String,
}

impl CsvWriter {
    pub(crate) fn create(target: &ExportTarget, model: &str) -> Result<Self, ExportError> {
        let file = WholeFile::create(target)?;
        let table = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(file);
        let mut writer = Self { table, target: target.clone(), model: escape_formula(model) };
        writer.record(&COLUMNS)?;
        Ok(writer)
    }

    fn record(&mut self, cells: &[&str; COLUMNS.len()]) -> Result<(), ExportError> {
        self.table.write_record(cells).map_err(|error| ExportError::write(&self.target.path)(io_error(error)))
    }

    fn row(&mut self, image: &ChosenImage, cells: &Cells) -> Result<(), ExportError> {
        let row = image.row;
        let tags: Vec<&str> = row.tags.iter().map(String::as_str).collect();
        let image_verdict = row.verdict.as_ref();
        let model = self.model.clone();
        self.record(&[
            &escape_formula(&row.sample.name),
            cells.status,
            &cells.width,
            &cells.height,
            &cells.index,
            &cells.bounds[0],
            &cells.bounds[1],
            &cells.bounds[2],
            &cells.bounds[3],
            &cells.class_id,
            &escape_formula(&cells.label),
            &cells.score,
            cells.verdict,
            &escape_formula(&cells.right_class),
            image_verdict.map_or("", Verdict::into_str),
            &escape_formula(right_class(image_verdict).unwrap_or_default()),
            &escape_formula(row.note.as_deref().unwrap_or_default()),
            &escape_formula(&tags.join(" ")),
            &model,
            &escape_formula(&cells.error),
            &escape_formula(row.sample.uri.as_str()),
        ])
    }
}

/// One row of cells per box or class; one row without them if there are none.
fn cells_of(image: &ChosenImage, tally: &mut Tally) -> Vec<Cells> {
    let sized = |width: &u32, height: &u32| Cells {
        status: "ok",
        width: width.to_string(),
        height: height.to_string(),
        ..Cells::default()
    };
    let (bare, rows): (Cells, Vec<Cells>) = match &image.prediction {
        ChosenPrediction::Unpredicted => (Cells { status: "unasked", ..Cells::default() }, Vec::new()),
        ChosenPrediction::Outdated => (Cells { status: "outdated", ..Cells::default() }, Vec::new()),
        ChosenPrediction::Failed(reason) => {
            (Cells { status: "failed", error: (*reason).to_owned(), ..Cells::default() }, Vec::new())
        }
        ChosenPrediction::Classes { width, height, classes } => {
            let rows = classes.iter().enumerate().map(|(index, class)| Cells {
                index: index.to_string(),
                class_id: class.index.to_string(),
                label: class.label.clone(),
                score: class.score.to_string(),
                ..sized(width, height)
            });
            (sized(width, height), rows.collect())
        }
        ChosenPrediction::Boxes { width, height, boxes } => {
            let rows = boxes.iter().filter_map(|chosen| {
                let Some(clipped) = chosen.clipped else {
                    tally.outside += 1;
                    return None;
                };
                Some(Cells {
                    index: chosen.index.to_string(),
                    bounds: <[f32; 4]>::from(clipped).map(|edge| edge.to_string()),
                    class_id: chosen.detection.class_id.to_string(),
                    label: chosen.detection.label.clone(),
                    score: chosen.detection.score.to_string(),
                    verdict: chosen.verdict.map_or("", Verdict::into_str),
                    right_class: right_class(chosen.verdict).unwrap_or_default().to_owned(),
                    ..sized(width, height)
                })
            });
            (sized(width, height), rows.collect())
        }
    };
    tally.boxes += rows.len() as u64;
    if rows.is_empty() { vec![bare] } else { rows }
}

impl Writer for CsvWriter {
    fn write(&mut self, image: &ChosenImage, tally: &mut Tally) -> Result<(), ExportError> {
        for cells in cells_of(image, tally) {
            self.row(image, &cells)?;
        }
        tally.images += 1;
        Ok(())
    }

    fn finish(self: Box<Self>, _: &mut Tally) -> Result<(), ExportError> {
        let path = self.target.path;
        let file = self.table.into_inner().map_err(|error| ExportError::write(&path)(error.into_error()))?;
        file.commit()
    }
}

/// Keeps the kind of an I/O error.
pub(crate) fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

/// The text, with a leading apostrophe if a spreadsheet would evaluate it. Not for numbers.
pub(crate) fn escape_formula(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠']) {
        format!("'{text}")
    } else {
        text.to_owned()
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
