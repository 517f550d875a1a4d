//! The thumbnails: only the cells on screen are looked at, however many there are.

use eframe::egui::{
    self, Color32, CornerRadius, Key, Modifiers, Pos2, Rect, Sense, Stroke, StrokeKind, TextStyle,
    Ui, Vec2, pos2, vec2,
};

use super::textures::Textures;
use super::theme;
use super::widgets::truncated;
use crate::domain::SampleId;
use crate::review::AnswerStatus;
use crate::state::{Command, Overlay, State, Step};

const GAP: f32 = 6.0;
const PADDING: f32 = 6.0;
const NAME_HEIGHT: f32 = 17.0;
const HEADLINE_HEIGHT: f32 = 16.0;

/// What the grid remembers between two frames.
#[derive(Default)]
pub(super) struct GridMemory {
    /// To scroll to another one only when it changes, so that the user can scroll away from it.
    last_shown: Option<SampleId>,
}

/// Where the cells lie.
#[derive(Debug, Clone, Copy)]
struct Layout {
    columns: usize,
    cell: Vec2,
    count: usize,
}

impl Layout {
    fn new(width: f32, thumbnail_side: f32, count: usize) -> Self {
        let wanted = thumbnail_side + 2.0 * PADDING;
        let columns = (((width + GAP) / (wanted + GAP)).floor() as usize).max(1);
        let cell_width = (width - GAP * (columns - 1) as f32) / columns as f32;
        let picture_height = (cell_width - 2.0 * PADDING) * 0.75;
        let cell_height = picture_height + 2.0 * PADDING + NAME_HEIGHT + HEADLINE_HEIGHT;
        Self {
            columns,
            cell: vec2(cell_width.max(1.0), cell_height),
            count,
        }
    }

    fn rows(&self) -> usize {
        self.count.div_ceil(self.columns)
    }

    fn height(&self) -> f32 {
        self.rows() as f32 * (self.cell.y + GAP)
    }

    fn rect(&self, origin: Pos2, index: usize) -> Rect {
        let (row, column) = (index / self.columns, index % self.columns);
        let offset = vec2(
            column as f32 * (self.cell.x + GAP),
            row as f32 * (self.cell.y + GAP),
        );
        Rect::from_min_size(origin + offset, self.cell)
    }

    /// The indices of the cells that touch a part of the content, given as its top and bottom.
    fn visible(&self, top: f32, bottom: f32) -> std::ops::Range<usize> {
        let row_height = self.cell.y + GAP;
        let first = (top.max(0.0) / row_height).floor() as usize;
        let last = (bottom.max(0.0) / row_height).ceil() as usize;
        (first * self.columns).min(self.count)..(last * self.columns).min(self.count)
    }
}

pub(super) fn grid_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut GridMemory,
    textures: &mut Textures,
    commands: &mut Vec<Command>,
) {
    if let Some(source) = &state.source {
        textures.thumbnails.open(source.id);
    }
    textures.thumbnails.begin_frame();
    let page_height = ui.available_height();
    let scroll_bar = ui.spacing().scroll.bar_width + ui.spacing().scroll.bar_inner_margin;
    let width = ui.available_width() - scroll_bar;
    let layout = Layout::new(width, state.settings.thumbnail_side, state.order().len());
    take_keys(ui, state, layout, page_height, commands);
    egui::ScrollArea::vertical()
        .id_salt("grid")
        .auto_shrink([false, false])
        .show_viewport(ui, |ui, viewport| {
            ui.set_width(width);
            ui.set_height(layout.height());
            let origin = ui.max_rect().min;
            scroll_to_shown(ui, state, memory, layout, origin);
            cells_ui(ui, state, textures, layout, viewport, commands);
        });
}

fn scroll_to_shown(ui: &Ui, state: &State, memory: &mut GridMemory, layout: Layout, origin: Pos2) {
    let shown = state.shown_sample();
    if memory.last_shown != shown {
        memory.last_shown = shown;
        if let Some(place) = shown.and_then(|shown| state.order().place_of(shown)) {
            ui.scroll_to_rect(layout.rect(origin, place).expand(GAP), None);
        }
    }
}

fn cells_ui(
    ui: &mut Ui,
    state: &State,
    textures: &mut Textures,
    layout: Layout,
    viewport: Rect,
    commands: &mut Vec<Command>,
) {
    let origin = ui.max_rect().min;
    let order = state.order();
    let mut missing = Vec::new();
    for index in layout.visible(viewport.top(), viewport.bottom()) {
        let Some(sample) = order.at(index) else {
            continue;
        };
        let rect = layout.rect(origin, index);
        let has_pixels = cell_ui(ui, state, textures, sample, rect, commands);
        if !has_pixels && state.samples.unreadable(sample).is_none() {
            missing.push(sample);
        }
    }
    if let Some(wanted) = textures.thumbnails.changed_wish(missing) {
        commands.push(Command::WantThumbnails(wanted));
    }
}

/// True where the thumbnail's pixels are there.
fn cell_ui(
    ui: &Ui,
    state: &State,
    textures: &mut Textures,
    sample: SampleId,
    rect: Rect,
    commands: &mut Vec<Command>,
) -> bool {
    let Some(entry) = state.samples.get(sample) else {
        return true;
    };
    let headline = headline(state, sample);
    let response = ui.interact(rect, ui.scope_id().with(sample), Sense::click());
    response.widget_info(|| {
        let label = format!("{}, {}", entry.name, headline.text);
        let is_selected = state.selection.contains(sample);
        egui::WidgetInfo::selected(egui::Role::ListBoxOption, true, is_selected, label)
    });
    paint_background(ui, state, sample, rect, response.hovered());
    let picture_place = Rect::from_min_max(
        rect.min + Vec2::splat(PADDING),
        pos2(
            rect.right() - PADDING,
            rect.bottom() - PADDING - NAME_HEIGHT - HEADLINE_HEIGHT,
        ),
    );
    let has_pixels = paint_thumbnail(ui, textures, sample, picture_place);
    if headline.is_problem {
        let position = picture_place.right_top() + vec2(-4.0, 4.0);
        paint_mark(ui, position);
    }
    paint_texts(ui, &entry.name, &headline, rect, picture_place.bottom());
    if response.clicked() {
        commands.push(click(ui.input(|input| input.modifiers), sample));
    }
    response.on_hover_ui(|ui| {
        ui.label(&entry.name);
        if !headline.tooltip.is_empty() {
            ui.label(&headline.tooltip);
        }
    });
    has_pixels
}

fn click(modifiers: Modifiers, sample: SampleId) -> Command {
    if modifiers.shift {
        Command::ExtendSelection(sample)
    } else if modifiers.command {
        Command::ToggleSelected(sample)
    } else {
        Command::Show(sample)
    }
}

/// The second line under a thumbnail.
struct Headline {
    text: String,
    /// More than fits on the line; may be empty.
    tooltip: String,
    is_problem: bool,
}

fn headline(state: &State, sample: SampleId) -> Headline {
    let plain = |text: &str| Headline {
        text: text.to_owned(),
        tooltip: String::new(),
        is_problem: false,
    };
    let problem = |text: &str, tooltip: &str| Headline {
        text: text.to_owned(),
        tooltip: tooltip.to_owned(),
        is_problem: true,
    };
    if let Some(reason) = state.samples.unreadable(sample) {
        return problem("cannot be shown", reason);
    }
    let Some(run) = state.run() else {
        return plain("");
    };
    match run.status(sample) {
        AnswerStatus::Unasked => plain(""),
        AnswerStatus::Waiting => plain("waiting…"),
        AnswerStatus::Answered => {
            let headline = run.headline(sample, state.view());
            plain(&headline.unwrap_or_default())
        }
        AnswerStatus::Failed => problem("failed", run.failure(sample).unwrap_or_default()),
    }
}

fn paint_background(ui: &Ui, state: &State, sample: SampleId, rect: Rect, is_hovered: bool) {
    let visuals = ui.visuals();
    let corner = CornerRadius::same(8);
    let is_shown = state.shown_sample() == Some(sample);
    if state.selection.contains(sample) {
        let fill = visuals.selection.bg_fill.gamma_multiply(0.55);
        ui.painter().rect_filled(rect, corner, fill);
    } else if is_hovered {
        let fill = visuals.widgets.hovered.bg_fill;
        ui.painter().rect_filled(rect, corner, fill);
    }
    if is_shown {
        let stroke = Stroke::new(2.0, theme::accent(visuals));
        ui.painter()
            .rect_stroke(rect, corner, stroke, StrokeKind::Inside);
    }
}

fn paint_thumbnail(ui: &Ui, textures: &mut Textures, sample: SampleId, place: Rect) -> bool {
    let corner = CornerRadius::same(4);
    let Some(texture) = textures.thumbnails.get(sample) else {
        let fill = theme::sunken_fill(ui.visuals());
        ui.painter().rect_filled(place, corner, fill);
        return false;
    };
    let size = texture.size_vec2();
    let scale = (place.width() / size.x).min(place.height() / size.y);
    let rect = Rect::from_center_size(place.center(), size * scale);
    egui::Image::new((texture.id(), size))
        .corner_radius(corner)
        .paint_at(ui, rect);
    true
}

/// A warning sign on a disc, readable on any picture.
fn paint_mark(ui: &Ui, right_top: Pos2) {
    let radius = 10.0;
    let centre = right_top + vec2(-radius, radius);
    let painter = ui.painter();
    painter.circle_filled(centre, radius, Color32::from_black_alpha(200));
    painter.text(
        centre,
        egui::Align2::CENTER_CENTER,
        "⚠",
        egui::FontId::proportional(12.0),
        Color32::from_rgb(0xf2, 0xb1, 0x4c),
    );
}

fn paint_texts(ui: &Ui, name: &str, headline: &Headline, rect: Rect, top: f32) {
    let visuals = ui.visuals();
    let width = rect.width() - 2.0 * PADDING;
    let left = rect.left() + PADDING;
    let name_font = TextStyle::Small.resolve(ui.style());
    let name_color = visuals.text_color();
    let file_name = name.rsplit('/').next().unwrap_or(name);
    let galley = truncated(ui, file_name, name_font.clone(), name_color, width);
    ui.painter()
        .galley(pos2(left, top + 4.0), galley, name_color);
    let headline_color = if headline.is_problem {
        visuals.warn_fg_color
    } else {
        visuals.weak_text_color()
    };
    let galley = truncated(ui, &headline.text, name_font, headline_color, width);
    let position = pos2(left, top + 2.0 + NAME_HEIGHT);
    ui.painter().galley(position, galley, headline_color);
}

/// Arrow and page keys walk, with shift they select.
fn take_keys(
    ui: &Ui,
    state: &State,
    layout: Layout,
    page_height: f32,
    commands: &mut Vec<Command>,
) {
    if ui.ctx().egui_wants_keyboard_input() || state.overlay != Overlay::None || layout.count == 0 {
        return;
    }
    let row = layout.columns as i64;
    let rows_a_page = ((page_height / (layout.cell.y + GAP)).floor() as i64).max(1);
    let keys = [
        (Key::ArrowLeft, -1),
        (Key::ArrowRight, 1),
        (Key::ArrowUp, -row),
        (Key::ArrowDown, row),
        (Key::PageUp, -row * rows_a_page),
        (Key::PageDown, row * rows_a_page),
    ];
    ui.input_mut(|input| {
        for (key, by) in keys {
            for _ in 0..input.count_and_consume_key(Modifiers::SHIFT, key) {
                commands.push(Command::Walk(Step::ExtendBy(by)));
            }
            for _ in 0..input.count_and_consume_key(Modifiers::NONE, key) {
                commands.push(Command::Walk(Step::By(by)));
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_rows_on_screen_are_visited() {
        let layout = Layout::new(500.0, 100.0, 100_000);
        let row_height = layout.cell.y + GAP;
        let visible = layout.visible(row_height * 1000.0 + 1.0, row_height * 1003.0 - 1.0);
        assert_eq!(visible, 1000 * layout.columns..1003 * layout.columns);
        assert!(visible.len() < 20);
    }

    #[test]
    fn the_last_row_may_be_short_and_the_narrowest_grid_has_a_column() {
        let layout = Layout::new(10.0, 100.0, 3);
        assert_eq!(layout.columns, 1);
        assert_eq!(layout.rows(), 3);
        assert_eq!(layout.visible(0.0, 1e6), 0..3);
    }
}
