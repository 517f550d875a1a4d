//! Small images for display: thumbnails for the grid, cached on disk, and parts of an image. As fast as possible, so
//! not for models.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;

use fast_image_resize::images::{TypedImage, TypedImageRef};
use fast_image_resize::pixels::U8x3;
use fast_image_resize::{FilterType, ResizeAlg, ResizeOptions, Resizer};

use super::{DecodeError, DecodeLimits, Decoded, Scale, decode, decode_stored};
use crate::cache::{CacheError, CacheKey, DiskCache, EntryKind};
use crate::domain::{BoundingBox, RgbImage, Sample};
use crate::image::decode;

/// The upright image, scaled down so that its longer side has at most `max_side` pixels (and each side at least one);
/// smaller images are unchanged. An incomplete file is decoded as far as possible.
pub fn thumbnail(bytes: &[u8], max_side: u32, limits: &DecodeLimits) -> Result<RgbImage, DecodeError> {
    let decoded = decode_stored(bytes, limits, Scale::AtLeast(max_side))?;
    let (image, _) = shrunk(decoded, max_side)?.into_upright()?;
    Ok(image)
}

/// Shrinks before turning upright, because fewer pixels are left to turn.
fn shrunk(decoded: Decoded, max_side: u32) -> Result<Decoded, DecodeError> {
    let Some((width, height)) = size_within(max_side, decoded.width, decoded.height) else {
        return Ok(decoded);
    };
    let source = (decoded.width, decoded.height, decoded.rgb.as_slice());
    let rgb = resize(source, width, height).map_err(|reason| DecodeError::Damaged { reason })?;
    Ok(Decoded { width, height, rgb, ..decoded })
}

/// The size at which the longer side is `max_side`; `None` if it is not longer.
fn size_within(max_side: u32, width: u32, height: u32) -> Option<(u32, u32)> {
    let (max_side, longer_side) = (max_side.max(1), width.max(height));
    let factor = f64::from(max_side) / f64::from(longer_side);
    let scaled = |side: u32| ((f64::from(side) * factor).round() as u32).max(1);
    (longer_side > max_side).then(|| (scaled(width), scaled(height)))
}

thread_local! {
    /// Keeps its buffers and CPU detection from one image to the next.
    static RESIZER: RefCell<Resizer> = RefCell::new(Resizer::new());
}

/// `source` is width, height and RGB.
pub(super) fn resize(source: (u32, u32, &[u8]), width: u32, height: u32) -> Result<Vec<u8>, String> {
    let (source_width, source_height, rgb) = source;
    let source =
        TypedImageRef::<U8x3>::from_buffer(source_width, source_height, rgb).map_err(|error| error.to_string())?;
    let mut resized = vec![0; width as usize * height as usize * 3];
    let mut target = TypedImage::from_buffer(width, height, &mut resized).map_err(|error| error.to_string())?;
    let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(FilterType::Bilinear));
    // `resize` is the same for a pixel type that is known at run time, and compiles all 13 of them.
    RESIZER
        .with_borrow_mut(|resizer| resizer.resize_typed(&source, &mut target, &options))
        .map_err(|error| error.to_string())?;
    Ok(resized)
}

/// Thumbnails of any source on disk. All calls can block on the disk.
pub struct ThumbnailCache(Arc<DiskCache>);

/// The hash of everything that the pixels of a thumbnail depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ThumbnailKey(CacheKey);

impl ThumbnailKey {
    /// `side` is the longer side of the thumbnail in pixels. `None` if a change of the content could not be detected.
    pub fn new(sample: &Sample, side: u32) -> Option<Self> {
        Self::on_server(None, sample, side)
    }

    /// As [`Self::new`], for a sample on a server, if another server may have one with the same name.
    pub fn on_server(server: Option<&str>, sample: &Sample, side: u32) -> Option<Self> {
        let stamp = sample.stamp();
        if stamp.modified_ns.is_none() && stamp.etag.is_none() {
            return None;
        }
        let parts: [&[u8]; 6] = [
            server.unwrap_or_default().as_bytes(),
            sample.uri.as_str().as_bytes(),
            &stamp.size_bytes.to_le_bytes(),
            &stamp.modified_ns.unwrap_or_default().to_le_bytes(),
            stamp.etag.as_deref().unwrap_or_default().as_bytes(),
            &side.to_le_bytes(),
        ];
        Some(Self(CacheKey::new(EntryKind::Thumbnail, &parts)))
    }
}

impl ThumbnailCache {
    /// A cache with its own folder. Nothing is read or written before the first entry.
    pub fn new(folder: PathBuf, max_bytes: u64) -> Self {
        Self::within(Arc::new(DiskCache::new(folder, max_bytes)))
    }

    pub fn within(cache: Arc<DiskCache>) -> Self {
        Self(cache)
    }

    /// The cached thumbnail; `None` if there is none, or it is damaged.
    pub fn get(&self, key: &ThumbnailKey) -> Option<RgbImage> {
        let jpeg = self.0.get(&key.0)?;
        let image = decode(&jpeg, &DecodeLimits::default()).ok()?;
        Some(image.image)
    }

    /// Stores a thumbnail, evicting others if there is no room.
    ///
    /// # Errors
    /// It cannot be written. Later calls do nothing and report nothing.
    pub fn put(&self, key: &ThumbnailKey, image: &RgbImage) -> Result<(), CacheError> {
        match decode::encode_thumbnail(image) {
            Ok(jpeg) => self.0.put(&key.0, &jpeg),
            Err(error) => {
                log::warn!("could not cache a thumbnail: {error}");
                Ok(())
            }
        }
    }
}

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
            shrunk_part(&cut(&image, scaled), max_side)
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

fn shrunk_part(part: &RgbImage, max_side: u32) -> Result<RgbImage, DecodeError> {
    let Some((width, height)) = size_within(max_side, part.width(), part.height()) else {
        return Ok(part.clone());
    };
    let source = (part.width(), part.height(), part.rgb());
    let rgb = resize(source, width, height).map_err(|reason| DecodeError::Damaged { reason })?;
    RgbImage::new(width, height, rgb).ok_or(DecodeError::NoPixels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::SampleUri;
    use crate::image::decode::{encode_jpeg, encode_png};

    fn sample(name: &str) -> Sample {
        Sample { modified_ns: Some(77), ..Sample::new(SampleUri::new(format!("/photos/{name}")), name, 1000) }
    }

    #[test]
    fn cached_thumbnail_round_trips() {
        let folder = tempfile::tempdir().unwrap();
        let cache = ThumbnailCache::new(folder.path().to_owned(), 1 << 30);
        let key = ThumbnailKey::new(&sample("a"), 128).unwrap();
        assert_eq!(cache.get(&key), None);
        let gray = RgbImage::new(32, 24, vec![90; 32 * 24 * 3]).unwrap();
        cache.put(&key, &gray).unwrap();
        let image = cache.get(&key).unwrap();
        assert_eq!((image.width(), image.height()), (32, 24));
        assert!(image.pixel(5, 5).unwrap()[0].abs_diff(90) < 3);
    }

    #[test]
    fn changed_moved_or_resized_file_has_another_key() {
        let original = sample("a");
        let with = |change: fn(&mut Sample)| {
            let mut changed = original.clone();
            change(&mut changed);
            ThumbnailKey::new(&changed, 128)
        };
        let keys = [
            with(|_| ()),
            ThumbnailKey::new(&original, 256),
            ThumbnailKey::on_server(Some("http://localhost:9000"), &original, 128),
            with(|sample| sample.etag = Some("e".into())),
            with(|sample| sample.etag = Some("f".into())),
            with(|sample| sample.size_bytes = 1001),
            with(|sample| sample.modified_ns = Some(78)),
            ThumbnailKey::new(&sample("b"), 128),
        ];
        let different: std::collections::HashSet<_> = keys.iter().collect();
        assert_eq!(different.len(), keys.len());
        assert_eq!(with(|sample| sample.modified_ns = None), None);
    }

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
