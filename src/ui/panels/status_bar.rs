//! The status bar: running tasks, where the model runs, and problems.

use eframe::egui::{Align, Button, Layout, Panel, ProgressBar, RichText, Ui, vec2};

use super::super::open_place;
use super::super::widgets::{human_duration, sign_in_menu_ui};
use super::project::saved_ui;
use crate::state::{Action, Command, Loadable, Queue, State, TaskEntry};

pub(in super::super) fn status_bar_ui(ui: &mut Ui, state: &State, commands: &mut Queue<Command>) {
    Panel::bottom("status bar").show(ui, |ui| {
        let row = vec2(ui.available_width(), 26.0);
        // From the right: tasks that come and go must not change who the widgets are, or the button loses keyboard and
        // clicks.
        ui.allocate_ui_with_layout(row, Layout::right_to_left(Align::Center), |ui| {
            panel_button_ui(ui, state, commands);
            ui.separator();
            ui.label(RichText::new(engine_text(state)).weak());
            if state.source.is_some() {
                ui.separator();
                saved_ui(ui, state);
            }
            if let Some(place) = open_place(state) {
                ui.separator();
                sign_in_menu_ui(ui, &place.access, state, commands);
            }
            ui.with_layout(Layout::left_to_right(Align::Center), |ui| match state.tasks.running().last() {
                Some(task) => running_ui(ui, state, task, commands),
                None => idle_ui(ui, state),
            });
        });
    });
}

/// Leads to the panel with all tasks, which does not open by itself: it would take room from the image.
fn running_ui(ui: &mut Ui, state: &State, task: &TaskEntry, commands: &mut Queue<Command>) {
    let progress = task.control.progress();
    let fraction = progress.fraction();
    let bar = ProgressBar::new(fraction.unwrap_or(0.0)).desired_width(110.0).desired_height(8.0);
    let percent = fraction.map_or_else(String::new, |fraction| format!(" {:.0} %", fraction * 100.0));
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
        (Loadable::Loading(_), Some(model)) => format!("{model}, getting ready…"),
        (Loadable::Failed(_), Some(model)) => format!("⚠ {model} cannot run"),
        (Loadable::NotLoaded, Some(model)) => model.to_owned(),
    }
}

fn panel_button_ui(ui: &mut Ui, state: &State, commands: &mut Queue<Command>) {
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
