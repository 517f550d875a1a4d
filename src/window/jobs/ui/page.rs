//! The page of one job: its progress, cost and failures, and what to do about them.

use std::time::Duration;

use strum::VariantArray;

use crate::domain::{S3Place, Utc, human_duration};
use crate::sagemaker::spec::output_mapping::ReadingRequest;
use crate::sagemaker::spec::transform::{
    DEFAULT_PAYLOAD_MB, InputObjects, JobKind, JobOutcome, JobPhase, JobProgress, Leftover, RetryChoice, TransformJob,
    TransformSpec, TransformStatus, billed_text, predicted_by_retry,
};
use crate::tasks::now_ms;
use crate::window::jobs::ui::{PriceMemory, keep_price_ui, price_problem_ui, status_sign};
use crate::window::remote::ui::{ConfirmedButton, log_lines_ui, page_name_ui};
use crate::window::state::{
    JobId, JobsCommand, KnownJob, Leftovers, OutputsAt, OutputsCommand, OutputsRequest, RemoteCommand, RetryPlan,
};
use crate::window::ui::form::{preflight_ui, price_ui};
use crate::window::ui::prelude::*;

const FAILED_HEIGHT: f32 = 140.0;
/// How often the time left and the age of a count are redrawn.
const PERIOD: Duration = Duration::from_secs(1);

/// What waits for confirmation.
#[derive(Default)]
pub(crate) struct PageMemory {
    stopping: Option<JobId>,
    cleaning: Option<JobId>,
    /// The job whose price is being typed.
    price_of: Option<JobId>,
    price: PriceMemory,
    usd_per_hour: Option<f64>,
}

pub(super) fn page_ui(ui: &mut Ui, state: &State, job: &KnownJob, memory: &mut PageMemory, commands: &mut Commands) {
    let Some(progress) = &job.progress else {
        if job.watch.task.is_some() {
            waiting_ui(ui, "Asking AWS about the job…");
        }
        return;
    };
    loud_ui(ui, progress, job.outcome.ready());
    progress_ui(ui, progress);
    if progress.billed_s.is_some() && progress.cost_usd.is_none() {
        missing_price_ui(ui, state, &job.id, &progress.job.spec.resources.instance_type, memory, commands);
    }
    actions_ui(ui, state, job, progress, memory, commands);
    ui.add_space(4.0);
    facts_ui(ui, progress);
    outcome_ui(ui, job, progress, commands);
    left_ui(ui, job, memory, commands);
    log_ui(ui, progress);
}

pub(super) fn name_ui(ui: &mut Ui, state: &State, job: &KnownJob, commands: &mut Commands) {
    page_name_ui(ui, &job.id.name, commands, |ui, commands| {
        if job.watch.task.is_some() {
            let stop = ui.button("Stop watching");
            stop.on_hover_text("The job keeps running")
                .on_click(commands, || RemoteCommand::StopWatching(job.id.clone()));
            return;
        }
        if state.settings.watched_jobs.contains(&job.id) {
            let forget = ui.button("Stop watching");
            forget
                .on_hover_text(
                    "Otherwise, Spotcheck checks it again at the next start. The job keeps \
                running",
                )
                .on_click(commands, || RemoteCommand::StopWatching(job.id.clone()));
        }
        command_button_ui(ui, "Refresh", commands, || RemoteCommand::Watch(job.id.clone()));
    });
}

/// Problems that must not be overlooked. Images that a retry has predicted are no longer missing.
fn loud_ui(ui: &mut Ui, progress: &JobProgress, outcome: Option<&JobOutcome>) {
    let missing = match outcome {
        Some(outcome) => outcome.failed.len() as u64,
        None => progress.missing().unwrap_or_default(),
    };
    let missing_text = counted(missing, "image has no output", "images have no output");
    if progress.is_short() && missing > 0 {
        let text = format!("{missing_text}, although SageMaker reports this job as completed. See the reasons below");
        message_ui(ui, Tone::Error, &text);
        return;
    }
    match (progress.job.status, &progress.job.failure) {
        (TransformStatus::Failed, failure) => {
            let why = failure.as_deref().unwrap_or("SageMaker reports no reason");
            let rest =
                if missing > 0 { format!(". {missing_text}; the existing outputs are valid") } else { String::new() };
            message_ui(ui, Tone::Error, &format!("The job failed: {why}{rest}"));
        }
        (TransformStatus::Stopped, _) if missing > 0 => {
            message_ui(ui, Tone::Warning, &format!("The job was stopped; {missing_text}"));
        }
        _ => {}
    }
}

fn progress_ui(ui: &mut Ui, progress: &JobProgress) {
    ui.horizontal_wrapped(|ui| {
        let status = progress.job.status;
        ui.label(strong(format!("{} {}", status_sign(status), status.into_str())));
        ui.weak("·");
        for (index, phase) in JobPhase::VARIANTS.iter().copied().enumerate() {
            if index > 0 {
                ui.weak("→");
            }
            let is_current = phase == progress.phase;
            if is_current {
                ui.label(strong(phase.into_str()).color(theme::accent(ui.visuals())));
            } else {
                ui.weak(phase.into_str());
            }
        }
    });
    ui.add(progress_bar(progress.fraction()));
    let outputs = progress.outputs.map_or_else(|| "?".to_owned(), |count| grouped(count as usize));
    let inputs = progress.inputs.map_or_else(|| "?".to_owned(), |count| grouped(count as usize));
    let mut parts = vec![format!("{outputs} of {inputs} outputs")];
    parts.extend(progress.outputs_per_s.map(|rate| format!("{rate:.1} per second")));
    if !progress.job.status.is_over() {
        let now = now_ms();
        let left = progress.seconds_left(now).filter(|secs| secs.is_finite() && *secs >= 0.0);
        let left = left.map(|secs| human_duration(Duration::from_secs_f64(secs.min(1e9))));
        parts.extend(left.map(|left| format!("{left} left")));
        parts.extend(progress.count_age_text(now));
        ui.ctx().request_repaint_after(PERIOD);
    }
    ui.label(parts.join(", "));
    let spec = &progress.job.spec;
    let instances = spec.resources.instances();
    let billed = billed_text(instances, progress.job.status, progress.billed_s, progress.cost_usd);
    ui.label(format!("Billed: {billed}"));
    if let Some(uncounted) = &progress.uncounted {
        message_ui(ui, Tone::Warning, uncounted);
    }
    for note in &progress.notes {
        note_ui(ui, note);
    }
}

/// A price is never guessed: the user enters it, once for all jobs.
pub(super) fn missing_price_ui(
    ui: &mut Ui,
    state: &State,
    id: &JobId,
    instance_type: &str,
    memory: &mut PageMemory,
    commands: &mut Commands,
) {
    if memory.price_of.as_ref() != Some(id) {
        memory.price_of = Some(id.clone());
        memory.price = PriceMemory::default();
        memory.usd_per_hour = None;
    }
    CollapsingHeader::new(format!("Enter the price of {instance_type}")).default_open(false).show(ui, |ui| {
        price_ui(ui, &mut memory.price.amount, &mut memory.usd_per_hour);
        let region = id.sagemaker.region.as_deref();
        let amount = memory.usd_per_hour;
        keep_price_ui(ui, &mut memory.price, instance_type, region, amount, commands);
        price_problem_ui(ui, state);
    });
}

fn actions_ui(
    ui: &mut Ui,
    state: &State,
    job: &KnownJob,
    progress: &JobProgress,
    memory: &mut PageMemory,
    commands: &mut Commands,
) {
    ui.horizontal_wrapped(|ui| {
        if progress.outputs.is_some_and(|outputs| outputs > 0) {
            outputs_ui(ui, state, job, commands);
        }
        images_ui(ui, state, job, progress, commands);
    });
    ui.add_space(4.0);
    stop_ui(
        ui,
        job,
        memory,
        commands,
        "Stop this job? Existing outputs are kept. Images without an output can be resent",
    );
}

pub(super) fn stop_ui(
    ui: &mut Ui,
    job: &KnownJob,
    memory: &mut PageMemory,
    commands: &mut Commands,
    question: &'static str,
) {
    if job.status() != Some(TransformStatus::InProgress) {
        return;
    }
    ui.add_space(4.0);
    let stop = ConfirmedButton { label: "Stop the job…", question, yes: "Stop it", no: "Keep running" };
    if stop.ui(ui, &mut memory.stopping, &job.id, job.stopping.is_none()) {
        commands.push(JobsCommand::Stop(job.id.clone()));
    }
}

/// The button that opens the outputs as a run over the open images.
fn outputs_ui(ui: &mut Ui, state: &State, job: &KnownJob, commands: &mut Commands) {
    let check = Action::OpenOutputs.check(state);
    let is_free = state.remote.outputs.task.is_none();
    let open = ui.add_enabled(check.is_ok() && is_free, Button::new("Open outputs"));
    let open = open.on_hover_text("Shows the predictions as a run over the open images");
    let open = match check {
        Ok(()) => open,
        Err(reason) => open.on_disabled_hover_text(reason),
    };
    open.on_click(commands, || {
        OutputsCommand::Open(Box::new(OutputsRequest {
            at: OutputsAt::Job(job.id.clone()),
            reading: ReadingRequest::default(),
            compare_with: None,
        }))
    });
    if !is_free {
        ui.spinner();
    }
}

/// The button that opens the folder of its images.
fn images_ui(ui: &mut Ui, state: &State, job: &KnownJob, progress: &JobProgress, commands: &mut Commands) {
    let Some(address) = &progress.images_in else {
        return;
    };
    let place = S3Place { access: job.id.s3.clone(), ..S3Place::new(address.clone()) };
    if state.place() == Some(&place) {
        return;
    }
    let open = ui.button("Open its images");
    let open = match &progress.job.spec.input.data_source.objects {
        InputObjects::Prefix(_) => open.on_hover_text(format!("Opens {address}")),
        InputObjects::Manifest(_) => open.on_hover_text(format!(
            "Opens {address}, the folder of the images in the manifest. With the outputs open, the filter \
             “predicted” shows only these images"
        )),
    };
    if open.clicked() {
        commands.push(BrowseCommand::OpenPlace(Box::new(place)));
    }
}

fn facts_ui(ui: &mut Ui, progress: &JobProgress) {
    let TransformJob { spec, created_ms, started_ms, ended_ms, .. } = &progress.job;
    CollapsingHeader::new("Details").default_open(false).show(ui, |ui| {
        key_value_ui(ui, "Model", &spec.model_name);
        let (input, address) = match &spec.input.data_source.objects {
            InputObjects::Prefix(address) => ("Prefix", address),
            InputObjects::Manifest(address) => ("Manifest", address),
        };
        key_value_ui(ui, input, &address.to_string());
        key_value_ui(ui, "Outputs", &spec.output.folder.to_string());
        key_value_ui(ui, "Created", &Utc::from_ms(*created_ms).to_string());
        if let Some(started) = started_ms {
            key_value_ui(ui, "Billed from", &Utc::from_ms(*started).to_string());
        }
        if let Some(ended) = ended_ms {
            key_value_ui(ui, "Billed until", &Utc::from_ms(*ended).to_string());
        }
    });
}

fn log_ui(ui: &mut Ui, progress: &JobProgress) {
    CollapsingHeader::new("Container log").default_open(false).show(ui, |ui| {
        log_lines_ui(ui, &progress.log_tail);
    });
}

fn outcome_ui(ui: &mut Ui, job: &KnownJob, progress: &JobProgress, commands: &mut Commands) {
    if !progress.job.status.is_over() {
        return;
    }
    match &job.outcome {
        Loadable::NotLoaded => {
            let has_failed = progress.job.status == TransformStatus::Failed;
            let may_miss = has_failed || progress.missing() != Some(0);
            if may_miss && ui.button("Find failed images").clicked() {
                commands.push(JobsCommand::FindOutcome(job.id.clone()));
            }
        }
        Loadable::Loading(_) => {
            waiting_ui(ui, "Looking for failed images…");
        }
        Loadable::Failed(why) => banner_ui(ui, Tone::Error, why.message(), |ui| {
            command_button_ui(ui, "Retry", commands, || JobsCommand::FindOutcome(job.id.clone()));
        }),
        Loadable::Ready(outcome) => known_outcome_ui(ui, job, progress, outcome, commands),
    }
}

fn known_outcome_ui(
    ui: &mut Ui,
    job: &KnownJob,
    progress: &JobProgress,
    outcome: &JobOutcome,
    commands: &mut Commands,
) {
    if outcome.failed.is_empty() {
        let retried = outcome.retries_text();
        let retried = retried.map_or_else(String::new, |retried| format!(", {retried}"));
        ui.label(format!("All {} images have an output{retried}", grouped(outcome.inputs as usize)));
        return;
    }
    ui.add_space(4.0);
    let failed = outcome.failed.len() as u64;
    ui.label(strong(counted(failed, "image has no output", "images have no output")));
    for retry in outcome.retries.iter().filter(|retry| retry.predicted > 0) {
        ui.label(predicted_by_retry(retry.predicted, &retry.job_name));
    }
    let unexplained = outcome.unexplained.words(&progress.job);
    let row_height = ui.text_style_height(&TextStyle::Body) + 2.0;
    ScrollArea::vertical().id_salt("failed objects").max_height(FAILED_HEIGHT).auto_shrink([false, true]).show_rows(
        ui,
        row_height,
        outcome.failed.len(),
        |ui, rows| {
            for failed in &outcome.failed[rows] {
                let why = failed.reason.as_deref().unwrap_or(&unexplained);
                let text = format!("{}: {why}", failed.key);
                truncated_ui(ui, text);
            }
        },
    );
    for note in &outcome.notes {
        note_ui(ui, note);
    }
    let Some(running) = outcome.retry_under_way() else {
        return retry_ui(ui, job, outcome, commands);
    };
    let text = format!("Retry {} is running for {} of them", running.job_name, grouped(running.under_way as usize));
    banner_ui(ui, Tone::Hint, &text, |ui| {
        command_button_ui(ui, "Check its progress", commands, || JobsCommand::FindOutcome(job.id.clone()));
    });
}

/// A job of the same kind for only these images: planned, checked, shown, and only then started.
fn retry_ui(ui: &mut Ui, job: &KnownJob, outcome: &JobOutcome, commands: &mut Commands) {
    match &job.retry {
        Loadable::NotLoaded => offer_retry_ui(ui, job, outcome, commands),
        Loadable::Loading(_) => {
            ui.horizontal(|ui| {
                ui.spinner();
                ui.weak("Checking the retry…");
                command_button_ui(ui, "Not now", commands, || JobsCommand::DropRetry(job.id.clone()));
            });
        }
        Loadable::Failed(why) => banner_ui(ui, Tone::Error, why.message(), |ui| {
            if ui.button("Check again").clicked() {
                commands.push(JobsCommand::DropRetry(job.id.clone()));
                commands.push(JobsCommand::FindOutcome(job.id.clone()));
            }
        }),
        Loadable::Ready(planned) => retry_plan_ui(ui, job, planned, commands),
    }
}

/// Offers only a retry that can help; others need another click.
fn offer_retry_ui(ui: &mut Ui, job: &KnownJob, outcome: &JobOutcome, commands: &mut Commands) {
    const PLANS: &str = "Plans a similar job for only these images, listed in a manifest. Nothing is started yet";
    let refused = outcome.refused();
    if refused > 0 {
        let refused_text = match refused {
            1 => "The model rejected 1 image and would reject it again unless the image is replaced".to_owned(),
            count => format!(
                "The model rejected {} images and would reject them again unless they are replaced",
                grouped(count)
            ),
        };
        wrapped_ui(ui, refused_text);
    }
    if let Some(obstacle) = &outcome.retry_obstacle {
        wrapped_ui(ui, obstacle.as_str());
        return;
    }
    ui.horizontal_wrapped(|ui| {
        if outcome.worth_a_retry() > 0 {
            let text = if refused > 0 { "Retry the others…" } else { "Retry failed images…" };
            ui.add(primary_button(ui, text))
                .on_hover_text(PLANS)
                .on_click(commands, || JobsCommand::PlanRetry(job.id.clone(), RetryChoice::NotRefused));
        }
        if refused > 0 {
            ui.button("Check again")
                .on_hover_text("Looks for replaced images")
                .on_click(commands, || JobsCommand::FindOutcome(job.id.clone()));
            let all = ui.button("Retry all anyway…");
            all.on_hover_text("Sends even the images that the model rejected. Nothing is started yet")
                .on_click(commands, || JobsCommand::PlanRetry(job.id.clone(), RetryChoice::All));
        }
    });
}

fn retry_plan_ui(ui: &mut Ui, job: &KnownJob, planned: &RetryPlan, commands: &mut Commands) {
    let spec = &planned.plan.spec;
    ui.add_space(4.0);
    ui.label(strong("The retry"));
    let images = planned.plan.manifest.as_ref();
    let images = images.map_or(0, |manifest| manifest.names.len());
    key_value_ui(ui, "Job", &spec.job_name);
    key_value_ui(ui, "Images", &grouped(images));
    let instances = format!("{} × {}", spec.resources.instance_count, spec.resources.instance_type);
    key_value_ui(ui, "Instances", &instances);
    key_value_ui(ui, "Requests", &requests_text(spec));
    key_value_ui(ui, "Tags", &tags_text(spec));
    key_value_ui(ui, "Outputs", &spec.output.folder.to_string());
    for note in &planned.notes {
        wrapped_ui(ui, format!("⚠ {note}"));
    }
    if !planned.is_startable() {
        let message = "The check below found a problem that would make the retry fail";
        message_ui(ui, Tone::Error, message);
    }
    CollapsingHeader::new("Retry check")
        .default_open(!planned.is_startable())
        .show(ui, |ui| preflight_ui(ui, &planned.preflight, "the retry"));
    ui.horizontal(|ui| {
        let is_free = job.retrying.is_none();
        let start = primary_button(ui, "Start the retry");
        ui.add_enabled(is_free && planned.is_startable(), start)
            .on_click(commands, || JobsCommand::StartRetry(job.id.clone()));
        ui.add_enabled(is_free, Button::new("Not now")).on_click(commands, || JobsCommand::DropRetry(job.id.clone()));
        if !is_free {
            ui.spinner();
        }
    });
}

/// “up to 12 MB each, 4 in parallel per instance”
fn requests_text(spec: &TransformSpec) -> String {
    let payload = match spec.max_payload_mb.unwrap_or(DEFAULT_PAYLOAD_MB) {
        0 => "streamed".to_owned(),
        payload => format!("up to {payload} MB each"),
    };
    match spec.max_concurrent.filter(|count| *count > 0) {
        Some(count) => format!("{payload}, {count} in parallel per instance"),
        None => format!("{payload}, as many in parallel as the container allows"),
    }
}

/// “team=vision, stage=test”
fn tags_text(spec: &TransformSpec) -> String {
    if spec.tags.is_empty() {
        return "none".to_owned();
    }
    let tags = spec.tags.iter().map(|(key, value)| format!("{key}={value}"));
    tags.collect::<Vec<String>>().join(", ")
}

/// What the job no longer needs once it has ended, offered for deletion.
pub(super) fn left_ui(ui: &mut Ui, job: &KnownJob, memory: &mut PageMemory, commands: &mut Commands) {
    if !job.is_over() {
        return;
    }
    ui.add_space(4.0);
    ui.label(strong("Clean up"));
    if let Some(said) = &job.cleaned {
        ui.label(said);
    }
    match &job.left {
        Loadable::NotLoaded => {
            ui.weak("The model in SageMaker, its archive and the manifest stay until they are deleted");
            command_button_ui(ui, "Show leftovers", commands, || JobsCommand::FindLeftovers(job.id.clone()));
        }
        Loadable::Loading(_) => drop(ui.spinner()),
        Loadable::Failed(why) => banner_ui(ui, Tone::Error, why.message(), |ui| {
            command_button_ui(ui, "Retry", commands, || JobsCommand::FindLeftovers(job.id.clone()));
        }),
        Loadable::Ready(Leftovers::Unrecorded) => {
            let name = job.progress.as_ref().map_or("", |progress| &progress.job.spec.model_name);
            let text = format!(
                "This job was not started on this computer, so Spotcheck does not know which resources were created \
                 for it. Check its model {name} in the AWS console",
            );
            note_ui(ui, text);
        }
        Loadable::Ready(Leftovers::Recorded(left)) if left.is_empty() => {
            drop(ui.weak("No leftovers; images and outputs are kept"));
        }
        Loadable::Ready(Leftovers::Recorded(left)) => known_left_ui(ui, job, left, memory, commands),
    }
}

fn known_left_ui(ui: &mut Ui, job: &KnownJob, left: &[Leftover], memory: &mut PageMemory, commands: &mut Commands) {
    ui.weak("No longer needed by the job:");
    for thing in left {
        wrapped_ui(ui, format!("The {thing}"));
    }
    if job.cleaning.is_some() {
        ui.spinner();
        return;
    }
    let delete = ConfirmedButton {
        label: "Delete these…",
        question: match job.id.kind {
            JobKind::Transform => "The job can then no longer be retried with this model. Images and outputs are kept",
            JobKind::Training => "The model is kept",
        },
        yes: "Delete them",
        no: "Keep them",
    };
    if delete.ui(ui, &mut memory.cleaning, &job.id, true) {
        commands.push(JobsCommand::DeleteLeftovers(job.id.clone()));
    }
}
