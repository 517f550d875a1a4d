//! Temporary folders that are cleaned up even after a kill.

use std::fs::File;
use std::io;
use std::path::Path;

use tempfile::TempDir;

const PREFIX: &str = "spotcheck-";
/// Locked as long as the process that created the folder lives.
const LOCK: &str = ".in-use";

/// A folder for temporary files that only this user can read. It is deleted when dropped; if the process was killed, by
/// the next one that creates such a folder.
pub struct Scratch {
    // Declared before the folder: an open file cannot be deleted on every system.
    _lock: File,
    folder: TempDir,
}

impl Scratch {
    /// Creates a folder in the system's temporary folder, which `TMPDIR` can change.
    ///
    /// # Errors
    /// Nothing can be written there.
    pub fn new() -> io::Result<Self> {
        Self::new_in(&std::env::temp_dir())
    }

    fn new_in(parent: &Path) -> io::Result<Self> {
        remove_abandoned(parent);
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(std::fs::Permissions::from_mode(0o700));
        }
        let folder = builder.tempdir_in(parent)?;
        // Renamed only once it is locked, so that no other process finds it unlocked.
        let unnamed = folder.path().join(format!("{LOCK}.new"));
        let lock = File::create_new(&unnamed)?;
        lock.lock()?;
        std::fs::rename(&unnamed, folder.path().join(LOCK))?;
        Ok(Self { _lock: lock, folder })
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Deletes the folders of killed processes.
    pub fn clean_up() {
        remove_abandoned(&std::env::temp_dir());
    }
}

fn remove_abandoned(parent: &Path) {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries {
        if entry.file_name().to_string_lossy().starts_with(PREFIX) && is_abandoned(&entry.path()) {
            // What cannot be deleted now may be next time.
            if let Err(error) = std::fs::remove_dir_all(entry.path()) {
                log::warn!("could not remove {}: {error}", entry.path().display());
            }
        }
    }
}

/// Whether this is such a folder, and no process uses it.
fn is_abandoned(folder: &Path) -> bool {
    let lock = folder.join(LOCK);
    let is_file = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_file());
    is_file(&lock) && File::open(&lock).is_ok_and(|lock| lock.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_folder_is_removed_with_its_owner() {
        let parent = tempfile::tempdir().unwrap();
        let used = Scratch::new_in(parent.path()).unwrap();
        std::fs::write(used.path().join("a"), b"x").unwrap();
        // As a killed process leaves it: the lock is released, the files stay.
        let killed = parent.path().join("spotcheck-killed");
        std::fs::create_dir(&killed).unwrap();
        std::fs::write(killed.join(LOCK), b"").unwrap();
        let foreign = parent.path().join("spotcheck-notes");
        std::fs::create_dir(&foreign).unwrap();
        let next = Scratch::new_in(parent.path()).unwrap();
        assert!(used.path().join("a").is_file());
        assert!(!killed.exists());
        assert!(foreign.is_dir());
        let gone = next.path().to_owned();
        drop(next);
        assert!(!gone.exists());
    }
}
