//! Turns the frequencies of blocks into the pixels of smaller ones, eight blocks at a time. Formulas and section
//! numbers are those of ITU-T T.81.

use super::huffman::{BLOCK, LANES, Lanes, Selection};

/// The side of a block in the file, in pixels.
pub(super) const SIDE: usize = 8;

/// One sample from each block that is computed in parallel; centered on zero.
pub(super) type Samples = [f32; LANES];

/// Figure A.6: the position of each coefficient in file order.
#[rustfmt::skip]
pub(super) const ZIGZAG: [u8; BLOCK] = [
     0,  1,  8, 16,  9,  2,  3, 10, 17, 24, 32, 25, 18, 11,  4,  5,
    12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13,  6,  7, 14, 21, 28,
    35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
    58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
];

/// The frequencies that a block of this size can show, and their factors, which are the same for every block.
pub(super) fn selection(quantization: &[u8; BLOCK], [width, height]: [usize; 2]) -> (Selection, Vec<f32>) {
    let mut selection = Selection { last: 0, places: [(width * height) as u8; BLOCK] };
    let mut factors = vec![0.0; width * height];
    for (index, place) in selection.places.iter_mut().enumerate() {
        let [v, u] = [ZIGZAG[index] / 8, ZIGZAG[index] % 8].map(usize::from);
        if u < width && v < height {
            // One eighth: A.3.3 with the cosines of `basis`.
            let factor = f32::from(quantization[index]) / 8.0;
            factors[v * width + u] = factor * share(u, width) * share(v, height);
            *place = (v * width + u) as u8;
            selection.last = index;
        }
    }
    (selection, factors)
}

/// What remains of a cosine if each of `size` pixels is the mean of those that it covers. libjpeg's reduced sizes are
/// such means as well.
fn share(frequency: usize, size: usize) -> f32 {
    let pixels = (SIDE / size) as f32;
    let half_step = frequency as f32 * std::f32::consts::PI / 16.0;
    if frequency == 0 { 1.0 } else { (pixels * half_step).sin() / (pixels * half_step.sin()) }
}

/// Turns the selected coefficients of a block, times the factors, into samples, in lines at the given distance.
pub(super) type Inverse = fn(&[Lanes], &[f32], &mut [Samples], usize);

pub(super) fn inverse_for(block: [usize; 2]) -> Option<Inverse> {
    Some(match block {
        [1, 1] => inverse::<1, 1>,
        [1, 2] => inverse::<1, 2>,
        [2, 1] => inverse::<2, 1>,
        [2, 2] => inverse::<2, 2>,
        [2, 4] => inverse::<2, 4>,
        [4, 2] => inverse::<4, 2>,
        [4, 4] => inverse::<4, 4>,
        _ => return None,
    })
}

/// The inverse cosine transform, along columns, then along rows.
#[expect(clippy::needless_range_loop, reason = "as the formula is written")]
fn inverse<const WIDTH: usize, const HEIGHT: usize>(
    coefficients: &[Lanes],
    factors: &[f32],
    samples: &mut [Samples],
    stride: usize,
) {
    let mut lines = [[[0.0; LANES]; WIDTH]; HEIGHT];
    for u in 0..WIDTH {
        let mut column = [[0.0; LANES]; HEIGHT];
        for v in 0..HEIGHT {
            let index = v * WIDTH + u;
            column[v] = coefficients[index].map(|number| number as f32 * factors[index]);
        }
        let column = inverse_along(column);
        for y in 0..HEIGHT {
            lines[y][u] = column[y];
        }
    }
    for (line, samples) in lines.into_iter().zip(samples.chunks_mut(stride)) {
        samples[..WIDTH].copy_from_slice(&inverse_along(line));
    }
}

#[inline]
fn inverse_along<const SIZE: usize>(coefficients: [Samples; SIZE]) -> [Samples; SIZE] {
    let basis = const { basis::<SIZE>() };
    let mut samples = [coefficients[0]; SIZE];
    for x in 0..SIZE {
        for frequency in 1..SIZE {
            for lane in 0..LANES {
                samples[x][lane] += coefficients[frequency][lane] * basis[x][frequency];
            }
        }
    }
    samples
}

/// √2 cos(π k / 16)
#[rustfmt::skip]
const COSINES: [f32; 9] = [
    std::f32::consts::SQRT_2, 1.387_039_8, 1.306_563, 1.175_875_6, 1.0, 0.785_694_96, 0.541_196_1, 0.275_899_38, 0.0,
];

/// `[sample][frequency]`: 1 for frequency 0, √2 cos(π (2 sample + 1) frequency / 2 `SIZE`) for the others.
const fn basis<const SIZE: usize>() -> [[f32; SIZE]; SIZE] {
    let mut basis = [[1.0; SIZE]; SIZE];
    let mut frequency = 1;
    while frequency < SIZE {
        let mut sample = 0;
        while sample < SIZE {
            let sixteenths = (2 * sample + 1) * frequency * (SIDE / SIZE) % 32;
            let folded = if sixteenths > 16 { 32 - sixteenths } else { sixteenths };
            basis[sample][frequency] = if folded > 8 { -COSINES[16 - folded] } else { COSINES[folded] };
            sample += 1;
        }
        frequency += 1;
    }
    basis
}

/// Red, green and blue in the lowest three bytes; ITU-T T.871, clause 7.
pub(super) fn rgb(luma: &Samples, blue: &Samples, red: &Samples) -> [u32; LANES] {
    let mut rgb = [0; LANES];
    for lane in 0..LANES {
        // Overshoot at sharp edges is clipped before the color conversion, as in libjpeg.
        let luma = luma[lane].clamp(-128.0, 127.0);
        let blue = blue[lane].clamp(-128.0, 127.0);
        let red = red[lane].clamp(-128.0, 127.0);
        rgb[lane] = byte(luma + 1.402 * red)
            | byte(luma - 0.344_136 * blue - 0.714_136 * red) << 8
            | byte(luma + 1.772 * blue) << 16;
    }
    rgb
}

/// Shifts a value centered on zero to the nearest of 0..=255.
#[inline]
fn byte(sample: f32) -> u32 {
    // Beyond 2^23, a number has no fraction, and its lowest bits are the integer. A cast would process lane by lane.
    ((sample + 128.0).clamp(0.0, 255.0) + 8_388_608.0).to_bits() & 0xff
}
