//! Whether a file can be a shared library of this computer at all.
//!
//! The system's loader maps a library into memory and trusts its headers; of a file that is cut short it reads beyond
//! the end, and the process is killed. So the headers are compared with the file's length before anything is loaded.

use std::fs::File;
use std::path::Path;

use object::read::macho::{FatArch, MachOFatFile32};
use object::{Architecture, Object, ObjectSegment, ReadCache, ReadRef};

/// Gives the reason why `path` cannot be loaded.
pub(super) fn check_library(path: &Path) -> Result<(), String> {
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
        // Headers that run out of the file are those of a file that is cut short.
        Err(error) => Err(format!("the library is truncated or damaged ({length} bytes: {error})")),
        Ok(None) => Err("the library is for a different processor architecture".to_owned()),
        Ok(Some(end)) if end > length => Err(format!("the library is truncated ({length} of at least {end} bytes)")),
        Ok(Some(_)) => Ok(()),
    }
}

/// How a library of macOS for several kinds of processors begins.
const UNIVERSAL: &[u8] = b"\xca\xfe\xba\xbe";

/// How many bytes the file must have at least; `None` for a library of another kind of processor.
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
        // It reads the tables of sections and symbols too, so they are there.
        let file = object::File::parse(file)?;
        let ranges = file.segments().map(|segment| segment.file_range());
        (file.architecture() == ours, ranges.collect())
    };
    let ends = ranges.iter().map(|(start, length)| start.saturating_add(*length));
    Ok(is_ours.then(|| ends.max().unwrap_or(0)))
}
