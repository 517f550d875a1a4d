//! Why an image cannot be decoded.

/// Each message completes “`photo.jpg` …”: what happened, why, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("is empty: it has no bytes; copy or download it again")]
    Empty,
    #[error("is not an image that Spotcheck reads (JPEG, PNG, WebP, BMP, TIFF and GIF): it begins with {beginning}")]
    UnknownFormat {
        /// The first bytes, as text if they are text.
        beginning: String,
    },
    #[error("is a {name}, which Spotcheck cannot read; convert it to JPEG or PNG")]
    UnsupportedFormat { name: &'static str },
    #[error("is an unsupported kind of {format}: {reason}; save it as JPEG or 8-bit PNG")]
    UnsupportedKind { format: &'static str, reason: String },
    #[error("is truncated: the {format} data ends early; copy or download it again")]
    Truncated { format: &'static str },
    #[error("is damaged: {reason}; copy or download it again")]
    Damaged { reason: String },
    #[error(
        "is too large: {width} x {height} is {} megapixels, more than the limit of {max_megapixels}; raise the limit \
        (“Maximum image size” under Device in the window, `--max-megapixels` on the command line), or scale the \
        image down",
        megapixels(*width, *height)
    )]
    TooLarge { width: u64, height: u64, max_megapixels: u64 },
    #[error(
        "needs too much memory: {} MB to decode, more than the limit of {}; raise the limit \
        (“Maximum image size” under Device in the window, `--max-megapixels` on the command line: 3 MB per megapixel), \
        or save it smaller or as a non-progressive JPEG",
        bytes.div_ceil(1_000_000), max_bytes / 1_000_000
    )]
    TooMuchMemory { bytes: u64, max_bytes: u64 },
    #[error("has no pixels: its width or height is zero")]
    NoPixels,
    #[error("does not fit into memory: it needs {} MiB; close other programs or scale the image down", bytes >> 20)]
    OutOfMemory { bytes: u64 },
}

/// Rounded up, so that an image just above the limit does not seem to be at the limit.
fn megapixels(width: u64, height: u64) -> u64 {
    width.saturating_mul(height).div_ceil(1_000_000)
}
