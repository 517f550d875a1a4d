//! The numbers of each class: a click on a row shows its curves, a click on a count its boxes.

use std::sync::Arc;

use eframe::egui::{self, Align2, CornerRadius, Rect, ScrollArea, Sense, Stroke, TextStyle, Ui, pos2, vec2};
use strum::IntoStaticStr;

use super::super::theme;
use super::super::widgets::{grouped, strong, truncated};
use super::curves::curves_ui;
use super::{Shown, decimals, show_boxes};
use crate::evaluation::{Evaluated, Metrics};
use crate::review::Statistics;
use crate::state::{Command, Queue};

const ROW_HEIGHT: f32 = 22.0;
const NAME_WIDTH: f32 = 130.0;
const NUMBER_WIDTH: f32 = 62.0;
/// Beside the last column, for the scroll bar.
const RIGHT_MARGIN: f32 = 14.0;
/// The height of the curves below the table, and of the name above and the legend below them.
const CURVES_HEIGHT: std::ops::RangeInclusive<f32> = 120.0..=230.0;
const BESIDE_CURVES: f32 = 76.0;
/// The table has at least this height.
const TABLE_HEIGHT: f32 = 110.0;

#[derive(Default)]
pub(super) struct TableMemory {
    column: Column,
    is_reversed: bool,
    /// The class whose curves are shown: its place among those of the ground truth.
    selected: Option<u32>,
    /// Sorted anew only when the numbers or the sort change.
    sorted: Option<Sorted>,
}

struct Sorted {
    of: (Arc<Evaluated>, Arc<Statistics>),
    column: Column,
    is_reversed: bool,
    rows: Vec<Row>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, IntoStaticStr)]
#[strum(const_into_str)]
enum Column {
    Class,
    #[strum(serialize = "AP")]
    Ap,
    #[strum(serialize = "AP50")]
    Ap50,
    Precision,
    Recall,
    #[strum(serialize = "F1")]
    F1,
    Right,
    Wrong,
    Missed,
    #[default]
    Truths,
    #[strum(serialize = "All")]
    Predicted,
}

const OF_DETECTOR: [Column; 10] = [
    Column::Ap,
    Column::Ap50,
    Column::Precision,
    Column::Recall,
    Column::F1,
    Column::Right,
    Column::Wrong,
    Column::Missed,
    Column::Truths,
    Column::Predicted,
];
/// Without the two of AP, which are about boxes.
const OF_CLASSIFIER: &[Column] = OF_DETECTOR.split_at(2).1;

impl Column {
    fn tooltip(self) -> &'static str {
        match self {
            Self::Class => "By name",
            Self::Ap => "Average precision over an IoU of 0.50 to 0.95, any score",
            Self::Ap50 => "Average precision at an IoU of 0.50, any score",
            Self::Precision => "Share of the shown predictions of the class that are right",
            Self::Recall => "The share of the class in the ground truth that is found",
            Self::F1 => "The harmonic mean of precision and recall",
            Self::Right => "True positives at the filters on screen",
            Self::Wrong => "False positives at the filters on screen",
            Self::Missed => "False negatives at the filters on screen: without a right box",
            Self::Truths => "How often the class is in the ground truth",
            Self::Predicted => "How often the class was predicted, with any score",
        }
    }
}

struct Row {
    place: u32,
    name: String,
    ap: Option<f64>,
    ap50: Option<f64>,
    precision: Option<f64>,
    recall: Option<f64>,
    f1: Option<f64>,
    right: u64,
    wrong: u64,
    missed: u64,
    truths: u64,
    predicted: u64,
}

impl Row {
    fn number(&self, column: Column) -> Option<f64> {
        match column {
            Column::Class => None,
            Column::Ap => self.ap,
            Column::Ap50 => self.ap50,
            Column::Precision => self.precision,
            Column::Recall => self.recall,
            Column::F1 => self.f1,
            Column::Right | Column::Wrong | Column::Missed | Column::Truths | Column::Predicted => {
                self.count(column).map(|count| count as f64)
            }
        }
    }

    fn count(&self, column: Column) -> Option<u64> {
        match column {
            Column::Right => Some(self.right),
            Column::Wrong => Some(self.wrong),
            Column::Missed => Some(self.missed),
            Column::Truths => Some(self.truths),
            Column::Predicted => Some(self.predicted),
            _ => None,
        }
    }

    fn text(&self, column: Column) -> String {
        match self.count(column) {
            Some(count) => grouped(count as usize),
            None => decimals(self.number(column)),
        }
    }
}

pub(super) fn classes_ui(ui: &mut Ui, shown: &Shown<'_>, memory: &mut TableMemory, commands: &mut Queue<Command>) {
    let columns: &[Column] = if shown.is_detection() { &OF_DETECTOR } else { OF_CLASSIFIER };
    sort(memory, shown);
    let room = ui.available_height() - BESIDE_CURVES;
    let curves_height = (room * 0.5).min(*CURVES_HEIGHT.end());
    let shows_curves =
        shown.is_detection() && curves_height >= *CURVES_HEIGHT.start() && room - curves_height >= TABLE_HEIGHT;
    let height = if shows_curves { room - curves_height } else { ui.available_height() };
    let width = ui.available_width().max(NAME_WIDTH + NUMBER_WIDTH * columns.len() as f32 + RIGHT_MARGIN);
    ScrollArea::horizontal().id_salt("columns of the classes").max_height(height).auto_shrink(false).show(ui, |ui| {
        ui.set_width(width);
        ui.spacing_mut().item_spacing.y = 1.0;
        header_ui(ui, memory, columns);
        let TableMemory { sorted: Some(sorted), selected, .. } = memory else {
            return;
        };
        ScrollArea::vertical().id_salt("classes of the evaluation").auto_shrink(false).show_rows(
            ui,
            ROW_HEIGHT,
            sorted.rows.len(),
            |ui, visible| {
                for row in &sorted.rows[visible] {
                    row_ui(ui, shown, columns, row, selected, commands);
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

/// The place of a column of numbers.
fn number_rect(row: Rect, columns: &[Column], at: usize) -> Rect {
    let right = row.right() - RIGHT_MARGIN - NUMBER_WIDTH * (columns.len() - at - 1) as f32;
    Rect::from_min_max(pos2(right - NUMBER_WIDTH, row.top()), pos2(right, row.bottom()))
}

fn header_ui(ui: &mut Ui, memory: &mut TableMemory, columns: &[Column]) {
    let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), ROW_HEIGHT), Sense::hover());
    let class = rect.with_max_x(number_rect(rect, columns, 0).left());
    let numbers = columns.iter().enumerate().map(|(at, column)| (*column, number_rect(rect, columns, at)));
    for (column, place) in std::iter::once((Column::Class, class)).chain(numbers) {
        title_ui(ui, memory, column, place);
    }
}

/// A click sorts by the column, another one turns the order around.
fn title_ui(ui: &Ui, memory: &mut TableMemory, column: Column, place: Rect) {
    let is_current = memory.column == column;
    let id = ui.scope_id().with(("column", column.into_str()));
    let response = ui.interact(place, id, Sense::click()).on_hover_text(column.tooltip());
    response.widget_info(|| {
        let label = format!("Sort the evaluation by {}", column.into_str());
        egui::WidgetInfo::selected(egui::Role::Button, true, is_current, label)
    });
    let mark = match (is_current, memory.is_reversed) {
        (false, _) => "",
        (true, false) => " ↓",
        (true, true) => " ↑",
    };
    let text = format!("{}{mark}", column.into_str());
    let visuals = ui.visuals();
    let is_marked = is_current || response.hovered() || response.has_focus();
    let color = if is_marked { visuals.text_color() } else { visuals.weak_text_color() };
    let font = TextStyle::Small.resolve(ui.style());
    let (position, align) = match column {
        Column::Class => (place.left_center() + vec2(6.0, 0.0), Align2::LEFT_CENTER),
        _ => (place.right_center() - vec2(4.0, 0.0), Align2::RIGHT_CENTER),
    };
    ui.painter().text(position, align, text, font, color);
    if response.clicked() {
        memory.is_reversed = is_current && !memory.is_reversed;
        memory.column = column;
    }
}

/// Highest first, names from A to Z; reversed on a second click. Classes without the number are last.
fn sort(memory: &mut TableMemory, shown: &Shown<'_>) {
    let is_current = |sorted: &Sorted| {
        Arc::ptr_eq(&sorted.of.0, shown.evaluated)
            && Arc::ptr_eq(&sorted.of.1, shown.statistics)
            && (sorted.column, sorted.is_reversed) == (memory.column, memory.is_reversed)
    };
    if memory.sorted.as_ref().is_some_and(is_current) {
        return;
    }
    let (column, is_reversed) = (memory.column, memory.is_reversed);
    let mut rows = rows_of(shown);
    match column {
        Column::Class => {
            rows.sort_by_cached_key(|row| row.name.to_lowercase());
            if is_reversed {
                rows.reverse();
            }
        }
        _ => rows.sort_by(|one, other| {
            let (left, right) = (one.number(column), other.number(column));
            let by_number = match (left, right) {
                (Some(left), Some(right)) if is_reversed => left.total_cmp(&right),
                (Some(left), Some(right)) => right.total_cmp(&left),
                (left, right) => right.is_some().cmp(&left.is_some()),
            };
            by_number.then_with(|| one.name.cmp(&other.name))
        }),
    }
    let of = (Arc::clone(shown.evaluated), Arc::clone(shown.statistics));
    memory.sorted = Some(Sorted { of, column, is_reversed, rows });
}

/// The classes that the ground truth or the predictions have.
fn rows_of(shown: &Shown<'_>) -> Vec<Row> {
    let row = |place: usize, name: &str, [truths, predicted]: [u64; 2], [ap, ap50]: [Option<f64>; 2]| {
        let counts = shown.counts.classes.get(place).copied().unwrap_or_default();
        Row {
            place: place as u32,
            name: name.to_owned(),
            ap,
            ap50,
            precision: counts.precision(),
            recall: counts.recall(),
            f1: counts.f1(),
            right: counts.correct,
            wrong: counts.wrong,
            missed: counts.missed,
            truths,
            predicted,
        }
    };
    let mut rows: Vec<Row> = match &shown.evaluated.metrics {
        Metrics::Detection { metrics, .. } => {
            let classes = metrics.classes.iter().enumerate();
            classes
                .map(|(place, of)| row(place, &of.class.name, [of.truths, of.detections], [of.ap, of.ap50]))
                .collect()
        }
        Metrics::Classification { metrics, .. } => {
            let classes = metrics.classes.iter().enumerate();
            classes.map(|(place, of)| row(place, &of.class.name, [of.truths, of.predictions], [None; 2])).collect()
        }
    };
    rows.retain(|row| row.truths + row.predicted > 0);
    rows
}

fn row_ui(
    ui: &mut Ui,
    shown: &Shown<'_>,
    columns: &[Column],
    row: &Row,
    selected: &mut Option<u32>,
    commands: &mut Queue<Command>,
) {
    let is_selected = *selected == Some(row.place);
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), ROW_HEIGHT), Sense::click());
    response.widget_info(|| {
        let numbers = columns.iter().map(|column| format!("{} {}", column.into_str(), row.text(*column)));
        let numbers: Vec<String> = numbers.collect();
        let label = format!("Class {}: {}", row.name, numbers.join(", "));
        egui::WidgetInfo::selected(egui::Role::Button, true, is_selected, label)
    });
    let visuals = ui.visuals();
    let corner = CornerRadius::same(4);
    if is_selected {
        ui.painter().rect_filled(rect, corner, visuals.selection.bg_fill);
    } else if response.hovered() || response.has_focus() {
        ui.painter().rect_filled(rect, corner, visuals.widgets.hovered.bg_fill);
    }
    let font = TextStyle::Body.resolve(ui.style());
    let color = visuals.text_color();
    let class = shown.outcomes.model_classes(row.place).next();
    let swatch = Rect::from_center_size(pos2(rect.left() + 11.0, rect.center().y), vec2(10.0, 10.0));
    if let Some(class) = class {
        ui.painter().rect_filled(swatch, 2.0, theme::class_color(&shown.labels.name(class)));
    } else {
        ui.painter().rect_stroke(swatch, 2.0, Stroke::new(1.0, color), egui::StrokeKind::Inside);
    }
    let left = swatch.right() + 6.0;
    let name_width = number_rect(rect, columns, 0).left() - left;
    let galley = truncated(ui, &row.name, font.clone(), color, name_width);
    ui.painter().galley(pos2(left, rect.center().y - galley.size().y / 2.0), galley, color);
    for (at, column) in columns.iter().enumerate() {
        let place = number_rect(rect, columns, at);
        let text = row.text(*column);
        let query = match column {
            Column::Right if row.right > 0 => Shown::right,
            Column::Wrong if row.wrong > 0 => Shown::wrong,
            Column::Missed if row.missed > 0 => Shown::not_found,
            _ => {
                let at = place.right_center() - vec2(4.0, 0.0);
                ui.painter().text(at, Align2::RIGHT_CENTER, text, font.clone(), color);
                continue;
            }
        };
        let says = format!("{text} {} of {}", column.into_str().to_lowercase(), row.name);
        if count_ui(ui, place, row.place, &text, &says) {
            show_boxes(commands, query(shown, row.place));
        }
    }
    let tooltip = match class {
        Some(_) => row.name.clone(),
        None => format!("{}: no class of the model is this one; see Class matching", row.name),
    };
    if response.on_hover_text(tooltip).clicked() {
        *selected = (!is_selected).then_some(row.place);
    }
}

/// A count that is clicked to see what was counted.
fn count_ui(ui: &Ui, place: Rect, row: u32, text: &str, says: &str) -> bool {
    let id = ui.scope_id().with((row, place.left() as i32));
    let response = ui.interact(place, id, Sense::click());
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Button, true, says));
    let visuals = ui.visuals();
    let font = TextStyle::Body.resolve(ui.style());
    let at = place.right_center() - vec2(4.0, 0.0);
    let drawn = ui.painter().text(at, Align2::RIGHT_CENTER, text, font, theme::accent(visuals));
    if response.hovered() || response.has_focus() {
        let stroke = Stroke::new(1.5, theme::accent(visuals));
        ui.painter().hline(drawn.x_range(), drawn.bottom(), stroke);
    }
    response.on_hover_text(format!("{says}; click to show them")).clicked()
}
