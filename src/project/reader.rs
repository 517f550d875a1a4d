//! Reads a project while it is written: every read has its own connection, and sees what is committed.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params};

use super::Project;
use super::columns::{Columns, Kind, SampleSummary, Summary, f32_column, u32_column};
use super::error::StoreError;
use super::files::ProjectFile;
use super::names::{StoredName, from_stored, to_stored};
use super::writer::{given_classes_name, run_number};
use crate::domain::{
    DrawnBox, FileStamp, JudgedSample, LabelSet, Prediction, RunId, RunInfo, S3Place, SamplePrediction, SampleUri,
    Verdict, VerdictTarget, ViewSettings,
};
use crate::tasks::TaskControl;

/// The number of connections that are kept for later reads.
const MAX_CONNECTIONS: usize = 4;
/// The number of samples per batch when a whole run is read.
const BATCH_LEN: usize = 1000;

pub(super) struct Readers {
    file: Arc<ProjectFile>,
    /// The writer's connection, for a project in memory, which exists only there.
    memory: Option<Arc<Mutex<Connection>>>,
    idle: Mutex<Vec<Idle>>,
    /// The label sets of runs that were read; `None` for runs that were added while the project is open, which are read
    /// each time.
    labels: Mutex<HashMap<RunId, Option<Arc<LabelSet>>>>,
}

/// A connection that waits for the next read, and the file that it reads.
struct Idle {
    path: PathBuf,
    connection: Connection,
}

type ReadResult<T> = Result<T, StoreError>;

impl Readers {
    pub(super) fn new(file: Arc<ProjectFile>, memory: Option<Arc<Mutex<Connection>>>) -> Self {
        Self { file, memory, idle: Mutex::default(), labels: Mutex::default() }
    }

    /// Reads with a connection that no other reader uses meanwhile.
    pub(super) fn read<T>(
        &self,
        what: &'static str,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> ReadResult<T> {
        let failed = StoreError::database(what);
        let Some(path) = self.file.path() else {
            let memory = self.memory.as_ref().expect("a project without a file lives in memory");
            let connection = memory.lock();
            return read(&connection).map_err(failed);
        };
        let idle = {
            let mut idle = self.idle.lock();
            let index = idle.iter().position(|idle| idle.path == path);
            index.map(|index| idle.swap_remove(index).connection)
        };
        let connection = match idle {
            Some(connection) => connection,
            None => match open_reader(&path) {
                Ok(connection) => connection,
                Err(error) => return Err(failed(error)),
            },
        };
        let result = read(&connection).map_err(failed);
        let is_current = self.file.path().as_ref() == Some(&path);
        let mut idle = self.idle.lock();
        if is_current && idle.len() < MAX_CONNECTIONS {
            idle.push(Idle { path, connection });
        }
        result
    }

    /// The label set of a run changes from now on.
    pub(super) fn forget_labels(&self, run: RunId) {
        self.labels.lock().insert(run, None);
    }

    /// Closes the connections, because the project has moved.
    pub(super) fn forget_connections(&self) {
        self.idle.lock().clear();
    }

    fn labels_of(&self, run: RunId) -> ReadResult<Arc<LabelSet>> {
        let known = self.labels.lock().get(&run).cloned();
        if let Some(Some(labels)) = known {
            return Ok(labels);
        }
        let read = self.read("read the classes of a run", |connection| {
            let sql = "SELECT labels FROM runs WHERE id = ?1";
            let labels = |row: &Row<'_>| labels_of_row(row, 0);
            connection.query_row(sql, [run_number(run)], labels).optional()
        })?;
        // A missing run has no predictions either, and may be added at any time.
        let Some(labels) = read.map(Arc::new) else {
            return Ok(Arc::default());
        };
        self.labels.lock().entry(run).or_insert_with(|| Some(Arc::clone(&labels)));
        Ok(labels)
    }
}

impl Project {
    /// All runs, oldest first.
    pub fn runs(&self) -> ReadResult<Vec<RunInfo>> {
        self.0.readers.read("read the runs of the project", |connection| {
            let sql = "SELECT id, name, run_key, card, labels, created_ms FROM runs ORDER BY id";
            connection.prepare(sql)?.query_map([], run_of_row)?.collect()
        })
    }

    pub fn prediction_counts(&self, run: RunId) -> ReadResult<PredictionCounts> {
        self.0.readers.read("count the predictions of a run", |connection| {
            let sql = "SELECT count(*), coalesce(sum(kind = 0), 0) FROM answers WHERE run = ?1";
            connection.query_row(sql, [run_number(run)], |row| {
                let (all, failed): (i64, i64) = (row.get(0)?, row.get(1)?);
                Ok(PredictionCounts { predicted: (all - failed) as usize, failed: failed as usize })
            })
        })
    }

    /// A run's prediction for one sample; `None` if there is none, or it is not saved yet.
    pub fn prediction(&self, run: RunId, sample: &SampleUri) -> Result<Option<Result<Prediction, String>>, StoreError> {
        let predictions = self.predictions(run, std::slice::from_ref(sample))?;
        Ok(predictions.into_iter().flatten().next().map(|prediction| prediction.result))
    }

    /// One entry per sample, in order.
    pub fn predictions(&self, run: RunId, samples: &[SampleUri]) -> ReadResult<Vec<Option<SamplePrediction>>> {
        let labels = self.0.readers.labels_of(run)?;
        let root = self.root();
        self.0.readers.read("read the predictions of a run", |connection| {
            let sql = format!("{PREDICTIONS} WHERE samples.name = ?2 AND samples.is_below_root = ?3");
            let mut statement = connection.prepare(&sql)?;
            let one = |sample: &SampleUri| {
                let StoredName { is_below_root, name } = to_stored(root.as_deref(), sample);
                let key = params![run_number(run), name, is_below_root];
                let prediction = |row: &Row<'_>| prediction_of_row(row, root.as_deref(), &labels);
                statement.query_row(key, |row| Ok(prediction(row))).optional()?.transpose()
            };
            samples.iter().map(one).collect()
        })
    }

    /// All predictions of a run, in batches, in the order in which their samples were added. Reports progress and can
    /// be canceled between batches; what is saved meanwhile may or may not be included.
    pub fn each_prediction(
        &self,
        run: RunId,
        control: &TaskControl,
        mut visit: impl FnMut(Vec<SamplePrediction>),
    ) -> ReadResult<()> {
        let labels = self.0.readers.labels_of(run)?;
        let page = format!("{PREDICTIONS} WHERE answers.sample > ?2 ORDER BY answers.sample LIMIT {BATCH_LEN}");
        self.each_page(run, &page, control, &mut visit, &|row, root| prediction_of_row(row, root, &labels))
    }

    /// As [`Project::each_prediction`], without boxes and labels, which takes a third of the time.
    pub fn each_summary(
        &self,
        run: RunId,
        control: &TaskControl,
        mut visit: impl FnMut(Vec<SampleSummary>),
    ) -> ReadResult<()> {
        let page = format!("{SUMMARIES} WHERE run = ?1 AND sample > ?2 ORDER BY sample LIMIT {BATCH_LEN}");
        self.each_page(run, &page, control, &mut visit, &summary_of_row)
    }

    /// Reads all rows of a run in pages, so that neither memory nor the duration of a snapshot grows with the run.
    fn each_page<T>(
        &self,
        run: RunId,
        sql: &str,
        control: &TaskControl,
        visit: &mut dyn FnMut(Vec<T>),
        of_row: &dyn Fn(&Row<'_>, Option<&str>) -> rusqlite::Result<T>,
    ) -> ReadResult<()> {
        let counts = self.prediction_counts(run)?;
        control.set_total(Some((counts.predicted + counts.failed) as u64));
        let root = self.root();
        let mut last_sample: i64 = 0;
        loop {
            control.checkpoint()?;
            let after = last_sample;
            let page: Vec<T> = self.0.readers.read("read the predictions of a run", |connection| {
                let mut statement = connection.prepare(sql)?;
                let rows = statement.query_map(params![run_number(run), after], |row| {
                    last_sample = row.get("sample")?;
                    of_row(row, root.as_deref())
                })?;
                rows.collect()
            })?;
            let len = page.len();
            if len > 0 {
                visit(page);
                control.add_done(len as u64);
            }
            if len < BATCH_LEN {
                return Ok(());
            }
        }
    }

    /// The images that a run has predictions for, with the version of each file, for resuming the run.
    pub fn stamps(&self, run: RunId) -> ReadResult<HashMap<SampleUri, StoredStamp>> {
        let root = self.root();
        self.0.readers.read("read which images have a prediction", |connection| {
            let sql = "SELECT name, is_below_root, kind, size_bytes, modified_ns, etag FROM answers
                       JOIN samples ON samples.id = answers.sample WHERE run = ?1";
            let stamp = |row: &Row<'_>| {
                let size_bytes: Option<i64> = row.get("size_bytes")?;
                let stamp = size_bytes.map(|size_bytes| stamp_of(size_bytes, row)).transpose()?;
                let is_failure = row.get::<_, i64>("kind")? == Kind::Failure as i64;
                Ok((sample_of_row(row, root.as_deref())?, StoredStamp { stamp, is_failure }))
            };
            connection.prepare(sql)?.query_map([run_number(run)], stamp)?.collect()
        })
    }

    /// All verdicts, notes and tags, in the order in which the samples were added; tags alphabetically.
    pub fn judgments(&self) -> ReadResult<Vec<JudgedSample>> {
        self.0.readers.read("read the verdicts, notes and tags", |connection| {
            let mut judged: BTreeMap<i64, JudgedSample> = BTreeMap::new();
            let root = self.root();
            type Add<'a> = &'a dyn Fn(&Row<'_>, &mut JudgedSample) -> rusqlite::Result<()>;
            let mut each = |columns: &str, table: &str, order: &str, add: Add<'_>| {
                let sql = format!(
                    "SELECT sample, name, is_below_root, {columns} FROM {table} JOIN samples ON samples.id = sample \
                    ORDER BY {order}"
                );
                let mut statement = connection.prepare(&sql)?;
                let mut rows = statement.query([])?;
                while let Some(row) = rows.next()? {
                    let of_sample = match judged.entry(row.get("sample")?) {
                        Entry::Occupied(entry) => entry.into_mut(),
                        Entry::Vacant(entry) => entry.insert(JudgedSample {
                            sample: sample_of_row(row, root.as_deref())?,
                            verdicts: Vec::new(),
                            note: String::new(),
                            tags: Vec::new(),
                        }),
                    };
                    add(row, of_sample)?;
                }
                Ok::<(), rusqlite::Error>(())
            };
            each("run, box, verdict, right_class, bounds", "verdicts", "sample, run, box", &|row, judged| {
                judged.verdicts.push(verdict_of_row(row)?);
                Ok(())
            })?;
            each("text", "notes", "sample", &|row, judged| {
                judged.note = row.get("text")?;
                Ok(())
            })?;
            each("tag", "tags", "sample, tag", &|row, judged| {
                judged.tags.push(row.get("tag")?);
                Ok(())
            })?;
            Ok(judged.into_values().collect())
        })
    }

    /// Who gave the verdicts on a run, as far as is known.
    pub fn reviewers(&self, run: RunId) -> ReadResult<HashMap<(SampleUri, VerdictTarget), String>> {
        self.0.readers.read("read the reviewers", |connection| {
            let root = self.root();
            let sql = "SELECT name, is_below_root, run, box, verdict, right_class, bounds, reviewer FROM verdicts
                       JOIN samples ON samples.id = sample WHERE run IN (0, ?1) AND reviewer IS NOT NULL";
            let reviewer = |row: &Row<'_>| {
                let (target, _) = verdict_of_row(row)?;
                Ok(((sample_of_row(row, root.as_deref())?, target), row.get("reviewer")?))
            };
            connection.prepare(sql)?.query_map([run_number(run)], reviewer)?.collect()
        })
    }

    /// The S3 location of the images and how to access it; `None` for a folder.
    pub fn place(&self) -> ReadResult<Option<S3Place>> {
        self.0.readers.read("read the image folder", |connection| {
            let sql = "SELECT value FROM facts WHERE name = ?1";
            connection.query_row(sql, [super::PLACE], |row| json_of_row(row, 0)).optional()
        })
    }

    /// View settings by name, as JSON.
    pub fn views(&self) -> ReadResult<BTreeMap<String, String>> {
        self.0.readers.read("read the view settings of the project", |connection| {
            let pair = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
            connection.prepare("SELECT name, json FROM views")?.query_map([], pair)?.collect()
        })
    }

    /// The last view settings for a run's model, and a note if they are unreadable and replaced by the defaults.
    pub fn view_of_run(&self, run: &RunInfo) -> ReadResult<(ViewSettings, Option<String>)> {
        let default = || ViewSettings::from_card(&run.card);
        let json = self.views()?.remove(&ViewSettings::name_in_project(&run.key.model_id));
        Ok(match json.map(|json| serde_json::from_str(&json)) {
            None => (default(), None),
            Some(Ok(view)) => (view, None),
            Some(Err(error)) => {
                let note = format!("could not read the view settings of the project ({error}); using the defaults");
                (default(), Some(note))
            }
        })
    }

    /// The classes that verdicts on a run have named, in the order of their first use, even if they were cleared since.
    /// Those of verdicts from earlier versions may be missing.
    pub fn given_classes(&self, run: RunId) -> ReadResult<Vec<String>> {
        self.0.readers.read("read the classes of the verdicts", |connection| {
            let sql = "SELECT json FROM views WHERE name = ?1";
            let found = connection.query_row(sql, [given_classes_name(run)], |row| json_of_row(row, 0)).optional()?;
            Ok(found.unwrap_or_default())
        })
    }
}

/// The number of a run's predicted images, and of its failed ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PredictionCounts {
    pub predicted: usize,
    pub failed: usize,
}

/// What is known about a prediction without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredStamp {
    /// `None` in files of the first version, which did not record it.
    pub stamp: Option<FileStamp>,
    pub is_failure: bool,
}

const SUMMARIES: &str = "
    SELECT answers.sample AS sample, name, is_below_root, kind, width, height, classes, scores, failure, warnings
    FROM answers
    JOIN samples ON samples.id = answers.sample";

const PREDICTIONS: &str = "
    SELECT answers.sample AS sample, name, is_below_root, kind, width, height, classes, scores, failure, warnings,
        size_bytes, modified_ns, etag, bounds, runners_up
    FROM answers
    JOIN samples ON samples.id = answers.sample AND answers.run = ?1
    LEFT JOIN boxes ON boxes.run = answers.run AND boxes.sample = answers.sample";

/// A connection that never changes the file.
pub(super) fn open_reader(path: &std::path::Path) -> rusqlite::Result<Connection> {
    // Writable for the file system: the last connection to close cleans up after a killed program.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(super::BUSY_TIMEOUT)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

fn sample_of_row(row: &Row<'_>, root: Option<&str>) -> rusqlite::Result<SampleUri> {
    let stored = StoredName { is_below_root: row.get("is_below_root")?, name: row.get("name")? };
    Ok(from_stored(root, &stored))
}

fn run_of_row(row: &Row<'_>) -> rusqlite::Result<RunInfo> {
    Ok(RunInfo {
        id: RunId(row.get::<_, i64>(0)? as u64),
        name: row.get(1)?,
        key: json_of_row(row, 2)?,
        card: json_of_row(row, 3)?,
        labels: labels_of_row(row, 4)?,
        created_ms: row.get(5)?,
    })
}

fn labels_of_row(row: &Row<'_>, column: usize) -> rusqlite::Result<LabelSet> {
    let names: BTreeMap<u32, String> = json_of_row(row, column)?;
    Ok(names.into_iter().collect())
}

fn json_of_row<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text).map_err(|error| {
        let kind = rusqlite::types::Type::Text;
        rusqlite::Error::FromSqlConversionFailure(column, kind, error.into())
    })
}

fn verdict_of_row(row: &Row<'_>) -> rusqlite::Result<(VerdictTarget, Verdict)> {
    let (run, box_number): (i64, i64) = (row.get("run")?, row.get("box")?);
    let word: String = row.get("verdict")?;
    let verdict = match word.as_str() {
        "accept" => Verdict::Accept,
        "reject" => Verdict::Reject,
        "unsure" => Verdict::Unsure,
        "wrong" => Verdict::WrongClass(row.get("right_class")?),
        "moved" => Verdict::Moved(drawn_of_row(row)?),
        "added" => Verdict::Added(drawn_of_row(row)?),
        "complete" => Verdict::Complete,
        "returned" => Verdict::Returned,
        "spurious" => Verdict::Spurious(drawn_of_row(row)?),
        _ => return Err(damaged("verdict", format!("“{word}” is not a verdict"))),
    };
    let target =
        VerdictTarget { run: (run != 0).then_some(RunId(run as u64)), box_index: u32::try_from(box_number).ok() };
    Ok((target, verdict))
}

/// The box that a person drew.
fn drawn_of_row(row: &Row<'_>) -> rusqlite::Result<DrawnBox> {
    let (class, bounds): (String, String) = (row.get("right_class")?, row.get("bounds")?);
    let drawn = serde_json::from_str(&bounds).ok().and_then(|bounds| DrawnBox::from_bounds(&class, bounds));
    drawn.ok_or_else(|| damaged("bounds", format!("“{bounds}” is not a box")))
}

fn kind_of_row(row: &Row<'_>) -> rusqlite::Result<Kind> {
    let number = row.get("kind")?;
    Kind::from_number(number).ok_or_else(|| damaged("kind", format!("{number} is not a kind of prediction")))
}

fn stamp_of(size_bytes: i64, row: &Row<'_>) -> rusqlite::Result<FileStamp> {
    Ok(FileStamp {
        size_bytes: size_bytes as u64,
        modified_ns: row.get("modified_ns")?,
        etag: row.get::<_, Option<String>>("etag")?.map(Arc::from),
    })
}

fn summary_of_row(row: &Row<'_>, root: Option<&str>) -> rusqlite::Result<SampleSummary> {
    let sample = sample_of_row(row, root)?;
    if kind_of_row(row)? == Kind::Failure {
        let result = Err(row.get("failure")?);
        return Ok(SampleSummary { sample, result });
    }
    let column = |name: &str| row.get_ref(name)?.as_blob().map_err(rusqlite::Error::from);
    let (Some(classes), Some(scores)) = (u32_column(column("classes")?), f32_column(column("scores")?)) else {
        return Err(misfit());
    };
    if classes.len() != scores.len() {
        return Err(misfit());
    }
    let summary = Summary {
        width: row.get("width")?,
        height: row.get("height")?,
        classes,
        scores,
        warnings: warnings_of_row(row)?,
    };
    Ok(SampleSummary { sample, result: Ok(summary) })
}

fn prediction_of_row(row: &Row<'_>, root: Option<&str>, labels: &LabelSet) -> rusqlite::Result<SamplePrediction> {
    let kind = kind_of_row(row)?;
    let result = if kind == Kind::Failure {
        Err(row.get("failure")?)
    } else {
        let columns = Columns {
            kind,
            classes: row.get("classes")?,
            scores: row.get("scores")?,
            boxes: row.get::<_, Option<Vec<u8>>>("bounds")?.unwrap_or_default(),
            runners_up: row.get("runners_up")?,
        };
        Ok(Prediction {
            width: row.get("width")?,
            height: row.get("height")?,
            content: columns.to_prediction(labels).ok_or_else(misfit)?,
            warnings: warnings_of_row(row)?,
        })
    };
    let size_bytes: Option<i64> = row.get("size_bytes")?;
    Ok(SamplePrediction {
        sample: sample_of_row(row, root)?,
        stamp: stamp_of(size_bytes.unwrap_or_default(), row)?,
        result,
    })
}

fn warnings_of_row(row: &Row<'_>) -> rusqlite::Result<Vec<String>> {
    let text: Option<String> = row.get("warnings")?;
    let warnings = text.map(|text| serde_json::from_str(&text)).transpose();
    let warnings = warnings.map_err(|error| damaged("warnings", error.to_string()))?;
    Ok(warnings.unwrap_or_default())
}

fn misfit() -> rusqlite::Error {
    damaged("answers", "the columns of a prediction do not fit each other".to_owned())
}

fn damaged(column: &str, reason: String) -> rusqlite::Error {
    let kind = rusqlite::types::Type::Blob;
    log::error!("damaged entry in column {column} of the project file: {reason}");
    rusqlite::Error::FromSqlConversionFailure(0, kind, reason.into())
}
