//! What the forms about SageMaker have in common: fields with a caption, when a check is due, what it found, and the foot that starts
//! what was checked.

mod check;
mod fields;
mod foot;

use eframe::egui::{self, Align, Layout, ScrollArea, Ui};

pub(super) use check::{CheckHalf, check_ui, preflight_ui};
pub(super) use fields::{
    AmountMemory, PairsMemory, address_problem_ui, choice_ui, folded_ui, image_ui, instances_ui,
    model_ui, optional_number_ui, optional_text_ui, pairs_ui, price_ui, region_of, text_ui,
};
pub(super) use foot::{Foot, FootWords};

/// How long nothing has changed before a form is checked, in seconds.
const PAUSE_S: f64 = 0.6;

/// Nobody wants a check for each letter that is typed.
#[derive(Default)]
pub(super) struct Pacer<T> {
    /// What was seen last, and since when it has stood so, in seconds of the window's clock.
    seen: T,
    seen_since: f64,
    /// What was sent to be checked last.
    checked: Option<T>,
}

impl<T: PartialEq + Clone> Pacer<T> {
    /// The form begins anew.
    pub(super) fn forget(&mut self) {
        self.checked = None;
    }

    /// Whether this was sent to be checked last.
    pub(super) fn is_checked(&self, now: &T) -> bool {
        self.checked.as_ref() == Some(now)
    }

    /// Whether this is to be checked now; the first at once, and then when nothing has changed for a moment.
    pub(super) fn is_due(&mut self, ctx: &egui::Context, now: &T) -> bool {
        let time = ctx.input(|input| input.time);
        if self.seen != *now {
            self.seen = now.clone();
            self.seen_since = time;
        }
        if self.is_checked(now) {
            return false;
        }
        let left = self.seen_since + PAUSE_S - time;
        if left > 0.0 && self.checked.is_some() {
            ctx.request_repaint_after_secs(left as f32);
            return false;
        }
        self.checked = Some(now.clone());
        true
    }
}

/// Narrower than this, what would stand on the right lies below.
const TWO_COLUMNS: f32 = 760.0;

/// A form, and beside it what it comes to: two columns of this height where there is room, or one. Each moves by itself, and text is not
/// spread over its width.
pub(super) fn two_columns_ui<M>(
    ui: &mut Ui,
    height: f32,
    memory: &mut M,
    form: impl FnOnce(&mut Ui, &mut M),
    beside: impl FnOnce(&mut Ui, &mut M),
) {
    if ui.available_width() < TWO_COLUMNS {
        ScrollArea::vertical()
            .id_salt("form")
            .max_height(height)
            .show(ui, |ui| {
                form(ui, memory);
                ui.separator();
                beside(ui, memory);
            });
        return;
    }
    ui.columns(2, |columns| {
        column_ui(&mut columns[0], "form", height, |ui| form(ui, memory));
        column_ui(&mut columns[1], "beside", height, |ui| beside(ui, memory));
    });
}

/// Moves by itself. Text is not spread over its width.
fn column_ui(ui: &mut Ui, id: &str, height: f32, contents: impl FnOnce(&mut Ui)) {
    ScrollArea::vertical()
        .id_salt(id)
        .max_height(height)
        .min_scrolled_height(height)
        .show(ui, |ui| {
            ui.with_layout(Layout::top_down(Align::Min), contents);
        });
}
