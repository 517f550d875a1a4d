//! Errors of project files.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use crate::tasks::Cancelled;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the name of a project file must end in .spotcheck: {}", .0.display())]
    WrongExtension(PathBuf),
    #[error("this is not a Spotcheck project; the file was not changed: {}", .0.display())]
    NotAProject(PathBuf),
    #[error(
        "this project was written by a newer version of Spotcheck (format {found}, this version reads up to {known}); \
        open it with that version: {}",
        path.display()
    )]
    Newer { path: PathBuf, found: u32, known: u32 },
    /// Only for a read-only project; a writer renames a damaged file and starts a new one.
    #[error("the project file is damaged ({reason}); open it in the window or with `spotcheck predict --project`, \
        which keeps a copy and recovers readable data: {}", path.display())]
    Damaged { path: PathBuf, reason: String },
    /// Nothing can be recovered.
    #[error("nothing in the project file can be read ({reason}); restore it from a copy: {}", path.display())]
    Lost { path: PathBuf, reason: String },
    #[error("another program has the project open ({holder}); close it there, or save a copy under another name: \
        {}", path.display())]
    Held { path: PathBuf, holder: String },
    #[error("the project is read-only: {0}")]
    ReadOnly(String),
    #[error("this project is already open; choose another name: {}", .0.display())]
    SamePath(PathBuf),
    #[error("could not {what}: {source}: {}", path.display())]
    Io {
        /// What was attempted: “create the folder”.
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("could not {what}: {reason}")]
    Database {
        /// What was attempted: “read the predictions”.
        what: &'static str,
        reason: String,
    },
    /// The file next to the project; it can be made again.
    #[error(
        "the file with the embeddings is damaged ({reason}); delete it, and fill it again with `spotcheck predict --resume`: {}",
        path.display()
    )]
    DamagedEmbeddings { path: PathBuf, reason: String },
    #[error("could not use the embeddings: {reason}: {}", path.display())]
    Embeddings {
        path: PathBuf,
        reason: String,
        /// Whether the file, or what SQLite needs next to it, cannot be written.
        is_read_only: bool,
    },
    /// Queued changes are kept in memory and retried.
    #[error("some changes are not saved yet: {0}")]
    Unsaved(String),
    /// Queued changes are kept in memory, but no attempt to save them in this file can succeed.
    #[error("this project can no longer be saved: {0}")]
    Stopped(String),
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

impl StoreError {
    /// Returns an error of a failed file operation, for `map_err`, with what was attempted.
    pub fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }

    /// Returns an error of a failed statement, for `map_err`, with what was attempted.
    pub fn database(what: &'static str) -> impl FnOnce(rusqlite::Error) -> Self {
        move |error| Self::Database { what, reason: explain(&error) }
    }
}

/// SQLite's code for an error, including SQL errors.
fn code(error: &rusqlite::Error) -> Option<ErrorCode> {
    match error {
        rusqlite::Error::SqlInputError { error, .. } => Some(error.code),
        error => error.sqlite_error_code(),
    }
}

/// The reason, and what to do about it if anything can be done.
pub(super) fn explain(error: &rusqlite::Error) -> String {
    let advice = match code(error) {
        Some(ErrorCode::DiskFull) => "the disk is full; free some space",
        Some(ErrorCode::SystemIoFailure) => "could not read or write the disk; check that it is connected and not full",
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another program is using the file; close it there"
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            "the file is write-protected; change its permissions"
        }
        Some(ErrorCode::CannotOpen) => "check the permissions of the file and of its folder",
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            "the project file is damaged; save the project under another name"
        }
        Some(ErrorCode::Unknown) => {
            return format!("the project file has an unexpected structure ({})", words_of(error));
        }
        _ => match error {
            rusqlite::Error::InvalidPath(_) => "its folder or file name is not valid Unicode; choose another place",
            _ => return error.to_string(),
        },
    };
    format!("{advice} ({error})")
}

/// SQLite's own message, without the statement.
fn words_of(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        error => error.to_string(),
    }
}

/// Whether another attempt may succeed: space may be free again, the disk back, or the file unlocked.
pub(super) fn may_pass(error: &rusqlite::Error) -> bool {
    code(error).is_some_and(|code| {
        matches!(
            code,
            ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::FileLockingProtocolFailed
                | ErrorCode::DiskFull
                | ErrorCode::SystemIoFailure
                | ErrorCode::OutOfMemory
                | ErrorCode::CannotOpen
                | ErrorCode::ReadOnly
                | ErrorCode::PermissionDenied
        )
    })
}

/// Whether the data to write is at fault rather than the disk: retrying would never help.
pub(super) fn is_of_the_change(error: &rusqlite::Error) -> bool {
    match code(error) {
        Some(code) => matches!(
            code,
            ErrorCode::ConstraintViolation
                | ErrorCode::TypeMismatch
                | ErrorCode::TooBig
                | ErrorCode::ParameterOutOfRange
        ),
        None => true,
    }
}

/// Whether a check was stopped because it took too long.
pub(super) fn is_interrupted(error: &rusqlite::Error) -> bool {
    code(error) == Some(ErrorCode::OperationInterrupted)
}

/// Whether a copy could be read instead.
pub(super) fn is_read_only(error: &rusqlite::Error) -> bool {
    matches!(code(error), Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen))
}

/// Whether the file is damaged rather than out of reach.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    match code(error) {
        Some(code) => matches!(code, ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::Unknown),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_has_its_own_advice() {
        use rusqlite::ffi;
        let codes = [
            (ffi::SQLITE_BUSY, "another program"),
            (ffi::SQLITE_FULL, "disk is full"),
            (ffi::SQLITE_IOERR_WRITE, "connected"),
            (ffi::SQLITE_READONLY, "write-protected"),
            (ffi::SQLITE_CANTOPEN, "and of its folder"),
            (ffi::SQLITE_CORRUPT, "damaged"),
        ];
        for (code, fact) in codes {
            let text = explain(&rusqlite::Error::SqliteFailure(ffi::Error::new(code), None));
            let found: Vec<&str> = codes.iter().map(|(_, fact)| *fact).filter(|fact| text.contains(fact)).collect();
            assert_eq!(found, [fact], "{text}");
            assert!(!text.contains("delete"), "{text}");
        }
    }
}
