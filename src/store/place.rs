//! The file that a project lies in, as long as it is open.

use std::path::{Path, PathBuf};

/// Where the project lies, and how to recognise its file.
pub(super) enum Place {
    Memory,
    File {
        path: PathBuf,
        identity: Option<Identity>,
    },
}

/// Device and number of a file. Asked for by its path: to open the file beside SQLite and to close it again would drop
/// SQLite's own locks (sqlite.org/howtocorrupt.html, 2.2).
pub(super) type Identity = (u64, u64);

impl Place {
    pub(super) fn of_file(path: PathBuf) -> Self {
        let identity = identity_of(&path);
        Self::File { path, identity }
    }

    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::Memory => None,
            Self::File { path, .. } => Some(path),
        }
    }

    /// # Errors
    /// Somebody removed, renamed or replaced the file: what is written now would be lost when the program ends.
    pub(super) fn check_still_there(&self) -> Result<(), String> {
        match self {
            Self::File { path, identity } if identity_of(path) != *identity => Err(format!(
                "the project file was removed, renamed or replaced while it was open; put it back, or save the project under \
                 another name: {}",
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

/// An open file cannot be removed or renamed here.
#[cfg(not(unix))]
fn identity_of(path: &Path) -> Option<Identity> {
    path.exists().then_some((0, 0))
}
