//! Saves a project under another name, and relocates a project whose images moved.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, params};

use super::error::{StoreError, is_interrupted};
use super::files::{fold_journal, partial_file, resolve, vacuum_with_progress, with_extension};
use super::lock::{FileLock, Locking};
use super::names::{StoredName, from_stored, to_stored};
use super::queue::Queued;
use super::schema::{set_fact, set_root};
use super::writer::{Refused, apply_all};
use super::{EmbeddingStore, Project, schema};
use crate::domain::{SECOND_PASS, SampleUri};
use crate::tasks::{ProgressUnit, TaskControl};

/// What a copy contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Everything,
    /// No verdicts, notes and tags, so that another person can judge without seeing them.
    Unjudged,
}

impl Project {
    /// Writes a copy, including queued changes, and returns its path; `.spotcheck` is added if it is missing. The
    /// project stays where it is. Works even if the project's own disk is full or its file was deleted, but always
    /// under another name. An existing `target` is replaced atomically, once the copy is complete. Slow.
    pub fn save_as(&self, target: &Path, program: &str) -> Result<PathBuf, StoreError> {
        self.save_copy(target, program, Content::Everything, &TaskControl::new(ProgressUnit::Bytes))
    }

    /// As [`Project::save_as`], without verdicts, notes and tags: for a second person, who judges without seeing them.
    /// The samples to judge are kept. Reports progress in bytes; nothing is left of a canceled copy.
    pub fn start_second_pass(
        &self,
        target: &Path,
        program: &str,
        control: &TaskControl,
    ) -> Result<PathBuf, StoreError> {
        self.save_copy(target, program, Content::Unjudged, control)
    }

    fn save_copy(
        &self,
        target: &Path,
        program: &str,
        content: Content,
        control: &TaskControl,
    ) -> Result<PathBuf, StoreError> {
        let (target, _lock) = self.claim(target, program)?;
        match &self.0.writing {
            Some(writing) => {
                // Nothing can be committed meanwhile, so exactly the changes queued now are missing in the copy.
                let connection = writing.connection.lock();
                let unsaved = writing.queue.unsaved_changes();
                self.write_copy(&connection, &target, &unsaved, content, control)?;
            }
            None => self.0.readers.read("copy the project", |connection| {
                Ok(self.write_copy(connection, &target, &[], content, control))
            })??,
        }
        self.copy_embeddings(&target);
        Ok(target)
    }

    /// As [`Project::save_as`], but continues in the copy: from then on, every handle of this project uses it, and
    /// nothing queued meanwhile is lost. On failure, the project stays where it is. Slow.
    pub fn continue_as(&self, target: &Path, program: &str) -> Result<PathBuf, StoreError> {
        let writing = self.writing()?;
        let (target, file_lock) = self.claim(target, program)?;
        let mut connection = writing.connection.lock();
        // Queued changes are committed to the copy, as to any file.
        let control = TaskControl::new(ProgressUnit::Bytes);
        self.write_copy(&connection, &target, &[], Content::Everything, &control)?;
        let open = || {
            let copy = Connection::open(&target)?;
            schema::prepare_writer(&copy)?;
            Ok(copy)
        };
        let copy = open().map_err(StoreError::database("continue in the copy of the project"))?;
        self.copy_embeddings(&target);
        let former = std::mem::replace(&mut *connection, copy);
        self.0.file.move_to(target.clone());
        self.0.readers.forget_connections();
        drop(connection);
        drop(former);
        writing.queue.try_again();
        let former_lock = self.0.lock.lock().replace(file_lock);
        drop(former_lock);
        Ok(target)
    }

    /// Copies the embeddings next to the project. A failure costs only them: they can be computed again.
    fn copy_embeddings(&self, target: &Path) {
        let Some(file) = self.path().map(|path| EmbeddingStore::path_for(&path)).filter(|file| file.exists()) else {
            return;
        };
        let target = EmbeddingStore::path_for(target);
        let copy = || -> Result<(), Box<dyn std::error::Error>> {
            let folder = target.parent().unwrap_or(Path::new("."));
            let copy = partial_file(folder, ".spotcheck-".as_ref())?.into_temp_path();
            let connection = Connection::open(&file)?;
            vacuum_with_progress(&connection, &copy, &TaskControl::new(ProgressUnit::Bytes))?;
            std::fs::File::open(&copy)?.sync_all()?;
            if target.exists() {
                fold_journal(&target);
            }
            Ok(copy.persist(&target)?)
        };
        if let Err(error) = copy() {
            log::warn!("the embeddings were not copied with the project: {error}");
        }
    }

    /// The full path of `target`, and the right to write there.
    fn claim(&self, target: &Path, program: &str) -> Result<(PathBuf, FileLock), StoreError> {
        let target = resolve(&with_extension(target))?;
        if self.path().as_ref() == Some(&target) {
            return Err(StoreError::SamePath(target));
        }
        match FileLock::acquire(&target, program).map_err(StoreError::io("write here", &target))? {
            Locking::Ours(lock) => Ok((target, lock)),
            Locking::Held(holder) => Err(StoreError::Held { path: target, holder: holder.to_string() }),
        }
    }

    /// Writes a copy of what `connection` sees to `target`, with `unsaved` on top.
    fn write_copy(
        &self,
        connection: &Connection,
        target: &Path,
        unsaved: &[Queued],
        content: Content,
        control: &TaskControl,
    ) -> Result<(), StoreError> {
        let what = "write the copy of the project";
        let failed = |what| StoreError::io(what, target);
        let folder = target.parent().unwrap_or(Path::new("."));
        let copy = partial_file(folder, ".spotcheck-".as_ref()).map_err(failed("write here"))?.into_temp_path();
        let root = self.root();
        control.checkpoint()?;
        let fill = || {
            vacuum_with_progress(connection, &copy, control)?;
            let mut copy = Connection::open(&copy)?;
            // Removed verdicts must not stay in the file.
            copy.execute_batch("PRAGMA foreign_keys = on; PRAGMA secure_delete = on")?;
            let transaction = copy.transaction()?;
            apply_all(&transaction, root.as_deref(), unsaved, &mut Refused::default())?;
            set_root(&transaction, target, root.as_deref())?;
            if content == Content::Unjudged {
                transaction.execute_batch("DELETE FROM verdicts; DELETE FROM notes; DELETE FROM tags")?;
                let mark = "INSERT OR REPLACE INTO views (name, json) VALUES (?1, 'true')";
                transaction.execute(mark, [SECOND_PASS])?;
            }
            transaction.commit()
        };
        fill().map_err(|error| match control.checkpoint() {
            Err(cancelled) if is_interrupted(&error) => cancelled.into(),
            _ => StoreError::database(what)(error),
        })?;
        control.checkpoint()?;
        let sync = || std::fs::File::open(&copy)?.sync_all();
        sync().map_err(failed(what))?;
        if target.exists() {
            fold_journal(target);
        }
        copy.persist(target).map_err(|error| failed(what)(error.error))?;
        // Only makes the new name survive a power failure; not every system can.
        if let Ok(folder) = std::fs::File::open(folder) {
            let _ = folder.sync_all();
        }
        Ok(())
    }

    /// The predicted and judged images, as named below `new_root`.
    ///
    /// # Errors
    /// The project cannot be read.
    pub fn images_below(&self, new_root: &str) -> Result<HashSet<SampleUri>, StoreError> {
        let mut images: HashSet<SampleUri> = self.judgments()?.into_iter().map(|judged| judged.sample).collect();
        for run in self.runs()? {
            images.extend(self.stamps(run.id)?.into_keys());
        }
        let root = self.root();
        let moved = |uri: &SampleUri| from_stored(Some(new_root), &to_stored(root.as_deref(), uri));
        Ok(images.iter().map(moved).collect())
    }

    /// Points the project to the new folder of its images. Samples outside the old root that are in the new one become
    /// part of it; if a sample was known under both names, its verdicts, note and tags under the later name win. Slow;
    /// call it while no run is writing.
    pub fn relocate(&self, new_root: &str) -> Result<(), StoreError> {
        let writing = self.writing()?;
        writing.queue.flush()?;
        let mut connection = writing.connection.lock();
        let mut relocate = || {
            let transaction = connection.transaction()?;
            transaction.pragma_update(None, "defer_foreign_keys", true)?;
            take_in(&transaction, new_root)?;
            match self.path() {
                Some(path) => set_root(&transaction, &path, Some(new_root))?,
                None => set_fact(&transaction, "root", Some(new_root))?,
            }
            set_fact(&transaction, super::PLACE, None)?;
            transaction.commit()
        };
        relocate().map_err(StoreError::database("set the folder of the project"))?;
        self.0.root.set(Some(new_root));
        Ok(())
    }
}

/// Names samples in `root` relative to it that had their whole URI so far.
fn take_in(connection: &Connection, root: &str) -> rusqlite::Result<()> {
    let mut outside = connection.prepare("SELECT id, name FROM samples WHERE NOT is_below_root")?;
    let outside: Vec<(i64, String)> =
        outside.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
    for (id, uri) in outside {
        let StoredName { is_below_root: true, name } = to_stored(Some(root), &SampleUri::new(uri)) else {
            continue;
        };
        let older = "SELECT id FROM samples WHERE name = ?1 AND is_below_root";
        let older: Option<i64> = connection.query_row(older, [&name], |row| row.get(0)).optional()?;
        if let Some(older) = older {
            for table in ["answers", "boxes", "verdicts", "notes", "tags"] {
                let sql = format!("UPDATE OR REPLACE {table} SET sample = ?1 WHERE sample = ?2");
                connection.execute(&sql, [older, id])?;
            }
            connection.execute("DELETE FROM samples WHERE id = ?1", [id])?;
        } else {
            let sql = "UPDATE samples SET name = ?2, is_below_root = 1 WHERE id = ?1";
            connection.execute(sql, params![id, name])?;
        }
    }
    Ok(())
}
