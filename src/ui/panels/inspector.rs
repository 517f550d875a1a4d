//! Right: the model, what it said, what of it is shown, where it runs, and the file.

use eframe::egui::{Panel, ScrollArea, Ui};

use super::super::textures::Textures;
use super::super::widgets::section_ui;
use super::comparison::comparison_ui;
use super::device::{DeviceMemory, device_ui};
use super::filters::{FiltersMemory, filters_ui};
use super::runs::{RunsMemory, runs_ui};
use super::{details, magnifier, model, results};
use crate::state::{Command, State};

pub(in super::super) fn inspector_ui(
    ui: &mut Ui,
    state: &State,
    device: &mut DeviceMemory,
    runs: &mut RunsMemory,
    filters: &mut FiltersMemory,
    textures: &mut Textures,
    commands: &mut Vec<Command>,
) {
    Panel::right("inspector")
        .default_size(320.0)
        .size_range(260.0..=600.0)
        .show(ui, |ui| {
            ScrollArea::vertical()
                .auto_shrink([false, false])
                .show(ui, |ui| {
                    ui.add_space(6.0);
                    sections_ui(ui, state, device, runs, filters, textures, commands);
                });
        });
}

fn sections_ui(
    ui: &mut Ui,
    state: &State,
    device: &mut DeviceMemory,
    runs: &mut RunsMemory,
    filters: &mut FiltersMemory,
    textures: &mut Textures,
    commands: &mut Vec<Command>,
) {
    section_ui(ui, "Model", true, |ui| model::model_ui(ui, state, commands));
    section_ui(ui, "Runs", false, |ui| {
        runs_ui(ui, state, runs, commands);
    });
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
    if state.viewed_card().is_some() {
        section_ui(ui, "Filters", true, |ui| {
            filters_ui(ui, state, filters, commands);
        });
    }
    section_ui(ui, "Device", false, |ui| {
        device_ui(ui, state, device, commands);
    });
    section_ui(ui, "File", false, |ui| details::details_ui(ui, state));
}
