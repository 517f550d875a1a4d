//! Takes an archive apart, and trusts nothing in it.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use flate2::read::MultiGzDecoder;
use tar::EntryType;

use super::PackageError;
use super::onnx::{CARD_FILE, PackagedCard, WEIGHTS_FILE};
use super::peek::content_named;
use crate::domain::{ArchiveContent, KeepRule};
use crate::library::{Model, check_card};
use crate::tasks::{Cancelled, TaskControl};

/// SageMaker takes no larger models; more than this out of one archive is a bomb.
const MAX_BYTES: u64 = 20 << 30;
const MAX_ENTRIES: usize = 100_000;

/// An archive in a folder.
#[derive(Debug)]
pub struct Unpacked {
    pub folder: PathBuf,
    pub kind: ArchiveKind,
}

#[derive(Debug)]
pub enum ArchiveKind {
    /// The model as it lies in the folder, and what of its answers the handler keeps.
    Onnx { model: Box<Model>, keep: KeepRule },
    /// For TensorFlow Serving.
    SavedModel,
}

/// Unpacks into `folder`, which must be there and empty. Progress is in bytes of the archive.
///
/// # Errors
/// It is no such archive or a damaged one, or it holds what could do harm: links, and names that lead out of the folder. What was
/// written until then stays in `folder`.
pub fn unpack(
    archive: &Path,
    folder: &Path,
    control: &TaskControl,
) -> Result<Unpacked, PackageError> {
    let file = File::open(archive).map_err(PackageError::read("the archive", archive))?;
    control.set_step("Unpacking the archive");
    control.set_total(file.metadata().ok().map(|metadata| metadata.len()));
    let counted = Counted { file, control };
    let mut tar = tar::Archive::new(MultiGzDecoder::new(counted));
    let mut unpacking = Unpacking {
        archive,
        folder,
        bytes_left: MAX_BYTES,
    };
    let damaged = |error: io::Error| match control.checkpoint() {
        Err(cancelled) => cancelled.into(),
        Ok(()) => PackageError::Damaged {
            reason: error.to_string(),
            path: archive.to_owned(),
        },
    };
    let mut names = Vec::new();
    for entry in tar.entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        if names.len() == MAX_ENTRIES {
            return Err(unpacking.refused(format!("it holds more than {MAX_ENTRIES} files")));
        }
        let kind = entry.header().entry_type();
        let path = entry.path().map_err(damaged)?.into_owned();
        let name = unpacking.checked_name(&path)?;
        match kind {
            EntryType::XGlobalHeader => {}
            EntryType::Directory => unpacking.make_folder(&name)?,
            EntryType::Regular | EntryType::Continuous => {
                unpacking.write(&name, &mut entry, damaged)?;
                names.push(name);
            }
            _ => {
                return Err(unpacking.refused(format!(
                    "“{}” in it is a link or a device, which no model needs",
                    path.display()
                )));
            }
        }
    }
    let kind = kind_of(archive, folder, &names)?;
    Ok(Unpacked {
        folder: folder.to_owned(),
        kind,
    })
}

struct Unpacking<'a> {
    archive: &'a Path,
    folder: &'a Path,
    bytes_left: u64,
}

impl Unpacking<'_> {
    fn refused(&self, reason: String) -> PackageError {
        PackageError::RefusedArchive {
            reason,
            path: self.archive.to_owned(),
        }
    }

    /// A path that stays below the folder, on every operating system.
    fn checked_name(&self, path: &Path) -> Result<PathBuf, PackageError> {
        let text = path.to_string_lossy();
        let is_inside = path
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if !is_inside || text.contains(['\\', ':', '\0']) {
            return Err(self.refused(format!("“{text}” in it leads out of the archive")));
        }
        Ok(path
            .components()
            .filter(|part| matches!(part, Component::Normal(_)))
            .collect())
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
                return Err(self.refused(format!("it holds “{}” twice", name.display())));
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
            self.bytes_left =
                self.bytes_left
                    .checked_sub(read as u64)
                    .ok_or_else(|| PackageError::TooLarge {
                        limit_bytes: MAX_BYTES,
                        path: self.archive.to_owned(),
                    })?;
            io::Write::write_all(&mut file, &chunk[..read]).map_err(|error| self.failed(error))?;
        }
    }

    fn failed(&self, source: io::Error) -> PackageError {
        PackageError::Unpack {
            folder: self.folder.to_owned(),
            source,
        }
    }
}

fn kind_of(archive: &Path, folder: &Path, names: &[PathBuf]) -> Result<ArchiveKind, PackageError> {
    let holds = |content| {
        names
            .iter()
            .any(|name| content_named(name) == Some(content))
    };
    if holds(ArchiveContent::Onnx) {
        return onnx_model(archive, folder);
    }
    if holds(ArchiveContent::SavedModel) {
        return Ok(ArchiveKind::SavedModel);
    }
    Err(PackageError::Foreign {
        path: archive.to_owned(),
    })
}

/// The model as its own card describes it.
fn onnx_model(archive: &Path, folder: &Path) -> Result<ArchiveKind, PackageError> {
    let damaged = |reason: String| PackageError::Damaged {
        reason,
        path: archive.to_owned(),
    };
    let text = std::fs::read_to_string(folder.join(CARD_FILE))
        .map_err(|error| damaged(format!("its card cannot be read ({error})")))?;
    let packaged: PackagedCard = serde_json::from_str(&text)
        .map_err(|error| damaged(format!("its card cannot be used ({error})")))?;
    check_card(&packaged.card)
        .map_err(|error| damaged(format!("its card cannot be used ({error})")))?;
    let weights = folder.join(WEIGHTS_FILE);
    let bytes = weights.metadata().map_or(0, |metadata| metadata.len());
    if packaged.card.file.name != WEIGHTS_FILE || bytes != packaged.card.file.bytes {
        return Err(damaged(format!(
            "its {WEIGHTS_FILE} has {bytes} bytes, its card says {} of {}",
            packaged.card.file.bytes, packaged.card.file.name
        )));
    }
    Ok(ArchiveKind::Onnx {
        model: Box::new(Model {
            card: packaged.card,
            labels: packaged.labels.into_iter().collect(),
            weights,
        }),
        keep: packaged.keep,
    })
}

/// The archive's own bytes, counted; ends when the task is cancelled.
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
