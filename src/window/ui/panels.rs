//! The panels around the middle of the window. They reserve their space before it is drawn.

use eframe::egui::{Layout, Panel, Rangef, Ui, UiBuilder, vec2};

/// A panel as high as its contents.
#[derive(Default)]
pub(crate) struct BottomBar {
    /// The height of the contents in the last frame.
    height: f32,
}

impl BottomBar {
    /// Reserves the space, and returns the part for [`Self::fill`].
    pub(crate) fn reserve(&self, ui: &mut Ui, id: &'static str) -> Ui {
        reserve(ui, id, Panel::bottom(id).resizable(false), |_| self.height)
    }

    pub(crate) fn fill(&mut self, mut room: Ui, contents: impl FnOnce(&mut Ui)) {
        contents(&mut room);
        let height = room.min_rect().height();
        if self.height != height {
            self.height = height;
            room.ctx().request_discard("a bar at the bottom has another height");
        }
    }
}

/// Reserves the space of a panel, and returns the part for its contents.
pub(crate) fn reserve(ui: &mut Ui, id: &'static str, panel: Panel, height: impl FnOnce(&Ui) -> f32) -> Ui {
    let rect = panel.show(ui, |ui| {
        let size = vec2(ui.available_width(), height(ui));
        ui.allocate_space(size).1
    });
    // Created here, so that its widgets keep their ids whatever is drawn in between.
    ui.new_child(UiBuilder::new().id_salt((id, "contents")).max_rect(rect.inner).layout(Layout::default()))
}

/// The minimum width of the middle if the window allows it, in points: the title of an image with its buttons, and the
/// tabs of an evaluation.
const MIDDLE_WIDTH: f32 = 440.0;
/// Smaller differences in width come from rounding to pixels.
const ROUNDING: f32 = 1.0;

/// The width of a panel: as set by the user, or less if the middle needs the space.
pub(crate) struct SideWidth {
    range: Rangef,
    wanted: f32,
    /// In the last frame; zero while the panel is hidden.
    shown: f32,
    /// In the last frame; `None` before the first.
    limit: Option<f32>,
}

impl SideWidth {
    pub(crate) fn new(wanted: f32, range: impl Into<Rangef>) -> Self {
        Self { range: range.into(), wanted, shown: wanted, limit: None }
    }

    /// The width that it takes from the window.
    pub(crate) fn taken(&self) -> f32 {
        self.shown
    }

    pub(crate) fn hide(&mut self) {
        self.shown = 0.0;
    }

    /// Reserves space for the panel and returns it. `reserved` is what the other side panel still takes of the space.
    /// Content that is too wide is cut off: only the user makes the panel wider.
    pub(crate) fn reserve(&mut self, ui: &mut Ui, panel: Panel, reserved: f32) -> Ui {
        let limit = (ui.available_width() - reserved - MIDDLE_WIDTH).clamp(self.range.min, self.range.max);
        let expected = self.wanted.clamp(self.range.min, limit);
        let is_same_room = self.limit.is_none_or(|last| last == limit);
        // If the space has changed, the panel follows; egui alone would keep the last frame's width.
        let range = if is_same_room { Rangef::new(self.range.min, limit) } else { Rangef::point(expected) };
        let panel = panel.default_size(expected).size_range(range).show(ui, |ui| {
            let place = ui.available_rect_before_wrap();
            let contents = ui.new_child(UiBuilder::new().id_salt("contents").max_rect(place));
            ui.advance_cursor_after_rect(place);
            contents
        });
        self.shown = panel.response.rect.width();
        if is_same_room && (self.shown - expected).abs() > ROUNDING {
            self.wanted = self.shown;
        }
        self.limit = Some(limit);
        panel.inner
    }
}
