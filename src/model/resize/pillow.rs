//! Pillow's resampling of 8-bit images, bit for bit.
//!
//! Models were trained on images resized by Pillow, and a model notices a difference of one level. The arithmetic
//! (Pillow, `src/libImaging/Resample.c`) has two passes, columns first, each rounded to 8 bits; a filter whose support
//! grows with the reduction; coefficients normalized in 64-bit floats and converted to fixed point with 22 fractional
//! bits. This is every version up to 12.0. Newer ones process some sizes rows first (12.2: images more than 100 times
//! as high as wide; 13: also those that lose more than twice as many rows as columns), where some levels differ by 1.

#[cfg(target_arch = "x86_64")]
mod columns_avx2;

use std::ops::Range;

use super::{CHANNELS, ResizeWindow};
use crate::domain::RgbImage;

/// Fractional bits of a coefficient: 32 minus 8 for the pixel minus 2 of headroom.
const PRECISION_BITS: u32 = 32 - 8 - 2;
/// Maximum memory for rows between the two passes, unless one row needs more.
const NARROW_BYTES: usize = 16 << 20;

/// How the weight of an input falls with its distance from an output.
#[derive(Debug, Clone, Copy)]
pub(super) enum Filter {
    /// `BILINEAR`: a triangle.
    Triangle,
    /// `BICUBIC`: Keys' cubic with `a = -0.5`.
    Cubic,
    /// `LANCZOS`: a sinc, windowed by another one that is three times as wide.
    Lanczos,
}

impl Filter {
    /// The distance from which the weight is 0, in pixels of the smaller image.
    fn support(self) -> f64 {
        match self {
            Self::Triangle => 1.0,
            Self::Cubic => 2.0,
            Self::Lanczos => 3.0,
        }
    }

    fn weight(self, distance: f64) -> f64 {
        const A: f64 = -0.5;
        let x = distance.abs();
        match self {
            Self::Triangle => (1.0 - x).max(0.0),
            Self::Cubic if x < 1.0 => ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0,
            Self::Cubic if x < 2.0 => (((x - 5.0) * x + 8.0) * x - 4.0) * A,
            Self::Lanczos if x < 3.0 => sinc(x) * sinc(x / 3.0),
            Self::Cubic | Self::Lanczos => 0.0,
        }
    }
}

/// `sin(πx) / πx`
fn sinc(x: f64) -> f64 {
    let angle = x * std::f64::consts::PI;
    if angle == 0.0 { 1.0 } else { angle.sin() / angle }
}

/// As `Image.resize(full_size, …, box).crop(window)` with the filter; the box is the image without the margin.
pub(super) fn resample(image: &RgbImage, window: ResizeWindow, filter: Filter) -> Vec<u8> {
    let [width, height] = window.size.map(|side| side as usize);
    let [columns, rows] =
        [0, 1].map(|axis| AxisFilter::new(filter, [image.width(), image.height()][axis], window, axis));
    let mut narrow = NarrowRows::new(image, &columns, width * CHANNELS);
    let mut output = vec![0; height * width * CHANNELS];
    resize_rows(&mut narrow, &rows, &mut output);
    output
}

/// The taps of each output position along one axis.
struct AxisFilter {
    taps: Vec<Taps>,
    /// Fixed-point weights; the weights of one output position are consecutive.
    coefficients: Vec<i32>,
}

struct Taps {
    first_input: usize,
    first_coefficient: usize,
    count: usize,
}

impl AxisFilter {
    /// Pillow's `precompute_coeffs`, for the outputs of the window along an axis (0 for columns) of the image.
    fn new(filter: Filter, input_len: u32, window: ResizeWindow, axis: usize) -> Self {
        let (margin, first, count) = (window.margin[axis], window.origin[axis], window.size[axis]);
        let scale = (f64::from(input_len) - 2.0 * margin) / f64::from(window.full_size[axis]);
        let filter_scale = scale.max(1.0);
        let support = filter.support() * filter_scale;
        let mut taps = Vec::with_capacity(count as usize);
        let mut coefficients = Vec::new();
        for position in first..first + count {
            let center = margin + (f64::from(position) + 0.5) * scale;
            let start = (center - support + 0.5).max(0.0) as usize;
            let end = ((center + support + 0.5) as usize).min(input_len as usize);
            let weights: Vec<f64> =
                (start..end).map(|input| filter.weight((input as f64 - center + 0.5) * (1.0 / filter_scale))).collect();
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

    /// The end of the inputs that the outputs need.
    fn input_end(&self) -> usize {
        self.taps.iter().map(|taps| taps.first_input + taps.count).max().unwrap_or(0)
    }
}

/// Rounded half away from zero.
fn to_fixed_point(weight: f64) -> i32 {
    (weight * f64::from(1 << PRECISION_BITS) + 0.5_f64.copysign(weight)) as i32
}

fn to_level(sum: i32) -> u8 {
    (sum >> PRECISION_BITS).clamp(0, 255) as u8
}

const ONE_HALF: i32 = 1 << (PRECISION_BITS - 1);

fn resize_columns(
    source: &[u8],
    source_row_bytes: usize,
    columns: &AxisFilter,
    target: &mut [u8],
    target_row_bytes: usize,
) {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx2") {
        // SAFETY: the CPU has AVX2, which was just checked.
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

/// Rows after the first pass, computed when needed, as many together as fit into [`NARROW_BYTES`].
struct NarrowRows<'i> {
    image: &'i RgbImage,
    columns: &'i AxisFilter,
    row_bytes: usize,
    /// Rows of the image in `levels`.
    held: Range<usize>,
    levels: Vec<u8>,
}

impl<'i> NarrowRows<'i> {
    fn new(image: &'i RgbImage, columns: &'i AxisFilter, row_bytes: usize) -> Self {
        Self { image, columns, row_bytes, held: 0..0, levels: Vec::new() }
    }

    /// Row `first` and the stored rows after it; rows from `end` on are not needed.
    fn from(&mut self, first: usize, end: usize) -> &[u8] {
        if !self.held.contains(&first) {
            let most = (NARROW_BYTES / self.row_bytes).max(1);
            self.held = first..end.min(first + most);
            self.levels.resize(self.held.len() * self.row_bytes, 0);
            let source_bytes = self.image.width() as usize * CHANNELS;
            let source = &self.image.rgb()[self.held.start * source_bytes..self.held.end * source_bytes];
            resize_columns(source, source_bytes, self.columns, &mut self.levels, self.row_bytes);
        }
        &self.levels[(first - self.held.start) * self.row_bytes..]
    }
}

fn resize_rows(narrow: &mut NarrowRows<'_>, rows: &AxisFilter, target: &mut [u8]) {
    let row_bytes = narrow.row_bytes;
    let end = rows.input_end();
    let mut sums = vec![0; row_bytes];
    for (taps, target_row) in rows.taps.iter().zip(target.chunks_exact_mut(row_bytes)) {
        sums.fill(ONE_HALF);
        let mut coefficients = rows.coefficients(taps);
        let mut first = taps.first_input;
        while !coefficients.is_empty() {
            let held = narrow.from(first, end);
            let (now, later) = coefficients.split_at(coefficients.len().min(held.len() / row_bytes));
            add_rows(held, now, &mut sums);
            first += now.len();
            coefficients = later;
        }
        round_sums(&sums, target_row);
    }
}

with_avx2!(add_rows, add_rows_portable, add_rows_avx2, (source: &[u8], coefficients: &[i32], sums: &mut [i32]));

#[expect(clippy::inline_always, reason = "it must become part of the AVX2 function to be compiled for AVX2")]
#[inline(always)]
fn add_rows_portable(source: &[u8], coefficients: &[i32], sums: &mut [i32]) {
    for (&coefficient, source_row) in coefficients.iter().zip(source.chunks_exact(sums.len())) {
        for (sum, &level) in sums.iter_mut().zip(source_row) {
            *sum += i32::from(level) * coefficient;
        }
    }
}

with_avx2!(round_sums, round_sums_portable, round_sums_avx2, (sums: &[i32], target: &mut [u8]));

#[expect(clippy::inline_always, reason = "it must become part of the AVX2 function to be compiled for AVX2")]
#[inline(always)]
fn round_sums_portable(sums: &[i32], target: &mut [u8]) {
    for (level, &sum) in target.iter_mut().zip(sums) {
        *level = to_level(sum);
    }
}

/// As `Image.resize(full_size, NEAREST).crop(window)` (Pillow, `src/libImaging/Geometry.c`): positions are accumulated
/// with their rounding errors, and what ends up outside the image stays black.
pub(super) fn nearest(image: &RgbImage, window: ResizeWindow) -> Vec<u8> {
    let axis = |axis: usize, input_len: u32| {
        let scale = f64::from(input_len) / f64::from(window.full_size[axis]);
        let positions = std::iter::successors(Some(scale * 0.5), move |position| Some(position + scale));
        let window_positions = positions.skip(window.origin[axis] as usize).take(window.size[axis] as usize);
        window_positions.map(|position| position as usize).collect::<Vec<_>>()
    };
    let (columns, rows) = (axis(0, image.width()), axis(1, image.height()));
    let mut output = vec![0; columns.len() * rows.len() * CHANNELS];
    for (row, target_row) in rows.into_iter().zip(output.chunks_exact_mut(columns.len() * CHANNELS)) {
        let Some(source_row) = image.rgb().chunks_exact(image.width() as usize * CHANNELS).nth(row) else {
            continue;
        };
        let (pixels, _) = source_row.as_chunks::<CHANNELS>();
        for (&column, pixel) in columns.iter().zip(target_row.chunks_exact_mut(CHANNELS)) {
            if let Some(source) = pixels.get(column) {
                pixel.copy_from_slice(source);
            }
        }
    }
    output
}

#[cfg(test)]
mod tests {
    use super::super::tests::noise;
    use super::*;

    #[test]
    fn vectorized_pass_equals_the_portable_one() {
        for filter in [Filter::Triangle, Filter::Cubic] {
            for (from, to, rows) in [(1024, 341, 9), (37, 5, 4), (5, 37, 3), (4000, 1, 1), (1, 3, 2), (640, 640, 5)] {
                let image = noise(from, rows);
                let columns = AxisFilter::new(filter, from, ResizeWindow::whole(to, to), 0);
                let (source_row, target_row) = (from as usize * 3, to as usize * 3);
                let mut portable = vec![0; target_row * rows as usize];
                let mut chosen = portable.clone();
                resize_columns_portable(image.rgb(), source_row, &columns, &mut portable, target_row);
                resize_columns(image.rgb(), source_row, &columns, &mut chosen, target_row);
                assert!(chosen == portable, "{filter:?}, {from} to {to} columns, {rows} rows");
            }
        }
    }

    #[test]
    fn large_rows_are_computed_in_parts() {
        let image = noise(1, 30_000);
        // Half of the rows between the passes fit.
        let window = ResizeWindow::whole(400, 2);
        let wide = resample(&image, window, Filter::Triangle);
        let narrow = resample(&image, ResizeWindow { full_size: [1, 2], size: [1, 2], ..window }, Filter::Triangle);
        assert_eq!((wide.len(), narrow.len()), (2 * 400 * 3, 2 * 3));
        for (row, pixel) in wide.chunks_exact(400 * 3).zip(narrow.chunks_exact(3)) {
            assert!(row.chunks_exact(3).all(|got| got == pixel));
        }
    }
}
