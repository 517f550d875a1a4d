//! Which class of the model matches which ground-truth class, and why; wrong matches can be corrected here.

use crate::annotations::matching::{ClassReason, ClassRow};
use crate::domain::TruthLabel;
use crate::evaluation::GroundTruth;
use crate::window::state::{EvaluationCommand, RunEvaluation};
use crate::window::ui::prelude::*;

const ROW_HEIGHT: f32 = 28.0;
/// The number of classes in a message.
const MOST_NAMED: usize = 12;

#[derive(Default)]
pub(crate) struct MatchingMemory {
    only_unmatched: bool,
}

pub(crate) fn matching_ui(
    ui: &mut Ui,
    state: &State,
    evaluation: &RunEvaluation,
    memory: &mut MatchingMemory,
    commands: &mut Commands,
) {
    let (Some(opened), Some(evaluating)) = (state.opened_truth(), &state.evaluating) else {
        return;
    };
    let rows = &evaluation.classes.matches.rows;
    let matched = rows.iter().filter(|row| row.matched.is_some()).count();
    ui.horizontal_wrapped(|ui| {
        ui.label(format!("{} of {} model classes matched", grouped(matched), grouped(rows.len())));
        checkbox_ui(ui, &mut memory.only_unmatched, "Only unmatched");
        if !evaluating.corrections.is_empty() && ui.button("Reset all corrections").clicked() {
            commands.push(EvaluationCommand::ClearCorrections);
        }
    });
    unfound_ui(ui, &opened.truth, evaluation);
    if !evaluation.unused.is_empty() {
        let names = some_of(evaluation.unused.rows().map(|(from, _)| from.to_owned()));
        warning_ui(ui, format!("Corrections for classes that the model does not have: {names}"));
    }
    let listed: Vec<&ClassRow> = rows.iter().filter(|row| !memory.only_unmatched || row.matched.is_none()).collect();
    ScrollArea::vertical().id_salt("class matching").auto_shrink(false).show_rows(
        ui,
        ROW_HEIGHT,
        listed.len(),
        |ui, visible| {
            for row in &listed[visible] {
                row_ui(ui, &opened.truth, row, commands);
            }
        },
    );
}

/// Ground-truth classes that the model never returns: all of their objects are missed.
fn unfound_ui(ui: &mut Ui, truth: &GroundTruth, evaluation: &RunEvaluation) {
    let mut is_found = vec![false; truth.labels.len()];
    for row in &evaluation.classes.matches.rows {
        if let Some((index, _)) = row.matched
            && let Some(is_found) = is_found.get_mut(index as usize)
        {
            *is_found = true;
        }
    }
    let unfound: Vec<&TruthLabel> =
        truth.labels.iter().zip(&is_found).filter(|(_, is_found)| !**is_found).map(|(label, _)| label).collect();
    if unfound.is_empty() {
        return;
    }
    let names = some_of(unfound.iter().map(ToString::to_string));
    warning_ui(ui, format!("Ground-truth classes without a matching model class: {names}"));
}

fn some_of(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(MOST_NAMED);
    let mut named: Vec<String> = names.take(MOST_NAMED).collect();
    named.extend((more > 0).then(|| format!("and {more} more")));
    named.join(", ")
}

/// The name in the corrections.
fn key_of(label: &TruthLabel) -> String {
    label.name.clone().or_else(|| label.number.map(|number| number.to_string())).unwrap_or_default()
}

fn row_ui(ui: &mut Ui, truth: &GroundTruth, row: &ClassRow, commands: &mut Commands) {
    let class = row.class.to_string();
    let correct = |to: String| EvaluationCommand::CorrectClass { from: key_of(&row.class), to };
    let (matched, reason) = match row.matched {
        Some((index, reason)) => (truth.labels.get(index as usize), reason_text(reason)),
        None => (None, unmatched_text(&row.class, &truth.labels)),
    };
    ui.horizontal(|ui| {
        ui.set_height(ROW_HEIGHT);
        let width = ui.available_width();
        ui.add_sized([width * 0.32, ROW_HEIGHT], Label::new(&class).truncate());
        ui.weak("is");
        let chosen = matched.map_or_else(|| "none".to_owned(), ToString::to_string);
        let picker = Field::new(format!("Ground-truth class for {class}: {chosen}")).width(width * 0.34);
        picker.list_ui(ui, &chosen, |ui| {
            ui.selectable_label(matched.is_none(), "none").on_click(commands, || correct(String::new()));
            for label in &truth.labels {
                ui.selectable_label(matched == Some(label), label.to_string())
                    .on_click(commands, || correct(key_of(label)));
            }
        });
        note_line_ui(ui, reason);
    });
}

/// Numbers count only if a side has no names.
fn unmatched_text(class: &TruthLabel, others: &[TruthLabel]) -> &'static str {
    let has_names = class.name.is_some() && others.iter().any(|other| other.name.is_some());
    if has_names { "no class with this name" } else { "no class with this number" }
}

fn reason_text(reason: ClassReason) -> &'static str {
    match reason {
        ClassReason::Name => "same name",
        ClassReason::Number => "same number",
        ClassReason::Correction => "corrected",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_is_mentioned_only_without_names() {
        let class = |name: Option<&str>| TruthLabel { number: Some(17), name: name.map(str::to_owned) };
        let (cat, kitty, unnamed) = (class(Some("cat")), class(Some("kitty")), class(None));
        assert_eq!(unmatched_text(&cat, &[kitty]), "no class with this name");
        assert_eq!(unmatched_text(&cat, std::slice::from_ref(&unnamed)), "no class with this number");
        assert_eq!(unmatched_text(&unnamed, &[cat]), "no class with this number");
    }
}
