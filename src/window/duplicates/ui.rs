//! The bar above groups of duplicates.

use crate::alike::MAX_DISTANCE;
use crate::window::duplicates::state::DuplicateOptions;
use crate::window::ui::prelude::*;

/// The thresholds while a slider is dragged.
#[derive(Default)]
pub(crate) struct DuplicatesMemory(Option<DuplicateOptions>);

pub(crate) fn duplicates_ui(ui: &mut Ui, state: &State, memory: &mut DuplicatesMemory, commands: &mut Commands) {
    if !state.shows_duplicates() {
        memory.0 = None;
        return;
    }
    ui.separator();
    if let Some(found) = state.found_duplicates() {
        wrapped_ui(ui, found.summary());
        let compared = match &found.encoder {
            Some(encoder) => format!("Alike by {encoder}"),
            None => "Predict the images to compare their embeddings as well".to_owned(),
        };
        small_note_ui(ui, compared);
        let not_compared = [(found.unreadable, "could not be read"), (found.plain, "are nearly of one color")];
        for (count, why) in not_compared.into_iter().filter(|(count, _)| *count > 0) {
            small_note_ui(ui, format!("{} {why} and are compared only by their bytes", grouped(count)));
        }
        sliders_ui(ui, state, memory, found.encoder.is_some(), commands);
    }
    if let Some(task) = state.duplicates.task {
        progress_ui(ui, state, task, "Cancel", commands);
    }
    ui.horizontal_wrapped(|ui| {
        action_button_ui(ui, state, Action::TagDuplicates, commands);
        command_button_ui(ui, "Done", commands, || BrowseCommand::CloseDuplicates);
    });
    ui.separator();
}

fn sliders_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut DuplicatesMemory,
    has_embeddings: bool,
    commands: &mut Commands,
) {
    let draft = memory.0.get_or_insert(state.duplicates.options);
    let mut is_moved = false;
    let mut is_set = false;
    let mut follow = |response: eframe::egui::Response| {
        is_moved |= response.dragged();
        is_set |= response.drag_stopped() || response.changed() && !response.dragged();
    };
    ui.spacing_mut().slider_width = 90.0;
    ui.horizontal(|ui| {
        let slider = slider(&mut draft.distance, 0..=MAX_DISTANCE).suffix(" of 64 bits differ");
        let about =
            "How far the perceptual hashes of near duplicates may differ: more bits find more, and more that is wrong";
        follow(ui.add(slider).on_hover_text(about).accessible_name("Near: differing bits"));
    });
    if has_embeddings {
        ui.horizontal(|ui| {
            let slider =
                slider(&mut draft.above, 0.5..=1.0).fixed_decimals(2).step_by(0.01).prefix("≥ ").suffix(" similar");
            let about = "The lowest similarity of images that are alike: the cosine of their mean-centered embeddings";
            follow(ui.add(slider).on_hover_text(about).accessible_name("Alike: similarity"));
        });
    }
    if is_set {
        commands.push(BrowseCommand::SetDuplicateOptions(*draft));
    } else if !is_moved {
        *draft = state.duplicates.options;
    }
}
