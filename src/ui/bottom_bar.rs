//! The panels along the bottom of the window. They take their room before the panels above them, and Tab visits them
//! afterwards.

use eframe::egui::{Layout, Panel, Ui, UiBuilder, vec2};

/// A panel that is as high as its contents.
#[derive(Default)]
pub(super) struct BottomBar {
    /// Of the contents, in the last frame.
    height: f32,
}

impl BottomBar {
    /// Takes the room, and returns the part of it that [`Self::fill`] is given later.
    pub(super) fn reserve(&self, ui: &mut Ui, id: &'static str) -> Ui {
        reserve(ui, id, Panel::bottom(id).resizable(false), |_| self.height)
    }

    pub(super) fn fill(&mut self, mut room: Ui, contents: impl FnOnce(&mut Ui)) {
        contents(&mut room);
        let height = room.min_rect().height();
        if self.height != height {
            self.height = height;
            room.ctx().request_discard("a bar at the bottom has another height");
        }
    }
}

/// Takes the room of a panel, and returns the part that its contents are drawn in later.
pub(super) fn reserve(ui: &mut Ui, id: &'static str, panel: Panel, height: impl FnOnce(&Ui) -> f32) -> Ui {
    let rect = panel.show(ui, |ui| {
        let size = vec2(ui.available_width(), height(ui));
        ui.allocate_space(size).1
    });
    // Made here, so that its widgets are the same ones whatever is drawn in between.
    ui.new_child(UiBuilder::new().id_salt((id, "contents")).max_rect(rect.inner).layout(Layout::default()))
}
