//! A table of classes and their numbers. Clicking a column title sorts by it; clicking again reverses the order.

use std::sync::Arc;

use eframe::egui::{
    Align2, Color32, CornerRadius, Rect, Response, Role, Sense, Stroke, StrokeKind, TextStyle, Ui, WidgetInfo, pos2,
    vec2,
};

use super::truncated;
use crate::domain::grouped;
use crate::review::{OutcomeWord, Statistics};

pub(crate) const TABLE_ROW_HEIGHT: f32 = 22.0;
/// Space after the last column, for the scroll bar.
const MARGIN: f32 = 12.0;
const NAME: &str = "Class";

/// A column with a number for each `T`.
pub(crate) struct TableColumn<T> {
    pub(crate) title: &'static str,
    pub(crate) tooltip: &'static str,
    /// A column without a width is hidden.
    pub(crate) width: f32,
    pub(crate) number: fn(&T) -> Option<f64>,
    pub(crate) text: fn(Option<f64>) -> String,
    /// The outcome that it counts: clicking a number searches for it.
    pub(crate) outcome: Option<OutcomeWord>,
}

pub(crate) struct ClassTable<'t, T> {
    pub(crate) columns: &'t [TableColumn<T>],
    /// The title of the initial sort column.
    pub(crate) sorted_by: &'static str,
    /// The accessible name of a column title.
    pub(crate) sort_label: fn(&str) -> String,
}

/// A table's state between frames. `B` is what its numbers are computed from.
pub(crate) struct ClassTableMemory<T, B: ?Sized = Statistics> {
    sorted_by: Option<&'static str>,
    is_reversed: bool,
    /// Sorted again only when the basis or the sort change.
    sorted: Option<Sorted<T, B>>,
}

struct Sorted<T, B: ?Sized> {
    basis: Arc<B>,
    by: (&'static str, bool),
    rows: Vec<(String, T)>,
}

impl<T, B: ?Sized> Default for ClassTableMemory<T, B> {
    fn default() -> Self {
        Self { sorted_by: None, is_reversed: false, sorted: None }
    }
}

impl<T> TableColumn<T> {
    pub(crate) const fn new(
        title: &'static str,
        width: f32,
        number: fn(&T) -> Option<f64>,
        text: fn(Option<f64>) -> String,
        tooltip: &'static str,
    ) -> Self {
        Self { title, tooltip, width, number, text, outcome: None }
    }

    pub(crate) fn text_of(&self, row: &T) -> String {
        (self.text)((self.number)(row))
    }
}

impl<T> ClassTable<'_, T> {
    /// The names and numbers in order: highest first, names from A to Z. Classes without the number come last.
    pub(crate) fn sorted<'m, B: ?Sized>(
        &self,
        memory: &'m mut ClassTableMemory<T, B>,
        basis: &Arc<B>,
        rows: impl FnOnce() -> Vec<(String, T)>,
    ) -> &'m [(String, T)] {
        let by = (memory.sorted_by.unwrap_or(self.sorted_by), memory.is_reversed);
        let is_current = |sorted: &Sorted<T, B>| Arc::ptr_eq(&sorted.basis, basis) && sorted.by == by;
        let sorted = memory.sorted.take().filter(is_current);
        let sorted = sorted.unwrap_or_else(|| Sorted { basis: Arc::clone(basis), by, rows: self.sort(rows(), by) });
        &memory.sorted.insert(sorted).rows
    }

    fn sort(&self, mut rows: Vec<(String, T)>, (by, is_reversed): (&str, bool)) -> Vec<(String, T)> {
        rows.sort_by_cached_key(|(name, _)| name.to_lowercase());
        if let Some(column) = self.columns.iter().find(|column| column.title == by) {
            rows.sort_by(|(_, one), (_, other)| match ((column.number)(one), (column.number)(other)) {
                (Some(left), Some(right)) if is_reversed => left.total_cmp(&right),
                (Some(left), Some(right)) => right.total_cmp(&left),
                (left, right) => right.is_some().cmp(&left.is_some()),
            });
        } else if is_reversed {
            rows.reverse();
        }
        rows
    }

    /// The visible columns, at the right of a row.
    pub(crate) fn cells(&self, row: Rect) -> impl Iterator<Item = (&TableColumn<T>, Rect)> {
        let mut left = self.numbers_left(row);
        self.columns.iter().filter(|column| column.width > 0.0).map(move |column| {
            let cell = Rect::from_min_size(pos2(left, row.top()), vec2(column.width, row.height()));
            left = cell.right();
            (column, cell)
        })
    }

    /// Where the name ends.
    /// The numbers of a row, for the screen reader.
    pub(crate) fn numbers_text(&self, row: &T) -> String {
        let numbers = self.columns.iter().map(|column| format!("{} {}", column.title, column.text_of(row)));
        numbers.collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn numbers_ui(&self, ui: &Ui, rect: Rect, row: &T) {
        for (column, cell) in self.cells(rect) {
            table_number_ui(ui, cell, &column.text_of(row), ui.visuals().text_color());
        }
    }

    pub(crate) fn numbers_left(&self, row: Rect) -> f32 {
        row.right() - self.numbers_width()
    }

    pub(crate) fn numbers_width(&self) -> f32 {
        MARGIN + self.columns.iter().map(|column| column.width).sum::<f32>()
    }

    pub(crate) fn header_ui<B: ?Sized>(&self, ui: &mut Ui, memory: &mut ClassTableMemory<T, B>) {
        let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), TABLE_ROW_HEIGHT), Sense::hover());
        let name = rect.with_max_x(self.numbers_left(rect));
        self.title_ui(ui, memory, (NAME, "By name"), name, Align2::LEFT_CENTER);
        for (column, cell) in self.cells(rect) {
            self.title_ui(ui, memory, (column.title, column.tooltip), cell, Align2::RIGHT_CENTER);
        }
    }

    fn title_ui<B: ?Sized>(
        &self,
        ui: &Ui,
        memory: &mut ClassTableMemory<T, B>,
        (title, tooltip): (&'static str, &str),
        rect: Rect,
        align: Align2,
    ) {
        let is_current = memory.sorted_by.unwrap_or(self.sorted_by) == title;
        let response = ui.interact(rect, ui.scope_id().with(title), Sense::click()).on_hover_text(tooltip);
        response.widget_info(|| WidgetInfo::selected(Role::Button, true, is_current, (self.sort_label)(title)));
        let mark = match (is_current, memory.is_reversed) {
            (false, _) => "",
            (true, false) => " ↓",
            (true, true) => " ↑",
        };
        let visuals = ui.visuals();
        let is_marked = is_current || response.hovered() || response.has_focus();
        let color = if is_marked { visuals.text_color() } else { visuals.weak_text_color() };
        let font = TextStyle::Small.resolve(ui.style());
        ui.painter().text(align.pos_in_rect(&rect), align, format!("{title}{mark}"), font, color);
        if response.clicked() {
            memory.is_reversed = is_current && !memory.is_reversed;
            memory.sorted_by = Some(title);
        }
    }

    /// A row with the name of its class, which leaves `room` before the numbers. The caller draws these.
    pub(crate) fn row_ui(
        &self,
        ui: &mut Ui,
        (name, color): (&str, Option<Color32>),
        room: f32,
        (label, is_selected): (&str, bool),
    ) -> (Rect, Response) {
        let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), TABLE_ROW_HEIGHT), Sense::click());
        response.widget_info(|| WidgetInfo::selected(Role::Button, true, is_selected, label));
        let (visuals, painter) = (ui.visuals(), ui.painter());
        if is_selected {
            painter.rect_filled(rect, CornerRadius::same(4), visuals.selection.bg_fill);
        } else if response.hovered() || response.has_focus() {
            painter.rect_filled(rect, CornerRadius::same(4), visuals.widgets.hovered.bg_fill);
        }
        let text = visuals.text_color();
        let swatch = Rect::from_center_size(rect.left_center() + vec2(8.0, 0.0), vec2(10.0, 10.0));
        if let Some(color) = color {
            painter.rect_filled(swatch, 2.0, color);
        } else {
            painter.rect_stroke(swatch, 2.0, Stroke::new(1.0, text), StrokeKind::Inside);
        }
        let left = rect.left() + 20.0;
        let font = TextStyle::Body.resolve(ui.style());
        let galley = truncated(ui, name, font, text, self.numbers_left(rect) - room - left);
        painter.galley(pos2(left, rect.center().y - galley.size().y / 2.0), galley, text);
        (rect, response)
    }
}

/// Draws a number at the right of its cell, and returns its width.
pub(crate) fn table_number_ui(ui: &Ui, cell: Rect, text: &str, color: Color32) -> Rect {
    let font = TextStyle::Body.resolve(ui.style());
    ui.painter().text(cell.right_center(), Align2::RIGHT_CENTER, text, font, color)
}

/// The text of a column of counts.
pub(crate) fn count_cell(count: Option<f64>) -> String {
    count.map_or_else(String::new, |count| grouped(count as usize))
}
