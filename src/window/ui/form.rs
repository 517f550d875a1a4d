//! Shared parts of the job and endpoint forms: the dialog, fields with a caption, when to check, the result of the
//! check, and the buttons that start what was checked.

mod fields;

use std::cmp::Reverse;

use crate::domain::S3Access;
use crate::sagemaker::spec::transform::{Check, CheckGrade, CheckPoint, Preflight};
use crate::window::s3::ui::access::{AccessMemory, access_ui};
use crate::window::state::{Form, FormCheck};
use crate::window::ui::dialog::{dialog, is_closed};
use crate::window::ui::prelude::*;

pub(crate) use fields::{
    AmountMemory, PairsMemory, address_problem_ui, choice_ui, folded_ui, folder_ui, instances_ui, made_model_ui,
    model_ui, network_ui, optional_number_ui, optional_text_ui, pairs_ui, price_ui, text_ui,
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
    fn is_checked(&self, now: &T) -> bool {
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
    result: impl FnOnce(&mut Ui, &mut M),
) {
    if ui.available_width() < TWO_COLUMNS {
        ScrollArea::vertical().id_salt("form").max_height(height).show(ui, |ui| {
            form(ui, memory);
            ui.separator();
            result(ui, memory);
        });
        return;
    }
    ui.columns(2, |columns| {
        column_ui(&mut columns[0], "form", height, |ui| form(ui, memory));
        column_ui(&mut columns[1], "result", height, |ui| result(ui, memory));
    });
}

/// A column that scrolls separately. Its text does not use the whole width.
fn column_ui(ui: &mut Ui, id: &str, height: f32, contents: impl FnOnce(&mut Ui)) {
    ScrollArea::vertical().id_salt(id).max_height(height).min_scrolled_height(height).show(ui, |ui| {
        ui.with_layout(Layout::top_down(Align::Min), contents);
    });
}

/// The half of a form with its check. Returns true if a new check is requested. `what` is what would fail: “the job”.
pub(crate) fn check_ui<D, P>(ui: &mut Ui, form: &Form<D, P>, what: &str) -> bool {
    if let Loadable::Failed(why) = &form.start {
        message_ui(ui, Tone::Error, why.message());
        ui.add_space(6.0);
    }
    ui.horizontal(|ui| {
        ui.label(strong("Check"));
        if form.check.is_loading() {
            ui.spinner();
            ui.weak("Checking with AWS…");
        }
    });
    let mut is_again = false;
    match &form.check {
        Loadable::Ready(check) => preflight_ui(ui, &check.preflight, what),
        Loadable::Failed(why) => banner_ui(ui, Tone::Error, why.message(), |ui| {
            is_again = ui.button("Check again").clicked();
        }),
        Loadable::Loading(_) => {}
        Loadable::NotLoaded => {
            if let Some(missing) = &form.missing {
                message_ui(ui, Tone::Hint, missing);
            }
        }
    }
    is_again
}

/// The results of a check: a one-line summary, then the results that need attention, worst first, then the cost; passed
/// checks are collapsed. `what` is what would fail: “the job”.
pub(crate) fn preflight_ui(ui: &mut Ui, preflight: &Preflight, what: &str) {
    let problems = preflight.count(CheckGrade::Problem);
    let warnings = preflight.count(CheckGrade::Warning);
    ui.weak(match (problems, warnings) {
        (0, 0) => "No problems found".to_owned(),
        (0, 1) => "No problems found; 1 warning".to_owned(),
        (0, more) => format!("No problems found; {more} warnings"),
        (1, _) => format!("1 problem would make {what} fail"),
        (more, _) => format!("{more} problems would make {what} fail"),
    });
    ui.add_space(4.0);
    let (mut shown, passed): (Vec<&Check>, Vec<&Check>) = preflight.checks.iter().partition(|check| is_shown(check));
    shown.sort_by_key(|check| Reverse(check.grade));
    for point in shown {
        point_ui(ui, point);
    }
    let title = match passed.len() {
        0 => return,
        1 => "✓ 1 check passed".to_owned(),
        count => format!("✓ {count} checks passed"),
    };
    let fold = CollapsingHeader::new(title).id_salt(("passed points", what));
    fold.show(ui, |ui| {
        for point in passed {
            point_ui(ui, point);
        }
    });
}

/// The cost and the deletion time are always shown, because they should be read before paying.
fn is_shown(check: &Check) -> bool {
    let is_about_money = matches!(check.point, CheckPoint::Cost | CheckPoint::Deletion);
    check.grade != CheckGrade::Ok || is_about_money
}

/// The grade as a sign and a color, then what was found and what to do.
fn point_ui(ui: &mut Ui, check: &Check) {
    let visuals = ui.visuals();
    let (sign, color) = match check.grade {
        CheckGrade::Ok => ("✓", visuals.text_color()),
        CheckGrade::Warning => ("⚠", visuals.warn_fg_color),
        CheckGrade::Problem => ("✗", visuals.error_fg_color),
    };
    let title = format!("{sign} {}", check.point.into_str());
    ui.horizontal_top(|ui| {
        ui.allocate_ui_with_layout(vec2(128.0, 0.0), Layout::left_to_right(Align::Min), |ui| {
            ui.set_min_width(128.0);
            ui.label(strong(title).color(color));
        });
        ui.vertical(|ui| {
            wrapped_ui(ui, &check.finding);
            if !check.advice.is_empty() {
                note_ui(ui, &check.advice);
            }
        });
    });
    ui.add_space(2.0);
}

/// The texts for what a form starts.
pub(crate) struct FootWords {
    /// “the job”
    pub(crate) what: &'static str,
    /// “Start the job”
    pub(crate) start: &'static str,
    /// “Starting the job…”
    pub(crate) starting: &'static str,
    /// “Cancel the start”
    pub(crate) cancel: &'static str,
    /// “The job still starts”
    pub(crate) close: &'static str,
}

/// Returns true if what was checked should start. `is_checked`: the form has not changed since its check.
pub(crate) fn foot_ui<D, P>(
    ui: &mut Ui,
    state: &State,
    form: &Form<D, P>,
    words: &FootWords,
    is_checked: bool,
    commands: &mut Commands,
) -> bool {
    ui.add_space(8.0);
    let mut is_wanted = false;
    ui.horizontal_wrapped(|ui| {
        if let Loadable::Loading(task) = form.start {
            ui.spinner();
            let step = state.tasks.get(task).map(|task| task.control.progress());
            let step = step.map_or_else(String::new, |progress| progress.step);
            ui.label(if step.is_empty() { words.starting.to_owned() } else { step });
            command_button_ui(ui, words.cancel, commands, || Command::cancel(task));
            ui.button("Close").on_hover_text(words.close).on_click(commands, || Command::CLOSE_OVERLAY);
            return;
        }
        let reason = reason(form, words, is_checked);
        is_wanted = primary_button_ui(ui, words.start, reason.as_deref()).clicked();
        command_button_ui(ui, "Cancel", commands, || Command::CLOSE_OVERLAY);
    });
    is_wanted
}

/// Why the form cannot be started now.
fn reason<D, P>(form: &Form<D, P>, words: &FootWords, is_checked: bool) -> Option<String> {
    if !is_checked {
        return Some("The form has changed; checking in a moment".to_owned());
    }
    match &form.check {
        Loadable::Ready(check) if check.is_startable() => None,
        Loadable::Ready(_) => Some(format!("The check found a problem that would make {} fail", words.what)),
        Loadable::Loading(_) => Some("The form is being checked".to_owned()),
        Loadable::NotLoaded | Loadable::Failed(_) => Some("The form has not been checked yet".to_owned()),
    }
}
