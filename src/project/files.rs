//! The file of an open project, SQLite's companion files, and copies.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use rusqlite::{Connection, OpenFlags};

use super::EXTENSION;
use super::error::StoreError;
use crate::local_file;
use crate::tasks::TaskControl;

/// The absolute path, with links resolved, so that one file has one lock.
pub(super) fn resolve(path: &Path) -> Result<PathBuf, StoreError> {
    if path.extension().is_none_or(|extension| extension != EXTENSION) {
        return Err(StoreError::WrongExtension(path.to_owned()));
    }
    let absolute = std::path::absolute(path).map_err(StoreError::io("find the project", path))?;
    Ok(absolute.canonicalize().unwrap_or(absolute))
}

/// The path of a project file that a person named: `.spotcheck` is added if it is missing.
pub fn with_extension(path: &Path) -> PathBuf {
    match path.extension() {
        Some(extension) if extension == EXTENSION => path.to_owned(),
        _ => companion(path, &format!(".{EXTENSION}")),
    }
}

/// The names of SQLite's companion files of a database.
pub(super) fn companion(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

pub(super) fn remove_if_there(path: &Path) {
    if let Err(error) = local_file::if_there(std::fs::remove_file(path)) {
        log::warn!("could not remove {}: {error}", path.display());
    }
}

/// Lets SQLite merge a file's journal into it, before another file replaces it.
pub(super) fn fold_journal(path: &Path) {
    if let Ok(connection) = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE) {
        let _ = connection.query_row("PRAGMA wal_checkpoint(truncate)", [], |_| Ok(()));
    }
    remove_if_there(&companion(path, "-wal"));
    remove_if_there(&companion(path, "-shm"));
}

/// A compact copy of the committed state. Only reads the original, although SQLite counts it as writing. `copy` is
/// empty or does not exist.
pub(super) fn vacuum_into(connection: &Connection, copy: &Path) -> rusqlite::Result<()> {
    // SQLite takes the name as text; a lossy name would be another file.
    let name = copy.to_str().ok_or_else(|| rusqlite::Error::InvalidPath(copy.to_owned()))?;
    let query_only: bool = connection.pragma_query_value(None, "query_only", |row| row.get(0))?;
    connection.pragma_update(None, "query_only", false)?;
    let copied = connection.execute("VACUUM INTO ?1", [name]);
    connection.pragma_update(None, "query_only", query_only)?;
    copied.map(drop)
}

/// As [`vacuum_into`]. Reports progress in bytes, and fails as interrupted once the task is canceled.
pub(super) fn vacuum_with_progress(
    connection: &Connection,
    copy: &Path,
    control: &TaskControl,
) -> rusqlite::Result<()> {
    const REPORT_EVERY: Duration = Duration::from_millis(100);
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let total = (number("page_count")? * number("page_size")?) as u64;
    control.set_total(Some(total));
    let interrupt = connection.get_interrupt_handle();
    let _hook = control.on_cancel(move || interrupt.interrupt());
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reporter = scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                std::thread::park_timeout(REPORT_EVERY);
                if let Ok(written) = std::fs::metadata(copy) {
                    control.set_done(written.len().min(total));
                }
            }
        });
        let copied = vacuum_into(connection, copy);
        is_done.store(true, Ordering::Relaxed);
        reporter.thread().unpark();
        copied
    })
}

/// An unfinished file, in the folder of the final one. It has the permissions of any new file, according to the umask.
/// Errors do not name it, because the user did not choose it.
pub fn partial_file(folder: &Path, prefix: &OsStr) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let file = builder.tempfile_in(folder);
    file.map_err(|error| nameless(&error))
}

/// The error without the name of the unfinished file.
pub(crate) fn nameless(error: &io::Error) -> io::Error {
    error.kind().into()
}

/// The path of the project, and the identity of its file. Both change if the project continues in a copy.
pub(super) struct ProjectFile(RwLock<Option<Located>>);

struct Located {
    path: PathBuf,
    identity: Option<Identity>,
}

/// The device and number of a file. Queried by path, because opening the file next to SQLite and closing it again would
/// drop SQLite's own locks (sqlite.org/howtocorrupt.html, 2.2).
type Identity = (u64, u64);

impl ProjectFile {
    pub(super) fn in_memory() -> Self {
        Self(RwLock::new(None))
    }

    pub(super) fn new(path: PathBuf) -> Self {
        let file = Self::in_memory();
        file.move_to(path);
        file
    }

    pub(super) fn move_to(&self, path: PathBuf) {
        let identity = identity_of(&path);
        let mut located = self.0.write();
        *located = Some(Located { path, identity });
    }

    /// `None` for a project in memory.
    pub(super) fn path(&self) -> Option<PathBuf> {
        let located = self.0.read();
        located.as_ref().map(|located| located.path.clone())
    }

    /// # Errors
    /// The file was deleted, renamed or replaced: anything written now would be lost when the program ends.
    pub(super) fn check_still_there(&self) -> Result<(), String> {
        let located = self.0.read();
        match &*located {
            Some(Located { path, identity }) if identity_of(path) != *identity => Err(format!(
                "the project file was deleted, renamed or replaced while it was open; restore it, or save the project \
                under another name: {}",
                path.display()
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(unix)]
fn identity_of(path: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    let metadata = path.metadata().ok()?;
    Some((metadata.dev(), metadata.ino()))
}

/// An open file cannot be deleted or renamed here.
#[cfg(not(unix))]
fn identity_of(path: &Path) -> Option<Identity> {
    path.exists().then_some((0, 0))
}
