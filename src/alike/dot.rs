//! The kernel: the dot product of centered rows.

use half::f16;

pub(super) fn centered(row: &[f16], mean: &[f32]) -> Vec<f32> {
    row.iter().zip(mean).map(|(value, mean)| value.to_f32() - mean).collect()
}

/// The dot product of `row - mean` with `query`. All have the same length.
pub(super) fn centered_dot(row: &[f16], mean: &[f32], query: &[f32]) -> f32 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c") {
        // SAFETY: this processor has these instructions.
        return unsafe { avx2::centered_dot(row, mean, query) };
    }
    portable(row, mean, query)
}

pub(super) fn portable(row: &[f16], mean: &[f32], query: &[f32]) -> f32 {
    const LANES: usize = 16;
    let mut sums = [0.0_f32; LANES];
    for ((row, mean), query) in row.chunks(LANES).zip(mean.chunks(LANES)).zip(query.chunks(LANES)) {
        for (lane, ((value, mean), query)) in row.iter().zip(mean).zip(query).enumerate() {
            sums[lane] += (value.to_f32() - mean) * query;
        }
    }
    sums.iter().sum()
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{
        _mm_loadu_si128, _mm256_cvtph_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_setzero_ps, _mm256_storeu_ps,
        _mm256_sub_ps,
    };

    use half::f16;

    const LANES: usize = 8;
    /// Sums that are independent of each other, so that additions overlap.
    const SUMS: usize = 4;

    #[target_feature(enable = "avx2,fma,f16c")]
    pub(super) fn centered_dot(row: &[f16], mean: &[f32], query: &[f32]) -> f32 {
        let mut sums = [_mm256_setzero_ps(); SUMS];
        let (rows, rest) = row.as_chunks::<{ LANES * SUMS }>();
        let (means, _) = mean.as_chunks::<{ LANES * SUMS }>();
        let (queries, _) = query.as_chunks::<{ LANES * SUMS }>();
        for ((row, mean), query) in rows.iter().zip(means).zip(queries) {
            for (at, sum) in sums.iter_mut().enumerate() {
                // SAFETY: the arrays have as many numbers as all steps load; `f16` is a transparent `u16`.
                let (row, mean, query) = unsafe {
                    (
                        _mm_loadu_si128(row.as_ptr().add(at * LANES).cast()),
                        _mm256_loadu_ps(mean.as_ptr().add(at * LANES)),
                        _mm256_loadu_ps(query.as_ptr().add(at * LANES)),
                    )
                };
                *sum = _mm256_fmadd_ps(_mm256_sub_ps(_mm256_cvtph_ps(row), mean), query, *sum);
            }
        }
        let mut lanes = [[0.0_f32; LANES]; SUMS];
        for (lanes, sum) in lanes.iter_mut().zip(sums) {
            // SAFETY: the array has eight numbers.
            unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), sum) };
        }
        let from = rows.len() * LANES * SUMS;
        lanes.as_flattened().iter().sum::<f32>() + super::portable(rest, &mean[from..], &query[from..])
    }
}
