//! Where predictions and verdicts are saved, unless that is the default location.

use crate::window::state::{Listing, ProjectStatus};
use crate::window::ui::prelude::*;

/// Above the thumbnails: what prevents changes from being saved, and what to do about it; and whether earlier verdicts
/// are hidden.
pub(crate) fn project_banners_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    match &state.project.status {
        ProjectStatus::ReadOnly { reason } => {
            let message = format!("This project is read-only: {reason}");
            banner_ui(ui, Tone::Warning, &message, |ui| {
                action_button_ui(ui, state, Action::SaveProjectAs, commands);
            });
        }
        ProjectStatus::InMemory { reason } => {
            let message =
                format!("Nothing is saved; predictions and verdicts will be lost when this window closes: {reason}");
            banner_ui(ui, Tone::Warning, &message, |ui| {
                action_button_ui(ui, state, Action::SaveProjectAs, commands);
            });
        }
        ProjectStatus::Closed | ProjectStatus::Opening | ProjectStatus::Writable => {}
    }
    if state.project.is_second_pass {
        let message = "Blind second pass: the verdicts of the first reviewer are in the first project. When you are \
                       done, merge both";
        banner_ui(ui, Tone::Hint, message, |ui| drop(action_button_ui(ui, state, Action::MergeProject, commands)));
    }
    if state.project.unnamed.is_some() {
        reviewer_question_ui(ui, state, commands);
    }
    if let Some(reason) = &state.project.trouble {
        let unsaved = state.project.unsaved();
        let message = format!("Not saved yet ({}): {reason}", counted(unsaved as usize, "change", "changes"));
        banner_ui(ui, Tone::Error, &message, |ui| {
            action_button_ui(ui, state, Action::SaveProjectAs, commands);
        });
    }
}

fn reviewer_question_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    banner_ui(ui, Tone::Hint, "Who judges? The name is saved with each verdict", |ui| {
        let mut name = state.settings.reviewer.clone();
        let field = Field::new("Your name").hint("your name").text_ui(ui, &mut name);
        if field.changed() {
            commands.push(ReviewCommand::SetReviewer(name));
        }
        let label = if state.settings.reviewer_name().is_some() { "Use this name" } else { "Skip" };
        if ui.button(label).clicked() || enter_pressed(&field) {
            commands.push(ReviewCommand::NameReviewer);
        }
    });
}

/// For an open project whose folder cannot be listed, because it may have been moved.
pub(crate) fn moved_folder_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    let listing = state.source.as_ref().map(|source| &source.listing);
    if matches!(listing, Some(Listing::Failed(_))) && state.project.path.is_some() {
        action_button_ui(ui, state, Action::MoveProject, commands);
    }
}

/// At the bottom: whether everything is on disk.
pub(crate) fn saved_ui(ui: &mut Ui, state: &State) {
    let project = &state.project;
    let text = match &project.status {
        ProjectStatus::Closed | ProjectStatus::Opening => return,
        ProjectStatus::ReadOnly { .. } => "Read-only",
        ProjectStatus::InMemory { .. } => "⚠ Not saved",
        ProjectStatus::Writable if project.trouble.is_some() => "⚠ Not saved yet",
        ProjectStatus::Writable if project.unsaved() > 0 => "Saving…",
        ProjectStatus::Writable => "All saved",
    };
    let label = ui.weak(text);
    if let Some(path) = &project.path {
        label.on_hover_text(path.display().to_string());
    }
}
