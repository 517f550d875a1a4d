//! What goes wrong together: kinds of errors that are more frequent in a group of images than by chance.

use crate::evaluation::{Attribute, ErrorKind, ErrorPattern, ErrorPatterns};
use crate::review::OutcomeWord;
use crate::window::evaluation::ui::Shown;
use crate::window::state::{RunEvaluation, ShownPatterns};
use crate::window::ui::prelude::*;

const NAME_WIDTH: f32 = 220.0;

type Column = TableColumn<ErrorPattern>;

const fn column(title: &'static str, number: fn(&ErrorPattern) -> Option<f64>, tooltip: &'static str) -> Column {
    Column::new(title, 66.0, number, count_cell, tooltip)
}

const COLUMNS: [Column; 4] = [
    column("With error", |row| Some(row.with_error.len() as f64), "Images of the group with this error"),
    column("Images", |row| Some(row.images as f64), "Images of the group in which the error could occur"),
    Column {
        text: |number| number.map_or_else(String::new, |number| format!("{number:.1}")),
        ..column(
            "Expected",
            |row| Some(row.expected),
            "Images with the error, if it were as frequent in the group as elsewhere",
        )
    },
    Column {
        text: |number| {
            number.map_or_else(String::new, |q| if q < 0.001 { "<0.001".to_owned() } else { format!("{q:.3}") })
        },
        ..column(
            "q-value",
            |row| Some(row.q),
            "The fraction of false patterns among this one and all above it, on average (Benjamini and Hochberg)",
        )
    },
];

pub(super) fn patterns_ui(ui: &mut Ui, shown: &Shown<'_>, evaluation: &RunEvaluation, commands: &mut Commands) {
    ui.horizontal_wrapped(|ui| {
        action_button_ui(ui, shown.state, Action::FindErrorPatterns, commands);
        if shown.state.other_evaluated().is_some() {
            action_button_ui(ui, shown.state, Action::FindNewErrorPatterns, commands);
        }
    });
    match &evaluation.patterns {
        Loadable::NotLoaded => drop(note_ui(
            ui,
            "Finds groups of images in which an error is more frequent than by chance: by class, folder, camera, time of \
             day, size and similarity",
        )),
        Loadable::Loading(task) => {
            ui.horizontal(|ui| {
                note_ui(ui, "Searching the errors for patterns…");
                command_button_ui(ui, "Cancel", commands, || Command::cancel(*task));
            });
        }
        Loadable::Failed(failure) => message_ui(ui, Tone::Error, failure.message()),
        Loadable::Ready(found) => found_ui(ui, shown, found, commands),
    }
}

fn found_ui(ui: &mut Ui, shown: &Shown<'_>, found: &ShownPatterns, commands: &mut Commands) {
    let ShownPatterns { patterns, notes, .. } = found;
    let rows = &patterns.found.patterns;
    let what = match &patterns.than {
        Some(than) => format!("Errors that “{than}” does not make"),
        None => "All errors".to_owned(),
    };
    ui.label(strong(format!("{what}: {}", counted(rows.len(), "pattern", "patterns"))));
    note_ui(ui, patterns.method_text());
    for note in notes {
        note_ui(ui, note);
    }
    if rows.is_empty() {
        ui.label("No error is more frequent in any group than by chance.");
        return;
    }
    let table = ClassTable { columns: &COLUMNS, sorted_by: "", sort_label: |title| title.to_owned() };
    let width = ui.available_width().max(NAME_WIDTH + table.numbers_width());
    ScrollArea::horizontal().id_salt("columns of the error patterns").auto_shrink(false).show(ui, |ui| {
        ui.set_width(width);
        ui.spacing_mut().item_spacing.y = 1.0;
        header_ui(ui, &table);
        ScrollArea::vertical().id_salt("error patterns").auto_shrink(false).show_rows(
            ui,
            TABLE_ROW_HEIGHT,
            rows.len(),
            |ui, visible| {
                for number in visible {
                    row_ui(ui, shown, &table, patterns, number, commands);
                }
            },
        );
    });
}

/// The titles; the order is that of the p-values.
fn header_ui(ui: &mut Ui, table: &ClassTable<'_, ErrorPattern>) {
    let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), TABLE_ROW_HEIGHT), Sense::hover());
    let (font, color) = (TextStyle::Small.resolve(ui.style()), ui.visuals().weak_text_color());
    let title_ui = |ui: &Ui, align: Align2, place: Rect, title: &str, tooltip: &str| {
        ui.painter().text(align.pos_in_rect(&place), align, title, font.clone(), color);
        ui.interact(place, ui.scope_id().with(title), Sense::hover()).on_hover_text(tooltip);
    };
    let name = rect.with_max_x(table.numbers_left(rect));
    title_ui(ui, Align2::LEFT_CENTER, name, "Error and group", "The most significant patterns come first");
    for (column, cell) in table.cells(rect) {
        title_ui(ui, Align2::RIGHT_CENTER, cell, column.title, column.tooltip);
    }
}

fn row_ui(
    ui: &mut Ui,
    shown: &Shown<'_>,
    table: &ClassTable<'_, ErrorPattern>,
    patterns: &ErrorPatterns,
    place: usize,
    commands: &mut Commands,
) {
    let row = &patterns.found.patterns[place];
    let name = format!("{} · {}", patterns.error_text(row.kind), group_text(row));
    let class = match row.kind {
        ErrorKind::Any => None,
        ErrorKind::FalsePositive(class) | ErrorKind::FalseNegative(class) => class,
        ErrorKind::Confused { truth, .. } => Some(truth),
    };
    let class = class.and_then(|class| shown.outcomes.model_classes(class).next());
    let color = class.map_or(ui.visuals().weak_text_color(), |class| theme::class_color(&shown.labels.name(class)));
    let label = format!("Pattern {}: {name}, {}", place + 1, table.numbers_text(row));
    let query = query_text(shown, row, place + 1);
    let is_selected = shown.state.arranging.text() == query;
    let (rect, response) = table.row_ui(ui, (&name, Some(color)), 0.0, (&label, is_selected));
    table.numbers_ui(ui, rect, row);
    let tooltip = |ui: &mut Ui| {
        ui.label(&name);
        ui.weak(format!("p = {:.2e}; click to show the images with the error", row.p));
    };
    response.on_hover_ui(tooltip).on_click(commands, || SearchCommand::SetQuery(query));
}

/// “looks like a.jpg”, “night (21:00–5:59)”
fn group_text(row: &ErrorPattern) -> String {
    match row.attribute {
        Attribute::Class => format!("with {}", row.value),
        Attribute::Folder => format!("folder {}", row.value),
        Attribute::Likeness => format!("looks like {}", row.value),
        Attribute::ObjectSize => format!("{} objects", row.value),
        Attribute::ImageSize => format!("images {}", row.value),
        Attribute::Camera | Attribute::TimeOfDay | Attribute::AspectRatio => row.value.clone(),
    }
}

/// The images of the pattern, and the boxes with its error.
fn query_text(shown: &Shown<'_>, row: &ErrorPattern, number: usize) -> String {
    let boxes = match row.kind {
        ErrorKind::Any => "fp or fn".to_owned(),
        ErrorKind::FalsePositive(None) => "fp".to_owned(),
        ErrorKind::FalseNegative(None) => "fn".to_owned(),
        ErrorKind::FalsePositive(Some(class)) => shown.of_class(OutcomeWord::Wrong, class).to_string(),
        ErrorKind::FalseNegative(Some(class)) => shown.of_class(OutcomeWord::NotFound, class).to_string(),
        ErrorKind::Confused { truth, predicted } => shown.cell(Some(truth), Some(predicted)).to_string(),
    };
    match boxes.contains(" or ") {
        _ if boxes.is_empty() => format!("pattern:{number}"),
        true => format!("pattern:{number} ({boxes})"),
        false => format!("pattern:{number} {boxes}"),
    }
}
