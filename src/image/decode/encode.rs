//! Encodes images for exports.

use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{ExtendedColorType, ImageEncoder};
use turbojpeg::{Image, PixelFormat, Subsamp};

use crate::domain::RgbImage;

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
pub(super) fn encode_thumbnail(image: &RgbImage) -> Result<Vec<u8>, EncodeError> {
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
