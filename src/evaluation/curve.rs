//! Precision, recall and F1 over the minimum score, thinned to chart resolution.

use std::collections::BinaryHeap;

use super::operating_point::ScoredOutcomes;
use crate::review::ClassOutcomes;

/// More points than a chart can show.
const MOST_POINTS: usize = 300;
/// The maximum deviation of a thinned curve: half a pixel in a chart of 500 pixels.
const TOLERANCE: f64 = 1e-3;
/// Points closer to the previous one than this cannot be told apart; dropping them first shortens long curves.
const CLOSEST: f64 = TOLERANCE / 4.0;

/// Precision, recall and F1 at each minimum score, highest first. Straight lines between the points approximate the
/// curve to about a thousandth of an axis, whichever two numbers are plotted. Of two points with the same threshold,
/// the later one applies at the threshold, the earlier one just above it. The curve starts with the highest and ends
/// with the lowest score of a detection; it is empty without detections or objects.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Curve {
    pub points: Vec<CurvePoint>,
}

/// The metrics if detections with a score of at least `threshold` are shown. All numbers are `0.0..=1.0`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurvePoint {
    pub threshold: f64,
    pub precision: f64,
    pub recall: f64,
    pub f1: f64,
}

impl CurvePoint {
    fn new(threshold: f64, counts: ClassOutcomes) -> Option<Self> {
        let (precision, recall, f1) = (counts.precision()?, counts.recall()?, counts.f1()?);
        Some(Self { threshold, precision, recall, f1 })
    }

    fn numbers(self) -> [f64; 4] {
        [self.threshold, self.precision, self.recall, self.f1]
    }
}

impl Curve {
    /// The point of the curve at a minimum score; `None` if no detection reaches it.
    pub fn at(&self, threshold: f64) -> Option<CurvePoint> {
        let after = self.points.partition_point(|point| point.threshold >= threshold);
        let before = *self.points.get(after.checked_sub(1)?)?;
        let Some(next) = self.points.get(after) else {
            return Some(CurvePoint { threshold, ..before });
        };
        // The next point is below the threshold, so the two differ.
        let share = (before.threshold - threshold) / (before.threshold - next.threshold);
        let between = |from: f64, to: f64| from + share * (to - from);
        Some(CurvePoint {
            threshold,
            precision: between(before.precision, next.precision),
            recall: between(before.recall, next.recall),
            f1: between(before.f1, next.f1),
        })
    }

    pub fn from_outcomes(outcomes: &ScoredOutcomes) -> Self {
        let mut whole: Vec<CurvePoint> = Vec::new();
        let mut is_dropped = false;
        for (threshold, counts) in outcomes.steps() {
            let Some(point) = CurvePoint::new(threshold, counts) else {
                return Self::default();
            };
            // Nothing changes between two scores, so a chart over the threshold has steps.
            let corner = whole.last().map(|before| CurvePoint { threshold, ..*before });
            for point in corner.into_iter().chain([point]) {
                let before = whole.last().copied();
                if before.is_some_and(|before| farthest_apart(before, point) < CLOSEST) {
                    is_dropped = true;
                    continue;
                }
                whole.push(point);
                is_dropped = false;
            }
        }
        if is_dropped && let Some((threshold, counts)) = outcomes.steps().last() {
            whole.extend(CurvePoint::new(threshold, counts));
        }
        Self { points: thinned(&whole) }
    }
}

fn farthest_apart(one: CurvePoint, other: CurvePoint) -> f64 {
    let differences = one.numbers().into_iter().zip(other.numbers()).map(|(one, other)| (one - other).abs());
    differences.fold(0.0, f64::max)
}

/// A section of the curve, and its point farthest from the line between its ends.
struct Stretch {
    first: usize,
    last: usize,
    farthest: usize,
    distance: f64,
}

impl PartialEq for Stretch {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Stretch {}

impl PartialOrd for Stretch {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Stretch {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.distance.total_cmp(&other.distance).then(other.first.cmp(&self.first))
    }
}

/// The ends, then repeatedly the point that is farthest from the lines (Douglas and Peucker 1973).
fn thinned(whole: &[CurvePoint]) -> Vec<CurvePoint> {
    let Some(last) = whole.len().checked_sub(1) else {
        return Vec::new();
    };
    let mut kept = vec![0, last];
    let mut open = BinaryHeap::from([stretch(whole, 0, last)]);
    while let Some(Stretch { first, last, farthest, distance }) = open.pop() {
        if distance <= TOLERANCE || kept.len() >= MOST_POINTS {
            break;
        }
        kept.push(farthest);
        open.push(stretch(whole, first, farthest));
        open.push(stretch(whole, farthest, last));
    }
    kept.sort_unstable();
    kept.dedup();
    kept.into_iter().map(|place| whole[place]).collect()
}

fn stretch(whole: &[CurvePoint], first: usize, last: usize) -> Stretch {
    let mut worst = Stretch { first, last, farthest: first, distance: 0.0 };
    for farthest in first + 1..last {
        let distance = distance(whole[farthest], whole[first], whole[last]);
        if distance > worst.distance {
            worst = Stretch { farthest, distance, ..worst };
        }
    }
    worst
}

/// The distance of a point from the line between two others, over all four numbers together, so it is an upper bound
/// for every chart.
fn distance(point: CurvePoint, from: CurvePoint, to: CurvePoint) -> f64 {
    let (point, from, to) = (point.numbers(), from.numbers(), to.numbers());
    let dot = |one: [f64; 4], other: [f64; 4]| -> f64 { one.iter().zip(other).map(|(one, other)| one * other).sum() };
    let minus = |one: [f64; 4], other: [f64; 4]| std::array::from_fn(|axis| one[axis] - other[axis]);
    let along: [f64; 4] = minus(to, from);
    let length = dot(along, along);
    let share = if length > 0.0 { (dot(minus(point, from), along) / length).clamp(0.0, 1.0) } else { 0.0 };
    let nearest = std::array::from_fn(|axis| from[axis] + share * along[axis]);
    let away: [f64; 4] = minus(point, nearest);
    dot(away, away).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(scored: impl IntoIterator<Item = (f64, bool)>, truths: u64) -> (Curve, ScoredOutcomes) {
        let outcomes = ScoredOutcomes::new(scored, truths);
        (Curve::from_outcomes(&outcomes), outcomes)
    }

    /// The largest distance of a point of the full curve from the thinned one.
    fn error(curve: &Curve, outcomes: &ScoredOutcomes) -> f64 {
        let whole = outcomes.steps().filter_map(|(threshold, counts)| CurvePoint::new(threshold, counts));
        let of_point = |point: CurvePoint| {
            let lines = curve.points.windows(2).map(|ends| distance(point, ends[0], ends[1]));
            lines.fold(f64::INFINITY, f64::min)
        };
        whole.map(of_point).fold(0.0, f64::max)
    }

    #[test]
    fn few_detections_are_drawn_as_steps() {
        let (curve, _) = curve([(0.9, true), (0.5, false), (0.5, true)], 4);
        let point = |threshold, precision, recall, f1| CurvePoint { threshold, precision, recall, f1 };
        let top = point(0.9, 1.0, 0.25, 0.4);
        let bottom = point(0.5, 2.0 / 3.0, 0.5, 4.0 / 7.0);
        assert_eq!(curve.points, [top, CurvePoint { threshold: 0.5, ..top }, bottom]);
    }

    #[test]
    fn curve_is_read_at_any_score() {
        let (curve, outcomes) = curve([(0.9, true), (0.5, false), (0.5, true)], 4);
        assert_eq!(curve.at(0.95), None);
        for threshold in [0.9, 0.7, 0.5, 0.1] {
            let expected = CurvePoint::new(threshold, outcomes.at(threshold));
            assert_eq!(curve.at(threshold), expected, "{threshold}");
        }
    }

    #[test]
    fn no_data_is_an_empty_curve() {
        assert_eq!(curve([], 4).0, Curve::default());
        assert_eq!(curve([(0.9, false)], 0).0, Curve::default());
        assert_eq!(curve([(0.9, false)], 3).0.points.len(), 1);
    }

    #[test]
    fn long_curve_is_simplified() {
        let mut random = fastrand::Rng::with_seed(7);
        let count = 20_000;
        // High scores are correct more often than low ones.
        let scored: Vec<(f64, bool)> = (0..count)
            .map(|_| {
                let score = random.f64().powi(2);
                (score, random.f64() < 0.1 + 0.85 * score)
            })
            .collect();
        let truths = scored.iter().filter(|(_, is_correct)| *is_correct).count() as u64 * 5 / 4;
        let (curve, outcomes) = curve(scored, truths);
        assert!((20..=MOST_POINTS).contains(&curve.points.len()), "{} points", curve.points.len());
        let error = error(&curve, &outcomes);
        assert!(error < 2.0 * TOLERANCE, "{error}");
        let (first, last) = (curve.points[0], curve.points[curve.points.len() - 1]);
        let at = |threshold| CurvePoint::new(threshold, outcomes.at(threshold)).unwrap();
        assert_eq!((first, last), (at(first.threshold), at(last.threshold)));
    }
}
