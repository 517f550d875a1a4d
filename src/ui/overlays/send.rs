//! The form that sends a model and images to SageMaker, checked while it is filled in.

mod checks;
mod fields;

use crate::tasks::now_ms;
use eframe::egui::{self, Id, Modal, Ui, vec2};

use super::super::theme;
use super::super::widgets::{primary_button, renew_in_time, strong};
use super::form::{AmountMemory, Pacer, two_columns_ui};
use super::open_s3::access::AccessMemory;
use super::prices::PriceMemory;
use crate::domain::{S3Access, dated_name};
use crate::state::{
    Action, Command, Overlay, RehearsalWish, SendDraft, SendStage, State, TaskSignal,
};

const WIDTH: f32 = 1040.0;
const FOOTER_HEIGHT: f32 = 48.0;

/// Drafts of the fields.
#[derive(Default)]
pub(in super::super) struct SendMemory {
    /// Which beginning was taken over.
    taken_over: u64,
    draft: SendDraft,
    access: AccessMemory,
    rehearsal: RehearsalWish,
    price: PriceMemory,
    rate: AmountMemory,
    environment: fields::PairsMemory,
    model_environment: fields::PairsMemory,
    tags: fields::PairsMemory,
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
        let stem = memory.draft.model.as_deref().unwrap_or("job");
        memory.draft.job_name = dated_name(stem, now_ms());
        memory.environment.take_over(&memory.draft.environment);
        let of_model = &memory.draft.advanced.model_environment;
        memory.model_environment.take_over(of_model);
        memory.tags.take_over(&memory.draft.tags);
        memory.rehearsal.clone_from(&state.settings.rehearsal);
        memory.pacer.forget();
    }
    renew_in_time(ctx, &state.s3.access, state, commands);
    let modal = Modal::new(Id::unique("send to sagemaker"))
        .frame(theme::dialog_frame(ctx))
        .show(ctx, |ui| {
            let room = ctx.content_rect().size() - vec2(60.0, 60.0 + FOOTER_HEIGHT);
            ui.set_width(WIDTH.min(room.x));
            contents_ui(ui, state, memory, is_new, room.y, commands);
            footer_ui(ui, state, memory, commands);
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

fn footer_ui(ui: &mut Ui, state: &State, memory: &SendMemory, commands: &mut Vec<Command>) {
    ui.add_space(8.0);
    let sending = &state.remote.sending;
    ui.horizontal_wrapped(|ui| {
        if let SendStage::Running(task) = sending.start {
            ui.spinner();
            let step = state.tasks.get(task).map(|task| task.control.progress());
            let step = step.map_or_else(String::new, |progress| progress.step);
            ui.label(if step.is_empty() {
                "Starting the job…".to_owned()
            } else {
                step
            });
            if ui.button("Cancel the start").clicked() {
                commands.push(Command::SignalTask(task, TaskSignal::Cancel));
            }
            if ui
                .button("Close")
                .on_hover_text("The job is started all the same")
                .clicked()
            {
                commands.push(Command::SetOverlay(Overlay::None));
            }
            return;
        }
        let now = (memory.draft.clone(), state.s3.access.clone());
        let is_current = memory.pacer.is_checked(&now);
        let reason = match &sending.check {
            _ if !is_current => Some("The form has changed and is checked in a moment"),
            SendStage::Done(check) if check.is_startable() => None,
            SendStage::Done(_) => Some("The check found what would make the job fail"),
            SendStage::Running(_) => Some("The form is being checked"),
            SendStage::NotYet | SendStage::Failed(_) => Some("The form is not checked yet"),
        };
        let start = ui.add_enabled(reason.is_none(), primary_button(ui, "Start the job"));
        let start = start.on_disabled_hover_text(reason.unwrap_or_default());
        if start.clicked() {
            commands.push(Command::StartJob);
        }
        if ui.button("Cancel").clicked() {
            commands.push(Command::SetOverlay(Overlay::None));
        }
        if let SendStage::Failed(why) = &sending.start {
            ui.colored_label(ui.visuals().error_fg_color, format!("⚠ {why}"));
        }
    });
}
