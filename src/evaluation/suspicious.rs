//! Labels that may be wrong, ranked by the AP that a fix would gain.
//!
//! A label is suspicious if a box above the minimum score contradicts it, or if no box of any score covers its object:
//!
//! | kind | condition | fix |
//! |---|---|---|
//! | class | a box of another class covers the object, and none of the object's class detects it | the box's class |
//! | missing | a box covers no object: background in TIDE | a label like the box |
//! | misplaced | a box of its class has an IoU of 0.10 to 0.75 with the object | the position of the box |
//! | spurious | no box of any class and score covers the object | no label |
//!
//! The gain is exact: AP (COCO, IoU 0.50 to 0.95) with only this label fixed, minus AP. For a classifier, a label is
//! suspicious if the top class differs from it, and the gain is in top-1. `hotcoco` lists the first two kinds as
//! label errors, without a gain, and needs all boxes in memory.
//!
//! Other measures order the same list. Mistakenness is defined as in `FiftyOne` (`fiftyone-brain` 0.25,
//! `mistakenness.py`): it has a number for a wrong class and a wrong position, and only flags missing and spurious labels.
//! Detectors also have the label and image quality of `ObjectLab` (see `object_lab`), classifiers the self-confidence, the
//! normalized margin and the label issues of cleanlab (see `confident_learning`).

use strum::VariantArray as _;

use super::Metrics;
use super::classification::OTHER_CLASS;
use super::confident_errors::ErrorSide;
use super::confident_learning::ConfidentThresholds;
use super::detection::FoundOutcomes;
use super::detection_draws::{DetectionDraws, Matched, matched};
use super::fix_gain::{ClassChange, FixGains};
use super::ground_truth::ImageSides;
use super::intervals::each_draw;
use super::object_lab::{image_quality, label_quality};
use super::objects::{BACKGROUND_IOU, CORRECT_IOU, DetectedObject, ImageObjects, TrueObject, iou};
use crate::domain::{BoxRole, ExactBox, SampleId, counted};
use crate::review::{OutcomeKind, Suspect, SuspectKind, SuspectOrder};

/// Labels of people rarely agree with each other to this AP, so a model should not either.
const UNUSUAL_AP: f64 = 0.9;
/// A correct box with a lower IoU suggests that the label is misplaced.
const MISPLACED_IOU: f64 = 0.75;
/// What every list of suspicious labels says, unless [`training_sign`] has a reason to: a whole sentence.
pub const HIDDEN_MISTAKES: &str =
    "A model hides the mistakes in labels that it was trained on. Use a model that has not seen these images";
/// At most this many labels of each kind are ranked, the most confident ones: each costs a measurement.
const MOST_PER_KIND: usize = 5000;

/// The suspicious labels of an evaluation, highest gain first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Suspicious {
    pub labels: Vec<SuspiciousLabel>,
    /// Suspicious labels that are not listed, because there are too many with a higher score.
    pub left_out: u64,
    /// Why the model may have been trained on these images, which hides mistakes: a whole sentence.
    pub training_sign: Option<String>,
    /// Images of a classifier whose predictions leave out classes, which [`ConfidentThresholds`] then estimates.
    pub incomplete: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SuspiciousLabel {
    /// The path relative to the source, with `/`.
    pub image: String,
    pub sample: Option<SampleId>,
    pub kind: SuspectKind,
    /// The label as it is; `None` if it is missing.
    pub label: Option<ErrorSide>,
    /// The label after the fix; `None` if it is removed.
    pub fixed: Option<ErrorSide>,
    /// Its index among the objects of the image.
    pub object: Option<u32>,
    /// The box that contradicts it: an index into the stored prediction.
    pub found: Option<u32>,
    /// The score of that box, `0.0..=1.0`.
    pub score: Option<f64>,
    /// The IoU of that box with the label.
    pub iou: Option<f64>,
    /// The increase of AP, or of top-1, if only this label is fixed.
    pub gain: f64,
    /// `0.0..=1.0`, most suspicious last; `None` if it is not defined for this kind.
    pub mistakenness: Option<f64>,
    /// `0.0..=1.0`, most suspicious first; `None` if it is not defined for this kind.
    pub quality: Option<f64>,
    /// cleanlab's normalized margin, `0.0..=1.0`, most suspicious first; `None` for a detector.
    pub margin: Option<f64>,
    /// Whether confident learning finds a label issue; `None` for a detector.
    pub is_issue: Option<bool>,
    /// `ObjectLab`'s quality of all labels of the image, `0.0..=1.0`, most suspicious first; `None` for a classifier.
    pub image_quality: Option<f64>,
}

impl SuspiciousLabel {
    /// The same with 32-bit numbers.
    pub fn suspect(&self) -> Suspect {
        let short = |number: Option<f64>| number.map(|number| number as f32);
        Suspect {
            kind: self.kind,
            found: self.found,
            object: self.object,
            gain: self.gain as f32,
            mistakenness: short(self.mistakenness),
            quality: short(self.quality),
            margin: short(self.margin),
            is_issue: self.is_issue,
            image_quality: short(self.image_quality),
        }
    }
}

impl Suspicious {
    /// How confident learning treats incomplete predictions, if there are any: a whole sentence.
    pub fn incomplete_note(&self) -> Option<String> {
        (self.incomplete > 0).then(|| {
            format!(
                "The predictions of {} contain only the best classes; confident learning divides the rest of the \
                 probability equally among the others",
                counted(self.incomplete as usize, "image", "images")
            )
        })
    }

    /// Puts the labels in this order, most suspicious first; equal ones stay as they are.
    pub fn sort(&mut self, order: SuspectOrder) {
        let rank = |label: &SuspiciousLabel| order.rank(&label.suspect(), label.score.map(|score| score as f32));
        self.labels.sort_by(|one, other| match (rank(one), rank(other)) {
            (Some(one), Some(other)) => other.total_cmp(&one),
            (one, other) => one.is_none().cmp(&other.is_none()),
        });
    }
}

/// The differences between corrected labels and those in the ground truth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LabelCorrections {
    pub removed: u64,
    pub added: u64,
    /// Images of a classifier with another class.
    pub relabeled: u64,
    /// Labels that cannot be measured, because the ground truth does not have their class.
    pub of_other_classes: u64,
}

impl LabelCorrections {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Collects images one by one, in the same order as [`DetectionDraws`].
#[derive(Debug, Default)]
pub struct SuspiciousLabels {
    images: u32,
    candidates: Vec<Candidate>,
    /// The candidates whose gain needs a measurement of its own: all but spurious labels.
    measured: usize,
    left_out: u64,
}

#[derive(Debug)]
struct Candidate {
    label: SuspiciousLabel,
    image: u32,
    changes: Vec<ClassChange>,
}

/// A suspicious label of an image, by its indices.
#[derive(Debug, Clone, Copy)]
struct Suspicion {
    kind: SuspectKind,
    detection: Option<usize>,
    truth: Option<usize>,
}

impl SuspiciousLabels {
    /// Considers the labels of an image, with the outcome of each of its boxes. `draws` has the minimum scores.
    pub fn add_boxes(&mut self, image: &ImageSides, found: &FoundOutcomes, draws: &DetectionDraws) {
        let (thresholds, ious) = (&draws.thresholds, &draws.params.iou_thrs);
        let number = self.images;
        self.images += 1;
        let objects = &image.objects;
        let suspicions = suspicions(objects, found, thresholds);
        let image_quality = if suspicions.is_empty() { None } else { Some(image_quality(objects)) };
        for suspicion in suspicions {
            let label = SuspiciousLabel { image_quality, ..suspicious_label(image, found, suspicion) };
            let changes = changes(objects, suspicion, thresholds.len(), ious);
            self.measured += usize::from(label.kind != SuspectKind::Spurious);
            self.candidates.push(Candidate { label, image: number, changes });
        }
        if self.measured > 6 * MOST_PER_KIND {
            self.drop_least_confident();
        }
    }

    /// Considers the class of an image of class `truth`.
    pub fn add_class(&mut self, image: &ImageSides, truth: u32, thresholds: &ConfidentThresholds) {
        self.images += u32::from(!image.classes.is_empty());
        let Some(&(class, score)) = image.classes.first().filter(|(class, _)| ![truth, OTHER_CLASS].contains(class))
        else {
            return;
        };
        let whole = |class| Some(ErrorSide { class, bounds: None });
        let label = SuspiciousLabel {
            image: image.name.clone(),
            sample: image.sample,
            kind: SuspectKind::Class,
            label: whole(truth),
            fixed: whole(class),
            object: Some(0),
            found: Some(0),
            score: Some(score),
            iou: None,
            gain: 0.0,
            mistakenness: Some(f64::midpoint(score, 1.0)),
            quality: Some(thresholds.self_confidence(truth, &image.classes)),
            margin: Some(thresholds.normalized_margin(truth, &image.classes)),
            is_issue: Some(thresholds.is_issue(truth, &image.classes)),
            image_quality: None,
        };
        self.candidates.push(Candidate { label, image: 0, changes: Vec::new() });
    }

    /// Keeps the most confident ones of each measured kind. Spurious labels have no score.
    fn drop_least_confident(&mut self) {
        let score = |candidate: &Candidate| candidate.label.score.unwrap_or_default();
        self.candidates.sort_by(|one, other| score(other).total_cmp(&score(one)));
        let mut seen = [0; SuspectKind::VARIANTS.len()];
        let before = self.candidates.len();
        self.candidates.retain(|Candidate { label, .. }| {
            let seen = &mut seen[label.kind as usize];
            *seen += 1;
            label.kind == SuspectKind::Spurious || *seen <= MOST_PER_KIND
        });
        let dropped = before - self.candidates.len();
        self.measured -= dropped;
        self.left_out += dropped as u64;
    }

    /// The labels of a detector with their gains. `draws` must be sorted. `None` if `is_cancelled`.
    pub fn finish(mut self, draws: &DetectionDraws, is_cancelled: impl Fn() -> bool + Sync) -> Option<Suspicious> {
        self.drop_least_confident();
        let gains = FixGains::new(draws);
        // The fix of a spurious label only changes the number of objects.
        let count = draws.classes.len();
        let removed = |class| ClassChange { class, truths: -1, matched: Vec::new() };
        let of_removed = each_draw(count, |class| gains.gain(0, &[removed(class as u32)]), &is_cancelled)?;
        let candidates = &self.candidates;
        let gain = |place: u64| match &candidates[place as usize] {
            Candidate { changes, label, .. } if label.kind == SuspectKind::Spurious => {
                changes.first().and_then(|change| of_removed.get(change.class as usize)).copied().unwrap_or_default()
            }
            Candidate { changes, image, .. } => gains.gain(*image, changes),
        };
        let found = each_draw(candidates.len(), gain, is_cancelled)?;
        let labels = self.candidates.into_iter().zip(found);
        Some(in_order(labels.map(|(candidate, gain)| SuspiciousLabel { gain, ..candidate.label }), self.left_out))
    }

    /// The labels of a classifier: each fix makes one more image correct.
    pub fn finish_classes(self, thresholds: &ConfidentThresholds) -> Suspicious {
        let gain = 1.0 / f64::from(self.images.max(1));
        let labels = self.candidates.into_iter().map(|candidate| SuspiciousLabel { gain, ..candidate.label });
        Suspicious { incomplete: thresholds.incomplete(), ..in_order(labels, self.left_out) }
    }
}

fn in_order(labels: impl Iterator<Item = SuspiciousLabel>, left_out: u64) -> Suspicious {
    let mut labels: Vec<SuspiciousLabel> = labels.collect();
    let score = |label: &SuspiciousLabel| label.score.unwrap_or(-1.0);
    labels.sort_by(|one, other| {
        let gain = other.gain.total_cmp(&one.gain);
        gain.then_with(|| score(other).total_cmp(&score(one))).then_with(|| one.image.cmp(&other.image))
    });
    Suspicious { labels, left_out, ..Suspicious::default() }
}

/// Why the model may have been trained on the images of this ground truth: a whole sentence.
pub fn training_sign(truth: &str, split: Option<&str>, metrics: &Metrics) -> Option<String> {
    let consequence = "the model may have been trained on these images. It then repeats their errors, which hides them";
    let names_training = |name: &&str| {
        let mut words = name.split(|letter: char| !letter.is_ascii_alphabetic());
        words.any(|word| ["train", "training"].iter().any(|known| word.eq_ignore_ascii_case(known)))
    };
    if let Some(split) = split.filter(names_training) {
        return Some(format!("The ground truth is the split “{split}”, so {consequence}"));
    }
    // Further up, a folder rarely names a split.
    if let Some(name) = truth.split(['/', '\\']).filter(|part| !part.is_empty()).rev().take(2).find(names_training) {
        return Some(format!("The ground truth is named “{name}”, so {consequence}"));
    }
    match metrics {
        Metrics::Detection { metrics, .. } if metrics.ap >= Some(UNUSUAL_AP) => {
            Some(format!("AP is {:.3}, which is unusually high, so {consequence}", metrics.ap?))
        }
        _ => None,
    }
}

/// At most one suspicion per label and per box. Those about boxes come first, by descending score.
fn suspicions(image: &ImageObjects, found: &FoundOutcomes, thresholds: &[f64]) -> Vec<Suspicion> {
    let outcomes = found.outcomes();
    let is_shown = |detection: &DetectedObject| {
        thresholds.get(detection.class as usize).is_some_and(|least| detection.score >= *least)
    };
    let mut is_detected = vec![false; image.truths.len()];
    for (detection, outcome) in image.detections.iter().zip(outcomes) {
        if let (OutcomeKind::Correct, Some(truth)) = (outcome.kind, outcome.truth) {
            is_detected[truth] |= is_shown(detection);
        }
    }
    let overlaps = found.overlaps();
    let mut is_suspicious = vec![false; image.truths.len()];
    let mut missing: Vec<ExactBox> = Vec::new();
    let mut all = Vec::new();
    for index in overlaps.counted(image, thresholds.len()).filter(|index| is_shown(&image.detections[*index])) {
        let detection = &image.detections[index];
        let row = overlaps.row(index);
        let same = || image.truths.iter().zip(row).filter(|(truth, _)| truth.class == detection.class);
        let has_other = || same().any(|(truth, iou)| truth.role == BoxRole::Object && *iou >= BACKGROUND_IOU);
        let (kind, truth) = match (outcomes[index].kind, outcomes[index].truth) {
            (OutcomeKind::Class, Some(truth)) if !is_detected[truth] && !has_other() => (SuspectKind::Class, truth),
            (OutcomeKind::Correct, Some(truth)) if row[truth] < MISPLACED_IOU => (SuspectKind::Misplaced, truth),
            (OutcomeKind::Location, _) => match overlaps.nearest_of_class(image, index) {
                Some(truth) if !is_detected[truth] => (SuspectKind::Misplaced, truth),
                _ => continue,
            },
            (OutcomeKind::Background, _) => {
                // Several boxes can stand for one missing label.
                if missing.iter().all(|other| iou(*other, detection.bounds, false) < CORRECT_IOU) {
                    missing.push(detection.bounds);
                    all.push(Suspicion { kind: SuspectKind::Missing, detection: Some(index), truth: None });
                }
                continue;
            }
            _ => continue,
        };
        if !std::mem::replace(&mut is_suspicious[truth], true) {
            all.push(Suspicion { kind, detection: Some(index), truth: Some(truth) });
        }
    }
    for (truth, object) in image.truths.iter().enumerate() {
        let is_covered = || (0..image.detections.len()).any(|index| overlaps.row(index)[truth] >= CORRECT_IOU);
        if object.role == BoxRole::Object && !is_suspicious[truth] && !is_covered() {
            all.push(Suspicion { kind: SuspectKind::Spurious, detection: None, truth: Some(truth) });
        }
    }
    all
}

/// Without its gain.
fn suspicious_label(image: &ImageSides, found: &FoundOutcomes, suspicion: Suspicion) -> SuspiciousLabel {
    let objects = &image.objects;
    let Suspicion { kind, detection, truth } = suspicion;
    let object = truth.map(|truth| objects.truths[truth]);
    let predicted = detection.map(|index| objects.detections[index]);
    let overlap = detection.zip(truth).map(|(index, truth)| found.overlaps().row(index)[truth]);
    let side = |class, bounds| ErrorSide { class, bounds: Some(bounds) };
    let label = object.map(|object| side(object.class, object.bounds));
    let fixed = fixed(object, predicted, kind).map(|fixed| side(fixed.class, fixed.bounds));
    let score = predicted.map(|predicted| predicted.score);
    let mistakenness = score.and_then(|score| match kind {
        SuspectKind::Class => Some(f64::midpoint(score, 1.0)),
        SuspectKind::Misplaced => {
            let distance = (2.0 * (1.0 - overlap?)).min(1.0);
            Some(f64::midpoint(score * (2.0 * distance - 1.0), 1.0))
        }
        SuspectKind::Missing | SuspectKind::Spurious => None,
    });
    SuspiciousLabel {
        image: image.name.clone(),
        sample: image.sample,
        kind,
        label,
        fixed,
        object: truth.map(|truth| truth as u32),
        found: detection.and_then(|index| image.stored.get(index)).copied(),
        score,
        iou: overlap,
        gain: 0.0,
        mistakenness,
        quality: label_quality(objects, kind, detection, truth),
        margin: None,
        is_issue: None,
        image_quality: None,
    }
}

/// The label after the fix; `None` if it is removed.
fn fixed(object: Option<TrueObject>, predicted: Option<DetectedObject>, kind: SuspectKind) -> Option<TrueObject> {
    let DetectedObject { bounds, class, .. } = predicted?;
    Some(match object {
        Some(object) if kind == SuspectKind::Class => TrueObject { class, ..object },
        Some(object) => TrueObject { bounds, area: bounds.area(), ..object },
        None => TrueObject { bounds, class, area: bounds.area(), role: BoxRole::Object },
    })
}

/// What the fix changes in each class.
fn changes(image: &ImageObjects, suspicion: Suspicion, classes: usize, ious: &[f64]) -> Vec<ClassChange> {
    let object = suspicion.truth.map(|truth| image.truths[truth]);
    let predicted = suspicion.detection.map(|index| image.detections[index]);
    let fixed = fixed(object, predicted, suspicion.kind);
    let mut affected: Vec<u32> = object.iter().chain(&fixed).map(|object| object.class).collect();
    affected.dedup();
    let matched = |class: u32| -> Vec<Matched> {
        let after = |(at, truth)| if Some(at) == suspicion.truth { fixed } else { Some(truth) };
        let truths = image.truths.iter().copied().enumerate().filter_map(after);
        let truths = truths.chain(fixed.filter(|_| object.is_none())).filter(|truth| truth.class == class).collect();
        let detections = image.detections.iter().filter(|found| found.class == class).copied().collect();
        let after = matched(&ImageObjects { truths, detections }, classes, ious);
        after.into_iter().map(|(_, matched)| matched).collect()
    };
    let count = |side: Option<TrueObject>, class| isize::from(side.is_some_and(|object| object.class == class));
    let change = |class: u32| ClassChange {
        class,
        truths: count(fixed, class) - count(object, class),
        matched: if fixed.is_some() { matched(class) } else { Vec::new() },
    };
    affected.into_iter().map(change).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{ClassificationMetrics, DetectionMetrics};
    use super::*;

    #[test]
    fn wrong_top_class_is_suspicious() {
        let mut suspicious = SuspiciousLabels::default();
        let thresholds = ConfidentThresholds::default();
        let images = [
            ("right", 0, vec![(0, 0.9), (1, 0.1)]),
            ("wrong", 0, vec![(1, 0.7), (0, 0.2)]),
            ("wrong, and the label is not in the prediction", 2, vec![(1, 0.8)]),
            ("not a class of the ground truth", 0, vec![(OTHER_CLASS, 1.0)]),
        ];
        for (name, truth, classes) in images {
            let image = ImageSides { name: name.to_owned(), classes, ..ImageSides::default() };
            suspicious.add_class(&image, truth, &thresholds);
        }
        let found = suspicious.finish_classes(&thresholds);
        let numbers: Vec<_> =
            found.labels.iter().map(|label| (label.gain, label.mistakenness, label.quality)).collect();
        assert_eq!(numbers, [(0.25, Some(0.9), Some(0.0)), (0.25, Some(0.85), Some(0.2))]);
    }

    #[test]
    fn training_images_are_recognized() {
        let detection = |ap| Metrics::Detection {
            metrics: Box::new(DetectionMetrics { ap: Some(ap), ..DetectionMetrics::default() }),
            intervals: None,
        };
        let classification =
            Metrics::Classification { metrics: Box::<ClassificationMetrics>::default(), intervals: None };
        let is_sign = |truth: &str, split, metrics: &Metrics| training_sign(truth, split, metrics).is_some();
        for (truth, split, expected) in [
            ("/data/coco/instances_train2017.json", None, true),
            ("/data/coco/instances_val2017.json", None, false),
            ("C:\\data\\train\\labels", None, true),
            ("/data/train/old/labels", None, false),
            ("/data/trains.json", None, false),
            ("data.yaml", Some("train"), true),
            ("data.yaml", Some("val"), false),
        ] {
            assert_eq!(is_sign(truth, split, &detection(0.5)), expected, "{truth}");
            assert_eq!(is_sign(truth, split, &classification), expected, "{truth}");
        }
        assert!(is_sign("labels.json", None, &detection(0.95)));
    }
}
