//! The marks of wrong boxes and missed objects: with words and shape, the same on every image and in both themes.

use eframe::egui::{Color32, FontId, Painter, Pos2, Rect, Stroke, StrokeKind, Vec2, vec2};

use super::super::theme;

pub(crate) const MARK_SIZE: Vec2 = vec2(23.0, 15.0);
const WRONG: Color32 = Color32::from_rgb(0xb3, 0x26, 0x1e);

/// A filled corner with “FP”: white on red, contrast 6.5.
pub(crate) fn paint_wrong(painter: &Painter, left_top: Pos2, strength: f32) {
    paint(painter, left_top, "FP", [WRONG, Color32::WHITE], strength);
}

/// A filled corner with “FN”, in the white of ground truth.
pub(crate) fn paint_missed(painter: &Painter, left_top: Pos2) {
    paint(painter, left_top, "FN", [Color32::WHITE, Color32::BLACK], 1.0);
}

fn paint(painter: &Painter, left_top: Pos2, text: &str, [fill, ink]: [Color32; 2], strength: f32) {
    let place = Rect::from_min_size(left_top, MARK_SIZE);
    let edge = Stroke::new(1.0, Color32::from_black_alpha((200.0 * strength) as u8));
    painter.rect(place, 2.0, fill.gamma_multiply(strength), edge, StrokeKind::Outside);
    let font = FontId::new(11.0, theme::strong_family());
    let ink = ink.gamma_multiply(strength);
    painter.text(place.center(), eframe::egui::Align2::CENTER_CENTER, text, font, ink);
}

/// The same for a box that is too small for letters: a white cross on red.
pub(crate) fn paint_wrong_small(painter: &Painter, place: Rect, strength: f32) {
    painter.rect_filled(place, 0.0, WRONG.gamma_multiply(strength));
    let cross = place.shrink(place.width() / 5.0);
    let stroke = Stroke::new(1.5, Color32::WHITE.gamma_multiply(strength));
    painter.line_segment([cross.left_top(), cross.right_bottom()], stroke);
    painter.line_segment([cross.right_top(), cross.left_bottom()], stroke);
}
