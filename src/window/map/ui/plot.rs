//! The points: one image that is drawn again when the points or the view change, so that a frame costs the same for any
//! number of them while nothing moves.

use std::sync::Arc;

use eframe::egui::{
    Color32, ColorImage, CursorIcon, Image, PointerButton, Pos2, Rect, Response, Role, Sense, Shape, Stroke,
    TextureHandle, TextureOptions, Ui, Vec2, WidgetInfo, load::SizedTexture, pos2, vec2,
};

use super::{count_text, group_color};
use crate::alike::{Dot, DotLayer, MapView, Point, draw, inside};
use crate::domain::{RunId, SampleSet};
use crate::review::MapRow;
use crate::window::state::{Action, BrowseCommand, Commands, MapCommand, MapGroups, MapLayout, Order, State};
use crate::window::ui::textures::{Textures, Thumbnail};
use crate::window::ui::theme;

/// How near the pointer must be to a point, in points of the screen.
const REACH: f32 = 10.0;
/// Around the map, in points.
const MARGIN: f32 = 24.0;
/// The movement of the wheel that zooms by a factor of e, in points.
const WHEEL_POINTS: f32 = 200.0;
/// The shortest line of a selection, in points.
const LINE_STEP: f32 = 3.0;
/// The longer side of the thumbnail in a tooltip, in points.
const PREVIEW: f32 = 160.0;

/// The state between frames.
#[derive(Default)]
pub(crate) struct PlotMemory {
    /// The run, and whether its boxes are on the map.
    map: Option<(RunId, bool)>,
    /// The center and the scale in points per unit of the map; `None` shows the whole map.
    view: Option<(Point, f32)>,
    dots: Vec<Dot>,
    dots_of: Option<DotsKey>,
    texture: Option<TextureHandle>,
    drawn: Option<(u64, u64, MapView)>,
    /// Differs between all `dots`.
    dots_number: u64,
    drag: Drag,
}

#[derive(Default)]
enum Drag {
    #[default]
    None,
    /// Moves the map.
    Move,
    /// Selects what is inside this line.
    Select(Vec<Pos2>),
}

/// What the look of the points depends on.
#[derive(Clone)]
struct DotsKey {
    rows: Arc<[MapRow]>,
    groups: Option<Arc<MapGroups>>,
    order: Order,
    selected: SampleSet,
    is_dark: bool,
}

impl PartialEq for DotsKey {
    fn eq(&self, other: &Self) -> bool {
        let groups = [&self.groups, &other.groups].map(|groups| groups.as_ref().map(Arc::as_ptr));
        Arc::ptr_eq(&self.rows, &other.rows)
            && groups[0] == groups[1]
            && (&self.order, &self.selected, self.is_dark) == (&other.order, &other.selected, other.is_dark)
    }
}

impl PlotMemory {
    pub(crate) fn is_zoomed(&self) -> bool {
        self.view.is_some()
    }

    pub(crate) fn show_all(&mut self) {
        self.view = None;
    }

    /// The visible part, in points of the screen.
    fn view_in(&self, layout: &MapLayout, rect: Rect) -> MapView {
        let size = [rect.width(), rect.height()].map(|side| side.max(1.0) as usize);
        match self.view {
            Some((center, scale)) => MapView { center, scale, size },
            None => MapView::fitting(&layout.points, size, MARGIN),
        }
    }
}

pub(super) fn plot_ui(
    ui: &mut Ui,
    state: &State,
    layout: &MapLayout,
    memory: &mut PlotMemory,
    textures: &mut Textures,
    commands: &mut Commands,
) {
    let map = (layout.run, layout.of_boxes);
    if memory.map.replace(map) != Some(map) {
        (memory.view, memory.drag) = (None, Drag::None);
    }
    // Without a keyboard function of its own: that is the list of clusters.
    let (rect, response) = ui.allocate_exact_size(ui.available_size(), Sense::CLICK | Sense::DRAG);
    let name = format!("Map of {}; the list of clusters selects them", count_text(layout, layout.rows.len()));
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, &name));
    let view = navigate(ui, memory, &response, memory.view_in(layout, rect));
    ui.painter().rect_filled(rect, 4.0, theme::canvas_fill(ui.visuals()));
    paint_points(ui, state, layout, memory, &view, rect);
    let on_screen = |row: usize| {
        let [x, y] = view.pixel(layout.points[row]);
        rect.min + vec2(x, y)
    };
    let painter = ui.painter().with_clip_rect(rect);
    if let Some(row) = shown_row(state, layout) {
        painter.circle_stroke(on_screen(row), 8.0, Stroke::new(2.0, theme::accent(ui.visuals())));
    }
    select(ui, layout, memory, &response, &view, commands);
    let pointer = response.hover_pos().filter(|_| matches!(memory.drag, Drag::None));
    let hovered = pointer.and_then(|at| {
        let at = at - rect.min;
        view.nearest(&layout.points, [at.x, at.y], REACH)
    });
    let Some(row) = hovered else {
        return;
    };
    painter.circle_stroke(on_screen(row), 7.0, Stroke::new(1.5, ui.visuals().strong_text_color()));
    hovered_ui(ui, state, layout, row, &response, textures, commands);
}

/// Zooms and moves the map by this frame's input, and returns the visible part.
fn navigate(ui: &Ui, memory: &mut PlotMemory, response: &Response, view: MapView) -> MapView {
    let mut changed = view;
    let is_moving = matches!(memory.drag, Drag::Move);
    if is_moving && response.dragged() {
        let by = response.drag_delta() / view.scale;
        changed.center = [view.center[0] - by.x, view.center[1] - by.y];
    }
    if let Some(at) = response.hover_pos() {
        let (wheel, pinch) = ui.input(|input| (input.smooth_scroll_delta().y, input.zoom_delta()));
        let factor = pinch * (wheel / WHEEL_POINTS).exp();
        if (factor - 1.0).abs() > 1e-4 {
            let at = at - response.rect.min;
            let fixed = view.position([at.x, at.y]);
            changed.scale = (view.scale * factor).clamp(0.1, 1e5);
            // The position under the pointer stays in place.
            let now = changed.position([at.x, at.y]);
            changed.center = [0, 1].map(|axis| changed.center[axis] + fixed[axis] - now[axis]);
        }
    }
    if changed != view {
        memory.view = Some((changed.center, changed.scale));
    }
    changed
}

/// Draws the points into a texture, unless it shows them already.
fn paint_points(ui: &Ui, state: &State, layout: &MapLayout, memory: &mut PlotMemory, view: &MapView, rect: Rect) {
    color(ui, state, layout, memory);
    let density = ui.pixels_per_point();
    let limit = ui.input(|input| input.max_texture_side);
    let size = [rect.width(), rect.height()].map(|side| ((side * density).round() as usize).clamp(1, limit));
    let in_pixels = MapView { scale: view.scale * density, size, ..*view };
    let key = (layout.number, memory.dots_number, in_pixels);
    if memory.drawn != Some(key) {
        let [red, green, blue, _] = theme::canvas_fill(ui.visuals()).to_array();
        let (radius, has_edge) = look(layout.points.len());
        let edge = has_edge.then_some([red, green, blue]);
        let pixels = draw(&layout.points, &memory.dots, &in_pixels, radius * density, edge);
        let image = ColorImage::from_rgba_premultiplied(size, &pixels);
        match &mut memory.texture {
            Some(texture) => texture.set(image, TextureOptions::NEAREST),
            None => memory.texture = Some(ui.ctx().load_texture("map", image, TextureOptions::NEAREST)),
        }
        memory.drawn = Some(key);
    }
    if let Some(texture) = &memory.texture {
        let whole = Rect::from_min_max(Pos2::ZERO, pos2(1.0, 1.0));
        ui.painter().image(texture.id(), rect, whole, Color32::WHITE);
    }
}

/// The radius in points of the screen, smaller for more points, and whether there is room for edges.
fn look(count: usize) -> (f32, bool) {
    match count {
        0..200 => (5.0, true),
        200..2_000 => (4.0, true),
        2_000..20_000 => (2.5, true),
        _ => (1.6, false),
    }
}

/// Determines the look of each point, unless nothing has changed.
fn color(ui: &Ui, state: &State, layout: &MapLayout, memory: &mut PlotMemory) {
    let key = DotsKey {
        rows: Arc::clone(&layout.rows),
        groups: state.map_groups().map(Arc::clone),
        order: state.order(),
        selected: state.selection.selected().clone(),
        is_dark: ui.visuals().dark_mode,
    };
    if memory.dots_of.as_ref() == Some(&key) {
        return;
    }
    let color = |kind| {
        let [red, green, blue, _] = group_color(kind, key.is_dark).to_array();
        [red, green, blue]
    };
    let rest = color(crate::review::GroupKind::Rest);
    let groups = key.groups.as_ref().map(|groups| &groups.groups);
    let colors: Vec<[u8; 3]> =
        groups.into_iter().flat_map(|groups| &groups.groups).map(|group| color(group.kind)).collect();
    let has_several = key.selected.len() > 1;
    let dot = |(row, of_row): (usize, &MapRow)| {
        let group = groups.and_then(|groups| groups.group_of.get(row));
        let layer = if key.order.place_of(of_row.sample).is_none() {
            DotLayer::Dimmed
        } else if has_several && key.selected.contains(of_row.sample) {
            DotLayer::Selected
        } else {
            DotLayer::Usual
        };
        let color = group.and_then(|group| colors.get(usize::from(*group))).copied().unwrap_or(rest);
        Dot { color: if layer == DotLayer::Dimmed { rest } else { color }, layer }
    };
    memory.dots = layout.rows.iter().enumerate().map(dot).collect();
    memory.dots_number += 1;
    memory.dots_of = Some(key);
}

/// Draws the line of a selection, and selects when it ends.
fn select(
    ui: &Ui,
    layout: &MapLayout,
    memory: &mut PlotMemory,
    response: &Response,
    view: &MapView,
    commands: &mut Commands,
) {
    let (at, shift) = ui.input(|input| (input.pointer.interact_pos(), input.modifiers.shift));
    if response.drag_started() {
        let begins = ui.input(|input| input.pointer.press_origin()).or(at);
        let is_selection = response.drag_started_by(PointerButton::Primary) && !shift;
        memory.drag = if is_selection { Drag::Select(begins.into_iter().collect()) } else { Drag::Move };
    }
    match &mut memory.drag {
        Drag::None => return,
        Drag::Move => ui.ctx().set_cursor_icon(CursorIcon::Grabbing),
        Drag::Select(line) => {
            ui.ctx().set_cursor_icon(CursorIcon::Crosshair);
            let is_far = |at: &Pos2| line.last().is_none_or(|last| last.distance(*at) >= LINE_STEP);
            line.extend(at.filter(is_far));
            let stroke = Stroke::new(1.5, theme::accent(ui.visuals()));
            ui.painter().with_clip_rect(response.rect).add(Shape::closed_line(line.clone(), stroke));
        }
    }
    if !response.drag_stopped() {
        return;
    }
    if let Drag::Select(line) = std::mem::take(&mut memory.drag) {
        let corners: Vec<Point> = line
            .iter()
            .map(|at| {
                let at = *at - response.rect.min;
                view.position([at.x, at.y])
            })
            .collect();
        let rows = inside(&layout.points, &corners);
        commands.push(MapCommand::Pick(rows.into_iter().map(|row| layout.rows[row]).collect()));
    }
}

/// The image under the pointer: its name and thumbnail, and what a click does.
fn hovered_ui(
    ui: &Ui,
    state: &State,
    layout: &MapLayout,
    row: usize,
    response: &Response,
    textures: &mut Textures,
    commands: &mut Commands,
) {
    let of_row = layout.rows[row];
    let sample = of_row.sample;
    let Some(entry) = state.samples.get(sample) else {
        return;
    };
    ui.ctx().set_cursor_icon(CursorIcon::PointingHand);
    if response.double_clicked() {
        commands.push(MapCommand::Show(of_row));
        commands.push(Action::Map);
    } else if response.clicked() {
        let toggles = ui.input(|input| input.modifiers.command);
        if toggles {
            commands.push(BrowseCommand::ToggleSelected(sample));
        } else {
            commands.push(MapCommand::Show(of_row));
        }
    }
    let thumbnail = textures.thumbnails.get(sample);
    if thumbnail.is_none() {
        textures.thumbnails.want(sample, state.samples.version(sample));
        if !state.settings.show_images_panel
            && let Some(requested) = textures.thumbnails.changed_request(0..0, Vec::new())
        {
            commands.push(BrowseCommand::LoadThumbnails { side: textures.thumbnails.side(), requested });
        }
    }
    let groups = state.map_groups().map(|groups| &groups.groups);
    let group = groups.and_then(|groups| groups.groups.get(usize::from(*groups.group_of.get(row)?)));
    response.clone().on_hover_ui_at_pointer(|ui| {
        if let Some(thumbnail) = thumbnail {
            ui.add(preview(thumbnail));
        }
        ui.label(&entry.name);
        if let Some(group) = group {
            ui.weak(&group.name);
        }
    });
}

/// The row of the image on screen; of its selected box, if the map is of boxes.
fn shown_row(state: &State, layout: &MapLayout) -> Option<usize> {
    let selected = state.shown.selected_box.and_then(|index| u16::try_from(index).ok());
    let row = MapRow { sample: state.shown_sample()?, index: selected.filter(|_| layout.of_boxes) };
    layout.rows.binary_search(&row).ok()
}

fn preview(thumbnail: Thumbnail) -> Image<'static> {
    let scale = PREVIEW / thumbnail.size.max_elem().max(1.0);
    let size: Vec2 = thumbnail.size * scale.min(1.0);
    Image::new(SizedTexture::new(thumbnail.texture, size)).uv(thumbnail.uv)
}
