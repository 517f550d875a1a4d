//! Local folders and files, and whether a failed read concerns one file or its whole folder.

mod observer;
mod walk;

use std::collections::HashMap;
use std::fs::Metadata;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use parking_lot::Mutex;

use super::{ListingChange, Page, Source, SourceError, absolute};
use crate::aws::upload::plan::SkippedFiles;
use crate::domain::{FileStamp, Problem, Sample, SampleUri};
use crate::local_file;

use walk::{FolderWatch, Walk};

/// The first page is small, so that it arrives immediately; later pages are larger.
const FIRST_PAGE_LEN: usize = 100;
const PAGE_LEN: usize = 2000;

/// A folder (everything below it except hidden files, in natural order: `img2` before `img10`), a single file, or a
/// list of either.
pub struct LocalSource {
    name: String,
    roots: Vec<PathBuf>,
    /// Set when changes are to be reported; folders are added as they are listed.
    watch: OnceLock<Option<FolderWatch>>,
    left_out: Arc<LeftOutCount>,
    reach: Reach,
    order: ListingOrder,
}

/// The order of the files in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListingOrder {
    Natural,
    /// That of the file system, which needs no memory.
    Any,
}

/// The number of files that listings skipped.
#[derive(Default)]
struct LeftOutCount {
    hidden: AtomicU64,
    others: AtomicU64,
}

impl LocalSource {
    /// # Errors
    /// The path does not exist, is not readable, or is a pipe or device.
    pub fn open(path: &Path) -> Result<Self, SourceError> {
        let root = absolute(path)?;
        local_file::metadata(&root).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => SourceError::NoSuchPlace,
            _ => error.into(),
        })?;
        let source = Self::new(root.display().to_string(), vec![root.clone()]);
        source.reach.remember(&root);
        Ok(source)
    }

    /// Lists files in the order of the file system, so that the memory does not depend on their number.
    pub fn in_any_order(self) -> Self {
        Self { order: ListingOrder::Any, ..self }
    }

    /// Files and folders in the given order. Missing ones become problems of the listing.
    pub fn from_paths(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let roots: Vec<PathBuf> = paths.into_iter().map(|path| absolute(&path).unwrap_or(path)).collect();
        Self::new(format!("{} paths", roots.len()), roots)
    }

    fn new(name: String, roots: Vec<PathBuf>) -> Self {
        let order = ListingOrder::Natural;
        Self { name, roots, watch: OnceLock::new(), left_out: Arc::default(), reach: Reach::default(), order }
    }

    /// What the listings of this source have skipped so far.
    pub fn left_out(&self) -> SkippedFiles {
        SkippedFiles {
            hidden: self.left_out.hidden.load(Ordering::Relaxed),
            others: self.left_out.others.load(Ordering::Relaxed),
        }
    }
}

impl Source for LocalSource {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn pages(&self) -> Box<dyn Iterator<Item = Page> + Send> {
        let watch = self.watch.get().cloned().flatten();
        let left_out = Arc::clone(&self.left_out);
        let reach = self.reach.clone();
        let order = self.order;
        let list = move |root: PathBuf| {
            reach.remember(&root);
            list_root(root, order, watch.clone(), Arc::clone(&left_out))
        };
        Box::new(Pages { entries: Box::new(self.roots.clone().into_iter().flat_map(list)), next_len: FIRST_PAGE_LEN })
    }

    fn read(&self, uri: &SampleUri) -> Result<Vec<u8>, SourceError> {
        local_file::read(Path::new(uri.as_str())).map_err(|error| self.reach.judge(uri, error))
    }

    fn read_range(&self, uri: &SampleUri, range: Range<u64>) -> Result<Vec<u8>, SourceError> {
        local_file::read_range(Path::new(uri.as_str()), range).map_err(|error| self.reach.judge(uri, error))
    }

    fn watch(&self, report: Box<dyn Fn(ListingChange) + Send + Sync>) {
        self.watch.get_or_init(|| observer::watch(&self.roots, &Arc::from(report)));
    }
}

type Entry = Result<Sample, Problem>;

/// Splits a stream of entries into pages.
struct Pages {
    entries: Box<dyn Iterator<Item = Entry> + Send>,
    next_len: usize,
}

impl Iterator for Pages {
    type Item = Page;

    fn next(&mut self) -> Option<Page> {
        let mut page = Page::default();
        for entry in self.entries.by_ref().take(self.next_len) {
            match entry {
                Ok(sample) => page.samples.push(sample),
                Err(problem) => page.problems.push(problem),
            }
        }
        self.next_len = PAGE_LEN;
        (!page.samples.is_empty() || !page.problems.is_empty()).then_some(page)
    }
}

/// The samples of one root. A file that was named explicitly is a sample whatever its extension.
fn list_root(
    root: PathBuf,
    order: ListingOrder,
    watch: Option<FolderWatch>,
    left_out: Arc<LeftOutCount>,
) -> Box<dyn Iterator<Item = Entry> + Send> {
    match local_file::metadata(&root) {
        Ok(metadata) if metadata.is_dir() => Box::new(Walk::new(root, order, watch, left_out)),
        Ok(metadata) => {
            if let Some(watch) = watch {
                watch.add_folder_of(&root);
            }
            let name = file_name(&root).into_owned();
            Box::new(std::iter::once(sample(&root, name, &metadata)))
        }
        Err(error) => Box::new(std::iter::once(Err(problem(&root, error)))),
    }
}

fn sample(path: &Path, name: String, metadata: &Metadata) -> Entry {
    match path.to_str() {
        Some(uri) => Ok(Sample {
            modified_ns: metadata.modified().ok().and_then(nanoseconds),
            ..Sample::new(SampleUri::new(uri), name, metadata.len())
        }),
        None => Err(Problem::new(uri_of(path), "has a name that is not valid Unicode; rename it to open it")),
    }
}

/// The current version of an image file; `None` if it is not an accessible local file of its own.
pub fn stamp_on_disk(uri: &SampleUri) -> Option<FileStamp> {
    if uri.record().is_some() {
        return None;
    }
    let path = Path::new(uri.as_str());
    Some(sample(path, String::new(), &path.metadata().ok()?).ok()?.stamp())
}

/// Nanoseconds since 1970; `None` for a clock that is centuries off.
fn nanoseconds(time: SystemTime) -> Option<i64> {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    match since {
        Ok(after) => i64::try_from(after.as_nanos()).ok(),
        Err(before) => {
            let before = i64::try_from(before.duration().as_nanos()).ok()?;
            before.checked_neg()
        }
    }
}

fn problem(path: &Path, error: std::io::Error) -> Problem {
    Problem::new(uri_of(path), SourceError::from(error).to_string())
}

/// The path relative to `root`, with `/` between its parts.
fn name_below(root: &Path, path: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path);
    let parts: Vec<_> = below.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/")
}

fn uri_of(path: &Path) -> SampleUri {
    SampleUri::new(path.to_string_lossy())
}

fn file_name(path: &Path) -> std::borrow::Cow<'_, str> {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy()
}

/// The folders of a source, each with the file system that it was on when opened. Clones share the same data.
#[derive(Clone, Default)]
struct Reach(Arc<Mutex<HashMap<PathBuf, FileSystem>>>);

/// `None` if the operating system does not number file systems.
type FileSystem = Option<u64>;

impl Reach {
    /// `root`: a folder, or a file, which stands for the folder that contains it.
    fn remember(&self, root: &Path) {
        let folder = if root.is_dir() { root } else { root.parent().unwrap_or(root) };
        let mut folders = self.0.lock();
        if !folders.contains_key(folder)
            && let Ok(file_system) = file_system_of(folder)
        {
            folders.insert(folder.to_owned(), file_system);
        }
    }

    /// What `error`, from reading a file, means for the rest of the source.
    fn judge(&self, uri: &SampleUri, error: io::Error) -> SourceError {
        let path = Path::new(uri.as_str());
        let folders = self.0.lock();
        let root = path.ancestors().skip(1).find_map(|folder| {
            let (folder, file_system) = folders.get_key_value(folder)?;
            Some((folder.clone(), *file_system))
        });
        drop(folders);
        let Some((root, file_system)) = root else {
            return error.into();
        };
        let folder = path.parent().unwrap_or(&root);
        match why_unreachable(&root, file_system, folder) {
            Some(reason) => SourceError::Unreachable(reason),
            None => error.into(),
        }
    }
}

/// `root` was on `file_system`; `folder` is that of the unreadable file.
fn why_unreachable(root: &Path, file_system: FileSystem, folder: &Path) -> Option<String> {
    match file_system_of(root) {
        // An empty mount point remains after unmounting.
        Ok(found) if found != file_system => {
            return Some(format!(
                "the disk of this folder was unmounted or replaced; mount it again: {}",
                root.display()
            ));
        }
        Ok(_) | Err(_) => {}
    }
    // Not by metadata, which may still be cached for a disconnected disk.
    let read = std::fs::read_dir(folder).and_then(|mut entries| entries.next().transpose());
    let error = read.err()?;
    Some(match error.kind() {
        io::ErrorKind::NotFound => {
            format!("this folder no longer exists; restore it, or connect its disk: {}", folder.display())
        }
        io::ErrorKind::PermissionDenied => {
            format!("this folder is no longer readable; change its permissions: {}", folder.display())
        }
        _ => format!("could not read this folder ({error}); check its disk or network: {}", folder.display()),
    })
}

#[cfg(unix)]
fn file_system_of(folder: &Path) -> io::Result<FileSystem> {
    use std::os::unix::fs::MetadataExt;
    folder.metadata().map(|metadata| Some(metadata.dev()))
}

#[cfg(not(unix))]
fn file_system_of(folder: &Path) -> io::Result<FileSystem> {
    folder.metadata().map(|_| None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::source::{LocalSource, Source};

    fn names(folder: &Path) -> Vec<String> {
        let source = LocalSource::open(folder).unwrap();
        source.pages().flat_map(|page| page.samples).map(|sample| sample.name).collect()
    }

    fn folder_with(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, b"x").unwrap();
        }
        folder
    }

    #[test]
    fn files_are_in_natural_order_without_hidden_ones() {
        let folder =
            folder_with(&["img10.jpg", "img2.JPG", ".hidden.png", "a/1.png", ".git/x.png", "notes.txt", "고양이.webp"]);
        assert_eq!(names(folder.path()), ["a/1.png", "img2.JPG", "img10.jpg", "고양이.webp"]);
        let source = LocalSource::open(folder.path()).unwrap();
        source.pages().for_each(drop);
        let left_out = source.left_out();
        // `.hidden.png` and the folder `.git`; `notes.txt`.
        assert_eq!((left_out.hidden, left_out.others), (2, 1));
    }

    #[test]
    fn missing_folder_is_an_error() {
        let missing = Path::new("/no/such/folder");
        assert!(matches!(LocalSource::open(missing), Err(SourceError::NoSuchPlace)));
    }

    #[test]
    fn missing_listed_path_is_one_problem() {
        let folder = folder_with(&["b.jpg"]);
        let paths = [folder.path().join("a.jpg"), folder.path().join("b.jpg")];
        let page = LocalSource::from_paths(paths).pages().next().unwrap();
        assert_eq!(page.samples.len(), 1);
        assert!(page.problems[0].to_string().contains("a.jpg: "), "{:?}", page.problems);
    }

    #[cfg(unix)]
    #[test]
    fn symbolic_link_loop_is_reported_once() {
        let folder = folder_with(&["a/b/1.jpg"]);
        std::os::unix::fs::symlink(folder.path(), folder.path().join("a/b/back")).unwrap();
        let page = LocalSource::open(folder.path()).unwrap().pages().next().unwrap();
        assert_eq!(page.samples.len(), 1);
        assert_eq!(page.problems.len(), 1);
    }

    #[test]
    fn large_folder_is_in_natural_order() {
        let names_in: Vec<String> = (0..1000).map(|number| format!("{number}.jpg")).collect();
        let folder = folder_with(&names_in.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(names(folder.path()), names_in);
    }

    #[test]
    fn first_page_of_a_large_folder_is_small() {
        let names: Vec<String> = (0..250).map(|number| format!("{number}.jpg")).collect();
        let folder = folder_with(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let lens: Vec<usize> =
            LocalSource::open(folder.path()).unwrap().pages().map(|page| page.samples.len()).collect();
        assert_eq!(lens, [100, 150]);
    }

    fn unreachable_folder(name: &str) -> (tempfile::TempDir, PathBuf, SampleUri) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("images");
        let file = root.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, b"x").unwrap();
        let uri = SampleUri::new(file.to_str().unwrap());
        (folder, root, uri)
    }

    #[test]
    fn missing_file_is_local_and_missing_folder_global() {
        for name in ["a.jpg", "sub/a.jpg"] {
            let (folder, root, uri) = unreachable_folder(name);
            for source in [LocalSource::open(&root).unwrap(), LocalSource::from_paths([PathBuf::from(uri.as_str())])] {
                source.pages().for_each(drop);
                let away = folder.path().join("away");
                std::fs::rename(&root, &away).unwrap();
                for read in [source.read(&uri), source.read_range(&uri, 0..1)] {
                    assert!(matches!(read, Err(SourceError::Unreachable(_))), "{read:?}");
                }
                std::fs::rename(&away, &root).unwrap();
                assert_eq!(source.read(&uri).unwrap(), b"x");
                std::fs::remove_file(uri.as_str()).unwrap();
                for read in [source.read(&uri), source.read_range(&uri, 0..1)] {
                    assert!(matches!(read, Err(SourceError::NotFound)), "{read:?}");
                }
                std::fs::write(uri.as_str(), b"x").unwrap();
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn empty_mount_point_is_unreachable() {
        let (_folder, root, _) = unreachable_folder("a.jpg");
        let here = file_system_of(&root).unwrap();
        assert_eq!(why_unreachable(&root, here, &root), None);
        let other = here.map(|here| here + 1);
        let reason = why_unreachable(&root, other, &root).unwrap();
        assert!(reason.contains("unmounted"), "{reason}");
    }
}
