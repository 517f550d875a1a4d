//! The only thread that writes: takes queued changes and commits them together.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension, Statement, TransactionBehavior, params};

use super::columns::{Columns, Kind};
use super::error::{explain, is_of_the_change, may_pass};
use super::files::ProjectFile;
use super::names::{StoredName, to_stored};
use super::queue::{AfterWait, Failure, Queue, Queued, WRITER_GONE};
use super::{Root, SaveEvent};
use crate::domain::{Change, LabelSet, RunId, RunInfo, SamplePrediction, SampleUri, Verdict, VerdictTarget};

const FIRST_RETRY: Duration = Duration::from_millis(200);
const LONGEST_RETRY: Duration = Duration::from_secs(5);
/// How often a project that is being closed tries to save the rest, `FIRST_RETRY` apart.
const LAST_ATTEMPTS: usize = 5;

pub(super) struct Writer {
    pub connection: Arc<Mutex<Connection>>,
    pub file: Arc<ProjectFile>,
    pub queue: Arc<Queue>,
    pub root: Arc<Root>,
    pub on_save: Box<dyn Fn(SaveEvent) + Send>,
    pub refused: Refused,
}

/// Runs whose predictions and verdicts are not written.
#[derive(Default)]
pub(super) struct Refused {
    /// Deleted while the project was open: late changes are dropped.
    deleted: HashSet<RunId>,
    /// Runs whose number belongs to another run in the project: their predictions would go to that one.
    doubled: HashSet<RunId>,
}

/// A change that can never be saved, and why.
pub(super) type Rejected = (u64, String);

impl Writer {
    /// Saves changes until the queue is closed and empty.
    pub(super) fn run(mut self) {
        let queue = Arc::clone(&self.queue);
        let work = std::panic::AssertUnwindSafe(|| self.save_all());
        if std::panic::catch_unwind(work).is_err() {
            (self.on_save)(SaveEvent::Stopped { reason: WRITER_GONE.to_owned() });
        }
        queue.set_stopped();
    }

    fn save_all(&mut self) {
        let mut last_commit = None;
        while let Some(batch) = self.queue.next_batch(last_commit) {
            last_commit = Some(Instant::now());
            if !self.save(&batch) {
                return;
            }
        }
    }

    /// Retries until it succeeds; if no attempt can, only once the project is in another file. Returns false if the
    /// project was closed meanwhile and the last attempts failed as well.
    fn save(&mut self, batch: &[Queued]) -> bool {
        let mut delay = FIRST_RETRY;
        let mut told = None;
        let mut attempts_left = LAST_ATTEMPTS;
        loop {
            let failure = match self.commit(batch) {
                Ok(rejected) => {
                    for (ticket, reason) in rejected {
                        (self.on_save)(SaveEvent::Rejected { ticket, reason });
                    }
                    if let Some(last) = batch.last() {
                        (self.on_save)(SaveEvent::Saved { up_to: last.ticket });
                    }
                    // Last, so that a waiting caller finds it reported.
                    self.queue.settle();
                    return true;
                }
                Err(failure) => failure,
            };
            let Failure { reason, may_pass } = failure.clone();
            if told.as_ref() != Some(&failure) {
                log::error!("could not save: {reason}");
                told = Some(failure.clone());
                let reason = reason.clone();
                (self.on_save)(if may_pass { SaveEvent::Failed { reason } } else { SaveEvent::Stopped { reason } });
            }
            if self.queue.wait_after_failure(&failure, delay) == AfterWait::Closing {
                if attempts_left == 0 || !may_pass {
                    log::error!("closed with {} changes that could not be saved: {reason}", self.queue.unsaved());
                    return false;
                }
                attempts_left -= 1;
                std::thread::sleep(FIRST_RETRY);
            }
            delay = (delay * 2).min(LONGEST_RETRY);
        }
    }

    /// Saves all of `batch` in one transaction, or nothing. Changes that can never be saved are skipped and returned.
    fn commit(&mut self, batch: &[Queued]) -> Result<Vec<Rejected>, Failure> {
        // The user can put the file back.
        let removed = |reason| Failure { reason, may_pass: true };
        self.file.check_still_there().map_err(removed)?;
        let attempt = self.commit_to_database(batch);
        let rejected = attempt.map_err(|error| Failure { reason: explain(&error), may_pass: may_pass(&error) })?;
        // What was written to a file that was deleted meanwhile is lost.
        self.file.check_still_there().map_err(removed)?;
        Ok(rejected)
    }

    fn commit_to_database(&mut self, batch: &[Queued]) -> rusqlite::Result<Vec<Rejected>> {
        let mut connection = self.connection.lock();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let root = self.root.get();
        let rejected = apply_all(&transaction, root.as_deref(), batch, &mut self.refused)?;
        transaction.commit()?;
        Ok(rejected)
    }
}

/// Applies changes in order, except those that can never be saved, which are returned.
pub(super) fn apply_all(
    connection: &Connection,
    root: Option<&str>,
    batch: &[Queued],
    refused: &mut Refused,
) -> rusqlite::Result<Vec<Rejected>> {
    let mut rejected = Vec::new();
    let mut statements = Statements::prepare(connection, root)?;
    for Queued { ticket, change } in batch {
        match statements.apply(change, refused) {
            Ok(()) => {}
            Err(error) if is_of_the_change(&error) => {
                log::error!("a change could not be saved: {error}");
                rejected.push((*ticket, explain(&error)));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(rejected)
}

/// Applies all changes in one transaction, or none of them.
pub(super) fn apply_together(
    connection: &mut Connection,
    root: Option<&str>,
    changes: &[Change],
) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut refused = Refused::default();
    let mut statements = Statements::prepare(&transaction, root)?;
    changes.iter().try_for_each(|change| statements.apply(change, &mut refused))?;
    drop(statements);
    transaction.commit()
}

/// Names by class id.
fn labels_json(labels: &LabelSet) -> rusqlite::Result<String> {
    to_json(&labels.iter().collect::<BTreeMap<u32, &str>>())
}

fn to_json(value: &impl serde::Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

struct Statements<'t> {
    connection: &'t Connection,
    root: Option<&'t str>,
    run_exists: Statement<'t>,
    add_sample: Statement<'t>,
    find_sample: Statement<'t>,
    set_prediction: Statement<'t>,
    set_boxes: Statement<'t>,
    remove_boxes: Statement<'t>,
    begin_classes: Statement<'t>,
    add_class: Statement<'t>,
    set_verdict: Statement<'t>,
    remove_verdict: Statement<'t>,
}

impl<'t> Statements<'t> {
    fn prepare(connection: &'t Connection, root: Option<&'t str>) -> rusqlite::Result<Self> {
        Ok(Self {
            connection,
            root,
            run_exists: connection.prepare("SELECT 1 FROM runs WHERE id = ?1")?,
            add_sample: connection
                .prepare("INSERT INTO samples (name, is_below_root) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?,
            find_sample: connection.prepare("SELECT id FROM samples WHERE name = ?1 AND is_below_root = ?2")?,
            set_prediction: connection.prepare(
                "INSERT INTO answers (run, sample, kind, width, height, classes, scores, failure,
                    size_bytes, modified_ns, etag, warnings)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
                ON CONFLICT (run, sample) DO UPDATE SET
                    kind = excluded.kind, width = excluded.width, height = excluded.height,
                    classes = excluded.classes, scores = excluded.scores, failure = excluded.failure,
                    size_bytes = excluded.size_bytes, modified_ns = excluded.modified_ns, etag = excluded.etag,
                    warnings = excluded.warnings",
            )?,
            set_boxes: connection.prepare(
                "INSERT INTO boxes (run, sample, bounds, runners_up) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (run, sample) DO UPDATE SET bounds = excluded.bounds, runners_up = excluded.runners_up",
            )?,
            remove_boxes: connection.prepare("DELETE FROM boxes WHERE run = ?1 AND sample = ?2")?,
            begin_classes: connection.prepare(
                "INSERT INTO views (name, json) SELECT ?1, (
                     SELECT json_group_array(class) FROM (
                         SELECT DISTINCT trim(right_class) AS class FROM verdicts
                         WHERE run = ?2 AND right_class IS NOT NULL ORDER BY class))
                 WHERE NOT EXISTS (SELECT 1 FROM views WHERE name = ?1)",
            )?,
            add_class: connection.prepare(
                "UPDATE views SET json = json_insert(json, '$[#]', ?2)
                 WHERE name = ?1 AND NOT EXISTS (SELECT 1 FROM json_each(views.json) WHERE value = ?2)",
            )?,
            set_verdict: connection.prepare(
                "INSERT INTO verdicts (sample, run, box, verdict, right_class, bounds, reviewer)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                 ON CONFLICT (sample, run, box) DO UPDATE SET verdict = excluded.verdict,
                 right_class = excluded.right_class, bounds = excluded.bounds, reviewer = excluded.reviewer",
            )?,
            remove_verdict: connection.prepare("DELETE FROM verdicts WHERE sample = ?1 AND run = ?2 AND box = ?3")?,
        })
    }

    fn apply(&mut self, change: &Change, refused: &mut Refused) -> rusqlite::Result<()> {
        match change {
            Change::AddRun(info) => {
                let added = self.add_run(info);
                refused.deleted.remove(&info.id);
                if added.is_err() {
                    refused.doubled.insert(info.id);
                }
                added
            }
            Change::RenameRun(run, name) => {
                let sql = "UPDATE runs SET name = ?2 WHERE id = ?1";
                self.connection.execute(sql, params![run_number(*run), name])?;
                Ok(())
            }
            Change::SetRunLabels(run, labels) => {
                let sql = "UPDATE runs SET labels = json_patch(labels, ?2) WHERE id = ?1";
                self.connection.execute(sql, params![run_number(*run), labels_json(labels)?])?;
                Ok(())
            }
            Change::DeleteRun(run) => {
                refused.deleted.insert(*run);
                if refused.doubled.remove(run) {
                    return Ok(());
                }
                let number = run_number(*run);
                let sql = "DELETE FROM verdicts WHERE run = ?1";
                self.connection.execute(sql, [number])?;
                self.connection.execute("DELETE FROM views WHERE name = ?1", [given_classes_name(*run)])?;
                self.connection.execute("DELETE FROM runs WHERE id = ?1", [number])?;
                Ok(())
            }
            Change::Predictions { run, predictions } => {
                if refused.deleted.contains(run) {
                    return Ok(());
                }
                self.require_run(*run, refused)?;
                predictions.iter().try_for_each(|prediction| self.set_prediction(*run, prediction))
            }
            Change::SetVerdict { sample, target, verdict, reviewer } => {
                if let Some(run) = target.run {
                    if refused.deleted.contains(&run) {
                        return Ok(());
                    }
                    self.require_run(run, refused)?;
                }
                self.set_verdict(sample, *target, verdict.as_ref(), reviewer.as_deref())
            }
            Change::SetNote { sample, text } => self.set_note(sample, text),
            Change::SetTags { sample, tags } => self.set_tags(sample, tags),
            Change::SetView { name, json } => {
                let sql = "INSERT INTO views (name, json) VALUES (?1, ?2)
                           ON CONFLICT (name) DO UPDATE SET json = excluded.json";
                self.connection.execute(sql, [name, json])?;
                Ok(())
            }
        }
    }

    /// An existing run gets the new name and keeps its predictions.
    fn add_run(&self, info: &RunInfo) -> rusqlite::Result<()> {
        let sql = "INSERT INTO runs (id, name, run_key, card, labels, created_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                   ON CONFLICT (id) DO UPDATE SET name = excluded.name WHERE run_key = excluded.run_key";
        let values = params![
            run_number(info.id),
            info.name,
            to_json(&info.key)?,
            to_json(&info.card)?,
            labels_json(&info.labels)?,
            info.created_ms,
        ];
        if self.connection.execute(sql, values)? == 0 {
            return Err(unfit(format!("the project has another run under number {}", info.id.0)));
        }
        Ok(())
    }

    fn set_prediction(&mut self, run: RunId, prediction: &SamplePrediction) -> rusqlite::Result<()> {
        let (run, sample) = (run_number(run), self.sample_number(&prediction.sample)?);
        let stamp = &prediction.stamp;
        let (size_bytes, modified_ns, etag) = (stamp.size_bytes as i64, stamp.modified_ns, stamp.etag.as_deref());
        match &prediction.result {
            Ok(prediction) => {
                let columns = Columns::from_prediction(prediction);
                let warnings = (!prediction.warnings.is_empty())
                    .then(|| serde_json::to_string(&prediction.warnings).expect("a list of texts"));
                self.set_prediction.execute(params![
                    run,
                    sample,
                    columns.kind as i64,
                    prediction.width,
                    prediction.height,
                    columns.classes,
                    columns.scores,
                    None::<&str>,
                    size_bytes,
                    modified_ns,
                    etag,
                    warnings,
                ])?;
                if columns.boxes.is_empty() {
                    self.remove_boxes.execute(params![run, sample])?;
                } else {
                    self.set_boxes.execute(params![run, sample, columns.boxes, columns.runners_up])?;
                }
            }
            Err(reason) => {
                let nothing: &[u8] = &[];
                self.set_prediction.execute(params![
                    run,
                    sample,
                    Kind::Failure as i64,
                    0,
                    0,
                    nothing,
                    nothing,
                    reason,
                    size_bytes,
                    modified_ns,
                    etag,
                    None::<&str>,
                ])?;
                self.remove_boxes.execute(params![run, sample])?;
            }
        }
        Ok(())
    }

    fn set_verdict(
        &mut self,
        sample: &SampleUri,
        target: VerdictTarget,
        verdict: Option<&Verdict>,
        reviewer: Option<&str>,
    ) -> rusqlite::Result<()> {
        let sample = self.sample_number(sample)?;
        let run = target.run.map_or(0, run_number);
        let box_number = target.box_index.map_or(-1, i64::from);
        match verdict {
            Some(verdict) => {
                let bounds = verdict.drawn().map(|drawn| to_json(&drawn.bounds())).transpose()?;
                let right_class = verdict.right_class();
                if let (Some(of), Some(class)) = (target.run, right_class) {
                    let name = given_classes_name(of);
                    self.begin_classes.execute(params![name, run])?;
                    self.add_class.execute([&*name, class])?;
                }
                let values = params![sample, run, box_number, verdict.into_str(), right_class, bounds, reviewer];
                self.set_verdict.execute(values)?;
            }
            None => {
                self.remove_verdict.execute([sample, run, box_number])?;
            }
        }
        Ok(())
    }

    fn set_note(&mut self, sample: &SampleUri, text: &str) -> rusqlite::Result<()> {
        let sample = self.sample_number(sample)?;
        if text.is_empty() {
            let sql = "DELETE FROM notes WHERE sample = ?1";
            self.connection.execute(sql, [sample])?;
        } else {
            let sql = "INSERT INTO notes (sample, text) VALUES (?1, ?2)
                       ON CONFLICT (sample) DO UPDATE SET text = excluded.text";
            self.connection.execute(sql, params![sample, text])?;
        }
        Ok(())
    }

    fn set_tags(&mut self, sample: &SampleUri, tags: &[String]) -> rusqlite::Result<()> {
        let sample = self.sample_number(sample)?;
        let sql = "DELETE FROM tags WHERE sample = ?1";
        self.connection.execute(sql, [sample])?;
        let sql = "INSERT INTO tags (sample, tag) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        let mut add = self.connection.prepare(sql)?;
        tags.iter().try_for_each(|tag| add.execute(params![sample, tag]).map(drop))
    }

    /// The number of a sample, which is assigned if necessary.
    fn sample_number(&mut self, uri: &SampleUri) -> rusqlite::Result<i64> {
        let StoredName { is_below_root, name } = to_stored(self.root, uri);
        let key = params![name, is_below_root];
        if let Some(number) = self.find_sample.query_row(key, |row| row.get(0)).optional()? {
            return Ok(number);
        }
        self.add_sample.insert(key)
    }

    fn require_run(&mut self, run: RunId, refused: &Refused) -> rusqlite::Result<()> {
        if !refused.doubled.contains(&run) && self.run_exists.exists([run_number(run)])? {
            return Ok(());
        }
        Err(unfit(format!("run {} does not exist in this project", run.0)))
    }
}

/// The entry in `views` with the classes that verdicts on a run have named, in the order of their first use: new classes
/// are numbered in this order, so that they keep their ids when others come and go.
pub(super) fn given_classes_name(run: RunId) -> String {
    format!("given-classes-{}", run.0)
}

/// SQLite's integers are signed; ids never come near the limit.
pub(super) fn run_number(run: RunId) -> i64 {
    run.0 as i64
}

/// A change that can never be saved.
fn unfit(reason: String) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(reason.into())
}
