//! Files of any kind, local or in S3: a single one, or all below a folder. Listed and read, never written.

use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use super::{Source, SourceError, WithRecords};
use crate::aws::{Aws, AwsError, ListRequest, ObjectInfo, S3, if_there};
use crate::domain::{Location, S3Address, S3Place};
use crate::local_file;
use crate::tasks::{Cancelled, TaskControl, in_parallel};

/// The number of bytes read per request. Another request to S3 costs about 30 ms.
const BLOCK_BYTES: u64 = 4 << 20;
/// The most efficient number of parallel reads, as for images.
const READS_OF_S3: usize = 32;
const READS_OF_DISK: usize = 4;
/// The number of files that a reader reads before the results are passed on.
const READS_IN_TURN: usize = 16;
/// Larger files are not read by `read_each`.
const LARGEST_OF_MANY: u64 = 16 << 20;

/// A file, or a folder and everything below it.
#[derive(Clone)]
pub struct Files(Kind);

#[derive(Clone)]
enum Kind {
    Local(PathBuf),
    S3 { aws: Aws, s3: S3, place: S3Place },
}

/// A listed file. Its content has not been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// The path relative to the folder, with `/` between its parts; the file name for a single file.
    pub name: String,
    pub size_bytes: u64,
    /// In S3.
    pub etag: Option<String>,
    /// Nanoseconds since 1970-01-01 UTC, by the clock of the storage.
    pub modified_ns: Option<i64>,
    /// The full key in the bucket, or the name. Only compared with image names: it never becomes a path.
    pub key: String,
    /// Empty in S3.
    path: PathBuf,
}

/// Whether links are followed while a folder is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    Follow,
    Skip,
}

#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    #[error("{place} does not exist; check the spelling and whether it was moved or deleted")]
    NoSuchPlace { place: String },
    #[error("could not read {place}: {source}")]
    Local {
        place: String,
        #[source]
        source: io::Error,
    },
    #[error("{0}")]
    Aws(#[from] AwsError),
    #[error("canceled")]
    Cancelled(#[from] Cancelled),
}

impl FileEntry {
    fn from_object(name: String, object: ObjectInfo) -> Self {
        let ObjectInfo { key, size_bytes, etag, modified_ns } = object;
        Self { name, key, size_bytes, etag, modified_ns, path: PathBuf::new() }
    }

    #[cfg(test)]
    pub fn from_key(key: &str) -> Self {
        let [name, key] = [key; 2].map(str::to_owned);
        Self { name, key, size_bytes: 1, etag: None, modified_ns: None, path: PathBuf::new() }
    }
}

impl Files {
    /// A local file or folder.
    pub fn local(path: &Path) -> Self {
        Self(Kind::Local(path.to_owned()))
    }

    /// An object, or everything below a prefix. Sends no request yet.
    pub fn in_s3(aws: &Aws, place: &S3Place) -> Self {
        Self(Kind::S3 { aws: aws.clone(), s3: aws.s3(&place.access), place: place.clone() })
    }

    pub fn new(aws: &Aws, location: &Location) -> Self {
        match location {
            Location::Path(path) => Self::local(path),
            Location::S3(place) => Self::in_s3(aws, place),
        }
    }

    /// The folder around this file or folder; `None` for a whole bucket or disk.
    pub fn parent(&self) -> Option<Self> {
        match &self.0 {
            Kind::Local(path) => {
                let path = path.parent()?;
                // The folder that a bare name is in.
                Some(Self::local(if path.as_os_str().is_empty() { Path::new(".") } else { path }))
            }
            Kind::S3 { place, .. } => self.at_address(place.address.parent()?),
        }
    }

    /// The file or folder at `path`, absolute or relative to this folder; `None` if it would be outside the bucket.
    pub fn at(&self, path: &str) -> Option<Self> {
        match &self.0 {
            Kind::Local(folder) => Some(Self::local(&folder.join(path))),
            Kind::S3 { place, .. } => self.at_address(place.address.at(path)?),
        }
    }

    /// Another address with the same access; `None` if local.
    pub fn at_address(&self, address: S3Address) -> Option<Self> {
        let Kind::S3 { aws, s3, place } = &self.0 else { return None };
        let place = S3Place { address, ..place.clone() };
        Some(Self(Kind::S3 { aws: aws.clone(), s3: s3.clone(), place }))
    }

    /// The address; `None` if local.
    pub fn address(&self) -> Option<&S3Address> {
        match &self.0 {
            Kind::Local(_) => None,
            Kind::S3 { place, .. } => Some(&place.address),
        }
    }

    /// Whether a listed file is itself what was opened, rather than in an opened folder.
    pub fn is_file(&self, file: &FileEntry) -> bool {
        match &self.0 {
            Kind::Local(path) => *path == file.path,
            Kind::S3 { place, .. } => place.address.prefix == file.key,
        }
    }

    /// The most efficient number of parallel reads.
    pub fn useful_reads(&self) -> usize {
        match &self.0 {
            Kind::Local(_) => READS_OF_DISK,
            Kind::S3 { .. } => READS_OF_S3,
        }
    }

    pub fn images(&self, control: &TaskControl) -> Result<Arc<dyn Source>, SourceError> {
        Ok(match &self.0 {
            Kind::Local(path) => Arc::new(WithRecords::open(path)?),
            Kind::S3 { aws, place, .. } => Arc::new(WithRecords::in_s3(aws, place, Some(control), |source| source)?.0),
        })
    }

    pub fn name(&self) -> String {
        match &self.0 {
            Kind::Local(path) => path.display().to_string(),
            Kind::S3 { place, .. } => place.address.to_string(),
        }
    }

    pub fn name_of(&self, file: &FileEntry) -> String {
        match &self.0 {
            Kind::Local(_) => file.path.display().to_string(),
            Kind::S3 { place, .. } => place.address.uri_of(&file.key).to_string(),
        }
    }

    /// The file itself if this is one, otherwise all files below the folder in byte order of their names, without
    /// hidden ones.
    ///
    /// # Errors
    /// The folder cannot be listed completely: a partial list would look like missing files.
    pub fn list(&self, control: &TaskControl) -> Result<Vec<FileEntry>, FilesError> {
        // Datasets are often assembled from links; a link to an outer folder is a listing error.
        let mut files = self.list_all(Links::Follow, control, |_| {})?;
        if let Kind::S3 { place, .. } = &self.0
            && files.is_empty()
        {
            return Err(FilesError::NoSuchPlace { place: place.address.to_string() });
        }
        files.retain(|file| !file.name.split('/').any(|part| part.starts_with('.')));
        Ok(files)
    }

    /// As [`Self::list`], including hidden files; `found` is called with the number of files in each part of the
    /// listing.
    ///
    /// # Errors
    /// The folder cannot be listed completely.
    pub fn list_all(
        &self,
        links: Links,
        control: &TaskControl,
        found: impl Fn(u64),
    ) -> Result<Vec<FileEntry>, FilesError> {
        self.list_some(links, control, found, |_| true)
    }

    /// As [`Self::list_all`], keeping only the files whose names `is_wanted`.
    ///
    /// # Errors
    /// The folder cannot be listed completely.
    pub fn list_some(
        &self,
        links: Links,
        control: &TaskControl,
        found: impl Fn(u64),
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<Vec<FileEntry>, FilesError> {
        let mut files = match &self.0 {
            Kind::Local(path) => list_local(path, links, control, found, is_wanted)?,
            Kind::S3 { s3, place, .. } => list_s3(s3, &place.address, control, found, is_wanted)?,
        };
        files.sort_by(|left, right| left.name.as_bytes().cmp(right.name.as_bytes()));
        Ok(files)
    }

    /// The file with this name below the folder. A local folder is listed for it, because a name from a file must never
    /// become a path.
    ///
    /// # Errors
    /// It could not be checked whether the file exists.
    pub fn find(&self, name: &str, links: Links, control: &TaskControl) -> Result<Option<FileEntry>, FilesError> {
        match &self.0 {
            Kind::Local(_) => Ok(self.list_all(links, control, |_| {})?.into_iter().find(|file| file.name == name)),
            Kind::S3 { s3, place, .. } => {
                let key = format!("{}{name}", place.address.prefix);
                Ok(find_object(s3, &place.address.bucket, &key, name, control)?)
            }
        }
    }

    /// # Errors
    /// Not even the beginning of the folder can be listed.
    pub fn check_folder(&self, control: &TaskControl) -> Result<(), FilesError> {
        match &self.0 {
            Kind::Local(path) => std::fs::read_dir(path).map(drop).map_err(|source| local_error(path, source)),
            Kind::S3 { s3, place, .. } => Ok(s3.first_object(&place.address, Some(control)).map(drop)?),
        }
    }

    /// A range of a file; shorter at its end.
    pub fn read_range(
        &self,
        file: &FileEntry,
        range: Range<u64>,
        control: &TaskControl,
    ) -> Result<Vec<u8>, FilesError> {
        control.checkpoint()?;
        match &self.0 {
            // An HTTP range has at least one byte.
            Kind::S3 { .. } if range.is_empty() || file.size_bytes == 0 => Ok(Vec::new()),
            Kind::S3 { s3, place, .. } => {
                Ok(s3.read_range(&place.address.bucket, &file.key, range, file.etag.as_deref(), Some(control))?)
            }
            Kind::Local(_) => {
                local_file::read_range(&file.path, range).map_err(|source| local_error(&file.path, source))
            }
        }
    }

    pub fn read(&self, file: &FileEntry, control: &TaskControl) -> Result<Vec<u8>, FilesError> {
        self.read_range(file, 0..file.size_bytes, control)
    }

    /// Reads whole files in parallel and passes them on in order, adding their bytes to the progress. For a file that
    /// cannot be read, or is too large, it passes on the reason, to follow the file name.
    ///
    /// # Errors
    /// The task was canceled, or the folder is gone.
    pub fn read_each(
        &self,
        files: &[FileEntry],
        control: &TaskControl,
        mut each: impl FnMut(usize, Result<Vec<u8>, String>),
    ) -> Result<(), FilesError> {
        let readers = self.useful_reads();
        control.set_total(Some(files.iter().map(|file| file.size_bytes).sum()));
        for (number, chunk) in files.chunks(readers * READS_IN_TURN).enumerate() {
            let read = in_parallel(readers, chunk.len(), |_, index| match self.read_small(&chunk[index], control) {
                Err(FilesError::Cancelled(cancelled)) => Err(cancelled),
                read => Ok(read.map_err(|error| format!("could not be read: {error}"))),
            })?;
            for (index, (file, content)) in chunk.iter().zip(read).enumerate() {
                control.add_done(file.size_bytes);
                each(number * readers * READS_IN_TURN + index, content);
            }
        }
        Ok(())
    }

    fn read_small(&self, file: &FileEntry, control: &TaskControl) -> Result<Vec<u8>, FilesError> {
        if file.size_bytes > LARGEST_OF_MANY {
            let source = io::Error::other("it is larger than 16 MiB");
            return Err(FilesError::Local { place: self.name_of(file), source });
        }
        self.read(file, control)
    }

    /// Reads a file from its beginning, block by block, and adds its bytes to the progress.
    pub fn reader<'f>(&'f self, file: &'f FileEntry, control: &'f TaskControl) -> FileReader<'f> {
        FileReader { files: self, file, control, read: 0, block: Vec::new(), at: 0, error: None }
    }
}

/// The content of a file, in order. An error ends it and is kept.
pub struct FileReader<'f> {
    files: &'f Files,
    file: &'f FileEntry,
    control: &'f TaskControl,
    /// The number of bytes read in blocks.
    read: u64,
    block: Vec<u8>,
    /// The position in the current block.
    at: usize,
    error: Option<FilesError>,
}

impl FileReader<'_> {
    /// The error that ended reading, once.
    pub fn take_error(&mut self) -> Option<FilesError> {
        self.error.take()
    }
}

impl Read for FileReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at == self.block.len() {
            let end = (self.read + BLOCK_BYTES).min(self.file.size_bytes);
            if self.read >= end {
                return Ok(0);
            }
            match self.files.read_range(self.file, self.read..end, self.control) {
                Ok(block) => (self.block, self.at) = (block, 0),
                Err(error) => {
                    let message = error.to_string();
                    self.error = Some(error);
                    return Err(io::Error::other(message));
                }
            }
            self.read += self.block.len() as u64;
            self.control.add_done(self.block.len() as u64);
        }
        let count = into.len().min(self.block.len() - self.at);
        into[..count].copy_from_slice(&self.block[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

fn local_error(path: &Path, source: io::Error) -> FilesError {
    let place = path.display().to_string();
    match source.kind() {
        io::ErrorKind::NotFound => FilesError::NoSuchPlace { place },
        _ => FilesError::Local { place, source },
    }
}

fn list_local(
    root: &Path,
    links: Links,
    control: &TaskControl,
    found: impl Fn(u64),
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Vec<FileEntry>, FilesError> {
    local_file::metadata(root).map_err(|source| local_error(root, source))?;
    let mut files = Vec::new();
    for entry in walkdir::WalkDir::new(root).follow_links(links == Links::Follow) {
        control.checkpoint()?;
        let failed = |error: walkdir::Error| {
            let path = error.path().unwrap_or(root).to_owned();
            local_error(&path, error.into())
        };
        let entry = entry.map_err(failed)?;
        if !entry.file_type().is_file() {
            continue;
        }
        let below = entry.path().strip_prefix(root).unwrap_or(entry.path());
        let below = if below.as_os_str().is_empty() { Path::new(entry.file_name()) } else { below };
        let name = below.to_string_lossy().replace(std::path::MAIN_SEPARATOR, "/");
        found(1);
        if !is_wanted(&name) {
            continue;
        }
        let metadata = entry.metadata().map_err(failed)?;
        let modified = metadata.modified().ok();
        let since_epoch = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        files.push(FileEntry {
            name: name.clone(),
            key: name,
            size_bytes: metadata.len(),
            etag: None,
            modified_ns: since_epoch.and_then(|time| i64::try_from(time.as_nanos()).ok()),
            path: entry.into_path(),
        });
    }
    Ok(files)
}

fn find_object(
    s3: &S3,
    bucket: &str,
    key: &str,
    name: &str,
    control: &TaskControl,
) -> Result<Option<FileEntry>, AwsError> {
    let object = if_there(s3.object(bucket, key, Some(control)))?;
    Ok(object.map(|object| FileEntry::from_object(name.to_owned(), object)))
}

fn list_s3(
    s3: &S3,
    address: &S3Address,
    control: &TaskControl,
    found: impl Fn(u64),
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Vec<FileEntry>, FilesError> {
    let S3Address { bucket, prefix } = address;
    if !address.is_folder()
        && let Some(file) = find_object(s3, bucket, prefix, address.last_part(), control)?
    {
        return Ok(vec![file]);
    }
    let folder = address.as_folder();
    let mut listing = s3.list(ListRequest::new(&folder))?;
    let mut files = Vec::new();
    while let Some(page) = listing.next_page(Some(control)) {
        control.checkpoint()?;
        let objects = page?.objects;
        found(objects.len() as u64);
        files.extend(objects.into_iter().filter_map(|object| {
            let name = object.key.strip_prefix(&folder.prefix)?.to_owned();
            // Tools create such objects to make empty folders visible.
            let is_marker = name.is_empty() || name.ends_with('/');
            (!is_marker && is_wanted(&name)).then(|| FileEntry::from_object(name, object))
        }));
    }
    Ok(files)
}
