//! Bars: the progress of a task, and a score behind its label.

use eframe::egui::{
    Align2, Color32, CornerRadius, FontId, ProgressBar, Rect, Response, Role, Sense, Stroke, StrokeKind, TextStyle, Ui,
    WidgetInfo, pos2, vec2,
};

use crate::domain::{grouped, human_bytes, human_duration};
use crate::tasks::{Progress, ProgressUnit};
use crate::window::state::{Command, Commands, State, TaskId};
use crate::window::ui::theme;
use crate::window::ui::widgets::{command_button_ui, small_note_line_ui, truncated};

/// A bar, a cancel button, and the progress as text.
pub(crate) fn progress_ui(ui: &mut Ui, state: &State, task: TaskId, cancel: &str, commands: &mut Commands) {
    let Some(entry) = state.tasks.get(task) else {
        return;
    };
    let progress = entry.control.progress();
    ui.horizontal(|ui| {
        ui.add(progress_bar(progress.fraction()).desired_width(150.0));
        command_button_ui(ui, cancel, commands, || Command::cancel(task));
        let text = progress_text(&progress, entry.control.is_paused());
        let text = if text.is_empty() { entry.title.clone() } else { text };
        small_note_line_ui(ui, text);
    });
}

pub(crate) fn progress_bar(fraction: Option<f32>) -> ProgressBar {
    ProgressBar::new(fraction.unwrap_or(0.0)).desired_height(8.0)
}

/// `120 of 812, 14.2 images/s, 49 s left`.
pub(crate) fn progress_text(progress: &Progress, is_paused: bool) -> String {
    let amount = |number: u64| match progress.unit {
        ProgressUnit::Bytes => human_bytes(number),
        ProgressUnit::Images | ProgressUnit::Steps => grouped(number as usize),
    };
    let mut parts = Vec::new();
    let texts = [&progress.step, &progress.detail];
    parts.extend(texts.into_iter().filter(|text| !text.is_empty()).cloned());
    match progress.total {
        Some(total) => parts.push(format!("{} of {}", amount(progress.done), amount(total))),
        None if progress.done > 0 => parts.push(amount(progress.done)),
        None => {}
    }
    if is_paused {
        parts.push("paused".to_owned());
        return parts.join(", ");
    }
    if let Some(rate) = progress.rate() {
        match progress.unit {
            ProgressUnit::Images => parts.push(format!("{rate:.1} images/s")),
            ProgressUnit::Bytes => parts.push(format!("{}/s", human_bytes(rate as u64))),
            ProgressUnit::Steps => {}
        }
    }
    if let Some(left) = progress.time_left() {
        parts.push(format!("{} left", human_duration(left)));
    }
    parts.extend(progress.count_age_text());
    parts.join(", ")
}

pub(crate) const SCORE_ROW_HEIGHT: f32 = 26.0;
const SCORE_WIDTH: f32 = 58.0;
const SWATCH_WIDTH: f32 = 4.0;

/// A row as wide as the panel. The bar is behind the label and ends at `score` (`0.0..=1.0`).
pub(crate) fn score_row_ui(
    ui: &mut Ui,
    label: &str,
    score: Option<f32>,
    color: Color32,
    is_selected: bool,
    sense: Sense,
) -> Response {
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), SCORE_ROW_HEIGHT), sense);
    let score_text = score.map_or_else(String::new, |score| format!("{:.1}%", score * 100.0));
    response.widget_info(|| {
        let kind = if sense.senses_click() { Role::Button } else { Role::Label };
        WidgetInfo::labeled(kind, true, format!("{label} {score_text}").trim_end())
    });
    if !ui.is_rect_visible(rect) {
        return response;
    }
    let visuals = ui.visuals();
    let corner = CornerRadius::same(4);
    let painter = ui.painter();
    let bar = Rect::from_min_max(rect.min, pos2(rect.right() - SCORE_WIDTH, rect.bottom()));
    painter.rect_filled(bar, corner, theme::sunken_fill(visuals));
    let filled = bar.with_max_x(bar.left() + bar.width() * score.unwrap_or_default().clamp(0.0, 1.0));
    painter.rect_filled(filled, corner, color.gamma_multiply(0.35));
    painter.rect_filled(bar.with_max_x(bar.left() + SWATCH_WIDTH), corner, color);
    if is_selected || response.hovered() {
        let stroke = Stroke::new(if is_selected { 2.0 } else { 1.0 }, theme::accent(visuals));
        painter.rect_stroke(rect, corner, stroke, StrokeKind::Inside);
    }
    let font = TextStyle::Body.resolve(ui.style());
    let text_width = bar.width() - SWATCH_WIDTH - 12.0;
    let galley = truncated(ui, label, font.clone(), visuals.text_color(), text_width);
    let text_top = rect.center().y - galley.size().y / 2.0;
    painter.galley(pos2(bar.left() + SWATCH_WIDTH + 6.0, text_top), galley, visuals.text_color());
    painter.text(
        pos2(rect.right() - 4.0, rect.center().y),
        Align2::RIGHT_CENTER,
        score_text,
        FontId::proportional(font.size),
        visuals.text_color(),
    );
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn progress_shows_amount_rate_and_time_left() {
        let progress = Progress {
            done: 20,
            total: Some(100),
            unit: ProgressUnit::Images,
            step: String::new(),
            detail: String::new(),
            done_before: 0,
            elapsed: Duration::from_secs(4),
            counted: None,
        };
        let text = progress_text(&progress, false);
        assert_eq!(text, "20 of 100, 5.0 images/s, 16 s left");
        assert_eq!(progress_text(&progress, true), "20 of 100, paused");
    }
}
