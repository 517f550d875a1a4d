//! One image of a source, wherever it lies.

use serde::{Deserialize, Serialize};

use super::Problem;

/// Where a sample lies: an absolute path, as the user would type it (not percent-encoded).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SampleUri(String);

impl SampleUri {
    pub fn new(uri: impl Into<String>) -> Self {
        Self(uri.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last part, for people: `cat.jpg` of `/photos/cat.jpg`.
    pub fn file_name(&self) -> &str {
        self.0.rsplit(['/', '\\']).next().unwrap_or(&self.0)
    }
}

impl std::fmt::Display for SampleUri {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// An entry of a source's listing. Nothing of the image itself has been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    pub uri: SampleUri,
    /// The path below the opened folder, with `/` between its parts; the file name for a single file.
    pub name: String,
    pub size_bytes: u64,
}

/// A part of a listing.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Page {
    pub samples: Vec<Sample>,
    /// What could not be listed, and why; the rest goes on.
    pub problems: Vec<Problem>,
}
