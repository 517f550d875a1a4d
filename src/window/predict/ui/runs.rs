//! The runs over the open images: switching, renaming, deleting, and selecting two to compare.

use crate::domain::RunId;
use crate::window::state::{ProjectCommand, Run};
use crate::window::ui::prelude::*;

/// The name that is being typed, and the run whose deletion waits for confirmation.
#[derive(Default)]
pub(crate) struct RunsMemory {
    renaming: Option<(RunId, String)>,
    deleting: Option<RunId>,
}

pub(crate) fn runs_ui(ui: &mut Ui, state: &State, memory: &mut RunsMemory, commands: &mut Commands) {
    if state.runs.iter().next().is_none() {
        ui.weak("No predictions yet");
        return;
    }
    for run in state.runs.iter() {
        ui.push_id(run.id(), |ui| run_ui(ui, state, run, memory, commands));
    }
}

fn run_ui(ui: &mut Ui, state: &State, run: &Run, memory: &mut RunsMemory, commands: &mut Commands) {
    if matches!(&memory.renaming, Some((id, _)) if *id == run.id()) {
        rename_ui(ui, memory, commands);
        return;
    }
    let name = run.info.name.as_str();
    let is_current = state.run().map(Run::id) == Some(run.id());
    let choice_ui = |ui: &mut Ui, (_, commands): &mut (_, &mut Commands)| {
        ui.with_layout(Layout::top_down_justified(Align::Min), |ui| {
            choice_ui(ui, state, run, is_current, commands);
        });
    };
    ends_ui(ui, "run and its buttons", &mut (&mut *memory, &mut *commands), choice_ui, |ui, (memory, commands)| {
        ui.spacing_mut().item_spacing.x = 4.0;
        let can_compare = state.comparable_runs().any(|other| other.id() == run.id());
        if can_compare && letter(state, run).is_empty() {
            ui.button("Compare")
                .on_hover_text("Compares the predictions on screen with this run's")
                .on_click(commands, || ReviewCommand::Compare(run.id()))
                .accessible_name(format!("Compare with {name}"));
        }
        more_ui(ui, state, run, memory);
    });
    if memory.deleting == Some(run.id()) {
        delete_ui(ui, run, memory, commands);
    }
}

/// The letter of the run in a comparison.
fn letter(state: &State, run: &Run) -> &'static str {
    match &state.comparing {
        Some(comparing) if comparing.left == run.id() => "A",
        Some(comparing) if comparing.right == run.id() => "B",
        _ => "",
    }
}

/// A click shows its predictions.
fn choice_ui(ui: &mut Ui, state: &State, run: &Run, is_current: bool, commands: &mut Commands) {
    let name = run.info.name.as_str();
    // The empty right side keeps the name on the left.
    let button = Button::selectable(is_current, name).right_text(RichText::new(letter(state, run)).weak()).truncate();
    let choice = ui.add(button);
    if choice.clicked() && !is_current {
        commands.push(ProjectCommand::SwitchRun(run.id()));
    }
    let model = &run.info.card.name;
    let predictions = predictions_text(run).map_or_else(String::new, |text| format!(", {text}"));
    let made = &run.info.key.made;
    let assumed = &run.info.card.assumed;
    let mut about = vec![name.to_owned(), format!("{model}{predictions}"), format!("Made {made}")];
    // Only this tooltip shows what was assumed about the predictions of a remote run.
    if !made.is_here() {
        about.push(run.info.card.origin.clone());
        let assumed = assumed.iter();
        about.extend(assumed.map(|assumed| format!("Assumed: {assumed}")));
    }
    choice.on_hover_text(about.join("\n")).accessible_name(format!("Run {name}"));
}

fn more_ui(ui: &mut Ui, state: &State, run: &Run, memory: &mut RunsMemory) {
    let name = run.info.name.as_str();
    let more = ui.menu_button("…", |ui| {
        let is_writable = state.project.is_writable();
        if ui.add_enabled(is_writable, Button::new("Rename")).clicked() {
            memory.renaming = Some((run.id(), name.to_owned()));
            ui.close();
        }
        if ui.add_enabled(is_writable, Button::new("Delete…")).clicked() {
            memory.deleting = Some(run.id());
            ui.close();
        }
    });
    let label = format!("More about {name}");
    more.response.widget_info(|| WidgetInfo::labeled(Role::Button, true, label.as_str()));
    more.response.on_hover_text("Rename or delete");
}

fn rename_ui(ui: &mut Ui, memory: &mut RunsMemory, commands: &mut Commands) {
    let Some((id, name)) = &mut memory.renaming else {
        return;
    };
    let field = Field::new("Run name").text_ui(ui, name);
    let is_left = field.lost_focus();
    if !is_left {
        field.request_focus();
    }
    if is_left {
        if !ui.input(|input| input.key_pressed(Key::Escape)) {
            commands.push(ProjectCommand::RenameRun(*id, name.clone()));
        }
        memory.renaming = None;
    }
}

/// “1,200 predictions”; `None` until they are loaded from the project.
fn predictions_text(run: &Run) -> Option<String> {
    let [one, many] = if run.task().is_some() { ["prediction", "predictions"] } else { ["embedding", "embeddings"] };
    match run.predictions.predicted() {
        0 => None,
        1 => Some(format!("1 {one}")),
        count => Some(format!("{} {many}", grouped(count))),
    }
}

fn delete_ui(ui: &mut Ui, run: &Run, memory: &mut RunsMemory, commands: &mut Commands) {
    let predictions = predictions_text(run).unwrap_or_else(|| "predictions".to_owned());
    let message =
        format!("Delete “{}” with its {predictions} and the verdicts on them? This cannot be undone", run.info.name);
    banner_ui(ui, Tone::Warning, &message, |ui| {
        ui.horizontal(|ui| {
            if ui.button("Delete this run").clicked() {
                commands.push(ProjectCommand::DeleteRun(run.id()));
                memory.deleting = None;
            }
            if ui.button("Keep it").clicked() {
                memory.deleting = None;
            }
        });
    });
}
