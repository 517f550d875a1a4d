//! Shared parts of dialogs that open local files or files in S3: the address, the access to it, and the buttons.

use std::path::PathBuf;

use eframe::egui::Ui;

use crate::domain::{Location, S3Link, S3Place};
use crate::window::s3::ui::access::{AccessMemory, access_ui};
use crate::window::state::{Command, Commands, OpeningOutputs, OutputsFailure, State};
use crate::window::ui::field::Field;
use crate::window::ui::widgets::{
    Tone, command_button_ui, enter_pressed, focus_whole_text, message_ui, primary_button_ui, problem_ui, progress_ui,
};

#[derive(Default)]
pub(crate) struct PlaceMemory {
    pub(crate) address: String,
    access: AccessMemory,
    /// The address when the last attempt failed: its error is about no other.
    failed_at: Option<String>,
}

impl PlaceMemory {
    pub(crate) fn is_empty(&self) -> bool {
        self.address.trim().is_empty()
    }

    /// `None` while nothing valid is typed.
    pub(crate) fn location(&self, state: &State) -> Option<Location> {
        let address = self.address.trim();
        if address.is_empty() {
            return None;
        }
        if !S3Link::is_address(address) {
            return Some(Location::Path(PathBuf::from(address)));
        }
        let link = S3Link::parse(address).ok()?;
        let access = self.access.with_drafts(state.s3.access.clone());
        Some(Location::S3(Box::new(S3Place { access, ..S3Place::new(link.address) })))
    }

    /// Why the address on screen could not be opened.
    pub(crate) fn failure<'o>(&mut self, opening: Option<&'o OpeningOutputs>) -> Option<&'o OutputsFailure> {
        let failure = opening.and_then(|opening| opening.failure.as_ref());
        if failure.is_none() {
            self.failed_at = None;
        }
        failure.filter(|_| *self.failed_at.get_or_insert_with(|| self.address.clone()) == self.address)
    }

    /// Shows the failure, unless a preview does.
    pub(crate) fn failure_ui(&mut self, ui: &mut Ui, opening: Option<&OpeningOutputs>) {
        if let Some(OutputsFailure::Failed { message, examples: None }) = self.failure(opening) {
            ui.add_space(8.0);
            message_ui(ui, Tone::Error, message);
        }
    }

    /// `name` is for screen readers. Returns true if Enter was pressed.
    pub(crate) fn field_ui(&mut self, ui: &mut Ui, (name, hint): (&str, &str), width: f32, is_new: bool) -> bool {
        let field = Field::new(name).hint(hint).width(width).text_ui(ui, &mut self.address);
        if is_new {
            focus_whole_text(&field, &self.address);
        }
        enter_pressed(&field)
    }

    /// The access if the address is in S3, and what is wrong with the address.
    pub(crate) fn access_ui(&mut self, ui: &mut Ui, state: &State, commands: &mut Commands) {
        let address = self.address.trim();
        if S3Link::is_address(address) {
            if let Err(error) = S3Link::parse(address) {
                problem_ui(ui, &error);
            }
            access_ui(ui, state, &mut self.access, commands);
        }
    }
}

/// The buttons of a dialog: the first one pushes `command`, or shows why it is disabled. `opening`: another request
/// that must finish first.
pub(crate) fn footer_ui(
    ui: &mut Ui,
    state: &State,
    opening: Option<&OpeningOutputs>,
    label: &str,
    command: Result<Command, String>,
    is_entered: bool,
    commands: &mut Commands,
) {
    ui.add_space(8.0);
    let task = opening.and_then(|opening| opening.task);
    if let Some(task) = task {
        progress_ui(ui, state, task, "Stop", commands);
        ui.add_space(4.0);
    }
    ui.horizontal(|ui| {
        let command = match task {
            Some(_) => Err("Wait for reading to finish, or stop it".to_owned()),
            None => command,
        };
        let open = primary_button_ui(ui, label, command.as_ref().err().map(String::as_str));
        if let (true, Ok(command)) = (open.clicked() || is_entered, command) {
            commands.push(command);
        }
        // Reading has its own button, and continues without the dialog.
        command_button_ui(ui, if task.is_some() { "Close" } else { "Cancel" }, commands, || Command::CLOSE_OVERLAY);
    });
}
