//! EXIF orientations, and reading EXIF from the formats that contain it.

use std::io::Cursor;

use super::{Format, format};

/// The EXIF orientation: the transform that turns stored pixels upright.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Orientation {
    /// 1
    #[default]
    Upright,
    /// 2: mirrored left to right
    FlipHorizontal,
    /// 3
    Rotate180,
    /// 4: mirrored top to bottom
    FlipVertical,
    /// 5: mirrored along the diagonal from the top left
    Transpose,
    /// 6: needs a quarter turn clockwise
    Rotate90,
    /// 7: mirrored along the diagonal from the top right
    Transverse,
    /// 8: needs a quarter turn counterclockwise
    Rotate270,
}

impl Orientation {
    const BY_EXIF: [Self; 8] = [
        Self::Upright,
        Self::FlipHorizontal,
        Self::Rotate180,
        Self::FlipVertical,
        Self::Transpose,
        Self::Rotate90,
        Self::Transverse,
        Self::Rotate270,
    ];

    /// The meaning of EXIF's number; anything but 2 to 8 is upright, as in every viewer.
    pub fn from_exif(value: u32) -> Self {
        let index = (value as usize).wrapping_sub(1);
        Self::BY_EXIF.get(index).copied().unwrap_or_default()
    }

    /// The applied transform.
    pub fn description(self) -> &'static str {
        match self {
            Self::Upright => "upright",
            Self::FlipHorizontal => "mirrored",
            Self::Rotate180 => "rotated by 180°",
            Self::FlipVertical => "flipped vertically",
            Self::Transpose => "mirrored and rotated by 270°",
            Self::Rotate90 => "rotated by 90°",
            Self::Transverse => "mirrored and rotated by 90°",
            Self::Rotate270 => "rotated by 270°",
        }
    }

    pub fn swaps_sides(self) -> bool {
        matches!(self, Self::Transpose | Self::Rotate90 | Self::Transverse | Self::Rotate270)
    }

    /// Turns stored pixels upright and returns width, height and pixels. `rgb` is `[height, width, 3]`.
    pub fn upright(self, width: u32, height: u32, rgb: Vec<u8>) -> (u32, u32, Vec<u8>) {
        if self == Self::Upright {
            return (width, height, rgb);
        }
        let (out_width, out_height) = if self.swaps_sides() { (height, width) } else { (width, height) };
        let mut out = vec![0; rgb.len()];
        let walk = self.walk(width as usize, height as usize);
        copy_pixels(&rgb, &mut out, out_width as usize, &walk);
        (out_width, out_height, out)
    }

    /// The stored position of the upright pixel (0, 0), and the offsets of one step to the right and one down.
    pub fn walk(self, width: usize, height: usize) -> Walk {
        let row = width as isize;
        let (right, bottom) = (row - 1, (height as isize - 1) * row);
        let (start, per_column, per_row) = match self {
            Self::Upright => (0, 1, row),
            Self::FlipHorizontal => (right, -1, row),
            Self::Rotate180 => (bottom + right, -1, -row),
            Self::FlipVertical => (bottom, 1, -row),
            Self::Transpose => (0, row, 1),
            Self::Rotate90 => (bottom, -row, 1),
            Self::Transverse => (bottom + right, -row, -1),
            Self::Rotate270 => (right, row, -1),
        };
        Walk { start, per_column, per_row }
    }
}

/// Steps through stored pixels, in pixels.
pub struct Walk {
    start: isize,
    per_column: isize,
    per_row: isize,
}

impl Walk {
    /// The stored position of the upright pixel at column `x` and row `y`, in pixels.
    pub fn stored(&self, x: usize, y: usize) -> usize {
        (self.start + x as isize * self.per_column + y as isize * self.per_row) as usize
    }
}

/// Copies in square tiles: a rotated image reads columns, which would otherwise miss the cache on every pixel.
fn copy_pixels(stored: &[u8], upright: &mut [u8], width: usize, walk: &Walk) {
    const TILE: usize = 32;
    let height = upright.len() / 3 / width;
    for tile_y in (0..height).step_by(TILE) {
        for tile_x in (0..width).step_by(TILE) {
            for y in tile_y..(tile_y + TILE).min(height) {
                for x in tile_x..(tile_x + TILE).min(width) {
                    let (from, to) = (walk.stored(x, y) * 3, (y * width + x) * 3);
                    upright[to..to + 3].copy_from_slice(&stored[from..from + 3]);
                }
            }
        }
    }
}

/// The EXIF block, as far as it can be read; `None` if there is none. Invalid metadata never spoils an image.
pub(super) fn exif(bytes: &[u8], format: Format) -> Option<exif::Exif> {
    if !matches!(format, Format::Jpeg | Format::Png | Format::WebP | Format::Tiff) {
        return None;
    }
    // In a JPEG without EXIF, the reader would search the whole file.
    let bytes = if format == Format::Jpeg { format::up_to_scan(bytes) } else { bytes };
    let mut reader = exif::Reader::new();
    reader.continue_on_error(true);
    reader.read_from_container(&mut Cursor::new(bytes)).or_else(|error| error.distill_partial_result(|_| ())).ok()
}

pub(super) fn orientation(bytes: &[u8], format: Format) -> Orientation {
    exif(bytes, format).map_or_else(Orientation::default, |exif| orientation_of(&exif))
}

pub(super) fn orientation_of(exif: &exif::Exif) -> Orientation {
    exif.get_field(exif::Tag::Orientation, exif::In::PRIMARY)
        .and_then(|field| field.value.get_uint(0))
        .map_or_else(Orientation::default, Orientation::from_exif)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orientations_turn_images_upright() {
        // 2 wide, 3 high: 0 1 / 2 3 / 4 5
        for (exif, width, expected) in [
            (1, 2, [0, 1, 2, 3, 4, 5]),
            (2, 2, [1, 0, 3, 2, 5, 4]),
            (3, 2, [5, 4, 3, 2, 1, 0]),
            (4, 2, [4, 5, 2, 3, 0, 1]),
            (5, 3, [0, 2, 4, 1, 3, 5]),
            (6, 3, [4, 2, 0, 5, 3, 1]),
            (7, 3, [5, 3, 1, 4, 2, 0]),
            (8, 3, [1, 3, 5, 0, 2, 4]),
        ] {
            let stored = (0..6).flat_map(|value| [value; 3]).collect();
            let (out_width, _, rgb) = Orientation::from_exif(exif).upright(2, 3, stored);
            let pixels: Vec<u8> = rgb.iter().step_by(3).copied().collect();
            assert_eq!((out_width, pixels.as_slice()), (width, &expected[..]), "{exif}");
        }
    }

    #[test]
    fn unknown_orientations_are_upright() {
        for value in [0, 9, 65535] {
            assert_eq!(Orientation::from_exif(value), Orientation::Upright);
        }
    }
}
