//! The form that starts a Batch Transform job.

mod checks;
mod fields;

use eframe::egui;

use crate::window::jobs::prices::ui::PriceMemory;
use crate::window::state::{Action, Command, JobDraft, JobsCommand, Overlay, Queue, RehearsalOptions, State};
use crate::window::ui::form::{AmountMemory, FootWords, FormDialog, FormMemory, PairsMemory};

const WORDS: FootWords = FootWords {
    what: "the job",
    start: "Start the job",
    starting: "Starting the job…",
    cancel: "Cancel the start",
    close: "The job will still start",
};

pub(crate) type JobFormMemory = FormMemory<JobDraft, JobTexts>;

#[derive(Default)]
pub(crate) struct JobTexts {
    rehearsal: RehearsalOptions,
    price: PriceMemory,
    rate: AmountMemory,
    environment: PairsMemory,
    model_environment: PairsMemory,
    tags: PairsMemory,
}

pub(crate) fn job_form_ui(
    ctx: &egui::Context,
    state: &State,
    memory: &mut JobFormMemory,
    commands: &mut Queue<Command>,
) {
    if state.overlay != Overlay::StartJob {
        return;
    }
    let dialog = FormDialog {
        form: &state.remote.job_form,
        action: Action::StartJob,
        words: &WORDS,
        check: |draft| Command::Jobs(JobsCommand::Check(draft)),
        start: Command::Jobs(JobsCommand::Start),
    };
    dialog.ui(
        ctx,
        state,
        memory,
        commands,
        |ui, memory, is_new, commands| fields::fields_ui(ui, state, memory, is_new, commands),
        |ui, texts, check, commands| {
            checks::commands_ui(ui, check, commands);
            checks::rehearsal_ui(ui, state, &mut texts.rehearsal, commands);
        },
    );
}
