//! Decodes image files to upright RGB pixels, and encodes them for exports: the only module that interprets compressed
//! images.
//!
//! Pixels for models are decoded in full and bit for bit as in Pillow for JPEG, PNG, BMP, GIF and lossless WebP;
//! thumbnails may take shortcuts. The format is detected from the first bytes, never from the file name. Knows nothing
//! about folders or models. Everything here blocks and belongs on a worker thread.

mod details;
mod format;
mod gray;
mod jpeg;
mod limits;
mod orientation;
mod pyramid;
mod raster;
mod thumbnail;

use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{ExtendedColorType, ImageEncoder};
use turbojpeg::{Image, PixelFormat, Subsamp};

use crate::domain::RgbImage;

pub use details::{ImageDetails, capture, details};
pub use format::Format;
pub use gray::gray_square;
pub use limits::{DecodeLimits, Lending, MemoryBudget, Reservation};
pub use orientation::Orientation;
pub use pyramid::ImagePyramid;
pub use thumbnail::{ThumbnailCache, ThumbnailKey, crops, thumbnail};

/// An upright image, and what is wrong with its file.
#[derive(Debug, Clone, PartialEq)]
pub struct DecodedImage {
    pub image: RgbImage,
    /// What is damaged or missing and why, to follow the file name; `None` for an intact image.
    pub warning: Option<String>,
}

/// Why an image cannot be decoded. Each message completes “`photo.jpg` …”: what happened, why, and what to do.
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

/// Decodes an image for a model: Pillow's pixels, or an error if Pillow fails. Where data inside the file is, or may
/// be, missing or wrong, Pillow makes up pixels without a warning; here the image has a [`DecodedImage::warning`].
///
/// Blocks while other decodes hold the memory that this one needs.
pub fn decode(bytes: &[u8], limits: &DecodeLimits) -> Result<DecodedImage, DecodeError> {
    decode_reserved(bytes, limits).map(|(image, _)| image)
}

/// As [`decode`], but the image's share of the memory budget stays reserved until the reservation is dropped. Keep it
/// as long as the image, so that two giants are never in memory together.
pub fn decode_reserved(bytes: &[u8], limits: &DecodeLimits) -> Result<(DecodedImage, Reservation), DecodeError> {
    let decoded = decode_stored(bytes, limits, Scale::Full)?;
    match decoded.flaw {
        Some(Flaw::Loss(loss)) => Err(loss),
        _ => decoded.into_image(),
    }
}

/// Decodes as much as possible for display: a truncated JPEG or PNG is shown as far as it goes, with a warning.
pub fn decode_for_display(bytes: &[u8], limits: &DecodeLimits) -> Result<DecodedImage, DecodeError> {
    let decoded = decode_stored(bytes, limits, Scale::Full)?;
    decoded.into_image().map(|(image, _)| image)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scale {
    Full,
    /// Lower if the decoder can skip work; the longer side keeps at least this length.
    AtLeast(u32),
    /// Halved this many times, or less often if the decoder cannot skip that much work. Not turned upright.
    Level(usize),
    /// A small image in full; a large one at the resolution that is shown first. Not turned upright.
    FirstLevel,
}

impl Scale {
    /// Whether no second copy of the pixels will be made.
    fn stays_as_stored(self) -> bool {
        matches!(self, Self::Level(_) | Self::FirstLevel)
    }
}

/// Stored pixels, before they are turned upright: RGB, 8 bits, `[height, width, 3]`.
struct Decoded {
    width: u32,
    height: u32,
    /// Width and height before scaling.
    full_size: [u32; 2],
    rgb: Vec<u8>,
    orientation: Orientation,
    flaw: Option<Flaw>,
    reservation: Reservation,
}

/// A problem with pixels that were decoded anyway.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Flaw {
    /// Data inside the file is missing or wrong; with the decoder's reason. Pillow makes up the same pixels, so models
    /// saw them in training.
    Damage(String),
    /// Data is left over although all pixels are present; with the decoder's reason. It may be padding, or the decoder
    /// lost its place in damaged data. Pillow has the same pixels.
    Suspicion(String),
    /// Pixels are missing, and Pillow rejects the file: for display only.
    Loss(DecodeError),
}

impl Flaw {
    /// The warning, to follow the file name.
    fn warning(&self) -> String {
        match self {
            Self::Damage(reason) => {
                format!("is damaged, so some pixels may be wrong: {reason}. Copy or download it again")
            }
            Self::Suspicion(reason) => {
                format!("may be damaged: {reason}. If it looks wrong, copy or download it again")
            }
            Self::Loss(error) => error.to_string(),
        }
    }
}

impl Decoded {
    fn into_image(self) -> Result<(DecodedImage, Reservation), DecodeError> {
        let warning = self.flaw.as_ref().map(Flaw::warning);
        let (image, reservation) = self.into_upright()?;
        Ok((DecodedImage { image, warning }, reservation))
    }

    fn into_upright(self) -> Result<(RgbImage, Reservation), DecodeError> {
        let Self { width, height, rgb, orientation, mut reservation, .. } = self;
        let (width, height, rgb) = orientation.upright(width, height, rgb);
        reservation.shrink_to(rgb.len() as u64);
        let image = RgbImage::new(width, height, rgb).ok_or(DecodeError::NoPixels)?;
        Ok((image, reservation))
    }
}

fn decode_stored(bytes: &[u8], limits: &DecodeLimits, scale: Scale) -> Result<Decoded, DecodeError> {
    match Format::detect(bytes)? {
        Format::Jpeg => jpeg::decode(bytes, limits, scale),
        format => raster::decode(bytes, format, limits),
    }
}

/// The image could not be encoded: it is too large for the format, or memory ran out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("could not write the image as {format}: {reason}")]
pub struct EncodeError {
    format: &'static str,
    reason: String,
}

/// A PNG file, RGB, 8 bits; lossless.
pub fn encode_png(image: &RgbImage) -> Result<Vec<u8>, EncodeError> {
    let mut file = Vec::new();
    PngEncoder::new_with_quality(&mut file, CompressionType::Fast, FilterType::Adaptive)
        .write_image(image.rgb(), image.width(), image.height(), ExtendedColorType::Rgb8)
        .map_err(|error| EncodeError { format: "PNG", reason: error.to_string() })?;
    Ok(file)
}

/// A JPEG file without chroma subsampling, which would blur colored lines and text. `quality` is `1..=100`.
pub fn encode_jpeg(image: &RgbImage, quality: u8) -> Result<Vec<u8>, EncodeError> {
    compress(image, quality, Subsamp::None)
}

/// A JPEG file as small as possible without visible loss in a thumbnail.
fn encode_thumbnail(image: &RgbImage) -> Result<Vec<u8>, EncodeError> {
    compress(image, 88, Subsamp::Sub2x2)
}

fn compress(image: &RgbImage, quality: u8, subsampling: Subsamp) -> Result<Vec<u8>, EncodeError> {
    let image = Image {
        pixels: image.rgb(),
        width: image.width() as usize,
        pitch: image.width() as usize * 3,
        height: image.height() as usize,
        format: PixelFormat::RGB,
    };
    let quality = i32::from(quality.clamp(1, 100));
    turbojpeg::compress(image, quality, subsampling)
        .map(|file| file.to_vec())
        .map_err(|error| EncodeError { format: "JPEG", reason: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::decode::{DecodeLimits, decode};

    fn gradient() -> RgbImage {
        let rgb = (0..40 * 30 * 3).map(|index| (index / 15) as u8).collect();
        RgbImage::new(40, 30, rgb).unwrap()
    }

    #[test]
    fn png_round_trips() {
        let file = encode_png(&gradient()).unwrap();
        let decoded = decode(&file, &DecodeLimits::default()).unwrap();
        assert_eq!(decoded.image, gradient());
    }

    #[test]
    fn jpeg_round_trips_approximately() {
        let file = encode_jpeg(&gradient(), 95).unwrap();
        let image = decode(&file, &DecodeLimits::default()).unwrap().image;
        assert_eq!((image.width(), image.height()), (40, 30));
        for (got, expected) in image.rgb().iter().zip(gradient().rgb()) {
            assert!(got.abs_diff(*expected) < 16);
        }
    }
}
