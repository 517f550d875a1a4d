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

/// The regularized incomplete beta function, by its continued fraction (NIST Digital Library of Mathematical Functions,
/// 8.17.4 and 8.17.22) and Lentz's method (Applied Optics 1976).
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
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
            [1.0, 20.0, 0.8608916593317348, 1.0],
            [0.0, 7.0, 0.0, 0.3481636551311609],
            [0.95, 20.0, 0.7771939442823724, 0.9974991271684397],
            [0.94, 100.0, 0.8794092242029842, 0.9753253612318804],
            [0.5, 12.5, 0.23852220917844172, 0.7614777908215583],
            [0.985, 37.3, 0.8946284337698509, 0.9998979631404464],
            [0.9, 3000.0, 0.8888743036562072, 0.910354149334588],
            [0.999, 123456.0, 0.9988115818064421, 0.9991650147302894],
        ];
        for [share, count, low, high] in expected {
            let found = mid_p_interval(share, count);
            let error = (found[0] - low).abs().max((found[1] - high).abs());
            assert!(error < 1e-9, "{share} of {count}: {found:?}, expected {low} to {high}");
        }
    }
}
