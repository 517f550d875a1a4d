//! The files of a folder to pack, and `sourcedir.tar.gz`: the script of a training job with everything next to it, as
//! the SageMaker Python SDK packs it (`tar_and_upload_dir` of `fw_utils.py`), except for hidden files and links.

use std::path::{Path, PathBuf};

use walkdir::{DirEntry, WalkDir};

use super::{ArchiveWriter, PackageError, Packaged};
use crate::project::export::ExportTarget;
use crate::tasks::TaskControl;

const WHAT: &str = "a file of the folder to pack";

pub struct PackedFile {
    /// The file's name in the archive.
    pub name: String,
    pub path: PathBuf,
}

/// The files of a source folder, by name.
///
/// # Errors
/// A file cannot be read, or is a link, which could lead anywhere.
pub fn source_files(folder: &Path) -> Result<Vec<PackedFile>, PackageError> {
    let mut files = Vec::new();
    collect(folder, "", &mut files)?;
    Ok(files)
}

/// Packs the files of a source folder. Progress is in bytes.
///
/// # Errors
/// As [`source_files`], or the archive cannot be written. Nothing is left of the archive then.
pub fn package_source(folder: &Path, target: &ExportTarget, control: &TaskControl) -> Result<Packaged, PackageError> {
    let mut archive = ArchiveWriter::create(target, control)?;
    for file in source_files(folder)? {
        archive.add_file(&file.name, &file.path, WHAT)?;
    }
    archive.finish()
}

/// All files below `folder`, by name, without temporary files of Python and file managers.
pub(super) fn collect(folder: &Path, prefix: &str, files: &mut Vec<PackedFile>) -> Result<(), PackageError> {
    check_kind(folder)?;
    let is_wanted = |entry: &DirEntry| {
        let name = entry.file_name().to_string_lossy();
        entry.depth() == 0 || (name != "__pycache__" && !name.starts_with('.'))
    };
    let entries = WalkDir::new(folder).sort_by_file_name();
    for entry in entries.into_iter().filter_entry(is_wanted) {
        let entry = entry.map_err(|error| {
            let path = error.path().unwrap_or(folder).to_owned();
            PackageError::read(WHAT, &path)(error.into())
        })?;
        check_kind(entry.path())?;
        if entry.file_type().is_dir() {
            continue;
        }
        let below = entry.path().strip_prefix(folder).unwrap_or(entry.path());
        let parts: Option<Vec<&str>> = below.iter().map(|part| part.to_str()).collect();
        let Some(parts) = parts else {
            return Err(PackageError::RefusedFile {
                reason: "the name is not valid Unicode".to_owned(),
                path: entry.path().to_owned(),
            });
        };
        files.push(PackedFile { name: format!("{prefix}{}", parts.join("/")), path: entry.path().to_owned() });
    }
    Ok(())
}

/// Only files and folders: a link could lead out of the folder, and a device never ends.
pub(super) fn check_kind(path: &Path) -> Result<(), PackageError> {
    let kind = path.symlink_metadata().map_err(PackageError::read(WHAT, path))?.file_type();
    if kind.is_file() || kind.is_dir() {
        return Ok(());
    }
    let what = if kind.is_symlink() {
        "this is a link, whose target may not belong to the folder"
    } else {
        "this is neither a file nor a folder"
    };
    Err(PackageError::RefusedFile { reason: what.to_owned(), path: path.to_owned() })
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::project::export::Existing;
    use crate::tasks::ProgressUnit;

    #[test]
    fn scripts_stay_executable() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("source");
        std::fs::create_dir(&source).unwrap();
        for (name, mode) in [("train.py", 0o600), ("tool.sh", 0o700)] {
            std::fs::write(source.join(name), "#").unwrap();
            std::fs::set_permissions(source.join(name), PermissionsExt::from_mode(mode)).unwrap();
        }
        let target = ExportTarget { path: folder.path().join("sourcedir.tar.gz"), existing: Existing::Keep };
        let packed = package_source(&source, &target, &TaskControl::new(ProgressUnit::Bytes)).unwrap();
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(std::fs::File::open(packed.path).unwrap()));
        let entries = archive.entries().unwrap().map(Result::unwrap);
        let modes: Vec<u32> = entries.map(|entry| entry.header().mode().unwrap()).collect();
        assert_eq!(modes, [0o755, 0o644]);
    }
}
