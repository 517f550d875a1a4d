//! All boxes of one class over all samples, by score: the quickest way to see which ones are wrong.

use super::facts::Gate;
use super::{Marks, Predictions, SAMPLES_PER_CHECK, Suppressed};
use crate::domain::{ModelTask, SampleId, ViewSettings};

/// One box of a detector, or one image of a classifier by its top class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FilmFrame {
    pub sample: SampleId,
    /// Index into the detections of the sample's prediction; zero for a classifier.
    pub index: u32,
    /// `0.0..=1.0`
    pub score: f32,
}

/// Which end of the scores comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FilmOrder {
    #[default]
    HighestFirst,
    LowestFirst,
}

/// The boxes to show, and their order.
#[derive(Debug, Clone)]
pub struct FilmRequest {
    pub predictions: Predictions,
    pub class: u32,
    /// The settings that decide which boxes of a detector are visible.
    pub view: ViewSettings,
    /// Boxes that are left out because better ones overlap them.
    pub suppressed: Option<Suppressed>,
    pub marks: Marks,
    pub order: FilmOrder,
}

/// The frames, equal scores in the order of the listing. `None` if `cancelled`, which is called now and then, returned
/// true.
pub fn filmstrip(request: &FilmRequest, cancelled: &dyn Fn() -> bool) -> Option<Vec<FilmFrame>> {
    let predictions = &request.predictions;
    let (suppressed, marks) = (request.suppressed.as_ref(), Some(&request.marks));
    let gate = Gate::new(predictions.task(), &request.view, suppressed, marks);
    let mut frames = Vec::new();
    for (number, (sample, summary)) in predictions.iter().enumerate() {
        if number.is_multiple_of(SAMPLES_PER_CHECK) && cancelled() {
            return None;
        }
        let meant = match predictions.task() {
            ModelTask::Classification => 1,
            ModelTask::Detection => summary.classes.len(),
        };
        let visible = gate.visible(sample);
        let boxes = summary.classes.iter().zip(summary.scores).take(meant);
        for (index, (&found, &score)) in boxes.enumerate() {
            let is_shown = predictions.task() == ModelTask::Classification || visible.contains(index, found, score);
            if found == request.class && is_shown {
                frames.push(FilmFrame { sample, index: index as u32, score });
            }
        }
    }
    match request.order {
        FilmOrder::HighestFirst => frames.sort_by(|left, right| right.score.total_cmp(&left.score)),
        FilmOrder::LowestFirst => frames.sort_by(|left, right| left.score.total_cmp(&right.score)),
    }
    Some(frames)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::BoundingBox;
    use crate::review::{Mark, VerdictKind};

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
        FilmRequest {
            predictions: predictions(task),
            class: 1,
            view: view(0.0),
            suppressed: None,
            marks: Marks::default(),
            order: FilmOrder::HighestFirst,
        }
    }

    fn found(request: &FilmRequest) -> Vec<(u32, u32)> {
        let frames = filmstrip(request, &|| false).unwrap();
        let places = frames.iter().map(|frame| (frame.sample.0, frame.index));
        places.collect()
    }

    #[test]
    fn the_boxes_of_a_class_come_by_score_from_either_end() {
        let mut request = request(ModelTask::Detection);
        assert_eq!(found(&request), [(0, 0), (2, 1), (0, 2)]);
        request.view = view(0.5);
        request.order = FilmOrder::LowestFirst;
        assert_eq!(found(&request), [(2, 1), (0, 0)]);
    }

    #[test]
    fn a_box_that_a_person_confirmed_is_there_whatever_the_threshold() {
        let mut request = request(ModelTask::Detection);
        request.view = view(0.5);
        let mark = Mark { boxes: [(2, VerdictKind::Accept)].into(), ..Mark::default() };
        request.marks.set(SampleId(0), mark);
        assert_eq!(found(&request), [(0, 0), (2, 1), (0, 2)]);
    }

    #[test]
    fn boxes_that_better_ones_hide_are_left_out() {
        let mut suppressed = Suppressed::new(0.5);
        let square = BoundingBox::new(0.0, 0.0, 5.0, 5.0);
        suppressed.record(SampleId(0), &[square; 3], &[1, 2, 1], &[0.9, 0.8, 0.3]);
        let request = FilmRequest {
            suppressed: Some(suppressed),
            view: ViewSettings { nms_iou: Some(0.5), ..view(0.0) },
            ..request(ModelTask::Detection)
        };
        // Of the other image nothing is known.
        assert_eq!(found(&request), [(0, 0), (2, 1)]);
    }

    #[test]
    fn of_a_classifier_only_the_top_class_counts_whatever_its_score() {
        let request = FilmRequest { view: view(0.95), ..request(ModelTask::Classification) };
        assert_eq!(found(&request), [(0, 0)]);
    }

    #[test]
    fn a_cancelled_search_ends() {
        let frames = filmstrip(&request(ModelTask::Detection), &|| true);
        assert_eq!(frames, None);
    }
}
