//! The results of a form's check, and the foot of the form, which starts what was checked.

use std::cmp::Reverse;

use eframe::egui::{Align, CollapsingHeader, Label, Layout, Ui, vec2};

use crate::sagemaker::spec::transform::{Check, CheckGrade, CheckPoint, Preflight};
use crate::window::state::{Command, Commands, Form, Loadable, State, TaskSignal};
use crate::window::ui::widgets::{Tone, banner_ui, command_button_ui, message_ui, note_ui, primary_button_ui, strong};

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
            ui.add(Label::new(&check.finding).wrap());
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
            command_button_ui(ui, words.cancel, commands, || Command::SignalTask(task, TaskSignal::Cancel));
            let close = ui.button("Close").on_hover_text(words.close);
            if close.clicked() {
                commands.push(Command::CLOSE_OVERLAY);
            }
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
