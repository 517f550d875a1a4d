//! The agreement of two runs, per image and in total.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{ClassMap, ScoredBox, match_boxes};
use crate::domain::{ClassScore, ModelTask, Prediction, PredictionContent, SampleId, ViewSettings};

/// Collects the predictions of two runs, image by image. Of detections, it compares what each run's view shows: scores
/// down to 0.005 are stored, and among those two runs never agree.
#[derive(Debug, Clone)]
pub struct Comparison {
    classes: ClassMap,
    left_view: ViewSettings,
    right_view: ViewSettings,
    agreement: Agreement,
    /// The samples of each class change, once per image or pair of boxes.
    confusion: BTreeMap<(u32, u32), Vec<SampleId>>,
}

/// How far two runs agree. Enough for sorting and counting; boxes are matched again for the image on screen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Agreement {
    /// By sample; `None` unless both runs have a prediction. Can be shorter than the listing.
    images: Vec<Option<ImageAgreement>>,
    pub summary: AgreementSummary,
}

/// The agreement on one image. For a classifier, the box counts are zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ImageAgreement {
    /// `0.0..=1.0`; see the module's documentation.
    pub disagreement: f32,
    /// The two runs have different top classes. Never true for a detector.
    pub is_flip: bool,
    pub matched: u32,
    pub only_left: u32,
    pub only_right: u32,
    /// Classification: the score difference of the same top class. Detection: the largest of two matched boxes. `None`
    /// if the top classes differ or no boxes match: the other run's score is unknown.
    pub largest_difference: Option<f32>,
}

impl ImageAgreement {
    /// Whether the top classes are equal, or every box of each run matches one of the other.
    pub fn agrees(&self) -> bool {
        !self.is_flip && self.only_left == 0 && self.only_right == 0
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgreementSummary {
    /// Images with a prediction in both runs.
    pub compared: usize,
    /// Images that agree ([`ImageAgreement::agrees`]).
    pub agreeing: usize,
    pub predicted_only_left: usize,
    pub predicted_only_right: usize,
    /// Classification: of the top class, over the images that agree. Detection: of matched boxes.
    pub differences: ScoreDifferences,
    /// Pairs of matching boxes.
    pub matched: usize,
    pub only_left: usize,
    pub only_right: usize,
    /// Class changes, most frequent first.
    pub confusion: Vec<ClassChange>,
}

impl AgreementSummary {
    /// The fraction of compared images that agree, `0.0..=1.0`; `None` if there are none.
    pub fn rate(&self) -> Option<f64> {
        (self.compared > 0).then(|| self.agreeing as f64 / self.compared as f64)
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ScoreDifferences {
    pub count: usize,
    sum: f64,
    /// Zero if there are none.
    pub largest: f32,
}

impl ScoreDifferences {
    /// `None` if there are none.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    /// “scores of the same top class differ by 0.012 on average and 0.340 at most”; `None` if nothing was compared.
    pub fn text(&self, task: ModelTask) -> Option<String> {
        let scores = match task {
            ModelTask::Classification => "scores of the same top class",
            ModelTask::Detection => "scores of matched boxes",
        };
        if self.count > 0 && self.largest == 0.0 {
            return Some(format!("{scores} are identical"));
        }
        let mean = difference_text(self.mean()?);
        let largest = difference_text(self.largest.into());
        Some(format!("{scores} differ by {mean} on average and {largest} at most"))
    }

    fn add(&mut self, difference: f32) {
        self.count += 1;
        self.sum += f64::from(difference);
        self.largest = self.largest.max(difference);
    }
}

/// A class of the left run for which the right run predicted another one: as top class, or in boxes that overlap by at
/// least [`super::MATCHING_IOU`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassChange {
    /// The left run's id.
    pub left: u32,
    /// The right run's own id.
    pub right: u32,
    /// Images of a classifier, pairs of boxes of a detector.
    pub count: usize,
    /// The images with this change, lowest id first, without duplicates.
    pub images: Arc<[SampleId]>,
}

impl Agreement {
    /// `None` unless both runs have a prediction.
    pub fn image(&self, id: SampleId) -> Option<&ImageAgreement> {
        self.images.get(id.index())?.as_ref()
    }

    /// The samples on which the runs do not agree, lowest id first.
    pub fn differing(&self) -> impl Iterator<Item = SampleId> {
        let differs = |image: &Option<ImageAgreement>| image.is_some_and(|image| !image.agrees());
        self.images.iter().enumerate().filter(move |(_, image)| differs(image)).map(|(at, _)| SampleId::from_index(at))
    }

    /// Disagreement by sample, NaN if there is none: a column to sort by. Can be shorter than the listing.
    pub fn column(&self) -> Vec<f32> {
        let disagreement = |image: &Option<ImageAgreement>| image.map_or(f32::NAN, |image| image.disagreement);
        self.images.iter().map(disagreement).collect()
    }

    fn set(&mut self, id: SampleId, image: ImageAgreement) {
        if id.index() >= self.images.len() {
            self.images.resize(id.index() + 1, None);
        }
        self.images[id.index()] = Some(image);
    }
}

impl Comparison {
    /// Starts a comparison with the view of each run; `classes` maps the right run's classes to the left one's.
    pub fn new(classes: ClassMap, left_view: ViewSettings, right_view: ViewSettings) -> Self {
        Self { classes, left_view, right_view, agreement: Agreement::default(), confusion: BTreeMap::new() }
    }

    /// Adds the predictions for one image, `None` if the run has none. Each sample at most once. A classification and a
    /// detection cannot be compared: such an image counts as unpredicted in both. Returns what [`Agreement::image`]
    /// will return.
    pub fn add(
        &mut self,
        id: SampleId,
        left: Option<&Prediction>,
        right: Option<&Prediction>,
    ) -> Option<ImageAgreement> {
        let (left, right) = match (left, right) {
            (Some(left), Some(right)) => (left, right),
            (left, right) => {
                let summary = &mut self.agreement.summary;
                summary.predicted_only_left += usize::from(left.is_some());
                summary.predicted_only_right += usize::from(right.is_some());
                return None;
            }
        };
        let image = match (&left.content, &right.content) {
            (PredictionContent::Classes(left), PredictionContent::Classes(right)) => self.classes_of(id, left, right),
            (PredictionContent::Detections(_), PredictionContent::Detections(_)) => self.boxes_of(id, left, right),
            _ => return None,
        };
        let summary = &mut self.agreement.summary;
        summary.compared += 1;
        summary.agreeing += usize::from(image.agrees());
        self.agreement.set(id, image);
        Some(image)
    }

    pub fn finish(self) -> Agreement {
        let mut agreement = self.agreement;
        let confusion = self.confusion.into_iter();
        let mut confusion: Vec<ClassChange> = confusion
            .map(|((left, right), mut images)| {
                let count = images.len();
                images.sort_unstable();
                images.dedup();
                ClassChange { left, right, count, images: images.into() }
            })
            .collect();
        confusion.sort_by_key(|entry| std::cmp::Reverse(entry.count));
        agreement.summary.confusion = confusion;
        agreement
    }

    fn classes_of(&mut self, id: SampleId, left: &[ClassScore], right: &[ClassScore]) -> ImageAgreement {
        let mut image = ImageAgreement {
            disagreement: 0.0,
            is_flip: false,
            matched: 0,
            only_left: 0,
            only_right: 0,
            largest_difference: None,
        };
        let (Some(top_left), Some(top_right)) = (left.first(), right.first()) else {
            // If one run returned no class at all, they differ completely, unless neither did.
            image.is_flip = left.is_empty() != right.is_empty();
            image.disagreement = if image.is_flip { 0.5 } else { 0.0 };
            return image;
        };
        image.is_flip = self.classes.left_of(top_right.index) != top_left.index;
        if image.is_flip {
            let confused = (top_left.index, top_right.index);
            self.confusion.entry(confused).or_default().push(id);
            image.disagreement = 0.5 + number(top_left.score.min(top_right.score)) / 2.0;
        } else {
            let difference = difference(top_left.score, top_right.score);
            self.agreement.summary.differences.add(difference);
            image.largest_difference = Some(difference);
            image.disagreement = difference / 2.0;
        }
        image
    }

    fn boxes_of(&mut self, id: SampleId, left: &Prediction, right: &Prediction) -> ImageAgreement {
        let (left_boxes, right_boxes) = (
            shown_boxes(left, &self.left_view, |class| class),
            shown_boxes(right, &self.right_view, |class| self.classes.left_of(class)),
        );
        let matches = match_boxes(&left_boxes.boxes, &right_boxes.boxes);
        let summary = &mut self.agreement.summary;
        let mut wrong = (matches.only_left.len() + matches.only_right.len()) as f32;
        let parts = wrong + matches.matched.len() as f32;
        let mut largest_difference: Option<f32> = None;
        for &(one, other) in &matches.matched {
            let scores = (left_boxes.boxes[one].score, right_boxes.boxes[other].score);
            let difference = difference(scores.0, scores.1);
            summary.differences.add(difference);
            wrong += difference;
            largest_difference = Some(largest_difference.map_or(difference, |largest| largest.max(difference)));
        }
        summary.matched += matches.matched.len();
        summary.only_left += matches.only_left.len();
        summary.only_right += matches.only_right.len();
        for &(one, other) in &matches.other_class {
            let class = |prediction: &Prediction, index: usize| prediction.detections()[index].class_id;
            let confused = (class(left, left_boxes.indices[one]), class(right, right_boxes.indices[other]));
            self.confusion.entry(confused).or_default().push(id);
        }
        ImageAgreement {
            disagreement: if parts > 0.0 { wrong / parts } else { 0.0 },
            is_flip: false,
            matched: matches.matched.len() as u32,
            only_left: matches.only_left.len() as u32,
            only_right: matches.only_right.len() as u32,
            largest_difference,
        }
    }
}

/// The visible boxes, and their indices in the prediction.
struct ShownBoxes {
    boxes: Vec<ScoredBox>,
    indices: Vec<usize>,
}

fn shown_boxes(prediction: &Prediction, view: &ViewSettings, left_id: impl Fn(u32) -> u32) -> ShownBoxes {
    // The agreement of two models must not depend on who judged them.
    let indices = view.visible_detections(prediction, &[]);
    let boxes = indices.iter().map(|&index| {
        let detection = &prediction.detections()[index];
        ScoredBox { bounds: detection.bounds, class_id: left_id(detection.class_id), score: detection.score }
    });
    ShownBoxes { boxes: boxes.collect(), indices }
}

fn difference(one: f32, other: f32) -> f32 {
    number((one - other).abs())
}

/// NaN scores must not spoil the sums, so they are skipped.
fn number(score: f32) -> f32 {
    if score.is_finite() { score } else { 0.0 }
}

/// A difference with enough digits not to read as zero: runs of one model differ by less than 0.001.
fn difference_text(difference: f64) -> String {
    if difference > 0.0 && difference < 1e-3 { format!("{difference:.1e}") } else { format!("{difference:.3}") }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::domain::{Detection, LabelSet};
    use crate::evaluation::BoxMatches;

    /// Written by `tests/agreement/make.py` with NumPy.
    #[derive(Deserialize)]
    struct Expected {
        detections: Vec<DetectionCase>,
        classifications: Vec<ClassificationCase>,
        summary: ExpectedSummaries,
    }

    #[derive(Deserialize)]
    struct DetectionCase {
        left: Vec<Detection>,
        right: Vec<Detection>,
        matched: Vec<(usize, usize)>,
        differences: Vec<f32>,
        only_left: Vec<usize>,
        only_right: Vec<usize>,
        confused: Vec<(u32, u32)>,
        disagreement: f32,
    }

    #[derive(Deserialize)]
    struct ClassificationCase {
        left: Vec<ClassScore>,
        right: Vec<ClassScore>,
        flipped: bool,
        difference: Option<f32>,
        disagreement: f32,
    }

    #[derive(Deserialize)]
    struct ExpectedSummaries {
        detection: ExpectedBoxes,
        classification: ExpectedClasses,
    }

    #[derive(Deserialize)]
    struct ExpectedBoxes {
        agreeing: usize,
        matched: usize,
        only_left: usize,
        only_right: usize,
        mean_difference: f64,
        largest_difference: f32,
    }

    #[derive(Deserialize)]
    struct ExpectedClasses {
        agreeing: usize,
        mean_difference: f64,
        largest_difference: f32,
    }

    /// For 32-bit sums of scores written with three or four digits.
    const CLOSE: f32 = 1e-5;

    fn expected() -> Expected {
        serde_json::from_str(include_str!("../../tests/agreement/expected.json")).unwrap()
    }

    /// Shows every box.
    fn comparison() -> Comparison {
        let view = ViewSettings { min_score: 0.0, ..ViewSettings::default() };
        let same = LabelSet::default();
        Comparison::new(ClassMap::between(&same, &same), view.clone(), view)
    }

    fn boxes(detections: Vec<Detection>) -> Prediction {
        prediction(PredictionContent::Detections(detections))
    }

    fn classes(classes: &[(u32, f32)]) -> Prediction {
        let classes = classes.iter().map(|&(index, score)| ClassScore { index, label: String::new(), score });
        prediction(PredictionContent::Classes(classes.collect()))
    }

    fn prediction(prediction: PredictionContent) -> Prediction {
        Prediction::new([300, 300], prediction)
    }

    #[track_caller]
    fn check_close(case: usize, got: f32, expected: f32) {
        let is_close = (got - expected).abs() < CLOSE;
        assert!(is_close, "case {case}: got {got}, expected {expected}, to {CLOSE}");
    }

    #[track_caller]
    fn check_difference(case: usize, got: Option<f32>, expected: Option<f32>) {
        assert_eq!(got.is_some(), expected.is_some(), "case {case}");
        if let Some((got, expected)) = got.zip(expected) {
            check_close(case, got, expected);
        }
    }

    #[test]
    fn equal_scores_are_no_difference() {
        let differences = |largest: f32| ScoreDifferences { count: 2, sum: largest.into(), largest };
        let text = |differences: ScoreDifferences| differences.text(ModelTask::Classification);
        assert_eq!(text(differences(0.0)).unwrap(), "scores of the same top class are identical");
        let expected = "scores of the same top class differ by 0.250 on average and 0.500 at most";
        assert_eq!(text(differences(0.5)).unwrap(), expected);
        assert_eq!(text(ScoreDifferences::default()), None);
    }

    #[test]
    fn small_difference_is_not_rounded_to_none() {
        for (difference, text) in [(0.0, "0.000"), (1.2e-4, "1.2e-4"), (0.0123, "0.012")] {
            assert_eq!(difference_text(difference), text);
        }
    }

    #[test]
    fn box_matches_equal_numpy() {
        let expected = expected();
        let mut comparison = comparison();
        for (number, case) in expected.detections.iter().enumerate() {
            let of = |detections: &[Detection]| -> Vec<ScoredBox> {
                let shown = shown_boxes(&boxes(detections.to_vec()), &comparison.left_view, |class| class);
                shown.boxes
            };
            let BoxMatches { matched, only_left, only_right, other_class } =
                match_boxes(&of(&case.left), &of(&case.right));
            assert_eq!(matched, case.matched, "case {number}");
            assert_eq!(only_left, case.only_left, "case {number}");
            assert_eq!(only_right, case.only_right, "case {number}");
            let confused: Vec<(u32, u32)> =
                other_class.iter().map(|&(one, other)| (case.left[one].class_id, case.right[other].class_id)).collect();
            assert_eq!(confused, case.confused, "case {number}");
            let id = SampleId::from_index(number);
            let (left, right) = (boxes(case.left.clone()), boxes(case.right.clone()));
            comparison.add(id, Some(&left), Some(&right));
        }
        let agreement = comparison.finish();
        for (number, case) in expected.detections.iter().enumerate() {
            let image = agreement.image(SampleId::from_index(number)).unwrap();
            check_close(number, image.disagreement, case.disagreement);
            let largest = case.differences.iter().copied().max_by(f32::total_cmp);
            check_difference(number, image.largest_difference, largest);
        }
        let (summary, expected) = (&agreement.summary, &expected.summary.detection);
        assert_eq!(summary.agreeing, expected.agreeing);
        assert_eq!(
            (summary.matched, summary.only_left, summary.only_right),
            (expected.matched, expected.only_left, expected.only_right)
        );
        let mean = summary.differences.mean().unwrap();
        assert!((mean - expected.mean_difference).abs() < f64::from(CLOSE));
        check_close(0, summary.differences.largest, expected.largest_difference);
    }

    #[test]
    fn class_comparison_equals_numpy() {
        let expected = expected();
        let mut comparison = comparison();
        for (number, case) in expected.classifications.iter().enumerate() {
            let left = prediction(PredictionContent::Classes(case.left.clone()));
            let right = prediction(PredictionContent::Classes(case.right.clone()));
            comparison.add(SampleId::from_index(number), Some(&left), Some(&right));
        }
        let agreement = comparison.finish();
        for (number, case) in expected.classifications.iter().enumerate() {
            let image = agreement.image(SampleId::from_index(number)).unwrap();
            assert_eq!(image.is_flip, case.flipped, "case {number}");
            check_close(number, image.disagreement, case.disagreement);
            check_difference(number, image.largest_difference, case.difference);
        }
        let (summary, expected) = (&agreement.summary, &expected.summary.classification);
        assert_eq!((summary.agreeing, summary.differences.count), (expected.agreeing, expected.agreeing));
        let mean = summary.differences.mean().unwrap();
        assert!((mean - expected.mean_difference).abs() < f64::from(CLOSE));
        check_close(0, summary.differences.largest, expected.largest_difference);
    }

    #[test]
    fn class_change_outranks_score_difference() {
        let mut comparison = comparison();
        let sure = classes(&[(1, 1.0)]);
        comparison.add(SampleId(0), Some(&sure), Some(&classes(&[(1, 0.0)])));
        comparison.add(SampleId(1), Some(&classes(&[(1, 0.01)])), Some(&classes(&[(2, 0.01)])));
        let agreement = comparison.finish();
        let of = |id| agreement.image(SampleId(id)).unwrap().disagreement;
        assert!(of(1) > of(0));
        assert_eq!(
            agreement.summary.confusion,
            [ClassChange { left: 1, right: 2, count: 1, images: [SampleId(1)].into() }]
        );
    }

    #[test]
    fn unpredicted_images_are_counted_only() {
        let mut comparison = comparison();
        let prediction = classes(&[(1, 0.9)]);
        comparison.add(SampleId(0), Some(&prediction), None);
        comparison.add(SampleId(1), None, Some(&prediction));
        comparison.add(SampleId(2), None, Some(&prediction));
        comparison.add(SampleId(3), None, None);
        let agreement = comparison.finish();
        assert_eq!(agreement.summary.compared, 0);
        assert_eq!(agreement.summary.predicted_only_left, 1);
        assert_eq!(agreement.summary.predicted_only_right, 2);
        assert_eq!(agreement.summary.rate(), None);
        assert_eq!(agreement.image(SampleId(0)), None);
        assert!(agreement.column().iter().all(|value| value.is_nan()));
    }

    #[test]
    fn runs_without_boxes_agree() {
        let mut comparison = comparison();
        comparison.add(SampleId(5), Some(&boxes(vec![])), Some(&boxes(vec![])));
        let agreement = comparison.finish();
        let image = agreement.image(SampleId(5)).unwrap();
        assert!(image.agrees() && image.disagreement.abs() < f32::EPSILON);
        assert_eq!(agreement.summary.rate(), Some(1.0));
    }

    #[test]
    fn nan_scores_do_not_affect_sums() {
        let mut comparison = comparison();
        let broken = classes(&[(1, f32::NAN)]);
        comparison.add(SampleId(0), Some(&broken), Some(&classes(&[(1, 0.5)])));
        comparison.add(SampleId(1), Some(&broken), Some(&classes(&[(2, 0.5)])));
        let agreement = comparison.finish();
        assert!(agreement.summary.differences.mean().unwrap().is_finite());
        assert!(agreement.image(SampleId(1)).unwrap().disagreement.is_finite());
    }
}
