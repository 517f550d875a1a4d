//! An image for display at every size, cut into tiles on demand.
//!
//! A large JPEG is first decoded at a fraction of its size, which is fast; finer levels are decoded when the user zooms
//! in. Levels are stored as RGB, 8 bits, in file orientation; tiles are turned upright when they are cut. All pixels
//! are on loan from the memory budget: they are released when a model needs the memory, and decoded again when needed.

use std::sync::Arc;

use parking_lot::Mutex;

use super::limits::{Lending, Reservation};
use super::orientation::Walk;
use super::{DecodeError, DecodeLimits, Decoded, Flaw, Orientation, Scale, decode_stored};
use crate::domain::{PixelSource, Tile, TileKey, TileLayout};

/// The levels of one image. Everything except [`PixelSource::pixel`], [`Self::is_loaded`] and [`Self::layout`] is slow.
pub struct ImagePyramid {
    bytes: Vec<u8>,
    limits: DecodeLimits,
    layout: TileLayout,
    warning: Option<String>,
    held: Arc<Held>,
    _lending: Lending,
}

/// The levels in memory, full size first.
#[derive(Default)]
struct Held(Mutex<Vec<Option<Arc<Level>>>>);

/// The image at one size, in file orientation.
struct Level {
    width: usize,
    height: usize,
    /// `[height, width, 3]`
    rgb: Vec<u8>,
    orientation: Orientation,
    _reservation: Reservation,
}

impl ImagePyramid {
    /// Decodes as much as is needed to show the whole image at a small size. A truncated file is shown as far as it
    /// goes, with a [`Self::warning`].
    pub fn open(bytes: Vec<u8>, limits: &DecodeLimits) -> Result<Self, DecodeError> {
        let decoded = decode_stored(&bytes, limits, Scale::FirstLevel)?;
        let [width, height] = decoded.full_size;
        let layout = TileLayout::new(if decoded.orientation.swaps_sides() { [height, width] } else { [width, height] });
        let held = Arc::new(Held::default());
        let lender = Arc::clone(&held);
        let image = Self {
            bytes,
            limits: limits.clone(),
            layout,
            warning: decoded.flaw.as_ref().map(Flaw::warning),
            _lending: limits.budget.lend(move || lender.0.lock().clear()),
            held,
        };
        image.keep(decoded);
        image.load(layout.coarsest())?;
        Ok(image)
    }

    pub fn layout(&self) -> TileLayout {
        self.layout
    }

    /// What is missing, and why.
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether the level's tiles can be cut without delay.
    pub fn is_loaded(&self, level: usize) -> bool {
        self.held.get(level).is_some()
    }

    /// Computes a level from a finer one in memory, or decodes it. Blocks while others hold the memory that it needs.
    /// It may be released immediately if a reservation is waiting for memory.
    pub fn load(&self, level: usize) -> Result<(), DecodeError> {
        let level = level.min(self.layout.coarsest());
        while !self.is_loaded(level) {
            let nearest = (0..level).rev().find(|&finer| self.is_loaded(finer));
            if let Some(finer) = nearest {
                self.derive(finer, level);
                continue;
            }
            let decoded = decode_stored(&self.bytes, &self.limits, Scale::Level(level))?;
            let found = self.keep(decoded);
            if found >= level {
                break;
            }
        }
        Ok(())
    }

    /// The tile's pixels; `None` if its level is not in memory, or the tile is outside the image.
    pub fn tile(&self, key: TileKey) -> Option<Tile> {
        if !self.layout.contains(key) {
            return None;
        }
        let level = self.held.get(key.level)?;
        let [columns, rows] = self.layout.outer(key).map(|span| span.start as usize..span.end as usize);
        let (width, height) = (columns.len(), rows.len());
        let mut rgba = Vec::with_capacity(width * height * 4);
        if level.orientation == Orientation::Upright {
            for y in rows {
                let line = &level.rgb[(y * level.width + columns.start) * 3..][..width * 3];
                for [red, green, blue] in line.as_chunks::<3>().0 {
                    rgba.extend([*red, *green, *blue, 255]);
                }
            }
        } else {
            let walk = level.walk();
            for y in rows {
                for x in columns.clone() {
                    let [red, green, blue] = level.stored_pixel(&walk, x, y);
                    rgba.extend([red, green, blue, 255]);
                }
            }
        }
        Some(Tile { width: width as u32, height: height as u32, rgba })
    }

    /// Halves a level in memory until `level` is reached, unless it is released meanwhile.
    fn derive(&self, finer: usize, level: usize) {
        let bytes_of = |level: usize| {
            let [width, height] = self.layout.level_size(level);
            u64::from(width) * u64::from(height) * 3
        };
        let needed = (finer + 1..=level).map(bytes_of).sum();
        // No pixels are kept while others may be waiting for the memory.
        let mut reservation = self.limits.budget.acquire(needed);
        let Some(mut current) = self.held.get(finer) else {
            return;
        };
        for next in finer + 1..=level {
            current = Arc::new(current.halved(reservation.split_off(bytes_of(next))));
            self.put(next, Arc::clone(&current));
        }
    }

    /// Stores decoded pixels and returns their level.
    fn keep(&self, decoded: Decoded) -> usize {
        let [full_width, full_height] = decoded.full_size.map(u64::from);
        let is_level = |level: &usize| {
            let scaled = |side: u64| side.div_ceil(1 << *level);
            scaled(full_width) == u64::from(decoded.width) && scaled(full_height) == u64::from(decoded.height)
        };
        let level = (0..=self.layout.coarsest()).find(is_level).unwrap_or_default();
        let mut reservation = decoded.reservation;
        reservation.shrink_to(decoded.rgb.len() as u64);
        let pixels = Level {
            width: decoded.width as usize,
            height: decoded.height as usize,
            rgb: decoded.rgb,
            orientation: decoded.orientation,
            _reservation: reservation,
        };
        self.put(level, Arc::new(pixels));
        level
    }

    fn put(&self, level: usize, pixels: Arc<Level>) {
        let mut levels = self.held.0.lock();
        if levels.len() <= level {
            levels.resize(level + 1, None);
        }
        levels[level] = Some(pixels);
        // A reservation that started waiting before this was stored could not release it.
        if self.limits.budget.is_waited_for() {
            levels.clear();
        }
    }
}

impl PixelSource for ImagePyramid {
    fn pixel(&self, x: u32, y: u32) -> Option<[u8; 3]> {
        let [width, height] = self.layout.size();
        if x >= width || y >= height {
            return None;
        }
        let levels = self.held.0.try_lock()?;
        let level = levels.first()?.as_ref()?;
        Some(level.stored_pixel(&level.walk(), x as usize, y as usize))
    }
}

impl Held {
    fn get(&self, level: usize) -> Option<Arc<Level>> {
        self.0.lock().get(level)?.clone()
    }
}

impl Level {
    fn walk(&self) -> Walk {
        self.orientation.walk(self.width, self.height)
    }

    /// The upright pixel at column `x` and row `y`.
    fn stored_pixel(&self, walk: &Walk, x: usize, y: usize) -> [u8; 3] {
        let at = walk.stored(x, y) * 3;
        [self.rgb[at], self.rgb[at + 1], self.rgb[at + 2]]
    }

    /// Half as many pixels per side, rounded up: each is the mean of four, at an odd edge of two.
    fn halved(&self, reservation: Reservation) -> Self {
        let (width, height) = (self.width.div_ceil(2), self.height.div_ceil(2));
        let stride = self.width * 3;
        let mut rgb = Vec::with_capacity(width * height * 3);
        for row in 0..height {
            let upper = &self.rgb[row * 2 * stride..][..stride];
            let lower = &self.rgb[(row * 2 + 1).min(self.height - 1) * stride..][..stride];
            let (upper_pairs, upper_last) = upper.as_chunks::<6>();
            let (lower_pairs, lower_last) = lower.as_chunks::<6>();
            for (upper, lower) in upper_pairs.iter().zip(lower_pairs) {
                rgb.extend::<[u8; 3]>(std::array::from_fn(|channel| {
                    mean([upper[channel], upper[channel + 3], lower[channel], lower[channel + 3]])
                }));
            }
            for (&upper, &lower) in upper_last.iter().zip(lower_last) {
                rgb.push(mean([upper, upper, lower, lower]));
            }
        }
        Self { width, height, rgb, orientation: self.orientation, _reservation: reservation }
    }
}

fn mean(values: [u8; 4]) -> u8 {
    let sum: u16 = values.into_iter().map(u16::from).sum();
    ((sum + 2) / 4) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::RgbImage;
    use crate::image::decode::{MemoryBudget, encode_jpeg, encode_png};

    fn limits(capacity: u64) -> DecodeLimits {
        DecodeLimits { budget: MemoryBudget::new(capacity), ..DecodeLimits::default() }
    }

    /// Every pixel has a different color from its neighbors.
    fn gradient(width: u32, height: u32) -> RgbImage {
        let rgb =
            (0..height).flat_map(|y| (0..width).flat_map(move |x| [x as u8, y as u8, (x / 256 * 60) as u8])).collect();
        RgbImage::new(width, height, rgb).unwrap()
    }

    fn key(level: usize, column: u32, row: u32) -> TileKey {
        TileKey { level, column, row }
    }

    #[test]
    fn tiles_hold_their_pixels_and_border() {
        let image = gradient(1100, 600);
        let bytes = encode_png(&image).unwrap();
        let pyramid = ImagePyramid::open(bytes, &limits(1 << 30)).unwrap();
        let tile = pyramid.tile(key(0, 1, 0)).unwrap();
        assert_eq!((tile.width, tile.height), (514, 513));
        let [red, green, blue] = image.pixel(511, 0).unwrap();
        assert_eq!(tile.rgba[..4], [red, green, blue, 255]);
        assert_eq!(pyramid.tile(key(0, 3, 0)), None);
        assert_eq!(pyramid.pixel(1099, 599), image.pixel(1099, 599));
        assert_eq!(pyramid.pixel(1100, 0), None);
    }

    #[test]
    fn level_pixels_average_four_and_odd_sides_round_up() {
        let mut rgb = vec![0; 1025 * 3 * 3];
        let gray = |x: usize, y: usize| (y * 1025 + x) * 3;
        for (x, y, value) in [(0, 0, 0), (1, 0, 10), (0, 1, 30), (1, 1, 200), (1024, 2, 80)] {
            rgb[gray(x, y)..][..3].fill(value);
        }
        let bytes = encode_png(&RgbImage::new(1025, 3, rgb).unwrap()).unwrap();
        let pyramid = ImagePyramid::open(bytes, &limits(1 << 30)).unwrap();
        let first = pyramid.tile(key(1, 0, 0)).unwrap();
        assert_eq!(first.rgba[..4], [60, 60, 60, 255]);
        let last = pyramid.tile(key(1, 1, 0)).unwrap();
        assert_eq!((last.width, last.height), (2, 2));
        assert_eq!(last.rgba[12..], [80, 80, 80, 255]);
    }

    #[test]
    fn large_jpeg_is_coarse_until_needed() {
        let bytes = encode_jpeg(&gradient(5000, 3600), 90).unwrap();
        let limits = limits(1 << 30);
        let pyramid = ImagePyramid::open(bytes, &limits).unwrap();
        assert!(!pyramid.is_loaded(0) && pyramid.is_loaded(pyramid.layout().coarsest()));
        assert!(limits.budget.used_bytes() < 5000 * 3600);
        assert_eq!(pyramid.pixel(4000, 3000), None);
        pyramid.load(0).unwrap();
        assert!(pyramid.pixel(4000, 3000).is_some());
        assert!(pyramid.tile(key(0, 9, 7)).is_some());
        drop(pyramid);
        assert_eq!(limits.budget.used_bytes(), 0);
    }

    #[test]
    fn pixels_are_released_and_decoded_again() {
        let image = gradient(600, 400);
        let limits = limits(10 << 20);
        let pyramid = ImagePyramid::open(encode_png(&image).unwrap(), &limits).unwrap();
        assert!(pyramid.is_loaded(0));
        drop(limits.budget.acquire(1 << 30));
        assert!(!pyramid.is_loaded(0) && limits.budget.used_bytes() == 0);
        pyramid.load(0).unwrap();
        assert_eq!(pyramid.pixel(5, 7), image.pixel(5, 7));
    }
}
