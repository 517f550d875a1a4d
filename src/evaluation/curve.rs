//! Precision, recall and F1, or accuracy and coverage, at a minimum score and over all of them, thinned to chart
//! resolution, and Pascal VOC's AP.

use std::collections::BinaryHeap;

use serde::Serialize;

use super::objects::{CORRECT_IOU, ImageObjects, Overlaps};
use crate::domain::BoxRole;
use crate::review::{ClassOutcomes, share};

/// More points than a chart can show.
const MOST_POINTS: usize = 300;
/// The maximum deviation of a thinned curve: half a pixel in a chart of 500 pixels.
const TOLERANCE: f64 = 1e-3;
/// Points closer to the previous one than this cannot be told apart; dropping them first shortens long curves.
const CLOSEST: f64 = TOLERANCE / 4.0;

/// The numbers at each minimum score, highest first. Straight lines between the points approximate the
/// curve to about a thousandth of an axis, whichever two numbers are plotted. Of two points with the same threshold,
/// the later one applies at the threshold, the earlier one just above it. The curve starts with the highest and ends
/// with the lowest score of a detection; it is empty without detections or objects.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve<P = CurvePoint> {
    pub points: Vec<P>,
}

impl<P> Default for Curve<P> {
    fn default() -> Self {
        Self { points: Vec::new() }
    }
}

/// A point of a curve: what a minimum score leaves.
pub trait ScorePoint: Copy {
    /// `None` if nothing is left to measure.
    fn new(threshold: f64, counts: ClassOutcomes) -> Option<Self>;

    /// The threshold, then the plotted numbers; unused ones are 0.
    fn numbers(self) -> [f64; 4];

    fn from_numbers(numbers: [f64; 4]) -> Self;
}

/// The metrics if detections with a score of at least `threshold` are shown. All numbers are `0.0..=1.0`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CurvePoint {
    pub threshold: f64,
    pub precision: f64,
    pub recall: f64,
    pub f1: f64,
}

impl ScorePoint for CurvePoint {
    fn new(threshold: f64, counts: ClassOutcomes) -> Option<Self> {
        let (precision, recall, f1) = (counts.precision()?, counts.recall()?, counts.f1()?);
        Some(Self { threshold, precision, recall, f1 })
    }

    fn numbers(self) -> [f64; 4] {
        [self.threshold, self.precision, self.recall, self.f1]
    }

    fn from_numbers([threshold, precision, recall, f1]: [f64; 4]) -> Self {
        Self { threshold, precision, recall, f1 }
    }
}

/// The images of a classifier whose top class has a score of at least `threshold` (selective classification; Geifman
/// and El-Yaniv 2017, whose risk is 1 − accuracy). All numbers are `0.0..=1.0`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CoveragePoint {
    pub threshold: f64,
    /// The fraction of these images whose top class is correct.
    pub accuracy: f64,
    /// The fraction of all images that these are.
    pub coverage: f64,
}

impl ScorePoint for CoveragePoint {
    fn new(threshold: f64, counts: ClassOutcomes) -> Option<Self> {
        let coverage = share(counts.correct + counts.wrong, counts.truths())?;
        Some(Self { threshold, accuracy: counts.precision()?, coverage })
    }

    fn numbers(self) -> [f64; 4] {
        [self.threshold, self.accuracy, self.coverage, 0.0]
    }

    fn from_numbers([threshold, accuracy, coverage, _]: [f64; 4]) -> Self {
        Self { threshold, accuracy, coverage }
    }
}

impl<P: ScorePoint> Curve<P> {
    /// The point of the curve at a minimum score; `None` if no score reaches it.
    pub fn at(&self, threshold: f64) -> Option<P> {
        let after = self.points.partition_point(|point| point.numbers()[0] >= threshold);
        let before = self.points.get(after.checked_sub(1)?)?.numbers();
        let Some(next) = self.points.get(after) else {
            return Some(with_threshold(before, threshold));
        };
        // The next point is below the threshold, so the two differ.
        let next = next.numbers();
        let share = (before[0] - threshold) / (before[0] - next[0]);
        let between = std::array::from_fn(|number| before[number] + share * (next[number] - before[number]));
        Some(with_threshold(between, threshold))
    }

    pub fn from_outcomes(outcomes: &ScoredOutcomes) -> Self {
        let mut whole: Vec<P> = Vec::new();
        let mut is_dropped = false;
        for (threshold, counts) in outcomes.steps() {
            let Some(point) = P::new(threshold, counts) else {
                return Self::default();
            };
            // Nothing changes between two scores, so a chart over the threshold has steps.
            let corner = whole.last().map(|before| with_threshold(before.numbers(), threshold));
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
            whole.extend(P::new(threshold, counts));
        }
        Self { points: thinned(&whole) }
    }
}

fn with_threshold<P: ScorePoint>([_, rest @ ..]: [f64; 4], threshold: f64) -> P {
    P::from_numbers([threshold, rest[0], rest[1], rest[2]])
}

fn farthest_apart<P: ScorePoint>(one: P, other: P) -> f64 {
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
fn thinned<P: ScorePoint>(whole: &[P]) -> Vec<P> {
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

fn stretch<P: ScorePoint>(whole: &[P], first: usize, last: usize) -> Stretch {
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
pub(super) fn distance<P: ScorePoint>(point: P, from: P, to: P) -> f64 {
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

/// The correct and wrong detections of one class, and the number of objects; or the images of a classifier by their top
/// class.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScoredOutcomes {
    /// Score, and whether the detection is correct; highest score first after [`Self::sort`].
    scored: Vec<(f64, bool)>,
    truths: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BestThreshold {
    /// `0.0..=1.0`.
    pub threshold: f64,
    pub f1: f64,
}

/// Adds the objects of an image that count, by class.
pub(super) fn add_truths(classes: &mut [ScoredOutcomes], image: &ImageObjects) {
    for truth in image.truths.iter().filter(|truth| truth.role == BoxRole::Object) {
        if let Some(class) = classes.get_mut(truth.class as usize) {
            class.truths += 1;
        }
    }
}

impl ScoredOutcomes {
    /// The score of each image's top class, and whether it is correct.
    pub(super) fn from_top_classes(scored: Vec<(f64, bool)>) -> Self {
        let mut outcomes = Self { truths: scored.len() as u64, scored };
        outcomes.sort();
        outcomes
    }

    #[cfg(test)]
    pub fn new(scored: impl IntoIterator<Item = (f64, bool)>, truths: u64) -> Self {
        let mut outcomes = Self { scored: scored.into_iter().collect(), truths };
        outcomes.sort();
        outcomes
    }

    pub fn add(&mut self, score: f64, is_correct: bool) {
        self.scored.push((score, is_correct));
    }

    pub fn sort(&mut self) {
        self.scored.sort_by(|one, other| other.0.total_cmp(&one.0));
    }

    pub fn truths(&self) -> u64 {
        self.truths
    }

    pub fn detections(&self) -> u64 {
        self.scored.len() as u64
    }

    /// The counts if only detections with a score of at least `threshold` are shown.
    pub fn at(&self, threshold: f64) -> ClassOutcomes {
        let shown = self.scored.partition_point(|(score, _)| *score >= threshold);
        let correct = self.scored[..shown].iter().filter(|(_, is_correct)| *is_correct).count() as u64;
        ClassOutcomes { correct, wrong: shown as u64 - correct, false_negatives: self.truths.saturating_sub(correct) }
    }

    /// The counts at each score, highest first. Equal scores are shown together or not at all.
    pub fn steps(&self) -> impl Iterator<Item = (f64, ClassOutcomes)> {
        let mut counts = ClassOutcomes { false_negatives: self.truths, ..ClassOutcomes::default() };
        self.scored.chunk_by(|one, next| one.0 == next.0).map(move |equal| {
            let correct = equal.iter().filter(|(_, is_correct)| *is_correct).count() as u64;
            counts += ClassOutcomes { correct, wrong: equal.len() as u64 - correct, false_negatives: 0 };
            counts.false_negatives = self.truths.saturating_sub(counts.correct);
            (equal[0].0, counts)
        })
    }

    /// The threshold with the highest F1, the higher one on a tie; `None` if no detection is correct.
    pub fn best(&self) -> Option<BestThreshold> {
        let mut best: Option<BestThreshold> = None;
        for (threshold, counts) in self.steps() {
            if let Some(f1) = counts.f1().filter(|f1| *f1 > best.map_or(0.0, |best| best.f1)) {
                best = Some(BestThreshold { threshold, f1 });
            }
        }
        best
    }

    /// All classes together.
    pub fn pooled<'o>(classes: impl IntoIterator<Item = &'o Self>) -> Self {
        let mut pooled = Self::default();
        for class in classes {
            pooled.scored.extend_from_slice(&class.scored);
            pooled.truths += class.truths;
        }
        pooled.sort();
        pooled
    }

    /// Score and correctness of each detection, highest score first.
    pub fn scored(&self) -> &[(f64, bool)] {
        &self.scored
    }
}

/// Adds an image to the detections of all classes as Pascal VOC's development kit does (`VOCevaldet.m`): a detection
/// belongs to the object of its class that it overlaps most, taken or not, with an IoU of at least 0.5. Ignored objects
/// are left out.
pub(super) fn add_voc(classes: &mut [ScoredOutcomes], image: &ImageObjects, overlaps: &Overlaps) {
    add_truths(classes, image);
    let mut is_taken = vec![false; image.truths.len()];
    for &index in overlaps.order() {
        let found = &image.detections[index];
        let Some(class) = classes.get_mut(found.class as usize) else {
            continue;
        };
        let mut most = f64::NEG_INFINITY;
        let mut best = None;
        for (truth, overlap) in overlaps.row(index).iter().enumerate() {
            if image.truths[truth].class == found.class && *overlap > most {
                most = *overlap;
                best = Some(truth);
            }
        }
        match best.filter(|_| most >= CORRECT_IOU) {
            Some(truth) if image.truths[truth].role != BoxRole::Object => {}
            Some(truth) => class.add(found.score, !std::mem::replace(&mut is_taken[truth], true)),
            None => class.add(found.score, false),
        }
    }
}

/// Pascal VOC's AP with eleven points (2007), and as the area under the curve (from 2010 on), of the sorted detections of a class;
/// `None` without objects.
pub(super) fn voc_ap(detections: &ScoredOutcomes) -> Option<[f64; 2]> {
    if detections.truths() == 0 {
        return None;
    }
    let truths = detections.truths() as f64;
    let mut correct = 0.0;
    // Recall and precision after each detection.
    let mut curve: Vec<[f64; 2]> = Vec::with_capacity(detections.scored().len());
    for (place, (_, is_correct)) in detections.scored().iter().enumerate() {
        correct += f64::from(u8::from(*is_correct));
        curve.push([correct / truths, correct / (place + 1) as f64]);
    }
    let eleven_points = (0..=10).map(|tenth| {
        let reached = curve.iter().filter(|[recall, _]| *recall >= f64::from(tenth) / 10.0);
        reached.map(|[_, precision]| *precision).fold(0.0, f64::max)
    });
    let eleven_points = eleven_points.sum::<f64>() / 11.0;
    let mut envelope = 0.0_f64;
    let mut area = 0.0;
    for place in (0..curve.len()).rev() {
        envelope = envelope.max(curve[place][1]);
        let before = place.checked_sub(1).map_or(0.0, |before| curve[before][0]);
        area += (curve[place][0] - before) * envelope;
    }
    Some([eleven_points, area])
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

    #[test]
    fn counts_at_a_threshold_include_equal_scores() {
        let outcomes = ScoredOutcomes::new([(0.5, true), (0.9, true), (0.7, false)], 4);
        let counts = outcomes.at(0.5);
        assert_eq!((counts.correct, counts.wrong, counts.false_negatives), (2, 1, 2));
        assert_eq!(outcomes.at(0.95), ClassOutcomes { correct: 0, wrong: 0, false_negatives: 4 });
        assert_eq!(outcomes.at(0.95).precision(), None);
    }

    #[test]
    fn best_minimum_score_never_splits_ties() {
        let outcomes = ScoredOutcomes::new([(0.9, true), (0.5, true), (0.5, false), (0.5, false), (0.5, false)], 2);
        let best = outcomes.best().unwrap();
        assert_eq!(best.threshold, 0.9);
        assert!((best.f1 - 2.0 / 3.0).abs() < 1e-12);
    }
}
