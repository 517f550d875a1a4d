//! The folders that Spotcheck writes to, temporary ones, and those of the files that come with it. No other module
//! knows them.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use directories::ProjectDirs;
use tempfile::TempDir;

/// If set, everything that Spotcheck writes is below this folder (a USB stick, a test) instead of the user's own
/// folders.
pub const HOME_VARIABLE: &str = "SPOTCHECK_HOME";

/// The folders for downloads, settings, caches and logs. They need not exist yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppDirs {
    /// Models and the ONNX Runtime library.
    pub data: PathBuf,
    /// The project file of each opened source.
    pub projects: PathBuf,
    pub config: PathBuf,
    /// What can be recreated: thumbnails, logs.
    pub cache: PathBuf,
}

impl AppDirs {
    /// The folders below `SPOTCHECK_HOME` if it is set, otherwise those of the operating system.
    ///
    /// # Errors
    /// The user has no home folder and `SPOTCHECK_HOME` is not set.
    pub fn find() -> Result<Self, NoHome> {
        match std::env::var_os(HOME_VARIABLE).filter(|home| !home.is_empty()) {
            Some(home) => Ok(Self::below(&PathBuf::from(home))),
            None => ProjectDirs::from("", "", "spotcheck").map(|project| Self::from_project(&project)).ok_or(NoHome),
        }
    }

    /// All folders below one folder.
    pub fn below(home: &std::path::Path) -> Self {
        Self {
            data: home.join("data"),
            projects: home.join("data/projects"),
            config: home.join("config"),
            cache: home.join("cache"),
        }
    }

    /// Records of unfinished uploads.
    pub fn uploads(&self) -> PathBuf {
        self.data.join("uploads")
    }

    /// Records of Batch Transform jobs started from here.
    pub fn jobs(&self) -> PathBuf {
        self.data.join("jobs")
    }

    /// Records of training jobs.
    pub fn training_jobs(&self) -> PathBuf {
        self.data.join("training-jobs")
    }

    /// Records of endpoints deployed from here.
    pub fn endpoints(&self) -> PathBuf {
        self.data.join("endpoints")
    }

    /// The user's table of instance prices.
    pub fn prices(&self) -> PathBuf {
        self.config.join("prices.toml")
    }

    /// What was proven about the embeddings of models.
    pub fn proofs(&self) -> PathBuf {
        self.cache.join("embedding-proofs")
    }

    pub fn log_file(&self) -> PathBuf {
        self.cache.join("spotcheck.log")
    }

    fn from_project(project: &ProjectDirs) -> Self {
        Self {
            data: project.data_local_dir().to_owned(),
            projects: project.data_local_dir().join("projects"),
            config: project.config_dir().to_owned(),
            cache: project.cache_dir().to_owned(),
        }
    }
}

/// The path of a file or folder that comes with Spotcheck, such as `docs/README.md`; `None` if it is not installed.
pub fn shipped(path: &str) -> Option<PathBuf> {
    shipped_folders().into_iter().map(|folder| folder.join(path)).find(|path| path.exists())
}

/// The folders that may contain the files that come with Spotcheck, laid out as in the repository: those of an installed
/// program (`PREFIX/bin/spotcheck` has `PREFIX/share/spotcheck`, an app on macOS has `Resources`), the folders above the
/// program (`target/release` belongs to the repository two folders up), and the repository that it was built from.
pub fn shipped_folders() -> Vec<PathBuf> {
    let above = program_folders();
    let prefix = above.get(1).into_iter();
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(PathBuf::from);
    let installed = prefix.flat_map(|prefix| [prefix.join("share/spotcheck"), prefix.join("Resources")]);
    installed.chain(above.iter().take(5).cloned()).chain(source).collect()
}

/// The libraries of a package for a system: `PREFIX/bin/spotcheck` has `PREFIX/lib/spotcheck`.
pub fn package_library_folder() -> Option<PathBuf> {
    program_folders().get(1).map(|prefix| prefix.join("lib/spotcheck"))
}

/// The package folders of the Python environment that Spotcheck is installed in: `PREFIX/bin/spotcheck` has
/// `PREFIX/lib/python3.*/site-packages`. Links, as uv and pipx make them, are followed. Empty if there is none.
pub fn python_packages() -> Vec<PathBuf> {
    let folders = program_folders();
    let Some(prefix) = folders.get(1) else {
        return Vec::new();
    };
    if cfg!(windows) {
        return vec![prefix.join("Lib").join("site-packages"), prefix.join("site-packages")];
    }
    let entries = std::fs::read_dir(prefix.join("lib")).into_iter().flatten().flatten();
    let pythons = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("python3"));
    // Debian's Python installs below `dist-packages`.
    pythons.flat_map(|python| ["site-packages", "dist-packages"].map(|name| python.path().join(name))).collect()
}

/// The folders above the program's file, innermost first.
fn program_folders() -> Vec<PathBuf> {
    let program = std::env::current_exe().and_then(std::fs::canonicalize).unwrap_or_default();
    program.ancestors().skip(1).map(PathBuf::from).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no home folder; set {HOME_VARIABLE} to a folder for Spotcheck's files")]
pub struct NoHome;

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
