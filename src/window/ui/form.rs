//! Shared parts of the job and endpoint forms: the dialog, fields with a caption, when to check, the result of the
//! check, and the buttons that start what was checked.

mod check;
mod fields;

use check::{check_ui, foot_ui};
use eframe::egui::{Align, Context, Layout, ScrollArea, Ui, vec2};

use crate::domain::S3Access;
use crate::window::s3::ui::access::{AccessMemory, access_ui};
use crate::window::state::{Action, Command, Commands, Form, FormCheck, State};
use crate::window::ui::dialog::{dialog, heading_ui, is_closed};
use crate::window::ui::widgets::renew_in_time;

pub(crate) use check::{FootWords, preflight_ui};
pub(crate) use fields::{
    AmountMemory, PairsMemory, address_problem_ui, choice_ui, folded_ui, folder_ui, instances_ui, made_model_ui,
    model_ui, optional_number_ui, optional_text_ui, pairs_ui, price_ui, text_ui,
};

const WIDTH: f32 = 1040.0;
const FOOTER_HEIGHT: f32 = 48.0;

/// The drafts of a form: `D`, and in `T` text that is not in `D`, such as unfinished numbers.
#[derive(Default)]
pub(crate) struct FormMemory<D, T> {
    /// The serial of the form that the draft is from.
    taken_over: u64,
    pub(crate) draft: D,
    pub(crate) texts: T,
    access: AccessMemory,
    pacer: Pacer<(D, S3Access)>,
}

/// A form in the state, and the texts and commands of its dialog.
pub(crate) struct FormDialog<'f, D, P> {
    pub(crate) form: &'f Form<D, P>,
    /// Its label is the title.
    pub(crate) action: Action,
    pub(crate) words: &'static FootWords,
    pub(crate) check: fn(Box<D>) -> Command,
    pub(crate) start: Command,
}

impl<D: Clone + PartialEq, P> FormDialog<'_, D, P> {
    /// `fields` draws the form and receives whether it has just been opened; `below` draws what is below a finished
    /// check.
    pub(crate) fn ui<T: Default>(
        self,
        ctx: &Context,
        state: &State,
        memory: &mut FormMemory<D, T>,
        commands: &mut Commands,
        fields: impl FnOnce(&mut Ui, &mut FormMemory<D, T>, bool, &mut Commands),
        below: impl FnOnce(&mut Ui, &mut T, &FormCheck<P>, &mut Commands),
    ) {
        let is_new = memory.taken_over != self.form.serial;
        if is_new {
            memory.taken_over = self.form.serial;
            memory.draft = self.form.draft.clone();
            memory.texts = T::default();
            memory.pacer.forget();
        }
        renew_in_time(ctx, &state.s3.access, state, commands);
        let modal = dialog(ctx, self.action.label()).show(ctx, |ui| {
            let room = ctx.content_rect().size() - vec2(60.0, 60.0 + FOOTER_HEIGHT);
            ui.set_width(WIDTH.min(room.x));
            heading_ui(ui, self.action.label(), "");
            two_columns_ui(
                ui,
                room.y - 36.0,
                &mut (&mut *memory, &mut *commands),
                |ui, (memory, commands)| {
                    if is_new {
                        // The last form may have been scrolled.
                        ui.scroll_to_cursor(Some(Align::TOP));
                    }
                    access_ui(ui, state, &mut memory.access, commands);
                    ui.add_space(6.0);
                    fields(ui, memory, is_new, commands);
                },
                |ui, (memory, commands)| {
                    let is_again = check_ui(ui, self.form, self.words.what);
                    if is_again {
                        commands.push((self.check)(Box::new(self.form.draft.clone())));
                    }
                    if let Some(check) = self.form.check.ready() {
                        below(ui, &mut memory.texts, check, commands);
                    }
                },
            );
            let now = (memory.draft.clone(), state.s3.access.clone());
            let is_checked = memory.pacer.is_checked(&now);
            if foot_ui(ui, state, self.form, self.words, is_checked, commands) {
                commands.push(self.start);
            }
        });
        let now = (memory.draft.clone(), state.s3.access.clone());
        if !self.form.start.is_loading() && memory.pacer.is_due(ctx, &now) {
            commands.push((self.check)(Box::new(now.0)));
        }
        if is_closed(ctx, &modal) {
            commands.push(Command::CLOSE_OVERLAY);
        }
    }
}

/// The pause without changes before a form is checked, in seconds.
const PAUSE_S: f64 = 0.6;

/// Waits for a pause in typing, so that not every letter starts a check.
#[derive(Default)]
pub(crate) struct Pacer<T> {
    /// The last state of the form, and since when it is unchanged, in seconds of the window's clock.
    seen: T,
    seen_since: f64,
    /// The draft of the last check.
    checked: Option<T>,
}

impl<T: PartialEq + Clone> Pacer<T> {
    pub(crate) fn forget(&mut self) {
        self.checked = None;
    }

    /// Whether this was the last draft to be checked.
    pub(crate) fn is_checked(&self, now: &T) -> bool {
        self.checked.as_ref() == Some(now)
    }

    /// Whether to check this now: the first draft immediately, later ones after a pause.
    pub(crate) fn is_due(&mut self, ctx: &Context, now: &T) -> bool {
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

/// Below this width, in points, the right column is drawn below the left one.
const TWO_COLUMNS: f32 = 760.0;

/// A form and its result in two columns of this height, or in one if there is no room. Each scrolls separately, and
/// text does not use the whole width.
pub(crate) fn two_columns_ui<M>(
    ui: &mut Ui,
    height: f32,
    memory: &mut M,
    form: impl FnOnce(&mut Ui, &mut M),
    beside: impl FnOnce(&mut Ui, &mut M),
) {
    if ui.available_width() < TWO_COLUMNS {
        ScrollArea::vertical().id_salt("form").max_height(height).show(ui, |ui| {
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

/// A column that scrolls separately. Its text does not use the whole width.
fn column_ui(ui: &mut Ui, id: &str, height: f32, contents: impl FnOnce(&mut Ui)) {
    ScrollArea::vertical().id_salt(id).max_height(height).min_scrolled_height(height).show(ui, |ui| {
        ui.with_layout(Layout::top_down(Align::Min), contents);
    });
}
