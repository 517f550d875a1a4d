//! The facts about a prediction for sorting and counting, in one pass over its scores.

use super::by_class::ByClass;
use super::suppressed::HiddenBoxes;
use super::{Mark, Marks, Predictions, Summary, Suppressed, VerdictKind};
use crate::domain::{ModelTask, SampleId, ViewSettings};

/// A view and the verdicts in columnar form: the same result as [`ViewSettings::visible_detections`], with one or two
/// comparisons per box.
#[derive(Debug, Clone)]
pub struct Gate<'a> {
    task: ModelTask,
    /// The minimum score per class; NaN, which no score reaches, for a hidden class.
    least: ByClass<f32>,
    /// The minimum score, if it is the same for all classes.
    least_of_all: Option<f32>,
    min_class_score: f32,
    suppressed: Option<&'a Suppressed>,
    marks: Option<&'a Marks>,
}

/// Which boxes of one sample are visible.
#[derive(Debug, Clone, Copy)]
pub struct VisibleBoxes<'a> {
    gate: &'a Gate<'a>,
    /// `None` if overlaps are shown, or unknown.
    hidden: Option<HiddenBoxes<'a>>,
    /// The mark, if any box of the sample was judged.
    mark: Option<&'a Mark>,
}

impl VisibleBoxes<'_> {
    pub fn contains(&self, at: usize, class: u32, score: f32) -> bool {
        self.gate.passes(class, score) && !self.is_suppressed(at) || self.is_confirmed(at)
    }

    pub fn shows_class(&self, class: u32) -> bool {
        self.gate.shows_class(class)
    }

    /// Whether its class is shown, or a person confirmed it: such boxes count whatever the threshold.
    pub fn has_class(&self, at: usize, class: u32) -> bool {
        self.gate.shows_class(class) || self.is_confirmed(at)
    }

    /// The indices of the visible boxes.
    pub fn boxes(&self, summary: Summary<'_>) -> impl Iterator<Item = usize> {
        let boxes = summary.classes.iter().zip(summary.scores).enumerate();
        let visible = boxes.filter(|&(at, (&class, &score))| self.contains(at, class, score));
        visible.map(|(at, _)| at)
    }

    pub fn is_suppressed(&self, at: usize) -> bool {
        self.hidden.is_some_and(|hidden| hidden.hides(at))
    }

    fn is_confirmed(&self, at: usize) -> bool {
        let verdict = self.mark.and_then(|mark| mark.of_box(at));
        verdict.is_some_and(VerdictKind::confirms)
    }

    /// Whether class and score alone decide.
    fn is_plain(&self) -> bool {
        self.hidden.is_none() && self.mark.is_none()
    }
}

/// Facts about the prediction of one sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Facts {
    /// Visible and added boxes; zero for a classifier.
    pub boxes: u32,
    /// The highest score among visible classes and confirmed boxes, whatever the threshold; `None` if there is none.
    pub best: Option<f32>,
    /// How close the prediction is to changing; see [`Gate::facts`].
    pub margin: Option<f32>,
}

impl<'a> Gate<'a> {
    /// `suppressed` is used only if the view hides overlaps and it was computed for the same IoU. Without `marks`,
    /// nothing is confirmed.
    pub fn new(
        task: ModelTask,
        view: &ViewSettings,
        suppressed: Option<&'a Suppressed>,
        marks: Option<&'a Marks>,
    ) -> Self {
        let classes = view.min_score_by_class.keys().chain(&view.hidden_classes).chain(&view.solo_class);
        let otherwise = match view.solo_class {
            Some(_) => f32::NAN,
            None => view.min_score,
        };
        let mut least = ByClass::new(otherwise);
        let mut is_same = view.solo_class.is_none();
        for &class in classes {
            is_same = false;
            *least.get_mut(class) = if view.shows_class(class) { view.min_score_of(class) } else { f32::NAN };
        }
        Self {
            task,
            least,
            least_of_all: is_same.then_some(view.min_score),
            min_class_score: view.min_class_score,
            suppressed: suppressed.filter(|bits| view.nms_iou == Some(bits.max_iou())),
            marks,
        }
    }

    pub fn task(&self) -> ModelTask {
        self.task
    }

    pub fn shows_class(&self, class: u32) -> bool {
        !self.least.get(class).is_nan()
    }

    /// Whether a box passes the threshold of its class.
    pub fn passes(&self, class: u32, score: f32) -> bool {
        score >= *self.least.get(class)
    }

    /// Whether suppression is known for the boxes of a sample.
    pub fn knows_overlaps(&self, id: SampleId) -> bool {
        self.suppressed.is_some_and(|bits| bits.is_known(id))
    }

    pub fn visible(&'a self, id: SampleId) -> VisibleBoxes<'a> {
        let mark = self.marks.and_then(|marks| marks.of(id));
        VisibleBoxes {
            gate: self,
            hidden: self.suppressed.and_then(|bits| bits.image(id)),
            mark: mark.filter(|mark| !mark.boxes.is_empty()),
        }
    }

    /// As [`Mark::judged`].
    pub fn verdict(&'a self, id: SampleId, summary: Summary<'_>) -> Option<VerdictKind> {
        let mark = self.marks?.of(id)?;
        mark.judged(self.visible(id).boxes(summary))
    }

    /// A classifier's top class with its score; `None` if below the minimum score.
    pub fn top_class(&self, summary: Summary<'_>) -> Option<(u32, f32)> {
        let (&class, &score) = (summary.classes.first()?, summary.scores.first()?);
        (score >= self.min_class_score).then_some((class, score))
    }

    /// The margin of a classifier is the difference of its two highest scores. The margin of a detector is the distance
    /// of the closest box to its threshold, on either side: that of the box that the smallest change of the threshold
    /// would show or hide. Verdicts do not change it, so an image keeps its position while it is judged.
    pub fn facts(&self, id: SampleId, summary: Summary<'_>) -> Facts {
        match self.task {
            ModelTask::Classification => classification_facts(summary.scores),
            ModelTask::Detection => {
                let visible = self.visible(id);
                match self.least_of_all.filter(|_| visible.is_plain()) {
                    Some(least) => plain_facts(summary.scores, least),
                    None => self.detection_facts(summary, visible),
                }
            }
        }
    }

    fn detection_facts(&self, summary: Summary<'_>, visible: VisibleBoxes<'_>) -> Facts {
        let mut boxes = visible.mark.map_or(0, |mark| mark.added() as u32);
        let (mut best, mut margin) = (f32::NAN, f32::NAN);
        for (at, (&class, &score)) in summary.classes.iter().zip(summary.scores).enumerate() {
            boxes += u32::from(visible.contains(at, class, score));
            if visible.has_class(at, class) {
                best = best.max(score);
            }
            if !visible.is_suppressed(at) {
                // NaN for a hidden class, which `min` ignores.
                margin = margin.min((score - *self.least.get(class)).abs());
            }
        }
        Facts { boxes, best: number(best), margin: number(margin) }
    }
}

fn classification_facts(scores: &[f32]) -> Facts {
    let best = scores.first().copied();
    let second = scores.get(1).copied().unwrap_or(0.0);
    Facts { boxes: 0, best: best.and_then(number), margin: best.and_then(|best| number(best - second)) }
}

/// The facts if every class has the same threshold and nothing is suppressed: only scores matter. (`max` and `min`
/// ignore NaN.)
fn plain_facts(scores: &[f32], least: f32) -> Facts {
    let boxes = scores.iter().map(|score| u32::from(*score >= least)).sum();
    let best = scores.iter().copied().fold(f32::NAN, f32::max);
    let distances = scores.iter().map(|score| (score - least).abs());
    let margin = distances.fold(f32::NAN, f32::min);
    Facts { boxes, best: number(best), margin: number(margin) }
}

fn number(value: f32) -> Option<f32> {
    (!value.is_nan()).then_some(value)
}

/// The verdict of one image for sorting and filtering ([`super::Mark::judged`]); `None` while it is unjudged.
pub fn verdict_of_image(
    predictions: Option<&Predictions>,
    view: &ViewSettings,
    suppressed: Option<&Suppressed>,
    marks: &Marks,
    id: SampleId,
) -> Option<VerdictKind> {
    let mark = marks.of(id)?;
    let summary = predictions.and_then(|predictions| Some((predictions, predictions.summary(id)?)));
    match summary.filter(|_| !mark.boxes.is_empty()) {
        Some((predictions, summary)) => {
            let gate = Gate::new(predictions.task(), view, suppressed, Some(marks));
            gate.verdict(id, summary)
        }
        None => mark.verdict,
    }
}

/// The number of boxes of these samples that `view` shows, or of all boxes without a view; with the boxes that a person
/// added.
pub fn count_boxes(
    predictions: &Predictions,
    view: Option<&ViewSettings>,
    suppressed: Option<&Suppressed>,
    marks: &Marks,
    samples: impl Iterator<Item = SampleId>,
) -> usize {
    let gate = view.map(|view| Gate::new(predictions.task(), view, suppressed, Some(marks)));
    let mut count = 0;
    for sample in samples {
        let Some(summary) = predictions.summary(sample) else {
            continue;
        };
        count += match &gate {
            Some(gate) => gate.visible(sample).boxes(summary).count(),
            None => summary.scores.len(),
        };
        count += marks.of(sample).map_or(0, Mark::added);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::BoundingBox;
    use crate::review::testing::Random;

    #[test]
    fn columnar_form_equals_the_view() {
        let mut random = Random::new(1);
        for round in 0..200_u32 {
            let mut view = ViewSettings { min_score: random.unit(), ..ViewSettings::default() };
            for class in 0..6 {
                match random.below(4) {
                    0 => drop(view.min_score_by_class.insert(class, random.unit())),
                    1 => drop(view.hidden_classes.insert(class)),
                    _ => {}
                }
            }
            view.hidden_classes.insert(u32::MAX);
            view.solo_class = (round % 3 == 0).then(|| random.below(7) as u32);
            let gate = Gate::new(ModelTask::Detection, &view, None, None);
            for class in [0, 1, 2, 3, 4, 5, 6, 1 << 20, u32::MAX] {
                let scores = [f32::NAN, 0.0, 1.0, f32::INFINITY];
                for score in scores.into_iter().chain((0..5).map(|_| random.unit())) {
                    let expected = view.passes(class, score);
                    assert_eq!(gate.passes(class, score), expected, "{view:?} {class} {score}");
                }
                assert_eq!(gate.shows_class(class), view.shows_class(class));
            }
        }
    }

    #[test]
    fn fast_and_general_paths_agree() {
        let mut random = Random::new(2);
        let view = ViewSettings::default();
        let gate = Gate::new(ModelTask::Detection, &view, None, None);
        for _ in 0..200 {
            let count = random.below(40);
            let scores: Vec<f32> = (0..count).map(|at| if at % 7 == 6 { f32::NAN } else { random.unit() }).collect();
            let classes = vec![3; count];
            let summary = Summary { width: 1, height: 1, classes: &classes, scores: &scores };
            let fast = gate.facts(SampleId(0), summary);
            assert_eq!(fast, gate.detection_facts(summary, gate.visible(SampleId(0))));
        }
    }

    #[test]
    fn classifier_certainty_is_its_top_score_margin() {
        let facts = classification_facts(&[0.5, 0.25, 0.1]);
        assert_eq!((facts.best, facts.margin), (Some(0.5), Some(0.25)));
        assert_eq!(classification_facts(&[0.5]).margin, Some(0.5));
        assert_eq!(classification_facts(&[]).margin, None);
    }

    #[test]
    fn boxes_are_counted_as_shown() {
        let mut predictions = Predictions::new(ModelTask::Detection);
        predictions.record_summary(SampleId(0), 9, 9, &[1, 1, 2], &[0.9, 0.8, 0.3]);
        predictions.record_summary(SampleId(2), 9, 9, &[1], &[0.7]);
        let mut suppressed = Suppressed::new(0.5);
        let square = BoundingBox::new(0.0, 0.0, 5.0, 5.0);
        suppressed.record(SampleId(0), &[square; 3], &[1, 1, 2], &[0.9, 0.8, 0.3]);
        let view = ViewSettings { min_score: 0.5, ..ViewSettings::default() };
        let without_overlaps = ViewSettings { nms_iou: Some(0.5), ..view.clone() };
        let all = [0, 1, 2].map(SampleId);
        let nothing_judged = Marks::default();
        let mut faint_confirmed = Marks::default();
        let mark = Mark { boxes: [(2, VerdictKind::Accept)].into(), ..Mark::default() };
        faint_confirmed.set(SampleId(0), mark);
        let mut two_added = Marks::default();
        let added = [(1, VerdictKind::Added), (2, VerdictKind::Added)].into();
        two_added.set(SampleId(2), Mark { boxes: added, ..Mark::default() });
        for (view, marks, samples, expected) in [
            (None, &nothing_judged, &all[..], 4),
            (Some(&view), &nothing_judged, &all[..], 3),
            (Some(&view), &faint_confirmed, &all[..], 4),
            (Some(&without_overlaps), &nothing_judged, &all[..], 2),
            (Some(&without_overlaps), &faint_confirmed, &all[..], 3),
            (Some(&view), &faint_confirmed, &all[2..], 1),
            (Some(&view), &two_added, &all[2..], 3),
            (None, &two_added, &all[2..], 3),
        ] {
            let samples = samples.iter().copied();
            let count = count_boxes(&predictions, view, Some(&suppressed), marks, samples);
            assert_eq!(count, expected);
        }
    }
}
