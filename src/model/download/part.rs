//! The unfinished file of a download, and what is needed to resume it after an interruption or a restart.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::DownloadError;
use super::http::Validator;
use crate::domain::ModelFile;
use crate::local_file;
use crate::model::download::sha256::{Hashed, OnChunk, pump};

/// Locked while open, so that two programs do not write the same file.
pub(super) struct Part {
    file: File,
    path: PathBuf,
    state_path: PathBuf,
    state: State,
    len: u64,
    grew: bool,
    title: String,
    /// The size of the finished file.
    bytes: u64,
}

/// Stored next to the part as JSON.
#[derive(Default, Serialize, Deserialize)]
struct State {
    /// The SHA-256 of the finished file: another version starts over.
    sha256: String,
    url: Option<String>,
    validator: Option<Validator>,
}

impl Part {
    /// Opens an existing part, or creates an empty one. A part for another version of the file is discarded.
    pub(super) fn open(target: &Path, title: &str, wanted: &ModelFile) -> Result<Self, DownloadError> {
        let folder = target.parent().unwrap_or(Path::new(""));
        fs::create_dir_all(folder).map_err(DownloadError::io("create the folder", folder))?;
        let path = part_path(target);
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let open = options.open(&path);
        let file = open.map_err(DownloadError::io("write the download", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(DownloadError::Busy { title: title.to_owned() });
            }
            // Some network disks have no locks; the SHA-256 still guards the result.
            Err(TryLockError::Error(error)) => log::debug!("{}: {error}", path.display()),
        }
        let len = file.metadata().map_or(0, |metadata| metadata.len());
        let state_path = part_state_path(target);
        let mut part = Self {
            file,
            path,
            state: read_state(&state_path).unwrap_or_default(),
            state_path,
            len,
            grew: false,
            title: title.to_owned(),
            bytes: wanted.bytes,
        };
        if part.state.sha256 != wanted.sha256 || part.len > part.bytes {
            part.restart()?;
            part.state.sha256.clone_from(&wanted.sha256);
        }
        Ok(part)
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Whether data was added since it was opened.
    pub(super) fn grew(&self) -> bool {
        self.grew
    }

    /// The URL that the data came from.
    pub(super) fn url(&self) -> Option<&str> {
        self.state.url.as_deref()
    }

    /// The version of the file that the data belongs to.
    pub(super) fn validator(&self) -> Option<&Validator> {
        self.state.validator.as_ref()
    }

    /// The next data comes from `url`; data from another mirror, or of an unidentified version, cannot be continued.
    pub(super) fn begin(&mut self, url: &str) -> Result<(), DownloadError> {
        let complete = self.len == self.bytes;
        let goes_on = self.url() == Some(url) && (self.validator().is_some() || complete);
        if !goes_on {
            self.restart()?;
            self.state.url = Some(url.to_owned());
        }
        Ok(())
    }

    /// Discards the data.
    pub(super) fn restart(&mut self) -> Result<(), DownloadError> {
        if self.len > 0 {
            self.file
                .set_len(0)
                .and_then(|()| self.file.seek(SeekFrom::Start(0)).map(drop))
                .map_err(|error| self.write_error(error))?;
        }
        self.len = 0;
        self.state.validator = None;
        Ok(())
    }

    /// Sets and saves the version that the following data belongs to.
    pub(super) fn set_validator(&mut self, validator: Option<Validator>) -> Result<(), DownloadError> {
        self.state.validator = validator;
        let text = serde_json::to_string(&self.state).expect("plain fields have a form in JSON");
        fs::write(&self.state_path, text).map_err(|error| self.write_error(error))
    }

    pub(super) fn append(&mut self, data: &[u8]) -> Result<(), DownloadError> {
        let write = |file: &mut File| {
            file.seek(SeekFrom::Start(self.len))?;
            file.write_all(data)
        };
        write(&mut self.file).map_err(|error| self.write_error(error))?;
        self.len += data.len() as u64;
        self.grew = true;
        Ok(())
    }

    /// Hashes all data. Uses the locked file itself: with mandatory locks, no other handle can read or write it.
    pub(super) fn hash(&mut self, on_chunk: OnChunk<'_>) -> io::Result<Hashed> {
        self.file.seek(SeekFrom::Start(0))?;
        pump(&mut self.file, &mut io::sink(), on_chunk)
    }

    /// Replaces the data by all bytes of `from`.
    pub(super) fn copy(&mut self, from: &mut File, on_chunk: OnChunk<'_>) -> io::Result<Hashed> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        pump(from, &mut self.file, on_chunk)
    }

    /// Turns the part into the finished file.
    pub(super) fn finish(self, target: &Path) -> Result<(), DownloadError> {
        let synced = self.file.sync_all();
        synced.map_err(|error| self.write_error(error))?;
        drop(self.file);
        fs::rename(&self.path, target).map_err(DownloadError::io("put the download in its place", target))?;
        remove(&self.state_path)
    }

    /// Deletes every trace of the download, including its folder if nothing else is in it.
    pub(super) fn discard(self) -> Result<(), DownloadError> {
        remove(&self.path)?;
        remove(&self.state_path)?;
        // Fails, as intended, if the folder contains a card or other weights.
        let _ = self.path.parent().map(fs::remove_dir);
        Ok(())
    }

    /// As [`Self::discard`] if nothing was downloaded.
    pub(super) fn discard_if_empty(self) -> Result<(), DownloadError> {
        if self.len > 0 {
            return Ok(());
        }
        self.discard()
    }

    /// The message for a failed write; a full disk is up to the user.
    pub(super) fn write_error(&self, error: io::Error) -> DownloadError {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        let path = self.path.clone();
        match error.kind() {
            StorageFull | QuotaExceeded => DownloadError::DiskFull {
                title: self.title.clone(),
                missing_bytes: self.bytes.saturating_sub(self.len),
                path,
            },
            _ => DownloadError::io("write the download", &path)(error),
        }
    }
}

/// `None` if there is none, or it is unreadable: the download then starts over.
fn read_state(path: &Path) -> Option<State> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn remove(path: &Path) -> Result<(), DownloadError> {
    let removed = local_file::if_there(fs::remove_file(path));
    removed.map(drop).map_err(DownloadError::io("remove the unfinished download", path))
}

fn part_path(target: &Path) -> PathBuf {
    with_suffix(target, ".part")
}

/// The path of the state of an unfinished download of `target`.
fn part_state_path(target: &Path) -> PathBuf {
    with_suffix(target, ".part.json")
}

/// Whether another program is downloading `target`.
pub fn part_is_locked(target: &Path) -> bool {
    let part = fs::OpenOptions::new().write(true).open(part_path(target));
    part.is_ok_and(|part| matches!(part.try_lock(), Err(TryLockError::WouldBlock)))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}
