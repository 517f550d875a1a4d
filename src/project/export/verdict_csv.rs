//! Verdicts as CSV: one row per verdict, for other tools and people, and back.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::Read;

use super::csv_table::{Table, escape_formula};
use super::{ExportError, ExportTarget};
use crate::domain::{BoundingBox, Change, DrawnBox, Prediction, RunId, RunInfo, SampleUri, Verdict, VerdictTarget};
use crate::project::{Pair, Project, StoreError};

/// The header. `box` is empty for a verdict on the image, and for a wrong label. The edges are those of a box that a
/// person drew, or of that label, in pixels of the upright image.
const COLUMNS: [&str; 9] = ["image", "box", "verdict", "right_class", "x1", "y1", "x2", "y2", "reviewer"];

/// Writes the verdicts on a run, and on images without a run, and returns their number.
///
/// # Errors
/// The project cannot be read, or the file exists or cannot be written.
pub fn export_verdicts(project: &Project, run: RunId, target: &ExportTarget) -> Result<usize, ExportError> {
    let mut table = Table::create(target, &COLUMNS)?;
    let reviewers = project.reviewers(run)?;
    let root = project.root();
    let mut count = 0;
    for judged in project.judgments()? {
        let image = escape_formula(&judged.sample.name_below(root.as_deref()));
        for (target, verdict) in judged.verdicts {
            let is_label = matches!(verdict, Verdict::Spurious(_));
            if !target.is_of(run) && !is_label {
                continue;
            }
            let edges = verdict.drawn().map(|drawn| <[f32; 4]>::from(drawn.bounds()).map(|edge| edge.to_string()));
            let [x1, y1, x2, y2] = edges.unwrap_or_default();
            let word: &'static str = (&verdict).into();
            let reviewer = reviewers.get(&(judged.sample.clone(), target));
            table.row(&[
                image.clone(),
                target.box_index.filter(|_| !is_label).map(|index| index.to_string()).unwrap_or_default(),
                word.to_owned(),
                escape_formula(verdict.right_class().unwrap_or_default()),
                x1,
                y1,
                x2,
                y2,
                escape_formula(reviewer.map_or("", String::as_str)),
            ])?;
            count += 1;
        }
    }
    table.commit()?;
    Ok(count)
}

/// What the rows of a file change.
#[derive(Debug, Default)]
pub struct ImportedVerdicts {
    pub changes: Vec<Change>,
    /// Rows whose verdict the project already has.
    pub unchanged: usize,
    /// Rows of a sample that nobody has judged yet.
    pub without_verdict: usize,
    /// Rows that cannot be used.
    pub rejected: Vec<RejectedRow>,
    /// Rows whose box or image has another verdict, which is kept.
    pub conflicts: Vec<RejectedRow>,
}

/// A row that was not imported. Displays as “line 12: unknown image: a.jpg”.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct RejectedRow {
    pub line: u64,
    pub reason: String,
}

#[derive(Debug, thiserror::Error)]
pub enum VerdictCsvError {
    #[error("the first line must name the columns, and it has no column “{0}”")]
    NoColumn(&'static str),
    #[error("could not read the file: {0}")]
    Read(#[from] csv::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Whether a verdict in the file replaces another one in the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherVerdicts {
    Keep,
    Replace,
}

/// A row with a verdict.
struct Row {
    line: u64,
    image: String,
    box_index: String,
    verdict: String,
    right_class: String,
    edges: [String; 4],
    reviewer: String,
}

/// Compares the verdicts in a CSV file with a run. Columns can have any order; unknown ones are ignored. `reviewer` is
/// that of rows without one.
///
/// # Errors
/// The file is no such table, or it or the project cannot be read.
pub fn import_verdicts(
    project: &Project,
    run: &RunInfo,
    file: impl Read,
    others: OtherVerdicts,
    reviewer: Option<&str>,
) -> Result<ImportedVerdicts, VerdictCsvError> {
    let mut imported = ImportedVerdicts::default();
    let rows = read_rows(file, &mut imported)?;
    let mut images = KnownImages::read(project, run, &rows)?;
    let mut seen = HashMap::<(SampleUri, Option<u32>, Option<DrawnBox>), u64>::new();
    for row in rows {
        let line = row.line;
        let mut reject = |reason: String| imported.rejected.push(RejectedRow { line, reason });
        let (sample, target, verdict) = match images.verdict(&row, run) {
            Ok(found) => found,
            Err(reason) => {
                reject(reason);
                continue;
            }
        };
        let added = match &verdict {
            Verdict::Added(drawn) | Verdict::Spurious(drawn) => Some(drawn.clone()),
            _ => None,
        };
        let key = (sample.clone(), target.box_index.filter(|_| added.is_none()), added.clone());
        if let Some(earlier) = seen.insert(key, line) {
            reject(format!("line {earlier} already judges this"));
            continue;
        }
        let existing = images.existing.get(&(sample.clone(), target));
        match existing {
            Some(existing) if *existing == verdict => {
                imported.unchanged += 1;
                continue;
            }
            Some(existing) if others == OtherVerdicts::Keep => {
                let word: &'static str = existing.into();
                let reason = format!("{} already has another verdict ({word}), which was kept", row.name());
                imported.conflicts.push(RejectedRow { line, reason });
                continue;
            }
            _ => {}
        }
        images.existing.insert((sample.clone(), target), verdict.clone());
        let named = Some(unescaped(&row.reviewer).trim()).filter(|name| !name.is_empty());
        let reviewer = named.or(reviewer).map(str::to_owned);
        imported.changes.push(Change::SetVerdict { sample, target, verdict: Some(verdict), reviewer });
    }
    Ok(imported)
}

fn read_rows(file: impl Read, imported: &mut ImportedVerdicts) -> Result<Vec<Row>, VerdictCsvError> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(file);
    let header = reader.headers()?.clone();
    let position = |name: &str| {
        let is_named = |cell: &str| cell.trim_start_matches('\u{feff}').trim().eq_ignore_ascii_case(name);
        header.iter().position(is_named)
    };
    let required = |name: &'static str| position(name).ok_or(VerdictCsvError::NoColumn(name));
    // Without the boxes, their verdicts would be verdicts on images.
    let (image, _, verdict) = (required("image")?, required("box")?, required("verdict")?);
    let others = COLUMNS.map(position);
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = match record {
            Ok(record) => record,
            Err(error) if matches!(error.kind(), csv::ErrorKind::Utf8 { .. }) => {
                let line = error.position().map_or(0, csv::Position::line);
                imported.rejected.push(RejectedRow { line, reason: "is not UTF-8".to_owned() });
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let cell = |at: Option<usize>| at.and_then(|at| record.get(at)).unwrap_or_default().to_owned();
        let [_, box_index, _, right_class, x1, y1, x2, y2, reviewer] = others.map(cell);
        let row = Row {
            line: record.position().map_or(0, csv::Position::line),
            image: cell(Some(image)),
            box_index,
            verdict: cell(Some(verdict)),
            right_class,
            edges: [x1, y1, x2, y2],
            reviewer,
        };
        if row.verdict.trim().is_empty() {
            imported.without_verdict += 1;
        } else {
            rows.push(row);
        }
    }
    Ok(rows)
}

/// The text before [`escape_formula`].
fn unescaped(text: &str) -> &str {
    text.strip_prefix('\'').filter(|rest| escape_formula(rest) == text).unwrap_or(text)
}

/// The images that a file mentions, with their predictions and verdicts.
struct KnownImages {
    /// By name.
    samples: HashMap<String, SampleUri>,
    predictions: HashMap<SampleUri, Prediction>,
    existing: HashMap<(SampleUri, VerdictTarget), Verdict>,
}

impl KnownImages {
    fn read(project: &Project, run: &RunInfo, rows: &[Row]) -> Result<Self, StoreError> {
        let root = project.root();
        let named: HashSet<&str> = rows.iter().flat_map(|row| [row.image.as_str(), unescaped(&row.image)]).collect();
        let judgments = project.judgments()?;
        let stamps = project.stamps(run.id)?;
        let known: BTreeSet<&SampleUri> = stamps.keys().chain(judgments.iter().map(|judged| &judged.sample)).collect();
        let mut samples = HashMap::new();
        for sample in known {
            for name in [sample.name_below(root.as_deref()), sample.as_str().to_owned()] {
                if named.contains(name.as_str()) {
                    samples.insert(name, sample.clone());
                }
            }
        }
        let wanted: Vec<SampleUri> = samples.values().cloned().collect();
        let found = project.predictions(run.id, &wanted)?.into_iter().flatten();
        let predictions = found.filter_map(|found| Some((found.sample, found.result.ok()?))).collect();
        let mut existing = HashMap::new();
        for judged in judgments {
            let is_of_label = |target: &VerdictTarget| target.run.is_none() && target.box_index.is_some();
            let of_run = judged.verdicts.into_iter();
            let of_run = of_run.filter(|(target, _)| target.run == Some(run.id) || is_of_label(target));
            existing.extend(of_run.map(|(target, verdict)| ((judged.sample.clone(), target), verdict)));
        }
        Ok(Self { samples, predictions, existing })
    }

    /// The verdict of a row. An added box or wrong label gets the index of the same one in the project, otherwise the
    /// next free one.
    ///
    /// # Errors
    /// Why it cannot be used.
    fn verdict(&self, row: &Row, run: &RunInfo) -> Result<(SampleUri, VerdictTarget, Verdict), String> {
        let sample = self.samples.get(&row.image).or_else(|| self.samples.get(unescaped(&row.image)));
        let sample = sample.ok_or_else(|| format!("unknown image: {}", row.image))?;
        let prediction = self.predictions.get(sample);
        let boxes = prediction.map_or(&[][..], Prediction::detections);
        let box_index = match row.box_index.trim() {
            "" => None,
            text => Some(text.parse::<u32>().map_err(|_| format!("“{text}” is not a box index"))?),
        };
        let word = row.verdict.trim();
        let target = |box_index| VerdictTarget { run: Some(run.id), box_index };
        if ["added", "spurious"].contains(&word) {
            let size = prediction.filter(|prediction| prediction.classes().is_empty());
            let size = size.ok_or_else(|| format!("no detections are stored for {}", row.image))?;
            let drawn = row.drawn(None, [size.width, size.height])?;
            let (run, first, verdict) = match word {
                "added" => (Some(run.id), boxes.len() as u32, Verdict::Added(drawn)),
                _ => (None, 0, Verdict::Spurious(drawn)),
            };
            let mut key = (sample.clone(), VerdictTarget { run, box_index: Some(first) });
            while self.existing.get(&key).is_some_and(|existing| *existing != verdict) {
                key.1.box_index = key.1.box_index.map(|index| index + 1);
            }
            return Ok((key.0, key.1, verdict));
        }
        let found = match box_index {
            Some(index) => {
                let found = boxes.get(index as usize);
                Some(found.ok_or_else(|| format!("{} has {} boxes, and no box {index}", row.image, boxes.len()))?)
            }
            None => None,
        };
        let verdict = match (word, found, prediction) {
            ("accept", ..) => Verdict::Accept,
            ("reject", ..) => Verdict::Reject,
            ("unsure", ..) => Verdict::Unsure,
            ("wrong", ..) if row.right_class().is_empty() => return Err("wrong needs a right_class".to_owned()),
            ("wrong", Some(found), _) if found.label.eq_ignore_ascii_case(row.right_class()) => {
                return Err(format!("its class is {} already; use accept", found.label));
            }
            ("wrong", ..) => Verdict::WrongClass(row.right_class().to_owned()),
            ("moved", Some(found), Some(prediction)) => {
                Verdict::Moved(row.drawn(Some(&found.label), [prediction.width, prediction.height])?)
            }
            ("moved", ..) => return Err("moved needs a box".to_owned()),
            ("complete", None, _) => Verdict::Complete,
            ("complete", ..) => return Err("complete applies to an image, not to a box".to_owned()),
            _ => {
                return Err(format!(
                    "“{word}” is not a verdict (accept, reject, unsure, wrong, moved, added, complete or spurious)"
                ));
            }
        };
        Ok((sample.clone(), target(box_index), verdict))
    }
}

impl Row {
    /// “a.jpg” or “box 3 of a.jpg”.
    fn name(&self) -> String {
        match self.box_index.trim() {
            "" => self.image.clone(),
            index => format!("box {index} of {}", self.image),
        }
    }

    fn right_class(&self) -> &str {
        unescaped(&self.right_class).trim()
    }

    /// The drawn box, of `class` if the row names none.
    fn drawn(&self, class: Option<&str>, size: [u32; 2]) -> Result<DrawnBox, String> {
        let edge = |text: &String| text.trim().parse::<f32>().ok().filter(|edge| edge.is_finite());
        let [Some(x1), Some(y1), Some(x2), Some(y2)] = self.edges.each_ref().map(edge) else {
            return Err("x1, y1, x2 and y2 must be numbers, in pixels".to_owned());
        };
        let is_other =
            |given: &&str| !given.is_empty() && !class.is_some_and(|class| class.eq_ignore_ascii_case(given));
        let class = Some(self.right_class()).filter(is_other).or(class);
        let class = class.ok_or("an added box or a wrong label needs a right_class")?;
        DrawnBox::new(class, BoundingBox::new(x1, y1, x2, y2), size).ok_or_else(|| "the box has no area".to_owned())
    }
}

/// Writes the boxes and images that two people judged differently.
///
/// # Errors
/// The file exists or cannot be written.
pub fn export_conflicts<'p>(
    project: &Project,
    conflicts: impl IntoIterator<Item = &'p Pair>,
    target: &ExportTarget,
) -> Result<(), ExportError> {
    let sides = ["first", "second"];
    let columns = sides.map(|side| ["", "_right_class", "_reviewer"].map(|column| format!("{side}{column}")));
    let columns: Vec<String> =
        ["image".to_owned(), "box".to_owned()].into_iter().chain(columns.into_iter().flatten()).collect();
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut table = Table::create(target, &columns)?;
    let root = project.root();
    for pair in conflicts {
        let side = |(verdict, reviewer): (&Verdict, &Option<String>)| {
            let word: &'static str = verdict.into();
            let (class, reviewer) =
                (verdict.right_class().unwrap_or_default(), reviewer.as_deref().unwrap_or_default());
            [word.to_owned(), escape_formula(class), escape_formula(reviewer)]
        };
        let image = escape_formula(&pair.sample.name_below(root.as_deref()));
        let index = pair.box_index.map(|index| index.to_string()).unwrap_or_default();
        let cells = pair.verdicts.iter().zip(&pair.reviewers).flat_map(side);
        table.row(&[image, index].into_iter().chain(cells).collect::<Vec<_>>())?;
    }
    table.commit()
}
