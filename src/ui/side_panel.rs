//! The panels at the sides of the window, which leave the middle its room.

use eframe::egui::{Panel, Rangef, Ui, UiBuilder};

/// The width that the middle keeps where the window has it, in points: the title of an image with its buttons, and the
/// tabs of an evaluation.
const MIDDLE_WIDTH: f32 = 440.0;
/// A width that differs by less is the same one, rounded to pixels.
const ROUNDING: f32 = 1.0;

/// The width of a panel: as the user made it, or less where the middle needs the room.
pub(super) struct SideWidth {
    range: Rangef,
    wanted: f32,
    /// In the last frame; zero while the panel is hidden.
    shown: f32,
    /// In the last frame; `None` before the first.
    limit: Option<f32>,
}

impl SideWidth {
    pub(super) fn new(wanted: f32, range: impl Into<Rangef>) -> Self {
        Self { range: range.into(), wanted, shown: wanted, limit: None }
    }

    /// What it takes from the window.
    pub(super) fn taken(&self) -> f32 {
        self.shown
    }

    pub(super) fn hide(&mut self) {
        self.shown = 0.0;
    }

    /// Makes room for the panel and returns it. `reserved` is what the panel at the other side still takes of the room.
    /// What is too wide for the panel is cut off: only the user makes it wider.
    pub(super) fn reserve(&mut self, ui: &mut Ui, panel: Panel, reserved: f32) -> Ui {
        let limit = (ui.available_width() - reserved - MIDDLE_WIDTH).clamp(self.range.min, self.range.max);
        let expected = self.wanted.clamp(self.range.min, limit);
        let is_same_room = self.limit.is_none_or(|last| last == limit);
        // Where the room has changed, the panel follows; egui alone would keep the width of the last frame.
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
