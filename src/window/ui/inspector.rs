//! The right panel: the model, the filters, the runs, the results, the device, and the file.

use crate::window::predict::ui::class_table::classes_title;
use crate::window::predict::ui::device::{DeviceMemory, device_ui};
use crate::window::predict::ui::results::{ResultsMemory, results_ui};
use crate::window::predict::ui::runs::{RunsMemory, runs_ui};
use crate::window::search::ui::filters::{FiltersMemory, classes_ui, filters_ui};
use crate::window::state::Display;
use crate::window::ui::prelude::*;
use crate::window::ui::textures::Textures;
use crate::window::{canvas, comparison, models};

/// The sections' state between frames.
#[derive(Default)]
pub(crate) struct InspectorMemory {
    device: DeviceMemory,
    runs: RunsMemory,
    filters: FiltersMemory,
    results: ResultsMemory,
}

/// Sections in order of importance. Results of an image take the same space as those of most others, so that what
/// follows stays in place.
pub(crate) fn inspector_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut InspectorMemory,
    textures: &mut Textures,
    commands: &mut Commands,
) {
    // With or without the scroll bar, so that nothing moves sideways when it appears.
    let width = ui.available_width() - ui.spacing().scroll.allocated_width();
    let height = TABLE_SHARE * ui.available_height();
    ScrollArea::vertical().id_salt("inspector").auto_shrink(false).show(ui, |ui| {
        ui.set_max_width(width);
        ui.add_space(6.0);
        section_ui(ui, "Model", true, |ui| models::ui::model_ui(ui, state, commands));
        if state.viewed_card().is_some() {
            section_ui(ui, "Filters", true, |ui| {
                filters_ui(ui, state, &mut memory.filters, commands);
            });
        }
        section_ui(ui, "Results", true, |ui| {
            results_ui(ui, state, &mut memory.results, commands);
        });
        if state.viewed_card().is_some_and(|card| !card.is_encoder()) {
            let title = classes_title(state);
            titled_section_ui(ui, "Classes", &title, true, |ui| {
                classes_ui(ui, state, &mut memory.filters, height, commands);
            });
        }
        section_ui(ui, "Runs", true, |ui| {
            runs_ui(ui, state, &mut memory.runs, commands);
        });
        if state.comparing.is_some() {
            section_ui(ui, "Comparison", true, |ui| comparison::ui::section_ui(ui, state, commands));
        }
        if state.has_boxes() {
            section_ui(ui, "Magnifier", true, |ui| {
                canvas::ui::magnifier::magnifier_ui(ui, state, textures, commands);
            });
        }
        section_ui(ui, "Device", false, |ui| {
            device_ui(ui, state, &mut memory.device, commands);
        });
        section_ui(ui, "File", false, |ui| details_ui(ui, state));
    });
}

/// The maximum fraction of the panel's height for the class table.
const TABLE_SHARE: f32 = 0.4;

fn details_ui(ui: &mut Ui, state: &State) {
    let Some(entry) = state.shown_sample().and_then(|id| state.samples.get(id)) else {
        ui.weak("Choose an image to see its file");
        return;
    };
    small_note_ui(ui, entry.uri.as_str());
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
