//! The confusion matrix: one row per ground-truth class, one column per predicted class. Only visible cells are drawn.

use std::sync::Arc;

use eframe::egui::{self, InputState, UiBuilder};
use strum::{IntoStaticStr, VariantArray};

use crate::review::Statistics;
use crate::window::evaluation::ui::Shown;
use crate::window::ui::prelude::*;

/// The side of a cell in points. Smaller cells would be neither visible nor clickable, and too many to draw in a frame.
const SIDES: std::ops::RangeInclusive<f32> = 3.0..=72.0;
/// The largest side of a cell without zooming.
const USUAL_SIDE: f32 = 44.0;
const ZOOM_STEP: f32 = 1.25;
/// Smaller cells have no room for names.
const NAMED_SIDE: f32 = 12.0;
/// Smaller cells have no room for a number.
const NUMBERED_SIDE: f32 = 24.0;
const NAMES: Vec2 = vec2(116.0, 104.0);
/// Without names, the space for the axis titles.
const NO_NAMES: Vec2 = vec2(12.0, 36.0);
/// The scroll bars, and some padding.
const MARGIN: Vec2 = Vec2::splat(12.0);

#[derive(Default)]
pub(crate) struct MatrixMemory {
    normalize: Normalize,
    classes: Classes,
    /// `None` fits the window.
    side: Option<f32>,
    /// The side that was drawn last.
    drawn_side: f32,
    /// The last clicked cell.
    clicked: Option<[Option<u32>; 2]>,
    /// Rearranged only when the numbers or the selected classes change.
    arranged: Option<Arranged>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, IntoStaticStr, VariantArray)]
#[strum(const_into_str)]
enum Classes {
    #[default]
    #[strum(serialize = "Most confused")]
    MostConfused,
    #[strum(serialize = "All confused")]
    Confused,
    #[strum(serialize = "All classes")]
    All,
}

/// More than this are hard to take in at a glance; an exported plot has the same number.
const MOST_CLASSES: usize = 20;

impl Classes {
    fn tooltip(self) -> &'static str {
        match self {
            Self::MostConfused => "The 20 most confused classes",
            Self::Confused => "All confused classes, most confused first",
            Self::All => "All classes in the ground truth and the predictions",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, IntoStaticStr, VariantArray)]
#[strum(const_into_str)]
enum Normalize {
    Counts,
    #[default]
    #[strum(serialize = "% of row")]
    Rows,
    #[strum(serialize = "% of column")]
    Columns,
}

impl Normalize {
    fn tooltip(self) -> &'static str {
        match self {
            Self::Counts => "Number of objects or images",
            Self::Rows => "Fraction of the class's objects; the diagonal is recall",
            Self::Columns => "Fraction of the class's boxes; the diagonal is precision",
        }
    }
}

/// The classes in order, and what fractions refer to.
struct Arranged {
    of: Arc<Statistics>,
    classes: Classes,
    /// Ground-truth classes; `None`, the last one, is the background as a row, and “missed” as a column.
    lines: Vec<Option<u32>>,
    /// The number of rows: an image always has a class, so a classifier has no background.
    rows: usize,
    row_sums: Vec<u64>,
    column_sums: Vec<u64>,
    most: u64,
}

impl Arranged {
    fn new(shown: &Shown<'_>, choice: Classes) -> Self {
        let confusion = &shown.counts.confusion;
        let classes = shown.outcomes.classes.len();
        // The last one is the background, or “missed”.
        let line = |class: Option<u32>| class.map_or(classes, |class| class as usize);
        let mut row_sums = vec![0; classes + 1];
        let mut column_sums = vec![0; classes + 1];
        let mut confused = vec![0_u64; classes];
        let mut most = 1;
        for (&(truth, predicted), &count) in confusion {
            row_sums[line(truth)] += count;
            column_sums[line(predicted)] += count;
            most = most.max(count);
            if let (Some(truth), Some(predicted)) = (truth, predicted)
                && truth != predicted
            {
                confused[truth as usize] += count;
                confused[predicted as usize] += count;
            }
        }
        let mut chosen: Vec<u32> = (0..classes as u32).collect();
        chosen.retain(|&class| row_sums[class as usize] + column_sums[class as usize] > 0);
        let shows_all = match choice {
            Classes::All => true,
            Classes::MostConfused => chosen.len() <= MOST_CLASSES,
            Classes::Confused => false,
        };
        if !shows_all {
            chosen.retain(|&class| confused[class as usize] > 0);
            chosen.sort_by_key(|&class| std::cmp::Reverse(confused[class as usize]));
        }
        if choice == Classes::MostConfused {
            chosen.truncate(MOST_CLASSES);
        }
        let lines: Vec<Option<u32>> = chosen.into_iter().map(Some).chain([None]).collect();
        let rows = if shown.is_detection() { lines.len() } else { lines.len() - 1 };
        Self { of: Arc::clone(shown.statistics), classes: choice, lines, rows, row_sums, column_sums, most }
    }

    fn sum(sums: &[u64], class: Option<u32>) -> u64 {
        let place = class.map_or(sums.len() - 1, |class| class as usize);
        sums.get(place).copied().unwrap_or(0)
    }
}

/// A cell that is not empty.
struct Cell {
    truth: Option<u32>,
    predicted: Option<u32>,
    count: u64,
    of_row: f64,
    of_column: f64,
}

pub(crate) fn matrix_ui(ui: &mut Ui, shown: &Shown<'_>, memory: &mut MatrixMemory, commands: &mut Commands) {
    let is_current =
        |arranged: &Arranged| Arc::ptr_eq(&arranged.of, shown.statistics) && arranged.classes == memory.classes;
    if !memory.arranged.as_ref().is_some_and(is_current) {
        memory.arranged = Some(Arranged::new(shown, memory.classes));
    }
    let lines = memory.arranged.as_ref().map_or(1, |arranged| arranged.lines.len());
    controls_ui(ui, memory);
    let Some(arranged) = &memory.arranged else {
        return;
    };
    if lines < 2 {
        ui.weak(match memory.classes {
            Classes::All => "Nothing to compare",
            Classes::MostConfused | Classes::Confused => "No confusions",
        });
        return;
    }
    let (all, _) = ui.allocate_exact_size(ui.available_size(), Sense::hover());
    let side = memory.side.unwrap_or_else(|| fitting_side(all.size(), lines, arranged.rows));
    memory.drawn_side = side;
    let text = shown.state.arranging.text();
    let outlined = memory.clicked.filter(|[truth, predicted]| shown.cell(*truth, *predicted).to_string() == text);
    let drawn = cells_ui(ui, shown, (arranged, memory.normalize, outlined), all, side);
    names_ui(ui, shown, arranged, all, side, &drawn);
    if let Some(place) = drawn.clicked {
        commands.push(SearchCommand::ShowBoxes(shown.cell(place[0], place[1])));
        memory.clicked = Some(place);
        // The filmstrip takes some of the space, and the cell should stay under the pointer.
        memory.side = Some(side);
    }
    if ui.rect_contains_pointer(all) {
        let zoom = ui.input(InputState::zoom_delta);
        if zoom != 1.0 {
            memory.side = Some((side * zoom).clamp(*SIDES.start(), *SIDES.end()));
        }
    }
}

/// The side with which all cells are visible, with names if they are legible.
fn fitting_side(size: Vec2, columns: usize, rows: usize) -> f32 {
    let side = |names: Vec2| {
        let room = size - names - MARGIN;
        (room.x / columns as f32).min(room.y / rows as f32)
    };
    let named = side(NAMES);
    let fitting = if named >= NAMED_SIDE { named } else { side(NO_NAMES).min(NAMED_SIDE - 0.5) };
    fitting.clamp(*SIDES.start(), USUAL_SIDE)
}

/// The space for names before rows and above columns.
fn names_room(side: f32) -> Vec2 {
    if side < NAMED_SIDE { NO_NAMES } else { NAMES }
}

fn controls_ui(ui: &mut Ui, memory: &mut MatrixMemory) {
    ui.horizontal_wrapped(|ui| {
        for choice in Normalize::VARIANTS {
            let label = ui.selectable_label(memory.normalize == *choice, choice.into_str());
            if label.on_hover_text(choice.tooltip()).clicked() {
                memory.normalize = *choice;
            }
        }
        ui.separator();
        for choice in Classes::VARIANTS {
            let label = ui.selectable_label(memory.classes == *choice, choice.into_str());
            if label.on_hover_text(choice.tooltip()).clicked() {
                memory.classes = *choice;
            }
        }
        ui.separator();
        let side = memory.drawn_side;
        for (label, name, factor) in [("−", "Smaller cells", 1.0 / ZOOM_STEP), ("+", "Larger cells", ZOOM_STEP)] {
            let button = ui.button(label).on_hover_text(format!("{name} (Ctrl+wheel)"));
            if button.clicked() {
                memory.side = Some((side * factor).clamp(*SIDES.start(), *SIDES.end()));
            }
            button.accessible_name(name);
        }
        let fit = ui.add_enabled(memory.side.is_some(), Button::new("Fit"));
        let fit = fit.on_hover_text("Shows all cells. Small cells have no names; hover to read them");
        if fit.clicked() {
            memory.side = None;
        }
    });
}

/// The scroll position of the cells, the hovered one, and the clicked one.
struct Drawn {
    offset: Vec2,
    hovered: Option<[usize; 2]>,
    clicked: Option<[Option<u32>; 2]>,
}

fn cells_ui(
    ui: &mut Ui,
    shown: &Shown<'_>,
    (arranged, normalize, outlined): (&Arranged, Normalize, Option<[Option<u32>; 2]>),
    all: Rect,
    side: f32,
) -> Drawn {
    let lines = &arranged.lines;
    let place = Rect::from_min_max(all.min + names_room(side), all.max);
    let mut inner = ui.new_child(UiBuilder::new().max_rect(place).id_salt("confusion matrix"));
    let mut hovered = None;
    let mut clicked = None;
    let output = ScrollArea::both().auto_shrink(false).show_viewport(&mut inner, |ui, viewport| {
        let whole = side * vec2(lines.len() as f32, arranged.rows as f32);
        ui.set_min_size(whole);
        let origin = ui.max_rect().min;
        let range = |from: f32, to: f32, count: usize| {
            let last = ((to / side).ceil().max(0.0) as usize).min(count);
            ((from / side).floor().max(0.0) as usize).min(last)..last
        };
        let background = Rect::from_min_size(origin, whole);
        ui.painter().rect_filled(background, 0.0, theme::sunken_fill(ui.visuals()));
        for row in range(viewport.top(), viewport.bottom(), arranged.rows) {
            for column in range(viewport.left(), viewport.right(), lines.len()) {
                let (truth, predicted) = (lines[row], lines[column]);
                let Some(&count) = shown.counts.confusion.get(&(truth, predicted)) else {
                    continue;
                };
                let corner = origin + vec2(column as f32 * side, row as f32 * side);
                let rect = Rect::from_min_size(corner, vec2(side, side));
                let cell = Cell {
                    truth,
                    predicted,
                    count,
                    of_row: count as f64 / Arranged::sum(&arranged.row_sums, truth) as f64,
                    of_column: count as f64 / Arranged::sum(&arranged.column_sums, predicted) as f64,
                };
                let is_outlined = outlined == Some([truth, predicted]);
                if cell_ui(ui, shown, &cell, (normalize, arranged.most, is_outlined), rect) {
                    clicked = Some([truth, predicted]);
                }
            }
        }
        let grid = Stroke::new(1.0, theme::line(ui.visuals()));
        let before_last = background.max - Vec2::splat(side);
        ui.painter().vline(before_last.x, background.y_range(), grid);
        if arranged.rows == lines.len() {
            ui.painter().hline(background.x_range(), before_last.y, grid);
        }
        hovered =
            ui.ctx().pointer_hover_pos().filter(|pointer| ui.clip_rect().contains(*pointer)).and_then(|pointer| {
                let at = (pointer - origin) / side;
                let place = [at.y, at.x].map(|at| at.max(0.0) as usize);
                (place[0] < arranged.rows && place[1] < lines.len()).then_some(place)
            });
    });
    Drawn { offset: output.state.clamped_offset(), hovered, clicked }
}

fn cell_ui(
    ui: &Ui,
    shown: &Shown<'_>,
    cell: &Cell,
    (normalize, most, is_outlined): (Normalize, u64, bool),
    rect: Rect,
) -> bool {
    let id = ui.scope_id().with((cell.truth, cell.predicted));
    let response = ui.interact(rect, id, Sense::click());
    let text = text_of(shown, cell);
    response.widget_info(|| WidgetInfo::selected(Role::Button, true, is_outlined, &text));
    let strength = match normalize {
        // Makes small counts visible next to large ones.
        Normalize::Counts => (cell.count as f64 / most as f64).sqrt(),
        Normalize::Rows => cell.of_row,
        Normalize::Columns => cell.of_column,
    };
    let visuals = ui.visuals();
    let is_right = cell.truth == cell.predicted;
    let full = if is_right { theme::accent(visuals) } else { visuals.warn_fg_color };
    let fill = theme::sunken_fill(visuals).lerp_to_gamma(full, 0.12 + 0.88 * strength as f32);
    ui.painter().rect_filled(rect.shrink(0.5), 0.0, fill);
    if side_of(rect) >= NUMBERED_SIDE {
        let number = match normalize {
            Normalize::Counts => short(cell.count),
            Normalize::Rows => percent(cell.of_row),
            Normalize::Columns => percent(cell.of_column),
        };
        let size = if side_of(rect) >= 34.0 { 12.0 } else { 9.5 };
        let font = FontId::proportional(size);
        ui.painter().text(rect.center(), Align2::CENTER_CENTER, number, font, theme::text_on(fill));
    }
    if is_outlined || response.hovered() || response.has_focus() {
        let width = if is_outlined { 3.0 } else { 2.0 };
        let stroke = Stroke::new(width, visuals.strong_text_color());
        ui.painter().rect_stroke(rect, 0.0, stroke, StrokeKind::Inside);
    }
    let shares = format!("{} of the row, {} of the column", percent(cell.of_row), percent(cell.of_column));
    response.on_hover_text(format!("{text}\n{shares}\nClick to show them")).clicked()
}

fn side_of(rect: Rect) -> f32 {
    rect.width()
}

fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

/// At most four characters: `12.3k`.
fn short(count: u64) -> String {
    match count {
        0..10_000 => count.to_string(),
        10_000..1_000_000 => format!("{}k", count / 1000),
        _ => format!("{}M", count / 1_000_000),
    }
}

fn text_of(shown: &Shown<'_>, cell: &Cell) -> String {
    let count = grouped(cell.count as usize);
    match (cell.truth, cell.predicted) {
        (Some(truth), Some(predicted)) if truth == predicted => format!("{} correct: {count}", shown.name(truth)),
        (Some(truth), Some(predicted)) => {
            format!("{} predicted as {}: {count}", shown.name(truth), shown.name(predicted))
        }
        (None, Some(predicted)) => format!("Background predicted as {}: {count}", shown.name(predicted)),
        (Some(truth), None) if shown.is_detection() => format!("{} not detected: {count}", shown.name(truth)),
        (Some(truth), None) => format!("{} predicted as another class: {count}", shown.name(truth)),
        (None, None) => String::new(),
    }
}

/// The names next to and above the visible cells; they stay while the cells scroll.
fn names_ui(ui: &Ui, shown: &Shown<'_>, arranged: &Arranged, all: Rect, side: f32, drawn: &Drawn) {
    let visuals = ui.visuals();
    let small = TextStyle::Small.resolve(ui.style());
    let weak = visuals.weak_text_color();
    let corner = all.min + names_room(side);
    for (text, above) in [("Predicted →", 30.0), ("Ground truth ↓", 15.0)] {
        let at = pos2(all.left(), corner.y - above);
        ui.painter().text(at, Align2::LEFT_TOP, text, small.clone(), weak);
    }
    if side < NAMED_SIDE {
        return;
    }
    let font = FontId::proportional((side - 2.0).min(small.size));
    let color = |line: usize, axis: usize| -> Color32 {
        let is_hovered = drawn.hovered.is_some_and(|hovered| hovered[axis] == line);
        if is_hovered { theme::accent(visuals) } else { visuals.text_color() }
    };
    let missed = if shown.is_detection() { "not detected" } else { "other class" };
    let visible = |offset: f32, room: f32, count: usize| {
        let last = (((offset + room) / side).ceil().max(0.0) as usize).min(count);
        ((offset / side).floor().max(0.0) as usize).min(last)..last
    };
    let visible_part = all.with_max_x(corner.x).with_min_y(corner.y);
    let painter = ui.painter().with_clip_rect(visible_part.intersect(ui.clip_rect()));
    for line in visible(drawn.offset.y, visible_part.height(), arranged.rows) {
        let name = arranged.lines[line].map_or("background", |class| shown.name(class));
        let y = corner.y + (line as f32 + 0.5) * side - drawn.offset.y;
        let galley = truncated(ui, name, font.clone(), color(line, 0), NAMES.x - 10.0);
        let at = pos2(corner.x - 6.0 - galley.size().x, y - galley.size().y / 2.0);
        painter.galley(at, galley, weak);
    }
    let above = all.with_min_x(corner.x).with_max_y(corner.y);
    let painter = ui.painter().with_clip_rect(above.intersect(ui.clip_rect()));
    for line in visible(drawn.offset.x, above.width(), arranged.lines.len()) {
        let name = arranged.lines[line].map_or(missed, |class| shown.name(class));
        let x = corner.x + (line as f32 + 0.5) * side - drawn.offset.x;
        let galley = truncated(ui, name, font.clone(), color(line, 1), NAMES.y - 10.0);
        let at = pos2(x - galley.size().y / 2.0, corner.y - 6.0);
        let turned = egui::epaint::TextShape::new(at, galley, weak).with_angle(-std::f32::consts::FRAC_PI_2);
        painter.add(turned);
    }
}
