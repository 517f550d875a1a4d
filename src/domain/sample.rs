//! One image of a source.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Capture, visible};

/// The address of a sample: an absolute path as the user would type it (not percent-encoded). An image inside a
/// container file is identified by its number, from 0: `/photos/train.tfrecord/#17`. No other file can have that name,
/// because the container is not a folder. Clones share their text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct SampleUri(Arc<str>);

impl SampleUri {
    /// The path relative to a root, with `/` between its parts; the whole path for an image outside it.
    pub fn name_below(&self, root: Option<&str>) -> String {
        let below = root.and_then(|root| {
            let root = root.trim_end_matches(std::path::is_separator);
            let below = self.as_str().strip_prefix(root)?;
            below.strip_prefix(std::path::is_separator)
        });
        let name = below.unwrap_or(self.as_str());
        if std::path::MAIN_SEPARATOR == '/' { name.to_owned() } else { name.replace(std::path::MAIN_SEPARATOR, "/") }
    }

    pub fn new(uri: impl Into<String>) -> Self {
        Self(uri.into().into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The image with this number, from 0, in a container file.
    pub fn from_record(file: &str, number: u64) -> Self {
        let separator = if file.contains("://") { '/' } else { std::path::MAIN_SEPARATOR };
        Self::new(format!("{file}{separator}#{number}"))
    }

    /// The container file and the number in it, for an image inside one.
    pub fn record(&self) -> Option<(&str, u64)> {
        let (file, number) = self.0.rsplit_once(['/', '\\'])?;
        let digits = number.strip_prefix('#')?;
        let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
        (is_number && !file.is_empty()).then_some((file, digits.parse().ok()?))
    }

    /// Whether this is an image in a line of a JSON Lines file.
    pub fn is_line(&self) -> bool {
        self.record().is_some_and(|(file, _)| is_lines_name(file))
    }

    /// Whether this is an image in a JSON document.
    pub fn is_in_document(&self) -> bool {
        self.record().is_some_and(|(file, _)| is_document_name(file))
    }

    /// Whether this is an image in a TFRecord file, the only other kind of container.
    pub fn is_in_tfrecord(&self) -> bool {
        self.record().is_some_and(|(file, _)| !is_lines_name(file) && !is_document_name(file))
    }

    /// The file on disk or in the bucket: the sample itself, or the container file with it.
    pub fn file(&self) -> &str {
        self.record().map_or(&self.0, |(file, _)| file)
    }

    /// The last part: `cat.jpg` of `/photos/cat.jpg`, `train.tfrecord/#17` for an image in a container file.
    pub fn file_name(&self) -> &str {
        let before = self.file().rfind(['/', '\\']);
        before.map_or(&self.0, |separator| &self.0[separator + 1..])
    }
}

/// Whether a file, opened by itself, is a JSON Lines file with one image per line, judging by its name.
pub fn is_lines_name(name: &str) -> bool {
    ["jsonl", "jsonlines", "ndjson"].into_iter().any(|known| has_extension(name, known))
}

/// Whether a file, opened by itself, is a JSON document with a list of images, judging by its name.
pub fn is_document_name(name: &str) -> bool {
    has_extension(name, "json")
}

fn has_extension(name: &str, known: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, extension)| extension.eq_ignore_ascii_case(known))
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

/// Writes the name with visible control characters. The unchanged name is [`SampleUri::as_str`].
impl std::fmt::Display for SampleUri {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&visible(&self.0))
    }
}

/// Position in the listing of the open source. Stable while the source is open: new images are added at the end.
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

/// An entry of a source's listing. The image itself has not been read, except for [`Self::capture`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    pub uri: SampleUri,
    /// The path relative to the opened folder, with `/` between its parts; the file name for a single file.
    pub name: String,
    pub size_bytes: u64,
    /// The modification time in nanoseconds since 1970-01-01 UTC, if the source knows it.
    pub modified_ns: Option<i64>,
    /// The `ETag` of an object, without quotes; `None` for files.
    pub etag: Option<Arc<str>>,
    /// The EXIF data to search for; `None` until it is read.
    pub capture: Option<Arc<Capture>>,
}

/// Distinguishes versions of a file without reading it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct FileStamp {
    pub size_bytes: u64,
    /// Nanoseconds since 1970-01-01 UTC, if the source knows it and has no `ETag`.
    pub modified_ns: Option<i64>,
    /// As [`Sample::etag`].
    pub etag: Option<Arc<str>>,
}

impl FileStamp {
    /// Whether both belong to the same version of a file, as far as is known: the oldest projects do not record it.
    pub fn is_of(&self, other: &Self) -> bool {
        let unknown = Self::default();
        self == other || *self == unknown || *other == unknown
    }
}

impl Sample {
    /// A file of which nothing else is known.
    pub fn new(uri: SampleUri, name: impl Into<String>, size_bytes: u64) -> Self {
        Self { uri, name: name.into(), size_bytes, modified_ns: None, etag: None, capture: None }
    }

    /// The version of the file. An `ETag` replaces the time: an object that was copied again with the same content is
    /// the same.
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
    /// What could not be listed, and why; the listing continues.
    pub problems: Vec<Problem>,
    /// Notes about the listing, such as what was skipped. Whole sentences without a period.
    pub notes: Vec<String>,
}

impl Extend<Result<Sample, Problem>> for Page {
    fn extend<T: IntoIterator<Item = Result<Sample, Problem>>>(&mut self, entries: T) {
        for entry in entries {
            match entry {
                Ok(sample) => self.samples.push(sample),
                Err(problem) => self.problems.push(problem),
            }
        }
    }
}

impl FromIterator<Result<Sample, Problem>> for Page {
    fn from_iter<T: IntoIterator<Item = Result<Sample, Problem>>>(entries: T) -> Self {
        let mut page = Self::default();
        page.extend(entries);
        page
    }
}

/// A change to the files of an open source.
#[derive(Debug, PartialEq, Eq)]
pub enum ListingChange {
    /// Files that are new, changed or unchanged.
    Seen(Vec<Sample>),
    /// Files, or folders with everything in them, that no longer exist.
    Gone(Vec<SampleUri>),
    /// The complete listing, because changes were missed.
    Relisted(Vec<Sample>),
    /// The complete listing of a changed container file.
    FileRelisted { file: SampleUri, page: Page },
    /// Some or all changes go unnoticed, and why.
    Unwatched(String),
    /// Changes are not reported, and why; they appear on the next listing. Not a failure.
    Unwatchable(String),
}

/// Filter for the jobs or endpoints of an AWS account. `None` does not filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListQuery<S> {
    /// Part of the name: letters, digits and hyphens.
    pub name_contains: Option<String>,
    pub status: Option<S>,
    /// [`ListPage::next`] of the previous page.
    pub page_token: Option<String>,
}

impl<S> Default for ListQuery<S> {
    fn default() -> Self {
        Self { name_contains: None, status: None, page_token: None }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPage<T> {
    pub items: Vec<T>,
    /// `None` after the last page.
    pub next: Option<String>,
}

/// An entry in the list of problems. The message states what happened, why, and what to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The affected image; `None` if the problem concerns a folder, a model or the program.
    pub uri: Option<SampleUri>,
    pub message: String,
}

impl Problem {
    pub fn new(uri: SampleUri, message: impl Into<String>) -> Self {
        Self { uri: Some(uri), message: message.into() }
    }

    pub fn general(message: impl Into<String>) -> Self {
        Self { uri: None, message: message.into() }
    }
}

/// What happened to `name`, for people: “a.jpg is truncated: …” if the message goes on with a verb, otherwise “a.jpg: the
/// connection was cut”.
pub fn problem_of(name: &str, message: &str) -> String {
    const VERBS: [&str; 8] = ["is", "has", "needs", "contains", "does", "ends", "may be", "could not be"];
    let goes_on = |verb: &str| message.strip_prefix(verb).is_some_and(|rest| rest.starts_with(' '));
    let colon = if VERBS.into_iter().any(goes_on) { "" } else { ":" };
    format!("{name}{colon} {message}")
}

impl std::fmt::Display for Problem {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.uri {
            Some(uri) => write!(formatter, "{uri}: {}", self.message),
            None => formatter.write_str(&self.message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_image_knows_its_file_and_number() {
        for (uri, record, file_name) in [
            ("/photos/cat.jpg", None, "cat.jpg"),
            ("/photos/a.tfrecord/#17", Some(("/photos/a.tfrecord", 17)), "a.tfrecord/#17"),
            ("s3://b/a.tfrecord/#0", Some(("s3://b/a.tfrecord", 0)), "a.tfrecord/#0"),
            ("C:\\photos\\a.tfrecord\\#2", Some(("C:\\photos\\a.tfrecord", 2)), "a.tfrecord\\#2"),
            ("/photos/#1.jpg", None, "#1.jpg"),
            ("/photos/#", None, "#"),
            ("/photos/#+1", None, "#+1"),
            ("/photos/#99999999999999999999", None, "#99999999999999999999"),
            ("/#1", None, "#1"),
            ("cat.jpg", None, "cat.jpg"),
        ] {
            let uri = SampleUri::new(uri);
            assert_eq!(uri.record(), record, "{uri}");
            assert_eq!(uri.file_name(), file_name, "{uri}");
            if let Some((file, number)) = record.filter(|(file, _)| !file.contains('\\')) {
                assert_eq!(SampleUri::from_record(file, number).record(), record);
            }
        }
    }

    #[test]
    fn line_images_use_their_file_name() {
        for (uri, expected) in [
            ("/lists/a.jsonl/#0", true),
            ("s3://b/A.JSONLINES/#3", true),
            ("/lists/a.ndjson/#0", true),
            ("/lists/a.jsonl", false),
            ("/lists/a.json/#0", false),
            ("/lists/a.tfrecord/#0", false),
            ("/jsonl/#0", false),
        ] {
            assert_eq!(SampleUri::new(uri).is_line(), expected, "{uri}");
        }
    }

    #[test]
    fn message_with_a_verb_has_no_colon() {
        for (message, expected) in [
            ("is truncated: copy it again", "a.jpg is truncated: copy it again"),
            ("could not be read: no such file", "a.jpg could not be read: no such file"),
            ("the connection was cut", "a.jpg: the connection was cut"),
            ("issues were found", "a.jpg: issues were found"),
            ("could not upload it", "a.jpg: could not upload it"),
        ] {
            assert_eq!(problem_of("a.jpg", message), expected);
        }
    }
}
