use super::facts::Gate;
use super::{Marks, Predictions, Suppressed, VerdictKind};
use crate::domain::{SampleId, ViewSettings};

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
