//! Notices files that appear, change or vanish while a folder is open.
//!
//! Events of the operating system are collected until none has arrived for a moment; then the files themselves are
//! checked. Not every system reports changes that another computer made on a network drive.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, EventKind};

use super::walk::{FolderWatch, Report, Shared, Walk, is_hidden_below, reason};
use super::{file_name, name_below, sample, uri_of};
use crate::domain::{ListingChange, Sample};
use crate::image::source::{is_listed, may_hold_records};

/// Files are checked after this long without events,
const QUIET: Duration = Duration::from_millis(150);
/// or after this long with continuous events.
const MAX_WAIT: Duration = Duration::from_secs(1);
/// Container files are scanned as a whole each time, so the scan waits until the file seems to be complete.
const RECORDS_QUIET: Duration = Duration::from_secs(2);
/// Maximum number of paths that wait for a check; beyond it, everything is listed again.
const MAX_WAITING: usize = 8192;
/// Watches the folders; `None` if the system cannot watch at all, after `report` received the reason.
pub(super) fn watch(roots: &[PathBuf], report: &Report) -> Option<FolderWatch> {
    let (sender, events) = sync_channel(MAX_WAITING);
    let missed = Arc::new(AtomicBool::new(false));
    let handler = handler(sender, Arc::clone(&missed));
    let watcher =
        notify::recommended_watcher(handler).map_err(|error| report(ListingChange::Unwatched(reason(&error)))).ok()?;
    let watch = FolderWatch::new(watcher, roots, report);
    let observer =
        Observer { watch: Arc::downgrade(&watch.0), roots: roots.to_vec(), report: Arc::clone(report), missed };
    std::thread::Builder::new()
        .name("watch the folder".to_owned())
        .spawn(move || observer.run(&events))
        .map_err(|error| report(ListingChange::Unwatched(error.to_string())))
        .ok()?;
    Some(watch)
}

/// Passes on the paths to check. Never waits, because the system's own queue would overflow.
fn handler(sender: SyncSender<PathBuf>, missed: Arc<AtomicBool>) -> impl FnMut(notify::Result<notify::Event>) {
    move |event| {
        let Ok(event) = event else {
            missed.store(true, Ordering::Relaxed);
            return;
        };
        if event.need_rescan() {
            missed.store(true, Ordering::Relaxed);
        }
        // Reading is not a change; Spotcheck itself reads all the time.
        let is_change = !matches!(event.kind, EventKind::Access(access)
            if access != AccessKind::Close(AccessMode::Write));
        if is_change || event.need_rescan() {
            for path in event.paths {
                if sender.try_send(path).is_err() {
                    missed.store(true, Ordering::Relaxed);
                }
            }
        }
    }
}

/// Turns changed paths into changes of the listing.
struct Observer {
    /// For adding new folders. Weak, because the observer ends with the watch.
    watch: Weak<Shared>,
    roots: Vec<PathBuf>,
    report: Report,
    /// Events were lost.
    missed: Arc<AtomicBool>,
}

impl Observer {
    fn run(&self, events: &Receiver<PathBuf>) {
        let mut growing = Growing::default();
        loop {
            let mut paths = match growing.wait(events) {
                Ok(first) => collect(first, events),
                Err(RecvTimeoutError::Timeout) => BTreeSet::new(),
                Err(RecvTimeoutError::Disconnected) => return,
            };
            if self.missed.swap(false, Ordering::Relaxed) {
                growing = Growing::default();
                self.list_anew();
                continue;
            }
            growing.take_over(&mut paths);
            paths.extend(growing.take_quiet());
            self.check_files(paths);
        }
    }

    fn list_anew(&self) {
        let source = super::LocalSource::from_paths(self.roots.clone());
        let samples = super::Source::pages(&source).flat_map(|page| page.samples);
        (self.report)(ListingChange::Relisted(samples.collect()));
    }

    fn check_files(&self, paths: BTreeSet<PathBuf>) {
        let mut seen = Vec::new();
        let mut gone = Vec::new();
        for path in paths {
            let Some(root) = self.root_of(&path) else {
                continue;
            };
            match path.metadata() {
                Ok(metadata) if metadata.is_dir() => {
                    let watch = self.watch.upgrade().map(FolderWatch);
                    let walk = Walk::from(root.to_owned(), path, watch);
                    seen.extend(walk.filter_map(Result::ok));
                }
                Ok(metadata) => seen.extend(self.file(root, &path, &metadata)),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    gone.push(uri_of(&path));
                }
                // The file exists but is not readable: reading it will report the reason.
                Err(_) => {}
            }
        }
        if !seen.is_empty() {
            (self.report)(ListingChange::Seen(seen));
        }
        if !gone.is_empty() {
            (self.report)(ListingChange::Gone(gone));
        }
    }

    fn file(&self, root: &Path, path: &Path, metadata: &std::fs::Metadata) -> Option<Sample> {
        let is_named = self.roots.iter().any(|root| root == path);
        if !metadata.is_file() || !(is_named || is_listed(path)) {
            return None;
        }
        let name = if is_named { file_name(path).into_owned() } else { name_below(root, path) };
        sample(path, name, metadata).ok()
    }

    /// `None` for hidden paths, and for neighbors of a file that was opened.
    fn root_of(&self, path: &Path) -> Option<&Path> {
        let root = self.roots.iter().find(|root| path.starts_with(root))?;
        (!is_hidden_below(root, path)).then_some(root.as_path())
    }
}

/// Container files that were written to, and when.
#[derive(Default)]
struct Growing(BTreeMap<PathBuf, Instant>);

impl Growing {
    /// The next changed path; a timeout if one of these files is due for a check first.
    fn wait(&self, events: &Receiver<PathBuf>) -> Result<PathBuf, RecvTimeoutError> {
        match self.0.values().min() {
            Some(written) => events.recv_timeout(RECORDS_QUIET.saturating_sub(written.elapsed())),
            None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
        }
    }

    /// Moves container files out of `paths`, except deleted ones.
    fn take_over(&mut self, paths: &mut BTreeSet<PathBuf>) {
        paths.retain(|path| {
            let is_growing = may_hold_records(path) && path.is_file();
            if is_growing {
                self.0.insert(path.clone(), Instant::now());
            }
            !is_growing
        });
    }

    fn take_quiet(&mut self) -> BTreeSet<PathBuf> {
        let is_quiet = |_: &PathBuf, written: &mut Instant| written.elapsed() >= RECORDS_QUIET;
        self.0.extract_if(.., is_quiet).map(|(path, _)| path).collect()
    }
}

/// Waits until no more events arrive.
fn collect(first: PathBuf, events: &Receiver<PathBuf>) -> BTreeSet<PathBuf> {
    let begun = Instant::now();
    let mut paths = BTreeSet::from([first]);
    while begun.elapsed() < MAX_WAIT {
        match events.recv_timeout(QUIET) {
            Ok(path) => drop(paths.insert(path)),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::super::LocalSource;
    use super::*;
    use crate::image::source::Source;

    fn watched(folder: &Path) -> (LocalSource, mpsc::Receiver<ListingChange>) {
        let source = LocalSource::open(folder).unwrap();
        let (sender, changes) = mpsc::channel();
        source.watch(Box::new(move |change| sender.send(change).unwrap_or(())));
        assert_eq!(source.pages().count(), 1);
        (source, changes)
    }

    /// Waits until every name was reported as seen (`name`) or gone (`-name`).
    fn wait_for(changes: &mpsc::Receiver<ListingChange>, names: &[&str]) {
        let mut missing: BTreeSet<String> = names.iter().map(|name| (*name).to_owned()).collect();
        while !missing.is_empty() {
            match changes.recv().unwrap() {
                ListingChange::Seen(samples) => {
                    for sample in samples {
                        missing.remove(&sample.name);
                    }
                }
                ListingChange::Gone(uris) => {
                    for uri in uris {
                        missing.remove(&format!("-{}", uri.file_name()));
                    }
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn added_changed_and_removed_files_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.jpg"), b"a").unwrap();
        let (_source, changes) = watched(folder.path());
        std::fs::write(folder.path().join("b.jpg"), b"b").unwrap();
        std::fs::write(folder.path().join("notes.txt"), b"n").unwrap();
        wait_for(&changes, &["b.jpg"]);
        std::fs::remove_file(folder.path().join("a.jpg")).unwrap();
        wait_for(&changes, &["-a.jpg"]);
        std::fs::rename(folder.path().join("b.jpg"), folder.path().join("c.jpg")).unwrap();
        wait_for(&changes, &["-b.jpg", "c.jpg"]);
    }

    #[test]
    fn new_folder_is_listed_and_watched() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.jpg"), b"a").unwrap();
        let (_source, changes) = watched(folder.path());
        let other = tempfile::tempdir_in(folder.path().parent().unwrap()).unwrap();
        std::fs::create_dir(other.path().join("new")).unwrap();
        std::fs::write(other.path().join("new/1.jpg"), b"1").unwrap();
        std::fs::rename(other.path().join("new"), folder.path().join("new")).unwrap();
        wait_for(&changes, &["new/1.jpg"]);
        std::fs::write(folder.path().join("new/2.jpg"), b"2").unwrap();
        wait_for(&changes, &["new/2.jpg"]);
        std::fs::remove_dir_all(folder.path().join("new")).unwrap();
        wait_for(&changes, &["-new"]);
    }

    #[test]
    fn replaced_single_file_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("picture");
        std::fs::write(&file, b"old").unwrap();
        let (_source, changes) = watched(&file);
        std::fs::write(folder.path().join("other.jpg"), b"o").unwrap();
        std::fs::write(folder.path().join("image~"), b"newer").unwrap();
        std::fs::rename(folder.path().join("image~"), &file).unwrap();
        let ListingChange::Seen(samples) = changes.recv().unwrap() else {
            panic!("it was not seen");
        };
        assert_eq!(samples.len(), 1);
        assert_eq!((samples[0].name.as_str(), samples[0].size_bytes), ("picture", 5));
    }
}
