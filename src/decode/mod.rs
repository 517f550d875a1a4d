//! Encoded bytes to upright RGB pixels, and back for exports: the only floor that interprets compressed images.
//!
//! Pixels for models are decoded in full and bit for bit as Pillow does it for JPEG, PNG, BMP, GIF and lossless WebP; thumbnails
//! may take short cuts. The format is found by the first bytes, never by the file's name. Knows nothing of
//! files, folders or models; everything here blocks and belongs on a worker thread.

mod crop;
mod details;
mod encode;
mod error;
mod format;
mod jpeg;
mod kept;
mod limits;
mod metadata;
mod orientation;
mod pyramid;
mod raster;
mod thumbnail;

pub use crop::crops;
pub use details::{ImageDetails, details};
pub use encode::{EncodeError, encode_jpeg, encode_png};
pub use error::DecodeError;
pub use format::Format;
pub use kept::{ThumbnailCache, ThumbnailKey};
pub use limits::{DecodeLimits, Lending, MemoryBudget, Reservation};
pub use orientation::Orientation;
pub use pyramid::PicturePyramid;
pub use thumbnail::thumbnail;

use crate::domain::Picture;

/// A picture for people, which may be incomplete.
#[derive(Debug, Clone)]
pub struct Displayed {
    pub picture: Picture,
    /// What is missing and why; the same words with which [`decode`] refuses the file.
    pub warning: Option<String>,
}

/// Decodes a whole image for a model: every pixel as it was encoded, or an error.
///
/// Blocks while other decodes hold the memory that this one needs.
pub fn decode(bytes: &[u8], limits: &DecodeLimits) -> Result<Picture, DecodeError> {
    decode_reserved(bytes, limits).map(|(picture, _)| picture)
}

/// As [`decode`]; the picture's share of the memory budget stays taken until the reservation is dropped. Keep it as
/// long as the picture, so that two giants are never in memory at once.
pub fn decode_reserved(
    bytes: &[u8],
    limits: &DecodeLimits,
) -> Result<(Picture, Reservation), DecodeError> {
    let decoded = decode_stored(bytes, limits, Scale::Full)?;
    match decoded.loss {
        Some(loss) => Err(loss),
        None => decoded.into_upright(),
    }
}

/// Decodes as much as there is: a truncated JPEG or PNG is shown as far as it goes, with a warning.
pub fn decode_for_display(bytes: &[u8], limits: &DecodeLimits) -> Result<Displayed, DecodeError> {
    let decoded = decode_stored(bytes, limits, Scale::Full)?;
    let warning = decoded.loss.as_ref().map(DecodeError::to_string);
    let (picture, _) = decoded.into_upright()?;
    Ok(Displayed { picture, warning })
}

/// How many of the stored pixels are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scale {
    Full,
    /// Fewer where the decoder can skip work; the longer side stays at least this long.
    AtLeast(u32),
    /// Halved so many times, or fewer where the decoder cannot skip that much work. Not turned upright.
    Level(usize),
    /// All of a small picture; a large one as coarse as it may be shown first. Not turned upright.
    FirstLevel,
}

impl Scale {
    /// No second copy of the pixels will be made.
    fn stays_as_stored(self) -> bool {
        matches!(self, Self::Level(_) | Self::FirstLevel)
    }
}

/// Pixels as they are stored, before they are turned upright: RGB, 8 bits, `[height, width, 3]`.
struct Decoded {
    width: u32,
    height: u32,
    /// Width and height before the scale that was asked for.
    full_size: [u32; 2],
    rgb: Vec<u8>,
    orientation: Orientation,
    /// Why the pixels are not all there.
    loss: Option<DecodeError>,
    reservation: Reservation,
}

impl Decoded {
    fn into_upright(self) -> Result<(Picture, Reservation), DecodeError> {
        let Self {
            width,
            height,
            rgb,
            orientation,
            mut reservation,
            ..
        } = self;
        let (width, height, rgb) = orientation.upright(width, height, rgb);
        reservation.shrink_to(rgb.len() as u64);
        let picture = Picture::new(width, height, rgb).ok_or(DecodeError::NoPixels)?;
        Ok((picture, reservation))
    }
}

fn decode_stored(
    bytes: &[u8],
    limits: &DecodeLimits,
    scale: Scale,
) -> Result<Decoded, DecodeError> {
    match Format::of(bytes)? {
        Format::Jpeg => jpeg::decode(bytes, limits, scale),
        format => raster::decode(bytes, format, limits),
    }
}
