//! A folder and everything below it, and the folders that are watched for changes.

use std::ffi::{OsStr, OsString};
use std::fs::{DirEntry, FileType, ReadDir};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use notify::{ErrorKind, RecommendedWatcher, RecursiveMode, Watcher};
use parking_lot::Mutex;

use super::{Entry, LeftOutCount, ListingOrder, name_below, problem, sample, uri_of};
use crate::domain::{ListingChange, Problem};
use crate::image::source::is_listed;
use crate::local_file;

/// The number of entries that are sorted first, so that they need not wait for the rest.
const FIRST_SORTED: usize = 256;

/// Walks a folder depth first, each folder in natural order, without recursion. Never follows a symbolic link back into
/// an enclosing folder.
pub(super) struct Walk {
    root: PathBuf,
    /// The start of the walk: the root, or a folder below it that has just appeared.
    start: Option<PathBuf>,
    /// From the outermost folder to the current one.
    folders: Vec<Folder>,
    order: ListingOrder,
    watch: Option<FolderWatch>,
    left_out: Arc<LeftOutCount>,
}

struct Folder {
    path: PathBuf,
    real_path: PathBuf,
    entries: Entries,
}

enum Entries {
    Ordered(Ordered),
    AsRead(ReadDir),
}

/// An entry before its metadata is read.
struct Found {
    name: OsString,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Folder,
    File,
    /// Can lead to either.
    Link,
}

impl Walk {
    pub(super) fn new(
        root: PathBuf,
        order: ListingOrder,
        watch: Option<FolderWatch>,
        left_out: Arc<LeftOutCount>,
    ) -> Self {
        Self { order, left_out, ..Self::from(root.clone(), root, watch) }
    }

    /// A walk of `start` and everything below it, with names relative to `root`.
    pub(super) fn from(root: PathBuf, start: PathBuf, watch: Option<FolderWatch>) -> Self {
        let order = ListingOrder::Natural;
        Self { root, start: Some(start), folders: Vec::new(), order, watch, left_out: Arc::default() }
    }

    fn enter(&mut self, path: PathBuf) -> Option<Entry> {
        let real_path = match path.canonicalize() {
            Ok(real_path) => real_path,
            Err(error) => return Some(Err(problem(&path, error))),
        };
        if self.folders.iter().any(|outer| outer.real_path == real_path) {
            let message = "is a symbolic link to a parent folder; it was skipped";
            return Some(Err(Problem::new(uri_of(&path), message)));
        }
        // Before the folder is read: a file that appears in between is reported twice rather than never.
        if let Some(watch) = &self.watch {
            watch.add(&path);
        }
        let entries = match std::fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) => return Some(Err(problem(&path, error))),
        };
        let entries = match self.order {
            ListingOrder::Any => Entries::AsRead(entries),
            ListingOrder::Natural => {
                let entries = entries.filter_map(Result::ok).filter_map(|entry| found(&entry, &self.left_out));
                Entries::Ordered(Ordered::new(entries.collect()))
            }
        };
        self.folders.push(Folder { path, real_path, entries });
        None
    }

    /// A sample, a problem, or `None` for a file of another kind.
    fn visit(&mut self, path: PathBuf, kind: Kind) -> Option<Entry> {
        if kind == Kind::Folder {
            return self.enter(path);
        }
        let is_wanted = is_listed(&path);
        match local_file::follow(&path) {
            Ok(metadata) if metadata.is_dir() => self.enter(path),
            Ok(metadata) if is_wanted && metadata.is_file() => {
                Some(sample(&path, name_below(&self.root, &path), &metadata))
            }
            Err(error) if is_wanted => Some(Err(problem(&path, error))),
            Ok(_) | Err(_) => {
                self.left_out.others.fetch_add(1, Ordering::Relaxed);
                None
            }
        }
    }
}

impl Iterator for Walk {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        if let Some(start) = self.start.take()
            && let Some(entry) = self.enter(start)
        {
            return Some(entry);
        }
        while let Some(folder) = self.folders.last_mut() {
            let next = match &mut folder.entries {
                Entries::Ordered(entries) => entries.next(),
                Entries::AsRead(entries) => {
                    entries.filter_map(Result::ok).find_map(|entry| found(&entry, &self.left_out))
                }
            };
            let Some(found) = next else {
                self.folders.pop();
                continue;
            };
            let path = folder.path.join(found.name);
            if let Some(entry) = self.visit(path, found.kind) {
                return Some(entry);
            }
        }
        None
    }
}

/// `None` for hidden entries and for files that are not listed.
fn found(entry: &DirEntry, left_out: &LeftOutCount) -> Option<Found> {
    let name = entry.file_name();
    if is_hidden(&name) {
        left_out.hidden.fetch_add(1, Ordering::Relaxed);
        return None;
    }
    let kind = entry.file_type().ok().and_then(kind);
    match kind {
        Some(kind) if kind != Kind::File || is_listed(&name) => Some(Found { name, kind }),
        _ => {
            left_out.others.fetch_add(1, Ordering::Relaxed);
            None
        }
    }
}

fn kind(file_type: FileType) -> Option<Kind> {
    if file_type.is_dir() {
        Some(Kind::Folder)
    } else if file_type.is_file() {
        Some(Kind::File)
    } else {
        file_type.is_symlink().then_some(Kind::Link)
    }
}

pub(super) fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

/// Returns the entries of one folder in natural order, sorting only as many as needed.
struct Ordered {
    sorted: std::vec::IntoIter<Found>,
    rest: Vec<Found>,
    is_first: bool,
}

impl Ordered {
    fn new(entries: Vec<Found>) -> Self {
        Self { sorted: Vec::new().into_iter(), rest: entries, is_first: true }
    }

    fn sort_more(&mut self) {
        let mut batch = if self.is_first && self.rest.len() > 2 * FIRST_SORTED {
            self.rest.select_nth_unstable_by(FIRST_SORTED, compare_names);
            let later = self.rest.split_off(FIRST_SORTED);
            std::mem::replace(&mut self.rest, later)
        } else {
            std::mem::take(&mut self.rest)
        };
        self.is_first = false;
        batch.sort_unstable_by(compare_names);
        self.sorted = batch.into_iter();
    }
}

impl Iterator for Ordered {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        if self.sorted.len() == 0 && !self.rest.is_empty() {
            self.sort_more();
        }
        self.sorted.next()
    }
}

fn compare_names(left: &Found, right: &Found) -> std::cmp::Ordering {
    let (left, right) = (&left.name, &right.name);
    alphanumeric_sort::compare_str(left.to_string_lossy(), right.to_string_lossy()).then_with(|| left.cmp(right))
}

/// Whether a part of `path` below `root` is hidden.
pub(super) fn is_hidden_below(root: &Path, path: &Path) -> bool {
    let below = path.strip_prefix(root).unwrap_or(path);
    below.iter().any(is_hidden)
}

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
