//! The frame of every dialog, the question before quitting, and short notices that disappear by themselves.

use eframe::egui::{
    Align2, Area, AreaState, Context, Frame, Id, LayerId, Modal, ModalResponse, Order, Popup, Ui, Vec2, vec2,
};

use crate::window::state::{Action, Command, Commands, NoticeOffer, Overlay, ProjectCommand, State};
use crate::window::ui::theme;
use crate::window::ui::widgets::{OnClick, command_button_ui, note_ui, primary_button, strong, wrapped_ui};

/// The space between a dialog and the edges of the window.
const MARGIN: f32 = 12.0;
/// The width that the window leaves around a dialog.
const MARGINS: f32 = 60.0;

/// The position of a dialog in the last pass.
#[derive(Debug, Clone, Copy)]
struct DialogPlacement {
    top: f32,
    /// Its size in the previous pass.
    size: Vec2,
    /// Whether its size was the same in two passes since it opened.
    is_settled: bool,
}

/// A [`dialog`] of at most this width. `close` is pushed when the user closes it.
pub(crate) fn dialog_ui(
    ctx: &Context,
    id: &str,
    width: f32,
    close: impl Into<Command>,
    commands: &mut Commands,
    contents: impl FnOnce(&mut Ui, &mut Commands),
) {
    let modal = dialog(ctx, id).show(ctx, |ui| {
        ui.set_width(width.min(ctx.content_rect().width() - MARGINS));
        contents(ui, commands);
    });
    if is_closed(ctx, &modal) {
        commands.push(close);
    }
}

/// The title of a dialog, and what it is for.
pub(crate) fn heading_ui(ui: &mut Ui, title: &str, about: &str) {
    ui.label(strong(title.trim_end_matches('…')).size(18.0));
    if !about.is_empty() {
        note_ui(ui, about);
    }
    ui.add_space(6.0);
}

/// Whether Escape or a click outside the dialog closes it. A list that is open above it gets the key first.
pub(crate) fn is_closed<T>(ctx: &Context, modal: &ModalResponse<T>) -> bool {
    modal.should_close() && !Popup::is_any_open(ctx)
}

/// A dialog above all panels, centered when it opens. Its content can change its height: the top stays in place as long
/// as there is room below, so that nothing moves under the pointer.
pub(crate) fn dialog(ctx: &Context, id: &str) -> Modal {
    let id = Id::unique(id);
    // Below its own lists: of layers of one order, the last clicked one is on top.
    let order = Order::Middle;
    let area = Modal::default_area(id).order(order);
    let size = AreaState::load(ctx, id).and_then(|state| state.size);
    let is_settled = size.map(|size| {
        let lowest = ctx.content_rect().height() - MARGIN - size.y;
        let middle = f32::midpoint(MARGIN, lowest);
        let was_open = ctx.memory(|memory| memory.areas().visible_last_frame(&LayerId::new(order, id)));
        ctx.data_mut(|data| {
            let before: Option<DialogPlacement> = data.get_temp(id).filter(|_| was_open);
            let top = before.filter(|before| before.is_settled);
            let top = top.map_or(middle, |before| before.top).min(lowest).max(MARGIN);
            let is_settled = before.is_some_and(|before| before.is_settled || before.size == size);
            data.insert_temp(id, DialogPlacement { top, size, is_settled });
            (top, is_settled)
        })
    });
    if is_settled.is_none_or(|(_, is_settled)| !is_settled) {
        // Only what was drawn once has a size; until it is known, the dialog stays invisible.
        ctx.request_discard("the size of a dialog that opens");
        ctx.request_repaint();
    }
    let area = match is_settled {
        Some((top, _)) => area.anchor(Align2::CENTER_TOP, vec2(0.0, top)),
        None => area,
    };
    Modal::new(id).area(area).frame(theme::dialog_frame(ctx))
}

pub(crate) fn quit_ui(ctx: &Context, state: &State, commands: &mut Commands) {
    if state.overlay != Overlay::Quit {
        return;
    }
    dialog_ui(ctx, "quit", 420.0, Command::CLOSE_OVERLAY, commands, |ui, commands| {
        ui.label(strong("Quit Spotcheck?").size(15.0));
        for text in state.unfinished() {
            wrapped_ui(ui, text);
        }
        ui.add_space(6.0);
        ui.horizontal(|ui| {
            ui.add(primary_button(ui, "Keep running")).on_click(commands, || Command::CLOSE_OVERLAY);
            command_button_ui(ui, "Quit now", commands, || Action::Quit);
        });
    });
}

/// Long messages stay longer.
const SECONDS: f64 = 4.0;
const SECONDS_A_CHARACTER: f64 = 0.05;
/// A notice with a button stays long enough for a decision.
const SECONDS_TO_DECIDE: f64 = 6.0;

/// The notice covers neither frequently used buttons, nor the legend and the pixel values below the image.
const BELOW_THE_TITLE: f32 = 78.0;
/// Above the lower edge while a dialog is open, whose title and first lines are at the top.
const ABOVE_THE_EDGE: f32 = 22.0;

#[derive(Default)]
pub(crate) struct ToastMemory {
    /// The shown notice, and since when.
    shown: Option<(u64, f64)>,
}

pub(crate) fn toast_ui(ctx: &Context, state: &State, memory: &mut ToastMemory, commands: &mut Commands) {
    let Some(notice) = &state.notice else {
        memory.shown = None;
        return;
    };
    let now = ctx.input(|input| input.time);
    let since = match memory.shown {
        Some((serial, since)) if serial == notice.serial => since,
        _ => now,
    };
    memory.shown = Some((notice.serial, since));
    let mut lasts = SECONDS + SECONDS_A_CHARACTER * notice.text.len() as f64;
    if notice.offer.is_some() {
        lasts += SECONDS_TO_DECIDE;
    }
    let left = since + lasts - now;
    if left <= 0.0 {
        commands.push(Command::DismissNotice);
        return;
    }
    ctx.request_repaint_after_secs(left as f32);
    let (corner, offset) = if state.has_dialog() {
        (Align2::CENTER_BOTTOM, vec2(0.0, -ABOVE_THE_EDGE))
    } else {
        (Align2::CENTER_TOP, vec2(0.0, BELOW_THE_TITLE))
    };
    Area::new(Id::unique("notice")).order(Order::Foreground).anchor(corner, offset).show(ctx, |ui| {
        Frame::popup(ui.style()).show(ui, |ui| {
            ui.set_max_width(520.0);
            ui.horizontal(|ui| {
                wrapped_ui(ui, &notice.text);
                match notice.offer {
                    Some(NoticeOffer::Do(action)) => {
                        ui.button(action.label())
                            .on_click(commands, || action)
                            .accessible_name(action.label_now(state));
                    }
                    Some(NoticeOffer::ShowRun(run)) if ui.button("Show that run").clicked() => {
                        commands.push(ProjectCommand::SwitchRun(run));
                        commands.push(Command::DismissNotice);
                    }
                    Some(NoticeOffer::ShowRun(_)) | None => {}
                }
                ui.small_button("×")
                    .on_click(commands, || Command::DismissNotice)
                    .accessible_name("Close this message");
            });
        });
    });
}
