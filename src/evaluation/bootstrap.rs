//! Confidence intervals: how much a number would differ on other images of the same kind.
//!
//! The images are drawn again and again with repetition, as many as there are, and the number is measured on each draw;
//! the interval holds 95 % of the results (percentile bootstrap, Efron 1979). `hotcoco` has a bootstrap of its own,
//! which counts an image once however often it is drawn; its intervals are about a quarter narrower than this one's,
//! which is why it is not used.

use std::sync::atomic::{AtomicUsize, Ordering};

use hotcoco::params::{IouType, Params};
use serde::Serialize;

use super::objects::{ImageObjects, Overlaps};
use crate::domain::BoxRole;
use crate::review::ClassOutcomes;

/// The usual number of draws.
pub const DRAWS: usize = 500;
/// Fewer draws say nothing about 95 %.
const FEWEST_DRAWS: usize = 40;
/// Thresholds of IoU, as in COCO.
const IOUS: usize = 10;

/// The middle 95 % of what the draws gave.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

/// How often each of so many images is in a draw with repetition; adds up to their number.
fn drawn(seed: u64, images: usize) -> Vec<u32> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut times = vec![0; images];
    for _ in 0..images {
        times[random.usize(..images)] += 1;
    }
    times
}

/// Some numbers as each draw gave them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Drawn<const N: usize>(Vec<[Option<f64>; N]>);

impl<const N: usize> Drawn<N> {
    /// `None` if some draws have nothing to measure, or there are too few.
    pub fn interval(&self, place: usize) -> Option<Interval> {
        interval(self.0.iter().map(|numbers| numbers[place]).collect())
    }

    /// How much a number is higher here than in another evaluation of the same images in the same order: each draw is
    /// of the same images on both sides, so what makes an image hard for both cancels out.
    pub fn difference(&self, other: &Self, place: usize) -> Option<Interval> {
        let pairs = self.0.iter().zip(&other.0);
        let differences = pairs.map(|(one, other)| Some(one[place]? - other[place]?));
        (self.0.len() == other.0.len()).then(|| interval(differences.collect())).flatten()
    }

    /// The first numbers of each draw and `None` for the others.
    pub fn widened<const M: usize>(&self) -> Drawn<M> {
        let widened = |numbers: &[Option<f64>; N]| std::array::from_fn(|place| numbers.get(place).copied().flatten());
        Drawn(self.0.iter().map(widened).collect())
    }
}

/// Measures `N` numbers on draws of images: `measure` gets how often each image is drawn. The seed is fixed, so the
/// same number of images gives the same draws. `None` if `is_cancelled`.
pub fn drawn_numbers<const N: usize>(
    images: usize,
    draws: usize,
    measure: impl Fn(&[u32]) -> [Option<f64>; N] + Sync,
    is_cancelled: impl Fn() -> bool + Sync,
) -> Option<Drawn<N>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut measured = Vec::new();
        loop {
            let draw = next.fetch_add(1, Ordering::Relaxed);
            if draw >= draws || is_cancelled() {
                return measured;
            }
            measured.push((draw, measure(&drawn(draw as u64, images))));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut measured: Vec<(usize, [Option<f64>; N])> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().filter_map(|worker| worker.join().ok()).flatten().collect()
    });
    measured.sort_by_key(|(draw, _)| *draw);
    (measured.len() == draws).then(|| Drawn(measured.into_iter().map(|(_, numbers)| numbers).collect()))
}

/// The interval of numbers that the draws gave; `None` if some draws have nothing to measure, or there are too few.
fn interval(numbers: Vec<Option<f64>>) -> Option<Interval> {
    let mut known: Vec<f64> = numbers.into_iter().collect::<Option<_>>()?;
    if known.len() < FEWEST_DRAWS {
        return None;
    }
    known.sort_by(f64::total_cmp);
    Some(Interval { low: quantile(&known, 0.025), high: quantile(&known, 0.975) })
}

/// As NumPy's, linear between two numbers.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

/// What the AP of a detector needs of each detection, so that it can be measured on any draw of images.
#[derive(Debug, Clone)]
pub struct DetectionDraws {
    classes: Vec<ClassDraws>,
    images: u32,
    /// The minimum score of each class.
    thresholds: Vec<f64>,
    /// Thresholds of IoU and recall, those of COCO.
    params: Params,
}

#[derive(Debug, Clone, Default)]
struct ClassDraws {
    found: Vec<Found>,
    /// The image of each object that counts.
    truths: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Found {
    score: f64,
    image: u32,
    /// A bit for each IoU.
    is_correct: u16,
    is_ignored: u16,
}

/// The intervals of the most used numbers of a detector.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct DetectionIntervals {
    pub ap: Option<Interval>,
    pub ap50: Option<Interval>,
    pub precision: Option<Interval>,
    pub recall: Option<Interval>,
    pub f1: Option<Interval>,
}

impl DetectionIntervals {
    /// As [`DetectionDraws::numbers`] gives them.
    pub fn of(drawn: &Drawn<5>) -> Self {
        let [ap, ap50, precision, recall, f1] = std::array::from_fn(|place| drawn.interval(place));
        Self { ap, ap50, precision, recall, f1 }
    }
}

impl DetectionDraws {
    /// `thresholds` are the minimum scores of the classes.
    pub fn new(thresholds: Vec<f64>) -> Self {
        let params = Params::new(IouType::Bbox);
        Self { classes: vec![ClassDraws::default(); thresholds.len()], images: 0, thresholds, params }
    }

    pub fn add(&mut self, image: &ImageObjects) {
        let number = self.images;
        self.images += 1;
        for truth in image.truths.iter().filter(|truth| truth.role == BoxRole::Object) {
            if let Some(class) = self.classes.get_mut(truth.class as usize) {
                class.truths.push(number);
            }
        }
        let overlaps = Overlaps::of(image);
        let matches: [Vec<Option<usize>>; IOUS] =
            std::array::from_fn(|step| overlaps.matches(image, self.params.iou_thrs[step]));
        for index in overlaps.counted(image, self.classes.len()) {
            let detection = &image.detections[index];
            let class = &mut self.classes[detection.class as usize];
            let mut found = Found { score: detection.score, image: number, is_correct: 0, is_ignored: 0 };
            for (step, matches) in matches.iter().enumerate() {
                match matches[index].map(|truth| image.truths[truth].role) {
                    Some(BoxRole::Object) => found.is_correct |= 1 << step,
                    Some(_) => found.is_ignored |= 1 << step,
                    None => {}
                }
            }
            class.found.push(found);
        }
    }

    /// AP, AP50, precision, recall and F1 of each draw. `None` if `is_cancelled`.
    pub fn numbers(mut self, draws: usize, is_cancelled: impl Fn() -> bool + Sync) -> Option<Drawn<5>> {
        self.sort();
        drawn_numbers(self.images as usize, draws, |times| self.measure(times), is_cancelled)
    }

    /// Puts the highest scores first, the first of equals first.
    pub(super) fn sort(&mut self) {
        for class in &mut self.classes {
            class.found.sort_by(|one, other| other.score.total_cmp(&one.score));
        }
    }

    /// AP, AP50, precision, recall and F1 if each image is there so many times.
    pub(super) fn measure(&self, times: &[u32]) -> [Option<f64>; 5] {
        let (mut ap, mut ap50, mut measured) = (0.0, 0.0, 0);
        let mut counts = ClassOutcomes::default();
        for (class, threshold) in self.classes.iter().zip(&self.thresholds) {
            counts += class.counts(times, *threshold);
            if let Some(by_iou) = class.ap(times, &self.params.rec_thrs) {
                measured += 1;
                ap += by_iou.iter().sum::<f64>() / IOUS as f64;
                ap50 += by_iou[0];
            }
        }
        let mean = |sum: f64| (measured > 0).then(|| sum / f64::from(measured));
        [mean(ap), mean(ap50), counts.precision(), counts.recall(), counts.f1()]
    }
}

impl ClassDraws {
    fn truths(&self, times: &[u32]) -> u64 {
        self.truths.iter().map(|image| u64::from(times[*image as usize])).sum()
    }

    fn counts(&self, times: &[u32], threshold: f64) -> ClassOutcomes {
        let mut counts = ClassOutcomes::default();
        for found in self.found.iter().take_while(|found| found.score >= threshold) {
            let times = u64::from(times[found.image as usize]);
            if found.is_correct & 1 != 0 {
                counts.correct += times;
            } else if found.is_ignored & 1 == 0 {
                counts.wrong += times;
            }
        }
        counts.missed = self.truths(times).saturating_sub(counts.correct);
        counts
    }

    /// The interpolated AP of COCO at each IoU; `None` without objects. An image that is drawn twice counts as two
    /// images one after the other, which does not change the precision at any recall.
    fn ap(&self, times: &[u32], recalls: &[f64]) -> Option<[f64; IOUS]> {
        let truths = self.truths(times) as f64;
        (truths > 0.0).then(|| {
            std::array::from_fn(|step| {
                let (mut correct, mut all) = (0.0, 0.0);
                // Recall and precision after each correct detection.
                let mut curve: Vec<[f64; 2]> = Vec::new();
                for found in &self.found {
                    let times = f64::from(times[found.image as usize]);
                    if times == 0.0 || found.is_ignored >> step & 1 != 0 {
                        continue;
                    }
                    all += times;
                    if found.is_correct >> step & 1 != 0 {
                        correct += times;
                        curve.push([correct / truths, correct / all]);
                    }
                }
                let mut envelope = 0.0_f64;
                for point in curve.iter_mut().rev() {
                    envelope = envelope.max(point[1]);
                    point[1] = envelope;
                }
                let precision = |recall: &f64| {
                    let place = curve.partition_point(|[reached, _]| reached < recall);
                    curve.get(place).map_or(0.0, |[_, precision]| *precision)
                };
                recalls.iter().map(precision).sum::<f64>() / recalls.len() as f64
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_of_a_share_is_that_of_the_binomial_distribution() {
        // 300 of 1,000 images: the share of a draw has a standard deviation of sqrt(0.3 * 0.7 / 1000).
        let share = |times: &[u32]| [Some(f64::from(times[..300].iter().sum::<u32>()) / 1000.0)];
        let interval = drawn_numbers(1000, 2000, share, || false).unwrap().interval(0).unwrap();
        let half = 1.96 * (0.3_f64 * 0.7 / 1000.0).sqrt();
        assert!((interval.low - (0.3 - half)).abs() < 0.003, "{interval:?}");
        assert!((interval.high - (0.3 + half)).abs() < 0.003, "{interval:?}");
        let again = drawn_numbers(1000, 2000, share, || false).unwrap();
        assert_eq!(again.interval(0), Some(interval));
    }

    #[test]
    fn a_difference_on_the_same_images_is_as_narrow_as_what_differs() {
        // One is right in 310 of 1,000 images, the other in 300 of them: the difference of a draw has a standard
        // deviation of sqrt(0.01 * 0.99 / 1000), each share alone one of sqrt(0.3 * 0.7 / 1000).
        let share =
            |images: usize| move |times: &[u32]| [Some(f64::from(times[..images].iter().sum::<u32>()) / 1000.0)];
        let [one, other] = [310, 300].map(|images| drawn_numbers(1000, 2000, share(images), || false).unwrap());
        let difference = one.difference(&other, 0).unwrap();
        let half = 1.96 * (0.01_f64 * 0.99 / 1000.0).sqrt();
        assert!((difference.low - (0.01 - half)).abs() < 0.001, "{difference:?}");
        assert!((difference.high - (0.01 + half)).abs() < 0.001, "{difference:?}");
        assert_eq!(one.difference(&Drawn::default(), 0), None);
    }

    #[test]
    fn cancelled_or_unmeasurable_there_is_no_interval() {
        assert_eq!(drawn_numbers(10, 100, |_| [Some(1.0)], || true), None);
        let drawn = drawn_numbers(10, 100, |times| [(times[0] > 0).then_some(1.0)], || false).unwrap();
        assert_eq!(drawn.interval(0), None);
    }
}
