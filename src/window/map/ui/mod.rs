//! The map of the run on screen, in place of the image: points with a legend, and a list of clusters, which selects
//! images without a pointer.

mod plot;

use eframe::egui::{Align, Button, CentralPanel, Color32, Label, Layout, Panel, ScrollArea, Sense, Ui, vec2};
use strum::VariantArray;

use crate::alike::METRIC;
use crate::domain::{ModelTask, counted};
use crate::review::{Group, GroupBy, GroupKind};
use crate::window::state::{Action, Commands, Loadable, MapCommand, MapGroups, MapLayout, MapStage, State};
use crate::window::ui::field::Field;
use crate::window::ui::textures::Textures;
use crate::window::ui::theme;
use crate::window::ui::widgets::{
    Tone, action_button_ui, banner_ui, command_button_ui, ends_or_lines_ui, grouped, note_line_ui, progress_ui, strong,
    verdict_color,
};

/// The width of the title below which its buttons move under it.
const LEAST_TITLE: f32 = 160.0;
/// The width of the list of groups and clusters, in points.
const LIST_WIDTH: f32 = 190.0;
const SWATCH: f32 = 10.0;

/// The state of the panel between frames.
#[derive(Default)]
pub(crate) struct MapMemory {
    plot: plot::PlotMemory,
}

pub(crate) fn map_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut MapMemory,
    textures: &mut Textures,
    commands: &mut Commands,
) {
    CentralPanel::default().show(ui, |ui| {
        ui.add_space(6.0);
        title_ui(ui, state, &mut memory.plot, commands);
        status_ui(ui, state, commands);
        let Some(layout) = state.map_layout() else {
            return;
        };
        about_ui(ui, state, layout, commands);
        Panel::right("groups of the map").resizable(false).exact_size(LIST_WIDTH).show(ui, |ui| {
            ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
                if let Some(groups) = state.map_groups() {
                    legend_ui(ui, groups);
                    clusters_ui(ui, layout, groups, commands);
                }
            });
        });
        plot::plot_ui(ui, state, layout, &mut memory.plot, textures, commands);
    });
}

fn title_ui(ui: &mut Ui, state: &State, plot: &mut plot::PlotMemory, commands: &mut Commands) {
    let name_ui = |ui: &mut Ui, _: &mut _| {
        let run = state.run().map_or_else(String::new, |run| format!(" of {}", run.info.name));
        ui.add(Label::new(strong(format!("Map{run}")).size(15.0)).truncate());
    };
    let buttons_ui = |ui: &mut Ui, commands: &mut Commands| {
        if state.run().is_some_and(|run| run.task() == Some(ModelTask::Detection)) {
            let mut of_boxes = state.map.of_boxes;
            Field::new("Points of the map").choice_ui(ui, &mut of_boxes, &[(false, "Images"), (true, "Boxes")]);
            if of_boxes != state.map.of_boxes {
                commands.push(MapCommand::OfBoxes(of_boxes));
            }
        }
        let shown = state.map_group_by();
        let mut by = shown;
        let is_possible =
            |by: &&GroupBy| state.can_group_map_by(**by) && (**by != GroupBy::Error || state.evaluated().is_some());
        let choices = GroupBy::VARIANTS.iter().filter(is_possible).map(|by| (*by, by.into_str()));
        let choices: Vec<(GroupBy, &str)> = choices.collect();
        ui.weak("Color");
        Field::new("Color of the points").choice_ui(ui, &mut by, &choices);
        if by != shown {
            commands.push(MapCommand::GroupBy(by));
        }
        let fit = ui.add_enabled(plot.is_zoomed(), Button::new("Whole map"));
        if fit.on_hover_text("Shows all points").clicked() {
            plot.show_all();
        }
        if ui.button("Show the image").on_hover_text("Back to the image and its boxes").clicked() {
            commands.push(Action::Map);
        }
    };
    ends_or_lines_ui(ui, "title of the map", LEAST_TITLE, commands, name_ui, buttons_ui);
}

/// The task that makes the map, or why there is none.
fn status_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    if state.run().is_none() {
        banner_ui(ui, Tone::Hint, "The map shows the images of a run: predict images first", |_| {});
        return;
    }
    match &state.map.status {
        Loadable::Loading(task) if state.map_was_attempted() => progress_ui(ui, state, *task, "Cancel", commands),
        Loadable::Failed(failure) if state.map_was_attempted() => banner_ui(ui, Tone::Hint, failure.message(), |ui| {
            command_button_ui(ui, "Try again", commands, || MapCommand::Renew);
            if !state.settings.save_embeddings {
                action_button_ui(ui, state, Action::ToggleEmbeddings, commands);
            }
        }),
        Loadable::NotLoaded if state.map_was_attempted() => {
            let message = match state.map_layout() {
                Some(_) => "The map is unfinished, because it was canceled",
                None => "The map was canceled",
            };
            banner_ui(ui, Tone::Hint, message, |ui| {
                command_button_ui(ui, "Make the map again", commands, || MapCommand::Renew);
            });
        }
        _ if state.map_layout().is_none() => {
            ui.weak("The map starts once all images are listed and their predictions are read");
        }
        _ => {}
    }
}

/// What the positions are based on, and which images are missing.
fn about_ui(ui: &mut Ui, state: &State, layout: &MapLayout, commands: &mut Commands) {
    let method = match layout.stage {
        MapStage::Components => "first two principal components".to_owned(),
        MapStage::Moving { epoch, epochs } => format!("UMAP, epoch {epoch} of {epochs}"),
        MapStage::Finished => "UMAP".to_owned(),
    };
    let count = count_text(layout, layout.rows.len());
    note_line_ui(ui, format!("{count} by {}, {METRIC}; {method}", layout.encoder));
    let is_outdated = state.map.status.ready().is_some() && is_outdated(state, layout);
    if layout.without > 0 || is_outdated {
        ui.horizontal(|ui| {
            if layout.without > 0 {
                let count = grouped(layout.without);
                ui.weak(if layout.of_boxes {
                    format!("{count} more boxes are left out: these are spread evenly over the images")
                } else {
                    format!("{count} more images are not on the map: new, outdated, failed, or without an embedding")
                });
            }
            if is_outdated {
                command_button_ui(ui, "Update the map", commands, || MapCommand::Renew);
            }
        });
    }
    picked_ui(ui, state, commands);
}

/// `8 images`
fn count_text(layout: &MapLayout, count: usize) -> String {
    if layout.of_boxes { counted(count, "box", "boxes") } else { counted(count, "image", "images") }
}

/// Whether images were predicted, added or removed since.
fn is_outdated(state: &State, layout: &MapLayout) -> bool {
    let predicted = state.run().map_or(0, |run| run.predictions.predicted());
    let has_other_images = layout.rows.len() + layout.without != state.samples.len();
    predicted != layout.predicted || (!layout.of_boxes && has_other_images)
}

fn picked_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    ui.horizontal(|ui| {
        // The same height with and without a button.
        ui.set_min_height(ui.spacing().interact_size.y);
        let count = state.map.picked.len();
        if count == 0 {
            ui.weak("Drag around points to select them; the wheel zooms; Shift and drag moves the map");
            return;
        }
        ui.label(format!("{} selected", counted(count, "image", "images")));
        let tooltip = "Searches for “picked”: all panels then show only these images";
        if ui.button("Show only these").on_hover_text(tooltip).clicked() {
            commands.push(MapCommand::SearchPicked);
        }
        if state.arranging.is_filtered() {
            command_button_ui(ui, "Show all", commands, || Action::ClearSearch);
        }
    });
}

/// The color of a group: Okabe and Ito's, which people with color blindness can distinguish
/// (<https://jfly.uni-koeln.de/color/>), the color of a verdict, or that of a score.
fn group_color(kind: GroupKind, is_dark: bool) -> Color32 {
    const NAMED: [[u8; 3]; 7] = [
        [0x56, 0xb4, 0xe9],
        [0xe6, 0x9f, 0x00],
        [0x00, 0x9e, 0x73],
        [0xcc, 0x79, 0xa7],
        [0xd5, 0x5e, 0x00],
        [0x00, 0x72, 0xb2],
        [0xf0, 0xe4, 0x42],
    ];
    match kind {
        GroupKind::Named(number) => {
            let [red, green, blue] = NAMED[number % NAMED.len()];
            Color32::from_rgb(red, green, blue)
        }
        GroupKind::Verdict(kind) => verdict_color(kind),
        // Neither end disappears in the background.
        GroupKind::Score(score) if is_dark => theme::heat_color(0.2 + 0.8 * score),
        GroupKind::Score(score) => theme::heat_color(0.85 * score),
        GroupKind::Rest => Color32::from_gray(if is_dark { 0x80 } else { 0x8c }),
    }
}

fn legend_ui(ui: &mut Ui, groups: &MapGroups) {
    for Group { name, kind, count } in &groups.groups.groups {
        ui.horizontal(|ui| {
            ui.spacing_mut().item_spacing.x = 6.0;
            let color = group_color(*kind, ui.visuals().dark_mode);
            let (rect, _) = ui.allocate_exact_size(vec2(SWATCH, SWATCH), Sense::hover());
            ui.painter().circle_filled(rect.center(), SWATCH / 2.0, color);
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                ui.weak(grouped(*count));
                ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                    ui.add(Label::new(name).truncate());
                });
            });
        });
    }
}

/// Each cluster with its size and its most frequent group; a click or Enter selects its images.
fn clusters_ui(ui: &mut Ui, layout: &MapLayout, groups: &MapGroups, commands: &mut Commands) {
    ui.add_space(8.0);
    ui.label(strong("Clusters")).on_hover_text("Groups of similar ones by spherical k-means; click one to select it");
    for (number, cluster) in groups.clusters.iter().enumerate() {
        let Some(group) = groups.groups.groups.get(cluster.most) else {
            continue;
        };
        let share = (cluster.count * 100 + cluster.rows / 2) / cluster.rows.max(1);
        let text = format!("{}: {share}% {}", grouped(cluster.rows), group.name);
        let size = vec2(ui.available_width(), 0.0);
        let button = ui.add(Button::new(&text).truncate().min_size(size));
        let count = count_text(layout, cluster.rows);
        let name = format!("Select cluster {}: {count}, {share}% {}", number + 1, group.name);
        if button.on_hover_text(&name).accessible_name(name).clicked() {
            let rows = layout.clusters.iter().zip(&*layout.rows);
            let inside = rows.filter(|(of_row, _)| **of_row == cluster.number);
            commands.push(MapCommand::Pick(inside.map(|(_, row)| *row).collect()));
        }
    }
}
