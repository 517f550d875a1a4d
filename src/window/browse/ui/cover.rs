//! The dialog that selects images that cover the search results.

use crate::window::ui::prelude::*;

const USUAL_COUNT: usize = 200;

/// The number of images, while the dialog is open.
#[derive(Default)]
pub(crate) struct CoverMemory(Option<usize>);

pub(crate) fn cover_ui(ctx: &Context, state: &State, memory: &mut CoverMemory, commands: &mut Commands) {
    if state.overlay != Overlay::SelectCover {
        memory.0 = None;
        return;
    }
    let found = state.order().len();
    let count = memory.0.get_or_insert(USUAL_COUNT.min(found.max(1)));
    dialog_ui(ctx, "covering images", 400.0, Command::CLOSE_OVERLAY, commands, |ui, commands| {
        let about = format!(
            "Select images so that each of the {} on screen is as similar as possible to one of them, by their \
             embeddings. They show what the images contain, but are not a random sample.",
            counted(found, "image", "images")
        );
        heading_ui(ui, Action::SelectCover.label(), &about);
        Field::new("Count").row_ui(ui, |ui, field| {
            field.number_ui(ui, number_field(count).range(1..=found.max(1)));
            ui.label("images");
        });
        ui.add_space(8.0);
        ui.horizontal_wrapped(|ui| {
            ui.add(primary_button(ui, "Select images")).on_click(commands, || BrowseCommand::SelectCover(*count));
            command_button_ui(ui, "Cancel", commands, || Command::CLOSE_OVERLAY);
        });
    });
}
