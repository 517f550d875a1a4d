//! Asks for confirmation before judging many images.

use eframe::egui::{self, Label};

use crate::domain::Verdict;
use crate::window::state::{Command, Overlay, Queue, ReviewCommand, State};
use crate::window::ui::dialog::dialog;
use crate::window::ui::widgets::{image_count, primary_button, strong};

#[derive(Default)]
pub(crate) struct MassVerdictMemory {
    is_open: bool,
}

pub(crate) fn mass_verdict_ui(
    ctx: &egui::Context,
    state: &State,
    memory: &mut MassVerdictMemory,
    commands: &mut Queue<Command>,
) {
    let is_open = state.overlay == Overlay::MassVerdict;
    let is_new = !std::mem::replace(&mut memory.is_open, is_open);
    if !is_open {
        return;
    }
    let images = image_count(state.selection.selected().len());
    let deed = match &state.mass_verdict {
        Some(Verdict::Accept) => format!("Accept {images}"),
        Some(Verdict::Reject) => format!("Reject {images}"),
        Some(Verdict::Unsure) => format!("Mark {images} as unsure"),
        Some(Verdict::WrongClass(class)) => format!("Mark {images} as “{class}”"),
        None => format!("Clear the verdicts of {images}"),
    };
    let modal = dialog(ctx, "mass verdict").show(ctx, |ui| {
        ui.set_width(360.0);
        ui.add(Label::new(strong(format!("{deed}?")).size(15.0)).wrap());
        ui.add(Label::new("Changes all selected images. Undo reverts all of them in one step").wrap());
        ui.add_space(6.0);
        ui.horizontal_wrapped(|ui| {
            let confirm = ui.add(primary_button(ui, &deed));
            if is_new {
                confirm.request_focus();
            }
            if confirm.clicked() {
                commands.push(ReviewCommand::ConfirmMassVerdict);
            }
            if ui.button("Cancel").clicked() {
                commands.push(Command::SetOverlay(Overlay::None));
            }
        });
    });
    if modal.should_close() {
        commands.push(Command::SetOverlay(Overlay::None));
    }
}
