//! Goes to an image while its name is typed.

use eframe::egui::{self, Align2, Area, Frame, Id, Key, Modifiers, Order, TextEdit, vec2};

use crate::state::{Command, Overlay, State};

const WIDTH: f32 = 340.0;

#[derive(Default)]
pub(in super::super) struct GoToMemory {
    text: String,
    was_open: bool,
}

/// A small field over the window, which does not cover where it leads to.
pub(in super::super) fn go_to_ui(
    ctx: &egui::Context,
    state: &State,
    memory: &mut GoToMemory,
    commands: &mut Vec<Command>,
) {
    let is_open = state.overlay == Overlay::GoTo;
    let is_new = is_open && !memory.was_open;
    memory.was_open = is_open;
    if !is_open {
        return;
    }
    if is_new {
        memory.text.clear();
    }
    let take = |key| ctx.input_mut(|input| input.consume_key(Modifiers::NONE, key));
    let enter = take(Key::Enter);
    let area = Area::new(Id::unique("go to"))
        .order(Order::Foreground)
        .anchor(Align2::CENTER_TOP, vec2(0.0, 80.0))
        .show(ctx, |ui| {
            Frame::popup(ui.style()).show(ui, |ui| {
                ui.set_width(WIDTH);
                let field = ui.add(
                    TextEdit::singleline(&mut memory.text)
                        .hint_text("Name or number of an image")
                        .desired_width(f32::INFINITY),
                );
                if is_new {
                    field.request_focus();
                }
                if field.changed() {
                    commands.push(Command::GoTo(memory.text.clone()));
                }
                field.accessible_name("Name or number of an image");
                ui.weak(if state.go_to_missed {
                    "No image on screen has this in its name"
                } else {
                    "Enter goes to the next one, Escape closes"
                });
            });
        });
    if enter {
        commands.push(Command::GoToNext(memory.text.clone()));
    }
    if area.response.clicked_elsewhere() && !is_new {
        commands.push(Command::SetOverlay(Overlay::None));
    }
}
