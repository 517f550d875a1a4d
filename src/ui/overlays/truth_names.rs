//! Asks where in the file names the class is.

use eframe::egui::{self, Align2, Area, Frame, Id, Order, vec2};

use super::typing::Typing;
use crate::state::{Command, EvaluationCommand, Overlay, Queue, State};

const WIDTH: f32 = 340.0;

#[derive(Default)]
pub(in super::super) struct TruthNamesMemory(Typing);

/// A small field over the window, with the name of the first image as an example.
pub(in super::super) fn truth_names_ui(
    ctx: &egui::Context,
    state: &State,
    memory: &mut TruthNamesMemory,
    commands: &mut Queue<Command>,
) {
    let TruthNamesMemory(typing) = memory;
    if !typing.follow(state.overlay == Overlay::TruthNames) {
        return;
    }
    let area = Area::new(Id::unique("class in file names"))
        .order(Order::Foreground)
        .anchor(Align2::CENTER_TOP, vec2(0.0, 80.0))
        .show(ctx, |ui| {
            Frame::popup(ui.style()).show(ui, |ui| {
                ui.set_width(WIDTH);
                let typed = typing.field_ui(ui, "Pattern of file names", "*_{class}.png");
                let has_class = typing.text().contains("{class}");
                if typed.enter && has_class {
                    commands.push(EvaluationCommand::OpenNames(typing.text().trim().to_owned()));
                    commands.push(Command::SetOverlay(Overlay::None));
                }
                ui.weak("{class} stands for the class, * for anything else");
                if let Some(first) = state.order().at(0).and_then(|id| state.samples.get(id)) {
                    ui.add(egui::Label::new(format!("First image: {}", first.uri.file_name())).truncate());
                }
                ui.weak(if has_class || typing.text().is_empty() {
                    "Enter opens, Escape closes"
                } else {
                    "Write {class} where the class is"
                });
            });
        });
    if area.response.clicked_elsewhere() && !typing.is_new() {
        commands.push(Command::SetOverlay(Overlay::None));
    }
}
