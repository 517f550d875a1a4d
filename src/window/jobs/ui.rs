//! The Batch Transform jobs of an account: their list, and the page of a single one.

mod page;
pub(crate) mod prices;

use eframe::egui::{Button, Context, Ui};
use page::PageMemory;
use strum::VariantArray as _;

use crate::sagemaker::spec::transform::TransformStatus;
use crate::window::remote::ui::{EmptyPage, ListMemory, ListRequest, ListWords, columns_ui, list_dialog_ui, row_ui};
use crate::window::state::{Commands, JobId, JobsCommand, KnownJob, Overlay, State};
use crate::window::ui::widgets::{ago_text, renew_in_time};

#[derive(Default)]
pub(crate) struct JobsMemory {
    list: ListMemory<TransformStatus>,
    page: PageMemory,
}

pub(crate) fn jobs_ui(ctx: &Context, state: &State, memory: &mut JobsMemory, commands: &mut Commands) {
    if state.overlay != Overlay::Jobs {
        return;
    }
    renew_in_time(ctx, &state.s3.access, state, commands);
    list_dialog_ui(ctx, "jobs", "SageMaker jobs", commands, |ui, height, commands| {
        contents_ui(ui, state, memory, height, commands);
    });
}

fn contents_ui(ui: &mut Ui, state: &State, memory: &mut JobsMemory, height: f32, commands: &mut Commands) {
    let nothing =
        EmptyPage { title: "No job selected", advice: "List the jobs and choose one, or enter a job name and open it" };
    let page = state.remote.open_job().map(|job| {
        |ui: &mut Ui, height: f32, context: &mut (&mut JobsMemory, &mut Commands)| {
            let (memory, commands) = context;
            page::page_ui(ui, state, job, &mut memory.page, height, commands);
        }
    });
    let goes_back = columns_ui(
        ui,
        height,
        "All jobs",
        &nothing,
        &mut (memory, &mut *commands),
        |ui, height, (memory, commands)| list_ui(ui, state, memory, height, commands),
        page,
    );
    if goes_back {
        commands.push(JobsCommand::Close);
    }
}

const WORDS: ListWords<TransformStatus> = ListWords {
    things: "jobs",
    name_hint: "part of a name, or a full name to open",
    name_label: "Job name, or part of it",
    statuses: TransformStatus::VARIANTS,
    word: |status| status.into_str().to_owned(),
    empty: "No matching job in this account and region; to start one, choose “Send to SageMaker…”",
};

fn list_ui(ui: &mut Ui, state: &State, memory: &mut JobsMemory, height: f32, commands: &mut Commands) {
    let request = WORDS.list_ui(
        ui,
        state,
        &mut memory.list,
        &state.remote.list,
        height,
        commands,
        |ui, name, commands| open_ui(ui, state, name, commands),
        |ui, commands| watched_ui(ui, state, commands),
        |ui, access, job, commands| {
            let id = JobId::new(access, job.name.as_str());
            let created = ago_text(job.created_ms);
            job_row_ui(ui, state, &id, &created, job.status, commands);
        },
    );
    match request {
        Some(ListRequest::Read(query)) => commands.push(JobsCommand::List(query)),
        Some(ListRequest::ReadMore) => commands.push(JobsCommand::ListMore),
        None => {}
    }
}

fn open_ui(ui: &mut Ui, state: &State, name: &str, commands: &mut Commands) {
    let open = ui.add_enabled(!name.is_empty(), Button::new("Open this job"));
    let open = open.on_hover_text("Opens the job with exactly this name");
    let open = open.on_disabled_hover_text("Enter a job name first");
    if open.clicked() {
        commands.push(JobsCommand::Open(JobId::new(&state.s3.access, name)));
    }
}

/// Jobs that were opened or started here and are not in the list.
fn watched_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    let list = &state.remote.list;
    let is_listed = |job: &&KnownJob| list.rows.iter().any(|listed| listed.name == job.id.name);
    let known = state.remote.known.iter().rev();
    let mut is_any = false;
    for job in known.filter(|job| !is_listed(job)) {
        if !is_any {
            ui.weak("Opened here");
        }
        is_any = true;
        let progress = job.progress.as_ref();
        let status = progress.map(|progress| progress.job.status);
        let text = match progress.and_then(crate::sagemaker::spec::transform::JobProgress::fraction) {
            Some(fraction) => format!("{:.0}%", fraction * 100.0),
            None => String::new(),
        };
        let status = status.unwrap_or(TransformStatus::InProgress);
        job_row_ui(ui, state, &job.id, &text, status, commands);
    }
    if is_any {
        ui.separator();
    }
}

/// A sign, so that not only color distinguishes statuses.
pub(crate) fn status_sign(status: TransformStatus) -> &'static str {
    match status {
        TransformStatus::InProgress => "▶",
        TransformStatus::Completed => "✓",
        TransformStatus::Failed => "✗",
        TransformStatus::Stopping | TransformStatus::Stopped => "■",
    }
}

fn job_row_ui(ui: &mut Ui, state: &State, id: &JobId, text: &str, status: TransformStatus, commands: &mut Commands) {
    let is_open = state.remote.open.as_ref() == Some(id);
    let row = row_ui(ui, is_open, format!("{} {}", status_sign(status), id.name), text);
    if row.clicked() {
        commands.push(JobsCommand::Open(id.clone()));
    }
    row.on_hover_text(format!("{}\n{}", id.name, status.into_str())).accessible_name(format!(
        "Job {}, {}",
        id.name,
        status.into_str()
    ));
}
