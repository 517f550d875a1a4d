//! Installs a wheel into the app's data folder: downloaded, unpacked, checked, and only then renamed to its final name.

use std::fs::{File, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use strum::VariantArray;
use zip::ZipArchive;

use super::error::RuntimeError;
use super::installed::{self, InstalledPackage, Manifest, ManifestFile};
use super::packages::{RuntimePackage, is_needed};
use super::{MIN_MINOR_VERSION, index};
use crate::PACKAGE_INDEX;
use crate::dirs::AppDirs;
use crate::model::download::sha256::{pump, sha256_of};
use crate::tasks::TaskControl;

const STAGE_PREFIX: &str = ".installing-";

/// Installs `package` into the app's data folder: from the wheel `from`, or from a Python package index. An earlier
/// installation stays until the new one is complete. `control` counts the bytes of the download, which resumes after an
/// interruption.
///
/// A wheel other than the pinned one is still installed, because the user chose it, but the result reports it.
pub fn install(
    dirs: &AppDirs,
    package: RuntimePackage,
    from: Option<&Path>,
    control: &TaskControl,
) -> Result<InstalledPackage, RuntimeError> {
    let runtime_folder = installed::runtime_folder(dirs);
    std::fs::create_dir_all(&runtime_folder).map_err(RuntimeError::io("create", &runtime_folder))?;
    let _lock = lock(&runtime_folder, control)?;
    let stage = stage_in(&runtime_folder)?;
    let downloads = runtime_folder.join("download");
    let wheel = match from {
        Some(wheel) => wheel.to_owned(),
        None => download(package, &downloads, control)?,
    };
    control.set_step(format!("Unpacking {}", package.name()));
    let ready = stage.path().join("ready");
    let manifest = unpack(package, &wheel, &ready, control)?;
    installed::write_manifest(&ready, &manifest)?;
    installed::check(&ready, package)?;
    control.checkpoint()?;
    let folder = installed::package_folder(dirs, package);
    put_in_place(&ready, &folder, stage.path())?;
    if downloads.exists() {
        std::fs::remove_dir_all(&downloads).map_err(RuntimeError::io("remove", &downloads))?;
    }
    installed::check(&folder, package)
}

/// The lock for one installation at a time, even between processes; held until it is dropped.
fn lock(runtime_folder: &Path, control: &TaskControl) -> Result<File, RuntimeError> {
    let path = runtime_folder.join(".lock");
    let file = File::create(&path).map_err(RuntimeError::io("create", &path))?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {
                control.set_step("Waiting for another Spotcheck that is installing");
                control.sleep(Duration::from_millis(200))?;
            }
            Err(TryLockError::Error(error)) => return Err(RuntimeError::io("lock", path)(error)),
        }
    }
}

/// A new folder next to the final one, so that a rename suffices. Deletes what a killed installation left.
fn stage_in(runtime_folder: &Path) -> Result<tempfile::TempDir, RuntimeError> {
    let entries = std::fs::read_dir(runtime_folder).map_err(RuntimeError::io("list", runtime_folder))?;
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(STAGE_PREFIX) {
            std::fs::remove_dir_all(entry.path()).map_err(RuntimeError::io("remove", entry.path()))?;
        }
    }
    tempfile::Builder::new()
        .prefix(STAGE_PREFIX)
        .tempdir_in(runtime_folder)
        .map_err(RuntimeError::io("create a folder in", runtime_folder))
}

fn download(package: RuntimePackage, folder: &Path, control: &TaskControl) -> Result<PathBuf, RuntimeError> {
    let pin = package.pin().ok_or(RuntimeError::NotForThisSystem { package })?;
    let wheel = folder.join(pin.wheel);
    index::download(package, pin, PACKAGE_INDEX.get().copied(), &wheel, control)?;
    Ok(wheel)
}

/// Unpacks only the libraries and licenses, and checks them.
fn unpack(
    package: RuntimePackage,
    wheel: &Path,
    ready: &Path,
    control: &TaskControl,
) -> Result<Manifest, RuntimeError> {
    let bad = |reason: String| RuntimeError::BadWheel { path: wheel.to_owned(), reason };
    let wheel_sha256 = sha256_of(wheel).map_err(|error| bad(format!("could not read it: {error}")))?;
    let pin = package.pin().filter(|pin| pin.wheel_sha256 == wheel_sha256);
    let file = File::open(wheel).map_err(|error| bad(format!("could not read it: {error}")))?;
    let mut archive = ZipArchive::new(file).map_err(|error| bad(format!("it is not a wheel ({error})")))?;
    let version = version_in(&mut archive, package).map_err(&bad)?;
    std::fs::create_dir(ready).map_err(RuntimeError::io("create", ready))?;
    let mut files = Vec::new();
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(|error| bad(error.to_string()))?;
        // A name that is not text is not one of our files.
        let name = entry.name().ok().and_then(|name| name_to_keep(&name, package));
        if let Some(name) = name {
            files.push(unpack_file(&mut entry, &name, ready, control)?);
        }
    }
    let main = files.iter().find(|file| package.is_main_library(&file.name));
    let main = main.ok_or_else(|| bad("it contains no library for this system".to_owned()))?;
    if let Some(pin) = pin.filter(|pin| pin.library_sha256 != main.sha256) {
        return Err(RuntimeError::WrongHash {
            package,
            reason: format!("expected {}, got {}", pin.library_sha256, main.sha256),
        });
    }
    installed::check_library(&ready.join(&main.name)).map_err(bad)?;
    Ok(Manifest {
        project: package.project().to_owned(),
        version,
        pinned: pin.is_some(),
        library: main.name.clone(),
        files,
    })
}

/// The version in the wheel's metadata, if it is the right project and new enough.
fn version_in(archive: &mut ZipArchive<File>, package: RuntimePackage) -> Result<String, String> {
    let name = archive.file_names().flatten().find(|name| name.ends_with(".dist-info/METADATA"));
    let name = name.ok_or("it is not a wheel (it has no METADATA)")?.into_owned();
    let entry = archive.by_name(&name).map_err(|error| error.to_string())?;
    let mut metadata = String::new();
    entry.take(1 << 20).read_to_string(&mut metadata).map_err(|error| error.to_string())?;
    let field = |field: &str| {
        let value = metadata.lines().find_map(|line| line.strip_prefix(field));
        value.map(|value| value.trim().to_owned()).unwrap_or_default()
    };
    let (project, version) = (field("Name:"), field("Version:"));
    if project.replace('_', "-") != package.project() {
        let other = RuntimePackage::VARIANTS.iter().find(|other| other.project() == project.replace('_', "-"));
        let hint = other.map_or_else(String::new, |other| {
            format!("; install it with `spotcheck runtime install {}`", other.into_str())
        });
        return Err(format!("it contains “{project}”, not {}{hint}", package.project()));
    }
    let too_old = super::minor_version(&version).is_some_and(|minor| minor < MIN_MINOR_VERSION);
    if package != RuntimePackage::WebGpu && too_old {
        return Err(format!("it contains version {version}, but Spotcheck needs 1.{MIN_MINOR_VERSION} or newer"));
    }
    Ok(version)
}

/// The file name for an entry of the wheel; `None` for what is not needed. Only the last part of the entry's name is
/// used, so no entry can leave the folder.
fn name_to_keep(entry: &str, package: RuntimePackage) -> Option<String> {
    let (folder, name) = entry.rsplit_once('/')?;
    let is_library = folder == package.folder_in_wheel() && is_needed(name);
    let is_license = ["LICENSE", "ThirdPartyNotices.txt"].contains(&name)
        && (folder.ends_with(".dist-info/licenses") || !folder.contains('/'));
    let is_plain = !name.contains(['\\', ':']);
    ((is_library || is_license) && is_plain).then(|| name.to_owned())
}

fn unpack_file(
    entry: &mut impl Read,
    name: &str,
    ready: &Path,
    control: &TaskControl,
) -> Result<ManifestFile, RuntimeError> {
    let path = ready.join(name);
    let mut file = File::create(&path).map_err(RuntimeError::io("create", &path))?;
    let unpacked = pump(entry, &mut file, &mut |_| control.checkpoint().map_err(io::Error::other));
    control.checkpoint()?;
    let unpacked = unpacked.map_err(RuntimeError::io("unpack", &path))?;
    // A manifest must never outlive the contents that it vouches for.
    file.sync_all().map_err(RuntimeError::io("write", &path))?;
    Ok(ManifestFile { name: name.to_owned(), bytes: unpacked.bytes, sha256: unpacked.sha256 })
}

/// Swaps the new folder in; the old one is deleted with `stage`.
fn put_in_place(ready: &Path, folder: &Path, stage: &Path) -> Result<(), RuntimeError> {
    if folder.exists() {
        std::fs::rename(folder, stage.join("old")).map_err(RuntimeError::io("replace", folder))?;
    }
    std::fs::rename(ready, folder).map_err(RuntimeError::io("write", folder))
}
