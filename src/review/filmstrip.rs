//! All boxes of one class over all samples, by score: the quickest way to spot wrong ones.

use std::sync::Arc;

use super::arrange::OtherRun;
use super::facts::VisibleBoxes;
use super::outcomes::{OutcomeKind, ShownBox, ShownOutcomes, ShownSuspect};
use super::query::BoxTerm;
use super::sort::float_rank;
use super::{ArrangeRequest, FilmBox, SAMPLES_PER_CHECK, Summary, Suspect, SuspectOrder};
use crate::domain::{BoundingBox, ModelTask, SampleId};

/// A box of a detector, an image of a classifier by its top class, or a missed object.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FilmFrame {
    pub sample: SampleId,
    pub shows: FilmBox,
    /// `0.0..=1.0`; `None` for a missed object.
    pub score: Option<f32>,
    /// The outcome of the box against the ground truth.
    pub outcome: Option<OutcomeKind>,
    /// For a missed object, in pixels of the upright image.
    pub bounds: Option<BoundingBox>,
    /// The suspicious label, if the query is about them.
    pub suspect: Option<Suspect>,
    /// To the box that the strip is sorted by similarity to, `-1.0..=1.0`.
    pub similarity: Option<f32>,
}

/// Boxes of any class, with their similarity to one if they were found by it.
#[derive(Debug, Clone, Default)]
pub struct BoxChoice {
    /// Differs between searches and selections.
    pub number: u64,
    /// By image, then by index.
    rows: Vec<(SampleId, u32, Option<f32>)>,
}

impl BoxChoice {
    /// From the image, the index and the similarity of each box.
    pub fn new(number: u64, mut rows: Vec<(SampleId, u32, Option<f32>)>) -> Self {
        rows.sort_unstable_by_key(|(sample, index, _)| (*sample, *index));
        Self { number, rows }
    }

    /// The chosen boxes of an image.
    fn of(&self, sample: SampleId) -> impl Iterator<Item = (u32, Option<f32>)> {
        let start = self.rows.partition_point(|row| row.0 < sample);
        self.rows[start..].iter().take_while(move |row| row.0 == sample).map(|&(_, index, value)| (index, value))
    }
}

/// Whether low or high scores come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FilmOrder {
    #[default]
    HighestFirst,
    LowestFirst,
}

impl FilmOrder {
    /// Missed objects, which have no score, come last.
    fn sort(self, frames: &mut [FilmFrame]) {
        // Frames are large: a cached key moves each only once.
        frames.sort_by_cached_key(|frame| match (self, frame.score.and_then(float_rank)) {
            (Self::HighestFirst, Some(rank)) => u64::from(u32::MAX) - rank,
            (Self::LowestFirst, Some(rank)) => rank,
            (_, None) => u64::MAX,
        });
    }
}

/// The boxes to show, and their order.
#[derive(Debug, Clone)]
pub struct FilmRequest {
    /// Only images that match the query; a query about ground truth also selects among their boxes.
    pub images: ArrangeRequest,
    /// A class of the model; `None` for all.
    pub class: Option<u32>,
    pub order: FilmOrder,
    /// Applies instead of `order` if the query is about suspicious labels.
    pub suspects: SuspectOrder,
    /// Shows only these, most similar first; by `order` without similarities.
    pub chosen: Option<Arc<BoxChoice>>,
}

/// The frames, with equal scores in listing order and missed objects last. `None` if `cancelled`, which is polled,
/// returned true.
pub fn filmstrip(request: &FilmRequest, cancelled: &dyn Fn() -> bool) -> Option<Vec<FilmFrame>> {
    let images = &request.images;
    let (Some(predictions), Some(gate)) = (&images.predictions, images.gate()) else {
        return Some(Vec::new());
    };
    let other = images.other.as_ref().map(OtherRun::gate);
    let filter = images.filter();
    let about_truth = filter.about_truth();
    let is_about_suspects = !about_truth.is_empty() && about_truth.iter().all(|term| term.is_about_suspects());
    let mut frames = Vec::new();
    for (number, (id, summary)) in predictions.iter().enumerate() {
        if number.is_multiple_of(SAMPLES_PER_CHECK) && cancelled() {
            return None;
        }
        let Some(sample) = images.samples.get(id.index()) else {
            continue;
        };
        let candidate = images.candidate(id, sample, Some(&gate), other.as_ref());
        if !filter.passes(&candidate) {
            continue;
        }
        let image = FilmImage { sample: id, summary, shown: candidate.outcomes, class: request.class };
        match candidate.outcomes {
            _ if request.chosen.is_some() => frames.extend(image.chosen(request.chosen.as_deref(), gate.visible(id))),
            _ if about_truth.is_empty() => frames.extend(image.predicted(predictions.task(), gate.visible(id))),
            Some(shown) if is_about_suspects => frames.extend(image.suspects(shown, &about_truth)),
            Some(shown) => frames.extend(image.outcomes(shown, &about_truth)),
            None => {}
        }
    }
    if frames.iter().any(|frame| frame.similarity.is_some()) {
        let similarity = |frame: &FilmFrame| frame.similarity.unwrap_or(f32::MIN);
        frames.sort_by(|left, right| similarity(right).total_cmp(&similarity(left)));
    } else if is_about_suspects && request.chosen.is_none() {
        let rank = |frame: &FilmFrame| request.suspects.rank(&frame.suspect?, frame.score);
        frames.sort_by(|left, right| match (rank(left), rank(right)) {
            (Some(left), Some(right)) => right.total_cmp(&left),
            (left, right) => left.is_none().cmp(&right.is_none()),
        });
    } else {
        request.order.sort(&mut frames);
    }
    Some(frames)
}

/// An image whose boxes may be shown.
struct FilmImage<'a> {
    sample: SampleId,
    summary: Summary<'a>,
    shown: Option<ShownOutcomes<'a>>,
    /// A class of the model; `None` for all.
    class: Option<u32>,
}

impl<'a> FilmImage<'a> {
    fn frame(&self, shows: FilmBox, score: Option<f32>) -> FilmFrame {
        let objects = self.shown.map_or(&[][..], |shown| shown.outcomes.objects);
        let boxes = self.shown.map_or(&[][..], |shown| shown.outcomes.boxes);
        let (outcome, bounds) = match shows {
            FilmBox::Predicted(index) => (boxes.get(index as usize).and_then(|outcome| outcome.kind), None),
            FilmBox::FalseNegative(index) => (None, objects.get(index as usize).map(|object| object.bounds)),
        };
        FilmFrame { sample: self.sample, shows, score, outcome, bounds, suspect: None, similarity: None }
    }

    fn is_class(&self, class: Option<u32>) -> bool {
        self.class.is_none_or(|wanted| class == Some(wanted))
    }

    /// The visible boxes of the class, or the image of a classifier.
    fn predicted(self, task: ModelTask, visible: VisibleBoxes<'a>) -> impl Iterator<Item = FilmFrame> {
        let meant = match task {
            ModelTask::Classification => 1,
            ModelTask::Detection => self.summary.classes.len(),
        };
        let boxes = self.summary.classes.iter().zip(self.summary.scores).take(meant).enumerate();
        boxes.filter_map(move |(index, (&class, &score))| {
            let is_shown = task == ModelTask::Classification || visible.contains(index, class, score);
            (self.class == Some(class) && is_shown).then(|| self.frame(FilmBox::Predicted(index as u32), Some(score)))
        })
    }

    /// The visible ones of the chosen boxes.
    fn chosen(self, chosen: Option<&'a BoxChoice>, visible: VisibleBoxes<'a>) -> impl Iterator<Item = FilmFrame> {
        let boxes = chosen.into_iter().flat_map(move |chosen| chosen.of(self.sample));
        boxes.filter_map(move |(index, similarity)| {
            let place = index as usize;
            let (&class, &score) = self.summary.classes.get(place).zip(self.summary.scores.get(place))?;
            let is_shown = self.is_class(Some(class)) && visible.contains(place, class, score);
            let frame = self.frame(FilmBox::Predicted(index), Some(score));
            is_shown.then_some(FilmFrame { similarity, ..frame })
        })
    }

    /// The suspicious labels that match a term.
    fn suspects(self, shown: ShownOutcomes<'a>, terms: &[&'a BoxTerm]) -> impl Iterator<Item = FilmFrame> {
        let mut suspects: Vec<ShownSuspect> = terms.iter().flat_map(|term| term.suspects_of(shown)).collect();
        suspects.sort_by_key(|found| found.shows);
        suspects.dedup_by_key(|found| found.shows);
        suspects.into_iter().filter_map(move |ShownSuspect { suspect, shows, score }| {
            let object = suspect.object.and_then(|object| shown.outcomes.objects.get(object as usize));
            let found = suspect.found.and_then(|found| self.summary.classes.get(found as usize)).copied();
            let labeled = object.and_then(|object| shown.classes.get(object.class as usize)?.of_model);
            let is_class = self.is_class(found) || self.is_class(labeled);
            is_class.then(|| FilmFrame { suspect: Some(suspect), ..self.frame(shows, score) })
        })
    }

    /// The boxes that match a term, then the missed objects.
    fn outcomes(self, shown: ShownOutcomes<'a>, terms: &[&'a BoxTerm]) -> impl Iterator<Item = FilmFrame> {
        let mut boxes: Vec<ShownBox> = terms.iter().flat_map(|term| term.boxes_of(shown)).collect();
        boxes.sort_by_key(|found| found.index);
        boxes.dedup_by_key(|found| found.index);
        let mut objects: Vec<_> = terms.iter().flat_map(|term| term.objects_of(shown)).collect();
        objects.sort_by_key(|missed| missed.index);
        objects.dedup_by_key(|missed| missed.index);
        let boxes = boxes
            .into_iter()
            .map(|found| (FilmBox::Predicted(found.index as u32), Some(found.score), Some(found.class)));
        let objects = objects.into_iter().map(move |missed| {
            let class = shown.classes.get(missed.object.class as usize).and_then(|class| class.of_model);
            (FilmBox::FalseNegative(missed.index as u32), None, class)
        });
        let all = boxes.chain(objects);
        let of_class = all.filter(move |(_, _, class)| self.class.is_none_or(|wanted| *class == Some(wanted)));
        of_class.map(move |(shows, score, _)| self.frame(shows, score))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{BoundingBox, Sample, SampleUri, ViewSettings};
    use crate::review::{Mark, VerdictKind};
    use crate::review::{Predictions, Suppressed};

    fn predictions(task: ModelTask) -> Predictions {
        let mut predictions = Predictions::new(task);
        predictions.record_summary(SampleId(0), 10, 10, &[1, 2, 1], &[0.9, 0.8, 0.3]);
        predictions.record_summary(SampleId(2), 10, 10, &[2, 1], &[0.7, 0.6]);
        predictions
    }

    fn view(min_score: f32) -> ViewSettings {
        ViewSettings { min_score, ..ViewSettings::default() }
    }

    fn request(task: ModelTask) -> FilmRequest {
        let samples =
            (0..3).map(|index| Sample::new(SampleUri::new(format!("/{index}.jpg")), format!("{index}.jpg"), 1));
        FilmRequest {
            images: ArrangeRequest {
                samples: samples.collect(),
                predictions: Some(predictions(task)),
                view: view(0.0),
                ..ArrangeRequest::default()
            },
            class: Some(1),
            order: FilmOrder::HighestFirst,
            suspects: SuspectOrder::Gain,
            chosen: None,
        }
    }

    fn found(request: &FilmRequest) -> Vec<(u32, u32)> {
        let frames = filmstrip(request, &|| false).unwrap();
        let places = frames.iter().map(|frame| match frame.shows {
            FilmBox::Predicted(index) => (frame.sample.0, index),
            FilmBox::FalseNegative(index) => (frame.sample.0, 100 + index),
        });
        places.collect()
    }

    #[test]
    fn boxes_of_a_class_are_ordered_by_score() {
        let mut request = request(ModelTask::Detection);
        assert_eq!(found(&request), [(0, 0), (2, 1), (0, 2)]);
        request.images.view = view(0.5);
        request.order = FilmOrder::LowestFirst;
        assert_eq!(found(&request), [(2, 1), (0, 0)]);
    }

    #[test]
    fn similar_boxes_of_all_classes_are_ordered_by_similarity() {
        let mut request = request(ModelTask::Detection);
        request.class = None;
        let rows = [(SampleId(2), 0, 0.5), (SampleId(0), 2, 0.4), (SampleId(0), 0, 0.9), (SampleId(1), 0, 1.0)];
        let rows = rows.map(|(sample, index, similarity)| (sample, index, Some(similarity)));
        request.chosen = Some(Arc::new(BoxChoice::new(1, rows.to_vec())));
        assert_eq!(found(&request), [(0, 0), (2, 0), (0, 2)]);
        request.images.view = view(0.5);
        assert_eq!(found(&request), [(0, 0), (2, 0)]);
        request.class = Some(2);
        assert_eq!(found(&request), [(2, 0)]);
    }

    #[test]
    fn selected_boxes_are_ordered_by_score() {
        let mut request = request(ModelTask::Detection);
        request.class = None;
        let rows = [(SampleId(0), 2), (SampleId(2), 1), (SampleId(0), 1)];
        let rows = rows.map(|(sample, index)| (sample, index, None));
        request.chosen = Some(Arc::new(BoxChoice::new(1, rows.to_vec())));
        assert_eq!(found(&request), [(0, 1), (2, 1), (0, 2)]);
        request.order = FilmOrder::LowestFirst;
        assert_eq!(found(&request), [(0, 2), (2, 1), (0, 1)]);
    }

    #[test]
    fn accepted_box_is_included_at_any_score() {
        let mut request = request(ModelTask::Detection);
        request.images.view = view(0.5);
        let mark = Mark { boxes: [(2, VerdictKind::Accept)].into(), ..Mark::default() };
        request.images.marks.set(SampleId(0), mark);
        assert_eq!(found(&request), [(0, 0), (2, 1), (0, 2)]);
    }

    #[test]
    fn suppressed_boxes_are_excluded() {
        let mut suppressed = Suppressed::new(0.5);
        let square = BoundingBox::new(0.0, 0.0, 5.0, 5.0);
        suppressed.record(SampleId(0), &[square; 3], &[1, 2, 1], &[0.9, 0.8, 0.3]);
        let mut request = request(ModelTask::Detection);
        request.images.suppressed = Some(suppressed);
        request.images.view = ViewSettings { nms_iou: Some(0.5), ..view(0.0) };
        // Nothing is known about the other image.
        assert_eq!(found(&request), [(0, 0), (2, 1)]);
    }

    #[test]
    fn classifier_counts_only_the_top_class() {
        let mut request = request(ModelTask::Classification);
        request.images.view = view(0.95);
        assert_eq!(found(&request), [(0, 0)]);
    }

    #[test]
    fn canceled_search_ends() {
        let frames = filmstrip(&request(ModelTask::Detection), &|| true);
        assert_eq!(frames, None);
    }
}
