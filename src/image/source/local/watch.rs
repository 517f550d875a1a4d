//! The folders that are watched for changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use notify::{ErrorKind, RecommendedWatcher, RecursiveMode, Watcher};
use parking_lot::Mutex;

use crate::domain::ListingChange;

/// On Linux, each folder needs its own watch, which is added when the folder is listed; other systems watch everything
/// below a folder.
const MODE: RecursiveMode =
    if cfg!(target_os = "linux") { RecursiveMode::NonRecursive } else { RecursiveMode::Recursive };

pub(super) type Report = Arc<dyn Fn(ListingChange) + Send + Sync>;

/// Clones share one watch, which ends with the last of them.
#[derive(Clone)]
pub(super) struct FolderWatch(pub Arc<Shared>);

pub(super) struct Shared {
    watcher: Mutex<RecommendedWatcher>,
    report: Report,
    roots: Vec<PathBuf>,
    /// Whether it was reported that some changes go undetected.
    is_blind: AtomicBool,
}

impl FolderWatch {
    pub(super) fn new(watcher: RecommendedWatcher, roots: &[PathBuf], report: &Report) -> Self {
        Self(Arc::new(Shared {
            watcher: Mutex::new(watcher),
            report: Arc::clone(report),
            roots: roots.to_vec(),
            is_blind: AtomicBool::new(false),
        }))
    }

    pub(super) fn add(&self, folder: &Path) {
        let is_root = self.0.roots.iter().any(|root| root == folder);
        if MODE == RecursiveMode::NonRecursive || is_root {
            self.add_with(folder, MODE);
        }
    }

    /// Watches the folder of a single file, because programs often replace the file when saving, which only the folder
    /// reports.
    pub(super) fn add_folder_of(&self, file: &Path) {
        if let Some(folder) = file.parent() {
            self.add_with(folder, RecursiveMode::NonRecursive);
        }
    }

    fn add_with(&self, folder: &Path, mode: RecursiveMode) {
        let result = {
            let watcher = &self.0.watcher;
            let mut watcher = watcher.lock();
            watcher.watch(folder, mode)
        };
        if let Err(error) = result
            && !self.0.is_blind.swap(true, Ordering::Relaxed)
        {
            (self.0.report)(ListingChange::Unwatched(reason(&error)));
        }
    }
}

pub(super) fn reason(error: &notify::Error) -> String {
    match &error.kind {
        ErrorKind::MaxFilesWatch => {
            "the limit on watched folders was reached; raise fs.inotify.max_user_watches, or reopen the folder to \
             see changes"
                .to_owned()
        }
        ErrorKind::Io(error) => format!("{error}; reopen the folder to see changes"),
        _ => format!("{error}; reopen the folder to see changes"),
    }
}
