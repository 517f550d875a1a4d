//! All boxes of one class over all samples, by score: the quickest way to see which ones are wrong.

use super::{Answers, SAMPLES_A_LOOK};
use crate::domain::{ModelTask, SampleId};

/// One box of a detector, or one image of a classifier whose top class is meant.
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

/// The frames of a class with a score of at least `min_score` (of a classifier all), equal scores in the order of the listing. `None`
/// once `cancelled` says so, which is asked now and then.
pub fn filmstrip(
    answers: &Answers,
    class: u32,
    min_score: f32,
    order: FilmOrder,
    cancelled: &dyn Fn() -> bool,
) -> Option<Vec<FilmFrame>> {
    let mut frames = Vec::new();
    for (number, (sample, summary)) in answers.iter().enumerate() {
        if number.is_multiple_of(SAMPLES_A_LOOK) && cancelled() {
            return None;
        }
        let meant = match answers.task() {
            ModelTask::Classification => 1,
            ModelTask::Detection => summary.classes.len(),
        };
        let boxes = summary.classes.iter().zip(summary.scores).take(meant);
        for (index, (&found, &score)) in boxes.enumerate() {
            let is_enough = answers.task() == ModelTask::Classification || score >= min_score;
            if found == class && is_enough {
                frames.push(FilmFrame {
                    sample,
                    index: index as u32,
                    score,
                });
            }
        }
    }
    match order {
        FilmOrder::HighestFirst => frames.sort_by(|left, right| right.score.total_cmp(&left.score)),
        FilmOrder::LowestFirst => frames.sort_by(|left, right| left.score.total_cmp(&right.score)),
    }
    Some(frames)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(task: ModelTask) -> Answers {
        let mut answers = Answers::new(task);
        answers.record_summary(SampleId(0), 10, 10, &[1, 2, 1], &[0.9, 0.8, 0.3]);
        answers.record_summary(SampleId(2), 10, 10, &[2, 1], &[0.7, 0.6]);
        answers
    }

    fn found(task: ModelTask, min_score: f32, order: FilmOrder) -> Vec<(u32, u32)> {
        let frames = filmstrip(&answers(task), 1, min_score, order, &|| false).unwrap();
        let places = frames.iter().map(|frame| (frame.sample.0, frame.index));
        places.collect()
    }

    #[test]
    fn the_boxes_of_a_class_come_by_score_from_either_end() {
        let detection = ModelTask::Detection;
        let highest = found(detection, 0.0, FilmOrder::HighestFirst);
        assert_eq!(highest, [(0, 0), (2, 1), (0, 2)]);
        let lowest = found(detection, 0.5, FilmOrder::LowestFirst);
        assert_eq!(lowest, [(2, 1), (0, 0)]);
    }

    #[test]
    fn of_a_classifier_only_the_top_class_counts_whatever_its_score() {
        let frames = found(ModelTask::Classification, 0.95, FilmOrder::HighestFirst);
        assert_eq!(frames, [(0, 0)]);
    }

    #[test]
    fn a_search_that_nobody_waits_for_ends() {
        let answers = answers(ModelTask::Detection);
        let frames = filmstrip(&answers, 1, 0.0, FilmOrder::HighestFirst, &|| true);
        assert_eq!(frames, None);
    }
}
