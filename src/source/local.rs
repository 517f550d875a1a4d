//! Folders and files of this machine.

use std::collections::VecDeque;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{Page, Source, SourceError};
use crate::domain::{Problem, Sample, SampleUri};

/// A first page small enough to come at once; later pages are larger.
const FIRST_PAGE_LEN: usize = 100;
const PAGE_LEN: usize = 2000;

/// Extensions (lower case) of the files that are listed as samples.
const IMAGE_EXTENSIONS: [&str; 11] = [
    "jpg", "jpeg", "jpe", "jfif", "png", "webp", "bmp", "dib", "tif", "tiff", "gif",
];

/// A folder (everything below it, hidden files left out, in natural order: `img2` before `img10`), a single file, or a
/// list of either.
#[derive(Debug, Clone)]
pub struct LocalSource {
    name: String,
    roots: Vec<PathBuf>,
}

impl LocalSource {
    /// # Errors
    /// The path does not exist or is not readable.
    pub fn open(path: &Path) -> Result<Self, SourceError> {
        let root = std::path::absolute(path)?;
        root.metadata()?;
        Ok(Self {
            name: root.display().to_string(),
            roots: vec![root],
        })
    }

    /// Files and folders in the given order. Those that do not exist become problems of the listing.
    pub fn from_paths(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let roots: Vec<PathBuf> = paths
            .into_iter()
            .map(|path| std::path::absolute(&path).unwrap_or(path))
            .collect();
        Self {
            name: format!("{} paths", roots.len()),
            roots,
        }
    }
}

impl Source for LocalSource {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn pages(&self) -> Box<dyn Iterator<Item = Page> + Send> {
        let entries = self.roots.clone().into_iter().flat_map(list_root);
        Box::new(Pages {
            entries: Box::new(entries),
            next_len: FIRST_PAGE_LEN,
        })
    }

    fn read(&self, uri: &SampleUri) -> Result<Vec<u8>, SourceError> {
        Ok(std::fs::read(uri.as_str())?)
    }
}

type Entry = Result<Sample, Problem>;

/// Cuts a stream of entries into pages.
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
fn list_root(root: PathBuf) -> Box<dyn Iterator<Item = Entry> + Send> {
    match root.metadata() {
        Ok(metadata) if metadata.is_dir() => Box::new(Walk::new(root)),
        Ok(metadata) => {
            let name = file_name(&root).into_owned();
            Box::new(std::iter::once(sample(&root, name, &metadata)))
        }
        Err(error) => Box::new(std::iter::once(Err(problem(&root, error)))),
    }
}

/// Walks a folder depth first, each folder in natural order, without recursion and without following a symbolic link
/// back into a folder that it is inside of.
struct Walk {
    root: PathBuf,
    pending: VecDeque<Pending>,
    /// The real paths of the folders between the root and the current one.
    ancestors: Vec<PathBuf>,
}

enum Pending {
    Visit(PathBuf),
    /// Everything below the innermost folder has been visited.
    Leave,
}

impl Walk {
    fn new(root: PathBuf) -> Self {
        Self {
            pending: VecDeque::from([Pending::Visit(root.clone())]),
            root,
            ancestors: Vec::new(),
        }
    }

    /// Puts the entries of `folder` before everything else that is pending.
    fn enter(&mut self, folder: &Path) -> Option<Entry> {
        let real_path = match folder.canonicalize() {
            Ok(real_path) => real_path,
            Err(error) => return Some(Err(problem(folder, error))),
        };
        if self.ancestors.contains(&real_path) {
            let message = "is a symbolic link to a folder that it lies in; it was skipped";
            return Some(Err(Problem::of_sample(uri_of(folder), message)));
        }
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => return Some(Err(problem(folder, error))),
        };
        let mut paths: Vec<PathBuf> = entries
            .filter_map(Result::ok)
            .map(|entry| entry.path())
            .filter(|path| !file_name(path).starts_with('.'))
            .collect();
        paths.sort_by(|left, right| {
            alphanumeric_sort::compare_str(file_name(left), file_name(right)).then(left.cmp(right))
        });
        self.ancestors.push(real_path);
        self.pending.push_front(Pending::Leave);
        paths
            .into_iter()
            .rev()
            .for_each(|path| self.pending.push_front(Pending::Visit(path)));
        None
    }

    /// A sample, a problem, or nothing for a file of another kind.
    fn visit(&mut self, path: &Path) -> Option<Entry> {
        let metadata = match path.metadata() {
            Ok(metadata) => metadata,
            Err(_) if !has_image_extension(path) => return None,
            Err(error) => return Some(Err(problem(path, error))),
        };
        if metadata.is_dir() {
            return self.enter(path);
        }
        let is_image = metadata.is_file() && has_image_extension(path);
        is_image.then(|| sample(path, self.name_below_root(path), &metadata))
    }

    fn name_below_root(&self, path: &Path) -> String {
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        let parts: Vec<_> = below.iter().map(|part| part.to_string_lossy()).collect();
        parts.join("/")
    }
}

impl Iterator for Walk {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        while let Some(pending) = self.pending.pop_front() {
            match pending {
                Pending::Leave => drop(self.ancestors.pop()),
                Pending::Visit(path) => {
                    if let Some(entry) = self.visit(&path) {
                        return Some(entry);
                    }
                }
            }
        }
        None
    }
}

fn sample(path: &Path, name: String, metadata: &Metadata) -> Entry {
    match path.to_str() {
        Some(uri) => Ok(Sample {
            uri: SampleUri::new(uri),
            name,
            size_bytes: metadata.len(),
            modified_ns: metadata.modified().ok().and_then(nanoseconds),
        }),
        None => Err(Problem::of_sample(
            uri_of(path),
            "has a name that is not valid Unicode; rename it to open it",
        )),
    }
}

/// Since 1970; `None` for a clock that is centuries off.
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
    Problem::of_sample(uri_of(path), SourceError::from(error).to_string())
}

fn uri_of(path: &Path) -> SampleUri {
    SampleUri::new(path.to_string_lossy())
}

fn file_name(path: &Path) -> std::borrow::Cow<'_, str> {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
}

fn has_image_extension(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| {
        IMAGE_EXTENSIONS
            .iter()
            .any(|known| known.eq_ignore_ascii_case(extension))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let source = LocalSource::open(folder).unwrap();
        source
            .pages()
            .flat_map(|page| page.samples)
            .map(|sample| sample.name)
            .collect()
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
    fn files_come_in_natural_order_with_hidden_and_other_files_left_out() {
        let folder = folder_with(&[
            "img10.jpg",
            "img2.JPG",
            ".hidden.png",
            "a/1.png",
            ".git/x.png",
            "notes.txt",
            "고양이.webp",
        ]);
        assert_eq!(
            names(folder.path()),
            ["a/1.png", "img2.JPG", "img10.jpg", "고양이.webp"]
        );
    }

    #[test]
    fn a_missing_folder_is_an_error() {
        let missing = Path::new("/no/such/folder");
        assert!(matches!(
            LocalSource::open(missing),
            Err(SourceError::NotFound)
        ));
    }

    #[test]
    fn a_missing_path_of_a_list_is_a_problem_and_the_rest_goes_on() {
        let folder = folder_with(&["b.jpg"]);
        let paths = [folder.path().join("a.jpg"), folder.path().join("b.jpg")];
        let page = LocalSource::from_paths(paths).pages().next().unwrap();
        assert_eq!(page.samples.len(), 1);
        assert!(
            page.problems[0]
                .to_string()
                .contains("a.jpg: there is no such file"),
            "{:?}",
            page.problems
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_loop_of_symbolic_links_is_named_once_and_survived() {
        let folder = folder_with(&["a/b/1.jpg"]);
        std::os::unix::fs::symlink(folder.path(), folder.path().join("a/b/back")).unwrap();
        let page = LocalSource::open(folder.path())
            .unwrap()
            .pages()
            .next()
            .unwrap();
        assert_eq!(page.samples.len(), 1);
        assert_eq!(page.problems.len(), 1);
    }

    #[test]
    fn the_first_page_of_a_large_folder_is_small() {
        let names: Vec<String> = (0..250).map(|number| format!("{number}.jpg")).collect();
        let folder = folder_with(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let lens: Vec<usize> = LocalSource::open(folder.path())
            .unwrap()
            .pages()
            .map(|page| page.samples.len())
            .collect();
        assert_eq!(lens, [100, 150]);
    }
}
