//! The size of an image that is not decoded.

use crate::domain::SampleUri;
use crate::image::decode::details;
use crate::image::source::{Source, SourceError};

/// The part of a file that is read for the image size. Headers are at the beginning; only a few images need more.
const BEGINNING: u64 = 64 << 10;

/// Why an image size is unknown.
#[derive(Debug, thiserror::Error)]
pub enum SizeError {
    #[error("the image size is unknown: the image could not be read: {0}")]
    Unread(#[from] SourceError),
    #[error("the image size is unknown: the image's header is invalid")]
    NoHeader,
}

/// Reads width and height of the upright image, in pixels, from its header.
///
/// # Errors
/// The image cannot be read, or its header is not supported.
pub fn image_size(source: &dyn Source, uri: &SampleUri) -> Result<[u32; 2], SizeError> {
    if let Some(size) = details(&source.read_once(uri, 0..BEGINNING)?).upright_size() {
        return Ok(size);
    }
    details(&source.read(uri)?).upright_size().ok_or(SizeError::NoHeader)
}
