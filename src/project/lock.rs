//! The right to write: a lock on a small file next to the project. Never on the project file itself, because closing
//! that would drop SQLite's own locks (sqlite.org/howtocorrupt.html, 2.2). The operating system releases it however the
//! holder ends.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::tasks::now_ms;

/// The right to write to a project, until dropped.
#[derive(Debug)]
pub(super) struct FileLock {
    /// Closing the file releases the lock.
    _file: File,
    path: PathBuf,
}

pub(super) enum Locking {
    Ours(FileLock),
    Held(Holder),
}

/// The program that has a project open for writing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Holder {
    program: String,
    pid: u32,
    /// `None` if the host name is unknown.
    pub host: Option<String>,
    /// Milliseconds since 1970-01-01 UTC.
    since_ms: i64,
}

impl Holder {
    pub(super) fn this_process(program: &str) -> Self {
        Self { program: program.to_owned(), pid: std::process::id(), host: host_name(), since_ms: now_ms() }
    }

    pub(super) fn is_this_process(&self) -> bool {
        self.pid == std::process::id() && self.host == host_name()
    }
}

/// `a Spotcheck window, process 4711 on host, since 2026-11-21 10:31`
impl std::fmt::Display for Holder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.pid == 0 {
            return formatter.write_str("another Spotcheck");
        }
        write!(formatter, "{}, process {}", self.program, self.pid)?;
        if let Some(host) = &self.host {
            write!(formatter, " on {host}")?;
        }
        if let Ok(since) = jiff::Timestamp::from_millisecond(self.since_ms) {
            let since = since.to_zoned(jiff::tz::TimeZone::system());
            write!(formatter, ", since {}", since.strftime("%Y-%m-%d %H:%M"))?;
        }
        Ok(())
    }
}

impl FileLock {
    /// # Errors
    /// The lock file cannot be created: the folder is missing or write-protected.
    pub(super) fn acquire(project: &Path, program: &str) -> io::Result<Locking> {
        let path = lock_path(project);
        loop {
            let mut file = File::options().read(true).write(true).create(true).truncate(false).open(&path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(Locking::Held(read_holder(&mut file))),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            // The last holder may have deleted this file after we opened it and before we locked it.
            if !is_still_at(&file, &path) {
                continue;
            }
            let holder = serde_json::to_vec(&Holder::this_process(program))?;
            file.set_len(0)?;
            file.write_all(&holder)?;
            return Ok(Locking::Ours(Self { _file: file, path }));
        }
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // While it is still locked, so that no other program's file is deleted. If that cannot be determined, it stays.
        if cfg!(unix)
            && let Err(error) = std::fs::remove_file(&self.path)
        {
            log::warn!("could not remove {}: {error}", self.path.display());
        }
    }
}

fn lock_path(project: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(project.file_name().unwrap_or_default());
    name.push(".lock");
    project.with_file_name(name)
}

/// The holder writes its name right after it gets the lock.
fn read_holder(file: &mut File) -> Holder {
    for _ in 0..20 {
        let mut text = String::new();
        let read = file.rewind().and_then(|()| file.read_to_string(&mut text));
        if let (Ok(_), Ok(holder)) = (read, serde_json::from_str(&text)) {
            return holder;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Holder::default()
}

/// Whether `path` still leads to the open `file`, rather than to a replacement or nothing.
#[cfg(unix)]
pub(super) fn is_still_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), path.metadata()) {
        (Ok(open), Ok(there)) => (open.dev(), open.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

/// An open file cannot be deleted or renamed here.
#[cfg(not(unix))]
pub fn is_still_at(_file: &File, path: &Path) -> bool {
    path.exists()
}

pub(super) fn host_name() -> Option<String> {
    let from_kernel = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = from_kernel
        .or_else(|| ["COMPUTERNAME", "HOSTNAME"].into_iter().find_map(|variable| std::env::var(variable).ok()))?;
    let name = name.trim();
    (!name.is_empty()).then(|| name.to_owned())
}
