//! The Batch Transform jobs of an account: their list, and the page of a single one.

mod page;
pub(crate) mod prices;

use eframe::egui::{Button, Ui};
use page::PageMemory;
use strum::VariantArray as _;

use crate::domain::S3Access;
use crate::sagemaker::spec::transform::{JobProgress, TransformStatus, TransformSummary};
use crate::window::remote::ui::{EmptyPage, ListCommand, ListMemory, ListWords, ResourceUi, row_ui};
use crate::window::state::{Command, Commands, JobId, JobsCommand, KnownJob, State};
use crate::window::ui::widgets::ago_text;

#[derive(Default)]
pub(crate) struct JobsMemory {
    list: ListMemory<TransformStatus>,
    page: PageMemory,
}

impl ResourceUi for KnownJob {
    type Memory = JobsMemory;

    const TITLE: &'static str = "SageMaker jobs";
    const NOTHING_OPEN: EmptyPage =
        EmptyPage { title: "No job selected", advice: "List the jobs and choose one, or enter a job name and open it" };
    const WORDS: ListWords<TransformStatus> = ListWords {
        things: "jobs",
        name_hint: "part of a name, or a full name to open",
        name_label: "Job name, or part of it",
        statuses: TransformStatus::VARIANTS,
        word: |status| status.into_str().to_owned(),
        above: "Opened here",
        empty: "No matching job in this account and region; to start one, choose “Send to SageMaker…”",
    };

    fn list_memory(memory: &mut JobsMemory) -> &mut ListMemory<TransformStatus> {
        &mut memory.list
    }

    fn command(command: ListCommand<TransformStatus>) -> Command {
        Command::Jobs(match command {
            ListCommand::Read(query) => JobsCommand::List(query),
            ListCommand::ReadMore => JobsCommand::ListMore,
            ListCommand::Close => JobsCommand::Close,
        })
    }

    fn name_buttons_ui(ui: &mut Ui, state: &State, name: &str, commands: &mut Commands) {
        let open = ui.add_enabled(!name.is_empty(), Button::new("Open this job"));
        let open = open.on_hover_text("Opens the job with exactly this name");
        let open = open.on_disabled_hover_text("Enter a job name first");
        if open.clicked() {
            commands.push(JobsCommand::Open(JobId::new(&state.s3.access, name)));
        }
    }

    fn is_above_list(&self, state: &State) -> bool {
        state.remote.jobs.list.rows.iter().all(|listed| listed.name != self.id.name)
    }

    fn known_row_ui(&self, ui: &mut Ui, state: &State, commands: &mut Commands) {
        let progress = self.progress.as_ref();
        let fraction = progress.and_then(JobProgress::fraction);
        let text = fraction.map_or_else(String::new, |fraction| format!("{:.0}%", fraction * 100.0));
        let status = progress.map_or(TransformStatus::InProgress, |progress| progress.job.status);
        job_row_ui(ui, state, &self.id, &text, status, commands);
    }

    fn row_ui(ui: &mut Ui, state: &State, access: &S3Access, row: &TransformSummary, commands: &mut Commands) {
        let id = JobId::new(access, row.name.as_str());
        job_row_ui(ui, state, &id, &ago_text(row.created_ms), row.status, commands);
    }

    fn page_ui(&self, ui: &mut Ui, state: &State, memory: &mut JobsMemory, height: f32, commands: &mut Commands) {
        page::page_ui(ui, state, self, &mut memory.page, height, commands);
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
    let is_open = state.remote.jobs.open.as_ref() == Some(id);
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
