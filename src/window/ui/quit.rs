//! Asks for confirmation before quitting during unfinished work.

use eframe::egui::{self, Label};

use super::dialog::dialog;
use crate::window::state::{Action, Command, Overlay, Queue, State};
use crate::window::ui::widgets::{primary_button, strong};

pub(crate) fn quit_ui(ctx: &egui::Context, state: &State, commands: &mut Queue<Command>) {
    if state.overlay != Overlay::Quit {
        return;
    }
    let modal = dialog(ctx, "quit").show(ctx, |ui| {
        ui.set_width(420.0);
        ui.label(strong("Quit Spotcheck?").size(15.0));
        for text in state.unfinished() {
            ui.add(Label::new(text).wrap());
        }
        ui.add_space(6.0);
        ui.horizontal(|ui| {
            if ui.add(primary_button(ui, "Quit now")).clicked() {
                commands.push(Action::Quit);
            }
            if ui.button("Keep running").clicked() {
                commands.push(Command::SetOverlay(Overlay::None));
            }
        });
    });
    if modal.should_close() {
        commands.push(Command::SetOverlay(Overlay::None));
    }
}
