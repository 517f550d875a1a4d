//! Detects image formats.

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
