//! Errors in finding and installing ONNX Runtime, each with the command or file that helps.

use std::path::PathBuf;

use super::packages::RuntimePackage;
use crate::model::download::DownloadError;
use crate::tasks::Cancelled;

#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    #[error("canceled")]
    Cancelled,

    #[error("ONNX Runtime is not installed; install it with `spotcheck runtime install cpu`")]
    NotFound,

    #[error(
        "the address of a Python package index is unknown: set PIP_INDEX_URL to it. Without a connection, {}",
        by_hand(*package)
    )]
    NoIndex { package: RuntimePackage },

    #[error(
        "{source}\nMirrors, proxies and certificates in pip's settings apply (PIP_INDEX_URL, PIP_PROXY, PIP_CERT). \
         Without a connection, {}",
        by_hand(*package)
    )]
    Index { package: RuntimePackage, source: DownloadError },

    #[error(
        "the package index does not have {} {} for this computer ({reason}). A mirror may lag behind; {}",
        package.project(), package.version(), by_hand(*package)
    )]
    NotInIndex { package: RuntimePackage, reason: String },

    #[error(
        "{} in the package index has an unexpected sha256 and was not installed: {reason}. Ask the administrator of \
         your package mirror; or, if you trust the file, download it and run `spotcheck runtime install {} --from \
         FILE.whl`",
        package.project(), package.into_str()
    )]
    WrongHash { package: RuntimePackage, reason: String },

    #[error(
        "the disk has no space for ONNX Runtime in {}; free some space or set SPOTCHECK_HOME to a folder on another \
        disk", folder.display()
    )]
    DiskFull { folder: PathBuf },

    #[error(
        "{} {} is not published for {} on {}; install ONNX Runtime 1.24 or newer yourself and set ORT_DYLIB_PATH to \
         its library",
        package.project(), package.version(), std::env::consts::OS, std::env::consts::ARCH
    )]
    NotForThisSystem { package: RuntimePackage },

    #[error("this wheel cannot be used: {reason}: {}", path.display())]
    BadWheel { path: PathBuf, reason: String },

    #[error("{place} names a library that does not exist: {}", path.display())]
    Missing { place: &'static str, path: PathBuf },

    #[error("{reason}, so it was not loaded; replace the file: {}", path.display())]
    NotALibrary { path: PathBuf, reason: String },

    #[error(
        "the installed {} is damaged ({reason}) and was not loaded; install it again with `spotcheck runtime install \
        {}`: {}",
        package.project(), package.into_str(), path.display()
    )]
    Damaged { package: RuntimePackage, path: PathBuf, reason: String },

    #[error(
        "ONNX Runtime {version} is too old: Spotcheck needs 1.24 or newer. Remove the setting or ORT_DYLIB_PATH, then \
        run `spotcheck runtime install cpu`: {}", path.display()
    )]
    TooOld { path: PathBuf, version: String },

    #[error(
        "this system's C library is too old for this ONNX Runtime, which needs glibc 2.28 (Debian 10, Ubuntu 18.10, \
         RHEL 8, or newer); update the system, or build ONNX Runtime 1.24 or newer on it and set ORT_DYLIB_PATH to \
         the library. The loader reported: {reason}: {}",
        path.display()
    )]
    GlibcTooOld { path: PathBuf, reason: String },

    #[error("could not load ONNX Runtime: {reason}: {}", path.display())]
    CannotLoad { path: PathBuf, reason: String },

    #[error("could not {doing} {}: {source}", path.display())]
    Io { doing: &'static str, path: PathBuf, source: std::io::Error },
}

impl From<Cancelled> for RuntimeError {
    fn from(Cancelled: Cancelled) -> Self {
        Self::Cancelled
    }
}

impl RuntimeError {
    pub fn io(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| match source.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Self::DiskFull { folder: path },
            _ => Self::Io { doing, path, source },
        }
    }
}

/// How to get the wheel on another computer.
fn by_hand(package: RuntimePackage) -> String {
    match package.pin() {
        Some(pin) => format!(
            "download {} from a Python package index on another computer, copy it here and run `spotcheck runtime \
             install {} --from FILE.whl`",
            pin.wheel,
            package.into_str()
        ),
        None => "set ORT_DYLIB_PATH to the library of ONNX Runtime 1.24 or newer".to_owned(),
    }
}
