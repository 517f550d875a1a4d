//! Decides whether a read failure concerns one file, or its whole folder is gone: deleted, or on an unmounted disk.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::domain::SampleUri;
use crate::image::source::SourceError;

/// The folders of a source, each with the file system that it was on when opened. Clones share the same data.
#[derive(Clone, Default)]
pub(super) struct Reach(Arc<Mutex<HashMap<PathBuf, FileSystem>>>);

/// `None` if the operating system does not number file systems.
type FileSystem = Option<u64>;

impl Reach {
    /// `root`: a folder, or a file, which stands for the folder that contains it.
    pub(super) fn remember(&self, root: &Path) {
        let folder = if root.is_dir() { root } else { root.parent().unwrap_or(root) };
        let mut folders = self.0.lock();
        if !folders.contains_key(folder)
            && let Ok(file_system) = file_system_of(folder)
        {
            folders.insert(folder.to_owned(), file_system);
        }
    }

    /// What `error`, from reading a file, means for the rest of the source.
    pub(super) fn judge(&self, uri: &SampleUri, error: io::Error) -> SourceError {
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

    fn folder_with(name: &str) -> (tempfile::TempDir, PathBuf, SampleUri) {
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
            let (folder, root, uri) = folder_with(name);
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
        let (_folder, root, _) = folder_with("a.jpg");
        let here = file_system_of(&root).unwrap();
        assert_eq!(why_unreachable(&root, here, &root), None);
        let other = here.map(|here| here + 1);
        let reason = why_unreachable(&root, other, &root).unwrap();
        assert!(reason.contains("unmounted"), "{reason}");
    }
}
