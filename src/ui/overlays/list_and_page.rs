//! A dialog with a list on its left and the page of what is chosen beside it.

use eframe::egui::{self, Align, Layout, Ui, vec2};

use super::super::widgets::{Tone, banner_ui, copy_sign_in_ui, strong};
use super::dialog::dialog;
use crate::domain::S3Access;
use crate::state::{Command, Failure, Overlay, Queue, RemoteList, State};

const WIDTH: f32 = 1080.0;
const LIST_WIDTH: f32 = 340.0;
/// Narrower than this, the page takes the place of the list.
const TWO_COLUMNS: f32 = 720.0;

/// `contents` gets the height that is left for it, in points.
pub(super) fn dialog_ui(
    ctx: &egui::Context,
    id: &str,
    title: &str,
    commands: &mut Queue<Command>,
    contents: impl FnOnce(&mut Ui, f32, &mut Queue<Command>),
) {
    let modal = dialog(ctx, id).show(ctx, |ui| {
        let room = ctx.content_rect().size() - vec2(60.0, 60.0);
        ui.set_width(WIDTH.min(room.x));
        heading_ui(ui, title, commands);
        contents(ui, room.y - 40.0, commands);
    });
    if modal.should_close() && !egui::Popup::is_any_open(ctx) {
        commands.push(Command::SetOverlay(Overlay::None));
    }
}

fn heading_ui(ui: &mut Ui, title: &str, commands: &mut Queue<Command>) {
    ui.horizontal(|ui| {
        ui.label(strong(title).size(18.0));
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            if ui.button("Close").clicked() {
                commands.push(Command::SetOverlay(Overlay::None));
            }
        });
    });
    ui.add_space(4.0);
}

/// What is to be known of a list before its lines: why it could not be read, that nobody was asked yet (`unasked`), or
/// that somebody else was. Gives who was asked.
pub(super) fn list_head_ui<'l, Q, T>(
    ui: &mut Ui,
    state: &State,
    list: &'l RemoteList<Q, T>,
    unasked: &str,
    commands: &mut Queue<Command>,
) -> Option<&'l S3Access> {
    if let Some(Failure::Failed { message, .. }) = &list.failure {
        banner_ui(ui, Tone::Error, message, |ui| {
            copy_sign_in_ui(ui, list.failure.as_ref(), commands);
        });
    }
    let Some((access, _)) = &list.asked else {
        ui.weak(unasked);
        return None;
    };
    if *access != state.s3.access {
        ui.weak("Listed with other settings; list again");
    }
    Some(access)
}

/// What stands where nothing is chosen.
pub(super) struct EmptyPage {
    pub(super) title: &'static str,
    pub(super) advice: &'static str,
}

/// `page` draws what is chosen, and is `None` where nothing is. `list` and `page` get their height, in points. Gives
/// whether the button
/// `back`, which leads from the page to the list in a narrow window, was clicked.
pub(super) fn columns_ui<C>(
    ui: &mut Ui,
    height: f32,
    back: &str,
    nothing: &EmptyPage,
    context: &mut C,
    list: impl FnOnce(&mut Ui, f32, &mut C),
    page: Option<impl FnOnce(&mut Ui, f32, &mut C)>,
) -> bool {
    if ui.available_width() < TWO_COLUMNS {
        let Some(page) = page else {
            list(ui, height, context);
            return false;
        };
        let goes_back = ui.button(back).clicked();
        page(ui, height - 30.0, context);
        return goes_back;
    }
    ui.horizontal_top(|ui| {
        ui.vertical(|ui| {
            ui.set_width(LIST_WIDTH);
            list(ui, height, context);
        });
        ui.separator();
        ui.vertical(|ui| {
            ui.set_width(ui.available_width());
            match page {
                Some(page) => page(ui, height, context),
                None => nothing_open_ui(ui, nothing),
            }
        });
    });
    false
}

fn nothing_open_ui(ui: &mut Ui, nothing: &EmptyPage) {
    ui.add_space(24.0);
    ui.vertical_centered(|ui| {
        ui.label(strong(nothing.title));
        ui.weak(nothing.advice);
    });
}
