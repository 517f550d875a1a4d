//! Where images come from. Every source passes the same contract test (`tests.rs`, and `tests/library/source.rs`
//! with a real S3 server).
//!
//! Knows nothing about the content of images.

mod files;
mod lines;
mod list;
mod local;
mod s3;
mod tfrecord;
mod twice;

pub use crate::domain::{ListingChange, Page};
pub use files::{FileEntry, FileReader, Files, FilesError, Links};
pub use lines::LinesSource;
pub use list::{DrawError, DrawnListing, ImageList, ListedImage};
pub use local::{LocalSource, stamp_on_disk};
pub use s3::{S3Source, is_folder_marker, is_hidden_name};
pub use tfrecord::{RECORD_EXTENSIONS, WithRecords, framed_record};
pub use twice::ReadTwice;

use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::aws::{AwsError, AwsErrorKind};
use crate::domain::{Sample, SampleUri, Truth};
use crate::tasks::TaskControl;
use tfrecord::{is_shard_name, is_tfrecord_name};

#[cfg(test)]
mod tests;

/// Image file extensions in lowercase; matched ignoring case.
pub const IMAGE_EXTENSIONS: [&str; 11] =
    ["jpg", "jpeg", "jpe", "jfif", "png", "webp", "bmp", "dib", "tif", "tiff", "gif"];

/// Images to list and read. Never written to.
pub trait Source: Send + Sync {
    /// A path or address for people.
    fn name(&self) -> String;

    /// The source that does everything that this one does not do itself.
    fn inner(&self) -> Option<&dyn Source> {
        None
    }

    /// The listing in final order, page by page. The first page arrives soon, however large the whole is.
    fn pages(&self) -> Box<dyn Iterator<Item = Page> + Send>;

    /// The whole file.
    ///
    /// # Errors
    /// [`SourceError::Unreachable`] if no other image could be read either; every other error concerns only this image.
    fn read(&self, uri: &SampleUri) -> Result<Vec<u8>, SourceError>;

    /// The bytes from `range.start` up to `range.end`; fewer if the file is shorter.
    fn read_range(&self, uri: &SampleUri, range: Range<u64>) -> Result<Vec<u8>, SourceError>;

    /// As [`Source::read_range`], for bytes that are read once and need no cache.
    fn read_once(&self, uri: &SampleUri, range: Range<u64>) -> Result<Vec<u8>, SourceError> {
        match self.inner() {
            Some(inner) => inner.read_once(uri, range),
            None => self.read_range(uri, range),
        }
    }

    /// The server of the URIs, if another server may have the same ones; `None` for files, and for AWS.
    fn server(&self) -> Option<&str> {
        self.inner()?.server()
    }

    /// Whether a file of this size is cached after reading, so that reading ahead saves time later. False if reading is
    /// fast.
    fn is_cached(&self, size_bytes: u64) -> bool {
        self.inner().is_some_and(|inner| inner.is_cached(size_bytes))
    }

    /// The most efficient number of parallel reads: more than a disk needs if reads wait for a network.
    fn useful_reads(&self) -> usize {
        match self.inner() {
            Some(inner) => inner.useful_reads(),
            None => 4,
        }
    }

    /// The same source for one task: a read that waits for a network stops with [`SourceError::Cancelled`] as soon as
    /// the task is canceled. `None` if reads wait only for a disk.
    fn for_task(&self, control: &TaskControl) -> Option<Arc<dyn Source>> {
        let _ = control;
        None
    }

    /// The whole file, and any annotations that the source stores with it.
    fn read_with_truth(&self, uri: &SampleUri) -> Result<(Vec<u8>, Truth), SourceError> {
        match self.inner() {
            Some(inner) => inner.read_with_truth(uri),
            None => Ok((self.read(uri)?, Truth::default())),
        }
    }

    /// The serialized `tf.Example` of an image in a TFRecord file; `None` for an image file.
    fn read_example(&self, uri: &SampleUri) -> Result<Option<Vec<u8>>, SourceError> {
        self.inner().map_or(Ok(None), |inner| inner.read_example(uri))
    }

    /// The line of an image in a JSON Lines file; `None` for other images.
    fn read_line(&self, uri: &SampleUri) -> Result<Option<Vec<u8>>, SourceError> {
        self.inner().map_or(Ok(None), |inner| inner.read_line(uri))
    }

    /// The number of records in a TFRecord file, or lines in a lines file, including those without an image; `None` if
    /// unknown.
    fn record_count(&self, file: &SampleUri) -> Result<Option<u64>, SourceError> {
        self.inner().map_or(Ok(None), |inner| inner.record_count(file))
    }

    /// Whether it lists only some images of a folder, so that the folder has predictions of others.
    fn is_part(&self) -> bool {
        false
    }

    /// Reports files that appear, change or vanish, as long as the source lives. Must be called before listing begins,
    /// so that nothing is missed; changes during the listing may be reported twice. A source that never changes reports
    /// nothing.
    fn watch(&self, report: Box<dyn Fn(ListingChange) + Send + Sync>) {
        if let Some(inner) = self.inner() {
            inner.watch(report);
        }
    }
}

/// `source` for one task, so that canceling the task ends its waits.
pub fn for_task(source: &Arc<dyn Source>, control: &TaskControl) -> Arc<dyn Source> {
    source.for_task(control).unwrap_or_else(|| Arc::clone(source))
}

/// The existing part of `range`.
fn cut(mut bytes: Vec<u8>, range: Range<u64>) -> Vec<u8> {
    bytes.truncate(usize::try_from(range.end).unwrap_or(usize::MAX));
    let start = usize::try_from(range.start).unwrap_or(usize::MAX);
    bytes.drain(..start.min(bytes.len()));
    bytes
}

#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    #[error("the file does not exist; it may have been moved or deleted since it was listed")]
    NotFound,
    /// The source to open does not exist.
    #[error("the file or folder does not exist; check the spelling and whether it was moved or deleted")]
    NoSuchPlace,
    #[error("permission denied; change the file's permissions")]
    PermissionDenied,
    #[error("{0}")]
    Damaged(String),
    /// Nothing in the source can be read at the moment: its folder is gone, or its server does not respond. This does
    /// not concern the image.
    #[error("{0}")]
    Unreachable(String),
    #[error("could not be read: {0}")]
    Io(#[source] std::io::Error),
    #[error("reading it was canceled")]
    Cancelled,
    #[error("{0}")]
    Aws(#[source] AwsError),
}

impl From<AwsError> for SourceError {
    fn from(error: AwsError) -> Self {
        match error.kind {
            AwsErrorKind::NotFound => Self::NotFound,
            AwsErrorKind::Cancelled => Self::Cancelled,
            _ => Self::Aws(error),
        }
    }
}

/// Whether a file in a folder is listed: images, and potential containers of images.
fn is_listed(path: impl AsRef<Path>) -> bool {
    has_image_extension(path.as_ref()) || may_hold_records(path.as_ref())
}

/// The kind of an object, judging by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NamedKind {
    Image,
    /// A TFRecord file, or a shard that may be one.
    Records,
    Other,
}

/// The kind of a file, judging by the extension of its path or key.
pub fn kind_of_name(name: &str) -> NamedKind {
    let path = Path::new(name);
    if has_image_extension(path) {
        NamedKind::Image
    } else if may_hold_records(path) {
        NamedKind::Records
    } else {
        NamedKind::Other
    }
}

fn may_hold_records(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    is_tfrecord_name(&name) || is_shard_name(&name)
}

fn has_image_extension(path: &Path) -> bool {
    let extension = path.extension();
    let extension = extension.and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| IMAGE_EXTENSIONS.iter().any(|known| known.eq_ignore_ascii_case(extension)))
}

impl From<std::io::Error> for SourceError {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::NotFound => Self::NotFound,
            std::io::ErrorKind::PermissionDenied => Self::PermissionDenied,
            _ => Self::Io(error),
        }
    }
}

/// The absolute path. `..` is resolved on disk, because links can lead to other folders than their names suggest; the
/// part after the last `..` stays unchanged.
///
/// # Errors
/// The path is empty, or the current folder is gone.
pub fn absolute(path: &Path) -> std::io::Result<PathBuf> {
    let absolute = std::path::absolute(path)?;
    let mut behind = Vec::new();
    let mut ahead = absolute.components();
    loop {
        match ahead.clone().next_back() {
            None => return Ok(absolute),
            Some(Component::ParentDir) => break,
            Some(part) => behind.push(part),
        }
        ahead.next_back();
    }
    // A missing source is reported when it is opened, by the name that was given.
    let Ok(mut resolved) = ahead.as_path().canonicalize() else {
        return Ok(absolute);
    };
    resolved.extend(behind.into_iter().rev());
    Ok(resolved)
}

/// The folder itself, or the folder of a file.
pub fn folder_of(path: &Path) -> PathBuf {
    if path.is_dir() {
        return path.to_owned();
    }
    let uri = SampleUri::new(path.to_string_lossy());
    let file = match uri.record() {
        Some((file, _)) if !path.exists() => Path::new(file),
        _ => path,
    };
    file.parent().unwrap_or(path).to_owned()
}

/// Named files in memory, listed in the given order.
#[derive(Debug, Clone, Default)]
pub struct MemorySource {
    files: Vec<(SampleUri, Vec<u8>)>,
}

impl MemorySource {
    pub fn new(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        Self { files: files.into_iter().map(|(name, bytes)| (SampleUri::new(name), bytes)).collect() }
    }
}

impl Source for MemorySource {
    fn name(&self) -> String {
        "memory".to_owned()
    }

    fn pages(&self) -> Box<dyn Iterator<Item = Page> + Send> {
        let samples =
            self.files.iter().map(|(uri, bytes)| Sample::new(uri.clone(), uri.file_name(), bytes.len() as u64));
        let page = Page { samples: samples.collect(), ..Page::default() };
        Box::new((!page.samples.is_empty()).then_some(page).into_iter())
    }

    fn read(&self, uri: &SampleUri) -> Result<Vec<u8>, SourceError> {
        let file = self.files.iter().find(|(known, _)| known == uri);
        file.map(|(_, bytes)| bytes.clone()).ok_or(SourceError::NotFound)
    }

    fn read_range(&self, uri: &SampleUri, range: Range<u64>) -> Result<Vec<u8>, SourceError> {
        self.read(uri).map(|bytes| cut(bytes, range))
    }
}
