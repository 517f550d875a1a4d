//! The right panel: the model, the filters, the results, the device, and the file.

use eframe::egui::{Panel, ScrollArea, Ui};

use super::super::textures::Textures;
use super::super::widgets::{section_ui, titled_section_ui};
use super::class_table::classes_title;
use super::comparison::comparison_ui;
use super::device::{DeviceMemory, device_ui};
use super::filters::{FiltersMemory, classes_ui, filters_ui};
use super::runs::{RunsMemory, runs_ui};
use super::{details, magnifier, model, results};
use crate::state::{Command, Queue, State};

pub(in super::super) fn inspector_ui(
    ui: &mut Ui,
    state: &State,
    device: &mut DeviceMemory,
    runs: &mut RunsMemory,
    filters: &mut FiltersMemory,
    textures: &mut Textures,
    commands: &mut Queue<Command>,
) {
    Panel::right("inspector").default_size(320.0).size_range(260.0..=600.0).show(ui, |ui| {
        let height = CONTROLS_SHARE * ui.available_height();
        // With or without the bar, so that nothing moves to the side where it comes or goes.
        let width = ui.available_width() - ui.spacing().scroll.allocated_width();
        ScrollArea::vertical().id_salt("controls").max_height(height).auto_shrink([false, true]).show(ui, |ui| {
            ui.set_max_width(width);
            // Where the visible part ends, wherever the panel is scrolled to.
            let bottom = ui.min_rect().top() + height;
            ui.add_space(6.0);
            controls_ui(ui, state, runs, filters, bottom, commands);
        });
        ui.separator();
        ScrollArea::vertical().id_salt("results").auto_shrink(false).show(ui, |ui| {
            ui.set_max_width(width);
            results_ui(ui, state, device, textures, commands);
        });
    });
}

/// The largest share of the panel's height for the controls, which are the same from image to image. What changes with
/// the image has the rest, so that it neither moves the controls nor is out of sight.
const CONTROLS_SHARE: f32 = 0.5;

/// `bottom` is where these end while they are not scrolled.
fn controls_ui(
    ui: &mut Ui,
    state: &State,
    runs: &mut RunsMemory,
    filters: &mut FiltersMemory,
    bottom: f32,
    commands: &mut Queue<Command>,
) {
    section_ui(ui, "Model", true, |ui| model::model_ui(ui, state, commands));
    if state.viewed_card().is_some() {
        section_ui(ui, "Filters", true, |ui| {
            filters_ui(ui, state, filters, commands);
        });
        let title = classes_title(state);
        titled_section_ui(ui, "Classes", &title, true, |ui| {
            classes_ui(ui, state, filters, bottom, commands);
        });
    }
    section_ui(ui, "Runs", false, |ui| {
        runs_ui(ui, state, runs, commands);
    });
}

fn results_ui(
    ui: &mut Ui,
    state: &State,
    device: &mut DeviceMemory,
    textures: &mut Textures,
    commands: &mut Queue<Command>,
) {
    if state.comparing.is_some() {
        section_ui(ui, "Comparison", true, |ui| {
            comparison_ui(ui, state, commands);
        });
    }
    section_ui(ui, "Results", true, |ui| {
        results::results_ui(ui, state, commands);
    });
    if state.has_boxes() {
        section_ui(ui, "Magnifier", true, |ui| {
            magnifier::magnifier_ui(ui, state, textures, commands);
        });
    }
    section_ui(ui, "Device", false, |ui| {
        device_ui(ui, state, device, commands);
    });
    section_ui(ui, "File", false, |ui| details::details_ui(ui, state));
}
