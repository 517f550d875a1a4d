//! The form that sends a model and images to SageMaker, checked while it is filled in.

mod checks;
mod fields;

use crate::tasks::now_ms;
use eframe::egui::{self, Ui, vec2};

use super::super::widgets::{renew_in_time, strong};
use super::dialog::dialog;
use super::form::{AmountMemory, Foot, FootWords, Pacer, PairsMemory, two_columns_ui};
use super::open_s3::access::AccessMemory;
use super::prices::PriceMemory;
use crate::domain::{S3Access, dated_name};
use crate::state::{Action, Command, Overlay, RehearsalRequest, SendCheck, SendDraft, State};

const WIDTH: f32 = 1040.0;
const FOOTER_HEIGHT: f32 = 48.0;
const WORDS: FootWords = FootWords {
    what: "the job",
    start: "Start the job",
    starting: "Starting the job…",
    cancel: "Cancel the start",
    close: "The job is started all the same",
};

/// Drafts of the fields.
#[derive(Default)]
pub(in super::super) struct SendMemory {
    /// Which beginning was taken over.
    taken_over: u64,
    draft: SendDraft,
    access: AccessMemory,
    rehearsal: RehearsalRequest,
    price: PriceMemory,
    rate: AmountMemory,
    environment: PairsMemory,
    model_environment: PairsMemory,
    tags: PairsMemory,
    pacer: Pacer<(SendDraft, S3Access)>,
}

pub(in super::super) fn send_ui(
    ctx: &egui::Context,
    state: &State,
    memory: &mut SendMemory,
    commands: &mut Vec<Command>,
) {
    if state.overlay != Overlay::Send {
        return;
    }
    let sending = &state.remote.sending;
    let is_new = memory.taken_over != sending.serial;
    if is_new {
        memory.taken_over = sending.serial;
        memory.draft = sending.draft.clone();
        let stem = memory.draft.model.library.as_deref().unwrap_or("job");
        memory.draft.job_name = dated_name(stem, now_ms());
        memory.environment.take_over(&memory.draft.environment);
        let of_model = &memory.draft.advanced.model_environment;
        memory.model_environment.take_over(of_model);
        memory.tags.take_over(&memory.draft.tags);
        memory.rehearsal.clone_from(&state.settings.rehearsal);
        memory.pacer.forget();
    }
    renew_in_time(ctx, &state.s3.access, state, commands);
    let modal = dialog(ctx, "send to sagemaker").show(ctx, |ui| {
        let room = ctx.content_rect().size() - vec2(60.0, 60.0 + FOOTER_HEIGHT);
        ui.set_width(WIDTH.min(room.x));
        contents_ui(ui, state, memory, is_new, room.y, commands);
        foot_ui(ui, state, memory, commands);
    });
    check_after_a_pause(ctx, state, memory, commands);
    if modal.should_close() && !egui::Popup::is_any_open(ctx) {
        commands.push(Command::SetOverlay(Overlay::None));
    }
}

fn contents_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut SendMemory,
    is_new: bool,
    height: f32,
    commands: &mut Vec<Command>,
) {
    ui.label(strong(Action::Send.label().trim_end_matches('…')).size(18.0));
    ui.add_space(4.0);
    two_columns_ui(
        ui,
        height - 34.0,
        &mut (memory, commands),
        |ui, (memory, commands)| fields::fields_ui(ui, state, memory, is_new, commands),
        |ui, (memory, commands)| checks::checks_ui(ui, state, &mut memory.rehearsal, commands),
    );
}

fn check_after_a_pause(
    ctx: &egui::Context,
    state: &State,
    memory: &mut SendMemory,
    commands: &mut Vec<Command>,
) {
    let now = (memory.draft.clone(), state.s3.access.clone());
    if !state.remote.sending.start.is_running() && memory.pacer.is_due(ctx, &now) {
        commands.push(Command::CheckJob(Box::new(now.0)));
    }
}

fn foot_ui(ui: &mut Ui, state: &State, memory: &SendMemory, commands: &mut Vec<Command>) {
    let sending = &state.remote.sending;
    let now = (memory.draft.clone(), state.s3.access.clone());
    let foot = Foot {
        words: &WORDS,
        start: &sending.start,
        check: &sending.check,
        is_checked: memory.pacer.is_checked(&now),
    };
    if foot.ui(ui, state, SendCheck::is_startable, commands) {
        commands.push(Command::StartJob);
    }
}
