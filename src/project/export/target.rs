//! Files and folders that appear under their names only when complete.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::ExportError;
use crate::image::decode::Format;
use crate::project::files::{nameless, partial_file};

/// The file or folder that an export writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportTarget {
    pub path: PathBuf,
    pub existing: Existing,
}

/// What happens to an existing file or folder with this name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Keeps it, and exports nothing.
    Keep,
    /// Replaces it once the export is complete. Images, and folders that no export wrote, are kept even then.
    Replace,
}

impl Existing {
    /// `is_allowed`: the user allowed replacing.
    pub fn from_force(is_allowed: bool) -> Self {
        if is_allowed { Self::Replace } else { Self::Keep }
    }
}

/// The file in every exported folder that contains a summary and marks the folder as an export.
pub(super) const FOLDER_MARK: &str = "spotcheck-export.json";

/// The first bytes of a database, and so of a project (sqlite.org/fileformat.html, 1.3.1).
const SQLITE: &[u8] = b"SQLite format 3\0";

/// An unfinished file, next to its target.
pub struct WholeFile {
    /// Without its unfinished name, which errors would contain.
    writer: BufWriter<File>,
    unfinished: tempfile::TempPath,
    path: PathBuf,
    existing: Existing,
}

impl WholeFile {
    pub fn create(target: &ExportTarget) -> Result<Self, ExportError> {
        let path = absolute(&target.path)?;
        if names_folder(&path) {
            return Err(ExportError::IsFolder { path });
        }
        let folder = folder_of(&path)?;
        if let Ok(found) = path.symlink_metadata() {
            if target.existing == Existing::Keep {
                return Err(ExportError::Exists { path });
            }
            if found.is_dir() {
                return Err(ExportError::NotAnExport { path });
            }
            // The target of a link. A dangling link is replaced like a file.
            if path.metadata().is_ok_and(|end| !end.is_file()) {
                return Err(ExportError::IsDevice { path });
            }
            let start = start_of(&path);
            if Format::detect(&start).is_ok() {
                return Err(ExportError::IsImage { path });
            }
            if start.starts_with(SQLITE) {
                return Err(ExportError::IsProject { path });
            }
        }
        let mut prefix = OsString::from(".");
        prefix.push(path.file_name().unwrap_or_default());
        prefix.push(".partial-");
        let file = partial_file(&folder, &prefix).map_err(ExportError::write(&path))?;
        let (file, unfinished) = file.into_parts();
        Ok(Self { writer: BufWriter::new(file), unfinished, path, existing: target.existing })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// JSON values that follow what is being written now: they wait in an unnamed file on the same disk.
    pub fn entries(&self) -> Result<JsonEntries<BufWriter<File>>, ExportError> {
        let folder = folder_of(&self.path)?;
        let file = tempfile::tempfile_in(folder).map_err(|error| ExportError::write(&self.path)(nameless(&error)))?;
        Ok(JsonEntries { file: BufWriter::new(file), len: 0 })
    }

    /// Writes the rest of the content; the file appears under its name.
    pub fn commit_with(mut self, content: &[u8]) -> Result<(), ExportError> {
        self.write_all(content).map_err(ExportError::write(&self.path))?;
        self.commit()
    }

    /// The file appears under its name.
    pub fn commit(self) -> Result<(), ExportError> {
        let path = self.path;
        let persist = || -> io::Result<()> {
            let file = self.writer.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.sync_all()?;
            match self.existing {
                Existing::Replace => self.unfinished.persist(&path)?,
                Existing::Keep => self.unfinished.persist_noclobber(&path)?,
            }
            Ok(())
        };
        persist().map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => ExportError::Exists { path: path.clone() },
            _ => ExportError::write(&path)(error),
        })
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// The elements of a JSON list, one per line, so that the file is readable.
pub struct JsonEntries<F> {
    pub file: F,
    pub len: u64,
}

impl<F: Write> JsonEntries<F> {
    pub fn push(&mut self, entry: &impl Serialize) -> io::Result<()> {
        self.file.write_all(if self.len == 0 { b"\n" } else { b",\n" })?;
        self.len += 1;
        Ok(serde_json::to_writer(&mut self.file, entry)?)
    }
}

impl JsonEntries<BufWriter<File>> {
    pub fn append_to(mut self, file: &mut impl Write) -> io::Result<()> {
        self.file.flush()?;
        let entries = self.file.get_mut();
        entries.rewind()?;
        io::copy(entries, file)?;
        Ok(())
    }
}

/// An unfinished folder: `NAME.partial` next to its target. Deleted with its content unless it is committed.
pub(super) struct WholeFolder {
    partial: PathBuf,
    path: PathBuf,
    committed: bool,
}

impl WholeFolder {
    pub(super) fn create(target: &ExportTarget) -> Result<Self, ExportError> {
        Self::create_over(target, |_| false)
    }

    /// Also replaces existing folders that `is_own` recognizes.
    pub(super) fn create_over(target: &ExportTarget, is_own: impl FnOnce(&Path) -> bool) -> Result<Self, ExportError> {
        // `labels/` is `labels`.
        let path: PathBuf = absolute(&target.path)?.components().collect();
        folder_of(&path)?;
        if path.symlink_metadata().is_ok() {
            if target.existing == Existing::Keep {
                return Err(ExportError::Exists { path });
            }
            if !may_be_replaced(&path) && !is_own(&path) {
                return Err(ExportError::NotAnExport { path });
            }
        }
        // An existing one was left behind by a killed export, or another export is writing it right now.
        let partial = make_numbered(&path, "partial").map_err(ExportError::write(&path))?;
        Ok(Self { partial, path, committed: false })
    }

    /// The path to write to until the export is committed.
    pub(super) fn partial(&self) -> &Path {
        &self.partial
    }

    /// Creates the folders above `name` (relative, with `/`) and the file in it, which must not exist yet.
    pub(super) fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let path = self.partial.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, content)
    }

    /// The folder appears under its name; only then is the replaced one deleted.
    pub(super) fn commit(mut self) -> Result<(), ExportError> {
        let replaced = path_if_there(&self.path)
            .map(|old| -> io::Result<PathBuf> {
                let aside = make_numbered(old, "replaced")?;
                // Not every system can rename onto an empty folder.
                std::fs::remove_dir(&aside)?;
                std::fs::rename(old, &aside)?;
                Ok(aside)
            })
            .transpose()
            .map_err(ExportError::write(&self.path))?;
        if let Err(error) = std::fs::rename(&self.partial, &self.path) {
            if let Some(aside) = &replaced {
                let _ = std::fs::rename(aside, &self.path);
            }
            return Err(ExportError::write(&self.path)(error));
        }
        self.committed = true;
        if let Some(aside) = replaced {
            std::fs::remove_dir_all(&aside).map_err(ExportError::write(&aside))?;
        }
        Ok(())
    }
}

impl Drop for WholeFolder {
    fn drop(&mut self) {
        if !self.committed
            && let Err(error) = std::fs::remove_dir_all(&self.partial)
        {
            log::warn!("could not remove {}: {error}", self.partial.display());
        }
    }
}

fn path_if_there(path: &Path) -> Option<&Path> {
    path.symlink_metadata().is_ok().then_some(path)
}

/// Creates the folder `NAME.SUFFIX`, or `NAME.SUFFIX-2` and so on if that is taken.
fn make_numbered(path: &Path, suffix: &str) -> io::Result<PathBuf> {
    for number in 1u32.. {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{suffix}"));
        if number > 1 {
            name.push(format!("-{number}"));
        }
        match std::fs::create_dir(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| PathBuf::from(name)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Whether a folder may be replaced: it is empty, or an export wrote it.
fn may_be_replaced(path: &Path) -> bool {
    path.join(FOLDER_MARK).is_file() || std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

/// The first bytes of a file; none if it cannot be read.
pub(super) fn start_of(path: &Path) -> Vec<u8> {
    let mut start = vec![0; 32];
    let read = File::open(path).and_then(|mut file| file.read(&mut start));
    start.truncate(read.unwrap_or(0));
    start
}

fn absolute(path: &Path) -> Result<PathBuf, ExportError> {
    std::path::absolute(path).map_err(ExportError::write(path))
}

/// Whether a path ends like that of a folder: `labels/`.
fn names_folder(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().last().is_some_and(|end| std::path::is_separator(char::from(*end)))
}

/// The folder of the target, which must exist: a misspelled path is not created.
fn folder_of(path: &Path) -> Result<PathBuf, ExportError> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    if folder.is_dir() { Ok(folder.to_owned()) } else { Err(ExportError::NoFolder { path: folder.to_owned() }) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn target(path: PathBuf, existing: Existing) -> ExportTarget {
        ExportTarget { path, existing }
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn file_appears_only_when_complete() {
        let folder = tempfile::tempdir().unwrap();
        let target = target(folder.path().join("out.csv"), Existing::Keep);
        let mut cancelled = WholeFile::create(&target).unwrap();
        cancelled.write_all(b"half").unwrap();
        assert!(!target.path.exists());
        drop(cancelled);
        assert!(names(folder.path()).is_empty());
        let mut whole = WholeFile::create(&target).unwrap();
        whole.write_all(b"whole").unwrap();
        whole.commit().unwrap();
        assert_eq!(names(folder.path()), ["out.csv"]);
    }

    #[test]
    fn replacing_requires_consent_and_never_hits_images() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.csv");
        fs::write(&path, "old").unwrap();
        let keep = WholeFile::create(&target(path.clone(), Existing::Keep));
        assert!(matches!(keep, Err(ExportError::Exists { .. })));
        let mut replace = WholeFile::create(&target(path.clone(), Existing::Replace)).unwrap();
        replace.write_all(b"new").unwrap();
        replace.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        fs::write(&path, b"\x89PNG\r\n\x1a\nrest").unwrap();
        let image = WholeFile::create(&target(path.clone(), Existing::Replace));
        assert!(matches!(image, Err(ExportError::IsImage { .. })));
        fs::write(&path, b"SQLite format 3\0rest").unwrap();
        let project = WholeFile::create(&target(path, Existing::Replace));
        assert!(matches!(project, Err(ExportError::IsProject { .. })));
    }

    #[cfg(unix)]
    #[test]
    fn device_is_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("out.csv");
        std::os::unix::fs::symlink("/dev/null", &link).unwrap();
        for path in [PathBuf::from("/dev/null"), link.clone()] {
            let device = WholeFile::create(&target(path, Existing::Replace));
            assert!(matches!(device, Err(ExportError::IsDevice { .. })));
        }
        assert!(link.is_symlink());
    }

    #[test]
    fn file_that_appears_meanwhile_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.csv");
        let file = WholeFile::create(&target(path.clone(), Existing::Keep)).unwrap();
        fs::write(&path, "another program's").unwrap();
        assert!(matches!(file.commit(), Err(ExportError::Exists { .. })));
        assert_eq!(fs::read(&path).unwrap(), b"another program's");
    }

    #[test]
    fn foreign_folder_is_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("labels");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("thesis.txt"), "years of work").unwrap();
        for existing in [Existing::Keep, Existing::Replace] {
            assert!(WholeFolder::create(&target(path.clone(), existing)).is_err());
        }
        fs::write(path.join(FOLDER_MARK), "{}").unwrap();
        let whole = WholeFolder::create(&target(path.clone(), Existing::Replace)).unwrap();
        whole.write("sub/a.txt", b"a").unwrap();
        assert!(path.join("thesis.txt").exists(), "until the new one is whole");
        whole.commit().unwrap();
        assert_eq!(names(&path), ["sub"]);
        assert_eq!(names(folder.path()), ["labels"]);
    }

    #[test]
    fn trailing_separator_names_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let target = target(folder.path().join("labels/"), Existing::Replace);
        assert!(matches!(WholeFile::create(&target), Err(ExportError::IsFolder { .. })));
        for name in ["a.txt", "b.txt"] {
            let whole = WholeFolder::create(&target).unwrap();
            whole.write(name, b"a").unwrap();
            whole.write(FOLDER_MARK, b"{}").unwrap();
            whole.commit().unwrap();
            assert_eq!(names(&target.path), [name, FOLDER_MARK]);
        }
        assert_eq!(names(folder.path()), ["labels"]);
    }

    #[test]
    fn canceled_folder_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let left_behind = folder.path().join("labels.partial");
        fs::create_dir(&left_behind).unwrap();
        let target = target(folder.path().join("labels"), Existing::Keep);
        let whole = WholeFolder::create(&target).unwrap();
        whole.write("a.txt", b"a").unwrap();
        assert_eq!(names(folder.path()), ["labels.partial", "labels.partial-2"]);
        drop(whole);
        assert_eq!(names(folder.path()), ["labels.partial"]);
    }

    #[test]
    fn misspelled_folder_is_not_created() {
        let path = PathBuf::from("/no/such/folder/out");
        let target = target(path, Existing::Keep);
        assert!(matches!(WholeFile::create(&target), Err(ExportError::NoFolder { .. })));
        assert!(matches!(WholeFolder::create(&target), Err(ExportError::NoFolder { .. })));
    }
}
