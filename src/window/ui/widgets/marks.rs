//! The look of verdicts, of wrong and missed boxes, and of boxes on small images: words and shapes identify them, never
//! color alone.

use eframe::egui::{Align2, Color32, FontId, Painter, Pos2, Rect, Shape, Stroke, StrokeKind, Vec2, pos2, vec2};

use crate::domain::{Detection, NEW_CLASS, Prediction, Verdict};
use crate::review::{NamedOutcome, VerdictKind};
use crate::window::state::State;
use crate::window::ui::theme;

/// The predicted class with a verdict, or else with the ground-truth class: “✓ cup”, “≠ cup → bottle”, “cup, is
/// bottle”. A class that a person gave and the model does not have is marked: “+ teapot (new)”.
pub(crate) fn class_text(
    state: &State,
    detection: &Detection,
    verdict: Option<&Verdict>,
    outcome: Option<NamedOutcome<'_>>,
) -> String {
    let marked = |label: &str, is_new| if is_new { format!("{label} (new)") } else { label.to_owned() };
    let label = &marked(&detection.label, detection.class_id == NEW_CLASS);
    match (verdict, outcome) {
        (Some(Verdict::WrongClass(right)), _) => {
            format!("≠ {label} → {}", marked(right, state.is_new_class(right)))
        }
        (Some(Verdict::Added(_)), _) => format!("+ {label}"),
        (Some(other), _) => format!("{} {label}", verdict_sign(other.into())),
        (None, Some(outcome)) => outcome.class_text(label),
        (None, None) => label.clone(),
    }
}

/// The verdict in words: “wrong class, is “cat””.
pub(crate) fn verdict_text(verdict: &Verdict) -> String {
    match verdict {
        Verdict::WrongClass(class) => format!("wrong class, is “{class}”"),
        other => VerdictKind::from(other).participle().to_owned(),
    }
}

/// The verdict on the label of an undetected object in words.
pub(crate) fn label_verdict_text(verdict: Option<VerdictKind>) -> Option<&'static str> {
    verdict.map(|kind| if kind == VerdictKind::Accept { "label is right" } else { "label is wrong" })
}

/// The sign, for a line of text.
pub(crate) fn verdict_sign(kind: VerdictKind) -> &'static str {
    match kind {
        VerdictKind::Accept => "✓",
        VerdictKind::Reject => "×",
        VerdictKind::Unsure => "?",
        VerdictKind::WrongClass => "≠",
        VerdictKind::Moved => "↔",
        VerdictKind::Added => "+",
        VerdictKind::Complete => "✓✓",
        VerdictKind::Returned => "←",
    }
}

/// Distinguishable for people with red-green color blindness, because they also differ in lightness.
pub(crate) fn verdict_color(kind: VerdictKind) -> Color32 {
    match kind {
        VerdictKind::Accept => Color32::from_rgb(0x3d, 0xcf, 0x8e),
        VerdictKind::Reject => Color32::from_rgb(0xd8, 0x3a, 0x4f),
        VerdictKind::Unsure => Color32::from_rgb(0xf2, 0xc1, 0x4c),
        VerdictKind::WrongClass => Color32::from_rgb(0x8f, 0x6b, 0xe8),
        VerdictKind::Moved => Color32::from_rgb(0x4f, 0xb3, 0xf0),
        VerdictKind::Added => Color32::from_rgb(0xe8, 0x8b, 0xd0),
        VerdictKind::Complete => Color32::from_rgb(0xc9, 0xd3, 0xdc),
        VerdictKind::Returned => Color32::from_rgb(0xf0, 0x8a, 0x3c),
    }
}

/// Draws a disc with a check mark, a square with a cross, a diamond with a question mark, a triangle with “not equal”,
/// a wide box with an arrow, a square with a plus, a disc with two check marks, or a diamond with an arrow to the left;
/// legible on any image.
pub(crate) fn paint_verdict(painter: &Painter, center: Pos2, radius: f32, kind: VerdictKind) {
    let outline = Stroke::new(1.5, Color32::from_black_alpha(200));
    let fill = verdict_color(kind);
    let at = |x: f32, y: f32| center + vec2(x, y) * radius;
    let shape = match kind {
        VerdictKind::Accept | VerdictKind::Complete => {
            painter.circle(center, radius, fill, outline);
            None
        }
        VerdictKind::Reject | VerdictKind::Added => {
            Some(vec![at(-0.9, -0.9), at(0.9, -0.9), at(0.9, 0.9), at(-0.9, 0.9)])
        }
        VerdictKind::Unsure | VerdictKind::Returned => {
            Some(vec![at(0.0, -1.2), at(1.2, 0.0), at(0.0, 1.2), at(-1.2, 0.0)])
        }
        VerdictKind::WrongClass => Some(vec![at(0.0, -1.2), at(1.3, 1.0), at(-1.3, 1.0)]),
        VerdictKind::Moved => Some(vec![at(-1.2, -0.7), at(1.2, -0.7), at(1.2, 0.7), at(-1.2, 0.7)]),
    };
    if let Some(corners) = shape {
        painter.add(Shape::convex_polygon(corners, fill, outline));
    }
    let is_dark = matches!(kind, VerdictKind::Reject | VerdictKind::WrongClass);
    let ink = if is_dark { Color32::WHITE } else { Color32::BLACK };
    let pen = Stroke::new((radius * 0.22).max(1.2), ink);
    for &[x1, y1, x2, y2] in strokes(kind) {
        painter.line_segment([at(x1, y1), at(x2, y2)], pen);
    }
    if kind == VerdictKind::Unsure {
        painter.text(center, Align2::CENTER_CENTER, "?", FontId::proportional(radius * 1.5), ink);
    }
}

/// The lines of a sign, from and to, in units of its radius.
fn strokes(kind: VerdictKind) -> &'static [[f32; 4]] {
    match kind {
        VerdictKind::Accept => &[[-0.45, 0.05, -0.1, 0.4], [-0.1, 0.4, 0.5, -0.4]],
        VerdictKind::Complete => {
            &[[-0.65, 0.05, -0.35, 0.4], [-0.35, 0.4, 0.2, -0.4], [-0.25, 0.05, 0.05, 0.4], [0.05, 0.4, 0.6, -0.4]]
        }
        VerdictKind::Reject => &[[-0.4, -0.4, 0.4, 0.4], [-0.4, 0.4, 0.4, -0.4]],
        VerdictKind::Unsure => &[],
        VerdictKind::WrongClass => &[[-0.45, 0.2, 0.45, 0.2], [-0.5, 0.6, 0.5, 0.6], [-0.25, 0.85, 0.25, -0.1]],
        VerdictKind::Moved => &[
            [-0.75, 0.0, 0.75, 0.0],
            [-0.75, 0.0, -0.4, 0.35],
            [-0.75, 0.0, -0.4, -0.35],
            [0.75, 0.0, 0.4, -0.35],
            [0.75, 0.0, 0.4, 0.35],
        ],
        VerdictKind::Added => &[[-0.5, 0.0, 0.5, 0.0], [0.0, -0.5, 0.0, 0.5]],
        VerdictKind::Returned => &[[-0.6, 0.0, 0.6, 0.0], [-0.6, 0.0, -0.2, 0.35], [-0.6, 0.0, -0.2, -0.35]],
    }
}

pub(crate) const MARK_SIZE: Vec2 = vec2(23.0, 15.0);
const WRONG: Color32 = Color32::from_rgb(0xb3, 0x26, 0x1e);

/// A filled corner with “FP”: white on red, contrast 6.5.
pub(crate) fn paint_wrong(painter: &Painter, left_top: Pos2, strength: f32) {
    paint(painter, left_top, "FP", [WRONG, Color32::WHITE], strength);
}

/// A filled corner with “FN”, in the white of ground truth.
pub(crate) fn paint_false_negative(painter: &Painter, left_top: Pos2) {
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

/// Draws boxes on the whole image in `rect`, the first one on top.
pub(crate) fn paint_detections<'d>(
    painter: &Painter,
    rect: Rect,
    prediction: &Prediction,
    boxes: impl DoubleEndedIterator<Item = &'d Detection>,
) {
    let scale = rect.width() / prediction.width.max(1) as f32;
    for found in boxes.rev() {
        let bounds = found.bounds.clipped(prediction.width, prediction.height);
        let corner = |x: f32, y: f32| pos2(rect.left() + x * scale, rect.top() + y * scale);
        let place = Rect::from_min_max(corner(bounds.x1, bounds.y1), corner(bounds.x2, bounds.y2));
        let dark = Stroke::new(2.5, Color32::from_black_alpha(140));
        painter.rect_stroke(place, 0.0, dark, StrokeKind::Inside);
        let line = Stroke::new(1.5, theme::class_color(&found.label));
        painter.rect_stroke(place, 0.0, line, StrokeKind::Inside);
    }
}
