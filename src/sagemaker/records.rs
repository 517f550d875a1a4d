//! Records of the resources that were created from here, one file each, in the data folder. They contain no secrets.

use std::cmp::Ordering;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::local_file;

/// The record of a job, an endpoint or another resource.
pub trait Record: Clone + PartialEq + Serialize + DeserializeOwned {
    /// “a job”
    const THING: &'static str;

    fn name(&self) -> &str;

    fn region(&self) -> Option<&str>;

    /// The order of lists.
    fn order(&self, other: &Self) -> Ordering;

    /// The record without the values of environment variables, which may be secrets.
    #[must_use]
    fn without_secrets(self) -> Self {
        self
    }
}

/// The records of all resources of one kind.
#[derive(Debug, Clone)]
pub struct Records<R> {
    folder: PathBuf,
    kind: PhantomData<R>,
}

/// The message is complete.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RecordError(String);

impl<R: Record> Records<R> {
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), kind: PhantomData }
    }

    /// Atomically replaces the record of this resource. Only its owner can read the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, record: &R) -> Result<(), RecordError> {
        let path = self.path_of(record.name(), record.region());
        let text = serde_json::to_vec_pretty(&record.clone().without_secrets()).map_err(Into::into);
        let written = text.and_then(|text| local_file::replace(&path, text));
        written.map_err(|error| Self::unwritten(&error, &path))
    }

    /// The record of a resource in a region; `None` if it was not created here.
    ///
    /// # Errors
    /// The record cannot be read. The resources in it must not be forgotten.
    pub fn find(&self, name: &str, region: &str) -> Result<Option<R>, RecordError> {
        let path = self.path_of(name, Some(region));
        let content = local_file::if_there(std::fs::read(&path)).transpose();
        content.map(|content| self.read(&path, content)).transpose()
    }

    /// All records in order, and the errors of unreadable ones.
    pub fn all(&self) -> (Vec<R>, Vec<RecordError>) {
        let (mut records, mut errors) = (Vec::new(), Vec::new());
        let Ok(entries) = std::fs::read_dir(&self.folder) else {
            return (records, errors);
        };
        let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
        for path in paths.filter(|path| path.extension().is_some_and(|end| end == "json")) {
            match self.read(&path, std::fs::read(&path)) {
                Ok(record) => records.push(record),
                Err(error) => errors.push(error),
            }
        }
        records.sort_by(R::order);
        (records, errors)
    }

    /// Deletes the record of this resource, if there is one.
    ///
    /// # Errors
    /// The file cannot be deleted.
    pub fn forget(&self, record: &R) -> Result<(), RecordError> {
        let path = self.path_of(record.name(), record.region());
        let removed = local_file::if_there(std::fs::remove_file(&path));
        removed.map(drop).map_err(|error| Self::unwritten(&error, &path))
    }

    /// Reads a record. One with secrets, from an earlier version, is rewritten without them.
    fn read(&self, path: &Path, content: std::io::Result<Vec<u8>>) -> Result<R, RecordError> {
        let content = content.map_err(|error| {
            RecordError(format!("Could not read the record of {}: {error}: {}", R::THING, path.display()))
        })?;
        let kept: R = serde_json::from_slice(&content).map_err(|error| {
            RecordError(format!(
                "Could not parse the record of {}; it may be from a newer Spotcheck: {error}: {}",
                R::THING,
                path.display()
            ))
        })?;
        let record = kept.clone().without_secrets();
        if record != kept {
            self.write(&record)?;
        }
        Ok(record)
    }

    fn unwritten(error: &std::io::Error, path: &Path) -> RecordError {
        RecordError(format!("Could not write the record of {}: {error}: {}", R::THING, path.display()))
    }

    /// A name from the user can contain any characters; only letters, digits and hyphens go into the file name.
    pub fn path_of(&self, name: &str, region: Option<&str>) -> PathBuf {
        let plain = |text: &str| text.replace(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-', "_");
        let region = plain(region.unwrap_or_default());
        self.folder.join(format!("{}@{region}.json", plain(name)))
    }
}
