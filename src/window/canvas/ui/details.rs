//! The file of the shown image.

use eframe::egui::{RichText, Ui};

use crate::window::state::{Display, State};
use crate::window::ui::widgets::key_value_ui;

pub(crate) fn details_ui(ui: &mut Ui, state: &State) {
    let Some(entry) = state.shown_sample().and_then(|id| state.samples.get(id)) else {
        ui.weak("Choose an image to see its file");
        return;
    };
    ui.label(RichText::new(entry.uri.as_str()).small().weak());
    ui.add_space(2.0);
    match &state.shown.display {
        Display::Ready(info) => {
            for (name, value) in &info.details {
                key_value_ui(ui, name, value);
            }
        }
        Display::Failed(reason) => {
            ui.label(format!("⚠ {reason}"));
        }
        Display::Loading | Display::Nothing => {
            ui.weak("Reading…");
        }
    }
}
