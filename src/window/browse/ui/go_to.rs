//! Goes to an image by typing its name.

use eframe::egui::{self, Align2, Area, Frame, Id, Order, vec2};

use crate::window::state::{BrowseCommand, Command, Overlay, Queue, State};
use crate::window::ui::typing::Typing;

const WIDTH: f32 = 340.0;

#[derive(Default)]
pub(crate) struct GoToMemory(Typing);

/// A small field above the window, which does not cover the image.
pub(crate) fn go_to_ui(ctx: &egui::Context, state: &State, memory: &mut GoToMemory, commands: &mut Queue<Command>) {
    let GoToMemory(typing) = memory;
    if !typing.follow(state.overlay == Overlay::GoTo) {
        return;
    }
    let area = Area::new(Id::unique("go to"))
        .order(Order::Foreground)
        .anchor(Align2::CENTER_TOP, vec2(0.0, 80.0))
        .show(ctx, |ui| {
            Frame::popup(ui.style()).show(ui, |ui| {
                ui.set_width(WIDTH);
                let what = "Image name or number";
                let typed = typing.field_ui(ui, what, what);
                let text = || typing.text().to_owned();
                if typed.is_changed {
                    commands.push(BrowseCommand::GoTo(text()));
                }
                if typed.enter {
                    commands.push(BrowseCommand::GoToNext(text()));
                }
                ui.weak(if state.go_to_missed {
                    "No matching image on screen"
                } else {
                    "Enter: next match. Escape: close"
                });
            });
        });
    if area.response.clicked_elsewhere() && !typing.is_new() {
        commands.push(Command::SetOverlay(Overlay::None));
    }
}
