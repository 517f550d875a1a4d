//! The first pass with AVX2: the same sums as the portable one, four taps and all channels per step.
//!
//! AVX2 multiplies 16-bit numbers four times as fast as 32-bit ones, but a coefficient has 23 bits. Each is therefore
//! split into its upper bits and its lower 15, and `level * coefficient` becomes `(level * upper << 15) + level *
//! lower`. All sums are computed modulo 2^32, where they are exact: the result fits, whatever overflows on the way.

use std::arch::x86_64::{
    __m128i, __m256i, _mm_add_epi32, _mm_cvtsi128_si32, _mm_packs_epi32, _mm_packus_epi16, _mm_set_epi8,
    _mm_set_epi64x, _mm_set1_epi32, _mm_shuffle_epi8, _mm_srai_epi32, _mm256_add_epi32, _mm256_castsi256_si128,
    _mm256_cvtepu8_epi16, _mm256_extracti128_si256, _mm256_madd_epi16, _mm256_set_epi64x, _mm256_setzero_si256,
    _mm256_slli_epi32,
};

use super::{AxisFilter, CHANNELS, ONE_HALF, PRECISION_BITS, Taps};

const TAPS_A_STEP: usize = 4;
const LOWER_BITS: u32 = 15;
/// A step reads 16 bytes for its four pixels, which have 12.
const READ_BYTES: usize = 16;
/// Rows that are computed together, so that coefficients are loaded only once for all of them.
const ROWS_A_STEP: usize = 4;

/// `source` and `target` are consecutive rows of 8-bit RGB pixels.
#[target_feature(enable = "avx2")]
pub(super) fn resize_columns(
    source: &[u8],
    source_row_bytes: usize,
    columns: &AxisFilter,
    target: &mut [u8],
    target_row_bytes: usize,
) {
    let taps = columns.taps.iter();
    let outputs: Vec<Output> = taps.map(|taps| Output::new(columns, taps)).collect();
    let rows_bytes = source_row_bytes * ROWS_A_STEP;
    // The last step of a row reads past its end: into the next row, where the coefficients are zero. After the very
    // last rows there is nothing to read, so those are copied.
    let read_bytes = rows_bytes + TAPS_A_STEP * CHANNELS + READ_BYTES;
    let mut last_rows = Vec::new();
    for (number, target_rows) in target.chunks_mut(target_row_bytes * ROWS_A_STEP).enumerate() {
        let start = number * rows_bytes;
        let rows = source.get(start..start + read_bytes).unwrap_or_else(|| {
            last_rows.clear();
            last_rows.extend_from_slice(&source[start..]);
            last_rows.resize(read_bytes, 0);
            &last_rows
        });
        for (column, output) in outputs.iter().enumerate() {
            let pixels = output.pixels(rows, source_row_bytes);
            for (pixel, row) in pixels.iter().zip(target_rows.chunks_exact_mut(target_row_bytes)) {
                let start = column * CHANNELS;
                row[start..start + CHANNELS].copy_from_slice(&pixel[..CHANNELS]);
            }
        }
    }
}

struct Output {
    first_byte: usize,
    steps: Vec<Step>,
}

/// The coefficients of four taps.
struct Step {
    upper: __m256i,
    lower: __m256i,
}

impl Output {
    #[target_feature(enable = "avx2")]
    fn new(columns: &AxisFilter, taps: &Taps) -> Self {
        let steps = columns.coefficients(taps).chunks(TAPS_A_STEP);
        Self {
            first_byte: taps.first_input * CHANNELS,
            steps: steps.map(|coefficients| Step::new(coefficients)).collect(),
        }
    }

    /// The pixel of this column in each of the rows; the fourth byte is meaningless.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn pixels(&self, rows: &[u8], row_bytes: usize) -> [[u8; 4]; ROWS_A_STEP] {
        let mut upper = [_mm256_setzero_si256(); ROWS_A_STEP];
        let mut lower = [_mm256_setzero_si256(); ROWS_A_STEP];
        for (number, step) in self.steps.iter().enumerate() {
            let start = self.first_byte + number * TAPS_A_STEP * CHANNELS;
            for row in 0..ROWS_A_STEP {
                let levels = paired_levels(&rows[row * row_bytes + start..]);
                upper[row] = _mm256_add_epi32(upper[row], _mm256_madd_epi16(levels, step.upper));
                lower[row] = _mm256_add_epi32(lower[row], _mm256_madd_epi16(levels, step.lower));
            }
        }
        let mut pixels = [[0; 4]; ROWS_A_STEP];
        for row in 0..ROWS_A_STEP {
            let shifted = _mm256_slli_epi32::<{ LOWER_BITS as i32 }>(upper[row]);
            pixels[row] = levels_of(_mm256_add_epi32(shifted, lower[row]));
        }
        pixels
    }
}

impl Step {
    /// Taps 0 and 1 paired for each channel in the lower half, taps 2 and 3 in the upper half.
    #[target_feature(enable = "avx2")]
    fn new(coefficients: &[i32]) -> Self {
        let tap = |index: usize| coefficients.get(index).copied().unwrap_or(0);
        let halves = |part: fn(i32) -> u16| {
            let pair = |first: usize| {
                let pair = u64::from(part(tap(first))) | u64::from(part(tap(first + 1))) << 16;
                (pair | pair << 32) as i64
            };
            _mm256_set_epi64x(pair(2), pair(2), pair(0), pair(0))
        };
        Self {
            upper: halves(|coefficient| (coefficient >> LOWER_BITS) as u16),
            lower: halves(|coefficient| (coefficient & ((1 << LOWER_BITS) - 1)) as u16),
        }
    }
}

/// Four RGB pixels as 16-bit numbers: red of pixels 0 and 1, green of 0 and 1, blue of 0 and 1, two zeros; then pixels
/// 2 and 3.
#[target_feature(enable = "avx2")]
#[inline]
fn paired_levels(bytes: &[u8]) -> __m256i {
    let (low, high) = bytes[..READ_BYTES].split_at(8);
    let word = |bytes: &[u8]| i64::from_le_bytes(bytes.try_into().expect("both halves have eight bytes"));
    let pixels = _mm_set_epi64x(word(high), word(low));
    let order = _mm_set_epi8(-1, -1, 11, 8, 10, 7, 9, 6, -1, -1, 5, 2, 4, 1, 3, 0);
    _mm256_cvtepu8_epi16(_mm_shuffle_epi8(pixels, order))
}

/// Rounds the fixed-point sums of red, green and blue; the two halves are added.
#[target_feature(enable = "avx2")]
#[inline]
fn levels_of(sums: __m256i) -> [u8; 4] {
    let sum: __m128i = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums));
    let rounded = _mm_add_epi32(sum, _mm_set1_epi32(ONE_HALF));
    let levels = _mm_srai_epi32::<{ PRECISION_BITS as i32 }>(rounded);
    let words = _mm_packs_epi32(levels, levels);
    _mm_cvtsi128_si32(_mm_packus_epi16(words, words)).to_le_bytes()
}
