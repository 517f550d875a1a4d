//! The predictions that are most worth judging.

use super::Predictions;
use super::facts::Gate;
use crate::domain::{ModelTask, Prediction, PredictionContent, SampleId, ViewSettings};

/// The candidate with the next lower certainty after `current`, or the least certain of all if there is none, or no
/// current one. Certainty is the margin that [`super::SortBy::Uncertainty`] sorts by; ties follow the listing.
/// Candidates without a prediction are skipped.
pub fn next_less_certain(
    predictions: &Predictions,
    view: &ViewSettings,
    candidates: impl Iterator<Item = SampleId>,
    current: Option<SampleId>,
) -> Option<SampleId> {
    let gate = Gate::new(predictions.task(), view, None, None);
    let margin = |id: SampleId| {
        let margin = gate.facts(id, predictions.summary(id)?).margin?;
        Some((margin, id))
    };
    let is_before =
        |one: &(f32, SampleId), other: &(f32, SampleId)| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)).is_lt();
    let current = current.and_then(margin);
    let (mut first, mut next) = (None, None);
    for candidate in candidates.filter_map(margin) {
        if first.is_none_or(|best| is_before(&candidate, &best)) {
            first = Some(candidate);
        }
        let is_after_current = current.is_some_and(|current| is_before(&current, &candidate));
        if is_after_current && next.is_none_or(|best| is_before(&candidate, &best)) {
            next = Some(candidate);
        }
    }
    next.or(first).map(|(_, id)| id)
}

/// The certainty of a prediction: the margin that [`super::SortBy::Uncertainty`] sorts by, ignoring suppression.
/// `0.0..=1.0`; `None` if the model found nothing that the view could show.
pub fn margin(prediction: &Prediction, view: &ViewSettings) -> Option<f32> {
    let mut predictions = match &prediction.content {
        PredictionContent::Classes(_) => Predictions::new(ModelTask::Classification),
        PredictionContent::Detections(_) => Predictions::new(ModelTask::Detection),
    };
    let only = SampleId(0);
    predictions.record(only, prediction);
    let summary = predictions.summary(only)?;
    Gate::new(predictions.task(), view, None, None).facts(only, summary).margin
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_come_in_order_of_uncertainty() {
        let mut predictions = Predictions::new(ModelTask::Classification);
        for (id, margin) in [(0, 0.5), (1, 0.125), (2, 0.125), (4, 0.25)] {
            predictions.record_summary(SampleId(id), 1, 1, &[1, 2], &[0.5, 0.5 - margin]);
        }
        let view = ViewSettings::default();
        let after = |current| {
            let candidates = (0..5).map(SampleId);
            next_less_certain(&predictions, &view, candidates, current)
        };
        let mut current = None;
        let mut visited = Vec::new();
        for _ in 0..5 {
            current = after(current);
            visited.push(current.map(|id| id.0));
        }
        assert_eq!(visited, [Some(1), Some(2), Some(4), Some(0), Some(1)]);
        let no_samples = std::iter::empty();
        assert_eq!(next_less_certain(&predictions, &view, no_samples, None), None);
    }
}
