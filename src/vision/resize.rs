//! Pillow's bilinear, antialiased resize of 8-bit images, bit for bit.
//!
//! Models were trained on images resized by Pillow, and a model notices a difference of one level. The arithmetic
//! (Pillow, `src/libImaging/Resample.c`): two passes, columns first, each rounded to 8 bits; a triangle filter whose
//! support grows with the reduction; coefficients normalised in 64-bit floats and turned into fixed point with 22
//! fractional bits.

#[cfg(target_arch = "x86_64")]
mod columns_avx2;

use crate::domain::RgbImage;

/// Fractional bits of a coefficient: 32 minus 8 for the pixel minus 2 of head room.
const PRECISION_BITS: u32 = 32 - 8 - 2;
const CHANNELS: usize = 3;

/// A resize of which only a window is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResizeWindow {
    /// Size of the whole resized image, in pixels; at least 1x1.
    pub full_size: [u32; 2],
    /// Left and top of the window in the resized image. The window must be inside it.
    pub origin: [u32; 2],
    /// Width and height of the window; at least 1x1.
    pub size: [u32; 2],
}

impl ResizeWindow {
    /// The whole resized image.
    pub fn whole(width: u32, height: u32) -> Self {
        Self { full_size: [width, height], origin: [0, 0], size: [width, height] }
    }
}

/// The pixels of the window, `[height, width, 3]`, as `Image.resize(full_size, BILINEAR).crop(window)` gives them. Rows
/// and columns outside the window are not computed.
pub fn resize_bilinear(image: &RgbImage, window: ResizeWindow) -> Vec<u8> {
    let [width, height] = window.size.map(|side| side as usize);
    let columns = AxisFilter::new(image.width(), window.full_size[0], window.origin[0], window.size[0]);
    let rows = AxisFilter::new(image.height(), window.full_size[1], window.origin[1], window.size[1]);
    let needed = rows.input_range();

    let row_bytes = image.width() as usize * CHANNELS;
    let source = &image.rgb()[needed.start * row_bytes..needed.end * row_bytes];
    let mut narrow = vec![0; needed.len() * width * CHANNELS];
    resize_columns(source, row_bytes, &columns, &mut narrow, width * CHANNELS);

    let mut output = vec![0; height * width * CHANNELS];
    resize_rows(&narrow, width * CHANNELS, needed.start, &rows, &mut output);
    output
}

/// The taps of each output position along one axis.
struct AxisFilter {
    taps: Vec<Taps>,
    /// Fixed point; those of one output position follow one another.
    coefficients: Vec<i32>,
}

struct Taps {
    first_input: usize,
    first_coefficient: usize,
    count: usize,
}

impl AxisFilter {
    /// Pillow's `precompute_coeffs` with the triangle filter, for the outputs `first..first + count` of `output_len`.
    fn new(input_len: u32, output_len: u32, first: u32, count: u32) -> Self {
        let scale = f64::from(input_len) / f64::from(output_len);
        let filter_scale = scale.max(1.0);
        let support = filter_scale;
        let mut taps = Vec::with_capacity(count as usize);
        let mut coefficients = Vec::new();
        for position in first..first + count {
            let center = (f64::from(position) + 0.5) * scale;
            let start = (center - support + 0.5).max(0.0) as usize;
            let end = ((center + support + 0.5) as usize).min(input_len as usize);
            let weights: Vec<f64> = (start..end)
                .map(|input| {
                    let distance = (input as f64 - center + 0.5) * (1.0 / filter_scale);
                    (1.0 - distance.abs()).max(0.0)
                })
                .collect();
            let sum: f64 = weights.iter().sum();
            taps.push(Taps { first_input: start, first_coefficient: coefficients.len(), count: weights.len() });
            coefficients
                .extend(weights.iter().map(|weight| to_fixed_point(if sum == 0.0 { *weight } else { weight / sum })));
        }
        Self { taps, coefficients }
    }

    fn coefficients(&self, taps: &Taps) -> &[i32] {
        &self.coefficients[taps.first_coefficient..taps.first_coefficient + taps.count]
    }

    /// The inputs that any of the outputs needs.
    fn input_range(&self) -> std::ops::Range<usize> {
        let start = self.taps.iter().map(|taps| taps.first_input).min().unwrap_or(0);
        let end = self.taps.iter().map(|taps| taps.first_input + taps.count).max().unwrap_or(0);
        start..end
    }
}

fn to_fixed_point(weight: f64) -> i32 {
    (0.5 + weight * f64::from(1 << PRECISION_BITS)) as i32
}

fn to_level(sum: i32) -> u8 {
    (sum >> PRECISION_BITS).clamp(0, 255) as u8
}

const ONE_HALF: i32 = 1 << (PRECISION_BITS - 1);

/// Compiles a pass a second time for AVX2, whose 32-bit multiplications make it twice as fast, and picks at run time.
macro_rules! with_avx2 {
    ($name:ident, $portable:ident, $avx2:ident, ($($argument:ident: $kind:ty),* $(,)?)) => {
        fn $name($($argument: $kind),*) {
            #[cfg(target_arch = "x86_64")]
            if std::is_x86_feature_detected!("avx2") {
                #[target_feature(enable = "avx2")]
                fn $avx2($($argument: $kind),*) {
                    $portable($($argument),*);
                }
                // SAFETY: the processor has AVX2, which was checked just now.
                return unsafe { $avx2($($argument),*) };
            }
            $portable($($argument),*);
        }
    };
}

fn resize_columns(
    source: &[u8],
    source_row_bytes: usize,
    columns: &AxisFilter,
    target: &mut [u8],
    target_row_bytes: usize,
) {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, which was checked just now.
        unsafe {
            columns_avx2::resize_columns(source, source_row_bytes, columns, target, target_row_bytes);
        }
        return;
    }
    resize_columns_portable(source, source_row_bytes, columns, target, target_row_bytes);
}

fn resize_columns_portable(
    source: &[u8],
    source_row_bytes: usize,
    columns: &AxisFilter,
    target: &mut [u8],
    target_row_bytes: usize,
) {
    for (source_row, target_row) in source.chunks_exact(source_row_bytes).zip(target.chunks_exact_mut(target_row_bytes))
    {
        for (taps, pixel) in columns.taps.iter().zip(target_row.chunks_exact_mut(CHANNELS)) {
            let inputs = source_row[taps.first_input * CHANNELS..].chunks_exact(CHANNELS);
            let mut sums = [ONE_HALF; CHANNELS];
            for (&coefficient, input) in columns.coefficients(taps).iter().zip(inputs) {
                for (sum, &level) in sums.iter_mut().zip(input) {
                    *sum += i32::from(level) * coefficient;
                }
            }
            for (level, sum) in pixel.iter_mut().zip(sums) {
                *level = to_level(sum);
            }
        }
    }
}

with_avx2!(resize_rows, resize_rows_portable, resize_rows_avx2, (
    source: &[u8], row_bytes: usize, first_source_row: usize, rows: &AxisFilter, target: &mut [u8],
));

#[expect(clippy::inline_always, reason = "it must become part of the AVX2 function to be compiled for AVX2")]
#[inline(always)]
fn resize_rows_portable(
    source: &[u8],
    row_bytes: usize,
    first_source_row: usize,
    rows: &AxisFilter,
    target: &mut [u8],
) {
    let mut sums = vec![0; row_bytes];
    for (taps, target_row) in rows.taps.iter().zip(target.chunks_exact_mut(row_bytes)) {
        sums.fill(ONE_HALF);
        let first_row = taps.first_input - first_source_row;
        let source_rows = source[first_row * row_bytes..].chunks_exact(row_bytes);
        for (&coefficient, source_row) in rows.coefficients(taps).iter().zip(source_rows) {
            for (sum, &level) in sums.iter_mut().zip(source_row) {
                *sum += i32::from(level) * coefficient;
            }
        }
        for (level, &sum) in target_row.iter_mut().zip(&sums) {
            *level = to_level(sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An image without any symmetry.
    fn noise(width: u32, height: u32) -> RgbImage {
        let mut state = 12345_u32;
        let rgb = (0..width * height * 3).map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        });
        RgbImage::new(width, height, rgb.collect()).unwrap()
    }

    #[test]
    fn a_window_equals_the_same_part_of_the_whole() {
        let image = noise(37, 23);
        let whole = resize_bilinear(&image, ResizeWindow::whole(20, 15));
        let window = ResizeWindow { full_size: [20, 15], origin: [3, 4], size: [10, 7] };
        let part = resize_bilinear(&image, window);
        for y in 0..7 {
            let start = ((y + 4) * 20 + 3) * 3;
            assert_eq!(&part[y * 30..(y + 1) * 30], &whole[start..start + 30], "row {y}");
        }
    }

    #[test]
    fn the_pass_for_this_processor_equals_the_portable_one() {
        for (from, to, rows) in [(1024, 341, 9), (37, 5, 4), (5, 37, 3), (4000, 1, 1), (1, 3, 2), (640, 640, 5)] {
            let image = noise(from, rows);
            let columns = AxisFilter::new(from, to, 0, to);
            let (source_row, target_row) = (from as usize * 3, to as usize * 3);
            let mut portable = vec![0; target_row * rows as usize];
            let mut chosen = portable.clone();
            resize_columns_portable(image.rgb(), source_row, &columns, &mut portable, target_row);
            resize_columns(image.rgb(), source_row, &columns, &mut chosen, target_row);
            assert!(chosen == portable, "{from} to {to} columns, {rows} rows");
        }
    }

    #[test]
    fn the_same_size_gives_the_same_pixels() {
        let image = noise(9, 7);
        assert_eq!(resize_bilinear(&image, ResizeWindow::whole(9, 7)), image.rgb());
    }

    #[test]
    fn one_pixel_can_become_many_and_many_one() {
        let white = RgbImage::new(1, 1, vec![200; 3]).unwrap();
        assert_eq!(resize_bilinear(&white, ResizeWindow::whole(5, 4)), vec![200; 60]);
        let wide = RgbImage::new(40_000, 1, vec![7; 120_000]).unwrap();
        assert_eq!(resize_bilinear(&wide, ResizeWindow::whole(1, 1)), vec![7; 3]);
    }
}
