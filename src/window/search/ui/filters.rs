//! Which boxes and classes are shown, and what remains of the whole run. Nothing here runs the model again.

use std::collections::BTreeSet;

use eframe::egui::{RichText, Sense, TextWrapMode, Ui, vec2};

use crate::domain::{KeepRule, ModelCard, ModelTask, OutputConvention};
use crate::window::predict::ui::class_table::{ClassesMemory, class_table_ui};
use crate::window::search::ui::histogram::{HistogramMemory, histogram_ui};
use crate::window::state::{Action, Commands, ReviewCommand, State, ViewChange};
use crate::window::ui::theme;
use crate::window::ui::widgets::{action_button_ui, checkbox_ui, ends_ui, number_field, rows_in_sight_ui, slider};

/// Below this, a threshold inside the graph changes nothing, because such boxes are not kept anyway.
const WORTH_SAYING: f32 = 0.005;
/// The initial value of the overlap slider.
const DEFAULT_IOU: f32 = 0.5;

/// The width of the field with the minimum score of a class, so that columns stay in place.
const OWN_THRESHOLD_WIDTH: f32 = 62.0;

/// The filters' state between frames.
#[derive(Default)]
pub(crate) struct FiltersMemory {
    histogram: HistogramMemory,
    classes: ClassesMemory,
}

pub(crate) fn filters_ui(ui: &mut Ui, state: &State, memory: &mut FiltersMemory, commands: &mut Commands) {
    match state.viewed_card().map(|card| card.task) {
        Some(ModelTask::Detection) => {
            threshold_ui(ui, state, memory, commands);
            overlap_ui(ui, state, commands);
        }
        Some(ModelTask::Classification) => classifier_ui(ui, state, memory, commands),
        None => {}
    }
    ui.add_space(2.0);
    action_button_ui(ui, state, Action::ResetView, commands);
}

/// The classes of the run: as a table of at most this height if possible, and with their own settings.
pub(crate) fn classes_ui(ui: &mut Ui, state: &State, memory: &mut FiltersMemory, height: f32, commands: &mut Commands) {
    class_table_ui(ui, state, &mut memory.classes, height, commands);
    if state.viewed_card().map(|card| card.task) == Some(ModelTask::Detection) {
        by_class_ui(ui, state, commands);
    }
}

fn change(commands: &mut Commands, change: ViewChange) {
    commands.push(ReviewCommand::ChangeView(change));
}

fn threshold_ui(ui: &mut Ui, state: &State, memory: &mut FiltersMemory, commands: &mut Commands) {
    let lowest = lowest_score(state);
    let mut min_score = state.view().min_score;
    ui.horizontal(|ui| {
        let label = ui.label("Minimum score");
        fit_slider(ui);
        let field = slider(&mut min_score, lowest..=1.0).fixed_decimals(2);
        let response = ui.add(field).labelled_by(label.id);
        if response.changed() {
            change(commands, ViewChange::MinScore(min_score));
        }
    });
    if let Some(score) = histogram_ui(ui, state, &mut memory.histogram, min_score) {
        change(commands, ViewChange::MinScore(score.max(lowest)));
    }
    if lowest > WORTH_SAYING {
        ui.label(RichText::new(format!("The model already drops boxes below {lowest:.3}")).small().weak());
    }
}

/// A classifier scores every class; these settings decide which ones are listed.
fn classifier_ui(ui: &mut Ui, state: &State, memory: &mut FiltersMemory, commands: &mut Commands) {
    let mut min_score = state.view().min_class_score;
    ui.horizontal(|ui| {
        let label = ui
            .label("Minimum score")
            .on_hover_text("Classes below this are not listed; an image without any class counts as “none”");
        fit_slider(ui);
        let field = slider(&mut min_score, 0.0..=1.0).fixed_decimals(2);
        if ui.add(field).labelled_by(label.id).changed() {
            change(commands, ViewChange::MinClassScore(min_score));
        }
    });
    if let Some(score) = histogram_ui(ui, state, &mut memory.histogram, min_score) {
        change(commands, ViewChange::MinClassScore(score));
    }
    let most = KeepRule::default().top_k;
    let mut top_k = state.view().top_k.min(most);
    ui.horizontal(|ui| {
        let label = ui.label("Maximum number of classes");
        fit_slider(ui);
        let field = slider(&mut top_k, 1..=most);
        if ui.add(field).labelled_by(label.id).changed() {
            change(commands, ViewChange::TopK(top_k));
        }
    });
}

fn overlap_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    let iou = state.view().nms_iou;
    let of_model = state.viewed_card().and_then(ModelCard::nms_iou);
    let mut is_on = iou.is_some();
    let tooltip = "If two boxes of one class overlap by more than this (intersection over union), only the one with \
        the higher score is shown";
    ui.horizontal(|ui| {
        let checkbox = checkbox_ui(ui, &mut is_on, "Hide overlaps above").on_hover_text(tooltip);
        if checkbox.changed() {
            change(commands, ViewChange::NmsIou(is_on.then_some(of_model.unwrap_or(DEFAULT_IOU))));
        }
        if let Some(mut iou) = iou {
            fit_slider(ui);
            let field = slider(&mut iou, 0.0..=1.0).fixed_decimals(2);
            let response = ui.add(field).accessible_name("Overlap, as IoU");
            if response.changed() {
                change(commands, ViewChange::NmsIou(Some(iou)));
            }
        }
    });
    if let Some(of_model) = of_model {
        let text = match iou {
            Some(iou) if iou == of_model => format!("{of_model:.2} is the default of this model"),
            _ => format!("The default of this model is {of_model:.2}"),
        };
        ui.label(RichText::new(text).small().weak());
    }
    let in_graph = state.viewed_card().and_then(|card| match &card.output {
        OutputConvention::Detection(output) => output.nms_iou_in_graph,
        OutputConvention::Classification(_) => None,
    });
    if let Some(in_graph) = in_graph {
        let text = format!("The model already hides overlaps above {in_graph:.2}");
        ui.label(RichText::new(text).small().weak());
    }
}

/// A slider with its number takes the rest of the line; a fixed width would widen the panel.
fn fit_slider(ui: &mut Ui) {
    let number_width = 62.0;
    let rest = ui.available_width() - number_width;
    ui.spacing_mut().slider_width = rest.clamp(40.0, 220.0);
}

/// The score below which the graph returns nothing: the threshold slider ends there.
fn lowest_score(state: &State) -> f32 {
    let card = state.viewed_card();
    card.map_or(0.0, ModelCard::min_score_in_graph)
}

/// The classes of the run and of the shown image, and those with a setting of their own, alphabetically: they stay in
/// place from image to image.
fn by_class_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    let view = state.view();
    ui.collapsing("By class", |ui| {
        if let Some(solo) = view.solo_class {
            ui.horizontal(|ui| {
                ui.label(format!("Only {} is shown", class_name(state, solo)));
                if ui.button("Show all classes").clicked() {
                    change(commands, ViewChange::Solo(None));
                }
            });
        }
        let classes = classes_from_a_to_z(state);
        if classes.is_empty() {
            ui.weak("No predictions yet");
        }
        let row_height = ui.spacing().interact_size.y + 2.0;
        rows_in_sight_ui(ui, row_height, classes.len(), |ui, row| {
            let (name, class_id) = &classes[row];
            class_ui(ui, state, *class_id, name, commands);
        });
    });
}

fn classes_from_a_to_z(state: &State) -> Vec<(String, u32)> {
    let view = state.view();
    let of_run = state.arranging.statistics().into_iter().flat_map(|all| all.classes.rows.iter()).map(|row| row.class);
    // Only the model's classes can be filtered.
    let shown = state.shown.stored.iter().flat_map(|prediction| prediction.detections());
    let own = view.min_score_by_class.keys().chain(&view.hidden_classes).chain(&view.solo_class);
    let ids: BTreeSet<u32> = of_run.chain(shown.map(|detection| detection.class_id)).chain(own.copied()).collect();
    let mut classes: Vec<(String, u32)> = ids.into_iter().map(|id| (class_name(state, id), id)).collect();
    classes.sort();
    classes
}

fn class_name(state: &State, class_id: u32) -> String {
    let labels = state.viewed_labels();
    labels.map_or_else(String::new, |labels| labels.name(class_id))
}

fn class_ui(ui: &mut Ui, state: &State, class_id: u32, name: &str, commands: &mut Commands) {
    let view = state.view();
    let shown_ui = |ui: &mut Ui, commands: &mut Commands| {
        let (rect, _) = ui.allocate_exact_size(vec2(10.0, 10.0), Sense::hover());
        ui.painter().rect_filled(rect, 2.0, theme::class_color(name));
        ui.style_mut().wrap_mode = Some(TextWrapMode::Truncate);
        let mut is_shown = !view.hidden_classes.contains(&class_id);
        let checkbox = checkbox_ui(ui, &mut is_shown, name).on_hover_text(format!("Show boxes of the class {name}"));
        if checkbox.changed() {
            let shown = if is_shown { ViewChange::ShowClass(class_id) } else { ViewChange::HideClass(class_id) };
            change(commands, shown);
        }
    };
    ends_ui(ui, ("class", class_id), commands, shown_ui, |ui, commands| {
        let is_solo = view.solo_class == Some(class_id);
        let solo = ui.selectable_label(is_solo, "Show only").on_hover_text("Show only this class");
        if solo.clicked() {
            let class = (!is_solo).then_some(class_id);
            change(commands, ViewChange::Solo(class));
        }
        solo.accessible_name(format!("Show only {name}"));
        own_threshold_ui(ui, state, class_id, name, commands);
    });
}

/// The class's own threshold: dragging or typing sets it, a right click removes it. An inherited one is dimmed.
fn own_threshold_ui(ui: &mut Ui, state: &State, class_id: u32, name: &str, commands: &mut Commands) {
    let view = state.view();
    let has_own = view.min_score_by_class.contains_key(&class_id);
    let mut min_score = view.min_score_of(class_id);
    let drag =
        number_field(&mut min_score).range(lowest_score(state)..=1.0).speed(0.005).fixed_decimals(2).prefix("≥ ");
    let size = vec2(OWN_THRESHOLD_WIDTH, ui.spacing().interact_size.y);
    let response = ui
        .scope(|ui| {
            if !has_own {
                ui.visuals_mut().override_text_color = Some(ui.visuals().weak_text_color());
            }
            ui.add_sized(size, drag)
        })
        .inner
        .on_hover_text("Minimum score of this class. Drag or type; right-click to reset it to the global one");
    // A field that is opened and left unchanged sets nothing.
    let is_other = format!("{min_score:.2}") != format!("{:.2}", view.min_score_of(class_id));
    if response.changed() && is_other {
        change(commands, ViewChange::ClassMinScore(class_id, Some(min_score)));
    }
    if response.secondary_clicked() {
        change(commands, ViewChange::ClassMinScore(class_id, None));
    }
    response.accessible_name(format!("Minimum score of {name}"));
}
