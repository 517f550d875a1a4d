use super::facts::Gate;
use super::{Marks, Predictions, Suppressed};
use crate::domain::{SampleId, ViewSettings};

/// The number of boxes of these samples that `view` shows, or of all boxes without a view.
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
            Some(gate) => gate.visible(sample).of(summary).count(),
            None => summary.scores.len(),
        };
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{BoundingBox, ModelTask};
    use crate::review::{Mark, VerdictKind};

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
        for (view, marks, samples, expected) in [
            (None, &nothing_judged, &all[..], 4),
            (Some(&view), &nothing_judged, &all[..], 3),
            (Some(&view), &faint_confirmed, &all[..], 4),
            (Some(&without_overlaps), &nothing_judged, &all[..], 2),
            (Some(&without_overlaps), &faint_confirmed, &all[..], 3),
            (Some(&view), &faint_confirmed, &all[2..], 1),
        ] {
            let samples = samples.iter().copied();
            let count = count_boxes(&predictions, view, Some(&suppressed), marks, samples);
            assert_eq!(count, expected);
        }
    }
}
