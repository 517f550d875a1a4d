//! Labels that may be wrong, and the metrics against the corrected labels.

use strum::VariantArray;

use crate::evaluation::{HIDDEN_MISTAKES, LabelCorrections, Metrics};
use crate::review::{OutcomeWord, SuspectKind};
use crate::window::evaluation::ui::{Shown, count_button_ui, decimals};
use crate::window::state::{CorrectedLabels, EvaluationCommand};
use crate::window::ui::prelude::*;

pub(super) fn suspicious_ui(ui: &mut Ui, shown: &Shown<'_>, commands: &mut Commands) {
    let Some(suspicious) = &shown.evaluated.suspicious else {
        return;
    };
    let counted_of = |kind: SuspectKind| shown.counts.suspects(kind);
    let is_detection = shown.is_detection();
    section_ui(ui, "Suspicious labels", true, |ui| {
        match &suspicious.training_sign {
            Some(sign) => message_ui(ui, Tone::Warning, sign),
            None => drop(note_ui(ui, HIDDEN_MISTAKES)),
        }
        ui.horizontal_wrapped(|ui| {
            let all = SuspectKind::VARIANTS.iter().map(|kind| counted_of(*kind)).sum();
            let meaning = "Ground-truth labels that may be wrong, by the gain of a fix";
            count_button_ui(ui, (all, "suspicious"), meaning, OutcomeWord::Suspicious(None), commands);
            for kind in SuspectKind::VARIANTS.iter().copied().filter(|_| is_detection) {
                let outcome = OutcomeWord::Suspicious(Some(kind));
                count_button_ui(ui, (counted_of(kind), kind.text()), meaning_of(kind), outcome, commands);
            }
        });
        let what = if is_detection { "AP" } else { "top-1" };
        note_ui(ui, format!("Ranked by the {what} that a fix would gain. Press X on a label to accept its fix."));
        if let Some(note) = suspicious.incomplete_note() {
            note_ui(ui, note);
        }
        if suspicious.left_out > 0 {
            let left_out = counted(suspicious.left_out as usize, "label", "labels");
            note_ui(ui, format!("Not listed, because many boxes with a higher score contradict a label: {left_out}."));
        }
        corrected_ui(ui, shown.state, commands);
    });
}

fn meaning_of(kind: SuspectKind) -> &'static str {
    match kind {
        SuspectKind::Class => "A box of another class covers the object, and no box of its class does",
        SuspectKind::Missing => "A box covers no object",
        SuspectKind::Misplaced => "A box of the right class covers the object only roughly (IoU 0.10 to 0.75)",
        SuspectKind::Spurious => "No box of any class and score covers the object",
    }
}

/// The metric against the corrected labels, and its progress.
fn corrected_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    let Some(corrected) = state.evaluation().map(|evaluation| &evaluation.corrected) else {
        return;
    };
    let text = corrected_text(state);
    match &corrected.status {
        Loadable::Loading(task) => {
            ui.horizontal(|ui| {
                note_ui(ui, text.unwrap_or_else(|| "Measuring the corrected labels…".to_owned()));
                command_button_ui(ui, "Cancel", commands, || Command::cancel(*task));
            });
        }
        Loadable::Failed(failure) => {
            message_ui(ui, Tone::Error, failure.message());
            command_button_ui(ui, "Try again", commands, || EvaluationCommand::MeasureCorrected);
        }
        Loadable::NotLoaded | Loadable::Ready(_) => {
            let is_outdated = state.corrected_labels_are_outdated();
            if text.is_none() && !is_outdated {
                return;
            }
            ui.horizontal(|ui| {
                if let Some(text) = text {
                    wrapped_ui(ui, text);
                }
                if is_outdated {
                    command_button_ui(ui, "Measure corrected labels", commands, || EvaluationCommand::MeasureCorrected);
                }
            });
        }
    }
}

/// “AP of the corrected labels: 0.463 (was 0.452); removed: 2 labels, added: 3”; `None` without corrections.
fn corrected_text(state: &State) -> Option<String> {
    let CorrectedLabels { corrections, number, .. } = state.evaluation()?.corrected.last?;
    if corrections.is_empty() {
        return None;
    }
    let metrics = &state.evaluated()?.evaluated.metrics;
    let name = if matches!(metrics, Metrics::Detection { .. }) { "AP" } else { "Top-1" };
    let (after, before) = (decimals(number), decimals(metrics.headline()));
    Some(format!("{name} of the corrected labels: {after} (was {before}); {}", corrections_text(corrections)))
}

fn corrections_text(corrections: LabelCorrections) -> String {
    let LabelCorrections { removed, added, relabeled, of_other_classes } = corrections;
    let counts = [
        (removed, "label removed", "labels removed"),
        (added, "label added", "labels added"),
        (relabeled, "image with another class", "images with another class"),
        (
            of_other_classes,
            "verdict skipped, because the ground truth does not have its class",
            "verdicts skipped, because the ground truth does not have their classes",
        ),
    ];
    let counts = counts.into_iter().filter(|(count, ..)| *count > 0);
    counts.map(|(count, one, several)| counted(count as usize, one, several)).collect::<Vec<_>>().join(", ")
}

/// The selected suspicious label with its fix, above the judging bar, while suspicious labels are searched for.
pub(crate) fn fix_line_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    if !state.arranging.is_about_suspects() {
        return;
    }
    let fix = match state.selected_suspects().as_slice() {
        [] => "Select a suspicious label".to_owned(),
        [(sample, suspect)] => {
            format!("{} · {}", state.fix_text(*sample, suspect), state.gain_text(suspect.gain.into()))
        }
        several => counted(several.len(), "suspicious label", "suspicious labels"),
    };
    let is_measuring = state.evaluation().is_some_and(|evaluation| evaluation.corrected.status.is_loading());
    let measuring = is_measuring.then(|| "measuring the corrected labels…".to_owned());
    let text = [Some(fix), corrected_text(state), measuring].into_iter().flatten().collect::<Vec<_>>().join(" · ");
    ui.horizontal(|ui| {
        ends_ui(
            ui,
            "suspicious label",
            commands,
            |ui, _| drop(truncated_ui(ui, text.as_str()).on_hover_text(text.as_str())),
            |ui, commands| drop(action_button_ui(ui, state, Action::FixLabel, commands)),
        );
    });
}
