//! The status bar: running tasks, where the model runs, and problems.

use eframe::egui::{Button, ProgressBar, RichText, Ui};

use crate::window::project::ui::saved_ui;
use crate::window::state::{Action, Commands, Loadable, State, TaskEntry};
use crate::window::ui::widgets::{ends_ui, human_duration, sign_in_menu_ui};

pub(crate) fn status_bar_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    let task_ui = |ui: &mut Ui, commands: &mut Commands| match state.tasks.running().last() {
        Some(task) => running_ui(ui, state, task, commands),
        None => idle_ui(ui, state),
    };
    ends_ui(ui, "task and status", commands, task_ui, |ui, commands| {
        // In a separate part: what comes and goes must not change the id of the button after it, or that loses focus
        // and clicks.
        ui.horizontal(|ui| source_ui(ui, state, commands));
        ui.label(RichText::new(engine_text(state)).weak());
        ui.separator();
        panel_button_ui(ui, state, commands);
    });
}

/// The account that is signed in to S3, and whether everything is saved.
fn source_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    if let Some(place) = state.place() {
        sign_in_menu_ui(ui, &place.access, state, commands);
        ui.separator();
    }
    if state.source.is_some() {
        saved_ui(ui, state);
        ui.separator();
    }
}

/// Leads to the panel with all tasks, which does not open by itself, because it would take space from the image.
fn running_ui(ui: &mut Ui, state: &State, task: &TaskEntry, commands: &mut Commands) {
    let progress = task.control.progress();
    let fraction = progress.fraction();
    let bar = ProgressBar::new(fraction.unwrap_or(0.0)).desired_width(110.0).desired_height(8.0);
    let percent = fraction.map_or_else(String::new, |fraction| format!(" {:.0}%", fraction * 100.0));
    let more = match state.tasks.running().len() {
        0 | 1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    let left = match progress.time_left() {
        Some(left) if !task.control.is_paused() => format!(", {} left", human_duration(left)),
        _ => String::new(),
    };
    let paused = if task.control.is_paused() { ", paused" } else { "" };
    ui.add(bar);
    let text = format!("{}{percent}{left}{paused}{more}", task.title);
    let button = Button::new(&text).truncate().frame_when_inactive(false);
    let tooltip = format!("{text}\n{}", Action::ToggleTasks.tooltip());
    let response = ui.add(button).on_hover_text(tooltip);
    if response.clicked() {
        commands.push(Action::ToggleTasks);
    }
}

fn idle_ui(ui: &mut Ui, state: &State) {
    let text = match state.source {
        Some(_) if state.samples.is_empty() => "No images here",
        _ => "Ready",
    };
    ui.label(RichText::new(text).weak());
}

fn engine_text(state: &State) -> String {
    if let Some(remote) = &state.inference.remote {
        let name = remote.model.name();
        return match &remote.status {
            Loadable::Loading(_) => format!("waiting for {name}…"),
            Loadable::Failed(_) => format!("⚠ {name} cannot be reached"),
            Loadable::NotLoaded | Loadable::Ready(_) => name,
        };
    }
    let model = state.models.chosen().map(|chosen| chosen.card.name.as_str());
    match (&state.inference.local.status, model) {
        (_, None) => "No model".to_owned(),
        (Loadable::Ready(report), Some(model)) => {
            format!("{model} on {}", report.device.name())
        }
        (Loadable::Loading(_), Some(model)) => format!("{model}, loading…"),
        (Loadable::Failed(_), Some(model)) => format!("⚠ {model} cannot run"),
        (Loadable::NotLoaded, Some(model)) => model.to_owned(),
    }
}

fn panel_button_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    let text = match state.problems.len() {
        0 => "Tasks and problems".to_owned(),
        1 => "⚠ 1 problem".to_owned(),
        count => format!("⚠ {count} problems"),
    };
    let button = Button::selectable(state.settings.show_tasks_panel, text);
    let response = ui.add(button).on_hover_text(Action::ToggleTasks.tooltip());
    if response.clicked() {
        commands.push(Action::ToggleTasks);
    }
}
