//! Which boxes and classes are shown, the histogram of scores, and what remains of the whole run. Nothing here runs the
//! model again.

use std::collections::BTreeSet;

use eframe::egui::{CursorIcon, TextWrapMode};

use crate::domain::{CardTask, KeepRule, ModelCard, ModelTask, OutputConvention};
use crate::review::{ScoreHistogram, Statistics};
use crate::window::predict::ui::class_table::{ClassesMemory, class_table_ui};
use crate::window::state::ViewChange;
use crate::window::ui::prelude::*;

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
    match state.viewed_card().and_then(|card| card.task.predictions()) {
        Some(ModelTask::Detection) => {
            threshold_ui(ui, state, memory, commands);
            overlap_ui(ui, state, commands);
        }
        Some(ModelTask::Classification) => classifier_ui(ui, state, memory, commands),
        None if state.viewed_card().is_some() => encoder_ui(ui),
        None => {}
    }
    ui.add_space(2.0);
    action_button_ui(ui, state, Action::ResetView, commands);
}

/// The classes of the run: as a table of at most this height if possible, and with their own settings.
pub(crate) fn classes_ui(ui: &mut Ui, state: &State, memory: &mut FiltersMemory, height: f32, commands: &mut Commands) {
    class_table_ui(ui, state, &mut memory.classes, height, commands);
    if state.viewed_card().is_some_and(|card| card.task == CardTask::Detection) {
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
        small_note_ui(ui, format!("The model already drops boxes below {lowest:.3}"));
    }
}

/// The threshold keeps its place, but there is nothing that it could hide.
fn encoder_ui(ui: &mut Ui) {
    let reason = "An encoder has no scores, classes or boxes to filter by";
    let threshold = ui.add_enabled_ui(false, |ui| {
        ui.horizontal(|ui| {
            let label = ui.label("Minimum score");
            fit_slider(ui);
            ui.add(slider(&mut 0.0_f32, 0.0..=1.0).fixed_decimals(2)).labelled_by(label.id);
        });
    });
    threshold.response.on_disabled_hover_text(reason);
    note_ui(ui, reason);
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
        small_note_ui(ui, text);
    }
    let in_graph = state.viewed_card().and_then(|card| match &card.output {
        OutputConvention::Detection(output) => output.nms_iou_in_graph,
        OutputConvention::Classification(_) | OutputConvention::Embedding(_) => None,
    });
    if let Some(in_graph) = in_graph {
        let text = format!("The model already hides overlaps above {in_graph:.2}");
        small_note_ui(ui, text);
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

const HEIGHT: f32 = 58.0;

/// The histogram's state between frames.
#[derive(Default)]
pub(crate) struct HistogramMemory {
    /// Otherwise the scale is not linear, because a detector returns so many boxes with low scores that only those
    /// would be visible.
    is_linear: bool,
}

/// The bars, and below them the count above the threshold. Returns a new threshold if the pointer sets one. Its space
/// is reserved while it is empty, so that nothing below it moves.
fn histogram_ui(ui: &mut Ui, state: &State, memory: &mut HistogramMemory, threshold: f32) -> Option<f32> {
    let statistics = state.arranging.statistics();
    let statistics = statistics.filter(|statistics| statistics.images > 0);
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), HEIGHT), Sense::click_and_drag());
    let summary = statistics.map_or_else(|| "No predictions yet".to_owned(), |found| summary(found));
    response.widget_info(|| {
        let label = format!("Score histogram; {summary}");
        WidgetInfo::labeled(Role::Image, true, label)
    });
    let sunken = theme::sunken_fill(ui.visuals());
    ui.painter().rect_filled(rect, CornerRadius::same(4), sunken);
    let set = statistics.and_then(|statistics| bars_ui(ui, (rect, response), statistics, threshold, memory.is_linear));
    // From the right, so that the text takes what the button leaves, and one line in any case.
    let row = vec2(ui.available_width(), ui.spacing().interact_size.y);
    ui.allocate_ui_with_layout(row, Layout::right_to_left(Align::Center), |ui| {
        let mut is_logarithmic = !memory.is_linear;
        let toggle = ui
            .toggle_value(&mut is_logarithmic, RichText::new("Log scale").small())
            .on_hover_text("Makes small counts visible next to large ones");
        if toggle.changed() {
            memory.is_linear = !is_logarithmic;
        }
        ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
            small_note_line_ui(ui, summary);
        });
    });
    set
}

fn bars_ui(
    ui: &Ui,
    (rect, response): (Rect, Response),
    statistics: &Statistics,
    threshold: f32,
    is_linear: bool,
) -> Option<f32> {
    if ui.is_rect_visible(rect) {
        paint(ui, rect, statistics, threshold, is_linear);
    }
    let pointer = response.interact_pointer_pos();
    let set = pointer.filter(|_| response.clicked() || response.dragged());
    let hovered = response.hover_pos().map(|pointer| score_at(rect, pointer.x));
    let response = response.on_hover_cursor(CursorIcon::ResizeHorizontal);
    if let Some(score) = hovered {
        let bin = bin_of(score);
        let count = statistics.histogram.bins()[bin] as usize;
        let (low, high) = (bin as f32 / BINS, (bin + 1) as f32 / BINS);
        let what = match statistics.task {
            ModelTask::Classification => "images",
            ModelTask::Detection => "boxes",
        };
        response.on_hover_text_at_pointer(format!(
            "{} {what} score {low:.2} to {high:.2}; click or drag to set the threshold",
            grouped(count)
        ));
    }
    set.map(|pointer| score_at(rect, pointer.x))
}

const BINS: f32 = ScoreHistogram::BINS as f32;

fn summary(statistics: &Statistics) -> String {
    let images = image_count(statistics.images);
    let above = grouped(statistics.images_above);
    match statistics.task {
        ModelTask::Classification => format!("{above} of {images} above"),
        ModelTask::Detection => {
            let boxes = box_count(statistics.boxes_above);
            let counting = if statistics.is_exact { "" } else { ", overlaps are still being counted…" };
            format!("{boxes} shown in {above} of {images}{counting}")
        }
    }
}

fn score_at(rect: Rect, x: f32) -> f32 {
    // Rounded to 0.01, as shown by the slider next to it.
    let score = ((x - rect.left()) / rect.width()).clamp(0.0, 1.0);
    (score * 100.0).round() / 100.0
}

fn bin_of(score: f32) -> usize {
    ((score * BINS) as usize).min(ScoreHistogram::BINS - 1)
}

fn paint(ui: &Ui, rect: Rect, statistics: &Statistics, threshold: f32, is_linear: bool) {
    let visuals = ui.visuals();
    let painter = ui.painter().with_clip_rect(rect);
    let height = |count: u32| {
        let count = f64::from(count);
        if is_linear { count } else { count.ln_1p() }
    };
    let highest = height(statistics.histogram.highest()).max(1.0);
    let bar_width = rect.width() / BINS;
    let (above, below) = (theme::accent(visuals), visuals.weak_text_color());
    for (bin, count) in statistics.histogram.bins().iter().enumerate() {
        if *count == 0 {
            continue;
        }
        let share = (height(*count) / highest) as f32;
        let left = rect.left() + bin as f32 * bar_width;
        // One box among a million must still be visible.
        let top = rect.bottom() - (share * (rect.height() - 6.0)).max(1.5);
        let bar = Rect::from_min_max(pos2(left + 0.5, top), pos2(left + bar_width - 0.5, rect.bottom()));
        let is_above = (bin as f32 + 0.5) / BINS >= threshold;
        let color = if is_above { above } else { below.gamma_multiply(0.6) };
        painter.rect_filled(bar, CornerRadius::ZERO, color);
    }
    let x = rect.left() + rect.width() * threshold.clamp(0.0, 1.0);
    painter.vline(x, rect.y_range(), Stroke::new(2.0, visuals.strong_text_color()));
    let handle = Rect::from_center_size(pos2(x, rect.top() + 4.0), vec2(8.0, 8.0));
    painter.rect_filled(handle, CornerRadius::same(2), visuals.strong_text_color());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histogram_positions_are_hundredths() {
        let rect = Rect::from_min_size(pos2(10.0, 0.0), vec2(300.0, 50.0));
        for (x, score) in [(0.0, 0.0), (10.0, 0.0), (160.0, 0.5), (163.2, 0.51), (999.0, 1.0)] {
            assert!((score_at(rect, x) - score).abs() < 1e-6, "{x}");
        }
        assert_eq!(bin_of(1.0), ScoreHistogram::BINS - 1);
    }
}
