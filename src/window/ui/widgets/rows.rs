//! Long lists inside a scrolling panel.

use eframe::egui::{Rect, Sense, Ui, UiBuilder, pos2, vec2};

/// Stacked rows of which only the visible ones are drawn: there may be thousands.
pub(crate) fn rows_in_sight_ui(ui: &mut Ui, row_height: f32, count: usize, mut row_ui: impl FnMut(&mut Ui, usize)) {
    let size = vec2(ui.available_width(), row_height * count as f32);
    let (all, _) = ui.allocate_exact_size(size, Sense::hover());
    let row_at = |y: f32| ((y - all.top()) / row_height).max(0.0);
    let end = (row_at(ui.clip_rect().bottom()).ceil() as usize).min(count);
    let begin = (row_at(ui.clip_rect().top()).floor() as usize).min(end);
    for row in begin..end {
        let left_top = pos2(all.left(), all.top() + row_height * row as f32);
        let rect = Rect::from_min_size(left_top, vec2(size.x, row_height));
        row_ui(&mut ui.new_child(UiBuilder::new().max_rect(rect).id_salt(row)), row);
    }
}
