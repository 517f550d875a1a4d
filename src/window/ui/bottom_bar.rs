//! The panels at the bottom of the window. They reserve their space before the panels above them are drawn, and Tab
//! visits them afterward.

use eframe::egui::{Layout, Panel, Ui, UiBuilder, vec2};

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
