//! The kinds of errors: their count with the current filters, and their cost.

use eframe::egui::{Align2, CornerRadius, Rect, Role, Sense, TextStyle, Ui, WidgetInfo, pos2, vec2};

use crate::evaluation::DetectionMetrics;
use crate::review::{OutcomeKind, OutcomeWord};
use crate::window::evaluation::ui::Shown;
use crate::window::state::{Commands, SearchCommand};
use crate::window::ui::theme;
use crate::window::ui::widgets::{grouped, truncated};

const ROW_HEIGHT: f32 = 26.0;
const NAME_WIDTH: f32 = 214.0;
const NUMBER_WIDTH: f32 = 56.0;

/// `None` is a missed object.
const KINDS: [Option<OutcomeKind>; 6] = [
    Some(OutcomeKind::Class),
    Some(OutcomeKind::Location),
    Some(OutcomeKind::Both),
    Some(OutcomeKind::Duplicate),
    Some(OutcomeKind::Background),
    None,
];

pub(crate) fn errors_ui(ui: &mut Ui, shown: &Shown<'_>, metrics: &DetectionMetrics, commands: &mut Commands) {
    let rows = KINDS.map(|kind| {
        let cost = metrics.errors.get(kind.map_or("missed", |kind| kind.into_str()));
        ErrorRow {
            name: kind.map_or_else(|| "FN, undetected".to_owned(), OutcomeKind::text),
            count: kind.map_or(shown.counts.undetected, |kind| shown.counts.kind(kind)),
            cost: cost.map_or(0.0, |cost| cost.ap50_cost),
        }
    });
    let most = rows.iter().map(|row| row.count).max().unwrap_or(0).max(1) as f32;
    let dearest = rows.iter().map(|row| row.cost).fold(1e-9, f64::max);
    heading_ui(ui);
    for (kind, row) in KINDS.into_iter().zip(&rows) {
        let shares = [row.count as f32 / most, (row.cost / dearest) as f32];
        if row_ui(ui, row, shares, meaning(kind)) {
            let outcome = kind.map_or(OutcomeWord::Missed, OutcomeWord::Error);
            commands.push(SearchCommand::ShowBoxes(outcome.into()));
        }
    }
}

struct ErrorRow {
    name: String,
    count: u64,
    cost: f64,
}

fn meaning(kind: Option<OutcomeKind>) -> &'static str {
    match kind {
        Some(OutcomeKind::Class) => "Correct location, wrong class",
        Some(OutcomeKind::Location) => "Correct class, but the IoU with the object is below 0.50",
        Some(OutcomeKind::Both) => "Wrong class, and the IoU is too low",
        Some(OutcomeKind::Duplicate) => "A box with a higher score already matches the object",
        Some(OutcomeKind::Background) => "No object here",
        _ => "No box of any class covers the object",
    }
}

/// The columns: name, count and its bar, cost and its bar.
fn columns(row: Rect) -> [Rect; 3] {
    let name = NAME_WIDTH.min(row.width() * 0.35);
    let half = (row.width() - name) / 2.0;
    let column = |left: f32, width: f32| Rect::from_min_size(pos2(left, row.top()), vec2(width, row.height()));
    [column(row.left(), name), column(row.left() + name, half), column(row.left() + name + half, half)]
}

fn heading_ui(ui: &mut Ui) {
    let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), 18.0), Sense::hover());
    let font = TextStyle::Small.resolve(ui.style());
    let color = ui.visuals().weak_text_color();
    let [_, counts, costs] = columns(rect);
    for (column, text) in [(counts, "With the current filters"), (costs, "AP50 cost, all scores")] {
        let galley = truncated(ui, text, font.clone(), color, column.width() - 8.0);
        ui.painter().galley(column.left_top(), galley, color);
    }
}

fn row_ui(ui: &mut Ui, row: &ErrorRow, [count_share, cost_share]: [f32; 2], meaning: &str) -> bool {
    let sense = if row.count > 0 { Sense::click() } else { Sense::hover() };
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), ROW_HEIGHT), sense);
    let (count, cost) = (grouped(row.count as usize), format!("{:.3}", row.cost));
    response.widget_info(|| {
        let label = format!("Errors, {}: {count}, AP50 cost {cost}", row.name);
        WidgetInfo::labeled(Role::Button, row.count > 0, label)
    });
    if ui.is_rect_visible(rect) {
        let visuals = ui.visuals();
        if row.count > 0 && (response.hovered() || response.has_focus()) {
            ui.painter().rect_filled(rect, CornerRadius::same(4), visuals.widgets.hovered.bg_fill);
        }
        let [name, counts, costs] = columns(rect);
        let font = TextStyle::Body.resolve(ui.style());
        let color = visuals.text_color();
        let galley = truncated(ui, &row.name, font.clone(), color, name.width() - 10.0);
        ui.painter().galley(pos2(name.left() + 4.0, name.center().y - galley.size().y / 2.0), galley, color);
        bar_ui(ui, counts, count_share, &count);
        bar_ui(ui, costs, cost_share, &cost);
    }
    let hint = if row.count > 0 { "; click to show them" } else { "" };
    response.on_hover_text(format!("{meaning}{hint}")).clicked()
}

/// A bar, and the number that it shows.
fn bar_ui(ui: &Ui, place: Rect, share: f32, number: &str) {
    let visuals = ui.visuals();
    let rail = Rect::from_min_max(
        pos2(place.left(), place.center().y - 6.0),
        pos2(place.right() - NUMBER_WIDTH - 6.0, place.center().y + 6.0),
    );
    ui.painter().rect_filled(rail, 3.0, theme::sunken_fill(visuals));
    let filled = rail.with_max_x(rail.left() + rail.width() * share);
    ui.painter().rect_filled(filled, 3.0, theme::accent(visuals));
    let font = TextStyle::Body.resolve(ui.style());
    let at = pos2(place.right() - 8.0, place.center().y);
    ui.painter().text(at, Align2::RIGHT_CENTER, number, font, visuals.text_color());
}
