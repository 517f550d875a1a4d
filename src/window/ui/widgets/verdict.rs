//! The look of verdicts: shape, sign and color each identify one.

use eframe::egui::{Color32, Painter, Pos2, Shape, Stroke, pos2, vec2};

use crate::domain::{Detection, Verdict};
use crate::review::{NamedOutcome, VerdictKind};

/// The word for screen readers and lists: “accepted”.
pub(crate) fn verdict_word(kind: VerdictKind) -> &'static str {
    match kind {
        VerdictKind::Accept => "accepted",
        VerdictKind::Reject => "rejected",
        VerdictKind::Unsure => "unsure",
        VerdictKind::WrongClass => "wrong class",
    }
}

/// The predicted class with a verdict, or else with the ground-truth class: “✓ cup”, “≠ cup → bottle”, “cup, is
/// bottle”.
pub(crate) fn class_text(
    detection: &Detection,
    verdict: Option<&Verdict>,
    outcome: Option<NamedOutcome<'_>>,
) -> String {
    let label = detection.label.as_str();
    match (verdict, outcome) {
        (Some(Verdict::WrongClass(right)), _) => format!("≠ {label} → {right}"),
        (Some(other), _) => format!("{} {label}", verdict_sign(other.into())),
        (None, Some(outcome)) => outcome.class_text(label),
        (None, None) => label.to_owned(),
    }
}

/// The verdict in words: “wrong class, is “cat””.
pub(crate) fn verdict_text(verdict: &Verdict) -> String {
    match verdict {
        Verdict::WrongClass(class) => format!("wrong class, is “{class}”"),
        other => verdict_word(VerdictKind::from(other)).to_owned(),
    }
}

/// The sign, for a line of text.
pub(crate) fn verdict_sign(kind: VerdictKind) -> &'static str {
    match kind {
        VerdictKind::Accept => "✓",
        VerdictKind::Reject => "×",
        VerdictKind::Unsure => "?",
        VerdictKind::WrongClass => "≠",
    }
}

/// Distinguishable for people with red-green color blindness, because they also differ in lightness.
pub(crate) fn verdict_color(kind: VerdictKind) -> Color32 {
    match kind {
        VerdictKind::Accept => Color32::from_rgb(0x3d, 0xcf, 0x8e),
        VerdictKind::Reject => Color32::from_rgb(0xd8, 0x3a, 0x4f),
        VerdictKind::Unsure => Color32::from_rgb(0xf2, 0xc1, 0x4c),
        VerdictKind::WrongClass => Color32::from_rgb(0x8f, 0x6b, 0xe8),
    }
}

/// Draws a disc with a check mark, a square with a cross, a diamond with a question mark, or a triangle with “not
/// equal”; legible on any image.
pub(crate) fn paint_verdict(painter: &Painter, center: Pos2, radius: f32, kind: VerdictKind) {
    let outline = Stroke::new(1.5, Color32::from_black_alpha(200));
    let fill = verdict_color(kind);
    let at = |x: f32, y: f32| center + vec2(x, y) * radius;
    let shape = match kind {
        VerdictKind::Accept => {
            painter.circle(center, radius, fill, outline);
            None
        }
        VerdictKind::Reject => Some(vec![at(-0.9, -0.9), at(0.9, -0.9), at(0.9, 0.9), at(-0.9, 0.9)]),
        VerdictKind::Unsure => Some(vec![at(0.0, -1.2), at(1.2, 0.0), at(0.0, 1.2), at(-1.2, 0.0)]),
        VerdictKind::WrongClass => Some(vec![at(0.0, -1.2), at(1.3, 1.0), at(-1.3, 1.0)]),
    };
    if let Some(corners) = shape {
        painter.add(Shape::convex_polygon(corners, fill, outline));
    }
    let is_dark = matches!(kind, VerdictKind::Reject | VerdictKind::WrongClass);
    let ink = if is_dark { Color32::WHITE } else { Color32::BLACK };
    let pen = Stroke::new((radius * 0.22).max(1.2), ink);
    let line = |from: Pos2, to: Pos2| painter.line_segment([from, to], pen);
    match kind {
        VerdictKind::Accept => {
            line(at(-0.45, 0.05), at(-0.1, 0.4));
            line(at(-0.1, 0.4), at(0.5, -0.4));
        }
        VerdictKind::Reject => {
            line(at(-0.4, -0.4), at(0.4, 0.4));
            line(at(-0.4, 0.4), at(0.4, -0.4));
        }
        VerdictKind::Unsure => {
            let font = eframe::egui::FontId::proportional(radius * 1.5);
            let align = eframe::egui::Align2::CENTER_CENTER;
            painter.text(pos2(center.x, center.y), align, "?", font, ink);
        }
        VerdictKind::WrongClass => {
            line(at(-0.45, 0.2), at(0.45, 0.2));
            line(at(-0.5, 0.6), at(0.5, 0.6));
            line(at(-0.25, 0.85), at(0.25, -0.1));
        }
    }
}
