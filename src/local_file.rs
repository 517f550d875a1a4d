//! Opens local files that the user named. Pipes and devices are refused, because reading one can wait forever or never
//! end. Also replaces Spotcheck's own files.

use std::fs::{File, Metadata};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::path::Path;

/// The metadata of a file or folder.
///
/// # Errors
/// It is a pipe or device, a link to a missing file, or cannot be reached.
pub fn metadata(path: &Path) -> io::Result<Metadata> {
    let metadata = follow(path)?;
    if metadata.is_file() || metadata.is_dir() {
        return Ok(metadata);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file but a pipe or device"))
}

/// The metadata of anything, through links.
///
/// # Errors
/// It is a link to a missing file, or cannot be reached.
pub fn follow(path: &Path) -> io::Result<Metadata> {
    path.metadata().map_err(|error| {
        let is_link = error.kind() == io::ErrorKind::NotFound && path.is_symlink();
        if is_link { io::Error::other("it is a link to a missing file") } else { error }
    })
}

/// # Errors
/// As [`metadata`], or the file cannot be opened.
pub fn open(path: &Path) -> io::Result<File> {
    metadata(path)?;
    File::open(path)
}

/// # Errors
/// As [`open`], or the file cannot be read.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// # Errors
/// As [`open`], or the file cannot be read as UTF-8.
pub fn read_to_string(path: &Path) -> io::Result<String> {
    io::read_to_string(open(path)?)
}

/// The bytes from `range.start` up to `range.end`; fewer if the file is shorter.
///
/// # Errors
/// As [`open`], or the file cannot be read.
pub fn read_range(path: &Path, range: Range<u64>) -> io::Result<Vec<u8>> {
    let mut file = open(path)?;
    file.seek(SeekFrom::Start(range.start))?;
    let mut bytes = Vec::new();
    file.take(range.end.saturating_sub(range.start)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The result of an operation on a file; `None` if the file does not exist.
pub fn if_there<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes a file atomically, and its folder if necessary: it has either the old or the new content. Only its owner can
/// read it (a temporary file has mode 0600, and keeps it).
pub fn replace(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(content.as_ref())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_and_missing_files_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        assert!(metadata(folder.path()).unwrap().is_dir());
        let missing = read(&folder.path().join("missing.jpg")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    #[cfg(unix)]
    #[test]
    fn pipes_devices_and_broken_links_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe.jpg");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let link = folder.path().join("link.jpg");
        std::os::unix::fs::symlink(folder.path().join("missing.jpg"), &link).unwrap();
        for (path, expected) in [
            (pipe.as_path(), "not a file but a pipe or device"),
            (Path::new("/dev/zero"), "not a file but a pipe or device"),
            (&link, "link to a missing file"),
        ] {
            let error = read(path).unwrap_err().to_string();
            assert!(error.contains(expected), "{}: {error}", path.display());
        }
    }
}
