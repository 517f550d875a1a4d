//! The status bar, and the task panel: running tasks, finished ones, and problems.

use eframe::egui::Panel;

use crate::domain::{human_duration, problem_of};
use crate::window::project::ui::saved_ui;
use crate::window::state::{FinishedTask, ProblemEntry, TaskEntry, TaskOutcome, TaskSignal};
use crate::window::ui;
use crate::window::ui::prelude::*;

/// The space of the panel, as high as the user made it.
pub(crate) fn tasks_room(ui: &mut Ui) -> Ui {
    let panel = Panel::bottom("tasks").resizable(true).default_size(130.0).size_range(90.0..=500.0);
    ui::reserve(ui, "tasks", panel, Ui::available_height)
}

pub(crate) fn tasks_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    ui.add_space(4.0);
    ui.spacing_mut().item_spacing.x = 24.0;
    ui.columns(2, |columns| {
        for column in columns.iter_mut() {
            column.spacing_mut().item_spacing.x = 8.0;
        }
        task_list_ui(&mut columns[0], state, commands);
        problem_list_ui(&mut columns[1], state, commands);
    });
}

fn heading_ui(ui: &mut Ui, title: &str, buttons: impl FnOnce(&mut Ui)) {
    ui.horizontal(|ui| {
        ui.label(strong(title));
        ui.with_layout(Layout::right_to_left(Align::Center), buttons);
    });
}

fn task_list_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    heading_ui(ui, "Tasks", |ui| {
        if state.tasks.finished().next().is_some() && ui.button("Clear finished").clicked() {
            commands.push(Command::ClearFinishedTasks);
        }
    });
    ScrollArea::vertical().id_salt("tasks").auto_shrink([false, false]).show(ui, |ui| {
        if state.tasks.is_idle() && state.tasks.finished().next().is_none() {
            ui.weak("No tasks are running");
        }
        for task in state.tasks.running() {
            task_ui(ui, task, commands);
        }
        for task in state.tasks.finished() {
            finished_ui(ui, task);
        }
    });
}

fn task_ui(ui: &mut Ui, task: &TaskEntry, commands: &mut Commands) {
    let progress = task.control.progress();
    ui.horizontal(|ui| {
        truncated_ui(ui, &task.title);
    });
    ui.horizontal(|ui| {
        ui.add(progress_bar(progress.fraction()).desired_width(150.0));
        if task.can_pause() {
            let (label, signal) =
                if task.control.is_paused() { ("Resume", TaskSignal::Resume) } else { ("Pause", TaskSignal::Pause) };
            command_button_ui(ui, label, commands, || Command::SignalTask(task.id, signal));
        }
        command_button_ui(ui, "Cancel", commands, || Command::cancel(task.id));
        let text = progress_text(&progress, task.control.is_paused());
        small_note_line_ui(ui, text);
    });
    ui.add_space(4.0);
}

fn finished_ui(ui: &mut Ui, task: &FinishedTask) {
    let outcome = match &task.outcome {
        TaskOutcome::Done(what) => format!("✓ {what}"),
        TaskOutcome::Cancelled => "Canceled".to_owned(),
        TaskOutcome::Failed(why) => format!("⚠ Failed: {why}"),
    };
    let elapsed = human_duration(task.elapsed);
    truncated_ui(ui, &task.title);
    let text = format!("{outcome} ({elapsed})");
    small_note_line_ui(ui, text);
    ui.add_space(4.0);
}

fn problem_list_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    let problems = state.problems.entries();
    let title = match state.problems.len() {
        0 => "Problems".to_owned(),
        count => format!("Problems ({count})"),
    };
    heading_ui(ui, &title, |ui| {
        if !problems.is_empty() {
            action_button_ui(ui, state, Action::ClearProblems, commands);
        }
    });
    if problems.is_empty() {
        ui.weak("None");
        return;
    }
    let row_height = ui.text_style_height(&TextStyle::Body) + 6.0;
    ScrollArea::vertical().id_salt("problems").auto_shrink([false, false]).show_rows(
        ui,
        row_height,
        problems.len(),
        |ui, rows| {
            for entry in &problems[rows] {
                problem_ui(ui, entry, row_height, commands);
            }
        },
    );
    if state.problems.dropped() > 0 {
        ui.weak(format!("and {} more", state.problems.dropped()));
    }
}

/// A problem in one line; a click shows its image.
fn problem_ui(ui: &mut Ui, entry: &ProblemEntry, row_height: f32, commands: &mut Commands) {
    let text = match &entry.problem.uri {
        Some(uri) => format!("⚠ {}", problem_of(uri.file_name(), &entry.problem.message)),
        None => format!("⚠ {}", entry.problem.message),
    };
    let first_line = text.lines().next().unwrap_or_default().to_owned();
    let label = Label::new(first_line).truncate().show_tooltip_when_elided(false);
    let size = vec2(ui.available_width(), row_height);
    ui.allocate_ui_with_layout(size, Layout::left_to_right(Align::Center), |ui| {
        let response = match entry.sample {
            Some(_) => ui.add(label.sense(Sense::click())),
            None => ui.add(label),
        };
        let response = response.on_hover_text(entry.problem.to_string());
        if let Some(sample) = entry.sample
            && response.clicked()
        {
            commands.push(BrowseCommand::Show(sample));
        }
    });
}

pub(crate) fn status_bar_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    let task_ui = |ui: &mut Ui, commands: &mut Commands| match state.tasks.running().last() {
        Some(task) => running_ui(ui, state, task, commands),
        None => idle_ui(ui, state),
    };
    ends_ui(ui, "task and status", commands, task_ui, |ui, commands| {
        // In a separate part: what comes and goes must not change the id of the button after it, or that loses focus
        // and clicks.
        ui.horizontal(|ui| source_ui(ui, state, commands));
        ui.weak(engine_text(state));
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
    ui.add(progress_bar(fraction).desired_width(110.0));
    let text = format!("{}{percent}{left}{paused}{more}", task.title);
    let button = Button::new(&text).truncate().frame_when_inactive(false);
    let tooltip = format!("{text}\n{}", Action::ToggleTasks.tooltip());
    ui.add(button).on_hover_text(tooltip).on_click(commands, || Action::ToggleTasks);
}

fn idle_ui(ui: &mut Ui, state: &State) {
    let text = match state.source {
        Some(_) if state.samples.is_empty() => "No images here",
        _ => "Ready",
    };
    ui.weak(text);
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
    ui.add(button).on_hover_text(Action::ToggleTasks.tooltip()).on_click(commands, || Action::ToggleTasks);
}
