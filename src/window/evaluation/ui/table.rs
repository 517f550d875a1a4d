//! The metrics of each class: clicking a row shows its curves, clicking a count its boxes.

use crate::evaluation::{EvaluatedClass, Metrics};
use crate::review::{ClassOutcomes, OutcomeWord};
use crate::window::evaluation::ui::curves::curves_ui;
use crate::window::evaluation::ui::{Shown, decimals};
use crate::window::ui::prelude::*;

const NAME_WIDTH: f32 = 130.0;
/// The heights of the curves below the table, and of the name above and the legend below them.
const CURVES_HEIGHT: std::ops::RangeInclusive<f32> = 120.0..=230.0;
const BESIDE_CURVES: f32 = 76.0;
const TABLE_HEIGHT: f32 = 110.0;

#[derive(Default)]
pub(crate) struct TableMemory {
    table: ClassTableMemory<Numbers>,
    /// The class whose curves are shown, as an index into the ground-truth classes.
    selected: Option<u32>,
}

/// The metrics of a class.
#[derive(Default)]
struct Numbers {
    place: u32,
    ap: Option<f64>,
    ap50: Option<f64>,
    counts: ClassOutcomes,
    truths: u64,
    predicted: u64,
}

type Column = TableColumn<Numbers>;

const fn column(title: &'static str, number: fn(&Numbers) -> Option<f64>, tooltip: &'static str) -> Column {
    Column::new(title, 62.0, number, decimals, tooltip)
}

const fn count(
    title: &'static str,
    number: fn(&Numbers) -> Option<f64>,
    outcome: Option<OutcomeWord>,
    tooltip: &'static str,
) -> Column {
    Column { text: count_cell, outcome, ..column(title, number, tooltip) }
}

const COLUMNS: [Column; 10] = [
    column("AP", |row| row.ap, "Average precision over IoU 0.50 to 0.95, all scores"),
    column("AP50", |row| row.ap50, "Average precision at IoU 0.50, all scores"),
    column("Precision", |row| row.counts.precision(), "Fraction of the class's visible predictions that are correct"),
    column("Recall", |row| row.counts.recall(), "Fraction of the class's ground truth that was found"),
    column("F1", |row| row.counts.f1(), "Harmonic mean of precision and recall"),
    count(
        "TP",
        |row| Some(row.counts.correct as f64),
        Some(OutcomeWord::Right),
        "True positives with the current filters",
    ),
    count(
        "FP",
        |row| Some(row.counts.wrong as f64),
        Some(OutcomeWord::Wrong),
        "False positives with the current filters",
    ),
    count(
        "FN",
        |row| Some(row.counts.false_negatives as f64),
        Some(OutcomeWord::NotFound),
        "False negatives with the current filters",
    ),
    count("GT", |row| Some(row.truths as f64), None, "Ground-truth objects or images of the class"),
    count("All", |row| Some(row.predicted as f64), None, "Predictions of the class, all scores"),
];

pub(crate) fn classes_ui(ui: &mut Ui, shown: &Shown<'_>, memory: &mut TableMemory, commands: &mut Commands) {
    // The first two are for boxes.
    let columns = if shown.is_detection() { &COLUMNS } else { &COLUMNS[2..] };
    let sort_label = |title: &str| format!("Sort the evaluation by {title}");
    let table = ClassTable { columns, sorted_by: "GT", sort_label };
    let room = ui.available_height() - BESIDE_CURVES;
    let curves_height = (room * 0.5).min(*CURVES_HEIGHT.end());
    let shows_curves =
        shown.is_detection() && curves_height >= *CURVES_HEIGHT.start() && room - curves_height >= TABLE_HEIGHT;
    let height = if shows_curves { room - curves_height } else { ui.available_height() };
    let width = ui.available_width().max(NAME_WIDTH + table.numbers_width());
    ScrollArea::horizontal().id_salt("columns of the classes").max_height(height).auto_shrink(false).show(ui, |ui| {
        ui.set_width(width);
        ui.spacing_mut().item_spacing.y = 1.0;
        table.header_ui(ui, &mut memory.table);
        let rows = table.sorted(&mut memory.table, shown.statistics, || rows(shown));
        ScrollArea::vertical().id_salt("classes of the evaluation").auto_shrink(false).show_rows(
            ui,
            TABLE_ROW_HEIGHT,
            rows.len(),
            |ui, visible| {
                for (name, row) in &rows[visible] {
                    row_ui(ui, shown, &table, (name, row), &mut memory.selected, commands);
                }
            },
        );
    });
    if shows_curves {
        ui.separator();
        let selected = memory.selected.filter(|place| (*place as usize) < shown.outcomes.classes.len());
        ui.label(strong(selected.map_or_else(
            || "All classes; click a class to see its curves".to_owned(),
            |place| shown.name(place).to_owned(),
        )));
        curves_ui(ui, shown, selected, curves_height, commands);
    }
}

/// The classes in the ground truth or the predictions.
fn rows(shown: &Shown<'_>) -> Vec<(String, Numbers)> {
    let none = Numbers::default;
    let classes: Vec<(&EvaluatedClass, Numbers)> = match &shown.evaluated.metrics {
        Metrics::Detection { metrics, .. } => {
            let classes = metrics.classes.iter().map(|of| {
                let (truths, predicted) = (of.truths, of.detections);
                (&of.class, Numbers { truths, predicted, ap: of.ap, ap50: of.ap50, ..none() })
            });
            classes.collect()
        }
        Metrics::Classification { metrics, .. } => {
            let classes = metrics.classes.iter();
            classes.map(|of| (&of.class, Numbers { truths: of.truths, predicted: of.predictions, ..none() })).collect()
        }
    };
    let rows = classes.into_iter().enumerate().map(|(place, (class, numbers))| {
        let counts = shown.counts.classes.get(place).copied().unwrap_or_default();
        (class.name.clone(), Numbers { place: place as u32, counts, ..numbers })
    });
    rows.filter(|(_, row)| row.truths + row.predicted > 0).collect()
}

fn row_ui(
    ui: &mut Ui,
    shown: &Shown<'_>,
    table: &ClassTable<'_, Numbers>,
    (name, row): (&str, &Numbers),
    selected: &mut Option<u32>,
    commands: &mut Commands,
) {
    let is_selected = *selected == Some(row.place);
    let label = format!("Class {name}: {}", table.numbers_text(row));
    let class = shown.outcomes.model_classes(row.place).next();
    let color = class.map(|class| theme::class_color(&shown.labels.name(class)));
    let (rect, response) = table.row_ui(ui, (name, color), 0.0, (&label, is_selected));
    for (column, cell) in table.cells(rect) {
        let text = column.text_of(row);
        let Some(outcome) = column.outcome.filter(|_| (column.number)(row) > Some(0.0)) else {
            table_number_ui(ui, cell, &text, ui.visuals().text_color());
            continue;
        };
        let says = format!("{text} {} for {name}", column.title);
        if count_ui(ui, cell, (row.place, column.title), &text, &says) {
            commands.push(SearchCommand::ShowBoxes(shown.of_class(outcome, row.place)));
        }
    }
    let tooltip = match class {
        Some(_) => name.to_owned(),
        None => format!("{name}: no model class matches; see Class matching"),
    };
    if response.on_hover_text(tooltip).clicked() {
        *selected = (!is_selected).then_some(row.place);
    }
}

/// A count that can be clicked to see what was counted.
fn count_ui(ui: &Ui, cell: Rect, key: (u32, &str), text: &str, says: &str) -> bool {
    let response = ui.interact(cell, ui.scope_id().with(key), Sense::click());
    response.widget_info(|| WidgetInfo::labeled(Role::Button, true, says));
    let accent = theme::accent(ui.visuals());
    let drawn = table_number_ui(ui, cell, text, accent);
    if response.hovered() || response.has_focus() {
        ui.painter().hline(drawn.x_range(), drawn.bottom(), Stroke::new(1.5, accent));
    }
    response.on_hover_text(format!("{says}; click to show them")).clicked()
}
