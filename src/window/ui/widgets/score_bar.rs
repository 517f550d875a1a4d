//! A label, a bar and a score on one line.

use eframe::egui::{self, Align2, Color32, CornerRadius, FontId, Rect, Response, Sense, TextStyle, pos2, vec2};

use super::super::theme;
use super::truncated;

pub(crate) const SCORE_ROW_HEIGHT: f32 = 26.0;
const SCORE_WIDTH: f32 = 58.0;
const SWATCH_WIDTH: f32 = 4.0;

/// A row as wide as the panel. The bar is behind the label and ends at `score` (`0.0..=1.0`).
pub(crate) fn score_row_ui(
    ui: &mut egui::Ui,
    label: &str,
    score: f32,
    color: Color32,
    is_selected: bool,
    sense: Sense,
) -> Response {
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), SCORE_ROW_HEIGHT), sense);
    let score_text = format!("{:.1}%", score * 100.0);
    response.widget_info(|| {
        let kind = if sense.senses_click() { egui::Role::Button } else { egui::Role::Label };
        egui::WidgetInfo::labeled(kind, true, format!("{label} {score_text}"))
    });
    if !ui.is_rect_visible(rect) {
        return response;
    }
    let visuals = ui.visuals();
    let corner = CornerRadius::same(4);
    let painter = ui.painter();
    let bar = Rect::from_min_max(rect.min, pos2(rect.right() - SCORE_WIDTH, rect.bottom()));
    painter.rect_filled(bar, corner, theme::sunken_fill(visuals));
    let filled = bar.with_max_x(bar.left() + bar.width() * score.clamp(0.0, 1.0));
    painter.rect_filled(filled, corner, color.gamma_multiply(0.35));
    painter.rect_filled(bar.with_max_x(bar.left() + SWATCH_WIDTH), corner, color);
    if is_selected || response.hovered() {
        let stroke = egui::Stroke::new(if is_selected { 2.0 } else { 1.0 }, theme::accent(visuals));
        painter.rect_stroke(rect, corner, stroke, egui::StrokeKind::Inside);
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
