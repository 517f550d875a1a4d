//! Reads the size of an image from its header, for outputs without one.

use crate::domain::SampleUri;
use crate::image::decode::details;
use crate::image::source::{Source, SourceError};

/// Headers are at the beginning; only a few images need more.
const BEGINNING: u64 = 64 << 10;

/// Why an image size is unknown.
#[derive(Debug, thiserror::Error)]
pub enum NoSize {
    #[error("the image size is unknown: the image could not be read: {0}")]
    Unread(#[from] SourceError),
    #[error("the image size is unknown: the image's header is invalid")]
    NoHeader,
}

/// Width and height of the upright image, in pixels.
///
/// # Errors
/// The image cannot be read, or its header is not supported.
pub fn image_size(source: &dyn Source, uri: &SampleUri) -> Result<[u32; 2], NoSize> {
    let beginning = source.read_once(uri, 0..BEGINNING)?;
    if let Some(size) = details(&beginning).upright_size() {
        return Ok(size);
    }
    let whole = source.read(uri)?;
    details(&whole).upright_size().ok_or(NoSize::NoHeader)
}
