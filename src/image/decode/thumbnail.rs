//! Small images for the grid: as fast as possible, so not for models. They are cached on disk.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};

use super::{DecodeError, DecodeLimits, Decoded, Scale, decode, decode_stored, encode};
use crate::cache::{CacheError, CacheKey, DiskCache, EntryKind};
use crate::domain::{RgbImage, Sample};

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
        match encode::encode_thumbnail(image) {
            Ok(jpeg) => self.0.put(&key.0, &jpeg),
            Err(error) => {
                log::warn!("could not cache a thumbnail: {error}");
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::SampleUri;

    fn sample(name: &str) -> Sample {
        Sample {
            uri: SampleUri::new(format!("/photos/{name}")),
            name: name.to_owned(),
            size_bytes: 1000,
            modified_ns: Some(77),
            etag: None,
        }
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
}
