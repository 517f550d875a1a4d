//! Detects image formats, and finds the segments of a JPEG file and its frame header. Section numbers are those of
//! ITU-T T.81.

use strum::IntoStaticStr;

use super::DecodeError;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr)]
#[strum(serialize_all = "UPPERCASE", const_into_str)]
pub enum Format {
    Jpeg,
    Png,
    #[strum(serialize = "WebP")]
    WebP,
    Bmp,
    Tiff,
    Gif,
}

impl Format {
    /// Detects the format from the first bytes.
    ///
    /// # Errors
    /// No bytes, another image format (named), or anything else (quoted from its beginning).
    pub fn detect(bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes.is_empty() {
            return Err(DecodeError::Empty);
        }
        if let Some(format) = Self::known(bytes) {
            return Ok(format);
        }
        Err(match foreign_format(bytes) {
            Some(name) => DecodeError::UnsupportedFormat { name },
            None => DecodeError::UnknownFormat { beginning: beginning(bytes) },
        })
    }

    fn known(bytes: &[u8]) -> Option<Self> {
        let starts = |magic: &[u8]| bytes.starts_with(magic);
        Some(if starts(b"\xff\xd8\xff") {
            Self::Jpeg
        } else if starts(b"\x89PNG\r\n\x1a\n") {
            Self::Png
        } else if starts(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
            Self::WebP
        } else if starts(b"BM") && bytes.len() >= 26 && bytes[6..10] == [0; 4] {
            // Two letters are little evidence, so the reserved field after the file size must also be zero.
            Self::Bmp
        } else if starts(b"II*\0") || starts(b"MM\0*") || starts(b"II+\0") || starts(b"MM\0+") {
            Self::Tiff
        } else if starts(b"GIF87a") || starts(b"GIF89a") {
            Self::Gif
        } else {
            return None;
        })
    }

    pub fn to_image_crate(self) -> image::ImageFormat {
        match self {
            Self::Jpeg => image::ImageFormat::Jpeg,
            Self::Png => image::ImageFormat::Png,
            Self::WebP => image::ImageFormat::WebP,
            Self::Bmp => image::ImageFormat::Bmp,
            Self::Tiff => image::ImageFormat::Tiff,
            Self::Gif => image::ImageFormat::Gif,
        }
    }
}

/// Common formats that are not supported, so that the message can name them.
fn foreign_format(bytes: &[u8]) -> Option<&'static str> {
    let starts = |magic: &[u8]| bytes.starts_with(magic);
    let brand = bytes.get(4..8).filter(|kind| kind == b"ftyp").and_then(|_| bytes.get(8..12));
    match brand {
        Some(b"heic" | b"heix" | b"hevc" | b"heim" | b"heis" | b"mif1" | b"msf1") => {
            return Some("HEIC image");
        }
        Some(b"avif" | b"avis") => return Some("AVIF image"),
        Some(_) => return Some("video"),
        None => {}
    }
    Some(if starts(b"\0\0\0\x0cjP  ") || starts(b"\xff\x4f\xff\x51") {
        "JPEG 2000 image"
    } else if starts(b"\xff\x0a") || starts(b"\0\0\0\x0cJXL ") {
        "JPEG XL image"
    } else if starts(b"8BPS") {
        "Photoshop document"
    } else if starts(b"%PDF") {
        "PDF document"
    } else if starts(b"PK\x03\x04") {
        "ZIP archive"
    } else if starts(b"\0\0\x01\0") {
        "Windows icon"
    } else if starts(b"qoif") {
        "QOI image"
    } else if starts(b"\x76\x2f\x31\x01") {
        "OpenEXR image"
    } else {
        return None;
    })
}

/// The first bytes for a message: quoted if they are text, otherwise in hexadecimal.
fn beginning(bytes: &[u8]) -> String {
    let head = &bytes[..bytes.len().min(24)];
    let text = match std::str::from_utf8(head) {
        Ok(text) => Some(text),
        // The cut can be inside a multi-byte character.
        Err(error) if error.error_len().is_none() => std::str::from_utf8(&head[..error.valid_up_to()]).ok(),
        Err(_) => None,
    };
    let printable = |text: &&str| !text.is_empty() && text.chars().all(|c| !c.is_control() || c.is_whitespace());
    if let Some(text) = text.filter(printable) {
        let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let ellipsis = if bytes.len() > head.len() { "…" } else { "" };
        return format!("the text “{line}{ellipsis}”");
    }
    let hex: Vec<String> = head[..head.len().min(8)].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("the bytes {}", hex.join(" "))
}

const START_OF_IMAGE: u8 = 0xd8;
pub(super) const START_OF_SCAN: u8 = 0xda;
pub(super) const END_OF_IMAGE: u8 = 0xd9;

/// DHT, JPG and DAC are in the same range.
pub(super) fn is_start_of_frame(marker: u8) -> bool {
    matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc)
}

/// A segment before the first scan: its start, its marker, and the range of its payload.
pub(super) struct Segment {
    pub start: usize,
    pub marker: u8,
    pub payload: std::ops::Range<usize>,
}

/// The segments up to and including the first start of scan. Bytes between segments are skipped, as in libjpeg.
pub(super) fn segments(bytes: &[u8]) -> impl Iterator<Item = Segment> + '_ {
    let mut position = 2;
    let mut finished = false;
    std::iter::from_fn(move || {
        if finished {
            return None;
        }
        let mut at = next_marker(bytes, position)?;
        // These two kinds have no payload.
        while matches!(bytes[at], 1 | 0xd0..=0xd7) {
            at = next_marker(bytes, at + 1)?;
        }
        let length = bytes.get(at + 1..at + 3)?;
        let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
        if length < 2 || matches!(bytes[at], START_OF_IMAGE | END_OF_IMAGE) {
            return None;
        }
        let payload = at + 3..(at + 1 + length).min(bytes.len());
        position = at + 1 + length;
        finished = bytes[at] == START_OF_SCAN;
        (payload.start <= payload.end).then_some(Segment { start: at - 1, marker: bytes[at], payload })
    })
}

/// The position of the next marker code: the byte after any number of `ff` that is neither `ff` nor zero.
pub(super) fn next_marker(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += bytes.get(at..)?.iter().position(|byte| *byte == 0xff)?;
        at += bytes[at..].iter().position(|byte| *byte != 0xff)?;
        if bytes[at] != 0 {
            return Some(at);
        }
        at += 1;
    }
}

/// The file up to its first scan.
pub(super) fn up_to_scan(bytes: &[u8]) -> &[u8] {
    first_scan(bytes).map_or(bytes, |scan| &bytes[..bytes.len() - scan.len()])
}

/// The entropy-coded data of the first scan and everything after it.
pub(super) fn first_scan(bytes: &[u8]) -> Option<&[u8]> {
    segments(bytes).find(|segment| segment.marker == START_OF_SCAN).map(|segment| &bytes[segment.payload.end..])
}

/// The frame header (B.2.2).
#[derive(Clone, Copy)]
pub(super) struct Frame<'a> {
    pub precision: u8,
    /// Width, height.
    pub size: [u16; 2],
    /// The number of components stated in the header.
    pub component_count: u8,
    /// The id, sampling factors (horizontal in the upper four bits, vertical in the lower), and quantization table of
    /// each component that is present.
    pub components: &'a [[u8; 3]],
    /// Whether the payload ends with the last component.
    pub is_exact: bool,
}

impl<'a> Frame<'a> {
    pub(super) fn parse(payload: &'a [u8]) -> Option<Self> {
        let (&[precision, y1, y0, x1, x0, component_count], rest) = payload.split_first_chunk()?;
        let (components, rest) = rest.as_chunks();
        Some(Self {
            precision,
            size: [[x1, x0], [y1, y0]].map(u16::from_be_bytes),
            component_count,
            components,
            is_exact: rest.is_empty(),
        })
    }

    /// The first frame before the first scan.
    pub(super) fn find(bytes: &'a [u8]) -> Option<Self> {
        let frame = segments(bytes).find(|segment| is_start_of_frame(segment.marker))?;
        Self::parse(&bytes[frame.payload])
    }

    /// The horizontal and vertical sampling factors of each component.
    pub(super) fn sampling_factors(&self) -> impl Iterator<Item = [u64; 2]> {
        let factors = self.components.iter().map(|[_, factors, _]| [factors >> 4, factors & 15]);
        factors.map(|pair| pair.map(|factor| factor.max(1).into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_quoted_and_bytes_are_hexadecimal() {
        let message = |bytes: &[u8]| Format::detect(bytes).unwrap_err().to_string();
        assert!(message(b"hello\nworld").contains("begins with the text “hello world”"));
        assert!(message("grüße ".repeat(9).as_bytes()).contains("the text “grüße grüße"));
        assert!(message(&[0, 1, 2, 250]).contains("begins with the bytes 00 01 02 fa"));
        assert!(message(b"").starts_with("is empty"));
    }

    #[test]
    fn unsupported_formats_are_named() {
        let message = Format::detect(b"\0\0\0\x18ftypheic\0\0\0\0").unwrap_err().to_string();
        assert!(message.starts_with("is a HEIC image"), "{message}");
    }

    #[test]
    fn word_starting_with_bm_is_not_a_bitmap() {
        let text = b"BMW models and their prices in a long list";
        assert!(matches!(Format::detect(text), Err(DecodeError::UnknownFormat { .. })));
    }
}
