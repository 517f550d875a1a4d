//! The classes of a whole run: counts and scores. A click searches for a class, or shows all its boxes in the
//! filmstrip.

use std::sync::Arc;

use eframe::egui::containers::scroll_area::ScrollSource;

use crate::domain::{ModelTask, RunId, counted as count_text};
use crate::review::{ClassRow, Statistics, class_term, has_term, with_term, without_term};
use crate::window::state::Run;
use crate::window::ui::prelude::*;

const ROW_GAP: f32 = 1.0;
/// As many rows as fit, but never more than these.
const MAX_ROWS: usize = 20;
/// Even without that many classes.
const MIN_ROWS: usize = 3;
const STRIP_WIDTH: f32 = 24.0;
const NEW_WIDTH: f32 = 30.0;
/// Below this width, three number columns would leave too little for the names.
const NARROW: f32 = 280.0;

#[derive(Default)]
pub(crate) struct ClassesMemory {
    table: ClassTableMemory<ClassRow>,
    wheel: Wheel,
    most_rows: MostRows,
}

/// The largest number of rows that a run had: the table does not shrink when filters hide classes, so that what is below
/// stays in place.
#[derive(Default)]
struct MostRows {
    run: Option<RunId>,
    rows: usize,
}

impl MostRows {
    fn with(&mut self, run: Option<RunId>, rows: usize) -> usize {
        if std::mem::replace(&mut self.run, run) != run {
            self.rows = 0;
        }
        self.rows = self.rows.max(rows);
        self.rows
    }
}

/// Whether the wheel scrolls the table or the panel. A table that moves under a resting pointer while the panel scrolls
/// does not take the wheel from it; one that the pointer is moved onto does.
#[derive(Default)]
struct Wheel {
    /// The top of the table in the last frame.
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

/// Images, boxes and the mean score, each wide enough for its title with the sort mark, and for its numbers.
fn columns(statistics: &Statistics, is_narrow: bool) -> [TableColumn<ClassRow>; 3] {
    const MANY: usize = 100_000;
    let is_detection = statistics.task == ModelTask::Detection;
    let images = match statistics.images {
        // The names take precedence.
        _ if is_detection && is_narrow => 0.0,
        MANY.. => 64.0,
        _ => 52.0,
    };
    let boxes = match statistics.classes.rows.iter().map(|row| row.boxes).max() {
        _ if !is_detection => 0.0,
        Some(MANY..) => 64.0,
        _ => 50.0,
    };
    [
        TableColumn::new("Images", images, |row| Some(row.images as f64), count_cell, "Images with the class"),
        TableColumn::new("Boxes", boxes, |row| Some(row.boxes as f64), count_cell, "Visible boxes of the class"),
        TableColumn::new(
            "Mean",
            44.0,
            |row| Some(row.mean_score.into()),
            |mean| mean.map_or_else(String::new, |mean| format!("{mean:.2}")),
            "Mean score of the visible predictions",
        ),
    ]
}

/// “Classes in 8 images”
pub(crate) fn classes_title(state: &State) -> String {
    counted(state).map_or_else(
        || "Classes".to_owned(),
        |(_, statistics)| format!("Classes in {}", image_count(statistics.images)),
    )
}

/// The run on screen and the statistics of its predictions, if there are any.
fn counted(state: &State) -> Option<(&Run, &Arc<Statistics>)> {
    let (run, statistics) = (state.run()?, state.arranging.statistics()?);
    (statistics.images > 0 && Some(statistics.task) == run.task()).then_some((run, statistics))
}

/// As high as its rows, within `room`. The new classes follow those of the model.
pub(crate) fn class_table_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut ClassesMemory,
    room: f32,
    commands: &mut Commands,
) {
    let found = counted(state);
    let new: Vec<(&str, usize)> = state.new_classes().collect();
    let rows = found.map_or(0, |(_, statistics)| statistics.classes.rows.len()) + new.len();
    let height = rows_height(room, memory.most_rows.with(state.run_id(), rows));
    ui.spacing_mut().item_spacing.y = ROW_GAP;
    let Some((run, statistics)) = found.filter(|_| rows > 0) else {
        let text = if found.is_some() { "None above the threshold" } else { "No predictions yet" };
        let size = vec2(ui.available_width(), TABLE_ROW_HEIGHT + ROW_GAP + height);
        ui.allocate_ui(size, |ui| {
            ui.set_min_size(size);
            ui.weak(text);
        });
        return;
    };
    let columns = columns(statistics, ui.available_width() < NARROW);
    let sort_label = |title: &str| format!("Sort classes by {}", title.to_lowercase());
    let table = ClassTable { columns: &columns, sorted_by: "Images", sort_label };
    table.header_ui(ui, &mut memory.table);
    let rows = table.sorted(&mut memory.table, statistics, || named(statistics, run).collect());
    let scroll = ScrollSource { mouse_wheel: memory.wheel.is_tables(ui), ..ScrollSource::default() };
    ScrollArea::vertical()
        .id_salt("classes")
        .scroll_source(scroll)
        .max_height(height)
        // The panel around it also scrolls, and would leave it next to nothing.
        .min_scrolled_height(height)
        .auto_shrink(false)
        .show_rows(ui, TABLE_ROW_HEIGHT, rows.len() + new.len(), |ui, visible| {
            for index in visible {
                match rows.get(index) {
                    Some((name, row)) => row_ui(ui, state, &table, (name, row), commands),
                    None => new_row_ui(ui, &table, new[index - rows.len()]),
                }
            }
        });
}

/// The height of the visible rows of `all`.
fn rows_height(room: f32, all: usize) -> f32 {
    let row = TABLE_ROW_HEIGHT + ROW_GAP;
    // The header is also a row.
    let fitting = ((room / row).max(0.0) as usize).saturating_sub(1);
    let rows = all.min(fitting).clamp(MIN_ROWS, MAX_ROWS);
    row * rows as f32 - ROW_GAP
}

fn named<'s>(statistics: &'s Statistics, run: &'s Run) -> impl Iterator<Item = (String, ClassRow)> + 's {
    statistics.classes.rows.iter().map(|row| (run.labels().name(row.class), *row))
}

fn row_ui(
    ui: &mut Ui,
    state: &State,
    table: &ClassTable<'_, ClassRow>,
    (name, row): (&str, &ClassRow),
    commands: &mut Commands,
) {
    let text = state.arranging.text();
    let term = class_term(name);
    let is_searched = has_term(text, &term);
    let is_detection = state.arranging.statistics().is_some_and(|found| found.task == ModelTask::Detection);
    let boxes = if is_detection { format!(", {}", box_count(row.boxes)) } else { String::new() };
    let label = format!("{name}, {}{boxes}, mean score {:.2}", image_count(row.images), row.mean_score);
    let color = Some(theme::class_color(name));
    let (rect, response) = table.row_ui(ui, (name, color), STRIP_WIDTH, (&label, is_searched));
    table.numbers_ui(ui, rect, row);
    let strip = rect.with_max_x(table.numbers_left(rect));
    let strip = strip.with_min_x(strip.right() - STRIP_WIDTH);
    strip_ui(ui, strip, row.class, name).on_click(commands, || ReviewCommand::OpenFilmstrip(row.class));
    let tooltip = if is_searched {
        format!("{name}\nClick to show the other images again")
    } else {
        format!("{name}\nClick to search for {term}")
    };
    if response.on_hover_text(tooltip).clicked() {
        // One class at a time.
        let others = counted(state).into_iter().flat_map(|(run, statistics)| named(statistics, run));
        let without = others.fold(text.to_owned(), |text, (other, _)| without_term(&text, &class_term(&other)));
        let text = if is_searched { without } else { with_term(&without, &term) };
        commands.push(SearchCommand::SetQuery(text));
    }
}

/// A class that a person gave: the model has no score for it.
fn new_row_ui(ui: &mut Ui, table: &ClassTable<'_, ClassRow>, (name, count): (&str, usize)) {
    let verdicts = count_text(count as u64, "verdict", "verdicts");
    let label = format!("{name}, new class, {verdicts}");
    let color = Some(theme::class_color(name));
    let (rect, response) = table.row_ui(ui, (name, color), NEW_WIDTH, (&label, false));
    let (font, weak) = (TextStyle::Small.resolve(ui.style()), ui.visuals().weak_text_color());
    ui.painter().text(pos2(table.numbers_left(rect), rect.center().y), Align2::RIGHT_CENTER, "new", font, weak);
    for (column, cell) in table.cells(rect).filter(|(column, _)| column.title == "Boxes") {
        table_number_ui(ui, cell, &(column.text)(Some(count as f64)), ui.visuals().text_color());
    }
    response.on_hover_text(format!("{name}\nNot a class of the model; given by {verdicts}"));
}

/// A button before the numbers, with three film frames on it.
fn strip_ui(ui: &Ui, rect: Rect, class: u32, name: &str) -> Response {
    let response = ui.interact(rect, ui.scope_id().with(("strip", class)), Sense::click());
    let label = format!("Filmstrip of {name}");
    response.widget_info(|| WidgetInfo::labeled(Role::Button, true, &label));
    let is_marked = response.hovered() || response.has_focus();
    let color = if is_marked { theme::accent(ui.visuals()) } else { ui.visuals().weak_text_color() };
    let film = Rect::from_center_size(rect.center(), vec2(18.0, 11.0));
    let (painter, pen) = (ui.painter(), Stroke::new(1.0, color));
    painter.rect_stroke(film, 2.0, pen, StrokeKind::Inside);
    for share in [1.0 / 3.0, 2.0 / 3.0] {
        painter.vline(film.left() + film.width() * share, film.y_range(), pen);
    }
    response.on_hover_text("Show all boxes of this class across all images")
}
