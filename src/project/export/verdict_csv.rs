//! Verdicts as CSV: one row per verdict, for other tools and people, and back.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io::{self, BufRead, BufReader, Read, Write};

use super::csv_table::{Table, escape_formula, unescaped};
use super::{ExportError, ExportTarget};
use crate::annotations::rows::each_row;
use crate::domain::{
    BoundingBox, Change, DrawnBox, Pair, Prediction, RunId, RunInfo, SampleUri, Verdict, VerdictTarget,
    column_delimiter, counted,
};
use crate::project::{Project, StoreError};

/// The header. `box` is empty for a verdict on the image, and for a wrong label. The edges are those of a box that a
/// person drew, or of that label, in pixels of the upright image.
const COLUMNS: [&str; 9] = ["image", "box", "verdict", "right_class", "x1", "y1", "x2", "y2", "reviewer"];
/// Columns of a sample, which identify what was judged.
const SAMPLED: [&str; 2] = ["class", "score"];
/// The largest difference between a score in a sample and the run's, for scores rounded to two decimals.
const SAME_SCORE: f32 = 0.006;

/// Writes the verdicts on a run, and on images without a run, and returns their number.
///
/// # Errors
/// The project cannot be read, or the file exists or cannot be written.
pub fn export_verdicts(project: &Project, run: RunId, target: &ExportTarget) -> Result<usize, ExportError> {
    let mut table = Table::create(target, &COLUMNS)?;
    let count = write_verdicts(&mut table, project, run)?;
    table.commit()?;
    Ok(count)
}

/// What [`export_verdicts`] writes.
///
/// # Errors
/// The project cannot be read.
pub fn verdicts_as_csv(project: &Project, run: RunId) -> Result<(Vec<u8>, usize), ExportError> {
    let mut table = Table::in_memory(&COLUMNS)?;
    let count = write_verdicts(&mut table, project, run)?;
    Ok((table.into_inner()?, count))
}

fn write_verdicts(table: &mut Table<impl Write>, project: &Project, run: RunId) -> Result<usize, ExportError> {
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
            let [x1, y1, x2, y2] = drawn_edges(&verdict);
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
    Ok(count)
}

/// The edges of the drawn box of a verdict; empty without one.
fn drawn_edges(verdict: &Verdict) -> [String; 4] {
    let edges = verdict.drawn().map(|drawn| <[f32; 4]>::from(drawn.bounds()).map(|edge| edge.to_string()));
    edges.unwrap_or_default()
}

/// What the rows of a file change.
#[derive(Debug, Default)]
pub struct ImportedVerdicts {
    /// One per row.
    pub changes: Vec<Change>,
    /// Removes added boxes, after these changes.
    pub removals: Vec<Change>,
    /// The number of added boxes that are removed.
    pub removed: usize,
    /// Rows whose verdict the project already has.
    pub unchanged: usize,
    /// Rows of a sample that nobody has judged yet.
    pub without_verdict: usize,
    /// Classes of imported rows that the run and its earlier verdicts do not have.
    pub new_classes: BTreeSet<String>,
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
    #[error("line 1 must name the columns, but it {0}")]
    Header(String),
    #[error("could not read the file: {0}")]
    Read(#[from] io::Error),
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
    /// The model's, in a sample; otherwise empty.
    class: String,
    score: String,
}

/// Compares the verdicts in a CSV file, separated by commas, semicolons or tabs, with a run. Columns can have any
/// order; unknown ones are ignored. `reviewer` is that of rows without one.
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
    let mut reviewers = project.reviewers(run.id)?;
    let mut given = project.given_classes(run.id)?;
    let mut seen = Seen::new();
    let mut removed = BTreeMap::<SampleUri, BTreeSet<u32>>::new();
    for mut row in rows {
        let line = row.line;
        // Ground truth has classes of its own.
        if row.verdict.trim() != "spurious" {
            let known = given.iter().map(String::as_str);
            row.right_class = run.labels.known_class(&row.right_class, known).to_owned();
        }
        let (sample, target, verdict) = match images.verdict(&row, run) {
            Ok(found) => found,
            Err(reason) => {
                imported.rejected.push(RejectedRow { line, reason });
                continue;
            }
        };
        let key = (sample.clone(), target);
        if !images.takes(&key, verdict.as_ref(), &row, others, &mut seen, &mut imported) {
            continue;
        }
        let Some(verdict) = verdict else {
            removed.entry(sample).or_default().extend(target.box_index);
            continue;
        };
        if let Some(class) = new_class(&verdict, run, &given).map(str::to_owned) {
            given.push(class.clone());
            imported.new_classes.insert(class);
        }
        images.existing.insert(key, verdict.clone());
        let named = Some(unescaped(&row.reviewer).trim()).filter(|name| !name.is_empty());
        let reviewer = named.or(reviewer).map(str::to_owned);
        match &reviewer {
            Some(name) => drop(reviewers.insert((sample.clone(), target), name.clone())),
            None => drop(reviewers.remove(&(sample.clone(), target))),
        }
        imported.changes.push(Change::SetVerdict { sample, target, verdict: Some(verdict), reviewer });
    }
    for (sample, indices) in &removed {
        let changes = images.removal(sample, indices, run.id, &reviewers);
        imported.removed += indices.len();
        imported.removals.extend(changes);
    }
    Ok(imported)
}

/// The class of a verdict that neither the run nor an earlier verdict has. Ground truth has classes of its own.
fn new_class<'v>(verdict: &'v Verdict, run: &RunInfo, given: &[String]) -> Option<&'v str> {
    let class = verdict.right_class().filter(|_| !matches!(verdict, Verdict::Spurious(_)))?;
    (run.labels.find(class).is_none() && !given.iter().any(|known| known == class)).then_some(class)
}

fn read_rows(file: impl Read, imported: &mut ImportedVerdicts) -> Result<Vec<Row>, VerdictCsvError> {
    let mut file = BufReader::new(file);
    let start = file.fill_buf()?.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let delimiter = column_delimiter(&String::from_utf8_lossy(start));
    let mut header: Option<Result<Header, VerdictCsvError>> = None;
    let mut rows = Vec::new();
    each_row(file, delimiter, |line, cells| {
        let Some(header) = &header else {
            header = Some(Header::read(cells));
            return;
        };
        let Ok(header) = header else { return };
        match cells {
            Err(reason) => imported.rejected.push(RejectedRow { line, reason: reason.to_owned() }),
            Ok(cells) => {
                let row = header.row(line, cells);
                if row.verdict.trim().is_empty() {
                    imported.without_verdict += 1;
                } else {
                    rows.push(row);
                }
            }
        }
    })?;
    header.unwrap_or(Err(VerdictCsvError::NoColumn("image")))?;
    Ok(rows)
}

/// The positions of the columns.
struct Header {
    columns: [Option<usize>; COLUMNS.len()],
    sampled: [Option<usize>; SAMPLED.len()],
}

impl Header {
    fn read(cells: Result<&[Cow<'_, str>], &str>) -> Result<Self, VerdictCsvError> {
        let cells = cells.map_err(|reason| VerdictCsvError::Header(reason.to_owned()))?;
        let positions = |name: &'static str| {
            let is_column = move |(_, cell): &(usize, &Cow<'_, str>)| cell.trim().eq_ignore_ascii_case(name);
            cells.iter().enumerate().filter(is_column).map(|(at, _)| at)
        };
        let position = |name: &'static str| positions(name).next();
        if let Some(twice) = COLUMNS.into_iter().chain(SAMPLED).find(|name| positions(name).nth(1).is_some()) {
            return Err(VerdictCsvError::Header(format!("names “{twice}” twice")));
        }
        // Without the boxes, their verdicts would be verdicts on images.
        if let Some(missing) = COLUMNS[..3].iter().find(|name| position(name).is_none()) {
            return Err(VerdictCsvError::NoColumn(missing));
        }
        Ok(Self { columns: COLUMNS.map(position), sampled: SAMPLED.map(position) })
    }

    fn row(&self, line: u64, cells: &[Cow<'_, str>]) -> Row {
        let cell = |at: Option<usize>| at.and_then(|at| cells.get(at)).map(ToString::to_string).unwrap_or_default();
        let [image, box_index, verdict, right_class, x1, y1, x2, y2, reviewer] = self.columns.map(cell);
        let [class, score] = self.sampled.map(cell);
        let right_class = unescaped(&right_class).to_owned();
        Row { line, image, box_index, verdict, right_class, edges: [x1, y1, x2, y2], reviewer, class, score }
    }
}

/// With a decimal point or comma.
fn number(text: &str) -> Option<f32> {
    text.trim().replace(',', ".").parse().ok().filter(|number: &f32| number.is_finite())
}

/// Why a verdict in the file changes nothing.
enum Kept {
    /// The project has it already, or one that implies it.
    Same,
    /// The project has this one.
    Other(&'static str),
}

fn implies(verdict: Option<&Verdict>, other: Option<&Verdict>) -> bool {
    verdict.zip(other).is_some_and(|(verdict, other)| verdict.implies(other))
}

/// The rows so far: their verdict and line.
type Seen = HashMap<(SampleUri, VerdictTarget), (Option<Verdict>, u64)>;

/// The images that a file mentions, with their predictions and verdicts.
struct KnownImages {
    /// By name.
    samples: HashMap<String, SampleUri>,
    predictions: HashMap<SampleUri, Prediction>,
    /// Of images that only other runs have predictions of, if a row is about a label.
    sizes: HashMap<SampleUri, [u32; 2]>,
    existing: HashMap<(SampleUri, VerdictTarget), Verdict>,
}

impl KnownImages {
    /// Whether a row changes something; otherwise `imported` says why it does not.
    fn takes(
        &self,
        key: &(SampleUri, VerdictTarget),
        verdict: Option<&Verdict>,
        row: &Row,
        others: OtherVerdicts,
        seen: &mut Seen,
        imported: &mut ImportedVerdicts,
    ) -> bool {
        let line = row.line;
        match seen.get(key) {
            Some((earlier, _)) if implies(earlier.as_ref(), verdict) => {
                imported.unchanged += 1;
                return false;
            }
            Some((earlier, other)) if !implies(verdict, earlier.as_ref()) => {
                imported.rejected.push(RejectedRow { line, reason: format!("line {other} already judges this") });
                return false;
            }
            _ => drop(seen.insert(key.clone(), (verdict.cloned(), line))),
        }
        match self.keeps(key, verdict, others) {
            Some(Kept::Same) => imported.unchanged += 1,
            Some(Kept::Other(word)) => {
                let reason = format!("{} already has another verdict ({word}), which was kept", row.name());
                imported.conflicts.push(RejectedRow { line, reason });
            }
            None => return true,
        }
        false
    }

    fn read(project: &Project, run: &RunInfo, rows: &[Row]) -> Result<Self, StoreError> {
        let root = project.root();
        let named: HashSet<&str> = rows.iter().flat_map(|row| [row.image.as_str(), unescaped(&row.image)]).collect();
        let judgments = project.judgments()?;
        let mut known: BTreeSet<SampleUri> = judgments.iter().map(|judged| judged.sample.clone()).collect();
        let runs = project.runs()?;
        for of_project in &runs {
            known.extend(project.stamps(of_project.id)?.into_keys());
        }
        let mut samples = HashMap::new();
        for sample in &known {
            for name in [sample.name_below(root.as_deref()), sample.as_str().to_owned()] {
                if named.contains(name.as_str()) {
                    samples.insert(name, sample.clone());
                }
            }
        }
        let wanted: Vec<SampleUri> = samples.values().cloned().collect();
        let found = project.predictions(run.id, &wanted)?.into_iter().flatten();
        let predictions: HashMap<SampleUri, Prediction> =
            found.filter_map(|found| Some((found.sample, found.result.ok()?))).collect();
        let mut sizes = HashMap::new();
        if rows.iter().any(|row| row.verdict.trim() == "spurious") {
            let others: Vec<SampleUri> =
                wanted.into_iter().filter(|sample| !predictions.contains_key(sample)).collect();
            for of_project in &runs {
                let found = project.predictions(of_project.id, &others)?.into_iter().flatten();
                let size = |prediction: Prediction| [prediction.width, prediction.height];
                sizes.extend(found.filter_map(|found| Some((found.sample, size(found.result.ok()?)))));
            }
        }
        let mut existing = HashMap::new();
        for judged in judgments {
            let is_of_label = |target: &VerdictTarget| target.run.is_none() && target.box_index.is_some();
            let of_run = judged.verdicts.into_iter();
            let of_run = of_run.filter(|(target, _)| target.run == Some(run.id) || is_of_label(target));
            existing.extend(of_run.map(|(target, verdict)| ((judged.sample.clone(), target), verdict)));
        }
        Ok(Self { samples, predictions, sizes, existing })
    }

    /// Whether the project keeps what it has instead of a verdict in the file; `None` if it does not.
    fn keeps(
        &self,
        key: &(SampleUri, VerdictTarget),
        verdict: Option<&Verdict>,
        others: OtherVerdicts,
    ) -> Option<Kept> {
        let existing = self.existing.get(key)?;
        if Some(existing) == verdict {
            return Some(Kept::Same);
        }
        if others == OtherVerdicts::Replace || implies(verdict, Some(existing)) {
            return None;
        }
        Some(if implies(Some(existing), verdict) { Kept::Same } else { Kept::Other(existing.into()) })
    }

    /// The changes that remove added boxes of an image: those after them take their indices.
    fn removal(
        &self,
        sample: &SampleUri,
        indices: &BTreeSet<u32>,
        run: RunId,
        reviewers: &HashMap<(SampleUri, VerdictTarget), String>,
    ) -> Vec<Change> {
        let added =
            self.existing.iter().filter(|((of, _), verdict)| of == sample && matches!(verdict, Verdict::Added(_)));
        let added: BTreeMap<u32, &Verdict> =
            added.filter_map(|((_, target), verdict)| Some((target.box_index?, verdict))).collect();
        let target = |index: &u32| VerdictTarget { run: Some(run), box_index: Some(*index) };
        let kept = added.iter().filter(|(index, _)| !indices.contains(index));
        let mut kept = kept.map(|(index, verdict)| {
            let reviewer = reviewers.get(&(sample.clone(), target(index))).cloned();
            (Some((*verdict).clone()), reviewer)
        });
        let set = |index: &u32| {
            let (verdict, reviewer) = kept.next().unwrap_or_default();
            Change::SetVerdict { sample: sample.clone(), target: target(index), verdict, reviewer }
        };
        added.keys().map(set).collect()
    }

    /// The verdict of a row that adds a box, or changes the one at `target`.
    fn added(
        &self,
        row: &Row,
        run: &RunInfo,
        sample: &SampleUri,
        target: Option<VerdictTarget>,
    ) -> Result<(SampleUri, VerdictTarget, Option<Verdict>), String> {
        let prediction = self.predictions.get(sample).filter(|prediction| prediction.classes().is_empty());
        let prediction = prediction.ok_or_else(|| format!("no detections are stored for {}", row.image))?;
        let verdict = Verdict::Added(row.drawn(None, [prediction.width, prediction.height])?);
        let first = prediction.detections().len() as u32;
        let target = target.unwrap_or_else(|| self.free_target(sample, Some(run.id), first, &verdict));
        Ok((sample.clone(), target, Some(verdict)))
    }

    /// The verdict of a row about a wrong label.
    fn spurious(&self, row: &Row, sample: &SampleUri) -> Result<(SampleUri, VerdictTarget, Option<Verdict>), String> {
        // Labels belong to no run: the image need not have a prediction of this one, or of any.
        let size = self.predictions.get(sample).map(|prediction| [prediction.width, prediction.height]);
        let size = size.or_else(|| self.sizes.get(sample).copied()).unwrap_or([u32::MAX; 2]);
        let verdict = Verdict::Spurious(row.drawn(None, size)?);
        let target = self.free_target(sample, None, 0, &verdict);
        Ok((sample.clone(), target, Some(verdict)))
    }

    /// The first target from the box index `first` on that has this verdict or none.
    fn free_target(&self, sample: &SampleUri, run: Option<RunId>, first: u32, verdict: &Verdict) -> VerdictTarget {
        let mut key = (sample.clone(), VerdictTarget { run, box_index: Some(first) });
        while self.existing.get(&key).is_some_and(|existing| existing != verdict) {
            key.1.box_index = key.1.box_index.map(|index| index + 1);
        }
        key.1
    }

    /// The verdict of a row; `None` removes an added box. A new one, or a wrong label, gets the next free index, unless
    /// the project has the same one.
    ///
    /// # Errors
    /// Why it cannot be used.
    fn verdict(&self, row: &Row, run: &RunInfo) -> Result<(SampleUri, VerdictTarget, Option<Verdict>), String> {
        let sample = self.samples.get(unescaped(&row.image)).or_else(|| self.samples.get(&row.image));
        let sample = sample.ok_or_else(|| format!("unknown image: {}", row.image))?;
        let prediction = self.predictions.get(sample);
        let boxes = prediction.map_or(&[][..], Prediction::detections);
        let box_index = match row.box_index.trim() {
            "" => None,
            text => Some(text.parse::<u32>().map_err(|_| format!("“{text}” is not a box index"))?),
        };
        let word = row.verdict.trim();
        let target = |box_index| VerdictTarget { run: Some(run.id), box_index };
        let is_added = |index: &u32| {
            let of_index = self.existing.get(&(sample.clone(), target(Some(*index))));
            matches!(of_index, Some(Verdict::Added(_)))
        };
        let added_index = box_index.filter(is_added);
        match word {
            "added" => {
                let target = added_index.map(|index| target(Some(index)));
                return self.added(row, run, sample, target);
            }
            "spurious" if box_index.is_some() => {
                return Err("spurious applies to a label, not to a box of the run; leave the box empty".to_owned());
            }
            "spurious" => return self.spurious(row, sample),
            _ => {}
        }
        match (added_index, word) {
            (Some(_), "reject") => return Ok((sample.clone(), target(added_index), None)),
            (Some(index), _) => {
                return Err(format!("a person added box {index}; use added to change it, or reject to remove it"));
            }
            (None, _) => {}
        }
        let found = match box_index {
            Some(index) => {
                let found = boxes.get(index as usize);
                let count = || counted(boxes.len(), "box", "boxes");
                Some(found.ok_or_else(|| format!("{} has {}, and no box {index}", row.image, count()))?)
            }
            None => None,
        };
        let top = || prediction.and_then(|prediction| prediction.classes().first());
        let judged =
            found.map(|found| (found.class_id, found.score)).or_else(|| top().map(|top| (top.index, top.score)));
        row.check_sampled(judged.map(|(class, score)| (run.labels.name(class), score)))?;
        let verdict = match (word, found, prediction) {
            ("accept", ..) => Verdict::Accept,
            ("reject", ..) => Verdict::Reject,
            ("unsure", ..) => Verdict::Unsure,
            ("wrong", ..) if row.right_class.is_empty() => return Err("wrong needs a right_class".to_owned()),
            ("wrong", Some(found), _) if found.label == row.right_class => {
                return Err(format!("its class is {} already; use accept", found.label));
            }
            ("wrong", ..) => Verdict::WrongClass(row.right_class.clone()),
            ("moved", Some(found), Some(prediction)) => {
                Verdict::Moved(row.drawn(Some(&found.label), [prediction.width, prediction.height])?)
            }
            ("moved", ..) => return Err("moved needs a box".to_owned()),
            ("complete", None, _) => Verdict::Complete,
            ("returned", None, _) => Verdict::Returned,
            ("complete" | "returned", ..) => return Err(format!("{word} applies to an image, not to a box")),
            _ => {
                return Err(format!(
                    "“{word}” is not a verdict (accept, reject, unsure, wrong, moved, added, complete, returned or \
                     spurious)"
                ));
            }
        };
        Ok((sample.clone(), target(box_index), Some(verdict)))
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

    /// Compares the class and score of a sample with the run's.
    ///
    /// # Errors
    /// The sample is of another run.
    fn check_sampled(&self, judged: Option<(String, f32)>) -> Result<(), String> {
        let class = unescaped(&self.class);
        let Some((name, score)) = judged.filter(|_| !class.is_empty()) else {
            return Ok(());
        };
        let is_same = number(&self.score).is_none_or(|other| (other - score).abs() <= SAME_SCORE);
        if class == name && is_same {
            return Ok(());
        }
        Err(format!(
            "the run predicts {name} with score {score:.2} here, not {class} with score {}: the sample is of another \
             run, which --run can name",
            self.score.trim()
        ))
    }

    /// The drawn box, of `class` if the row names none.
    fn drawn(&self, class: Option<&str>, size: [u32; 2]) -> Result<DrawnBox, String> {
        let [Some(x1), Some(y1), Some(x2), Some(y2)] = self.edges.each_ref().map(|edge| number(edge)) else {
            return Err("x1, y1, x2 and y2 must be numbers, in pixels".to_owned());
        };
        let class = Some(&*self.right_class).filter(|given| !given.is_empty()).or(class);
        let class = class.ok_or("an added box or a wrong label needs a right_class")?;
        DrawnBox::new(class, BoundingBox::new(x1, y1, x2, y2), size)
            .ok_or_else(|| "the box has no area in the image".to_owned())
    }
}

/// A CSV file with what two people judged differently. It appears under its name when it is committed.
pub struct ConflictCsv(Table);

impl ConflictCsv {
    /// # Errors
    /// The file exists or cannot be written.
    pub fn create<'p>(
        project: &Project,
        conflicts: impl IntoIterator<Item = &'p Pair>,
        target: &ExportTarget,
    ) -> Result<Self, ExportError> {
        let sides = ["first", "second"];
        let names = ["", "_right_class", "_x1", "_y1", "_x2", "_y2", "_reviewer"];
        let columns = sides.map(|side| names.map(|column| format!("{side}{column}")));
        let columns: Vec<String> =
            ["image".to_owned(), "box".to_owned()].into_iter().chain(columns.into_iter().flatten()).collect();
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        let mut table = Table::create(target, &columns)?;
        let root = project.root();
        for pair in conflicts {
            let side = |(verdict, reviewer): (&Verdict, &Option<String>)| {
                let word: &'static str = verdict.into();
                let class = escape_formula(verdict.right_class().unwrap_or_default());
                let [x1, y1, x2, y2] = drawn_edges(verdict);
                let reviewer = escape_formula(reviewer.as_deref().unwrap_or_default());
                [word.to_owned(), class, x1, y1, x2, y2, reviewer]
            };
            let image = escape_formula(&pair.sample.name_below(root.as_deref()));
            let index = pair.box_index.map(|index| index.to_string()).unwrap_or_default();
            let cells = pair.verdicts.iter().zip(&pair.reviewers).flat_map(side);
            table.row(&[image, index].into_iter().chain(cells).collect::<Vec<_>>())?;
        }
        Ok(Self(table))
    }

    /// # Errors
    /// The file cannot be written.
    pub fn commit(self) -> Result<(), ExportError> {
        self.0.commit()
    }
}
