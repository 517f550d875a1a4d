//! The thumbnails: only visible cells are processed, however many there are.

use std::ops::Range;

use eframe::egui::epaint::RectShape;
use eframe::egui::{EventFilter, Memory, Modifiers};

use crate::alike::Measure;
use crate::domain::SampleId;
use crate::review::{PredictionStatus, SortBy};
use crate::window::state::{ProjectCommand, ScrollRequest, ScrollTarget, SourceId};
use crate::window::ui::menu_bar::THUMBNAIL_MENU;
use crate::window::ui::prelude::*;
use crate::window::ui::textures::{Textures, Thumbnail, Thumbnails};

const GAP: f32 = 6.0;
const PADDING: f32 = 6.0;
const NAME_HEIGHT: f32 = 17.0;
const HEADLINE_HEIGHT: f32 = 16.0;

/// The grid's state between frames.
#[derive(Default)]
pub(crate) struct GridMemory {
    last: Option<LastView>,
    steps: GridSteps,
}

impl GridMemory {
    /// The steps of the grid that was drawn since the last call.
    pub(crate) fn take_steps(&mut self) -> GridSteps {
        std::mem::take(&mut self.steps)
    }
}

/// How many images the keys move by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GridSteps {
    pub(crate) row: i64,
    pub(crate) page: i64,
}

/// Used without a visible grid.
impl Default for GridSteps {
    fn default() -> Self {
        Self { row: 1, page: 1 }
    }
}

impl GridSteps {
    fn new(layout: Layout, page_height: f32) -> Self {
        let rows = (page_height / layout.row_height()).floor().max(1.0) as i64;
        let row = layout.columns as i64;
        Self { row, page: row * rows }
    }
}

/// What the grid showed in a frame. It scrolls only if this changes, so that it never undoes the user's scrolling.
#[derive(Debug, Clone, Copy)]
struct LastView {
    /// The source, and whether the grid replaces the image.
    place_in_window: (Option<SourceId>, bool),
    shown: Option<SampleId>,
    scroll: ScrollRequest,
    /// The index of the shown sample in the order.
    place: Option<usize>,
    layout: Layout,
    /// The top of the visible content, in points below its beginning.
    top: f32,
    height: f32,
}

impl LastView {
    /// What should be visible after `self`: `now` with its top moved so that the grid stays where it was, whatever
    /// moved or grew, and a newly shown sample is visible.
    fn followed_by(&self, mut now: Self) -> Self {
        now.top = self.top;
        if self.scroll != now.scroll {
            match now.scroll.target {
                ScrollTarget::FirstImage => now.top = 0.0,
                ScrollTarget::ShownImage => now.bring_shown_into_sight(),
            }
            return now;
        }
        if let Some((before, after)) = self.anchor(&now) {
            now.top = now.layout.row_top(after) - (self.layout.row_top(before) - self.top);
        }
        let is_moved = self.place_in_window != now.place_in_window;
        if self.shown != now.shown || is_moved {
            now.bring_shown_into_sight();
        }
        now
    }

    /// A cell that should stay in place, as its indices before and after: the shown one, or the first visible one if
    /// the cell size changed.
    fn anchor(&self, now: &Self) -> Option<(usize, usize)> {
        let visible = self.layout.visible(self.top, self.top + self.height);
        let shown = self.place.filter(|before| self.shown == now.shown && visible.contains(before)).zip(now.place);
        let is_other_layout = (self.layout.columns, self.layout.cell) != (now.layout.columns, now.layout.cell);
        shown.or_else(|| is_other_layout.then_some((visible.start, visible.start)))
    }

    /// Scrolls no further than necessary.
    fn bring_shown_into_sight(&mut self) {
        if let Some(place) = self.place {
            let (top, bottom) = (self.layout.row_top(place), self.layout.row_top(place) + self.layout.cell.y);
            self.top = self.top.max(bottom + GAP - self.height).min(top - GAP);
        }
        self.top = self.top.min(self.layout.height() - self.height).max(0.0);
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
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
        let image_height = (cell_width - 2.0 * PADDING) * 0.75;
        let cell_height = image_height + 2.0 * PADDING + NAME_HEIGHT + HEADLINE_HEIGHT;
        Self { columns, cell: vec2(cell_width.max(1.0), cell_height), count }
    }

    fn rows(&self) -> usize {
        self.count.div_ceil(self.columns)
    }

    fn row_height(&self) -> f32 {
        self.cell.y + GAP
    }

    fn height(&self) -> f32 {
        self.rows() as f32 * self.row_height()
    }

    /// The top of a cell's row, below the beginning of the content.
    fn row_top(&self, place: usize) -> f32 {
        (place / self.columns) as f32 * self.row_height()
    }

    /// The rectangle of a cell on screen if the content from `top` downward is shown at `origin`.
    fn rect(&self, origin: Pos2, top: f32, place: usize) -> Rect {
        let (row, column) = (place / self.columns, place % self.columns);
        // Far down, `f32` cannot resolve single points.
        let below_top = row as f64 * f64::from(self.row_height()) - f64::from(top);
        let offset = vec2(column as f32 * (self.cell.x + GAP), below_top as f32);
        Rect::from_min_size(origin + offset, self.cell)
    }

    /// The indices of the cells that touch a part of the content, given by its top and bottom.
    fn visible(&self, top: f32, bottom: f32) -> Range<usize> {
        let first = (top.max(0.0) / self.row_height()).floor() as usize;
        let last = (bottom.max(0.0) / self.row_height()).ceil() as usize;
        (first * self.columns).min(self.count)..(last * self.columns).min(self.count)
    }

    /// The indices just outside, which are scrolled to next; below first. Half a screen each way, `max` in total.
    fn nearby(&self, visible: &Range<usize>, max: usize) -> Vec<usize> {
        let half_screen = visible.len().div_ceil(2);
        let below = visible.end..(visible.end + half_screen).min(self.count);
        let above = visible.start.saturating_sub(half_screen)..visible.start;
        below.chain(above.rev()).take(max).collect()
    }
}

/// The part of a cell for the thumbnail.
fn image_place(cell: Rect) -> Rect {
    let bottom = cell.bottom() - PADDING - NAME_HEIGHT - HEADLINE_HEIGHT;
    Rect::from_min_max(cell.min + Vec2::splat(PADDING), pos2(cell.right() - PADDING, bottom))
}

pub(crate) fn grid_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut GridMemory,
    textures: &mut Textures,
    commands: &mut Commands,
) {
    if let Some(source) = &state.source {
        textures.thumbnails.open(source.id);
    }
    let page_height = ui.available_height();
    let scroll_bar = ui.spacing().scroll.bar_width + ui.spacing().scroll.bar_inner_margin;
    let width = ui.available_width() - scroll_bar;
    let layout = Layout::new(width, state.settings.thumbnail_side, state.order().len());
    let side_on_screen = (layout.cell.x - 2.0 * PADDING) * ui.pixels_per_point();
    textures.thumbnails.begin_frame(side_on_screen);
    memory.steps = GridSteps::new(layout, page_height);
    focus_ui(ui, state);
    let mut area = ScrollArea::vertical().id_salt("grid").auto_shrink([false, false]);
    if let Some(top) = top_to_set(state, memory, layout, page_height) {
        area = area.vertical_scroll_offset(top);
        // The end of the content in the last frame must not pull it back.
        ui.spacing_mut().scroll.kinetic.rubber_band = false;
    }
    area.show_viewport(ui, |ui, viewport| {
        ui.set_width(width);
        ui.set_height(layout.height());
        if let Some(seen) = &mut memory.last {
            seen.top = viewport.top();
        }
        cells_ui(ui, state, textures, layout, viewport, commands);
    });
}

/// The grid as a whole is one Tab stop, like a list; from there, the arrow keys move.
pub(crate) fn id() -> Id {
    Id::unique("grid of images")
}

fn focus_ui(ui: &Ui, state: &State) {
    let frame = ui.available_rect_before_wrap();
    let focus = ui.interact(frame, id(), Sense::focusable_noninteractive());
    focus.widget_info(|| {
        let entry = state.shown_sample().and_then(|id| state.samples.get(id));
        let shown = entry.map_or("none", |entry| entry.name.as_str());
        let label = format!("Images, {shown} is shown");
        WidgetInfo::labeled(Role::ListBox, true, label)
    });
    if focus.has_focus() {
        let keys = EventFilter { vertical_arrows: true, horizontal_arrows: true, ..EventFilter::default() };
        ui.memory_mut(|memory| memory.set_focus_lock_filter(id(), keys));
        let line = Stroke::new(1.0, theme::accent(ui.visuals()));
        let painter = ui.painter();
        painter.rect_stroke(frame.expand(3.0), 8.0, line, StrokeKind::Inside);
    }
}

/// The top left corner of the visible content.
fn screen_origin(ui: &Ui, viewport: Rect) -> Pos2 {
    pos2(ui.max_rect().left(), ui.max_rect().top() + viewport.top())
}

/// The part of the content to scroll to; `None` if it is already visible.
fn top_to_set(state: &State, memory: &mut GridMemory, layout: Layout, page_height: f32) -> Option<f32> {
    let shown = state.shown_sample();
    let source = state.source.as_ref().map(|source| source.id);
    let mut now = LastView {
        place_in_window: (source, state.settings.thumbnails_only),
        shown,
        scroll: state.arranging.scroll(),
        place: shown.and_then(|shown| state.order().place_of(shown)),
        layout,
        top: 0.0,
        height: page_height,
    };
    let last = memory.last.filter(|last| last.place_in_window.0 == source);
    match last {
        Some(last) => now = last.followed_by(now),
        None => now.bring_shown_into_sight(),
    }
    memory.last = Some(now);
    let is_as_it_was = last.is_some_and(|last| last.top == now.top && last.place_in_window == now.place_in_window);
    (!is_as_it_was).then_some(now.top)
}

struct Cell<'state> {
    sample: SampleId,
    name: &'state str,
    headline: Headline,
    rect: Rect,
    image_place: Rect,
    thumbnail: Option<Thumbnail>,
    is_hovered: bool,
}

fn cells_ui(ui: &Ui, state: &State, textures: &mut Textures, layout: Layout, viewport: Rect, commands: &mut Commands) {
    let origin = screen_origin(ui, viewport);
    let visible = layout.visible(viewport.top(), viewport.bottom());
    let order = state.order();
    let cells: Vec<Cell<'_>> = visible
        .clone()
        .filter_map(|place| {
            let rect = layout.rect(origin, viewport.top(), place);
            let thumbnails = &mut textures.thumbnails;
            let sample = order.at(place)?;
            cell_ui(ui, state, thumbnails, sample, rect, commands)
        })
        .collect();
    paint_cells(ui, state, &cells);
    if state.settings.show_thumbnail_boxes {
        load_predictions(state, &cells, commands);
    }
    request_thumbnails(state, &mut textures.thumbnails, layout, visible, commands);
}

/// Requests the visible thumbnails, then those just outside.
fn request_thumbnails(
    state: &State,
    thumbnails: &mut Thumbnails,
    layout: Layout,
    visible: Range<usize>,
    commands: &mut Commands,
) {
    let order = state.order();
    let is_far_away = state.place().is_some();
    let mut spare = thumbnails.spare(visible.len());
    if is_far_away {
        // Each is fetched as a whole, which may cost money.
        spare = spare.min(visible.len());
    }
    let nearby = layout.nearby(&visible, spare);
    let places = visible.clone().chain(nearby);
    let missing = places.filter_map(|place| {
        let sample = order.at(place)?;
        let version = state.samples.version(sample);
        let can_be_made = state.samples.unreadable(sample).is_none() && !state.samples.is_gone(sample);
        let is_missing = can_be_made && !thumbnails.is_current(sample, version);
        is_missing.then_some((sample, version))
    });
    let missing = missing.collect();
    if let Some(requested) = thumbnails.changed_request(visible, missing) {
        let side = thumbnails.side();
        commands.push(BrowseCommand::LoadThumbnails { side, requested });
    }
}

/// Handles clicks, tooltips and accessibility; painted later with all others.
fn cell_ui<'state>(
    ui: &Ui,
    state: &'state State,
    thumbnails: &mut Thumbnails,
    sample: SampleId,
    rect: Rect,
    commands: &mut Commands,
) -> Option<Cell<'state>> {
    let name = state.samples.get(sample)?.name.as_str();
    let headline = headline(state, sample);
    let response = ui.interact(rect, ui.scope_id().with(sample), Sense::CLICK);
    response.widget_info(|| {
        let judged = judged_text(state, sample);
        let rank = match &headline.rank {
            Some(Rank { name, number, .. }) => format!("{name} {number:.2}, "),
            None => String::new(),
        };
        let label = format!("{name}, {rank}{}{judged}", headline.text);
        let is_selected = state.selection.contains(sample);
        WidgetInfo::selected(Role::ListBoxOption, true, is_selected, label)
    });
    if headline.rank.is_some() {
        describe(&response, state);
    }
    take_clicks(ui, &response, sample, commands);
    if response.secondary_clicked() {
        // The menu is about images, even after verdicts on boxes.
        commands.push(ReviewCommand::SelectBox(None));
        if !state.selection.contains(sample) {
            commands.push(BrowseCommand::Show(sample));
        }
    }
    context_menu_ui(&response, state, THUMBNAIL_MENU, commands);
    let is_hovered = response.hovered();
    // An open tooltip would stay above a dialog.
    if !state.has_dialog() {
        response.on_hover_ui(|ui| tooltip_ui(ui, state, name, &headline));
    }
    Some(Cell {
        sample,
        name,
        headline,
        rect,
        image_place: image_place(rect),
        thumbnail: thumbnails.get(sample),
        is_hovered,
    })
}

/// How the value under a thumbnail was computed, for screen readers.
fn describe(response: &Response, state: &State) {
    response.ctx.accesskit_node_builder(response.id, |node| {
        if let Some(description) = state.sort_description() {
            node.set_description(description);
        }
    });
}

fn tooltip_ui(ui: &mut Ui, state: &State, name: &str, headline: &Headline) {
    ui.label(name);
    if !headline.text.is_empty() {
        ui.label(&headline.text);
    }
    if let Some(Rank { sign, meaning, number, .. }) = headline.rank {
        ui.label(format!("{sign} {number:.3}: {meaning}"));
        if let Some(description) = state.sort_description() {
            ui.label(description);
        }
    }
    if !headline.tooltip.is_empty() {
        ui.label(&headline.tooltip);
    }
}

fn take_clicks(ui: &Ui, response: &Response, sample: SampleId, commands: &mut Commands) {
    if response.double_clicked() {
        commands.push(Action::LargeImage);
    } else if response.clicked() {
        commands.push(click(ui.input(|input| input.modifiers), sample));
    }
}

/// Layer by layer: everything painted with one texture becomes one draw call.
fn paint_cells(ui: &Ui, state: &State, cells: &[Cell<'_>]) {
    for cell in cells {
        paint_background(ui, state, cell);
    }
    let mut by_page: Vec<(&Cell<'_>, Thumbnail)> =
        cells.iter().filter_map(|cell| Some((cell, cell.thumbnail?))).collect();
    by_page.sort_by_key(|(_, thumbnail)| thumbnail.texture);
    for (cell, thumbnail) in by_page {
        paint_thumbnail(ui, cell, thumbnail);
    }
    if state.settings.show_thumbnail_boxes {
        for cell in cells {
            paint_boxes(ui, state, cell);
        }
    }
    for cell in cells {
        paint_frame(ui, state, cell);
        let signs_width = paint_signs(ui, state, cell);
        paint_texts(ui, cell, signs_width);
    }
}

fn click(modifiers: Modifiers, sample: SampleId) -> Command {
    if modifiers.shift {
        Command::Browse(BrowseCommand::ExtendSelection(sample))
    } else if modifiers.command {
        Command::Browse(BrowseCommand::ToggleSelected(sample))
    } else {
        Command::Browse(BrowseCommand::Show(sample))
    }
}

/// The verdict for screen readers: “, rejected, saving”.
fn judged_text(state: &State, sample: SampleId) -> String {
    let verdict = state.verdict_of(sample);
    let mut text = verdict.map_or_else(String::new, |kind| format!(", {}", kind.participle()));
    if state.judgments.is_saving(sample) {
        text.push_str(", saving");
    }
    text
}

/// The distance between the centers of two signs, in points.
const SIGN_WIDTH: f32 = 20.0;

/// At the right end of the second line, from right to left, where they cover neither the image nor its labels: a
/// problem, the verdict with a ring around it until it is saved in the project, a note or tags. Returns their total
/// width.
fn paint_signs(ui: &Ui, state: &State, cell: &Cell<'_>) -> f32 {
    let mark = state.judgments.marks().get(cell.sample);
    let painter = ui.painter();
    let line = cell.rect.with_min_y(cell.rect.bottom() - PADDING - HEADLINE_HEIGHT);
    let mut width = 0.0;
    let mut next_center = || {
        width += SIGN_WIDTH;
        let right = cell.image_place.right() - width;
        pos2(right + SIGN_WIDTH / 2.0, line.top() + HEADLINE_HEIGHT / 2.0)
    };
    if cell.headline.is_problem {
        paint_problem(ui, next_center());
    }
    let is_saving = state.judgments.is_saving(cell.sample);
    let verdict = state.verdict_of(cell.sample);
    if is_saving || verdict.is_some() {
        let center = next_center();
        if let Some(kind) = verdict {
            paint_verdict(painter, center, 7.0, kind);
        }
        if is_saving {
            let ring = Stroke::new(1.5, theme::accent(ui.visuals()));
            painter.circle_stroke(center, 9.5, ring);
        }
    }
    if mark.note.is_some() || !mark.tags.is_empty() {
        // Lines of text on a sheet.
        let sheet = Rect::from_center_size(next_center(), vec2(12.0, 13.0));
        painter.rect_filled(sheet, 2.0, Color32::from_black_alpha(200));
        for line in 0..3 {
            let y = sheet.top() + 3.5 + 3.0 * line as f32;
            let pen = Stroke::new(1.0, Color32::WHITE);
            painter.hline((sheet.left() + 2.5)..=(sheet.right() - 2.5), y, pen);
        }
    }
    width
}

/// A warning sign on a disc, legible in both themes.
fn paint_problem(ui: &Ui, center: Pos2) {
    let painter = ui.painter();
    painter.circle_filled(center, 9.0, Color32::from_black_alpha(200));
    painter.text(center, Align2::CENTER_CENTER, "⚠", FontId::proportional(11.0), Color32::from_rgb(0xf2, 0xb1, 0x4c));
}

/// The second line under a thumbnail.
struct Headline {
    /// What the images are sorted by, if it is not otherwise visible; before the text.
    rank: Option<Rank>,
    text: String,
    /// More than fits on the line; can be empty.
    tooltip: String,
    is_problem: bool,
}

/// A number that images are sorted by.
struct Rank {
    sign: &'static str,
    name: &'static str,
    meaning: &'static str,
    number: f32,
}

fn rank(state: &State, sample: SampleId) -> Option<Rank> {
    match state.arranging.sort().by {
        SortBy::Disagreement => {
            let image = state.comparing.as_ref()?.agreement()?.image(sample)?;
            let (name, meaning) = ("disagreement", "disagreement of the runs (0 none, 1 complete)");
            Some(Rank { sign: "Δ", name, meaning, number: image.disagreement })
        }
        SortBy::Similarity => {
            let alike = state.alike()?;
            let number = alike.similarity.get(sample.index()).copied().filter(|number| !number.is_nan())?;
            Some(Rank { sign: "≈", name: "similarity", meaning: "similarity (1 equal, 0 unrelated)", number })
        }
        SortBy::Distance => {
            let location = state.samples.get(sample)?.capture.as_ref()?.location?;
            let number = state.arranging.center()?.distance_km(location) as f32;
            Some(Rank {
                sign: "km",
                name: "distance in km",
                meaning: "distance in km to the location of near:",
                number,
            })
        }
        by if let Some(measure) = by.measure() => {
            let values = state.measured()?.values.get(&measure)?;
            let number = values.get(sample.index()).copied().filter(|number| !number.is_nan())?;
            let (sign, name, meaning) = match measure {
                Measure::Uniqueness => ("☆", "uniqueness", "uniqueness (1 most unique)"),
                Measure::Outlier => ("↔", "outlier score", "outlier score (1 typical, near 0 an outlier)"),
                Measure::Representativeness => {
                    ("●", "representativeness", "representativeness (1 at the center of its cluster)")
                }
            };
            Some(Rank { sign, name, meaning, number })
        }
        SortBy::Duplicates => {
            let place = state.found_duplicates()?.places.get(sample.index()).filter(|place| !place.is_first)?;
            let (name, meaning) = ("similarity", "similarity to the first image of the group (1 equal)");
            Some(Rank { sign: "≈", name, meaning, number: place.similarity })
        }
        _ => None,
    }
}

/// “group 3: near, mirrored”, while images are sorted by groups of duplicates.
fn group_text(state: &State, sample: SampleId) -> Option<String> {
    if state.arranging.sort().by != SortBy::Duplicates {
        return None;
    }
    let place = state.found_duplicates()?.places.get(sample.index())?;
    let kind: &str = if place.is_first { "first" } else { place.kind.into() };
    let mirrored = if place.is_mirrored { ", mirrored" } else { "" };
    Some(format!("group {}: {kind}{mirrored}", grouped(place.group as usize + 1)))
}

fn headline(state: &State, sample: SampleId) -> Headline {
    let plain = |text: &str| Headline {
        rank: rank(state, sample),
        text: text.to_owned(),
        tooltip: String::new(),
        is_problem: false,
    };
    let problem = |text: &str, tooltip: &str| Headline {
        rank: rank(state, sample),
        text: text.to_owned(),
        tooltip: tooltip.to_owned(),
        is_problem: true,
    };
    if state.samples.is_gone(sample) {
        let tooltip = "The file was moved or deleted; its predictions and verdicts are kept";
        return problem("file missing", tooltip);
    }
    if let Some(reason) = state.samples.unreadable(sample) {
        return problem("cannot be opened", reason);
    }
    if let Some(text) = group_text(state, sample) {
        return plain(&text);
    }
    let Some(run) = state.run() else {
        return plain("");
    };
    match run.status(sample) {
        PredictionStatus::Unpredicted => plain(""),
        PredictionStatus::Waiting => plain("waiting…"),
        PredictionStatus::Predicted => {
            let headline =
                run.headline(sample, &state.view(), state.suppressed(), state.judgments.marks()).unwrap_or_default();
            if run.is_outdated(sample) {
                let text = format!("outdated: {headline}");
                let tooltip = if state.keeps_prediction(run.id(), sample) {
                    "Outdated: the file changed after it was predicted. The prediction is kept because it has a \
                     verdict"
                } else {
                    "Outdated: the file changed after it was predicted. Predict it again"
                };
                return problem(&text, tooltip);
            }
            match run.warnings(sample) {
                [] => plain(&headline),
                warnings => problem(&headline, &format!("This image {}", warnings.join(", "))),
            }
        }
        PredictionStatus::Failed => problem("failed", run.failure(sample).unwrap_or_default()),
    }
}

fn paint_background(ui: &Ui, state: &State, cell: &Cell<'_>) {
    let visuals = ui.visuals();
    let corner = CornerRadius::same(8);
    if let Some(place) = state.found_duplicates().and_then(|found| found.places.get(cell.sample.index()))
        && state.arranging.sort().by == SortBy::Duplicates
        && place.group.is_multiple_of(2)
    {
        // Neighboring groups differ.
        ui.painter().rect_filled(cell.rect.expand(GAP / 2.0), CornerRadius::ZERO, theme::sunken_fill(visuals));
    }
    if state.selection.contains(cell.sample) {
        let fill = visuals.selection.bg_fill.gamma_multiply(0.55);
        ui.painter().rect_filled(cell.rect, corner, fill);
    } else if cell.is_hovered {
        let fill = visuals.widgets.hovered.bg_fill;
        ui.painter().rect_filled(cell.rect, corner, fill);
    }
    if cell.thumbnail.is_none() {
        let fill = theme::sunken_fill(visuals);
        let corner = CornerRadius::same(4);
        ui.painter().rect_filled(cell.image_place, corner, fill);
    }
}

/// Predictions are stored in the project; those of visible cells are loaded once.
fn load_predictions(state: &State, cells: &[Cell<'_>], commands: &mut Commands) {
    let is_predicted = |cell: &&Cell<'_>| {
        let run = state.run();
        run.is_some_and(|run| run.status(cell.sample) == PredictionStatus::Predicted)
    };
    let predicted = cells.iter().filter(is_predicted);
    let wanted: Vec<SampleId> = predicted.map(|cell| cell.sample).collect();
    if !state.has_requested(&wanted) {
        commands.push(ProjectCommand::LoadPredictions(wanted));
    }
}

/// The boxes that the view shows, with the highest score on top and labeled.
fn paint_boxes(ui: &Ui, state: &State, cell: &Cell<'_>) {
    let (Some(thumbnail), Some(run)) = (cell.thumbnail, state.run()) else {
        return;
    };
    let Some(prediction) = state.prediction_of(cell.sample) else {
        return;
    };
    let rect = place_of_thumbnail(cell.image_place, thumbnail.size);
    let size = vec2(prediction.width as f32, prediction.height as f32);
    let scale = rect.size() / size;
    let painter = ui.painter_at(rect);
    let visible = state.visible_boxes(run.id(), cell.sample, prediction);
    for (place, &index) in visible.iter().enumerate().rev() {
        let detection = &prediction.detections()[index];
        let bounds = detection.bounds.clipped(prediction.width, prediction.height);
        let corner = |x: f32, y: f32| rect.min + vec2(x, y) * scale;
        let on_screen = Rect::from_min_max(corner(bounds.x1, bounds.y1), corner(bounds.x2, bounds.y2));
        let color = theme::class_color(&detection.label);
        let dark = Stroke::new(3.0, Color32::from_black_alpha(140));
        painter.rect_stroke(on_screen, 1.0, dark, StrokeKind::Inside);
        let line = Stroke::new(1.5, color);
        painter.rect_stroke(on_screen, 1.0, line, StrokeKind::Inside);
        if place == 0 {
            paint_label(ui, &painter, rect, on_screen, &detection.label, color);
        }
    }
}

/// Next to the box, moved and shortened to stay inside the thumbnail.
fn paint_label(ui: &Ui, painter: &Painter, thumbnail: Rect, at: Rect, label: &str, color: Color32) {
    let padding = vec2(3.0, 0.5);
    let font = FontId::new(9.5, theme::strong_family());
    let ink = theme::text_on(color);
    let galley = truncated(ui, label, font, ink, thumbnail.width() - 2.0 * padding.x);
    let size = galley.size() + 2.0 * padding;
    let left_top = at.min.min(thumbnail.max - size).max(thumbnail.min);
    let plate = Rect::from_min_size(left_top, size);
    painter.rect_filled(plate, 2.0, color);
    painter.galley(plate.min + padding, galley, ink);
}

fn paint_thumbnail(ui: &Ui, cell: &Cell<'_>, thumbnail: Thumbnail) {
    let rect = place_of_thumbnail(cell.image_place, thumbnail.size);
    let shape = RectShape::filled(rect, CornerRadius::same(4), Color32::WHITE);
    ui.painter().add(shape.with_texture(thumbnail.texture, thumbnail.uv));
}

/// The largest centered rectangle of this aspect ratio.
fn place_of_thumbnail(place: Rect, size: Vec2) -> Rect {
    let scale = (place.width() / size.x).min(place.height() / size.y);
    Rect::from_center_size(place.center(), size * scale)
}

fn paint_frame(ui: &Ui, state: &State, cell: &Cell<'_>) {
    if state.shown_sample() == Some(cell.sample) {
        let stroke = Stroke::new(2.0, theme::accent(ui.visuals()));
        let corner = CornerRadius::same(8);
        ui.painter().rect_stroke(cell.rect, corner, stroke, StrokeKind::Inside);
    }
}

/// The texts in the space next to signs of this width.
fn paint_texts(ui: &Ui, cell: &Cell<'_>, signs_width: f32) {
    let visuals = ui.visuals();
    let (left, top) = (cell.image_place.left(), cell.image_place.bottom());
    let width = cell.image_place.width();
    let font = TextStyle::Small.resolve(ui.style());
    let name_color = visuals.text_color();
    let file_name = cell.name.rsplit('/').next().unwrap_or(cell.name);
    let galley = elided_in_middle(ui, file_name, &font, name_color, width);
    ui.painter().galley(pos2(left, top + 4.0), galley, name_color);
    let headline_color = if cell.headline.is_problem { visuals.warn_fg_color } else { visuals.weak_text_color() };
    let text = match &cell.headline.rank {
        Some(Rank { sign, number, .. }) => &format!("{sign} {number:.2} · {}", cell.headline.text),
        None => &cell.headline.text,
    };
    let galley = truncated(ui, text, font, headline_color, width - signs_width);
    let position = pos2(left, top + 2.0 + NAME_HEIGHT);
    ui.painter().galley(position, galley, headline_color);
}

/// Whether something other than the grid has the focus.
pub(crate) fn is_taken_remote(ctx: &Context) -> bool {
    ctx.memory(Memory::focused).is_some_and(|focused| focused != id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_visible_rows_are_visited() {
        let layout = Layout::new(500.0, 100.0, 100_000);
        let row_height = layout.cell.y + GAP;
        let visible = layout.visible(row_height * 1000.0 + 1.0, row_height * 1003.0 - 1.0);
        assert_eq!(visible, 1000 * layout.columns..1003 * layout.columns);
        assert!(visible.len() < 20);
    }

    #[test]
    fn rows_below_the_screen_come_before_those_above() {
        let layout = Layout::new(500.0, 100.0, 1000);
        assert_eq!(layout.nearby(&(10..14), 9), [14, 15, 9, 8]);
        assert_eq!(layout.nearby(&(0..4), 3), [4, 5]);
        assert_eq!(layout.nearby(&(996..1000), 1), [995]);
    }

    #[test]
    fn distant_cells_keep_their_spacing() {
        let layout = Layout::new(100.0, 100.0, 1_000_000);
        let top = layout.row_height() * 900_000.0;
        let place = layout.visible(top, top + 1.0).start;
        let rect = |place| layout.rect(Pos2::ZERO, top, place);
        let distance = rect(place + 1).top() - rect(place).top();
        assert!((distance - layout.row_height()).abs() < 1e-3, "{distance}");
    }

    /// A hundred rows of four, with ten visible, and the image at this index shown.
    fn seen(place: usize, top_row: usize) -> LastView {
        let layout = Layout::new(500.0, 100.0, 400);
        assert_eq!(layout.columns, 4);
        LastView {
            place_in_window: (None, false),
            shown: Some(SampleId::from_index(place)),
            scroll: ScrollRequest::default(),
            place: Some(place),
            layout,
            top: layout.row_top(top_row * 4),
            height: 10.0 * layout.row_height(),
        }
    }

    #[test]
    fn scroll_request_reaches_the_first_or_shown_image() {
        let first = ScrollRequest::new(1, ScrollTarget::FirstImage);
        for before in [seen(0, 50), seen(205, 50)] {
            assert_eq!(before.followed_by(LastView { scroll: first, ..seen(0, 0) }).top, 0.0);
        }
        let shown = ScrollRequest::new(1, ScrollTarget::ShownImage);
        let after = seen(300, 0).followed_by(LastView { scroll: shown, ..seen(300, 0) });
        let visible = after.layout.visible(after.top, after.top + after.height);
        assert!(visible.contains(&300), "{visible:?}");
    }

    #[test]
    fn only_hidden_new_images_are_scrolled_to() {
        let before = seen(0, 0);
        assert_eq!(before.followed_by(seen(39, 0)).top, 0.0);
        let after = before.followed_by(seen(200, 0));
        let visible = after.layout.visible(after.top, after.top + after.height);
        assert!(visible.contains(&200), "{visible:?}");
        let last = before.followed_by(seen(399, 0));
        assert_eq!(last.top, last.layout.height() - last.height);
    }

    #[test]
    fn manual_scrolling_is_respected() {
        let away = seen(0, 50);
        assert_eq!(away.followed_by(seen(0, 0)).top, away.top);
    }

    #[test]
    fn shown_image_keeps_its_position_on_reorder() {
        let before = seen(204, 50);
        let mut now = seen(204, 0);
        now.place = Some(300);
        let after = before.followed_by(now);
        let below_top = |seen: &LastView| seen.layout.row_top(seen.place.unwrap()) - seen.top;
        assert_eq!(below_top(&after), below_top(&before));
    }

    #[test]
    fn column_change_keeps_images_on_screen() {
        let wider = |seen: LastView| LastView { layout: Layout::new(1100.0, 100.0, 400), ..seen };
        let away = seen(0, 50);
        let after = away.followed_by(wider(seen(0, 0)));
        let first = after.layout.visible(after.top, after.top + after.height).start;
        assert!((196..=200).contains(&first), "{first}");
        let alone = LastView { place_in_window: (None, true), ..wider(seen(0, 0)) };
        assert_eq!(away.followed_by(alone).top, 0.0, "another place begins at the shown image");
    }

    #[test]
    fn last_row_may_be_short() {
        let layout = Layout::new(10.0, 100.0, 3);
        assert_eq!(layout.columns, 1);
        assert_eq!(layout.rows(), 3);
        assert_eq!(layout.visible(0.0, 1e6), 0..3);
    }
}
