//! `model.tar.gz`: a model packed so that SageMaker's containers, or any Python, can serve it.
//!
//! The archive contains the model's weights, card and a Python handler that does what `model` does, so that its
//! responses equal those of a local run. The same version of Spotcheck packs the same model into the same bytes.

mod onnx;
mod saved_model;
mod source;
mod unpack;

use std::fs::{File, Metadata};
use std::io;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};

use crate::aws::AwsError;
use crate::domain::{NoPredictions, hexadecimal, human_bytes};
use crate::project::export::{ExportError, ExportTarget, WholeFile};
use crate::tasks::{Cancelled, TaskControl};

pub use onnx::{PackageOptions, Processor, package_model};
pub use saved_model::{SavedModelOptions, package_saved_model, stamp_of_saved_model};
pub use source::{package_source, source_files};
pub use unpack::{ArchiveKind, Unpacked, fetch, peek, peek_file, unpack};

/// A finished archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packaged {
    /// Absolute.
    pub path: PathBuf,
    pub bytes: u64,
    /// The SHA-256 of the whole file, in lowercase hex.
    pub sha256: String,
    /// The names in the archive with their sizes, in order.
    pub files: Vec<(String, u64)>,
}

/// An error; nothing was written under the requested name.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    #[error(transparent)]
    NoPredictions(#[from] NoPredictions),
    #[error(transparent)]
    Target(#[from] ExportError),
    #[error("could not read {what}: {source}: {}", path.display())]
    Read {
        /// “the weights”
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error(
        "the weights do not match the card of {id}: their sha256 is {found}, not {expected}; download them again with \
        `spotcheck models fetch {id}`: {}", path.display()
    )]
    WrongWeights { id: String, found: String, expected: String, path: PathBuf },
    #[error("a file changed while it was packed; try again: {}", path.display())]
    Changed { path: PathBuf },
    #[error(
        "the folder contains no TensorFlow SavedModel: expected saved_model.pb, or one folder per version \
         (1/saved_model.pb): {}",
        path.display()
    )]
    NoSavedModel { path: PathBuf },
    #[error("{reason}, so the folder was not packed: {}", path.display())]
    RefusedFile { reason: String, path: PathBuf },
    #[error("the archive is damaged: {reason}; create or download it again: {}", path.display())]
    Damaged { reason: String, path: PathBuf },
    #[error("the archive is not accepted: {reason}: {}", path.display())]
    RefusedArchive { reason: String, path: PathBuf },
    #[error(
        "this is not an archive of `spotcheck transform package`: it contains neither spotcheck-model.json nor a \
        SavedModel (1/saved_model.pb): {}",
        path.display()
    )]
    Foreign { path: PathBuf },
    #[error(
        "the archive was not unpacked: it contains more than {}, and {reason}: {}",
        human_bytes(*limit_bytes), path.display()
    )]
    TooLarge { limit_bytes: u64, reason: String, path: PathBuf },
    #[error("could not unpack into {}: {source}", folder.display())]
    Unpack { folder: PathBuf, source: io::Error },
    #[error("{0}")]
    Aws(#[from] AwsError),
    #[error("{0}")]
    Cancelled(#[from] Cancelled),
}

impl PackageError {
    /// An adapter for `map_err`.
    pub fn read(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Read { what, path, source }
    }
}

/// “Unknown” in gzip's header (RFC 1952), whatever machine this is.
const UNKNOWN_SYSTEM: u8 = 255;
/// 1980-01-02, in seconds since 1970: ZIP, into which some servers repack, has no earlier dates.
const MODIFIED_S: u64 = 315_619_200;
const PLAIN: u32 = 0o644;
#[cfg(unix)]
const EXECUTABLE: u32 = 0o755;
/// Weights hardly shrink; a higher level only takes more time.
const COMPRESSION: u32 = 6;

/// Appears under its name only when finished.
struct ArchiveWriter<'c> {
    tar: tar::Builder<GzEncoder<Counted>>,
    control: &'c TaskControl,
    files: Vec<(String, u64)>,
}

impl<'c> ArchiveWriter<'c> {
    /// `control` counts the bytes that go in.
    fn create(target: &ExportTarget, control: &'c TaskControl) -> Result<Self, PackageError> {
        let counted = Counted { file: WholeFile::create(target)?, bytes: 0, hash: Sha256::new() };
        let gzip =
            GzBuilder::new().mtime(0).operating_system(UNKNOWN_SYSTEM).write(counted, Compression::new(COMPRESSION));
        Ok(Self { tar: tar::Builder::new(gzip), control, files: Vec::new() })
    }

    fn add_bytes(&mut self, name: &str, content: &[u8]) -> Result<(), PackageError> {
        self.append(name, (content.len() as u64, PLAIN), content)
    }

    /// Adds a file; returns its SHA-256.
    fn add_file(&mut self, name: &str, path: &Path, what: &'static str) -> Result<String, PackageError> {
        let file = File::open(path).map_err(PackageError::read(what, path))?;
        let metadata = file.metadata().map_err(PackageError::read(what, path))?;
        let bytes = metadata.len();
        let mut source = Source { file, left: bytes, hash: Sha256::new(), control: self.control, error: None };
        let appended = self.append(name, (bytes, mode_of(&metadata)), &mut source);
        if let Some(error) = source.error.take() {
            return Err(PackageError::read(what, path)(error));
        }
        appended?;
        if source.left > 0 || source.file.read(&mut [0]).unwrap_or(0) > 0 {
            return Err(PackageError::Changed { path: path.to_owned() });
        }
        Ok(hexadecimal(&source.hash.finalize()))
    }

    fn append(&mut self, name: &str, (bytes, mode): (u64, u32), content: impl Read) -> Result<(), PackageError> {
        self.control.checkpoint()?;
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes);
        header.set_mode(mode);
        header.set_mtime(MODIFIED_S);
        header.set_uid(0);
        header.set_gid(0);
        let appended = self.tar.append_data(&mut header, name, content);
        self.control.checkpoint()?;
        appended.map_err(|error| self.write_error(error))?;
        self.files.push((name.to_owned(), bytes));
        Ok(())
    }

    fn finish(mut self) -> Result<Packaged, PackageError> {
        self.tar.finish().map_err(|error| self.write_error(error))?;
        let path = self.tar.get_ref().get_ref().file.path().to_owned();
        let failed = |error| ExportError::write(&path)(error);
        let gzip = self.tar.into_inner().map_err(failed)?;
        let counted = gzip.finish().map_err(failed)?;
        let packaged = Packaged {
            path: path.clone(),
            bytes: counted.bytes,
            sha256: hexadecimal(&counted.hash.finalize()),
            files: self.files,
        };
        counted.file.commit()?;
        Ok(packaged)
    }

    fn write_error(&self, error: io::Error) -> PackageError {
        ExportError::write(self.tar.get_ref().get_ref().file.path())(error).into()
    }
}

/// The permissions in the archive: the same for every user, but scripts stay executable.
fn mode_of(metadata: &Metadata) -> u32 {
    #[cfg(unix)]
    if std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o100 != 0 {
        return EXECUTABLE;
    }
    PLAIN
}

/// A writer that counts and hashes the archive's bytes.
struct Counted {
    file: WholeFile,
    bytes: u64,
    hash: Sha256,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.bytes += written as u64;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A file to add: no more bytes than its header in the archive promises.
struct Source<'c> {
    file: File,
    left: u64,
    hash: Sha256,
    control: &'c TaskControl,
    /// A read error, as opposed to a write error of the archive.
    error: Option<io::Error>,
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.control.checkpoint().map_err(|Cancelled| io::Error::other(Cancelled))?;
        let wanted = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let read = match self.file.read(&mut buffer[..wanted]) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
            Err(error) => {
                let copy = io::Error::from(error.kind());
                self.error = Some(error);
                return Err(copy);
            }
        };
        self.left -= read as u64;
        self.hash.update(&buffer[..read]);
        self.control.add_done(read as u64);
        Ok(read)
    }
}
