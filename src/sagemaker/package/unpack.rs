//! Downloads an archive, recognizes its content, and unpacks it without trusting anything in it.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

use flate2::read::MultiGzDecoder;
use tar::EntryType;

use super::PackageError;
use super::onnx::{CARD_FILE, PackagedCard, WEIGHTS_FILE};
use super::saved_model::is_graph_of_version;
use crate::aws::S3;
use crate::domain::{KeepRule, S3Address, human_bytes};
use crate::local_file;
use crate::model::catalog::{Model, check_card};
use crate::sagemaker::spec::transform::ArchiveContent;
use crate::tasks::{Cancelled, TaskControl};

/// SageMaker accepts no larger models; an archive with more is a bomb.
const MAX_BYTES: u64 = 20 << 30;
/// The same for more than this many times the archive's size. Weights hardly compress; code, which does, is covered by
/// `SMALL_BYTES`.
const MAX_RATIO: u64 = 20;
/// This much does no harm, whatever the ratio.
const SMALL_BYTES: u64 = 256 << 20;
/// The disk space that stays free.
const SPARE_BYTES: u64 = 512 << 20;
/// The number of files and folders.
const MAX_ENTRIES: usize = 10_000;
/// The size of a name and everything else before a file's content, which is held in memory.
const MAX_HEADER_BYTES: u64 = 1 << 20;

/// The part of an archive that is searched: Spotcheck packs the decisive files first.
const LOOKED_AT: u64 = 64 << 20;
/// The unpacked size that is searched.
const UNPACKED: u64 = 1 << 30;
/// The bytes fetched per request and held in memory.
const PART: u64 = 8 << 20;

#[derive(Debug)]
pub struct Unpacked {
    pub folder: PathBuf,
    pub kind: ArchiveKind,
}

#[derive(Debug)]
pub enum ArchiveKind {
    /// The model in the folder, and which predictions the handler keeps.
    Onnx { model: Box<Model>, keep: KeepRule },
    /// A SavedModel for TensorFlow Serving.
    SavedModel,
}

/// Unpacks into `folder`, which must exist and be empty. Progress is in bytes of the archive.
///
/// # Errors
/// It is not such an archive or is damaged, or contains something dangerous: links, or names that lead out of the
/// folder. What was written until then stays in `folder`.
pub fn unpack(archive: &Path, folder: &Path, control: &TaskControl) -> Result<Unpacked, PackageError> {
    let file = local_file::open(archive).map_err(PackageError::read("the archive", archive))?;
    let metadata = file.metadata();
    let metadata = metadata.map_err(PackageError::read("the archive", archive))?;
    control.set_step("Unpacking the archive");
    control.set_total(Some(metadata.len()));
    let counted = Counted { file, control };
    let headers = Cell::new(MAX_HEADER_BYTES);
    let bounded = Bounded { inner: MultiGzDecoder::new(counted), left: &headers };
    let mut tar = tar::Archive::new(bounded);
    let bound = Bound::new(metadata.len(), free_bytes(folder));
    let mut unpacking = Unpacking { archive, folder, bytes_left: bound.bytes, bound };
    let damaged = |error: io::Error| match control.checkpoint() {
        Err(cancelled) => cancelled.into(),
        Ok(()) => PackageError::Damaged { reason: error.to_string(), path: archive.to_owned() },
    };
    let mut names = Vec::new();
    let mut entries = tar.entries().map_err(damaged)?;
    for count in 1.. {
        headers.set(MAX_HEADER_BYTES);
        let Some(entry) = entries.next() else { break };
        let mut entry = entry.map_err(damaged)?;
        headers.set(u64::MAX);
        if count > MAX_ENTRIES {
            return Err(unpacking.refused(format!("it contains more than {MAX_ENTRIES} files and folders")));
        }
        names.extend(unpacking.take(&mut entry, damaged)?);
    }
    let kind = kind_of(archive, folder, &names)?;
    Ok(Unpacked { folder: folder.to_owned(), kind })
}

struct Unpacking<'a> {
    archive: &'a Path,
    folder: &'a Path,
    bytes_left: u64,
    bound: Bound,
}

/// The size limit of an archive, and the reason for it.
struct Bound {
    bytes: u64,
    reason: String,
}

impl Bound {
    /// `free_bytes`: free disk space, if known.
    fn new(archive_bytes: u64, free_bytes: Option<u64>) -> Self {
        let of_ratio = archive_bytes.saturating_mul(MAX_RATIO).max(SMALL_BYTES);
        let of_disk = free_bytes.map_or(u64::MAX, |free| free.saturating_sub(SPARE_BYTES));
        let bytes = MAX_BYTES.min(of_ratio).min(of_disk);
        let reason = if bytes == of_disk {
            format!(
                "the disk has {} free, of which {} are reserved; free some space, or set TMPDIR to a folder on \
                another disk",
                human_bytes(free_bytes.unwrap_or_default()),
                human_bytes(SPARE_BYTES)
            )
        } else if bytes == of_ratio {
            format!("that is too large for its archive, which has {}", human_bytes(archive_bytes))
        } else {
            "SageMaker does not accept models of that size".to_owned()
        };
        Self { bytes, reason }
    }

    fn exceeded(&self, archive: &Path) -> PackageError {
        PackageError::TooLarge { limit_bytes: self.bytes, reason: self.reason.clone(), path: archive.to_owned() }
    }
}

/// The free space for users without administrator rights on the folder's disk; `None` if unknown.
#[cfg(unix)]
fn free_bytes(folder: &Path) -> Option<u64> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(folder.as_os_str().as_bytes()).ok()?;
    // SAFETY: all zeros is a valid value, the path ends in a zero, and only `found` is written.
    let found = unsafe {
        let mut found: libc::statvfs = std::mem::zeroed();
        (libc::statvfs(path.as_ptr(), &raw mut found) == 0).then_some(found)
    }?;
    // The types of these numbers differ between systems.
    Some((found.f_bavail as u64).saturating_mul(found.f_frsize as u64))
}

#[cfg(not(unix))]
fn free_bytes(_: &Path) -> Option<u64> {
    None
}

impl Unpacking<'_> {
    fn too_large(&self) -> PackageError {
        self.bound.exceeded(self.archive)
    }

    fn refused(&self, reason: String) -> PackageError {
        PackageError::RefusedArchive { reason, path: self.archive.to_owned() }
    }

    /// Writes an entry; returns its name if it is a file.
    fn take(
        &mut self,
        entry: &mut tar::Entry<'_, impl Read>,
        damaged: impl Fn(io::Error) -> PackageError,
    ) -> Result<Option<PathBuf>, PackageError> {
        let path = entry.path().map_err(&damaged)?.into_owned();
        let name = self.checked_name(&path)?;
        match entry.header().entry_type() {
            EntryType::XGlobalHeader => Ok(None),
            EntryType::Directory => {
                self.make_folder(&name)?;
                Ok(None)
            }
            // Checked before the first byte is written.
            EntryType::Regular | EntryType::Continuous if entry.size() > self.bytes_left => Err(self.too_large()),
            EntryType::Regular | EntryType::Continuous => {
                self.write(&name, entry, damaged)?;
                Ok(Some(name))
            }
            _ => Err(self.refused(format!("“{}” in it is a link or a device", path.display()))),
        }
    }

    /// A path that stays below the folder on every operating system.
    fn checked_name(&self, path: &Path) -> Result<PathBuf, PackageError> {
        let text = path.to_string_lossy();
        let is_inside = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if !is_inside || text.contains(['\\', ':', '\0']) {
            return Err(self.refused(format!("“{text}” in it leads out of the archive")));
        }
        Ok(path.components().filter(|part| matches!(part, Component::Normal(_))).collect())
    }

    fn make_folder(&self, name: &Path) -> Result<(), PackageError> {
        std::fs::create_dir_all(self.folder.join(name)).map_err(|error| self.failed(error))
    }

    fn write(
        &mut self,
        name: &Path,
        content: &mut impl Read,
        damaged: impl Fn(io::Error) -> PackageError,
    ) -> Result<(), PackageError> {
        if let Some(parent) = name.parent() {
            self.make_folder(parent)?;
        }
        let mut file = match File::create_new(self.folder.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(self.refused(format!("it contains “{}” twice", name.display())));
            }
            file => file.map_err(|error| self.failed(error))?,
        };
        let mut chunk = vec![0; 1 << 16];
        loop {
            let read = match content.read(&mut chunk) {
                Ok(0) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read.map_err(&damaged)?,
            };
            self.bytes_left = self.bytes_left.checked_sub(read as u64).ok_or_else(|| self.too_large())?;
            file.write_all(&chunk[..read]).map_err(|error| self.failed(error))?;
        }
    }

    fn failed(&self, source: io::Error) -> PackageError {
        PackageError::Unpack { folder: self.folder.to_owned(), source }
    }
}

fn kind_of(archive: &Path, folder: &Path, names: &[PathBuf]) -> Result<ArchiveKind, PackageError> {
    let holds = |content| names.iter().any(|name| content_named(name) == Some(content));
    if holds(ArchiveContent::Onnx) {
        return onnx_model(archive, folder);
    }
    if holds(ArchiveContent::SavedModel) {
        return Ok(ArchiveKind::SavedModel);
    }
    Err(PackageError::Foreign { path: archive.to_owned() })
}

/// The model as its own card describes it.
fn onnx_model(archive: &Path, folder: &Path) -> Result<ArchiveKind, PackageError> {
    let damaged = |reason: String| PackageError::Damaged { reason, path: archive.to_owned() };
    let text = std::fs::read_to_string(folder.join(CARD_FILE))
        .map_err(|error| damaged(format!("could not read its card ({error})")))?;
    let packaged: PackagedCard =
        serde_json::from_str(&text).map_err(|error| damaged(format!("its card is invalid ({error})")))?;
    check_card(&packaged.card).map_err(|error| damaged(format!("its card is invalid ({error})")))?;
    let weights = folder.join(WEIGHTS_FILE);
    let bytes = weights.metadata().map_or(0, |metadata| metadata.len());
    if packaged.card.file.name != WEIGHTS_FILE || bytes != packaged.card.file.bytes {
        return Err(damaged(format!(
            "its {WEIGHTS_FILE} has {bytes} bytes, its card says {} of {}",
            packaged.card.file.bytes, packaged.card.file.name
        )));
    }
    Ok(ArchiveKind::Onnx {
        model: Box::new(Model { card: packaged.card, labels: packaged.labels.into_iter().collect(), weights }),
        keep: packaged.keep,
    })
}

/// A reader that fails beyond its limit.
struct Bounded<'b, R> {
    inner: R,
    left: &'b Cell<u64>,
}

impl<R: Read> Read for Bounded<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        let left = self.left.get().checked_sub(read as u64);
        self.left.set(left.ok_or_else(|| io::Error::other("it has unexpected data between two files"))?);
        Ok(read)
    }
}

/// A reader that counts the archive's bytes and ends when the task is canceled.
struct Counted<'c> {
    file: File,
    control: &'c TaskControl,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let ended = |Cancelled| io::Error::other(Cancelled);
        self.control.checkpoint().map_err(ended)?;
        let read = self.file.read(buffer)?;
        self.control.add_done(read as u64);
        Ok(read)
    }
}

/// `None`: neither an archive by Spotcheck nor a `SavedModel`, as far as was searched, or not an archive.
pub fn peek(archive: impl Read) -> Option<ArchiveContent> {
    let left = Cell::new(0);
    let mut tar = tar::Archive::new(Bounded { inner: MultiGzDecoder::new(archive.take(LOOKED_AT)), left: &left });
    let mut entries = tar.entries().ok()?;
    let (mut unpacked_left, mut last_bytes) = (UNPACKED, 0_u64);
    for _ in 0..MAX_ENTRIES {
        // The rest of the last file is skipped on the way to the next.
        let allowed = last_bytes.saturating_add(MAX_HEADER_BYTES).min(unpacked_left);
        left.set(allowed);
        let entry = entries.next()?.ok()?;
        unpacked_left -= allowed - left.get();
        last_bytes = entry.size();
        let path = entry.path().ok()?;
        if let Some(content) = content_named(&path) {
            return Some(content);
        }
    }
    None
}

/// As [`peek`], for a file.
///
/// # Errors
/// The file does not exist, or cannot be opened.
pub fn peek_file(archive: &Path) -> io::Result<Option<ArchiveContent>> {
    Ok(peek(local_file::open(archive)?))
}

/// The content of an archive with a file of this name, if the name is decisive.
fn content_named(name: &Path) -> Option<ArchiveContent> {
    let name = name.strip_prefix(".").unwrap_or(name);
    if name == Path::new(CARD_FILE) {
        return Some(ArchiveContent::Onnx);
    }
    is_graph_of_version(name).then_some(ArchiveContent::SavedModel)
}

/// Writes the object to `target`, which must not exist. Progress is in bytes.
///
/// # Errors
/// It cannot be read, changes meanwhile, or is larger than a model can be or the disk has space for. What was written
/// until then stays.
pub fn fetch(s3: &S3, address: &S3Address, target: &Path, control: &TaskControl) -> Result<(), PackageError> {
    let (bucket, key) = (&address.bucket, &address.prefix);
    let object = s3.object(bucket, key, Some(control))?;
    let size = object.size_bytes;
    let bound = Bound::new(u64::MAX, target.parent().and_then(free_bytes));
    if size > bound.bytes {
        return Err(bound.exceeded(Path::new(&address.to_string())));
    }
    control.set_step("Fetching the archive");
    control.set_total(Some(size));
    let failed = |source: io::Error| PackageError::Unpack { folder: target.to_owned(), source };
    let mut file = File::create_new(target).map_err(failed)?;
    let mut done = 0;
    while done < size {
        let range = done..(done + PART).min(size);
        let part = s3.read_range(bucket, key, range, object.etag.as_deref(), Some(control))?;
        if part.is_empty() {
            let path = address.to_string().into();
            return Err(PackageError::Changed { path });
        }
        file.write_all(&part).map_err(failed)?;
        done += part.len() as u64;
        control.add_done(part.len() as u64);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn unpacking_limit_is_the_strictest() {
        for (archive_bytes, free_bytes, expected, words) in [
            (45 << 20, Some(100 * GIB), 900 << 20, "too large for its archive"),
            (1 << 20, Some(100 * GIB), SMALL_BYTES, "too large for its archive"),
            (8 * GIB, Some(100 * GIB), MAX_BYTES, "SageMaker"),
            (8 * GIB, None, MAX_BYTES, "SageMaker"),
            (2 * GIB, Some(3 * GIB), 3 * GIB - SPARE_BYTES, "3.0 GiB free"),
            (2 * GIB, Some(1), 0, "TMPDIR"),
        ] {
            let bound = Bound::new(archive_bytes, free_bytes);
            assert_eq!(bound.bytes, expected, "{archive_bytes} {free_bytes:?}");
            assert!(bound.reason.contains(words), "{}", bound.reason);
        }
    }

    #[cfg(unix)]
    #[test]
    fn free_disk_space_is_known() {
        let folder = tempfile::tempdir().unwrap();
        assert!(free_bytes(folder.path()).unwrap() > 0);
        assert_eq!(free_bytes(&folder.path().join("missing")), None);
    }

    fn archive(names: &[&str]) -> Vec<u8> {
        let zipped = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let mut archive = tar::Builder::new(zipped);
        for name in names {
            let mut header = tar::Header::new_gnu();
            header.set_size(4);
            archive.append_data(&mut header, name, &b"some"[..]).unwrap();
        }
        archive.into_inner().unwrap().finish().unwrap()
    }

    #[test]
    fn archive_names_reveal_its_kind() {
        for (names, expected) in [
            (&["spotcheck-model.json", "model.onnx"][..], Some(ArchiveContent::Onnx)),
            (&["code/inference.py", "./1/saved_model.pb"], Some(ArchiveContent::SavedModel)),
            (&["export/Servo/17/saved_model.pb"], Some(ArchiveContent::SavedModel)),
            (&["saved_model.pb", "latest/saved_model.pb"], None),
            (&["model.pth", "code/inference.py"], None),
            (&[], None),
        ] {
            assert_eq!(peek(&*archive(names)), expected, "{names:?}");
        }
        assert_eq!(peek(&b"no archive"[..]), None);
        let whole = archive(&["spotcheck-model.json", "model.onnx"]);
        let begin = &whole[..whole.len() - 10];
        assert_eq!(peek(begin), Some(ArchiveContent::Onnx), "cut off");
    }
}
