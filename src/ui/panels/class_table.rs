//! The classes of a whole run: how many, and how sure. A click searches for one, or shows all its boxes in a strip.

use std::sync::Arc;

use eframe::egui::{
    self, Align2, CornerRadius, Rect, ScrollArea, Sense, Stroke, StrokeKind, TextStyle, Ui, Vec2,
    containers::scroll_area::ScrollSource, pos2, vec2,
};
use strum::IntoStaticStr;

use super::super::theme;
use super::super::widgets::{box_count, grouped, image_count, truncated};
use crate::domain::{LabelSet, ModelTask};
use crate::review::{ClassRow, Statistics, class_term, has_term, with_term, without_term};
use crate::state::{Command, Queue, ReviewCommand, Run, State};

const ROW_HEIGHT: f32 = 22.0;
const ROW_GAP: f32 = 1.0;
/// As many rows as there is room for, but never fewer or more than these.
const ROWS_SHOWN: std::ops::RangeInclusive<usize> = 6..=20;
const STRIP_WIDTH: f32 = 24.0;
/// In less width than this, three columns of numbers would leave too little for the names.
const NARROW: f32 = 280.0;

/// What the table remembers between two frames.
#[derive(Default)]
pub(super) struct ClassTableMemory {
    column: Column,
    is_reversed: bool,
    /// Sorted anew only when the statistics or the sort change.
    sorted: Option<Sorted>,
    wheel: Wheel,
}

/// Whether the wheel scrolls the table or the panel. A table that moves under a resting pointer while the panel is
/// scrolled does not take the wheel from it; one that the pointer is moved onto does.
#[derive(Default)]
struct Wheel {
    /// Where the table was in the last frame.
    top: f32,
    is_panels: bool,
}

impl Wheel {
    fn is_tables(&mut self, ui: &Ui) -> bool {
        let top = ui.cursor().top();
        if ui.input(|input| input.pointer.delta() != Vec2::ZERO) {
            self.is_panels = false;
        } else if self.top != top {
            self.is_panels = true;
        }
        self.top = top;
        !self.is_panels
    }
}

struct Sorted {
    of: Arc<Statistics>,
    column: Column,
    is_reversed: bool,
    rows: Vec<(ClassRow, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, IntoStaticStr)]
#[strum(const_into_str)]
enum Column {
    Class,
    #[default]
    Images,
    Boxes,
    Mean,
}

impl Column {
    /// Of a column of numbers: its title with the mark of the sort, and the numbers.
    fn width(self, statistics: &Statistics) -> f32 {
        const MANY: usize = 100_000;
        let is_long = |count: usize| count >= MANY;
        let rows = &statistics.classes.rows;
        match self {
            Self::Images if is_long(statistics.images) => 64.0,
            Self::Boxes if rows.iter().any(|row| is_long(row.boxes)) => 64.0,
            Self::Images => 52.0,
            Self::Boxes => 50.0,
            Self::Class | Self::Mean => 44.0,
        }
    }

    fn tooltip(self) -> &'static str {
        match self {
            Self::Class => "By name",
            Self::Images => "How many images show the class",
            Self::Boxes => "How many boxes of the class are shown",
            Self::Mean => "The mean score of what is shown",
        }
    }
}

/// “Classes in 8 images”
pub(super) fn classes_title(state: &State) -> String {
    counted(state).map_or_else(
        || "Classes".to_owned(),
        |(_, statistics)| format!("Classes in {}", image_count(statistics.images)),
    )
}

/// The run on screen and what its predictions come to, where there are any.
fn counted(state: &State) -> Option<(&Run, &Arc<Statistics>)> {
    let (run, statistics) = (state.run()?, state.arranging.statistics()?);
    (statistics.images > 0 && statistics.task == run.task()).then_some((run, statistics))
}

/// As high as `room` and the number of the model's classes let it be, whatever is in it: nothing below it moves.
pub(super) fn class_table_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut ClassTableMemory,
    room: f32,
    commands: &mut Queue<Command>,
) {
    let classes = state.viewed_labels().map_or(0, LabelSet::len);
    let height = rows_height(room, classes);
    ui.spacing_mut().item_spacing.y = ROW_GAP;
    let rows = |statistics: &Statistics| statistics.classes.rows.len();
    let found = counted(state).filter(|(_, statistics)| rows(statistics) > 0);
    let Some((run, statistics)) = found else {
        let text = match counted(state) {
            Some(_) => "None above the threshold",
            None => "No predictions yet",
        };
        let size = vec2(ui.available_width(), ROW_HEIGHT + ROW_GAP + height);
        ui.allocate_ui(size, |ui| {
            ui.set_min_size(size);
            ui.weak(text);
        });
        return;
    };
    let shown: &[Column] = match statistics.task {
        ModelTask::Classification => &[Column::Images, Column::Mean],
        // The names come first.
        ModelTask::Detection if ui.available_width() < NARROW => &[Column::Boxes, Column::Mean],
        ModelTask::Detection => &[Column::Images, Column::Boxes, Column::Mean],
    };
    let widths = shown.iter().map(|column| (*column, column.width(statistics)));
    let columns: Vec<(Column, f32)> = widths.collect();
    header_ui(ui, memory, &columns);
    sort(memory, statistics, run);
    let Some(sorted) = &memory.sorted else {
        return;
    };
    let scroll = ScrollSource { mouse_wheel: memory.wheel.is_tables(ui), ..ScrollSource::default() };
    ScrollArea::vertical()
        .id_salt("classes")
        .scroll_source(scroll)
        .max_height(height)
        // The panel around it scrolls, too, and would leave it next to nothing.
        .min_scrolled_height(height)
        .auto_shrink(false)
        .show_rows(ui, ROW_HEIGHT, sorted.rows.len(), |ui, visible| {
            for (row, name) in &sorted.rows[visible] {
                row_ui(ui, state, &columns, row, name, commands);
            }
        });
}

/// The height of the rows on screen. `classes` is how many there can be; zero if unknown.
fn rows_height(room: f32, classes: usize) -> f32 {
    let row = ROW_HEIGHT + ROW_GAP;
    // The header is a row, too.
    let rows = (room / row).max(0.0) as usize;
    let rows = rows.saturating_sub(1).clamp(*ROWS_SHOWN.start(), *ROWS_SHOWN.end());
    let rows = if classes > 0 { rows.min(classes) } else { rows };
    row * rows as f32 - ROW_GAP
}

fn header_ui(ui: &mut Ui, memory: &mut ClassTableMemory, columns: &[(Column, f32)]) {
    let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), ROW_HEIGHT), Sense::hover());
    let class = rect.with_max_x(number_rect(rect, columns, 0).left());
    let of_numbers = columns.iter().enumerate().map(|(at, (column, _))| (*column, number_rect(rect, columns, at)));
    for (column, place) in std::iter::once((Column::Class, class)).chain(of_numbers) {
        title_ui(ui, memory, column, place);
    }
}

/// A click sorts by the column, another one turns the order around.
fn title_ui(ui: &Ui, memory: &mut ClassTableMemory, column: Column, place: Rect) {
    let is_current = memory.column == column;
    let response =
        ui.interact(place, ui.scope_id().with(column.into_str()), Sense::click()).on_hover_text(column.tooltip());
    response.widget_info(|| {
        let label = format!("Sort classes by {}", column.into_str().to_lowercase());
        egui::WidgetInfo::selected(egui::Role::Button, true, is_current, label)
    });
    let mark = match (is_current, memory.is_reversed) {
        (false, _) => "",
        (true, false) => " ↓",
        (true, true) => " ↑",
    };
    let text = format!("{}{mark}", column.into_str());
    let color =
        if is_current || response.hovered() { ui.visuals().text_color() } else { ui.visuals().weak_text_color() };
    let font = TextStyle::Small.resolve(ui.style());
    let (position, align) = if column == Column::Class {
        (place.left_center(), Align2::LEFT_CENTER)
    } else {
        (place.right_center(), Align2::RIGHT_CENTER)
    };
    ui.painter().text(position, align, text, font, color);
    if response.clicked() {
        memory.is_reversed = is_current && !memory.is_reversed;
        memory.column = column;
    }
}

/// The columns of numbers are at the right; the last one leaves room for the scroll bar.
fn number_rect(row: Rect, columns: &[(Column, f32)], at: usize) -> Rect {
    let after: f32 = columns[at + 1..].iter().map(|(_, width)| width).sum();
    let right = row.right() - 12.0 - after;
    Rect::from_min_max(pos2(right - columns[at].1, row.top()), pos2(right, row.bottom()))
}

/// Most first, names from A to Z; reversed on a second click.
fn sort(memory: &mut ClassTableMemory, statistics: &Arc<Statistics>, run: &Run) {
    let is_current = |sorted: &Sorted| {
        Arc::ptr_eq(&sorted.of, statistics)
            && (sorted.column, sorted.is_reversed) == (memory.column, memory.is_reversed)
    };
    if memory.sorted.as_ref().is_some_and(is_current) {
        return;
    }
    let mut rows = named(statistics, run.labels());
    match memory.column {
        Column::Class => {
            rows.sort_by_key(|(_, name)| name.to_lowercase());
        }
        Column::Images => rows.sort_by_key(|(row, _)| std::cmp::Reverse(row.images)),
        Column::Boxes => rows.sort_by_key(|(row, _)| std::cmp::Reverse(row.boxes)),
        Column::Mean => {
            rows.sort_by(|(left, _), (right, _)| right.mean_score.total_cmp(&left.mean_score));
        }
    }
    if memory.is_reversed {
        rows.reverse();
    }
    memory.sorted =
        Some(Sorted { of: Arc::clone(statistics), column: memory.column, is_reversed: memory.is_reversed, rows });
}

fn named(statistics: &Statistics, labels: &LabelSet) -> Vec<(ClassRow, String)> {
    let rows = statistics.classes.rows.iter();
    rows.map(|row| (*row, labels.name(row.class))).collect()
}

fn row_ui(
    ui: &mut Ui,
    state: &State,
    columns: &[(Column, f32)],
    row: &ClassRow,
    name: &str,
    commands: &mut Queue<Command>,
) {
    let text = state.arranging.text();
    let term = class_term(name);
    let is_searched = has_term(text, &term);
    let size = vec2(ui.available_width(), ROW_HEIGHT);
    let (rect, response) = ui.allocate_exact_size(size, Sense::click());
    response.widget_info(|| {
        let boxes = if columns.iter().any(|(column, _)| *column == Column::Boxes) {
            format!(", {}", box_count(row.boxes))
        } else {
            String::new()
        };
        let (images, mean) = (image_count(row.images), row.mean_score);
        let label = format!("{name}, {images}{boxes}, mean score {mean:.2}");
        egui::WidgetInfo::selected(egui::Role::Button, true, is_searched, label)
    });
    let visuals = ui.visuals();
    let corner = CornerRadius::same(4);
    if is_searched {
        let fill = visuals.selection.bg_fill;
        ui.painter().rect_filled(rect, corner, fill);
    } else if response.hovered() || response.has_focus() {
        let fill = visuals.widgets.hovered.bg_fill;
        ui.painter().rect_filled(rect, corner, fill);
    }
    let swatch = Rect::from_center_size(pos2(rect.left() + 8.0, rect.center().y), vec2(10.0, 10.0));
    ui.painter().rect_filled(swatch, 2.0, theme::class_color(name));
    let font = TextStyle::Body.resolve(ui.style());
    let color = visuals.text_color();
    let left = rect.left() + 20.0;
    let strip = strip_ui(ui, rect, columns, row.class, name);
    let galley = truncated(ui, name, font.clone(), color, strip.rect.left() - left);
    let top = rect.center().y - galley.size().y / 2.0;
    ui.painter().galley(pos2(left, top), galley, color);
    for (at, (column, _)) in columns.iter().enumerate() {
        let text = match column {
            Column::Images => grouped(row.images),
            Column::Boxes => grouped(row.boxes),
            Column::Mean => format!("{:.2}", row.mean_score),
            Column::Class => continue,
        };
        let place = number_rect(rect, columns, at).right_center();
        ui.painter().text(place, Align2::RIGHT_CENTER, text, font.clone(), color);
    }
    if strip.clicked() {
        commands.push(ReviewCommand::OpenFilmstrip(row.class));
    }
    let clicked = response.clicked();
    let tooltip = if is_searched {
        format!("{name}\nClick to show the other images again")
    } else {
        format!("{name}\nClick to search for {term}")
    };
    response.on_hover_text(tooltip);
    if clicked {
        let others = statistics_terms(state);
        let without = others.iter().fold(text.to_owned(), |text, term| without_term(&text, term));
        let text = if is_searched { without } else { with_term(&without, &term) };
        commands.push(ReviewCommand::SetQuery(text));
    }
}

/// A button before the numbers, with three frames of a film on it.
fn strip_ui(ui: &Ui, row: Rect, columns: &[(Column, f32)], class: u32, name: &str) -> egui::Response {
    let right = number_rect(row, columns, 0).left();
    let place = Rect::from_min_max(pos2(right - STRIP_WIDTH, row.top()), pos2(right, row.bottom()));
    let response = ui.interact(place, ui.scope_id().with(("strip", class)), Sense::click());
    response.widget_info(|| {
        let label = format!("Filmstrip of {name}");
        egui::WidgetInfo::labeled(egui::Role::Button, true, label)
    });
    let is_marked = response.hovered() || response.has_focus();
    let color = if is_marked { theme::accent(ui.visuals()) } else { ui.visuals().weak_text_color() };
    let film = Rect::from_center_size(place.center(), vec2(18.0, 11.0));
    let (painter, pen) = (ui.painter(), Stroke::new(1.0, color));
    painter.rect_stroke(film, 2.0, pen, StrokeKind::Inside);
    for share in [1.0 / 3.0, 2.0 / 3.0] {
        painter.vline(film.left() + film.width() * share, film.y_range(), pen);
    }
    response.on_hover_text("Show all boxes of this class over all images")
}

/// The terms that a click on another class has put into the search field: one class at a time.
fn statistics_terms(state: &State) -> Vec<String> {
    let (Some(run), Some(statistics)) = (state.run(), state.arranging.statistics()) else {
        return Vec::new();
    };
    let rows = named(statistics, run.labels());
    rows.iter().map(|(_, name)| class_term(name)).collect()
}
