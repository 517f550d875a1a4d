//! The project file (`*.spotcheck`): runs, predictions, verdicts, notes, tags and view settings, in SQLite.
//!
//! One thread writes, readers have their own connections, and only callers that ask to wait for the disk do so. What
//! was reported as saved survives the end of the program and of the machine. Knows nothing about windows, models or
//! images.

mod columns;
mod damage;
mod embeddings;
mod error;
pub mod export;
mod files;
mod lock;
mod merge;
mod names;
mod open;
mod pairs;
mod queue;
mod reader;
mod save_as;
mod schema;
mod writer;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use rusqlite::Connection;

pub use columns::{SampleSummary, Summary};
pub use embeddings::{EmbeddingStore, EmbeddingWriter};
pub use error::StoreError;
pub use files::{partial_file, with_extension};
pub use merge::{Merge, MergeError, merge_verdicts, run_to_merge, write_merged};
pub use names::{default_path, default_path_of_place};
pub use open::{OpenMode, OpenRequest, Opened};
pub use pairs::{PredictionPair, paged, prediction_pairs};
pub use reader::{PredictionCounts, StoredStamp};

use crate::dirs::Scratch;
use crate::domain::{Change, RunId, S3Place};
use crate::tasks::TaskControl;
use files::ProjectFile;
use lock::FileLock;
use queue::{Queue, WRITER_GONE};
use reader::Readers;

/// The extension of a project file, without the dot.
pub const EXTENSION: &str = "spotcheck";

/// The fact with the S3 location of the images, as JSON.
const PLACE: &str = "s3_place";
const NOTE_PLACE: &str = "save the image folder";

/// How long a connection waits for a file that another program has locked.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// An open project. Clones share it. It is closed with the last clone, which waits until everything queued is saved
/// (or, if the disk rejects it, for about a second).
#[derive(Clone)]
pub struct Project(Arc<Inner>);

struct Inner {
    readers: Readers,
    access: Access,
    file: Arc<ProjectFile>,
    root: Arc<Root>,
    /// The next run's id.
    next_run: AtomicU64,
    writing: Option<Writing>,
    /// The copy that is read if the file's own folder is not writable. Deleted after the connections are closed.
    _copy: Option<Scratch>,
    /// Released last.
    lock: Mutex<Option<FileLock>>,
}

/// What only a writable project has.
struct Writing {
    queue: Arc<Queue>,
    connection: Arc<Mutex<Connection>>,
    thread: Option<JoinHandle<()>>,
}

/// What is allowed in an open project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    Writer,
    /// Nothing will be saved.
    ReadOnly {
        reason: ReadOnlyReason,
    },
}

/// Why nothing can be saved in a project. Displays as “another program has it open (spotcheck predict, process 4711 on
/// host, since 2026-11-21 10:31); close it there”.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadOnlyReason {
    /// See [`OpenMode::Read`].
    #[error("it was opened read-only")]
    Requested,
    #[error("another program has it open ({holder}); close it there")]
    Held { holder: String, is_this_process: bool },
    #[error("its folder is not writable ({0}); change its permissions")]
    FolderNotWritable(String),
    #[error("the file is write-protected; change its permissions")]
    WriteProtected,
}

/// The fate of changes, reported from the writer's thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SaveEvent {
    /// Every change up to this ticket is on disk and survives whatever happens.
    Saved { up_to: u64 },
    /// Saving failed; what, why, what to do. The changes are kept and retried until [`SaveEvent::Saved`].
    Failed { reason: String },
    /// Saving failed, and no attempt in this file can succeed. The changes are kept for [`Project::continue_as`].
    Stopped { reason: String },
    /// This change can never be saved; the others are.
    Rejected { ticket: u64, reason: String },
}

/// The folder that sample names are relative to, as a URI.
#[derive(Default)]
struct Root(RwLock<Option<Arc<str>>>);

impl Root {
    fn get(&self) -> Option<Arc<str>> {
        self.0.read().clone()
    }

    fn set(&self, root: Option<&str>) {
        *self.0.write() = root.map(Arc::from);
    }
}

impl Project {
    pub fn access(&self) -> &Access {
        &self.0.access
    }

    /// The path of the project; `None` for one in memory.
    pub fn path(&self) -> Option<PathBuf> {
        self.0.file.path()
    }

    /// The folder that sample names are relative to.
    pub fn root(&self) -> Option<Arc<str>> {
        self.0.root.get()
    }

    /// Stores the S3 location of the images and how to access it, for the next time the project is opened.
    pub fn set_place(&self, place: &S3Place) -> Result<(), StoreError> {
        let json = serde_json::to_string(place).map_err(|error| {
            let error = rusqlite::Error::ToSqlConversionFailure(error.into());
            StoreError::database(NOTE_PLACE)(error)
        })?;
        let connection = self.writing()?.connection.lock();
        schema::set_fact(&connection, PLACE, Some(&json)).map_err(StoreError::database(NOTE_PLACE))
    }

    /// A run id that this project has never used.
    pub fn new_run_id(&self) -> RunId {
        RunId(self.0.next_run.fetch_add(1, Ordering::Relaxed))
    }

    /// Queues a change and never waits. It is on disk within 100 ms, as [`SaveEvent::Saved`] reports; `ticket` is the
    /// caller's number for it and must not decrease between calls. Rejected if the project is read-only.
    pub fn write(&self, ticket: u64, change: Change) -> Result<(), StoreError> {
        let writing = self.writing()?;
        self.forget_what_changes(&change);
        writing.queue.push(ticket, change);
        Ok(())
    }

    /// As [`Project::write`], for workers: waits while too much is queued, so that a slow or full disk slows them down
    /// instead of filling the memory, and rejects what can never be saved.
    pub fn write_when_there_is_room(
        &self,
        ticket: u64,
        change: Change,
        control: &TaskControl,
    ) -> Result<(), StoreError> {
        let writing = self.writing()?;
        self.forget_what_changes(&change);
        writing.queue.push_when_there_is_room(ticket, change, control)?;
        Ok(())
    }

    /// Saves changes in one transaction, after everything queued so far, and waits for it.
    ///
    /// # Errors
    /// None of them is saved, and they are not retried.
    pub fn write_together(&self, changes: &[Change]) -> Result<(), StoreError> {
        const WHAT: &str = "save the changes, so that the project has none of them";
        let writing = self.writing()?;
        writing.queue.flush()?;
        let removed = |reason| StoreError::Database { what: WHAT, reason };
        self.0.file.check_still_there().map_err(removed)?;
        writer::apply_together(&mut writing.connection.lock(), self.root().as_deref(), changes)
            .map_err(StoreError::database(WHAT))?;
        for change in changes {
            self.forget_what_changes(change);
        }
        // What was written to a file that was deleted meanwhile is lost.
        self.0.file.check_still_there().map_err(removed)
    }

    /// Waits until everything queued so far is saved.
    ///
    /// # Errors
    /// An attempt to save it failed. It will still be retried, except for [`StoreError::Stopped`].
    pub fn flush(&self) -> Result<(), StoreError> {
        match &self.0.writing {
            Some(writing) => writing.queue.flush(),
            None => Ok(()),
        }
    }

    /// The number of unsaved changes.
    pub fn unsaved(&self) -> usize {
        self.0.writing.as_ref().map_or(0, |writing| writing.queue.unsaved())
    }

    /// Drops cached data that a change affects.
    fn forget_what_changes(&self, change: &Change) {
        if let Change::SetRunLabels(run, _) = change {
            self.0.readers.forget_labels(*run);
        }
    }

    fn writing(&self) -> Result<&Writing, StoreError> {
        match (&self.0.writing, &self.0.access) {
            (Some(writing), _) if writing.queue.is_stopped() => Err(StoreError::Stopped(WRITER_GONE.to_owned())),
            (Some(writing), _) => Ok(writing),
            (None, Access::ReadOnly { reason }) => Err(StoreError::ReadOnly(reason.to_string())),
            (None, Access::Writer) => Err(StoreError::Stopped(WRITER_GONE.to_owned())),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let Some(writing) = &mut self.writing else {
            return;
        };
        writing.queue.close();
        // The last handle may be held by the writer's own callback.
        if let Some(thread) = writing.thread.take()
            && thread.thread().id() != std::thread::current().id()
            && thread.join().is_err()
        {
            log::error!("the thread that saves the project ended in a panic");
        }
    }
}

#[cfg(test)]
mod tests;
