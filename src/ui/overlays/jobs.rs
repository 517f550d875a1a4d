//! The Batch Transform jobs of an account: their list, and the page of one of them.

mod page;

use eframe::egui::{self, Button, ComboBox, Key, RichText, ScrollArea, TextEdit, Ui, vec2};
use page::PageMemory;

use super::super::widgets::{ago_text, renew_in_time};
use super::list_and_page::{EmptyPage, columns_ui, dialog_ui, list_head_ui};
use super::open_s3::access::{AccessMemory, access_ui};
use crate::domain::{JobQuery, TransformStatus};
use crate::state::{Command, JobId, JobsCommand, KnownJob, Overlay, Queue, State};

/// Drafts of the fields.
#[derive(Default)]
pub(in super::super) struct JobsMemory {
    name: String,
    status: Option<TransformStatus>,
    access: AccessMemory,
    page: PageMemory,
}

pub(in super::super) fn jobs_ui(
    ctx: &egui::Context,
    state: &State,
    memory: &mut JobsMemory,
    commands: &mut Queue<Command>,
) {
    if state.overlay != Overlay::Jobs {
        return;
    }
    renew_in_time(ctx, &state.s3.access, state, commands);
    dialog_ui(
        ctx,
        "jobs",
        "Jobs of SageMaker",
        commands,
        |ui, height, commands| contents_ui(ui, state, memory, height, commands),
    );
}

fn contents_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut JobsMemory,
    height: f32,
    commands: &mut Queue<Command>,
) {
    let nothing = EmptyPage {
        title: "No job is chosen",
        advice: "List the jobs and choose one, or type the name of a job and open it, wherever it was started",
    };
    let page = state.remote.open_job().map(|job| {
        |ui: &mut Ui, height: f32, context: &mut (&mut JobsMemory, &mut Queue<Command>)| {
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

fn list_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut JobsMemory,
    height: f32,
    commands: &mut Queue<Command>,
) {
    let top = ui.cursor().top();
    access_ui(ui, state, &mut memory.access, commands);
    ui.add_space(6.0);
    filter_ui(ui, state, memory, commands);
    ui.add_space(4.0);
    let height = height - (ui.cursor().top() - top);
    ScrollArea::vertical()
        .id_salt("jobs")
        .max_height(height)
        .min_scrolled_height(height)
        .auto_shrink(false)
        .show(ui, |ui| rows_ui(ui, state, commands));
}

const STATUSES: [Option<TransformStatus>; 6] = [
    None,
    Some(TransformStatus::InProgress),
    Some(TransformStatus::Completed),
    Some(TransformStatus::Failed),
    Some(TransformStatus::Stopping),
    Some(TransformStatus::Stopped),
];

fn filter_ui(ui: &mut Ui, state: &State, memory: &mut JobsMemory, commands: &mut Queue<Command>) {
    let field = TextEdit::singleline(&mut memory.name)
        .hint_text("Part of the name, or a whole name to open")
        .desired_width(f32::INFINITY);
    let field = ui.add(field);
    let is_entered = field.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter));
    field.accessible_name("Name of a job, or a part of it");
    let name = memory.name.trim().to_owned();
    let mut is_wanted = is_entered;
    ui.horizontal_wrapped(|ui| {
        let text = |status: Option<TransformStatus>| {
            status.map_or("any status", |status| status.into_str())
        };
        let before = memory.status;
        let combo = ComboBox::from_id_salt("status of jobs")
            .width(110.0)
            .selected_text(text(memory.status))
            .show_ui(ui, |ui| {
                for status in STATUSES {
                    ui.selectable_value(&mut memory.status, status, text(status));
                }
            });
        combo.response.accessible_name("Status of the jobs");
        // Whoever has listed them once wants to see the others at once.
        is_wanted |= before != memory.status && state.remote.list.asked.is_some();
        is_wanted |= ui.button("List jobs").clicked();
        let open = ui.add_enabled(!name.is_empty(), Button::new("Open this job"));
        let open = open.on_hover_text("Opens the job of exactly this name");
        if open
            .on_disabled_hover_text("Type the name of a job first")
            .clicked()
        {
            let id = JobId::new(&state.s3.access, name.as_str());
            commands.push(JobsCommand::Open(id));
        }
        if state.remote.list.task.is_some() {
            ui.spinner();
        }
    });
    if is_wanted {
        commands.push(JobsCommand::List(JobQuery {
            name_contains: (!name.is_empty()).then_some(name),
            status: memory.status,
            page_token: None,
        }));
    }
}

fn rows_ui(ui: &mut Ui, state: &State, commands: &mut Queue<Command>) {
    let list = &state.remote.list;
    watched_ui(ui, state, commands);
    let unasked =
        "Nobody was asked yet: list the jobs of the account and region you are signed in to";
    let Some(access) = list_head_ui(ui, state, list, unasked, commands) else {
        return;
    };
    if list.is_known_to_be_empty() {
        ui.weak("There is no such job in this account and region; “Send to SageMaker…” starts one");
    }
    for job in &list.rows {
        let id = JobId::new(access, job.name.as_str());
        row_ui(
            ui,
            state,
            &id,
            &ago_text(job.created_ms),
            job.status,
            commands,
        );
    }
    if list.next.is_some() {
        let more = ui.add_enabled(list.task.is_none(), Button::new("More jobs"));
        if more.clicked() {
            commands.push(JobsCommand::ListMore);
        }
    }
}

/// Those that were opened or started here and are not in the list.
fn watched_ui(ui: &mut Ui, state: &State, commands: &mut Queue<Command>) {
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
        let text = match progress.and_then(crate::domain::JobProgress::fraction) {
            Some(fraction) => format!("{:.0} %", fraction * 100.0),
            None => String::new(),
        };
        let status = status.unwrap_or(TransformStatus::InProgress);
        row_ui(ui, state, &job.id, &text, status, commands);
    }
    if is_any {
        ui.separator();
    }
}

/// A sign, so that colour is not alone.
pub(super) fn status_sign(status: TransformStatus) -> &'static str {
    match status {
        TransformStatus::InProgress => "▶",
        TransformStatus::Completed => "✓",
        TransformStatus::Failed => "✗",
        TransformStatus::Stopping | TransformStatus::Stopped => "■",
    }
}

fn row_ui(
    ui: &mut Ui,
    state: &State,
    id: &JobId,
    text: &str,
    status: TransformStatus,
    commands: &mut Queue<Command>,
) {
    let is_open = state.remote.open.as_ref() == Some(id);
    let button = Button::selectable(is_open, format!("{} {}", status_sign(status), id.name))
        .right_text(RichText::new(text).weak())
        .truncate()
        .min_size(vec2(ui.available_width(), 0.0));
    let row = ui.add(button);
    if row.clicked() {
        commands.push(JobsCommand::Open(id.clone()));
    }
    row.on_hover_text(format!("{}\n{}", id.name, status.into_str()))
        .accessible_name(format!("Job {}, {}", id.name, status.into_str()));
}
