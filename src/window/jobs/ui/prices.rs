//! The user's price table, and fields that add a price and its source.

use eframe::egui::{Button, Grid, ScrollArea, TextEdit, Ui, vec2};

use crate::domain::{SampleUri, Utc};
use crate::sagemaker::spec::transform::{Price, PriceChange, human_usd};
use crate::tasks::now_ms;
use crate::window::state::{BrowseCommand, Commands, JobsCommand, State};
use crate::window::ui::form::{AmountMemory, text_ui};
use crate::window::ui::widgets::{number_field, problem_ui};

const HEIGHT: f32 = 120.0;
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
    /// The price in the table.
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
fn row_ui(ui: &mut Ui, price: &Price, row: &mut Option<ChangedRow>, commands: &mut Commands) {
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
    ScrollArea::both().id_salt("prices").max_height(HEIGHT).auto_shrink([false, true]).show(ui, |ui| {
        Grid::new("prices").striped(true).show(ui, |ui| {
            for title in ["Instance", "Region", "Per hour", "Source", "Date", ""] {
                ui.weak(title);
            }
            ui.end_row();
            for price in prices.table.prices.iter().rev() {
                ui.label(&price.instance_type);
                ui.label(price.region.as_deref().unwrap_or("all others"));
                row_ui(ui, price, &mut memory.row, commands);
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
