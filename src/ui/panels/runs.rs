//! The runs over the open images: switching, naming, deleting, and holding two against each other.

use eframe::egui::{self, Button, Key, Label, RichText, TextEdit, Ui};

use super::super::widgets::{Tone, banner_ui, grouped, strong};
use crate::domain::{ModelTask, RunId};
use crate::evaluation::AgreementSummary;
use crate::state::{Command, CompareLayout, CompareStatus, Comparing, Run, State, TaskSignal};

const MAX_CONFUSIONS: usize = 8;

/// What is being typed, and what waits for a second click.
#[derive(Default)]
pub(in super::super) struct RunsMemory {
    renaming: Option<(RunId, String)>,
    deleting: Option<RunId>,
}

pub(super) fn runs_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut RunsMemory,
    commands: &mut Vec<Command>,
) {
    if state.runs.iter().next().is_none() {
        ui.weak("Nothing is predicted yet");
        return;
    }
    for run in state.runs.iter() {
        ui.push_id(run.id(), |ui| run_ui(ui, state, run, memory, commands));
    }
    if let Some(comparing) = &state.comparing {
        comparison_ui(ui, state, comparing, commands);
    }
}

fn run_ui(
    ui: &mut Ui,
    state: &State,
    run: &Run,
    memory: &mut RunsMemory,
    commands: &mut Vec<Command>,
) {
    if matches!(&memory.renaming, Some((id, _)) if *id == run.id()) {
        rename_ui(ui, memory, commands);
        return;
    }
    let name = run.info.name.as_str();
    let is_current = state.run().map(Run::id) == Some(run.id());
    ui.horizontal_wrapped(|ui| {
        let choice = ui.selectable_label(is_current, name);
        if choice.clicked() && !is_current {
            commands.push(Command::SwitchRun(run.id()));
        }
        let answered = format!("{} predicted", grouped(run.answers.answered()));
        choice
            .on_hover_text(answered)
            .accessible_name(format!("Run {name}"));
        let is_writable = state.project.is_writable();
        let rename = ui.add_enabled(is_writable, Button::new("Rename").small());
        if rename.clicked() {
            memory.renaming = Some((run.id(), name.to_owned()));
        }
        rename.accessible_name(format!("Rename {name}"));
        let delete = ui.add_enabled(is_writable, Button::new("Delete…").small());
        if delete.clicked() {
            memory.deleting = Some(run.id());
        }
        delete.accessible_name(format!("Delete {name}…"));
        let can_compare = state
            .run()
            .is_some_and(|current| !is_current && current.task() == run.task());
        if can_compare {
            let compare = ui
                .add(Button::new("Compare with").small())
                .on_hover_text("Holds the answers on screen against those of this run");
            if compare.clicked() {
                commands.push(Command::CompareWith(run.id()));
            }
            compare.accessible_name(format!("Compare with {name}"));
        }
    });
    if memory.deleting == Some(run.id()) {
        delete_ui(ui, run, memory, commands);
    }
}

fn rename_ui(ui: &mut Ui, memory: &mut RunsMemory, commands: &mut Vec<Command>) {
    let Some((id, name)) = &mut memory.renaming else {
        return;
    };
    let field = ui.add(TextEdit::singleline(name).desired_width(f32::INFINITY));
    let is_left = field.lost_focus();
    if !is_left {
        field.request_focus();
    }
    field.accessible_name("Name of the run");
    if is_left {
        if !ui.input(|input| input.key_pressed(Key::Escape)) {
            commands.push(Command::RenameRun(*id, name.clone()));
        }
        memory.renaming = None;
    }
}

fn delete_ui(ui: &mut Ui, run: &Run, memory: &mut RunsMemory, commands: &mut Vec<Command>) {
    let message = format!(
        "Delete “{}” with its {} answers and the verdicts on them? This cannot be undone",
        run.info.name,
        grouped(run.answers.answered())
    );
    banner_ui(ui, Tone::Warning, &message, |ui| {
        ui.horizontal(|ui| {
            if ui.button("Delete this run").clicked() {
                commands.push(Command::DeleteRun(run.id()));
                memory.deleting = None;
            }
            if ui.button("Keep it").clicked() {
                memory.deleting = None;
            }
        });
    });
}

fn comparison_ui(ui: &mut Ui, state: &State, comparing: &Comparing, commands: &mut Vec<Command>) {
    let (Some(left), Some(right)) = (
        state.runs.get(comparing.left),
        state.runs.get(comparing.right),
    ) else {
        return;
    };
    ui.add_space(4.0);
    let title = format!("{} against {}", left.info.name, right.info.name);
    ui.add(Label::new(strong(title)).wrap());
    if ui.button("End the comparison").clicked() {
        commands.push(Command::StopComparing);
    }
    ui.horizontal(|ui| {
        let layouts = [
            (CompareLayout::Overlaid, "Overlaid"),
            (CompareLayout::SideBySide, "Side by side"),
        ];
        for (layout, label) in layouts {
            let is_chosen = state.settings.compare_layout == layout;
            if ui.selectable_label(is_chosen, label).clicked() {
                commands.push(Command::SetCompareLayout(layout));
            }
        }
    });
    match &comparing.status {
        CompareStatus::Running(task) => {
            ui.weak("Comparing…");
            if ui.button("Cancel").clicked() {
                commands.push(Command::SignalTask(*task, TaskSignal::Cancel));
            }
        }
        CompareStatus::Failed(reason) => banner_ui(ui, Tone::Error, reason, |ui| {
            if ui.button("Compare again").clicked() {
                commands.push(Command::CompareAgain);
            }
        }),
        CompareStatus::Ready { agreement, .. } => {
            if state.comparison_is_outdated() {
                let message = "The filters have changed since this was compared";
                banner_ui(ui, Tone::Hint, message, |ui| {
                    if ui.button("Compare again").clicked() {
                        commands.push(Command::CompareAgain);
                    }
                });
            }
            for line in summary_lines(&agreement.summary, left.task()) {
                ui.add(Label::new(line).wrap());
            }
            confusion_ui(ui, left, right, &agreement.summary);
            shown_ui(ui, state, left.task());
        }
    }
}

/// The agreement in words and numbers.
fn summary_lines(summary: &AgreementSummary, task: ModelTask) -> Vec<String> {
    let Some(rate) = summary.rate() else {
        return vec!["No image has an answer of both runs".to_owned()];
    };
    let what = match task {
        ModelTask::Classification => "put the same class first",
        ModelTask::Detection => "have the same boxes (IoU at least 0.5)",
    };
    let mut lines = vec![format!(
        "{:.1} % agree: {} of {} images {what}",
        rate * 100.0,
        grouped(summary.agreeing),
        grouped(summary.compared)
    )];
    if task == ModelTask::Detection {
        lines.push(format!(
            "{} boxes matched, {} only in the first, {} only in the second",
            grouped(summary.matched),
            grouped(summary.only_left),
            grouped(summary.only_right)
        ));
    }
    if let Some(mean) = summary.differences.mean() {
        lines.push(format!(
            "Scores of the same differ by {:.3} on average, by {:.3} at most",
            mean, summary.differences.largest
        ));
    }
    let alone = summary.answered_only_left + summary.answered_only_right;
    if alone > 0 {
        lines.push(format!(
            "{} images have an answer of one run only",
            grouped(alone)
        ));
    }
    lines
}

fn confusion_ui(ui: &mut Ui, left: &Run, right: &Run, summary: &AgreementSummary) {
    for confusion in summary.confusion.iter().take(MAX_CONFUSIONS) {
        let text = format!(
            "{} → {}: {}",
            left.labels().name(confusion.left),
            right.labels().name(confusion.right),
            grouped(confusion.count)
        );
        ui.add(Label::new(RichText::new(text).weak()).truncate());
    }
}

/// What the comparison says of the shown image.
fn shown_ui(ui: &mut Ui, state: &State, task: ModelTask) {
    let Some(image) = state.shown_sample().and_then(|sample| {
        let agreement = state.comparing.as_ref()?.agreement()?;
        agreement.of(sample)
    }) else {
        ui.weak("This image has no answer of both runs");
        return;
    };
    let text = match task {
        ModelTask::Classification => {
            let top = state
                .compared_answer()
                .and_then(|prediction| prediction.classes().first());
            let second = top.map_or_else(String::new, |class| {
                format!(
                    "; the second run says {} {:.1} %",
                    class.label,
                    class.score * 100.0
                )
            });
            let agrees = if image.is_flip {
                "another class"
            } else {
                "the same class"
            };
            format!("This image: {agrees}{second}")
        }
        ModelTask::Detection => format!(
            "This image: {} matched, {} only in the first (solid), {} only in the second (dashed)",
            image.matched, image.only_left, image.only_right
        ),
    };
    ui.add(Label::new(text).wrap());
    let number = format!("Disagreement {:.3}", image.disagreement);
    ui.add(egui::Label::new(RichText::new(number).weak()));
}
