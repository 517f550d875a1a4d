//! Parts of an image for display: as fast as possible, so not for models.

use super::thumbnail::resize;
use super::{DecodeError, DecodeLimits, Scale, decode_stored};
use crate::domain::{BoundingBox, RgbImage};

/// The parts inside `bounds` (in pixels of the upright image; at least one pixel each), scaled down so that the longer
/// side has at most `max_side` pixels. The image is decoded once, no finer than the smallest part needs. An incomplete
/// file is decoded as far as possible.
pub fn crops(
    bytes: &[u8],
    bounds: &[BoundingBox],
    max_side: u32,
    limits: &DecodeLimits,
) -> Result<Vec<RgbImage>, DecodeError> {
    let decoded = decode_stored(bytes, limits, Scale::Level(level_for(bounds, max_side)))?;
    let [full_width, full_height] = if decoded.orientation.swaps_sides() {
        [decoded.full_size[1], decoded.full_size[0]]
    } else {
        decoded.full_size
    };
    let (image, _reservation) = decoded.into_upright()?;
    let scale_x = image.width() as f32 / full_width as f32;
    let scale_y = image.height() as f32 / full_height as f32;
    bounds
        .iter()
        .map(|bounds| {
            let scaled =
                BoundingBox::new(bounds.x1 * scale_x, bounds.y1 * scale_y, bounds.x2 * scale_x, bounds.y2 * scale_y);
            shrunk(&cut(&image, scaled), max_side)
        })
        .collect()
}

/// How often the image can be halved before the smallest part has too few pixels.
fn level_for(bounds: &[BoundingBox], max_side: u32) -> usize {
    let longer_sides = bounds.iter().map(|bounds| bounds.width().max(bounds.height()));
    let smallest = longer_sides.fold(f32::INFINITY, f32::min);
    let halvings = (smallest / max_side.max(1) as f32).log2().floor();
    if halvings.is_finite() { halvings.max(0.0) as usize } else { 0 }
}

/// The part of the image inside `bounds`, at least one pixel.
fn cut(image: &RgbImage, bounds: BoundingBox) -> RgbImage {
    let span = |from: f32, to: f32, side: u32| {
        let first = (from.max(0.0).floor() as u32).min(side - 1);
        let end = (to.max(0.0).ceil() as u32).clamp(first + 1, side);
        first as usize..end as usize
    };
    let columns = span(bounds.x1, bounds.x2, image.width());
    let rows = span(bounds.y1, bounds.y2, image.height());
    let stride = image.width() as usize * 3;
    let rgb: Vec<u8> = rows
        .clone()
        .flat_map(|row| &image.rgb()[row * stride + columns.start * 3..][..columns.len() * 3])
        .copied()
        .collect();
    RgbImage::new(columns.len() as u32, rows.len() as u32, rgb).unwrap_or_else(|| image.clone())
}

fn shrunk(part: &RgbImage, max_side: u32) -> Result<RgbImage, DecodeError> {
    let longer_side = part.width().max(part.height());
    if longer_side <= max_side.max(1) {
        return Ok(part.clone());
    }
    let factor = f64::from(max_side.max(1)) / f64::from(longer_side);
    let along = |side: u32| ((f64::from(side) * factor).round() as u32).max(1);
    let (width, height) = (along(part.width()), along(part.height()));
    let source = (part.width(), part.height(), part.rgb());
    let rgb = resize(source, width, height).map_err(|reason| DecodeError::Damaged { reason })?;
    RgbImage::new(width, height, rgb).ok_or(DecodeError::NoPixels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::decode::{encode_jpeg, encode_png};

    fn image(width: u32, height: u32) -> RgbImage {
        let rgb = (0..height).flat_map(|y| (0..width).flat_map(move |x| [(x / 8) as u8, (y / 8) as u8, 0])).collect();
        RgbImage::new(width, height, rgb).unwrap()
    }

    #[test]
    fn crop_beyond_the_image_holds_its_pixels() {
        let bytes = encode_png(&image(100, 80)).unwrap();
        let bounds = [
            BoundingBox::new(40.0, 16.0, 56.0, 32.0),
            BoundingBox::new(90.0, 70.0, 200.0, 300.0),
            BoundingBox::new(50.0, 50.0, 50.0, 50.0),
        ];
        let parts = crops(&bytes, &bounds, 64, &DecodeLimits::default()).unwrap();
        let sizes: Vec<(u32, u32)> = parts.iter().map(|p| (p.width(), p.height())).collect();
        assert_eq!(sizes, [(16, 16), (10, 10), (1, 1)]);
        assert_eq!(parts[0].pixel(0, 0), Some([5, 2, 0]));
    }

    #[test]
    fn large_jpeg_crop_is_decoded_reduced() {
        let bytes = encode_jpeg(&image(1600, 1200), 95).unwrap();
        let bounds = [BoundingBox::new(800.0, 400.0, 1600.0, 1200.0)];
        assert_eq!(level_for(&bounds, 100), 3);
        let parts = crops(&bytes, &bounds, 100, &DecodeLimits::default()).unwrap();
        let [red, green, _] = parts[0].pixel(50, 50).unwrap();
        assert_eq!((parts[0].width(), parts[0].height()), (100, 100));
        assert!(red.abs_diff(150) <= 3 && green.abs_diff(100) <= 3, "{red} {green}");
    }
}
