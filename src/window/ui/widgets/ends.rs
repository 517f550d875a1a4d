//! A line with content at both ends.

use eframe::egui::{Align, AsIdSalt, Layout, Ui, vec2};

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
