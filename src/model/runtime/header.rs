//! Checks whether a file can be a shared library for this computer.
//!
//! The system's loader maps a library into memory and trusts its headers; in a truncated file it reads past the end,
//! and the process is killed. The headers are therefore compared with the file length before anything is loaded.

use std::fs::File;
use std::path::Path;

use object::read::macho::{FatArch, MachOFatFile32};
use object::{Architecture, Object, ObjectSegment, ReadCache, ReadRef};

/// Returns the reason why `path` cannot be loaded.
pub(crate) fn check_library(path: &Path) -> Result<(), String> {
    let unreadable = |error| format!("could not read the file ({error})");
    let file = File::open(path).map_err(unreadable)?;
    let length = file.metadata().map_err(unreadable)?.len();
    let file = &ReadCache::new(file);
    let magics: &[&[u8]] = match std::env::consts::OS {
        "windows" => &[b"MZ"],
        "macos" => &[b"\xcf\xfa\xed\xfe", UNIVERSAL],
        _ => &[b"\x7fELF"],
    };
    let starts = |magic: &[u8]| file.read_bytes_at(0, magic.len() as u64) == Ok(magic);
    if !magics.iter().copied().any(starts) {
        return Err("the file is not a shared library".to_owned());
    }
    match end(file, starts(UNIVERSAL)) {
        // Headers that extend past the end mean that the file is truncated.
        Err(error) => Err(format!("the library is truncated or damaged ({length} bytes: {error})")),
        Ok(None) => Err("the library is for a different processor architecture".to_owned()),
        Ok(Some(end)) if end > length => Err(format!("the library is truncated ({length} of at least {end} bytes)")),
        Ok(Some(_)) => Ok(()),
    }
}

/// The first bytes of a macOS library for several architectures.
const UNIVERSAL: &[u8] = b"\xca\xfe\xba\xbe";

/// The minimum length of the file; `None` for a library of another architecture.
fn end<'f>(file: impl ReadRef<'f>, is_universal: bool) -> object::Result<Option<u64>> {
    let ours = match std::env::consts::ARCH {
        "x86_64" => Architecture::X86_64,
        _ => Architecture::Aarch64,
    };
    let (is_ours, ranges): (bool, Vec<(u64, u64)>) = if is_universal {
        let file = MachOFatFile32::parse(file)?;
        let libraries = file.arches().iter();
        let is_ours = libraries.clone().any(|library| library.architecture() == ours);
        (is_ours, libraries.map(FatArch::file_range).collect())
    } else {
        // It reads the tables of sections and symbols, so they are present.
        let file = object::File::parse(file)?;
        let ranges = file.segments().map(|segment| segment.file_range());
        (file.architecture() == ours, ranges.collect())
    };
    let ends = ranges.iter().map(|(start, length)| start.saturating_add(*length));
    Ok(is_ours.then(|| ends.max().unwrap_or(0)))
}
