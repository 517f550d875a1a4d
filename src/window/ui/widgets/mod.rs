//! Small widgets for several panels: here, lines with content at both ends, and long lists of which only the visible
//! rows are drawn.

mod bars;
mod class_table;
mod controls;
mod marks;
mod text;
mod tree;

use eframe::egui::{Align, AsIdSalt, Layout, Rect, Sense, Ui, UiBuilder, pos2, vec2};

pub(crate) use crate::domain::grouped;
pub(crate) use crate::window::endpoints::ui::{
    delete_endpoint_button, endpoint_cost_text, endpoint_end_text, endpoint_sign, endpoint_word,
};
pub(crate) use crate::window::s3::ui::sign_in::{
    copy_command_ui, copy_renewal_ui, copy_sign_in_ui, renew_in_time, sign_in_banner_ui, sign_in_menu_ui, who_text,
};
pub(crate) use bars::*;
pub(crate) use class_table::*;
pub(crate) use controls::*;
pub(crate) use marks::*;
pub(crate) use text::*;
pub(crate) use tree::*;

/// Draws `start` from the left and `end` at the right, in Tab order: `start` takes what `end` leaves. Both receive
/// `shared`.
pub(crate) fn ends_ui<T>(
    ui: &mut Ui,
    id_salt: impl AsIdSalt,
    shared: &mut T,
    start: impl FnOnce(&mut Ui, &mut T),
    end: impl FnOnce(&mut Ui, &mut T),
) {
    ends_or_lines_ui(ui, id_salt, 0.0, shared, start, end);
}

/// As [`ends_ui`]; if `start` would get less than `least`, `end` is below.
pub(crate) fn ends_or_lines_ui<T>(
    ui: &mut Ui,
    id_salt: impl AsIdSalt,
    least: f32,
    shared: &mut T,
    start: impl FnOnce(&mut Ui, &mut T),
    end: impl FnOnce(&mut Ui, &mut T),
) {
    let id = ui.make_persistent_id(id_salt);
    let known: Option<f32> = ui.data(|data| data.get_temp(id));
    let gap = ui.spacing().item_spacing.x;
    let height = ui.spacing().interact_size.y;
    let room = ui.available_width() - known.unwrap_or(0.0) - gap;
    if room < least {
        start(ui, shared);
        // If wrapped, it does not report its full width.
        ui.horizontal_wrapped(|ui| end(ui, shared));
        return;
    }
    let end_width = ui
        .horizontal(|ui| {
            ui.spacing_mut().item_spacing.x = 0.0;
            ui.allocate_ui_with_layout(vec2(room, height), Layout::left_to_right(Align::Center), |ui| {
                ui.spacing_mut().item_spacing.x = gap;
                ui.set_min_width(room);
                start(ui, shared);
            });
            ui.add_space(gap);
            ui.spacing_mut().item_spacing.x = gap;
            ui.horizontal(|ui| end(ui, shared)).response.rect.width()
        })
        .inner;
    if known != Some(end_width) {
        ui.data_mut(|data| data.insert_temp(id, end_width));
        ui.ctx().request_discard("the end of a line has another width");
    }
}

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
