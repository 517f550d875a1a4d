//! Accepting the proposed fix of suspicious labels. A fix consists of the verdicts that a person would give.

use crate::domain::{ModelTask, SampleId, Verdict, VerdictTarget, counted};
use crate::review::{Suspect, SuspectKind};
use crate::window::judge::state::judgments::{ImageJudgment, Mark};
use crate::window::judge::update::verdicts::{self, box_marks, label_marks, marks_by_sample};
use crate::window::state::{Run, State};

/// Labels that are fixed together.
const MOST_AT_ONCE: usize = 20;

/// Fixes the selected suspicious labels, in one step for undo.
pub(crate) fn fix(state: &mut State) {
    let suspects = state.selected_suspects();
    if suspects.len() > MOST_AT_ONCE {
        state.show_notice(format!("Select at most {MOST_AT_ONCE} labels to fix together"));
        return;
    }
    let label = match suspects.as_slice() {
        [] => return,
        [(sample, suspect)] => {
            let image = state.samples.file_name(*sample);
            format!("fix a label in {image}: {}", state.fix_text(*sample, suspect))
        }
        several => format!("fix {}", counted(several.len(), "label", "labels")),
    };
    let Some(task) = state.task() else {
        return;
    };
    let single = match suspects.as_slice() {
        [(sample, suspect)] => suspect.shows(task).map(|shows| (*sample, shows)),
        _ => None,
    };
    let was_judged = single.is_some_and(|(sample, shows)| state.verdict_on(sample, shows).is_some());
    match marks(state, &suspects) {
        Ok(marks) => verdicts::edit(state, label, marks),
        Err(reason) => {
            state.show_notice(reason);
            return;
        }
    }
    if let Some(single) = single.filter(|_| state.settings.next_after_verdict) {
        verdicts::go_on_from(state, single, was_judged);
    }
}

/// # Errors
/// Why a box or label cannot have a verdict.
fn marks(state: &State, suspects: &[(SampleId, Suspect)]) -> Result<Vec<(SampleId, Mark)>, &'static str> {
    let run = state.run().ok_or("Choose a model first")?;
    marks_by_sample(state, suspects, |judgment, sample, suspect| marks_of_fix(state, run, judgment, (sample, suspect)))
}

/// A missing label is the accepted box; a misplaced one is also wrong where it is. A label with the wrong class is
/// replaced, and a spurious one is wrong.
///
/// # Errors
/// Why the box or label cannot have this verdict.
fn marks_of_fix(
    state: &State,
    run: &Run,
    judgment: &ImageJudgment,
    (sample, suspect): (SampleId, Suspect),
) -> Result<Vec<Mark>, &'static str> {
    const NOT_EVALUATED: &str = "This object is not evaluated yet";
    let is_detection = run.task() == Some(ModelTask::Detection);
    let accepted = |judgment: &ImageJudgment| {
        let box_index = suspect.found.filter(|_| is_detection);
        box_marks(judgment, VerdictTarget { run: Some(run.id()), box_index }, Some(&Verdict::Accept))
    };
    let label = |judgment: &ImageJudgment, verdict: &Verdict| {
        let object = suspect.object.ok_or(NOT_EVALUATED)?;
        label_marks(state, run, judgment, (sample, object), Some(verdict))
    };
    match suspect.kind {
        SuspectKind::Class if is_detection => {
            let class = state.truth_class_of_box(sample, suspect.found).ok_or(NOT_EVALUATED)?;
            label(judgment, &Verdict::WrongClass(class.to_owned()))
        }
        SuspectKind::Class | SuspectKind::Missing => accepted(judgment),
        SuspectKind::Spurious => label(judgment, &Verdict::Reject),
        SuspectKind::Misplaced => {
            let mut marks = accepted(judgment)?;
            marks.extend(label(&judgment.with(&marks), &Verdict::Reject)?);
            Ok(marks)
        }
    }
}
