//! A short notice that disappears by itself.

use eframe::egui::{Align2, Area, Context, Frame, Id, Label, Order, vec2};

use crate::window::state::{Command, Commands, NoticeOffer, ProjectCommand, State};

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
                ui.add(Label::new(&notice.text).wrap());
                match notice.offer {
                    Some(NoticeOffer::Do(action)) => {
                        let button = ui.button(action.label());
                        if button.clicked() {
                            commands.push(action);
                        }
                        button.accessible_name(action.label_now(state));
                    }
                    Some(NoticeOffer::ShowRun(run)) if ui.button("Show that run").clicked() => {
                        commands.push(ProjectCommand::SwitchRun(run));
                        commands.push(Command::DismissNotice);
                    }
                    Some(NoticeOffer::ShowRun(_)) | None => {}
                }
                let close = ui.small_button("×");
                if close.clicked() {
                    commands.push(Command::DismissNotice);
                }
                close.accessible_name("Close this message");
            });
        });
    });
}
