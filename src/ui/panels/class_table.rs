//! The classes of a whole run: how many, and how sure. A click searches for one, or shows all its boxes in a strip.

use std::sync::Arc;

use eframe::egui::{
    self, Align2, CornerRadius, Rect, RichText, ScrollArea, Sense, Stroke, StrokeKind, TextStyle,
    Ui, pos2, vec2,
};

use super::super::theme;
use super::super::widgets::{box_count, grouped, image_count, truncated};
use crate::domain::{LabelSet, ModelTask};
use crate::review::{ClassRow, Statistics, class_term, has_term, with_term, without_term};
use crate::state::{Command, Run, State};

const ROW_HEIGHT: f32 = 22.0;
const ROWS_SHOWN: usize = 10;
const NUMBER_WIDTH: f32 = 54.0;
const STRIP_WIDTH: f32 = 26.0;
/// Below this width three columns of numbers would leave next to nothing of the names.
const NARROW: f32 = 280.0;

/// What the table remembers between two frames.
#[derive(Default)]
pub(super) struct ClassTableMemory {
    column: Column,
    is_reversed: bool,
    /// Sorted anew only when the statistics or the sort change.
    sorted: Option<Sorted>,
}

struct Sorted {
    of: Arc<Statistics>,
    column: Column,
    is_reversed: bool,
    rows: Vec<(ClassRow, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Column {
    Class,
    #[default]
    Images,
    Boxes,
    Mean,
}

impl Column {
    fn label(self) -> &'static str {
        match self {
            Self::Class => "Class",
            Self::Images => "Images",
            Self::Boxes => "Boxes",
            Self::Mean => "Mean",
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

pub(super) fn class_table_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut ClassTableMemory,
    commands: &mut Vec<Command>,
) {
    let (Some(run), Some(statistics)) = (state.run(), state.arranging.statistics()) else {
        return;
    };
    if statistics.images == 0 || statistics.task != run.task() {
        return;
    }
    ui.add_space(4.0);
    let title = format!("Classes in {}", image_count(statistics.images));
    ui.label(RichText::new(title).weak());
    if statistics.classes.rows.is_empty() {
        ui.weak("None above the threshold");
        return;
    }
    let columns: &[Column] = match statistics.task {
        ModelTask::Classification => &[Column::Images, Column::Mean],
        // The names come first.
        ModelTask::Detection if ui.available_width() < NARROW => &[Column::Boxes, Column::Mean],
        ModelTask::Detection => &[Column::Images, Column::Boxes, Column::Mean],
    };
    header_ui(ui, memory, columns);
    sort(memory, statistics, run);
    let Some(sorted) = &memory.sorted else {
        return;
    };
    ui.spacing_mut().item_spacing.y = 1.0;
    ScrollArea::vertical()
        .id_salt("classes")
        .max_height(ROW_HEIGHT * ROWS_SHOWN as f32)
        // The panel around it scrolls, too, and would leave it next to nothing.
        .min_scrolled_height(ROW_HEIGHT * ROWS_SHOWN as f32)
        .auto_shrink([false, true])
        .show_rows(ui, ROW_HEIGHT, sorted.rows.len(), |ui, visible| {
            for (row, name) in &sorted.rows[visible] {
                row_ui(ui, state, columns, row, name, commands);
            }
        });
}

fn header_ui(ui: &mut Ui, memory: &mut ClassTableMemory, columns: &[Column]) {
    let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), ROW_HEIGHT), Sense::hover());
    let numbers = NUMBER_WIDTH * columns.len() as f32;
    let class = rect.with_max_x(rect.right() - numbers);
    let of_numbers = columns
        .iter()
        .enumerate()
        .map(|(at, column)| (*column, number_rect(rect, columns.len(), at)));
    for (column, place) in std::iter::once((Column::Class, class)).chain(of_numbers) {
        let is_current = memory.column == column;
        let response = ui
            .interact(place, ui.scope_id().with(column.label()), Sense::click())
            .on_hover_text(column.tooltip());
        response.widget_info(|| {
            let label = format!("Sort classes by {}", column.label().to_lowercase());
            egui::WidgetInfo::selected(egui::Role::Button, true, is_current, label)
        });
        let mark = match (is_current, memory.is_reversed) {
            (false, _) => "",
            (true, false) => " ↓",
            (true, true) => " ↑",
        };
        let text = format!("{}{mark}", column.label());
        let color = if is_current || response.hovered() {
            ui.visuals().text_color()
        } else {
            ui.visuals().weak_text_color()
        };
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
}

/// The columns of numbers stand at the right, the last one with room for the scroll bar.
fn number_rect(row: Rect, columns: usize, at: usize) -> Rect {
    let right = row.right() - 12.0 - NUMBER_WIDTH * (columns - 1 - at) as f32;
    Rect::from_min_max(
        pos2(right - NUMBER_WIDTH, row.top()),
        pos2(right, row.bottom()),
    )
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
    memory.sorted = Some(Sorted {
        of: Arc::clone(statistics),
        column: memory.column,
        is_reversed: memory.is_reversed,
        rows,
    });
}

fn named(statistics: &Statistics, labels: &LabelSet) -> Vec<(ClassRow, String)> {
    let rows = statistics.classes.rows.iter();
    rows.map(|row| (*row, labels.name(row.class))).collect()
}

fn row_ui(
    ui: &mut Ui,
    state: &State,
    columns: &[Column],
    row: &ClassRow,
    name: &str,
    commands: &mut Vec<Command>,
) {
    let text = state.arranging.text();
    let term = class_term(name);
    let is_searched = has_term(text, &term);
    let size = vec2(ui.available_width(), ROW_HEIGHT);
    let (rect, response) = ui.allocate_exact_size(size, Sense::click());
    response.widget_info(|| {
        let boxes = if columns.contains(&Column::Boxes) {
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
    ui.painter()
        .rect_filled(swatch, 2.0, theme::class_color(row.class));
    let font = TextStyle::Body.resolve(ui.style());
    let color = visuals.text_color();
    let left = rect.left() + 20.0;
    let strip = strip_ui(ui, rect, columns.len(), row.class, name);
    let galley = truncated(ui, name, font.clone(), color, strip.rect.left() - left);
    let top = rect.center().y - galley.size().y / 2.0;
    ui.painter().galley(pos2(left, top), galley, color);
    for (at, column) in columns.iter().enumerate() {
        let text = match column {
            Column::Images => grouped(row.images),
            Column::Boxes => grouped(row.boxes),
            Column::Mean => format!("{:.2}", row.mean_score),
            Column::Class => continue,
        };
        let place = number_rect(rect, columns.len(), at).right_center();
        ui.painter()
            .text(place, Align2::RIGHT_CENTER, text, font.clone(), color);
    }
    if strip.clicked() {
        commands.push(Command::OpenFilmstrip(row.class));
    }
    let clicked = response.clicked();
    let tooltip = if is_searched {
        "Click to show the other images again".to_owned()
    } else {
        format!("Click to search for {term}")
    };
    response.on_hover_text(tooltip);
    if clicked {
        let others = statistics_terms(state);
        let without = others
            .iter()
            .fold(text.to_owned(), |text, term| without_term(&text, term));
        let text = if is_searched {
            without
        } else {
            with_term(&without, &term)
        };
        commands.push(Command::SetQuery(text));
    }
}

/// A button before the numbers, with three frames of a film on it.
fn strip_ui(ui: &Ui, row: Rect, columns: usize, class: u32, name: &str) -> egui::Response {
    let right = number_rect(row, columns, 0).left();
    let place = Rect::from_min_max(
        pos2(right - STRIP_WIDTH, row.top()),
        pos2(right, row.bottom()),
    );
    let response = ui.interact(place, ui.scope_id().with(("strip", class)), Sense::click());
    response.widget_info(|| {
        let label = format!("Filmstrip of {name}");
        egui::WidgetInfo::labeled(egui::Role::Button, true, label)
    });
    let is_marked = response.hovered() || response.has_focus();
    let color = if is_marked {
        theme::accent(ui.visuals())
    } else {
        ui.visuals().weak_text_color()
    };
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
