//! Whether an image is judged.

use super::facts::Gate;
use super::{Answers, Marks, Suppressed, VerdictKind};
use crate::domain::{SampleId, ViewSettings};

/// The verdict of one image, as sorting and filtering see it ([`super::Mark::judged`]); `None` while it is unjudged.
pub fn verdict_of_image(
    answers: Option<&Answers>,
    view: &ViewSettings,
    suppressed: Option<&Suppressed>,
    marks: &Marks,
    id: SampleId,
) -> Option<VerdictKind> {
    let mark = marks.of(id)?;
    let summary = answers.and_then(|answers| Some((answers, answers.summary(id)?)));
    match summary.filter(|_| !mark.boxes.is_empty()) {
        Some((answers, summary)) => {
            let gate = Gate::new(answers.task(), view, suppressed, Some(marks));
            gate.verdict(id, summary)
        }
        None => mark.verdict,
    }
}
