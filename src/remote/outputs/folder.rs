//! A local folder or one in S3 with outputs, listed and read, never written to.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::UNIX_EPOCH;

use super::OutputsError;
use super::json::{MAX_RESPONSE_BYTES, too_long};
use crate::aws::{Aws, AwsError, AwsErrorKind, ListRequest, S3};
use crate::domain::{S3Address, S3Place};
use crate::tasks::{ProgressUnit, TaskControl};

/// Reads at once that make it fastest, as for images.
const READS_OF_S3: usize = 32;
const READS_OF_DISK: usize = 4;

/// A folder of outputs. Clones are handles of the same.
#[derive(Clone)]
pub struct OutputFolder {
    kind: Kind,
    /// The reason why the folder became unreadable.
    outage: Arc<OnceLock<String>>,
}

#[derive(Clone)]
enum Kind {
    Local(PathBuf),
    S3 { s3: S3, folder: S3Address },
}

/// An entry of the folder. Nothing of it has been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputFile {
    /// The whole key in the bucket, or the path below the folder, with `/` between its parts. Only ever held against
    /// the names of images: it never becomes a path.
    pub key: String,
    pub size_bytes: u64,
    /// The ETag in S3.
    pub etag: Option<String>,
    /// Nanoseconds since 1970-01-01 UTC, by the clock of where it is.
    pub modified_ns: Option<i64>,
}

impl OutputFolder {
    /// A folder of this machine.
    pub fn local(path: &Path) -> Self {
        Self::of(Kind::Local(path.to_owned()))
    }

    /// Everything below a prefix in S3. Sends no request yet.
    pub fn in_s3(aws: &Aws, place: &S3Place) -> Self {
        Self::of(Kind::S3 { s3: aws.s3(&place.access), folder: place.address.as_folder() })
    }

    fn of(kind: Kind) -> Self {
        Self { kind, outage: Arc::default() }
    }

    /// The name of the folder, for people.
    pub fn name(&self) -> String {
        match &self.kind {
            Kind::Local(path) => path.display().to_string(),
            Kind::S3 { folder, .. } => folder.to_string(),
        }
    }

    /// The prefix of its keys; empty for a local folder.
    pub(super) fn address(&self) -> S3Address {
        match &self.kind {
            Kind::Local(_) => S3Address::new("", ""),
            Kind::S3 { folder, .. } => folder.clone(),
        }
    }

    /// Another folder with the same access; `None` if local.
    pub(super) fn remote_inference(&self, address: &S3Address) -> Option<Self> {
        match &self.kind {
            Kind::Local(_) => None,
            Kind::S3 { s3, .. } => Some(Self {
                kind: Kind::S3 { s3: s3.clone(), folder: address.as_folder() },
                outage: Arc::clone(&self.outage),
            }),
        }
    }

    /// The file with this name below the folder, with `/` between its parts. A local folder is listed for it: a name
    /// from an output never becomes a path.
    ///
    /// # Errors
    /// It could not be checked whether the file exists.
    pub(super) fn find(&self, name: &str, control: &TaskControl) -> Result<Option<OutputFile>, String> {
        match &self.kind {
            Kind::Local(path) => {
                // Its progress is not the caller's.
                let listing = TaskControl::new(ProgressUnit::Bytes);
                let files = list_local(path, &listing).map_err(|error| error.to_string())?;
                Ok(files.into_iter().find(|file| file.key == name))
            }
            Kind::S3 { s3, folder } => {
                let key = format!("{}{name}", folder.prefix);
                match s3.object(&folder.bucket, &key, Some(control)) {
                    Ok(object) => Ok(Some(OutputFile {
                        key,
                        size_bytes: object.size_bytes,
                        etag: object.etag,
                        modified_ns: object.modified_ns,
                    })),
                    Err(error) if error.kind == AwsErrorKind::NotFound => Ok(None),
                    Err(error) => Err(error.to_string()),
                }
            }
        }
    }

    pub(super) fn useful_reads(&self) -> usize {
        match &self.kind {
            Kind::Local(_) => READS_OF_DISK,
            Kind::S3 { .. } => READS_OF_S3,
        }
    }

    /// The name of a file, for people.
    pub(super) fn name_of(&self, file: &OutputFile) -> String {
        match &self.kind {
            Kind::Local(path) => path.join(&file.key).display().to_string(),
            Kind::S3 { folder, .. } => folder.uri_of(&file.key).to_string(),
        }
    }

    /// Everything whose name ends in `.out`, in the order of the bytes of the keys.
    ///
    /// # Errors
    /// The folder cannot be listed to its end: half a list would look like missing outputs.
    pub fn list(&self, control: &TaskControl) -> Result<Vec<OutputFile>, OutputsError> {
        let mut files = match &self.kind {
            Kind::Local(path) => list_local(path, control)?,
            Kind::S3 { s3, folder } => list_s3(s3, folder, control)?,
        };
        files.retain(|file| file.key.ends_with(super::OUT));
        files.sort_by(|left, right| left.key.as_bytes().cmp(right.key.as_bytes()));
        Ok(files)
    }

    /// The whole file with the response about one image.
    ///
    /// # Errors
    /// It cannot be read, is another one than was listed, or is too long to be believed.
    pub(super) fn read(&self, file: &OutputFile, control: &TaskControl) -> Result<Vec<u8>, String> {
        if file.size_bytes > MAX_RESPONSE_BYTES {
            return Err(too_long(file.size_bytes));
        }
        match &self.kind {
            Kind::Local(_) => self.read_range(file, 0..file.size_bytes, control),
            Kind::S3 { s3, folder } => {
                let (bucket, etag) = (&folder.bucket, file.etag.as_deref());
                let read = s3.read(bucket, &file.key, etag, Some(control));
                read.map_err(|error| self.remember_outage(s3, folder, error, control))
            }
        }
    }

    /// A range of a file; fewer bytes at its end.
    pub(super) fn read_range(
        &self,
        file: &OutputFile,
        range: Range<u64>,
        control: &TaskControl,
    ) -> Result<Vec<u8>, String> {
        match &self.kind {
            Kind::Local(folder) => {
                let path = folder.join(&file.key);
                read_local(&path, range).map_err(|error| {
                    let reason = format!("could not read the output ({error}): {}", path.display());
                    if std::fs::read_dir(folder).is_err() {
                        self.outage.get_or_init(|| reason.clone());
                    }
                    reason
                })
            }
            Kind::S3 { s3, folder } => {
                let (bucket, etag) = (&folder.bucket, file.etag.as_deref());
                let read = s3.read_range(bucket, &file.key, range, etag, Some(control));
                read.map_err(|error| self.remember_outage(s3, folder, error, control))
            }
        }
    }

    /// The reason why the folder became unreadable.
    pub(super) fn outage(&self) -> Option<&str> {
        self.outage.get().map(String::as_str)
    }

    /// Remembers an error that concerns all outputs. If it is unclear, a listing decides: it worked before.
    fn remember_outage(&self, s3: &S3, folder: &S3Address, error: AwsError, control: &TaskControl) -> String {
        use AwsErrorKind as Kind;
        let may_be_about_all = |kind| matches!(kind, Kind::Server | Kind::Throttled | Kind::Timeout | Kind::Cut);
        let is_about_all = |kind: Kind| kind.concerns_everything() && !matches!(kind, Kind::Local | Kind::NotS3);
        let cannot_list = || {
            let first = s3.first_object(folder, Some(control));
            first.is_err_and(|error| is_about_all(error.kind) || may_be_about_all(error.kind))
        };
        if is_about_all(error.kind) || may_be_about_all(error.kind) && cannot_list() {
            self.outage.get_or_init(|| error.message.clone());
        }
        error.message
    }
}

fn read_local(path: &Path, range: Range<u64>) -> std::io::Result<Vec<u8>> {
    let mut opened = File::open(path)?;
    opened.seek(SeekFrom::Start(range.start))?;
    let mut bytes = Vec::new();
    opened.take(range.end - range.start).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn list_local(folder: &Path, control: &TaskControl) -> Result<Vec<OutputFile>, OutputsError> {
    let failed = |source: std::io::Error| OutputsError::Folder { path: folder.to_owned(), source };
    let mut files = Vec::new();
    // Links are not followed: they may lead anywhere, and SageMaker writes none.
    for entry in walkdir::WalkDir::new(folder) {
        control.checkpoint()?;
        let entry = entry.map_err(|error| failed(error.into()))?;
        if !entry.file_type().is_file() {
            continue;
        }
        let below = entry.path().strip_prefix(folder);
        // A name that is not Unicode matches no listed image.
        let Some(key) = below.ok().and_then(Path::to_str) else {
            continue;
        };
        let metadata = entry.metadata().map_err(|error| failed(error.into()))?;
        let modified = metadata.modified().ok();
        let since_epoch = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        files.push(OutputFile {
            key: key.replace(std::path::MAIN_SEPARATOR, "/"),
            size_bytes: metadata.len(),
            etag: None,
            modified_ns: since_epoch.and_then(|time| i64::try_from(time.as_nanos()).ok()),
        });
        control.add_done(1);
    }
    Ok(files)
}

fn list_s3(s3: &S3, folder: &S3Address, control: &TaskControl) -> Result<Vec<OutputFile>, OutputsError> {
    let mut listing = s3.list(ListRequest::of(folder))?;
    let mut files = Vec::new();
    while let Some(page) = listing.next_page(Some(control)) {
        control.checkpoint()?;
        let objects = page?.objects;
        control.add_done(objects.len() as u64);
        files.extend(objects.into_iter().map(|object| OutputFile {
            key: object.key,
            size_bytes: object.size_bytes,
            etag: object.etag,
            modified_ns: object.modified_ns,
        }));
    }
    Ok(files)
}
