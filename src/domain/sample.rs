//! One image of a source, wherever it lies.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Problem;

/// Where a sample lies: an absolute path, as the user would type it (not percent-encoded). Clones share their text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct SampleUri(Arc<str>);

impl SampleUri {
    pub fn new(uri: impl Into<String>) -> Self {
        Self(uri.into().into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last part, for people: `cat.jpg` of `/photos/cat.jpg`.
    pub fn file_name(&self) -> &str {
        self.0.rsplit(['/', '\\']).next().unwrap_or(&self.0)
    }
}

impl From<String> for SampleUri {
    fn from(uri: String) -> Self {
        Self::new(uri)
    }
}

impl From<SampleUri> for String {
    fn from(uri: SampleUri) -> Self {
        uri.as_str().to_owned()
    }
}

impl std::fmt::Display for SampleUri {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Position in the listing of the open source. Stable while the source is open: what appears later is added at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SampleId(pub u32);

impl SampleId {
    pub fn from_index(index: usize) -> Self {
        Self(u32::try_from(index).unwrap_or(u32::MAX))
    }

    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// An entry of a source's listing. Nothing of the image itself has been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    pub uri: SampleUri,
    /// The path below the opened folder, with `/` between its parts; the file name for a single file.
    pub name: String,
    pub size_bytes: u64,
    /// When the file was last written, in nanoseconds since 1970-01-01 UTC, where the source knows it.
    pub modified_ns: Option<i64>,
    /// What an object store calls this state of the content, without quotes; `None` for files.
    pub etag: Option<Arc<str>>,
}

/// Tells one state of a file from another without reading it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct FileStamp {
    pub size_bytes: u64,
    /// Nanoseconds since 1970-01-01 UTC, where the source knows it and has nothing better.
    pub modified_ns: Option<i64>,
    /// As [`Sample::etag`].
    pub etag: Option<Arc<str>>,
}

impl Sample {
    /// Where there is an `ETag`, it counts alone: an object that was copied anew with the same content is the same.
    pub fn stamp(&self) -> FileStamp {
        FileStamp {
            size_bytes: self.size_bytes,
            modified_ns: self.modified_ns.filter(|_| self.etag.is_none()),
            etag: self.etag.clone(),
        }
    }
}

/// A part of a listing.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Page {
    pub samples: Vec<Sample>,
    /// What could not be listed, and why; the rest goes on.
    pub problems: Vec<Problem>,
    /// What a person should know of the listing: what was left out. Whole sentences without a full stop.
    pub notes: Vec<String>,
}

/// What happened to the files of an open source.
#[derive(Debug, PartialEq, Eq)]
pub enum ListingChange {
    /// Files that are new, that were written to, or that are as they were.
    Seen(Vec<Sample>),
    /// Files, or folders with all that was in them, that are no longer there.
    Gone(Vec<SampleUri>),
    /// Everything there is now: some changes were missed.
    Relisted(Vec<Sample>),
    /// Changes are not noticed, wholly or in part, and why.
    Unwatched(String),
}
