//! The keys and mouse gestures.

use eframe::egui::{Context, Grid, RichText, ScrollArea, Ui, vec2};
use strum::VariantArray;

use crate::window::state::{Action, Command, Commands, Overlay, State};
use crate::window::ui::dialog::dialog_ui;
use crate::window::ui::keys;
use crate::window::ui::widgets::{action_button_ui, command_button_ui, strong};

/// Keys and gestures without an action of their own.
const GESTURES: [(&str, &str); 9] = [
    ("Arrow keys, Page up and down", "Browse the images"),
    ("Shift with these", "Extend the selection"),
    ("Ctrl or Shift click", "Select individual images or a range"),
    ("Wheel or pinch", "Zoom at the pointer"),
    ("Drag", "Move the image"),
    ("Double click", "Switch between fit and actual size"),
    ("Click on a box", "Select it on the image and in the list"),
    ("Hold H", "Hide the boxes"),
    ("Escape", "Close dialogs; go back from a box to its image, or from several images to one"),
];

pub(crate) fn help_ui(ctx: &Context, state: &State, commands: &mut Commands) {
    if state.overlay != Overlay::Help {
        return;
    }
    dialog_ui(ctx, "help", 560.0, Command::CLOSE_OVERLAY, commands, |ui, commands| {
        ui.label(strong("Keys and mouse").size(18.0));
        ui.add_space(6.0);
        let height = (ui.ctx().content_rect().height() - 240.0).max(160.0);
        ScrollArea::vertical().max_height(height).show(ui, keys_ui);
        ui.add_space(8.0);
        let version = format!("Spotcheck {}", env!("CARGO_PKG_VERSION"));
        ui.label(RichText::new(version).weak());
        ui.horizontal(|ui| {
            action_button_ui(ui, state, Action::CopyDiagnostics, commands);
            action_button_ui(ui, state, Action::OpenLog, commands);
            command_button_ui(ui, "Close", commands, || Command::CLOSE_OVERLAY);
        });
    });
}

fn keys_ui(ui: &mut Ui) {
    Grid::new("keys").num_columns(2).spacing(vec2(24.0, 5.0)).show(ui, |ui| {
        for (gesture, meaning) in GESTURES {
            ui.label(gesture);
            ui.label(RichText::new(meaning).weak());
            ui.end_row();
        }
        for &action in Action::VARIANTS {
            if let Some(keys) = keys::shortcut_text(ui.ctx(), action) {
                ui.label(keys);
                ui.label(RichText::new(action.label().trim_end_matches('…')).weak());
                ui.end_row();
            }
        }
    });
}
