//! Small images for the grid: as fast as possible, so not for models.

use std::cell::RefCell;

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};

use super::{DecodeError, DecodeLimits, Decoded, Scale, decode_stored};
use crate::domain::RgbImage;

/// The upright image, scaled down so that its longer side has at most `max_side` pixels (and each side at least one);
/// smaller images are unchanged. An incomplete file is decoded as far as possible.
pub fn thumbnail(bytes: &[u8], max_side: u32, limits: &DecodeLimits) -> Result<RgbImage, DecodeError> {
    let decoded = decode_stored(bytes, limits, Scale::AtLeast(max_side))?;
    let (image, _) = shrunk(decoded, max_side)?.into_upright()?;
    Ok(image)
}

/// Shrinks before turning upright, because fewer pixels are left to turn.
fn shrunk(decoded: Decoded, max_side: u32) -> Result<Decoded, DecodeError> {
    let (width, height) = (decoded.width, decoded.height);
    let longer_side = width.max(height);
    if longer_side <= max_side.max(1) {
        return Ok(decoded);
    }
    let factor = f64::from(max_side.max(1)) / f64::from(longer_side);
    let scaled = |side: u32| ((f64::from(side) * factor).round() as u32).max(1);
    let (width, height) = (scaled(width), scaled(height));
    let source = (decoded.width, decoded.height, decoded.rgb.as_slice());
    let rgb = resize(source, width, height).map_err(|reason| DecodeError::Damaged { reason })?;
    Ok(Decoded { width, height, rgb, ..decoded })
}

thread_local! {
    /// Keeps its buffers and CPU detection from one image to the next.
    static RESIZER: RefCell<Resizer> = RefCell::new(Resizer::new());
}

/// `source` is width, height and RGB.
pub(super) fn resize(source: (u32, u32, &[u8]), width: u32, height: u32) -> Result<Vec<u8>, String> {
    let (source_width, source_height, rgb) = source;
    let source = ImageRef::new(source_width, source_height, rgb, PixelType::U8x3).map_err(|error| error.to_string())?;
    let mut target = Image::new(width, height, PixelType::U8x3);
    let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(FilterType::Bilinear));
    RESIZER
        .with_borrow_mut(|resizer| resizer.resize(&source, &mut target, &options).map_err(|error| error.to_string()))?;
    Ok(target.into_vec())
}
