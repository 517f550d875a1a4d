//! `cv2.resize` for 8-bit images: two or four inputs per output and axis, whatever the reduction, columns first.
//!
//! The arithmetic is that of OpenCV's `modules/imgproc/src/resize.cpp`.

use super::{CHANNELS, ResizeWindow};
use crate::domain::RgbImage;

/// The weight 1 in the fixed-point arithmetic of `INTER_LINEAR`.
const ONE_WEIGHT: f32 = 2048.0;

/// `INTER_LINEAR`, bit for bit.
pub(super) fn linear(image: &RgbImage, window: ResizeWindow) -> Vec<u8> {
    let mut output = vec![0; window.size[0] as usize * window.size[1] as usize * CHANNELS];
    if [image.width(), image.height()] == window.full_size.map(|side| side.saturating_mul(2)) {
        halve(image, window, &mut output);
    } else {
        interpolate_linearly(image, window, &mut output);
    }
    output
}

/// `INTER_CUBIC` as computed by builds for x86-64, in 32-bit floats (Intel IPP): about three in a million levels
/// differ, by 1. Builds for other CPUs use fixed point, as do all builds for an image with a side below 4 pixels; four
/// in a hundred levels differ, by 1.
pub(super) fn cubic(image: &RgbImage, window: ResizeWindow) -> Vec<u8> {
    let mut output = vec![0; window.size[0] as usize * window.size[1] as usize * CHANNELS];
    interpolate_cubically(image, window, &mut output);
    output
}

/// `cv2.warpPerspective` with `INTER_LINEAR` and a black border, for a transform without rotation: the pixels at these
/// columns and rows, `[rows, columns, 3]`, in 32-bit floats as in OpenCV 5. 0 is the center of the first pixel.
pub(crate) fn warp(image: &RgbImage, [columns, rows]: [Vec<f64>; 2]) -> Vec<u8> {
    let taps = |positions: Vec<f64>, input_len: u32| -> Vec<_> {
        let is_inside = |input: f64| (0.0..f64::from(input_len)).contains(&input);
        let around = |at: f64| {
            let (first, fraction) = (at.floor(), at - at.floor());
            let weights = [(first, 1.0 - fraction), (first + 1.0, fraction)];
            let weights = weights.map(|(input, weight)| if is_inside(input) { weight as f32 } else { 0.0 });
            Taps::around(at, input_len, weights)
        };
        positions.into_iter().map(around).collect()
    };
    let mut output = vec![0; columns.len() * rows.len() * CHANNELS];
    let (columns, rows) = (taps(columns, image.width()), taps(rows, image.height()));
    let sum = |[first, second]: [f32; 2], weights: [f32; 2]| first * weights[0] + second * weights[1];
    let weighted = |levels: [u8; 2], weights: [f32; 2]| sum(levels.map(f32::from), weights);
    let level = |sums: [f32; 2], weights: [f32; 2]| sum(sums, weights).round_ties_even() as u8;
    interpolate(image, &columns, &rows, weighted, level, &mut output);
    output
}

/// The mean of four pixels, which OpenCV uses for linear interpolation to half of both sides.
fn halve(image: &RgbImage, window: ResizeWindow, output: &mut [u8]) {
    let row_bytes = image.width() as usize * CHANNELS;
    let [left, top] = window.origin.map(|side| side as usize);
    let pairs = image.rgb().chunks_exact(row_bytes * 2).skip(top);
    for (pair, target_row) in pairs.zip(output.chunks_exact_mut(window.size[0] as usize * CHANNELS)) {
        let (upper, lower) = pair.split_at(row_bytes);
        let fours = upper.chunks_exact(CHANNELS * 2).zip(lower.chunks_exact(CHANNELS * 2)).skip(left);
        for ((upper, lower), pixel) in fours.zip(target_row.chunks_exact_mut(CHANNELS)) {
            for (channel, level) in pixel.iter_mut().enumerate() {
                let four = [upper[channel], upper[channel + CHANNELS], lower[channel], lower[channel + CHANNELS]];
                *level = ((four.map(u32::from).iter().sum::<u32>() + 2) >> 2) as u8;
            }
        }
    }
}

/// The inputs of an output along one axis, and their weights.
struct Taps<W, const N: usize> {
    inputs: [usize; N],
    weights: [W; N],
}

impl<W, const N: usize> Taps<W, N> {
    /// `weights` are those of the inputs around `position`, in pixels; inputs beyond the edges repeat the outermost
    /// one.
    fn around(position: f64, input_len: u32, weights: [W; N]) -> Self {
        let first = position.floor() + 1.0 - (N / 2) as f64;
        let last = f64::from(input_len) - 1.0;
        Self { inputs: std::array::from_fn(|tap| (first + tap as f64).clamp(0.0, last) as usize), weights }
    }
}

/// The position of each output of the window along an axis, among the inputs, in pixels: 0 is the center of the first.
fn positions(window: ResizeWindow, axis: usize, input_len: u32) -> impl Iterator<Item = f64> {
    let scale = 1.0 / (f64::from(window.full_size[axis]) / f64::from(input_len));
    let outputs = window.origin[axis]..window.origin[axis] + window.size[axis];
    outputs.map(move |output| (f64::from(output) + 0.5) * scale - 0.5)
}

with_avx2!(interpolate_linearly, interpolate_linearly_portable, interpolate_linearly_avx2, (
    image: &RgbImage, window: ResizeWindow, output: &mut [u8],
));

#[expect(clippy::inline_always, reason = "it must become part of the AVX2 function to be compiled for AVX2")]
#[inline(always)]
fn interpolate_linearly_portable(image: &RgbImage, window: ResizeWindow, output: &mut [u8]) {
    let taps = |position: f32, input_len: u32| {
        let fraction = position - position.floor();
        let weights = [1.0 - fraction, fraction].map(|weight| (weight * ONE_WEIGHT).round_ties_even() as i32);
        Taps::around(f64::from(position), input_len, weights)
    };
    let last_column = (image.width() - 1) as f32;
    let columns = positions(window, 0, image.width());
    let columns: Vec<_> = columns.map(|at| taps((at as f32).clamp(0.0, last_column), image.width())).collect();
    let rows: Vec<_> = positions(window, 1, image.height()).map(|at| taps(at as f32, image.height())).collect();
    let weighted =
        |levels: [u8; 2], weights: [i32; 2]| i32::from(levels[0]) * weights[0] + i32::from(levels[1]) * weights[1];
    let level = |sums: [i32; 2], weights: [i32; 2]| {
        let [upper, lower] = [0, 1].map(|tap| (weights[tap] * (sums[tap] >> 4)) >> 16);
        ((upper + lower + 2) >> 2) as u8
    };
    interpolate(image, &columns, &rows, weighted, level, output);
}

with_avx2!(interpolate_cubically, interpolate_cubically_portable, interpolate_cubically_avx2, (
    image: &RgbImage, window: ResizeWindow, output: &mut [u8],
));

#[expect(clippy::inline_always, reason = "it must become part of the AVX2 function to be compiled for AVX2")]
#[inline(always)]
fn interpolate_cubically_portable(image: &RgbImage, window: ResizeWindow, output: &mut [u8]) {
    let taps = |axis: usize, input_len: u32| -> Vec<_> {
        let positions = positions(window, axis, input_len);
        positions.map(|at| Taps::around(at, input_len, cubic_weights(at - at.floor()))).collect()
    };
    let (columns, rows) = (taps(0, image.width()), taps(1, image.height()));
    let sum =
        |[a, b, c, d]: [f32; 4], weights: [f32; 4]| a * weights[0] + b * weights[1] + c * weights[2] + d * weights[3];
    let weighted = |levels: [u8; 4], weights: [f32; 4]| sum(levels.map(f32::from), weights);
    let level = |sums: [f32; 4], weights: [f32; 4]| sum(sums, weights).round_ties_even() as u8;
    interpolate(image, &columns, &rows, weighted, level, output);
}

/// Keys' cubic with `a = -0.75` for two inputs before and two after a position that is `fraction` past the second.
fn cubic_weights(fraction: f64) -> [f32; 4] {
    const A: f64 = -0.75;
    let near = |x: f64| ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0;
    let before = fraction + 1.0;
    let first = ((A * before - 5.0 * A) * before + 8.0 * A) * before - 4.0 * A;
    let (second, third) = (near(fraction), near(1.0 - fraction));
    [first, second, third, 1.0 - first - second - third].map(|weight| weight as f32)
}

/// Both passes: `weighted` is the sum along a row, `level` the result of the sums along a column.
#[expect(clippy::inline_always, reason = "it must become part of the AVX2 function to be compiled for AVX2")]
#[inline(always)]
fn interpolate<W: Copy, T: Copy + Default, const N: usize>(
    image: &RgbImage,
    columns: &[Taps<W, N>],
    rows: &[Taps<W, N>],
    weighted: impl Fn([u8; N], [W; N]) -> T,
    level: impl Fn([T; N], [W; N]) -> u8,
    output: &mut [u8],
) {
    let (pixels, _) = image.rgb().as_chunks::<CHANNELS>();
    let width = image.width() as usize;
    let row_len = columns.len() * CHANNELS;
    // The rows of an output are consecutive, so each has its own slot.
    let mut held: [(Option<usize>, Vec<T>); N] = std::array::from_fn(|_| (None, vec![T::default(); row_len]));
    for (taps, target) in rows.iter().zip(output.chunks_exact_mut(row_len)) {
        for input in taps.inputs {
            let (number, sums) = &mut held[input % N];
            if number.replace(input) == Some(input) {
                continue;
            }
            let row = &pixels[input * width..(input + 1) * width];
            for (taps, sums) in columns.iter().zip(sums.chunks_exact_mut(CHANNELS)) {
                let inputs = taps.inputs.map(|column| row[column]);
                for (channel, sum) in sums.iter_mut().enumerate() {
                    *sum = weighted(inputs.map(|pixel| pixel[channel]), taps.weights);
                }
            }
        }
        let held_rows = taps.inputs.map(|input| &held[input % N].1[..row_len]);
        for (at, target) in target[..row_len].iter_mut().enumerate() {
            *target = level(held_rows.map(|row| row[at]), taps.weights);
        }
    }
}
