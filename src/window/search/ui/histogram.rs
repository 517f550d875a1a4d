//! The score histogram, with the threshold in it.

use eframe::egui::{
    Align, CornerRadius, CursorIcon, Layout, Rect, Response, RichText, Role, Sense, Stroke, Ui, WidgetInfo, pos2, vec2,
};

use crate::domain::ModelTask;
use crate::review::{ScoreHistogram, Statistics};
use crate::window::state::State;
use crate::window::ui::theme;
use crate::window::ui::widgets::{box_count, grouped, image_count, small_note_line_ui};

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
pub(crate) fn histogram_ui(ui: &mut Ui, state: &State, memory: &mut HistogramMemory, threshold: f32) -> Option<f32> {
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
