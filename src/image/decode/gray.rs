//! A small gray square of an image, to compare how images look.

use super::thumbnail::resize;
use super::{DecodeError, DecodeLimits, Flaw, Scale, decode_stored};

/// The upright image as `N` gray values (the luma of ITU-R 601, as in Pillow), stretched to a square, row by row.
///
/// # Errors
/// The image cannot be decoded completely.
pub fn gray_square<const N: usize>(bytes: &[u8], limits: &DecodeLimits) -> Result<[u8; N], DecodeError> {
    let side = N.isqrt() as u32;
    let decoded = decode_stored(bytes, limits, Scale::AtLeast(4 * side))?;
    if let Some(Flaw::Loss(loss)) = decoded.flaw {
        return Err(loss);
    }
    let source = (decoded.width, decoded.height, decoded.rgb.as_slice());
    let rgb = resize(source, side, side).map_err(|reason| DecodeError::Damaged { reason })?;
    let (_, _, rgb) = decoded.orientation.upright(side, side, rgb);
    let (pixels, _) = rgb.as_chunks::<3>();
    let mut gray = [0; N];
    for (value, pixel) in gray.iter_mut().zip(pixels) {
        let [red, green, blue] = pixel.map(u32::from);
        *value = ((red * 19_595 + green * 38_470 + blue * 7_471 + 0x8000) >> 16) as u8;
    }
    Ok(gray)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::RgbImage;
    use crate::image::decode::encode_png;

    #[test]
    fn square_has_the_luma_of_pillow() {
        // Image.convert("L") of these colors.
        for (color, luma) in [([255, 0, 0], 76), ([0, 255, 0], 150), ([0, 0, 255], 29), ([12, 200, 77], 130)] {
            let image = RgbImage::new(30, 20, color.repeat(600)).unwrap();
            let gray: [u8; 64] = gray_square(&encode_png(&image).unwrap(), &DecodeLimits::default()).unwrap();
            assert_eq!(gray, [luma; 64], "{color:?}");
        }
    }

    #[test]
    fn truncated_image_is_an_error() {
        let image = RgbImage::new(64, 64, (0..64 * 64 * 3).map(|at| (at % 251) as u8).collect()).unwrap();
        let png = encode_png(&image).unwrap();
        assert!(gray_square::<1024>(&png[..png.len() / 2], &DecodeLimits::default()).is_err());
    }
}
