//! The position of the image on screen, and how wheel, pinch, drag and keys change it.

use crate::domain::BoundingBox;
use crate::window::state::CanvasView;
use crate::window::ui::prelude::*;

/// The limits of the zoom, in screen points per image pixel.
const MIN_ZOOM: f32 = 0.005;
const MAX_ZOOM: f32 = 64.0;
/// The zoom up to which a small image is enlarged when fitted.
const MAX_FIT_ZOOM: f32 = 4.0;
/// The fraction of the canvas that a box takes when zoomed to.
const BOX_SHARE: f32 = 0.6;
const MARGIN: f32 = 16.0;
const KEY_FACTOR: f32 = 1.25;
/// The wheel points that zoom by a factor of e.
const WHEEL_POINTS: f32 = 240.0;

/// Converts between screen points and image pixels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placement {
    canvas: Rect,
    /// The size of the image in pixels.
    size: Vec2,
    pub(crate) zoom: f32,
    /// The whole image, in points; can extend past the canvas.
    pub(crate) on_screen: Rect,
}

impl Placement {
    /// `size` is the image's in pixels.
    pub(crate) fn new(canvas: Rect, size: Vec2, view: CanvasView) -> Self {
        let (zoom, center) = match view {
            CanvasView::Fit => {
                let room = (canvas.size() - Vec2::splat(2.0 * MARGIN)).max(Vec2::splat(1.0));
                let fitting = (room.x / size.x).min(room.y / size.y);
                (fitting.min(MAX_FIT_ZOOM), size / 2.0)
            }
            CanvasView::Free { zoom, center } => (zoom, vec2(center[0], center[1])),
        };
        let origin = canvas.center() - center * zoom;
        Self { canvas, size, zoom, on_screen: Rect::from_min_size(origin, size * zoom) }
    }

    pub(crate) fn screen_from_image(&self, bounds: BoundingBox) -> Rect {
        let point = |x: f32, y: f32| self.on_screen.min + vec2(x, y) * self.zoom;
        Rect::from_min_max(point(bounds.x1, bounds.y1), point(bounds.x2, bounds.y2))
    }

    pub(crate) fn image_from_screen(&self, at: Pos2) -> Vec2 {
        (at - self.on_screen.min) / self.zoom
    }

    /// Column and row; `None` outside the image.
    pub(crate) fn pixel_at(&self, at: Pos2) -> Option<[u32; 2]> {
        let pixel = self.image_from_screen(at);
        let is_inside = pixel.x >= 0.0 && pixel.y >= 0.0 && pixel.x < self.size.x && pixel.y < self.size.y;
        is_inside.then_some([pixel.x as u32, pixel.y as u32])
    }

    /// The rectangle of the canvas, for labels that must stay inside.
    pub(crate) fn canvas(&self) -> Rect {
        self.canvas
    }

    pub(crate) fn image_size(&self) -> Vec2 {
        self.size
    }

    /// The view after this frame's wheel, pinch and drag; `None` if it is unchanged. `pans` is whether a drag moves the
    /// image.
    pub(crate) fn navigated(&self, ui: &Ui, response: &Response, state: &State, pans: bool) -> Option<CanvasView> {
        if !state.canvas_requests.is_empty() {
            let requests = state.canvas_requests.iter();
            return Some(requests.fold(state.canvas, |view, action| {
                let placement = Self::new(self.canvas, self.size, view);
                placement.requested(*action, state, ui.pixels_per_point())
            }));
        }
        if response.double_clicked() {
            let at = response.interact_pointer_pos().unwrap_or(self.canvas.center());
            return Some(match state.canvas {
                CanvasView::Fit => self.zoomed_to(1.0 / ui.pixels_per_point(), at),
                CanvasView::Free { .. } => CanvasView::Fit,
            });
        }
        if pans && response.dragged() && response.drag_delta() != Vec2::ZERO {
            return Some(self.moved(response.drag_delta()));
        }
        let at = response.hover_pos().filter(|_| state.overlay == Overlay::None)?;
        let (wheel, pinch) = ui.input(|input| (input.smooth_scroll_delta().y, input.zoom_delta()));
        let factor = pinch * (wheel / WHEEL_POINTS).exp();
        let is_changed = (factor - 1.0).abs() > 1e-4;
        is_changed.then(|| self.zoomed_to(self.zoom * factor, at))
    }

    fn requested(&self, action: Action, state: &State, pixels_per_point: f32) -> CanvasView {
        let center = self.canvas.center();
        match action {
            Action::ZoomToBox => match selected_bounds(state).or_else(|| Some(state.selected_object()?.bounds)) {
                Some(bounds) => self.zoomed_to_box(bounds),
                None => state.canvas,
            },
            Action::ActualSize => self.zoomed_to(1.0 / pixels_per_point, center),
            Action::ZoomIn => self.zoomed_to(self.zoom * KEY_FACTOR, center),
            Action::ZoomOut => self.zoomed_to(self.zoom / KEY_FACTOR, center),
            _ => CanvasView::Fit,
        }
    }

    /// The box centered, with some of its surroundings.
    fn zoomed_to_box(&self, bounds: BoundingBox) -> CanvasView {
        let bounds = bounds.clipped(self.size.x as u32, self.size.y as u32);
        let size = vec2(bounds.width(), bounds.height()).max(Vec2::splat(1.0));
        let fitting = (self.canvas.size() / size).min_elem() * BOX_SHARE;
        let center = vec2(bounds.x1, bounds.y1) + vec2(bounds.width(), bounds.height()) / 2.0;
        self.free(fitting.clamp(MIN_ZOOM, MAX_ZOOM), center)
    }

    /// The pixel under `at` stays in place.
    fn zoomed_to(&self, zoom: f32, at: Pos2) -> CanvasView {
        let zoom = zoom.clamp(MIN_ZOOM, MAX_ZOOM);
        let center = self.image_from_screen(at) + (self.canvas.center() - at) / zoom;
        self.free(zoom, center)
    }

    fn moved(&self, by: Vec2) -> CanvasView {
        let center = self.image_from_screen(self.canvas.center()) - by / self.zoom;
        self.free(self.zoom, center)
    }

    /// The center of the canvas never leaves the image, so that it cannot get lost.
    fn free(&self, zoom: f32, center: Vec2) -> CanvasView {
        let center = center.clamp(Vec2::ZERO, self.size);
        CanvasView::Free { zoom, center: [center.x, center.y] }
    }
}

/// The position of the selected box, in image pixels.
pub(super) fn selected_bounds(state: &State) -> Option<BoundingBox> {
    let prediction = state.shown.prediction.as_ref()?;
    let detection = prediction.detections().get(state.shown.selected_box?)?;
    Some(detection.bounds)
}

#[cfg(test)]
mod tests {
    use eframe::egui::pos2;

    use super::*;

    const CANVAS: Rect = Rect::from_min_max(pos2(100.0, 50.0), pos2(732.0, 482.0));

    #[test]
    fn fitted_image_keeps_its_aspect_ratio() {
        let placement = Placement::new(CANVAS, vec2(1200.0, 800.0), CanvasView::Fit);
        assert!((placement.zoom - 0.5).abs() < 1e-6);
        assert!(CANVAS.contains_rect(placement.on_screen));
    }

    #[test]
    fn zoom_keeps_the_pixel_under_the_pointer() {
        let size = vec2(1200.0, 800.0);
        let placement = Placement::new(CANVAS, size, CanvasView::Fit);
        let at = pos2(300.0, 200.0);
        let before = placement.image_from_screen(at);
        let view = placement.zoomed_to(3.0, at);
        let after = Placement::new(CANVAS, size, view).image_from_screen(at);
        assert!((before - after).length() < 0.01, "{before:?} {after:?}");
    }

    #[test]
    fn image_cannot_be_dragged_out_of_view() {
        let placement = Placement::new(CANVAS, vec2(100.0, 100.0), CanvasView::Fit);
        let CanvasView::Free { center, .. } = placement.moved(vec2(1e6, -1e6)) else {
            panic!("dragging leaves the fitted view");
        };
        assert_eq!(center, [0.0, 100.0]);
    }

    #[test]
    fn zoomed_box_is_centered_with_a_margin() {
        let size = vec2(1200.0, 800.0);
        let placement = Placement::new(CANVAS, size, CanvasView::Fit);
        let bounds = BoundingBox::new(100.0, 100.0, 200.0, 150.0);
        let view = placement.zoomed_to_box(bounds);
        let on_screen = Placement::new(CANVAS, size, view).screen_from_image(bounds);
        assert!((on_screen.center() - CANVAS.center()).length() < 0.1);
        assert!((on_screen.width() - CANVAS.width() * BOX_SHARE).abs() < 0.1);
    }

    #[test]
    fn no_pixel_outside_the_image() {
        let placement = Placement::new(CANVAS, vec2(100.0, 100.0), CanvasView::Fit);
        assert_eq!(placement.pixel_at(CANVAS.min), None);
        assert_eq!(placement.pixel_at(CANVAS.center()), Some([50, 50]));
    }
}
