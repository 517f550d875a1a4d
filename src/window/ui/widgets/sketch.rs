//! Draws boxes on a small image.

use eframe::egui::{Color32, Painter, Rect, Stroke, StrokeKind, pos2};

use super::super::theme;
use crate::domain::{Detection, Prediction};

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
