//! The evaluation pipeline: opens ground truth, matches it with predictions, measures.
//!
//! The CLI and the window call the same functions, so both get the same numbers.

mod corrected;
mod patterns;
mod sides;
mod truth;

use std::sync::Arc;

use crate::annotations::matching::CorrectionsError;
use crate::annotations::{AnnotationsError, ClassNamesError};
use crate::domain::{BoundingBox, BoxRole, ModelTask, NoPredictions, SampleId, counted, grouped};
use crate::evaluation::{
    ClassificationEvaluation, ClassificationIntervals, ConfidentErrors, ConfidentThresholds, DetectionDraws,
    DetectionEvaluation, DetectionIntervals, DrawnNumber, Evaluated, FoundOutcomes, ImageSides, Metrics, NoTruth,
    Outcome, Sides, Suspicious, SuspiciousLabels, TrueObject, each_draw, repeated, training_sign,
};
use crate::image::source::SourceError;
use crate::project::StoreError;
use crate::review::{BoxOutcome, NO_OBJECT, ObjectOutcome, OutcomeKind, Outcomes, Predictions};
use crate::tasks::{Cancelled, ProgressUnit, TaskControl};

pub use corrected::correct;
pub use patterns::{EmbeddedImages, KnownImages, error_patterns};
pub use sides::{FileSide, ListedSamples, RunSide, annotation_sides, run_sides};
pub use truth::{TruthFrom, TruthScores, open_truth, truth_of};

/// The number of example names in a message.
const MAX_NAMED: usize = 5;

#[derive(Debug, thiserror::Error)]
pub enum EvaluateError {
    #[error("canceled")]
    Cancelled(#[from] Cancelled),
    #[error("{0}")]
    Annotations(AnnotationsError),
    #[error("{0}")]
    Store(#[from] StoreError),
    #[error("{0}")]
    Source(#[from] SourceError),
    #[error("{name} {reason}")]
    NoTruth { name: String, reason: NoTruth },
    #[error("{name} {reason}")]
    ClassNames { name: String, reason: ClassNamesError },
    #[error("{name} has no usable entries, for example: {problem}")]
    NothingUsable { name: String, problem: String },
    #[error("The predictions have no scores, so they look like ground truth: {name}")]
    NoScores { name: String },
    /// Boxes against classes of images.
    #[error("The ground truth has {}, but {predictions} has {}", contents_of(*truth), other_contents_of(*truth))]
    OtherTask { truth: ModelTask, predictions: String },
    #[error(transparent)]
    NoPredictions(#[from] NoPredictions),
    #[error("The class corrections do not match: {0}")]
    Corrections(#[from] CorrectionsError),
    #[error(
        "The ground truth and the predictions have no classes in common. Predictions: {predicted}; ground truth: \
         {truth}"
    )]
    NoClassInCommon { predicted: String, truth: String },
    #[error("No ground-truth image has a prediction. Ground truth: {truth}; predictions: {predicted}")]
    NoImageInCommon { predicted: String, truth: String },
    #[error(
        "{} the same file name on both sides, but their folders differ, so these may be different images. Ground \
         truth: {truth}; predictions: {predicted}",
        counted(*count, "image has", "images have")
    )]
    OtherFolders { count: usize, truth: String, predicted: String },
    #[error(
        "The image sizes contradict each other: {example}. Boxes for resized or rotated images do not match the \
         originals"
    )]
    OtherSizes { example: String },
    #[error("The boxes in {side} are fractions of images of unknown size, such as {image}")]
    UnknownSize { side: &'static str, image: String },
    #[error("The boxes could not be evaluated: {0}")]
    Unmeasured(String),
}

impl From<AnnotationsError> for EvaluateError {
    fn from(error: AnnotationsError) -> Self {
        match error {
            AnnotationsError::Cancelled(cancelled) => Self::Cancelled(cancelled),
            error => Self::Annotations(error),
        }
    }
}

/// What annotations for a task consist of.
fn contents_of(task: ModelTask) -> &'static str {
    match task {
        ModelTask::Detection => "boxes",
        ModelTask::Classification => "image classes",
    }
}

/// What annotations for the other task consist of.
fn other_contents_of(task: ModelTask) -> &'static str {
    match task {
        ModelTask::Detection => contents_of(ModelTask::Classification),
        ModelTask::Classification => contents_of(ModelTask::Detection),
    }
}

/// The first ones, as a list.
fn some_of<T: ToString>(names: impl ExactSizeIterator<Item = T>) -> String {
    let more = names.len().saturating_sub(MAX_NAMED);
    let mut list: Vec<String> = names.take(MAX_NAMED).map(|name| name.to_string()).collect();
    if more > 0 {
        list.push(format!("and {} more", grouped(more)));
    }
    list.join(", ")
}

/// What the 95% intervals are measured on, and the number of resamples.
pub struct Draws {
    times: usize,
    of: DrawnFrom,
}

#[expect(clippy::large_enum_variant, reason = "there is one for each evaluation")]
enum DrawnFrom {
    Detection(DetectionDraws),
    /// Whether each image is correct with one class and with five.
    Classification(Vec<[bool; 2]>),
}

/// Optional results of a measurement.
#[derive(Default)]
pub struct Extras<'o> {
    /// The number of resamples for the intervals; nothing is collected for 0.
    pub draws: usize,
    /// Collects the outcome of each box of images with a sample, and their suspicious labels.
    pub outcomes: Option<&'o mut Outcomes>,
    /// Whether to find suspicious labels.
    pub suspicious: bool,
}

/// Measures everything except the intervals. Progress is in images.
///
/// # Errors
/// Canceled, or the boxes cannot be measured.
pub fn measure(
    sides: Sides,
    mut extras: Extras<'_>,
    control: &TaskControl,
) -> Result<(Evaluated, Option<Draws>), EvaluateError> {
    control.begin(ProgressUnit::Images);
    control.set_total(Some(sides.images.len() as u64));
    let (counted, matching, split) = (sides.counted.clone(), sides.matching.clone(), sides.split.clone());
    let mut errors = ConfidentErrors::default();
    let (metrics, of, suspicious) = match sides.task {
        ModelTask::Detection => detection(sides, &mut extras, &mut errors, control)?,
        ModelTask::Classification => classification(sides, &mut extras, &mut errors, control)?,
    };
    control.checkpoint()?;
    let suspicious = suspicious.map(|mut suspicious| {
        suspicious.training_sign = training_sign(&counted.truth, split.as_deref(), &metrics);
        add_suspects(extras.outcomes.as_deref_mut(), &suspicious);
        Arc::new(suspicious)
    });
    let evaluated = Evaluated { metrics, counted, matching, confident_errors: errors.finish(), suspicious };
    Ok((evaluated, of.map(|of| Draws { times: extras.draws, of })))
}

/// As [`measure`]; also returns the outcome of each box of `predictions`, which must belong to the run in `sides`.
///
/// # Errors
/// As [`measure`].
pub fn measure_boxes(
    sides: Sides,
    predictions: Predictions,
    extras: Extras<'_>,
    control: &TaskControl,
) -> Result<(Evaluated, Option<Draws>, Outcomes), EvaluateError> {
    let named = sides.classes.iter().map(|class| (class.id, class.name.clone()));
    let mut outcomes = Outcomes::new(predictions, named, sides.model_classes.iter().copied());
    let mut extras = extras;
    extras.outcomes = Some(&mut outcomes);
    let (evaluated, draws) = measure(sides, extras, control)?;
    Ok((evaluated, draws, outcomes))
}

/// All metrics; with intervals unless `extras.draws` is 0.
///
/// # Errors
/// As [`measure`].
pub fn measure_all(sides: Sides, extras: Extras<'_>, control: &TaskControl) -> Result<Evaluated, EvaluateError> {
    let (mut evaluated, draws) = measure(sides, extras, control)?;
    if let Some(draws) = draws {
        draws.add_intervals(&mut evaluated, control)?;
    }
    Ok(evaluated)
}

impl Draws {
    /// Adds the intervals. Returns the resampled metrics: AP, AP50, AP75, AR100, precision, recall and F1; or top-1 and
    /// top-5.
    ///
    /// # Errors
    /// Canceled.
    pub fn add_intervals(
        self,
        evaluated: &mut Evaluated,
        control: &TaskControl,
    ) -> Result<Vec<DrawnNumber>, EvaluateError> {
        control.set_step("computing intervals");
        let is_cancelled = || control.checkpoint().is_err();
        let draws = self.times;
        let drawn = match (self.of, &mut evaluated.metrics) {
            (DrawnFrom::Detection(of_draws), Metrics::Detection { intervals, .. }) => {
                let drawn = of_draws.numbers(draws, is_cancelled);
                *intervals = drawn.as_ref().map(DetectionIntervals::from_drawn);
                drawn.map(Vec::from)
            }
            (DrawnFrom::Classification(hits), Metrics::Classification { metrics, intervals }) if !hits.is_empty() => {
                let drawn = drawn_shares(&hits, metrics.top5.is_some(), draws, is_cancelled);
                *intervals = drawn
                    .as_ref()
                    .map(|[top1, top5]| ClassificationIntervals { top1: top1.interval(), top5: top5.interval() });
                drawn.map(Vec::from)
            }
            _ => None,
        };
        control.checkpoint()?;
        Ok(drawn.unwrap_or_default())
    }
}

fn drawn_shares(
    hits: &[[bool; 2]],
    has_top5: bool,
    draws: usize,
    is_cancelled: impl Fn() -> bool + Sync,
) -> Option<[DrawnNumber; 2]> {
    let shares = |draw| {
        let times = repeated(draw, hits.len());
        let share = |place: usize| {
            let hits = hits.iter().zip(&times).filter(|(hit, _)| hit[place]);
            Some(hits.map(|(_, times)| f64::from(*times)).sum::<f64>() / times.len() as f64)
        };
        [share(0), share(1).filter(|_| has_top5)]
    };
    let drawn = each_draw(draws, shares, is_cancelled)?;
    Some([0, 1].map(|place| DrawnNumber::Repeated(drawn.iter().map(|shares| shares[place]).collect())))
}

fn add_suspects(outcomes: Option<&mut Outcomes>, suspicious: &Suspicious) {
    let Some(outcomes) = outcomes else { return };
    for label in &suspicious.labels {
        let Some(sample) = label.sample else { continue };
        outcomes.add_suspect(sample, label.suspect());
    }
}

fn detection(
    sides: Sides,
    extras: &mut Extras<'_>,
    errors: &mut ConfidentErrors,
    control: &TaskControl,
) -> Result<(Metrics, Option<DrawnFrom>, Option<Suspicious>), EvaluateError> {
    let thresholds = sides.thresholds;
    let mut have_objects = vec![false; sides.classes.len()];
    for truth in sides.images.iter().flat_map(|image| &image.objects.truths) {
        have_objects[truth.class as usize] = true;
    }
    let mut evaluation = DetectionEvaluation::with_objects(sides.classes, thresholds.clone(), &have_objects);
    let mut suspicious = extras.suspicious.then(SuspiciousLabels::default);
    let mut draws = (extras.draws > 0 || extras.suspicious).then(|| DetectionDraws::new(thresholds.clone()));
    for image in sides.images {
        control.checkpoint()?;
        let found = evaluation.add(&image.objects);
        errors.add_boxes(&image, &found, &thresholds);
        if let (Some(outcomes), Some(sample)) = (extras.outcomes.as_deref_mut(), image.sample) {
            add_boxes(outcomes, sample, &image, &found);
        }
        if let Some(draws) = &mut draws {
            draws.add(&image.objects);
        }
        if let (Some(suspicious), Some(draws)) = (&mut suspicious, &draws) {
            suspicious.add_boxes(&image, &found, draws);
        }
        control.add_done(1);
    }
    control.set_step("measuring");
    let metrics = evaluation.finish().map_err(EvaluateError::Unmeasured)?;
    let metrics = Metrics::Detection { metrics: Box::new(metrics), intervals: None };
    let suspicious = match (suspicious, &mut draws) {
        (Some(suspicious), Some(draws)) => {
            control.set_step("ranking suspicious labels");
            draws.sort();
            let found = suspicious.finish(draws, || control.checkpoint().is_err());
            control.checkpoint()?;
            found
        }
        _ => None,
    };
    Ok((metrics, draws.filter(|_| extras.draws > 0).map(DrawnFrom::Detection), suspicious))
}

fn add_boxes(outcomes: &mut Outcomes, sample: SampleId, image: &ImageSides, found: &FoundOutcomes) {
    let Some(mut boxes) = unevaluated(outcomes, sample) else {
        return;
    };
    let mut objects: Vec<ObjectOutcome> = image.objects.truths.iter().map(object).collect();
    for (index, (&at, &outcome)) in image.stored.iter().zip(found.outcomes()).enumerate() {
        let (object, iou) = found.nearest(&image.objects, index).unwrap_or((NO_OBJECT, 0.0));
        if let Outcome { kind: OutcomeKind::Correct, truth: Some(truth) } = outcome
            && let Some(shown) = objects.get_mut(truth)
        {
            shown.shown_by = at;
        }
        if let Some(of_box) = boxes.get_mut(at as usize) {
            *of_box = BoxOutcome { kind: Some(outcome.kind), object, iou: iou as f32 };
        }
    }
    outcomes.add(sample, &boxes, &objects);
}

/// One outcome per box or class of the stored prediction.
fn unevaluated(outcomes: &Outcomes, sample: SampleId) -> Option<Vec<BoxOutcome>> {
    let stored = outcomes.predictions().summary(sample)?.classes.len();
    Some(vec![BoxOutcome { kind: None, object: NO_OBJECT, iou: 0.0 }; stored])
}

fn object(truth: &TrueObject) -> ObjectOutcome {
    ObjectOutcome {
        class: truth.class,
        bounds: truth.bounds.into(),
        shown_by: NO_OBJECT,
        counts: truth.role == BoxRole::Object,
    }
}

fn classification(
    sides: Sides,
    extras: &mut Extras<'_>,
    errors: &mut ConfidentErrors,
    control: &TaskControl,
) -> Result<(Metrics, Option<DrawnFrom>, Option<Suspicious>), EvaluateError> {
    let labeled = || sides.images.iter().filter_map(|image| Some((image.truth_class?, image.classes.as_slice())));
    let thresholds =
        extras.suspicious.then(|| ConfidentThresholds::new(labeled(), sides.classes.len(), sides.matched.places.len()));
    let mut evaluation = ClassificationEvaluation::new(sides.classes);
    let mut suspicious = SuspiciousLabels::default();
    let mut hits = Vec::new();
    for image in sides.images {
        control.checkpoint()?;
        control.add_done(1);
        let Some(truth) = image.truth_class else { continue };
        evaluation.add(truth, &image.classes);
        errors.add_class(&image, truth);
        if let Some(thresholds) = &thresholds {
            suspicious.add_class(&image, truth, thresholds);
        }
        let is_within = |most: usize| image.classes.iter().take(most).any(|(class, _)| *class == truth);
        hits.push([is_within(1), is_within(5)]);
        if let (Some(outcomes), Some(sample)) = (extras.outcomes.as_deref_mut(), image.sample) {
            add_class(outcomes, sample, truth, is_within(1));
        }
    }
    let metrics = Metrics::Classification { metrics: Box::new(evaluation.finish()), intervals: None };
    let draws = (extras.draws > 0).then_some(DrawnFrom::Classification(hits));
    Ok((metrics, draws, thresholds.map(|thresholds| suspicious.finish_classes(&thresholds))))
}

/// Only the top class has an outcome.
fn add_class(outcomes: &mut Outcomes, sample: SampleId, class: u32, is_right: bool) {
    let Some(mut boxes) = unevaluated(outcomes, sample) else {
        return;
    };
    let kind = if is_right { OutcomeKind::Correct } else { OutcomeKind::Class };
    if let Some(top) = boxes.first_mut() {
        *top = BoxOutcome { kind: Some(kind), object: 0, iou: 0.0 };
    }
    let shown_by = if is_right { 0 } else { NO_OBJECT };
    let bounds = BoundingBox::new(0.0, 0.0, 0.0, 0.0);
    outcomes.add(sample, &boxes, &[ObjectOutcome { class, bounds, shown_by, counts: true }]);
}
