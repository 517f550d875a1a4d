//! How many boxes a choice of images has.

use super::facts::Gate;
use super::{Answers, Suppressed};
use crate::domain::{SampleId, ViewSettings};

/// Boxes of these samples that `view` shows, or all of them without one.
pub fn count_boxes(
    answers: &Answers,
    view: Option<&ViewSettings>,
    suppressed: Option<&Suppressed>,
    samples: impl Iterator<Item = SampleId>,
) -> usize {
    let gate = view.map(|view| Gate::new(answers.task(), view, suppressed));
    let mut count = 0;
    for sample in samples {
        let Some(summary) = answers.summary(sample) else {
            continue;
        };
        let Some(gate) = &gate else {
            count += summary.scores.len();
            continue;
        };
        let hidden = gate.hidden(sample);
        let boxes = summary.classes.iter().zip(summary.scores).enumerate();
        let shown = boxes.filter(|&(at, (&class, &score))| {
            gate.passes(class, score) && !hidden.is_some_and(|hidden| hidden.hides(at))
        });
        count += shown.count();
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{BoundingBox, ModelTask};

    #[test]
    fn the_boxes_of_the_chosen_images_are_counted_as_the_view_shows_them() {
        let mut answers = Answers::new(ModelTask::Detection);
        answers.record_summary(SampleId(0), 9, 9, &[1, 1, 2], &[0.9, 0.8, 0.3]);
        answers.record_summary(SampleId(2), 9, 9, &[1], &[0.7]);
        let mut suppressed = Suppressed::new(0.5);
        let square = BoundingBox::new(0.0, 0.0, 5.0, 5.0);
        suppressed.record(SampleId(0), &[square; 3], &[1, 1, 2], &[0.9, 0.8, 0.3]);
        let view = ViewSettings {
            min_score: 0.5,
            ..ViewSettings::default()
        };
        let without_overlaps = ViewSettings {
            nms_iou: Some(0.5),
            ..view.clone()
        };
        let all = [0, 1, 2].map(SampleId);
        for (view, samples, expected) in [
            (None, &all[..], 4),
            (Some(&view), &all[..], 3),
            (Some(&without_overlaps), &all[..], 2),
            (Some(&view), &all[2..], 1),
        ] {
            let samples = samples.iter().copied();
            let count = count_boxes(&answers, view, Some(&suppressed), samples);
            assert_eq!(count, expected);
        }
    }
}
