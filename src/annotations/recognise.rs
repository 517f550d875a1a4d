//! What a file or folder of annotations is, by its content.

use super::{AnnotationFormat, AnnotationsError};
use crate::source::{FileEntry, Files};
use crate::tasks::TaskControl;

/// How much of a file is looked at.
const HEAD_BYTES: u64 = 64 << 10;

pub(super) struct Recognised {
    pub(super) format: AnnotationFormat,
    pub(super) file: FileEntry,
}

pub(super) fn recognise(
    files: &Files,
    listed: &[FileEntry],
    control: &TaskControl,
) -> Result<Recognised, AnnotationsError> {
    let unknown = |reason: &str| AnnotationsError::Unknown { place: files.name(), reason: reason.to_owned() };
    let [file] = listed else {
        return Err(unknown("it is a folder; choose a file in it"));
    };
    let format = of_file(files, file, control)?;
    Ok(Recognised { format, file: file.clone() })
}

fn of_file(files: &Files, file: &FileEntry, control: &TaskControl) -> Result<AnnotationFormat, AnnotationsError> {
    let place = || files.name_of(file);
    let head = files.read_range(file, 0..HEAD_BYTES.min(file.size_bytes), control)?;
    if head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]) {
        return Err(AnnotationsError::Utf16 { place: place() });
    }
    let text = head.strip_prefix(super::BOM).unwrap_or(&head).trim_ascii_start();
    match text.first() {
        None => Err(AnnotationsError::Empty { place: place() }),
        Some(b'[') => Ok(AnnotationFormat::CocoResults),
        Some(b'{') => {
            let keys = top_keys(text);
            if ["images", "annotations", "categories"].iter().any(|key| keys.iter().any(|known| known == key)) {
                return Ok(AnnotationFormat::Coco);
            }
            let shown: Vec<String> = keys.iter().take(8).map(|key| super::json::shortened(key)).collect();
            let reason = format!(
                "a COCO file has images, annotations and categories; the keys of this one begin with {}",
                shown.join(", ")
            );
            Err(AnnotationsError::Unknown { place: place(), reason })
        }
        Some(_) => {
            Err(AnnotationsError::Unknown { place: place(), reason: "it begins like no known format".to_owned() })
        }
    }
}

/// The keys of the object that `text` begins with, as far as it goes.
fn top_keys(text: &[u8]) -> Vec<String> {
    let mut keys = Vec::new();
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let start = at;
                while let Some(&inside) = text.get(at)
                    && inside != b'"'
                {
                    at += if inside == b'\\' { 2 } else { 1 };
                }
                let key = text.get(start..at);
                at += 1;
                let behind = text.get(at..).unwrap_or_default().trim_ascii_start();
                if let (1, Some(key), true) = (depth, key, behind.starts_with(b":")) {
                    keys.push(String::from_utf8_lossy(key).into_owned());
                }
                continue;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    keys
}
