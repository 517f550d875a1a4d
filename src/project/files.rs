//! The file of a project, SQLite's companion files, and copies.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::EXTENSION;
use super::error::StoreError;

/// The absolute path, with links resolved, so that one file has one lock.
pub(crate) fn resolve(path: &Path) -> Result<PathBuf, StoreError> {
    if path.extension().is_none_or(|extension| extension != EXTENSION) {
        return Err(StoreError::WrongExtension(path.to_owned()));
    }
    let absolute = std::path::absolute(path).map_err(StoreError::io("find the project", path))?;
    Ok(absolute.canonicalize().unwrap_or(absolute))
}

/// The names of SQLite's companion files of a database.
pub(crate) fn companion(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

pub(crate) fn remove_if_there(path: &Path) {
    if let Err(error) = std::fs::remove_file(path)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        log::warn!("could not remove {}: {error}", path.display());
    }
}

/// Lets SQLite merge a file's journal into it, before another file replaces it.
pub(crate) fn fold_journal(path: &Path) {
    if let Ok(connection) = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE) {
        let _ = connection.query_row("PRAGMA wal_checkpoint(truncate)", [], |_| Ok(()));
    }
    remove_if_there(&companion(path, "-wal"));
    remove_if_there(&companion(path, "-shm"));
}

/// A compact copy of the committed state. Only reads the original, although SQLite counts it as writing. `copy` is
/// empty or does not exist.
pub(crate) fn vacuum_into(connection: &Connection, copy: &Path) -> rusqlite::Result<()> {
    // SQLite takes the name as text; a lossy name would be another file.
    let name = copy.to_str().ok_or_else(|| rusqlite::Error::InvalidPath(copy.to_owned()))?;
    let query_only: bool = connection.pragma_query_value(None, "query_only", |row| row.get(0))?;
    connection.pragma_update(None, "query_only", false)?;
    let copied = connection.execute("VACUUM INTO ?1", [name]);
    connection.pragma_update(None, "query_only", query_only)?;
    copied.map(drop)
}
