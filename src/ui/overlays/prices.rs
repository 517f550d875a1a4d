//! What an hour of an instance costs: the user's table, and a price that is added to it with where it comes from.

use eframe::egui::{Button, Grid, Label, RichText, ScrollArea, Ui};

use super::form::{AmountMemory, text_ui};
use crate::domain::{Price, SampleUri, Utc, human_usd};
use crate::state::{Command, State};
use crate::tasks::now_ms;

const HEIGHT: f32 = 120.0;

/// A price, while it is being typed.
#[derive(Default)]
pub(super) struct PriceMemory {
    pub(super) amount: AmountMemory,
    source: String,
}

/// Says where `usd_per_hour` comes from, and keeps it.
pub(super) fn keep_price_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut PriceMemory,
    instance_type: &str,
    region: Option<&str>,
    usd_per_hour: Option<f64>,
    commands: &mut Vec<Command>,
) {
    let name = "Where this price comes from";
    text_ui(
        ui,
        &mut memory.source,
        name,
        "an address, an invoice, a person",
    );
    let source = memory.source.trim();
    let button = ui.add_enabled(
        usd_per_hour.is_some() && !source.is_empty(),
        Button::new("Keep in the table of prices"),
    );
    let button =
        button.on_disabled_hover_text("A price has an amount and says where it comes from");
    if let (true, Some(usd_per_hour)) = (button.clicked(), usd_per_hour) {
        commands.push(Command::KeepPrice(Box::new(Price {
            instance_type: instance_type.trim().to_owned(),
            region: region.map(str::to_owned),
            usd_per_hour,
            source: source.to_owned(),
            date: Utc::of_ms(now_ms()).date(),
        })));
        memory.source.clear();
    }
    if let Some(problem) = &state.remote.prices.problem {
        let text = RichText::new(format!("⚠ {problem}")).color(ui.visuals().error_fg_color);
        ui.add(Label::new(text).wrap());
    }
}

/// What the table says, the newest first. It is changed by adding a newer price, or in its file.
pub(super) fn price_table_ui(ui: &mut Ui, state: &State, commands: &mut Vec<Command>) {
    let prices = &state.remote.prices;
    if prices.table.prices.is_empty() {
        ui.weak("The table of prices is empty");
        return;
    }
    ScrollArea::both()
        .id_salt("prices")
        .max_height(HEIGHT)
        .auto_shrink([false, true])
        .show(ui, |ui| {
            Grid::new("prices").striped(true).show(ui, |ui| {
                for title in ["Instance", "Region", "An hour", "From", "Of"] {
                    ui.weak(title);
                }
                ui.end_row();
                for price in prices.table.prices.iter().rev() {
                    ui.label(&price.instance_type);
                    ui.label(price.region.as_deref().unwrap_or("all others"));
                    ui.label(human_usd(price.usd_per_hour));
                    ui.label(&price.source);
                    ui.label(&price.date);
                    ui.end_row();
                }
            });
        });
    ui.weak("Of two for the same type and region, the newer one counts");
    if ui.button("Show the file of the table").clicked() {
        let path = SampleUri::new(prices.path.clone());
        commands.push(Command::RevealPath(path));
    }
}
