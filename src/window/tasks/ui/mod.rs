//! The task panel: running tasks, finished ones, and problems.

pub(crate) mod status_bar;

use eframe::egui::{Align, Label, Layout, Panel, ProgressBar, ScrollArea, Sense, TextStyle, Ui, vec2};

use crate::domain::problem_of;
use crate::window::state::{
    Action, BrowseCommand, Command, Commands, FinishedTask, ProblemEntry, State, TaskEntry, TaskOutcome, TaskSignal,
};
use crate::window::ui::panels;
use crate::window::ui::widgets::{
    action_button_ui, command_button_ui, human_duration, progress_text, small_note_line_ui, strong,
};

/// The space of the panel, as high as the user made it.
pub(crate) fn tasks_room(ui: &mut Ui) -> Ui {
    let panel = Panel::bottom("tasks").resizable(true).default_size(130.0).size_range(90.0..=500.0);
    panels::reserve(ui, "tasks", panel, Ui::available_height)
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
        ui.add(Label::new(&task.title).truncate());
    });
    ui.horizontal(|ui| {
        let bar = ProgressBar::new(progress.fraction().unwrap_or(0.0)).desired_width(150.0).desired_height(8.0);
        ui.add(bar);
        if task.can_pause() {
            let (label, signal) =
                if task.control.is_paused() { ("Resume", TaskSignal::Resume) } else { ("Pause", TaskSignal::Pause) };
            command_button_ui(ui, label, commands, || Command::SignalTask(task.id, signal));
        }
        command_button_ui(ui, "Cancel", commands, || Command::SignalTask(task.id, TaskSignal::Cancel));
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
    ui.add(Label::new(&task.title).truncate());
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
