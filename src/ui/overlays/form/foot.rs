//! The foot of a form, which starts what was checked.

use eframe::egui::Ui;

use super::super::super::widgets::primary_button;
use crate::state::{Command, Overlay, SendStage, State, TaskSignal};

/// How a form calls what it starts.
pub(in super::super) struct FootWords {
    /// “the job”
    pub(in super::super) what: &'static str,
    /// “Start the job”
    pub(in super::super) start: &'static str,
    /// “Starting the job…”
    pub(in super::super) starting: &'static str,
    /// “Cancel the start”
    pub(in super::super) cancel: &'static str,
    /// “The job is started all the same”
    pub(in super::super) close: &'static str,
}

/// How the form stands.
pub(in super::super) struct Foot<'f, C> {
    pub(in super::super) words: &'static FootWords,
    pub(in super::super) start: &'f SendStage<()>,
    pub(in super::super) check: &'f SendStage<C>,
    /// Whether the form still stands as it was sent to be checked.
    pub(in super::super) is_checked: bool,
}

impl<C> Foot<'_, C> {
    /// True where what was checked is to be started.
    pub(in super::super) fn ui(
        &self,
        ui: &mut Ui,
        state: &State,
        is_startable: impl FnOnce(&C) -> bool,
        commands: &mut Vec<Command>,
    ) -> bool {
        ui.add_space(8.0);
        let mut is_wanted = false;
        ui.horizontal_wrapped(|ui| {
            if let SendStage::Running(task) = self.start {
                ui.spinner();
                let step = state.tasks.get(*task).map(|task| task.control.progress());
                let step = step.map_or_else(String::new, |progress| progress.step);
                ui.label(if step.is_empty() {
                    self.words.starting.to_owned()
                } else {
                    step
                });
                if ui.button(self.words.cancel).clicked() {
                    commands.push(Command::SignalTask(*task, TaskSignal::Cancel));
                }
                let close = ui.button("Close").on_hover_text(self.words.close);
                if close.clicked() {
                    commands.push(Command::SetOverlay(Overlay::None));
                }
                return;
            }
            let reason = self.reason(is_startable);
            let start = primary_button(ui, self.words.start);
            let start = ui.add_enabled(reason.is_none(), start);
            let start = start.on_disabled_hover_text(reason.unwrap_or_default());
            is_wanted = start.clicked();
            if ui.button("Cancel").clicked() {
                commands.push(Command::SetOverlay(Overlay::None));
            }
        });
        is_wanted
    }

    /// Why it cannot be started as it stands.
    fn reason(&self, is_startable: impl FnOnce(&C) -> bool) -> Option<String> {
        if !self.is_checked {
            return Some("The form has changed and is checked in a moment".to_owned());
        }
        match self.check {
            SendStage::Done(check) if is_startable(check) => None,
            SendStage::Done(_) => Some(format!(
                "The check found what would make {} fail",
                self.words.what
            )),
            SendStage::Running(_) => Some("The form is being checked".to_owned()),
            SendStage::NotYet | SendStage::Failed(_) => {
                Some("The form is not checked yet".to_owned())
            }
        }
    }
}
