//! Reads local files for sending, with their checksums, and never a mixture of two versions.

use std::fs::{File, Metadata};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::aws::Sha256Digest;
use crate::image::source::SourceError;
use crate::tasks::{Cancelled, TaskControl};

/// The size from which a file is sent in parts.
pub(super) const LARGE: u64 = 16 * MIB;
/// The size of a part, unless that makes too many parts.
const PART: u64 = 8 * MIB;
/// S3's limit.
const MAX_PARTS: u64 = 10_000;
const MIB: u64 = 1024 * 1024;
/// The block size for hashing.
const BLOCK: usize = 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub(super) enum ContentError {
    #[error("{0}")]
    Read(#[from] SourceError),
    #[error("the file changed during the upload and was not uploaded; try again when no program is writing to it")]
    Changed,
    #[error("canceled")]
    Cancelled,
}

impl From<std::io::Error> for ContentError {
    fn from(error: std::io::Error) -> Self {
        Self::Read(error.into())
    }
}

impl From<Cancelled> for ContentError {
    fn from(Cancelled: Cancelled) -> Self {
        Self::Cancelled
    }
}

/// The whole content of a small file, and its checksum.
pub(super) fn read_small(path: &Path) -> Result<(Vec<u8>, Sha256Digest), ContentError> {
    let mut file = File::open(path)?;
    let before = file.metadata()?;
    let mut bytes = Vec::new();
    // A growing file must not be read forever.
    file.by_ref().take(before.len() + 1).read_to_end(&mut bytes)?;
    let is_same = bytes.len() as u64 == before.len() && is_unchanged(&before, &file.metadata()?);
    if !is_same {
        return Err(ContentError::Changed);
    }
    let digest = Sha256::digest(&bytes).into();
    Ok((bytes, digest))
}

/// The checksum of a file of any size.
pub(super) fn sha256_of(path: &Path, control: &TaskControl) -> Result<Sha256Digest, ContentError> {
    if path.metadata()?.len() < LARGE {
        return Ok(read_small(path)?.1);
    }
    Ok(Large::open(path, control)?.sha256)
}

/// A large file: read once for its checksums, and again part by part for sending.
pub(super) struct Large {
    file: File,
    seen: Metadata,
    pub sha256: Sha256Digest,
    pub part_bytes: u64,
    parts_crc32: Vec<u32>,
}

impl Large {
    pub(super) fn open(path: &Path, control: &TaskControl) -> Result<Self, ContentError> {
        let mut file = File::open(path)?;
        let seen = file.metadata()?;
        let part_bytes = part_bytes(seen.len());
        let mut whole = Sha256::new();
        let mut parts_crc32 = Vec::new();
        let mut block = vec![0; BLOCK];
        let mut left = seen.len();
        while left > 0 {
            let mut left_of_part = part_bytes.min(left);
            left -= left_of_part;
            let mut part = crc32fast::Hasher::new();
            while left_of_part > 0 {
                control.checkpoint()?;
                let block = &mut block[..left_of_part.min(BLOCK as u64) as usize];
                file.read_exact(block).map_err(changed_if_early_end)?;
                whole.update(&block);
                part.update(block);
                left_of_part -= block.len() as u64;
            }
            parts_crc32.push(part.finalize());
        }
        // The file was not empty when it was listed.
        if parts_crc32.is_empty() {
            return Err(ContentError::Changed);
        }
        let large = Self { file, seen, sha256: whole.finalize().into(), part_bytes, parts_crc32 };
        large.must_be_unchanged()?;
        Ok(large)
    }

    pub(super) fn part_count(&self) -> u32 {
        self.parts_crc32.len() as u32
    }

    /// `number` counts from 1.
    pub(super) fn part_len(&self, number: u32) -> u64 {
        let start = u64::from(number - 1) * self.part_bytes;
        self.part_bytes.min(self.seen.len() - start)
    }

    pub(super) fn crc32_of(&self, number: u32) -> u32 {
        self.parts_crc32[number as usize - 1]
    }

    /// Reads a part and checks that it is unchanged.
    pub(super) fn read_part(&self, path: &Path, number: u32) -> Result<Vec<u8>, ContentError> {
        // Parts are read concurrently, but a file handle has only one position.
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(u64::from(number - 1) * self.part_bytes))?;
        let mut bytes = vec![0; self.part_len(number) as usize];
        file.read_exact(&mut bytes).map_err(changed_if_early_end)?;
        if crc32fast::hash(&bytes) != self.crc32_of(number) {
            return Err(ContentError::Changed);
        }
        Ok(bytes)
    }

    pub(super) fn must_be_unchanged(&self) -> Result<(), ContentError> {
        if is_unchanged(&self.seen, &self.file.metadata()?) { Ok(()) } else { Err(ContentError::Changed) }
    }
}

/// The size of all parts except the last.
fn part_bytes(size_bytes: u64) -> u64 {
    let least = size_bytes.div_ceil(MAX_PARTS);
    PART.max(least.div_ceil(MIB) * MIB)
}

fn is_unchanged(before: &Metadata, now: &Metadata) -> bool {
    before.len() == now.len() && before.modified().ok() == now.modified().ok()
}

fn changed_if_early_end(error: std::io::Error) -> ContentError {
    if error.kind() == std::io::ErrorKind::UnexpectedEof { ContentError::Changed } else { error.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::ProgressUnit;

    #[test]
    fn parts_are_large_enough_for_s3() {
        assert_eq!(part_bytes(LARGE), 8 * MIB);
        let terabytes = 5 * 1024 * 1024 * MIB;
        assert!(terabytes.div_ceil(part_bytes(terabytes)) <= MAX_PARTS);
        assert_eq!(part_bytes(terabytes) % MIB, 0);
    }

    #[test]
    fn checksums_match_the_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large.jpg");
        let content: Vec<u8> = (0..9 * MIB).map(|at| (at % 251) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        let control = TaskControl::new(ProgressUnit::Bytes);
        let large = Large::open(&path, &control).unwrap();
        let small = read_small(&path).unwrap();
        assert_eq!(large.sha256, small.1);
        assert_eq!(small.0, content);
        assert_eq!((large.part_count(), large.part_len(2)), (2, MIB));
        let parts = [1, 2].map(|number| large.read_part(&path, number).unwrap());
        assert_eq!(parts.concat(), content);
    }

    #[test]
    fn changed_part_is_not_sent() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large.jpg");
        std::fs::write(&path, vec![1; 1000]).unwrap();
        let control = TaskControl::new(ProgressUnit::Bytes);
        let large = Large::open(&path, &control).unwrap();
        for now in [vec![2; 1000], vec![1; 999]] {
            std::fs::write(&path, now).unwrap();
            let read = large.read_part(&path, 1);
            assert!(matches!(read, Err(ContentError::Changed)), "{read:?}");
        }
        assert!(matches!(large.must_be_unchanged(), Err(ContentError::Changed)));
    }
}
