//! The file of an open project.

use std::path::{Path, PathBuf};

use parking_lot::RwLock;

/// The path of the project, and the identity of its file. Both change if the project continues in a copy.
pub(crate) struct Place(RwLock<Option<Located>>);

struct Located {
    path: PathBuf,
    identity: Option<Identity>,
}

/// The device and number of a file. Queried by path, because opening the file next to SQLite and closing it again would
/// drop SQLite's own locks (sqlite.org/howtocorrupt.html, 2.2).
type Identity = (u64, u64);

impl Place {
    pub(crate) fn in_memory() -> Self {
        Self(RwLock::new(None))
    }

    pub(crate) fn of_file(path: PathBuf) -> Self {
        let place = Self::in_memory();
        place.move_to(path);
        place
    }

    pub(crate) fn move_to(&self, path: PathBuf) {
        let identity = identity_of(&path);
        let mut located = self.0.write();
        *located = Some(Located { path, identity });
    }

    /// `None` for a project in memory.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        let located = self.0.read();
        located.as_ref().map(|located| located.path.clone())
    }

    /// # Errors
    /// The file was deleted, renamed or replaced: anything written now would be lost when the program ends.
    pub(crate) fn check_still_there(&self) -> Result<(), String> {
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
