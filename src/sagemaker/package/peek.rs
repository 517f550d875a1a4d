//! Recognizes the content of an archive by file names. Unpacks nothing, and reads truncated archives as far as they go.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::onnx::CARD_FILE;
use super::saved_model::is_graph_of_version;
use super::unpack::{Bounded, MAX_HEADER_BYTES};
use crate::sagemaker::spec::transform::ArchiveContent;

/// The part of an archive that is searched: Spotcheck packs the decisive files first.
const LOOKED_AT: u64 = 64 << 20;
/// The unpacked size that is searched.
const UNPACKED: u64 = 1 << 30;
const MAX_ENTRIES: usize = 10_000;

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
/// There is no such file, or it cannot be opened.
pub fn peek_file(archive: &Path) -> io::Result<Option<ArchiveContent>> {
    Ok(peek(File::open(archive)?))
}

/// The content of an archive with a file of this name, if the name is decisive.
pub(crate) fn content_named(name: &Path) -> Option<ArchiveContent> {
    let name = name.strip_prefix(".").unwrap_or(name);
    if name == Path::new(CARD_FILE) {
        return Some(ArchiveContent::Onnx);
    }
    is_graph_of_version(name).then_some(ArchiveContent::SavedModel)
}

#[cfg(test)]
mod tests {
    use super::*;

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
