//! A detector's metrics on resamples of its images.

use hotcoco::params::{IouType, Params};
use serde::Serialize;

use super::intervals::{DrawnNumber, HalfNumber, Halves, Interval, each_draw, half, repeated};
use super::objects::{ImageObjects, Overlaps};
use crate::domain::BoxRole;
use crate::review::ClassOutcomes;

/// COCO's IoU thresholds: 0.50, 0.55 … 0.95.
pub(super) const IOUS: usize = 10;
/// The index of IoU 0.75.
const IOU_75: usize = 5;

/// AP, AP50, AP75 and AR100.
type CocoNumbers = [f64; 4];

/// Everything about each detection that is needed to measure AP on any resample of the images.
#[derive(Debug, Clone)]
pub struct DetectionDraws {
    pub(super) classes: Vec<ClassDraws>,
    images: u32,
    /// The minimum score of each class.
    pub(super) thresholds: Vec<f64>,
    /// COCO's IoU and recall thresholds.
    pub(super) params: Params,
}

#[derive(Debug, Clone, Default)]
pub(super) struct ClassDraws {
    pub(super) found: Vec<Found>,
    /// The image of each object that counts.
    pub(super) truths: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    score: f64,
    pub(super) image: u32,
    pub(super) matched: Matched,
}

/// How COCO matches a detection at each IoU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Matched {
    /// One bit per IoU.
    correct: u16,
    ignored: u16,
}

impl Matched {
    pub(super) fn is_correct(self, step: usize) -> bool {
        self.correct >> step & 1 != 0
    }

    pub(super) fn is_ignored(self, step: usize) -> bool {
        self.ignored >> step & 1 != 0
    }
}

/// The detections of an image that COCO counts, by index, highest score first.
pub(super) fn matched(image: &ImageObjects, classes: usize, ious: &[f64]) -> Vec<(usize, Matched)> {
    let overlaps = Overlaps::new(image);
    let matches: Vec<Vec<Option<usize>>> = ious.iter().map(|iou| overlaps.matches(image, *iou)).collect();
    let of_detection = |index: usize| {
        let mut matched = Matched::default();
        for (step, matches) in matches.iter().enumerate() {
            match matches[index].map(|truth| image.truths[truth].role) {
                Some(BoxRole::Object) => matched.correct |= 1 << step,
                Some(_) => matched.ignored |= 1 << step,
                None => {}
            }
        }
        (index, matched)
    };
    overlaps.counted(image, classes).map(of_detection).collect()
}

/// The intervals of a detector's main metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct DetectionIntervals {
    pub ap: Option<Interval>,
    pub ap50: Option<Interval>,
    pub ap75: Option<Interval>,
    pub ar100: Option<Interval>,
    pub precision: Option<Interval>,
    pub recall: Option<Interval>,
    pub f1: Option<Interval>,
}

impl DetectionIntervals {
    /// In the order of [`DetectionDraws::numbers`].
    pub fn from_drawn(drawn: &[DrawnNumber; 7]) -> Self {
        let [ap, ap50, ap75, ar100, precision, recall, f1] = drawn.each_ref().map(DrawnNumber::interval);
        Self { ap, ap50, ap75, ar100, precision, recall, f1 }
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
        for (index, matched) in matched(image, self.classes.len(), &self.params.iou_thrs) {
            let detection = &image.detections[index];
            let found = Found { score: detection.score, image: number, matched };
            self.classes[detection.class as usize].found.push(found);
        }
    }

    /// AP, AP50, AP75, AR100, precision, recall and F1. `None` if `is_cancelled`.
    pub fn numbers(mut self, draws: usize, is_cancelled: impl Fn() -> bool + Sync) -> Option<[DrawnNumber; 7]> {
        self.sort();
        let images = self.images as usize;
        let whole = self.coco_by_class(&vec![1; images]);
        let of_draw = |draw| {
            let by_class = self.coco_by_class(&half(draw, images));
            let counts = self.counts(&repeated(draw, images));
            (half_numbers(&whole, &by_class), [counts.precision(), counts.recall(), counts.f1()])
        };
        let drawn = each_draw(draws, of_draw, is_cancelled)?;
        let of_all = mean(&whole).unwrap_or_default();
        let coco = |place: usize| {
            let numbers = drawn.iter().map(|(halves, _)| halves.map(|halves| halves[place])).collect();
            DrawnNumber::Halves(Halves { whole: of_all[place], images, numbers })
        };
        let share = |place: usize| DrawnNumber::Repeated(drawn.iter().map(|(_, shares)| shares[place]).collect());
        Some([coco(0), coco(1), coco(2), coco(3), share(0), share(1), share(2)])
    }

    /// Highest scores first; ties in order of arrival.
    pub fn sort(&mut self) {
        for class in &mut self.classes {
            class.found.sort_by(|one, other| other.score.total_cmp(&one.score));
        }
    }

    /// AP, AP50, AP75, AR100, precision, recall and F1 if each image occurs this many times.
    #[cfg(test)]
    pub fn measure(&self, times: &[u32]) -> [Option<f64>; 7] {
        let [ap, ap50, ap75, ar100] = mean(&self.coco_by_class(times)).map_or([None; 4], |coco| coco.map(Some));
        let counts = self.counts(times);
        [ap, ap50, ap75, ar100, counts.precision(), counts.recall(), counts.f1()]
    }

    /// The numbers of each class with objects, if each image occurs this many times.
    fn coco_by_class(&self, times: &[u32]) -> Vec<Option<CocoNumbers>> {
        let of_class = |class: &ClassDraws| {
            let by_iou = class.ap_and_recall(times, &self.params.rec_thrs)?;
            let mean_of = |number: usize| by_iou.iter().map(|numbers| numbers[number]).sum::<f64>() / IOUS as f64;
            Some([mean_of(0), by_iou[0][0], by_iou[IOU_75][0], mean_of(1)])
        };
        self.classes.iter().map(of_class).collect()
    }

    /// All classes pooled above their minimum scores, if each image occurs this many times.
    fn counts(&self, times: &[u32]) -> ClassOutcomes {
        let mut counts = ClassOutcomes::default();
        for (class, threshold) in self.classes.iter().zip(&self.thresholds) {
            counts += class.counts(times, *threshold);
        }
        counts
    }
}

/// The means over classes with objects; `None` if there are none.
fn mean(by_class: &[Option<CocoNumbers>]) -> Option<CocoNumbers> {
    let measured: Vec<CocoNumbers> = by_class.iter().copied().flatten().collect();
    let mean = |place: usize| measured.iter().map(|numbers| numbers[place]).sum::<f64>() / measured.len() as f64;
    (!measured.is_empty()).then(|| std::array::from_fn(mean))
}

/// The numbers on a half of the images; the change is over the classes with objects in that half.
fn half_numbers(whole: &[Option<CocoNumbers>], half: &[Option<CocoNumbers>]) -> Option<[HalfNumber; 4]> {
    let of_half = mean(half)?;
    let of_whole: Vec<_> = whole.iter().zip(half).map(|(whole, half)| whole.filter(|_| half.is_some())).collect();
    let of_whole = mean(&of_whole)?;
    Some(std::array::from_fn(|place| HalfNumber { number: of_half[place], change: of_half[place] - of_whole[place] }))
}

impl ClassDraws {
    fn truths(&self, times: &[u32]) -> u64 {
        self.truths.iter().map(|image| u64::from(times[*image as usize])).sum()
    }

    fn counts(&self, times: &[u32], threshold: f64) -> ClassOutcomes {
        let mut counts = ClassOutcomes::default();
        for found in self.found.iter().take_while(|found| found.score >= threshold) {
            let times = u64::from(times[found.image as usize]);
            if found.matched.is_correct(0) {
                counts.correct += times;
            } else if !found.matched.is_ignored(0) {
                counts.wrong += times;
            }
        }
        counts.false_negatives = self.truths(times).saturating_sub(counts.correct);
        counts
    }

    /// COCO's interpolated AP and the recall at each IoU; `None` without objects. An image that is drawn twice counts
    /// as two consecutive images, which does not change the precision at any recall.
    fn ap_and_recall(&self, times: &[u32], recalls: &[f64]) -> Option<[[f64; 2]; IOUS]> {
        let truths = self.truths(times) as f64;
        (truths > 0.0).then(|| {
            std::array::from_fn(|step| {
                let (mut correct, mut all) = (0.0, 0.0);
                // Recall and precision after each true positive.
                let mut curve: Vec<[f64; 2]> = Vec::new();
                for found in &self.found {
                    let times = f64::from(times[found.image as usize]);
                    if times == 0.0 || found.matched.is_ignored(step) {
                        continue;
                    }
                    all += times;
                    if found.matched.is_correct(step) {
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
                [recalls.iter().map(precision).sum::<f64>() / recalls.len() as f64, correct / truths]
            })
        })
    }
}
