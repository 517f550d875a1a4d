//! The mid-P interval of a binomial proportion, whose number of trials can be fractional.

/// Half of the probability outside a 95% interval.
const TAIL: f64 = 0.025;

/// The 95% interval for a proportion `share` of `count` trials: each bound is the proportion at which the outcomes
/// beyond the observed one, and half of the observed one, have a probability of 2.5% (Lancaster, Significance Tests in
/// Discrete Distributions, JASA 1961; Berry and Armitage, Mid-P Confidence Intervals: A Brief Review, The Statistician
/// 1995). Unlike Wilson's, it does not fall short close to 0 and 1.
pub(super) fn mid_p_interval(share: f64, count: f64) -> [f64; 2] {
    let bound = |share: f64| {
        let hits = share * count;
        // The probabilities of at least, and of more than, this many hits.
        let tail = |chance: f64| {
            let more = if hits >= count { 0.0 } else { incomplete_beta(hits + 1.0, count - hits, chance) };
            let all = if hits <= 0.0 { 1.0 } else { incomplete_beta(hits, count - hits + 1.0, chance) };
            f64::midpoint(all, more)
        };
        let (mut low, mut high) = (0.0, share);
        for _ in 0..50 {
            let middle = f64::midpoint(low, high);
            *(if tail(middle) > TAIL { &mut high } else { &mut low }) = middle;
        }
        low
    };
    [bound(share), 1.0 - bound(1.0 - share)]
}

/// The regularized incomplete beta function (NIST Digital Library of Mathematical Functions, 8.17.4).
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta_fraction(b, a, 1.0 - x);
    }
    beta_fraction(a, b, x)
}

/// The same for a small `x`, by its continued fraction (ibid., 8.17.22) and Lentz's method (Applied Optics 1976).
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp() / a;
    let away_from_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let (mut c, mut d) = (1.0, 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for step in 1..10_000 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for coefficient in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + coefficient * d);
            c = away_from_zero(1.0 + coefficient / c);
            fraction *= c * d;
            change = c * d;
        }
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    front * fraction
}

/// The logarithm of the gamma function of a positive number: Stirling's series (ibid., 5.11.1) from 10 on.
fn ln_gamma(x: f64) -> f64 {
    if x < 10.0 {
        return ln_gamma(x + 1.0) - x.ln();
    }
    let inverse = 1.0 / (x * x);
    let series = 1.0 / 12.0
        - inverse * (1.0 / 360.0 - inverse * (1.0 / 1260.0 - inverse * (1.0 / 1680.0 - inverse * (1.0 / 1188.0))));
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series / x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_matches_scipy() {
        // From tests/review/mid_p.py, with SciPy's binomial and beta distributions.
        let expected = [
            [1.0, 1.0, 0.05, 1.0],
            [1.0, 20.0, 0.860_891_659_3, 1.0],
            [0.0, 7.0, 0.0, 0.348_163_655_1],
            [0.95, 20.0, 0.777_193_944_3, 0.997_499_127_2],
            [0.94, 100.0, 0.879_409_224_2, 0.975_325_361_2],
            [0.5, 12.5, 0.238_522_209_2, 0.761_477_790_8],
            [0.985, 37.3, 0.894_628_433_8, 0.999_897_963_1],
            [0.9, 3000.0, 0.888_874_303_7, 0.910_354_149_3],
            [0.999, 123_456.0, 0.998_811_581_8, 0.999_165_014_7],
        ];
        for [share, count, low, high] in expected {
            let found = mid_p_interval(share, count);
            let error = (found[0] - low).abs().max((found[1] - high).abs());
            assert!(error < 1e-9, "{share} of {count}: {found:?}, expected {low} to {high}");
        }
    }

    /// Counts for which rounding put `x` and `1 - x` on the same side of the turning point, which once recursed forever.
    #[test]
    fn turning_point_is_passed_despite_rounding() {
        let cases = [
            (1.0, 29.0 + 1e-14, 0.901_855),
            (1.0, 61.0 + 2e-14, 0.952_076),
            (1.0 - f64::EPSILON / 2.0, 13.0 + 5e-15, 0.794_183),
        ];
        for (share, count, low) in cases {
            let found = mid_p_interval(share, count);
            assert!((found[0] - low).abs() < 1e-6 && found[1] > 1.0 - 1e-6, "{share} of {count}: {found:?}");
        }
    }

    #[test]
    fn interval_of_countless_trials_is_narrow() {
        for share in [0.0, 1.0 / 3.0, 0.972_222, 1.0 - 1e-16, 1.0] {
            for count in [1e9, 1e12] {
                let [low, high] = mid_p_interval(share, count);
                assert!(low <= share && share <= high && high - low < 1e-3, "{share} of {count}: {low} to {high}");
            }
        }
    }
}
