//! Whether a file can be a shared library of this computer at all.
//!
//! The system's loader maps a library into memory and trusts its headers; of a file that is cut short it reads beyond the
//! end, and the process is killed. So the headers are compared with the file's length before anything is loaded.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Headers live at the front of the file; 1 MiB holds those of every library seen.
const HEADER_BYTES: u64 = 1 << 20;

/// Gives the reason why `path` cannot be loaded.
pub(super) fn check_library(path: &Path) -> Result<(), String> {
    let read = || -> std::io::Result<(Vec<u8>, u64)> {
        let mut file = File::open(path)?;
        let length = file.seek(SeekFrom::End(0))?;
        file.rewind()?;
        let mut head = Vec::new();
        file.take(HEADER_BYTES).read_to_end(&mut head)?;
        Ok((head, length))
    };
    let (head, length) = read().map_err(|error| format!("the file cannot be read ({error})"))?;
    let kind = match std::env::consts::OS {
        "windows" => pe_end(&head),
        "macos" => mach_o_end(&head),
        _ => elf_end(&head),
    };
    match kind {
        Header::Other => Err("the file is not a shared library".to_owned()),
        Header::OtherProcessor => {
            Err("the library is made for another kind of processor".to_owned())
        }
        Header::EndsAt(end) if end > length => Err(format!(
            "the library is cut short ({length} of at least {end} bytes)"
        )),
        Header::EndsAt(_) => Ok(()),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Header {
    Other,
    OtherProcessor,
    /// The file must have at least this many bytes.
    EndsAt(u64),
}

/// ELF, 64 bit, little endian: the section table ends the file, the loadable segments lie before it.
fn elf_end(head: &[u8]) -> Header {
    let elf = Bytes(head);
    if !head.starts_with(b"\x7fELF\x02\x01") {
        return Header::Other;
    }
    let machine = match std::env::consts::ARCH {
        "x86_64" => Some(62),
        "aarch64" => Some(183),
        _ => None,
    };
    let parse = || {
        if machine.is_some() && Some(elf.u16(18)?) != machine {
            return Some(Header::OtherProcessor);
        }
        let sections_at = elf.u64(40)?;
        let mut end = sections_at
            .checked_add(u64::from(elf.u16(58)?) * u64::from(elf.u16(60)?))?
            .max(64);
        let (segments_at, segment_bytes) = (elf.u64(32)?, u64::from(elf.u16(54)?));
        for index in 0..u64::from(elf.u16(56)?) {
            let at = usize::try_from(segments_at.checked_add(index * segment_bytes)?).ok()?;
            end = end.max(elf.u64(at + 8)?.checked_add(elf.u64(at + 32)?)?);
        }
        Some(Header::EndsAt(end))
    };
    // Headers that run out of the file are those of a file that is cut short.
    parse().unwrap_or(Header::EndsAt(u64::MAX))
}

/// Mach-O, 64 bit, alone or in a universal file.
fn mach_o_end(head: &[u8]) -> Header {
    const UNIVERSAL: &[u8] = b"\xca\xfe\xba\xbe";
    const SINGLE: &[u8] = b"\xcf\xfa\xed\xfe";
    const LOAD_SEGMENT_64: u32 = 0x19;
    let file = Bytes(head);
    let processor: u32 = match std::env::consts::ARCH {
        "x86_64" => 0x0100_0007,
        _ => 0x0100_000c,
    };
    let parse = || {
        if head.starts_with(UNIVERSAL) {
            let count = file.u32_be(4)?;
            let mut end = 0;
            let mut is_ours = false;
            for index in 0..count.min(16) as usize {
                let at = 8 + 20 * index;
                is_ours |= file.u32_be(at)? == processor;
                end = end.max(u64::from(file.u32_be(at + 8)?) + u64::from(file.u32_be(at + 12)?));
            }
            return Some(if is_ours {
                Header::EndsAt(end)
            } else {
                Header::OtherProcessor
            });
        }
        if !head.starts_with(SINGLE) {
            return Some(Header::Other);
        }
        if file.u32(4)? != processor {
            return Some(Header::OtherProcessor);
        }
        let (mut at, mut end) = (32, 32);
        for _ in 0..file.u32(16)? {
            if file.u32(at)? == LOAD_SEGMENT_64 {
                end = end.max(file.u64(at + 40)?.checked_add(file.u64(at + 48)?)?);
            }
            at = at.checked_add(file.u32(at + 4)?.max(8) as usize)?;
        }
        Some(Header::EndsAt(end))
    };
    parse().unwrap_or(Header::EndsAt(u64::MAX))
}

/// PE, as Windows has it: each section says where its bytes lie.
fn pe_end(head: &[u8]) -> Header {
    let file = Bytes(head);
    if !head.starts_with(b"MZ") {
        return Header::Other;
    }
    let machine = match std::env::consts::ARCH {
        "x86_64" => 0x8664,
        _ => 0xaa64,
    };
    let parse = || {
        let pe = file.u32(60)? as usize;
        if head.get(pe..pe.checked_add(4)?)? != b"PE\0\0" {
            return Some(Header::Other);
        }
        if file.u16(pe + 4)? != machine {
            return Some(Header::OtherProcessor);
        }
        let sections_at = pe + 24 + usize::from(file.u16(pe + 20)?);
        let mut end = 0;
        for index in 0..usize::from(file.u16(pe + 6)?) {
            let at = sections_at + 40 * index;
            end = end.max(u64::from(file.u32(at + 16)?) + u64::from(file.u32(at + 20)?));
        }
        Some(Header::EndsAt(end))
    };
    parse().unwrap_or(Header::EndsAt(u64::MAX))
}

/// Numbers at byte offsets; `None` beyond the end.
#[derive(Clone, Copy)]
struct Bytes<'b>(&'b [u8]);

impl Bytes<'_> {
    fn array<const N: usize>(self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..at.checked_add(N)?)?.try_into().ok()
    }

    fn u16(self, at: usize) -> Option<u16> {
        self.array(at).map(u16::from_le_bytes)
    }

    fn u32(self, at: usize) -> Option<u32> {
        self.array(at).map(u32::from_le_bytes)
    }

    fn u32_be(self, at: usize) -> Option<u32> {
        self.array(at).map(u32::from_be_bytes)
    }

    fn u64(self, at: usize) -> Option<u64> {
        self.array(at).map(u64::from_le_bytes)
    }
}
