//! The Batch Transform jobs of an account: their list, and the user's price table.

mod page;
mod training;

use strum::VariantArray as _;

use crate::domain::{S3Access, SampleUri, Utc};
use crate::sagemaker::spec::transform::{
    JobKind, JobProgress, JobSummary, Price, PriceChange, TransformStatus, human_usd,
};
use crate::tasks::now_ms;
use crate::window::remote::ui::{EmptyPage, ListMemory, ListWords, ResourceUi, row_ui, watch_problems_ui};
use crate::window::state::{JobId, JobsCommand, KnownJob, RemoteCommand};
use crate::window::ui::form::{AmountMemory, text_ui};
use crate::window::ui::prelude::*;
use page::PageMemory;

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

    fn name_buttons_ui(ui: &mut Ui, state: &State, name: &str, commands: &mut Commands) {
        for (kind, label) in [(JobKind::Transform, "Open this job"), (JobKind::Training, "Open this training job")] {
            let open = ui.add_enabled(!name.is_empty(), Button::new(label));
            let open = open.on_hover_text("Opens the job with exactly this name");
            open.on_disabled_hover_text("Enter a job name first")
                .on_click(commands, || RemoteCommand::Open(JobId::new(&state.s3.access, kind, name)));
        }
    }

    fn is_above_list(&self, state: &State) -> bool {
        state.remote.jobs.list.rows.iter().all(|listed| (listed.kind, &listed.name) != (self.id.kind, &self.id.name))
    }

    fn known_row_ui(&self, ui: &mut Ui, state: &State, commands: &mut Commands) {
        let fraction = self.progress.as_ref().and_then(JobProgress::fraction);
        let text = fraction.map_or_else(String::new, |fraction| format!("{:.0}%", fraction * 100.0));
        let status = self.status().unwrap_or(TransformStatus::InProgress);
        job_row_ui(ui, state, &self.id, &text, status, commands);
    }

    fn row_ui(ui: &mut Ui, state: &State, access: &S3Access, row: &JobSummary, commands: &mut Commands) {
        let id = JobId::new(access, row.kind, row.name.as_str());
        job_row_ui(ui, state, &id, &ago_text(row.created_ms), row.status, commands);
    }

    fn page_ui(&self, ui: &mut Ui, state: &State, memory: &mut JobsMemory, commands: &mut Commands) {
        page::name_ui(ui, state, self, commands);
        watch_problems_ui(ui, &self.watch, None, commands);
        match &self.training {
            Some(progress) => training::training_ui(ui, state, self, progress, &mut memory.page, commands),
            None => page::page_ui(ui, state, self, &mut memory.page, commands),
        }
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
    let (kind, noun) = match id.kind {
        JobKind::Transform => ("", "Job"),
        JobKind::Training => ("training ", "Training job"),
    };
    let row = row_ui(ui, is_open, format!("{} {}", status_sign(status), id.name), &format!("{kind}{text}"));
    if row.clicked() {
        commands.push(RemoteCommand::Open(id.clone()));
    }
    row.on_hover_text(format!("{}\n{}", id.name, status.into_str())).accessible_name(format!(
        "{noun} {}, {}",
        id.name,
        status.into_str()
    ));
}

const PRICES_HEIGHT: f32 = 120.0;
/// The width of the source field: a grid would make it as narrow as the shortest source.
const SOURCE_WIDTH: f32 = 120.0;
/// The highest accepted price per hour; more is a typing error.
const MOST_USD: f64 = 10_000.0;

/// A price while it is typed.
#[derive(Default)]
pub(crate) struct PriceMemory {
    pub(crate) amount: AmountMemory,
    source: String,
    /// The row of the table that is being edited.
    row: Option<ChangedRow>,
}

struct ChangedRow {
    from: Price,
    usd_per_hour: f64,
    source: String,
}

impl ChangedRow {
    /// The changed price with today's date; `None` without an amount or a source.
    fn change(&self) -> Option<PriceChange> {
        let source = self.source.trim();
        let to = Price {
            usd_per_hour: self.usd_per_hour,
            source: source.to_owned(),
            date: Utc::from_ms(now_ms()).date(),
            ..self.from.clone()
        };
        (!source.is_empty() && self.usd_per_hour > 0.0).then(|| PriceChange { from: self.from.clone(), to })
    }
}

/// Asks for the source of `usd_per_hour`, and saves both.
pub(crate) fn keep_price_ui(
    ui: &mut Ui,
    memory: &mut PriceMemory,
    instance_type: &str,
    region: Option<&str>,
    usd_per_hour: Option<f64>,
    commands: &mut Commands,
) {
    let name = "Price source";
    text_ui(ui, &mut memory.source, name, "a URL, an invoice or a person");
    let source = memory.source.trim();
    let button = ui.add_enabled(usd_per_hour.is_some() && !source.is_empty(), Button::new("Save to price table"));
    let button = button.on_disabled_hover_text("Enter an amount and its source");
    if let (true, Some(usd_per_hour)) = (button.clicked(), usd_per_hour) {
        commands.push(JobsCommand::KeepPrice(Box::new(Price {
            instance_type: instance_type.trim().to_owned(),
            region: region.map(str::to_owned),
            usd_per_hour,
            source: source.to_owned(),
            date: Utc::from_ms(now_ms()).date(),
        })));
        memory.source.clear();
    }
}

/// Why the table could not be read or written.
pub(crate) fn price_problem_ui(ui: &mut Ui, state: &State) {
    if let Some(problem) = &state.remote.prices.problem {
        problem_ui(ui, problem);
    }
}

/// Amount, source and date, and the button that turns them into fields.
fn price_row_ui(ui: &mut Ui, price: &Price, row: &mut Option<ChangedRow>, commands: &mut Commands) {
    let Some(changed) = row.as_mut().filter(|row| row.from == *price) else {
        ui.label(human_usd(price.usd_per_hour));
        ui.label(&price.source);
        ui.label(&price.date);
        let button = ui.small_button("Change…");
        let name = format!("Change the price of {}…", price.instance_type);
        if button.clicked() {
            *row = Some(ChangedRow {
                from: price.clone(),
                usd_per_hour: price.usd_per_hour,
                source: price.source.clone(),
            });
        }
        button.accessible_name(name);
        return;
    };
    let amount = number_field(&mut changed.usd_per_hour).range(0.0..=MOST_USD).speed(0.01).max_decimals(6).prefix("$");
    ui.add(amount).accessible_name("Changed price (USD per hour)");
    let source = TextEdit::singleline(&mut changed.source).min_size(vec2(SOURCE_WIDTH, 0.0));
    ui.add(source).accessible_name("Source of the changed price");
    ui.weak("today");
    let change = changed.change();
    let mut is_over = false;
    ui.horizontal(|ui| {
        let keep = ui.add_enabled(change.is_some(), Button::new("Save"));
        let keep = keep.on_disabled_hover_text("Enter an amount and its source");
        if let (true, Some(change)) = (keep.clicked(), change) {
            commands.push(JobsCommand::ChangePrice(Box::new(change)));
            is_over = true;
        }
        keep.accessible_name("Save the changed price");
        let leave = ui.button("Cancel");
        is_over |= leave.clicked();
        leave.accessible_name("Cancel the price change");
    });
    if is_over {
        *row = None;
    }
}

/// The table, newest price first. Its rows can be edited.
pub(crate) fn price_table_ui(ui: &mut Ui, state: &State, memory: &mut PriceMemory, commands: &mut Commands) {
    price_problem_ui(ui, state);
    let prices = &state.remote.prices;
    if prices.table.prices.is_empty() {
        ui.weak("The price table is empty");
        return;
    }
    ScrollArea::both().id_salt("prices").max_height(PRICES_HEIGHT).auto_shrink([false, true]).show(ui, |ui| {
        Grid::new("prices").striped(true).show(ui, |ui| {
            for title in ["Instance", "Region", "Per hour", "Source", "Date", ""] {
                ui.weak(title);
            }
            ui.end_row();
            for price in prices.table.prices.iter().rev() {
                ui.label(&price.instance_type);
                ui.label(price.region.as_deref().unwrap_or("all others"));
                price_row_ui(ui, price, &mut memory.row, commands);
                ui.end_row();
            }
        });
    });
    ui.weak("If two prices match, the newer one applies");
    if ui.button("Show price file").clicked() {
        let path = SampleUri::new(prices.path.clone());
        commands.push(BrowseCommand::Reveal(path));
    }
}
