//! An image as a pyramid of tiles for display.

use std::ops::Range;
use std::sync::Arc;

/// A decoded image as people see it: upright (EXIF orientation applied), RGB, 8 bits per channel, alpha blended onto
/// white. Pixels are row-major, `[height, width, 3]`, without padding.
#[derive(Clone, PartialEq, Eq)]
pub struct RgbImage {
    width: u32,
    height: u32,
    rgb: Vec<u8>,
}

impl RgbImage {
    /// `None` if a side is zero or `rgb` does not hold exactly `width * height * 3` bytes.
    pub fn new(width: u32, height: u32, rgb: Vec<u8>) -> Option<Self> {
        let expected_bytes = (width as usize).checked_mul(height as usize)?.checked_mul(3)?;
        (expected_bytes > 0 && rgb.len() == expected_bytes).then_some(Self { width, height, rgb })
    }

    pub fn width(&self) -> u32 {
        self.width
    }

    pub fn height(&self) -> u32 {
        self.height
    }

    /// `[height, width, 3]`, row-major.
    pub fn rgb(&self) -> &[u8] {
        &self.rgb
    }

    /// The color at column `x` and row `y`; `None` outside the image.
    pub fn pixel(&self, x: u32, y: u32) -> Option<[u8; 3]> {
        if x >= self.width || y >= self.height {
            return None;
        }
        let start = (y as usize * self.width as usize + x as usize) * 3;
        self.rgb.get(start..start + 3)?.try_into().ok()
    }
}

impl std::fmt::Debug for RgbImage {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Image({}x{})", self.width, self.height)
    }
}

/// Side of a tile in pixels, without its border.
pub const TILE_SIDE: u32 = 512;
/// Pixels of the neighboring tiles around each tile, so that no seam shows between scaled tiles.
const TILE_BORDER: u32 = 1;
/// Levels are added until the longer side has at most this many pixels.
const SMALLEST_SIDE: u32 = 1024;

/// The levels of an image: level 0 has full size, each further level half as many pixels per side (rounded up, so that
/// a pixel of level `n` covers `2^n` of level 0 and levels do not drift apart).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileLayout {
    size: [u32; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TileKey {
    pub level: usize,
    pub column: u32,
    pub row: u32,
}

/// The pixels of a tile with its border, which is missing at the edges of the image.
#[derive(Clone, PartialEq, Eq)]
pub struct Tile {
    pub width: u32,
    pub height: u32,
    /// `[height, width, 4]`, opaque.
    pub rgba: Vec<u8>,
}

/// Brightness and contrast of an image on screen. Its pixels, and what a model receives, stay as they are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// Added to each channel, as a fraction of its range.
    pub brightness: f32,
    /// Multiplies the difference of each channel from its middle.
    pub contrast: f32,
}

impl Look {
    /// The value on screen of each value of a channel.
    pub fn table(self) -> [u8; 256] {
        std::array::from_fn(|value| {
            let drawn = (value as f32 / 255.0 - 0.5) * self.contrast + 0.5 + self.brightness;
            (drawn * 255.0).round().clamp(0.0, 255.0) as u8
        })
    }
}

impl Default for Look {
    fn default() -> Self {
        Self { brightness: 0.0, contrast: 1.0 }
    }
}

pub trait PixelSource: Send + Sync {
    /// The color at column `x` and row `y`; `None` outside the image or while the pixels are not in memory. Never
    /// waits.
    fn pixel(&self, x: u32, y: u32) -> Option<[u8; 3]>;
}

/// An image that is shown in tiles as they arrive. Cheap to clone.
#[derive(Clone)]
pub struct DisplayImage {
    pub layout: TileLayout,
    pub pixels: Arc<dyn PixelSource>,
}

impl TileLayout {
    /// `size` is that of the upright image in pixels; no side is zero.
    pub fn new(size: [u32; 2]) -> Self {
        Self { size }
    }

    pub fn size(&self) -> [u32; 2] {
        self.size
    }

    /// The smallest level. Its few tiles stand in for all others until those arrive.
    pub fn coarsest(&self) -> usize {
        let longer_side = self.size[0].max(self.size[1]);
        longer_side.div_ceil(SMALLEST_SIDE).next_power_of_two().trailing_zeros() as usize
    }

    /// The size of a level, in its own pixels.
    pub fn level_size(&self, level: usize) -> [u32; 2] {
        self.size.map(|side| u64::from(side).div_ceil(1 << level.min(32)) as u32)
    }

    /// The smallest level with at least one pixel per screen pixel, if an image pixel is `scale` screen pixels wide.
    pub fn level_for(&self, scale: f32) -> usize {
        let halvings = (1.0 / scale.max(f32::EPSILON)).log2().floor().max(0.0);
        (halvings as usize).min(self.coarsest())
    }

    /// Columns and rows of tiles in a level.
    pub fn tiles(&self, level: usize) -> [u32; 2] {
        self.level_size(level).map(|side| side.div_ceil(TILE_SIDE))
    }

    pub fn contains(&self, key: TileKey) -> bool {
        let [columns, rows] = self.tiles(key.level);
        key.level <= self.coarsest() && key.column < columns && key.row < rows
    }

    /// Columns and rows of the level's pixels that the tile shows, without its border.
    pub fn inner(&self, key: TileKey) -> [Range<u32>; 2] {
        let [width, height] = self.level_size(key.level);
        let span = |index: u32, side: u32| {
            let start = (index * TILE_SIDE).min(side);
            start..(start + TILE_SIDE).min(side)
        };
        [span(key.column, width), span(key.row, height)]
    }

    /// As `inner`, with the border.
    pub fn outer(&self, key: TileKey) -> [Range<u32>; 2] {
        let [width, height] = self.level_size(key.level);
        let grown =
            |span: Range<u32>, side: u32| span.start.saturating_sub(TILE_BORDER)..(span.end + TILE_BORDER).min(side);
        let [columns, rows] = self.inner(key);
        [grown(columns, width), grown(rows, height)]
    }
}

impl TileKey {
    /// The tile of the next smaller level that contains this one.
    pub fn parent(self) -> Self {
        Self { level: self.level + 1, column: self.column / 2, row: self.row / 2 }
    }
}

impl std::fmt::Debug for Tile {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Tile({}x{})", self.width, self.height)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_changes_channels_around_their_middle() {
        let table = |brightness, contrast| Look { brightness, contrast }.table();
        assert!(Look::default().table().iter().zip(0..=255).all(|(drawn, value)| *drawn == value));
        let bright = table(0.2, 1.0);
        assert_eq!([bright[0], bright[100], bright[255]], [51, 151, 255]);
        let steep = table(0.0, 2.0);
        assert_eq!([steep[0], steep[100], steep[200]], [0, 73, 255]);
    }

    #[test]
    fn levels_end_at_a_small_size() {
        for (size, coarsest) in [([1, 1], 0), ([1024, 9], 0), ([1025, 9], 1), ([3000, 20], 2), ([20_000, 15_000], 5)] {
            assert_eq!(TileLayout::new(size).coarsest(), coarsest, "{size:?}");
        }
        let layout = TileLayout::new([3001, 21]);
        let sizes: Vec<[u32; 2]> = (0..3).map(|level| layout.level_size(level)).collect();
        assert_eq!(sizes, [[3001, 21], [1501, 11], [751, 6]]);
    }

    #[test]
    fn tiles_overlap_by_their_borders() {
        let layout = TileLayout::new([1100, 3]);
        let key = |column| TileKey { level: 0, column, row: 0 };
        let spans: Vec<Range<u32>> = (0..3).map(|column| layout.outer(key(column))[0].clone()).collect();
        assert_eq!(spans, [0..513, 511..1025, 1023..1100]);
        assert!(!layout.contains(key(3)));
    }

    #[test]
    fn small_view_uses_a_small_level() {
        let layout = TileLayout::new([4096, 4]);
        let levels = [2.0, 1.0, 0.6, 0.5, 0.3, 0.001].map(|scale| layout.level_for(scale));
        assert_eq!(levels, [0, 0, 0, 1, 1, 2]);
    }
}
