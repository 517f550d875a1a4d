//! SHA-256 of files, computed while they are copied or checked.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::domain::hexadecimal;
use crate::local_file;

/// The number of bytes read and hashed per step; small enough to notice a cancellation in between.
const CHUNK_BYTES: usize = 1 << 20;

/// Called with the size of each chunk; an error stops the work and is passed on.
pub type OnChunk<'a> = &'a mut dyn FnMut(u64) -> io::Result<()>;

/// The result of a copy.
pub struct Hashed {
    pub bytes: u64,
    /// In lowercase hexadecimal.
    pub sha256: String,
}

/// Copies a file, hashing on the way; replaces an existing file. Synced to disk.
pub fn copy_hashed(from: &Path, to: &Path, on_chunk: OnChunk<'_>) -> io::Result<Hashed> {
    let mut source = local_file::open(from)?;
    let mut target = File::create(to)?;
    let hashed = pump(&mut source, &mut target, on_chunk)?;
    target.sync_all()?;
    Ok(hashed)
}

/// Whether the content of a file has this SHA-256.
pub fn has_sha256(path: &Path, sha256: &str, on_chunk: OnChunk<'_>) -> io::Result<bool> {
    let hashed = pump(&mut local_file::open(path)?, &mut io::sink(), on_chunk)?;
    Ok(hashed.sha256 == sha256)
}

/// In lowercase hexadecimal.
pub fn sha256_of(path: &Path) -> io::Result<String> {
    Ok(pump(&mut File::open(path)?, &mut io::sink(), &mut |_| Ok(()))?.sha256)
}

/// Reads to the end.
pub fn pump(source: &mut impl Read, target: &mut impl Write, on_chunk: OnChunk<'_>) -> io::Result<Hashed> {
    let mut hasher = Sha256::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut bytes = 0;
    loop {
        let len = match source.read(&mut chunk) {
            Ok(0) => break,
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        target.write_all(&chunk[..len])?;
        hasher.update(&chunk[..len]);
        bytes += len as u64;
        on_chunk(len as u64)?;
    }
    Ok(Hashed { bytes, sha256: hexadecimal(&hasher.finalize()) })
}
