//! The page of one training job: its phases, metrics and cost, and what to do with its model.

use super::page::{PageMemory, left_ui, missing_price_ui, stop_ui};
use super::status_sign;
use crate::sagemaker::spec::output_mapping::ReadingRequest;
use crate::sagemaker::spec::training::{TrainingJob, TrainingProgress};
use crate::sagemaker::spec::transform::{TransformStatus, billed_text};
use crate::window::remote::ui::log_lines_ui;
use crate::window::state::{
    JobId, JobsCommand, KnownJob, ModelUse, OutputsAt, OutputsCommand, OutputsRequest, RemoteCommand,
};
use crate::window::ui::prelude::*;

pub(super) fn training_ui(
    ui: &mut Ui,
    state: &State,
    job: &KnownJob,
    progress: &TrainingProgress,
    memory: &mut PageMemory,
    commands: &mut Commands,
) {
    let training = &progress.training;
    if let Some(problem) = training.problem() {
        let tone = if training.status == TransformStatus::Failed { Tone::Error } else { Tone::Warning };
        message_ui(ui, tone, &format!("This job has no complete model: {problem}"));
    }
    phases_ui(ui, training);
    let instances = training.spec.resources.instances();
    let billed = billed_text(instances, training.status, progress.billed_s, progress.cost_usd);
    ui.label(format!("Billed: {billed}"));
    for note in &progress.notes {
        note_ui(ui, note);
    }
    if progress.billed_s.is_some() && progress.cost_usd.is_none() {
        missing_price_ui(ui, state, &job.id, &training.spec.resources.instance_type, memory, commands);
    }
    stop_ui(ui, job, memory, commands, "Stop this job? SageMaker keeps the model that the script has saved, if any");
    if !training.result.metrics.is_empty() {
        ui.add_space(4.0);
        ui.label(strong("Metrics"));
        for metric in &training.result.metrics {
            key_value_ui(ui, &metric.metric_name, &metric.value.to_string());
        }
    }
    if job.is_over() && training.problem().is_none() {
        next_steps_ui(ui, state, job, commands);
    }
    ui.add_space(4.0);
    facts_ui(ui, training);
    left_ui(ui, job, memory, commands);
    let has_failed = training.status == TransformStatus::Failed;
    CollapsingHeader::new("Container log").id_salt(("log", has_failed)).default_open(has_failed).show(ui, |ui| {
        log_lines_ui(ui, &progress.log_tail);
    });
}

fn phases_ui(ui: &mut Ui, training: &TrainingJob) {
    ui.horizontal_wrapped(|ui| {
        let status = training.status;
        ui.label(strong(format!("{} {}", status_sign(status), status.into_str())));
        for (index, phase) in training.result.phases.iter().enumerate() {
            ui.weak(if index == 0 { "·" } else { "→" });
            ui.label(&phase.status).on_hover_text(&phase.status_message);
        }
    });
}

/// What runs the model, and what ran it before.
fn next_steps_ui(ui: &mut Ui, state: &State, job: &KnownJob, commands: &mut Commands) {
    ui.add_space(4.0);
    ui.label(strong("Run on images with this model"));
    ui.horizontal_wrapped(|ui| {
        let has_images = !state.samples.is_empty();
        for (model_use, label, is_enabled) in
            [(ModelUse::Job, "In a Batch Transform job…", has_images), (ModelUse::Endpoint, "On an endpoint…", true)]
        {
            let button = ui.add_enabled(is_enabled, Button::new(label));
            let button = button.on_hover_text("Uses the archive unchanged; choose a container that serves it");
            button
                .on_disabled_hover_text("Open the images first")
                .on_click(commands, || JobsCommand::UseModel(job.id.clone(), model_use));
        }
    });
    for user in &job.used_by {
        ui.horizontal_wrapped(|ui| {
            ui.link(&user.name)
                .on_hover_text("A Batch Transform job with this model")
                .on_click(commands, || RemoteCommand::Open(user.clone()));
            compare_ui(ui, state, user, commands);
        });
    }
}

/// Opens the outputs of a job as a run, and compares it with the chosen one.
fn compare_ui(ui: &mut Ui, state: &State, user: &JobId, commands: &mut Commands) {
    let is_ready = Action::OpenOutputs.check(state).is_ok() && state.remote.outputs.task.is_none();
    ui.add_enabled_ui(is_ready && state.run().is_some(), |ui| {
        ui.menu_button("Compare its outputs with…", |ui| {
            for run in state.runs.iter() {
                if ui.button(&run.info.name).clicked() {
                    commands.push(OutputsCommand::Open(Box::new(OutputsRequest {
                        at: OutputsAt::Job(user.clone()),
                        reading: ReadingRequest::default(),
                        compare_with: Some(run.id()),
                    })));
                    ui.close();
                }
            }
        });
    });
}

fn facts_ui(ui: &mut Ui, training: &TrainingJob) {
    let spec = &training.spec;
    CollapsingHeader::new("Details").default_open(false).show(ui, |ui| {
        if let Some(archive) = &training.result.model.archive {
            key_value_ui(ui, "Model", archive);
        }
        key_value_ui(ui, "Container", &spec.algorithm.image);
        for (name, value) in &spec.hyperparameters {
            key_value_ui(ui, name, value);
        }
    });
}
