//! Confidence intervals: the range that contains the value for all images of the same kind.
//!
//! Fractions (precision, recall, F1, top-1) are measured on as many images resampled with replacement, and the interval
//! is the middle 95% of the results (percentile bootstrap, Efron 1979). `hotcoco` has a bootstrap of its own, which
//! counts an image once however often it is drawn; its intervals are about a quarter narrower than these, which is why
//! it is not used.
//!
//! AP is biased upward where classes have few objects, and resampling with replacement adds to the bias. It is
//! therefore measured on random halves of the images (the delete-d jackknife: Shao and Wu, A General Theory for
//! Jackknife Variance Estimation, Annals of Statistics 1989). Halves vary as much as the whole does, and the increase
//! of AP from the whole to the halves shows its bias on the whole (the generalized jackknife: Schucany, Gray and Owen,
//! On Bias Reduction in Estimation, JASA 1971). `benches/evaluation/coverage.py` simulates how often the intervals
//! contain the true value.

use serde::Serialize;

use crate::tasks::{Cancelled, in_parallel};

/// The default number of resamples.
pub const DRAWS: usize = 500;
/// Fewer resamples say nothing about 95%.
const FEWEST_DRAWS: usize = 40;

/// Contains the value for all images of this kind in 95 of 100 datasets.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

/// A metric measured on resamples of the images.
#[derive(Debug, Clone, PartialEq)]
pub enum DrawnNumber {
    /// On images drawn with replacement; `None` for a resample with nothing to measure.
    Repeated(Vec<Option<f64>>),
    Halves(Halves),
}

/// A metric whose bias depends on the number of images.
#[derive(Debug, Clone, PartialEq)]
pub struct Halves {
    /// On all images.
    pub whole: f64,
    pub images: usize,
    /// `None` for a half with nothing to measure.
    pub numbers: Vec<Option<HalfNumber>>,
}

/// A metric on half of the images.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HalfNumber {
    pub number: f64,
    /// The increase over the value on all images, restricted to what can be measured on this half.
    pub change: f64,
}

impl DrawnNumber {
    /// `None` if some resamples have nothing to measure, or there are too few.
    pub fn interval(&self) -> Option<Interval> {
        match self {
            Self::Repeated(numbers) => percentiles(numbers.iter().copied().collect::<Option<_>>()?),
            Self::Halves(halves) => {
                let Interval { low, high } = halves.interval()?;
                Some(Interval { low: low.max(0.0), high: high.min(1.0) })
            }
        }
    }

    /// The increase over another evaluation of the same images in the same order: each resample uses the same images on
    /// both sides, so what makes an image hard for both cancels out.
    pub fn difference(&self, other: &Self) -> Option<Interval> {
        match (self, other) {
            (Self::Repeated(one), Self::Repeated(other)) if one.len() == other.len() => {
                let pairs = one.iter().zip(other);
                percentiles(pairs.map(|(one, other)| Some((*one)? - (*other)?)).collect::<Option<_>>()?)
            }
            (Self::Halves(one), Self::Halves(other)) => one.minus(other)?.interval(),
            _ => None,
        }
    }
}

impl Halves {
    /// From the measured value to the bias-corrected one, widened on both sides by the standard error. It includes the
    /// measured value, because the bias with few objects is known only roughly.
    fn interval(&self) -> Option<Interval> {
        let halves: Vec<HalfNumber> = self.numbers.iter().copied().collect::<Option<_>>()?;
        if halves.len() < FEWEST_DRAWS {
            return None;
        }
        let mean = |of: fn(&HalfNumber) -> f64| halves.iter().map(of).sum::<f64>() / halves.len() as f64;
        let center = mean(|half| half.number);
        let variance = halves.iter().map(|half| (half.number - center).powi(2)).sum::<f64>() / halves.len() as f64;
        let (all, half) = (self.images as f64, half_of(self.images) as f64);
        let margin = student_t(all - 1.0) * (variance * half / (all - half)).sqrt();
        // The bias falls with the square root of the number of images, because more images bring more objects of rare
        // classes.
        let bias = mean(|half| half.change) / ((all / half).sqrt() - 1.0);
        Some(Interval { low: self.whole - bias.max(0.0) - margin, high: self.whole - bias.min(0.0) + margin })
    }

    fn minus(&self, other: &Self) -> Option<Self> {
        let is_same = self.images == other.images && self.numbers.len() == other.numbers.len();
        let difference = |(one, other): (&Option<HalfNumber>, &Option<HalfNumber>)| {
            let (one, other) = ((*one)?, (*other)?);
            Some(HalfNumber { number: one.number - other.number, change: one.change - other.change })
        };
        is_same.then(|| Self {
            whole: self.whole - other.whole,
            images: self.images,
            numbers: self.numbers.iter().zip(&other.numbers).map(difference).collect(),
        })
    }
}

/// How often each of `images` images occurs in a resample with replacement; adds up to `images`.
pub fn repeated(draw: u64, images: usize) -> Vec<u32> {
    let mut random = fastrand::Rng::with_seed(draw);
    let mut times = vec![0; images];
    for _ in 0..images {
        times[random.usize(..images)] += 1;
    }
    times
}

/// Which of `images` images are in a random half: 1 or 0 each.
pub(super) fn half(draw: u64, images: usize) -> Vec<u32> {
    let mut random = fastrand::Rng::with_seed(draw);
    let mut order: Vec<usize> = (0..images).collect();
    let mut times = vec![0; images];
    for place in 0..half_of(images) {
        order.swap(place, random.usize(place..images));
        times[order[place]] = 1;
    }
    times
}

fn half_of(images: usize) -> usize {
    images / 2
}

/// The results of `measure` for each draw, from 0, in order. `None` if `is_cancelled`.
pub fn each_draw<T: Send>(
    draws: usize,
    measure: impl Fn(u64) -> T + Sync,
    is_cancelled: impl Fn() -> bool + Sync,
) -> Option<Vec<T>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let measure = |_: usize, draw: usize| if is_cancelled() { Err(Cancelled) } else { Ok(measure(draw as u64)) };
    in_parallel(threads, draws, measure).ok()
}

/// The middle 95%; `None` for too few numbers.
fn percentiles(mut numbers: Vec<f64>) -> Option<Interval> {
    if numbers.len() < FEWEST_DRAWS {
        return None;
    }
    numbers.sort_by(f64::total_cmp);
    Some(Interval { low: quantile(&numbers, 0.025), high: quantile(&numbers, 0.975) })
}

/// As in NumPy, interpolating linearly between two numbers.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

/// The 97.5% quantile of Student's t distribution (Abramowitz and Stegun, 26.7.5, three terms), accurate to 0.001 from
/// 10 degrees of freedom.
fn student_t(freedom: f64) -> f64 {
    let normal = 1.959_963_984_540_054_f64;
    let terms = [
        (normal.powi(3) + normal) / 4.0,
        (5.0 * normal.powi(5) + 16.0 * normal.powi(3) + 3.0 * normal) / 96.0,
        (3.0 * normal.powi(7) + 19.0 * normal.powi(5) + 17.0 * normal.powi(3) - 15.0 * normal) / 384.0,
    ];
    normal + (1..).zip(terms).map(|(power, term)| term / freedom.powi(power)).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fraction of the first images, on resamples with replacement and on halves.
    fn shares(first: usize, images: usize) -> [DrawnNumber; 2] {
        let share = |times: &[u32]| {
            let drawn: u32 = times.iter().sum();
            f64::from(times[..first].iter().sum::<u32>()) / f64::from(drawn)
        };
        let whole = share(&vec![1; images]);
        let of_half = |draw| {
            let number = share(&half(draw, images));
            Some(HalfNumber { number, change: number - whole })
        };
        let halves = each_draw(2000, of_half, || false).unwrap();
        [
            DrawnNumber::Repeated(each_draw(2000, |draw| Some(share(&repeated(draw, images))), || false).unwrap()),
            DrawnNumber::Halves(Halves { whole, images, numbers: halves }),
        ]
    }

    #[track_caller]
    fn check(interval: Option<Interval>, center: f64, half_width: f64, tolerance: f64) {
        let Interval { low, high } = interval.unwrap();
        assert!((low - (center - half_width)).abs() < tolerance, "{low} to {high}");
        assert!((high - (center + half_width)).abs() < tolerance, "{low} to {high}");
    }

    #[test]
    fn proportion_interval_is_binomial() {
        // 300 of 1,000 images: the fraction has a standard deviation of sqrt(0.3 * 0.7 / 1000).
        for drawn in shares(300, 1000) {
            check(drawn.interval(), 0.3, 1.96 * (0.3_f64 * 0.7 / 1000.0).sqrt(), 0.003);
        }
        assert_eq!(shares(300, 1000)[1].interval(), shares(300, 1000)[1].interval());
    }

    #[test]
    fn paired_interval_is_narrow() {
        // One is correct in 310 of 1,000 images, the other in 300 of them: the difference has a standard deviation of
        // sqrt(0.01 * 0.99 / 1000), each fraction alone one of sqrt(0.3 * 0.7 / 1000).
        for (one, other) in shares(310, 1000).iter().zip(&shares(300, 1000)) {
            check(one.difference(other), 0.01, 1.96 * (0.01_f64 * 0.99 / 1000.0).sqrt(), 0.001);
        }
        let [repeated, halves] = shares(300, 1000);
        assert_eq!(repeated.difference(&halves), None);
        assert_eq!(halves.difference(&shares(30, 100)[1]), None);
    }

    #[test]
    fn interval_includes_the_bias() {
        // Each half is 0.02 too high, and the standard error is 0.05: NumPy and SciPy return 0.4 - 0.02 / (sqrt(2) - 1)
        // - t.ppf(0.975, 99) * 0.05 and 0.4 + t.ppf(0.975, 99) * 0.05.
        let halves = (0..200).map(|draw| {
            let number = 0.42 + if draw % 2 == 0 { 0.05 } else { -0.05 };
            Some(HalfNumber { number, change: 0.02 })
        });
        let drawn = DrawnNumber::Halves(Halves { whole: 0.4, images: 100, numbers: halves.collect() });
        let Interval { low, high } = drawn.interval().unwrap();
        assert!((low - 0.252_504_882_4).abs() < 1e-6 && (high - 0.499_210_847_6).abs() < 1e-6, "{low} {high}");
    }

    #[test]
    fn canceled_or_unmeasurable_has_no_interval() {
        assert_eq!(each_draw(100, |_| 1.0, || true), None);
        assert_eq!(DrawnNumber::Repeated([Some(1.0), None].repeat(50)).interval(), None);
        let halves = vec![None; 100];
        assert_eq!(DrawnNumber::Halves(Halves { whole: 1.0, images: 10, numbers: halves }).interval(), None);
    }
}
