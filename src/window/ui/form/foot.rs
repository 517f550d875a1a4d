//! The foot of a form, which starts what was checked.

use eframe::egui::Ui;

use crate::window::state::{Command, Form, Loadable, Overlay, Queue, State, TaskSignal};
use crate::window::ui::widgets::primary_button;

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
    commands: &mut Queue<Command>,
) -> bool {
    ui.add_space(8.0);
    let mut is_wanted = false;
    ui.horizontal_wrapped(|ui| {
        if let Loadable::Loading(task) = form.start {
            ui.spinner();
            let step = state.tasks.get(task).map(|task| task.control.progress());
            let step = step.map_or_else(String::new, |progress| progress.step);
            ui.label(if step.is_empty() { words.starting.to_owned() } else { step });
            if ui.button(words.cancel).clicked() {
                commands.push(Command::SignalTask(task, TaskSignal::Cancel));
            }
            let close = ui.button("Close").on_hover_text(words.close);
            if close.clicked() {
                commands.push(Command::SetOverlay(Overlay::None));
            }
            return;
        }
        let reason = reason(form, words, is_checked);
        let start = primary_button(ui, words.start);
        let start = ui.add_enabled(reason.is_none(), start);
        let start = start.on_disabled_hover_text(reason.unwrap_or_default());
        is_wanted = start.clicked();
        if ui.button("Cancel").clicked() {
            commands.push(Command::SetOverlay(Overlay::None));
        }
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
