//! Installed packages in the app's data folder: `runtime/<package>/` with the libraries and a manifest of their
//! expected content.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::SystemTime;

use object::read::macho::{FatArch, MachOFatFile32};
use object::{Architecture, Object, ObjectSegment, ReadCache, ReadRef};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::error::RuntimeError;
use super::packages::RuntimePackage;
use crate::dirs::AppDirs;
use crate::model::download::sha256::sha256_of;

const MANIFEST: &str = "manifest.json";

/// A record of the installation. Written last, so that a folder with a manifest is complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    /// The name in the Python package index.
    pub project: String,
    pub version: String,
    /// Whether the library is the one in Spotcheck's own list, rather than one provided by the user.
    pub pinned: bool,
    /// The file to load.
    pub library: String,
    pub files: Vec<ManifestFile>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ManifestFile {
    pub name: String,
    pub bytes: u64,
    pub sha256: String,
}

/// A package in the app's data folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledPackage {
    pub package: RuntimePackage,
    pub version: String,
    /// The file to load; absolute.
    pub library: PathBuf,
    /// `false` for a wheel provided by the user that Spotcheck does not know.
    pub is_pinned: bool,
    pub bytes: u64,
}

pub(super) fn runtime_folder(dirs: &AppDirs) -> PathBuf {
    dirs.data.join("runtime")
}

pub(super) fn package_folder(dirs: &AppDirs, package: RuntimePackage) -> PathBuf {
    runtime_folder(dirs).join(package.into_str())
}

/// The installed package, after checking it; `None` if it is not installed.
pub(super) fn find(dirs: &AppDirs, package: RuntimePackage) -> Option<Result<InstalledPackage, RuntimeError>> {
    let folder = package_folder(dirs, package);
    folder.exists().then(|| check(&folder, package))
}

/// Compares the files with the manifest: the size of each file (the system kills a process that loads a truncated
/// library) and the contents of the loaded one.
pub(super) fn check(folder: &Path, package: RuntimePackage) -> Result<InstalledPackage, RuntimeError> {
    let damaged = |reason: String| RuntimeError::Damaged { package, path: folder.to_owned(), reason };
    let manifest = std::fs::read(folder.join(MANIFEST))
        .map_err(|error| damaged(format!("could not read its {MANIFEST}: {error}")))?;
    let manifest: Manifest = serde_json::from_slice(&manifest)
        .map_err(|error| damaged(format!("could not parse its {MANIFEST}: {error}")))?;
    for file in &manifest.files {
        let metadata = std::fs::metadata(folder.join(&file.name))
            .map_err(|error| damaged(format!("could not read {}: {error}", file.name)))?;
        if metadata.len() != file.bytes {
            return Err(damaged(format!("{} has {} bytes instead of {}", file.name, metadata.len(), file.bytes)));
        }
    }
    let main = manifest.files.iter().find(|file| file.name == manifest.library);
    let main = main.ok_or_else(|| damaged(format!("its {MANIFEST} does not list the library")))?;
    let library = folder.join(&main.name);
    let sha256 =
        sha256_of_library(&library).map_err(|error| damaged(format!("could not read {}: {error}", main.name)))?;
    if sha256 != main.sha256 {
        return Err(damaged(format!("the contents of {} have changed", main.name)));
    }
    Ok(InstalledPackage {
        package,
        version: manifest.version,
        library,
        is_pinned: manifest.pinned,
        bytes: manifest.files.iter().map(|file| file.bytes).sum(),
    })
}

pub(super) fn write_manifest(folder: &Path, manifest: &Manifest) -> Result<(), RuntimeError> {
    let path = folder.join(MANIFEST);
    let text = serde_json::to_vec_pretty(manifest).map_err(std::io::Error::other);
    text.and_then(|text| std::fs::write(&path, text)).map_err(RuntimeError::io("write", path))
}

/// Changes whenever the file does.
type FileState = (PathBuf, u64, SystemTime);

/// As [`sha256_of`], but reads an unchanged file only once per process.
fn sha256_of_library(path: &Path) -> std::io::Result<String> {
    static KNOWN: LazyLock<Mutex<HashMap<FileState, String>>> = LazyLock::new(Mutex::default);
    let known = || KNOWN.lock();
    let metadata = std::fs::metadata(path)?;
    let state = (path.to_owned(), metadata.len(), metadata.modified()?);
    if let Some(sha256) = known().get(&state) {
        return Ok(sha256.clone());
    }
    let sha256 = sha256_of(path)?;
    known().insert(state, sha256.clone());
    Ok(sha256)
}

/// Returns the reason why `path` cannot be a shared library for this computer.
///
/// The system's loader maps a library into memory and trusts its headers; in a truncated file it reads past the end,
/// and the process is killed. The headers are therefore compared with the file length before anything is loaded.
pub(super) fn check_library(path: &Path) -> Result<(), String> {
    let unreadable = |error| format!("could not read the file ({error})");
    let file = File::open(path).map_err(unreadable)?;
    let length = file.metadata().map_err(unreadable)?.len();
    let file = &ReadCache::new(file);
    let magics: &[&[u8]] = match std::env::consts::OS {
        "windows" => &[b"MZ"],
        "macos" => &[b"\xcf\xfa\xed\xfe", UNIVERSAL],
        _ => &[b"\x7fELF"],
    };
    let starts = |magic: &[u8]| file.read_bytes_at(0, magic.len() as u64) == Ok(magic);
    if !magics.iter().copied().any(starts) {
        return Err("the file is not a shared library".to_owned());
    }
    match end(file, starts(UNIVERSAL)) {
        // Headers that extend past the end mean that the file is truncated.
        Err(error) => Err(format!("the library is truncated or damaged ({length} bytes: {error})")),
        Ok(None) => Err("the library is for a different processor architecture".to_owned()),
        Ok(Some(end)) if end > length => Err(format!("the library is truncated ({length} of at least {end} bytes)")),
        Ok(Some(_)) => Ok(()),
    }
}

/// The first bytes of a macOS library for several architectures.
const UNIVERSAL: &[u8] = b"\xca\xfe\xba\xbe";

/// The minimum length of the file; `None` for a library of another architecture.
fn end<'f>(file: impl ReadRef<'f>, is_universal: bool) -> object::Result<Option<u64>> {
    let ours = match std::env::consts::ARCH {
        "x86_64" => Architecture::X86_64,
        _ => Architecture::Aarch64,
    };
    let (is_ours, ranges): (bool, Vec<(u64, u64)>) = if is_universal {
        let file = MachOFatFile32::parse(file)?;
        let libraries = file.arches().iter();
        let is_ours = libraries.clone().any(|library| library.architecture() == ours);
        (is_ours, libraries.map(FatArch::file_range).collect())
    } else {
        // It reads the tables of sections and symbols, so they are present.
        let file = object::File::parse(file)?;
        let ranges = file.segments().map(|segment| segment.file_range());
        (file.architecture() == ours, ranges.collect())
    };
    let ends = ranges.iter().map(|(start, length)| start.saturating_add(*length));
    Ok(is_ours.then(|| ends.max().unwrap_or(0)))
}
