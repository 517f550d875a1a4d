//! Drawing a box with the pointer, and moving the edges of the selected one by its handles.

use eframe::egui::{CursorIcon, PointerButton};

use super::boxes;
use super::placement::{Placement, selected_bounds};
use crate::domain::BoundingBox;
use crate::window::state::{Drawing, Edges, LEFT_AND_TOP, RIGHT_AND_BOTTOM, WHOLE_BOX, with_moved_edges};
use crate::window::ui::prelude::*;

/// The distance from a handle at which the pointer takes it, in points.
const REACH: f32 = 8.0;
/// The side of a handle, in points.
const HANDLE: f32 = 8.0;
/// Handles in the middle of an edge, and of the box, need an edge of this length in points.
const ROOM: f32 = 36.0;

/// All handles of a box.
const HANDLES: [Edges; 9] = [
    LEFT_AND_TOP,
    [false, true, true, false],
    [true, false, false, true],
    RIGHT_AND_BOTTOM,
    [true, false, false, false],
    [false, true, false, false],
    [false, false, true, false],
    [false, false, false, true],
    WHOLE_BOX,
];

/// A box while the pointer changes it.
#[derive(Debug, Clone, Copy)]
struct Drag {
    edges: Edges,
    /// The box before, in image pixels.
    before: BoundingBox,
    /// Where the pointer was pressed, in image pixels.
    from: Vec2,
    is_new: bool,
}

/// What the pointer does to boxes in this frame.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Editing {
    /// The selected box in its current position, in image pixels.
    pub(crate) moved: Option<BoundingBox>,
    /// A box being drawn.
    new: Option<BoundingBox>,
    /// Whether the pointer drags a box rather than the image.
    pub(crate) is_dragging: bool,
}

impl Editing {
    /// Reads the pointer, before the boxes are drawn.
    pub(crate) fn new(
        ui: &Ui,
        state: &State,
        placement: &Placement,
        response: &Response,
        commands: &mut Commands,
    ) -> Self {
        let waiting = match state.shown.drawing {
            Some(Drawing::Drawn(bounds)) => Some(bounds),
            _ => None,
        };
        let id = Id::unique("drag of a box");
        let at = response.interact_pointer_pos().map(|at| placement.image_from_screen(at));
        if response.drag_started_by(PointerButton::Primary)
            && let Some(drag) = started(ui, state, placement)
        {
            ui.data_mut(|data| data.insert_temp(id, Some(drag)));
        }
        let drag = ui.data(|data| data.get_temp::<Option<Drag>>(id)).flatten();
        let Some((drag, at)) = drag.zip(at) else {
            ui.data_mut(|data| data.insert_temp(id, None::<Drag>));
            cursor(ui, state, placement, response);
            return Self { new: waiting, ..Self::default() };
        };
        let bounds = drag.moved_to(at, placement.image_size());
        if response.drag_stopped() {
            ui.data_mut(|data| data.insert_temp(id, None::<Drag>));
            let ended = if drag.is_new { ReviewCommand::DrawBox(bounds) } else { ReviewCommand::MoveBox(bounds) };
            commands.push(ended);
        }
        ui.set_cursor_icon(cursor_of(drag.edges, drag.is_new));
        let (moved, new) = if drag.is_new { (None, Some(bounds)) } else { (Some(bounds), None) };
        Self { moved, new, is_dragging: true }
    }

    /// Draws the handles, and the box being drawn, on top of all boxes.
    pub(crate) fn ui(&self, painter: &Painter, state: &State, placement: &Placement) {
        if let Some(bounds) = self.new {
            let color = Color32::WHITE;
            boxes::frame(painter, placement.screen_from_image(bounds), color, 1.0, true, boxes::Line::Solid);
        }
        let Some(rect) = edited_rect(state, placement, self.moved) else {
            return;
        };
        for (_, at) in handles(rect) {
            let handle = Rect::from_center_size(at, Vec2::splat(HANDLE));
            painter.rect(handle, 1.0, Color32::WHITE, Stroke::new(1.5, Color32::BLACK), StrokeKind::Middle);
        }
    }
}

impl Drag {
    fn moved_to(&self, at: Vec2, size: Vec2) -> BoundingBox {
        with_moved_edges(self.before, self.edges, (at - self.from).into(), [size.x as u32, size.y as u32])
    }
}

/// The drag that begins where the pointer was pressed; `None` if it moves the image.
fn started(ui: &Ui, state: &State, placement: &Placement) -> Option<Drag> {
    let pressed = ui.input(|input| input.pointer.press_origin())?;
    let from = placement.image_from_screen(pressed);
    if state.shown.drawing == Some(Drawing::Armed) {
        let size = placement.image_size();
        let corner = from.clamp(Vec2::ZERO, size);
        let before = BoundingBox::new(corner.x, corner.y, corner.x, corner.y);
        return Some(Drag { edges: RIGHT_AND_BOTTOM, before, from: corner, is_new: true });
    }
    let edges = handle_at(state, placement, pressed)?;
    Some(Drag { edges, before: selected_bounds(state)?, from, is_new: false })
}

fn cursor(ui: &Ui, state: &State, placement: &Placement, response: &Response) {
    let Some(at) = response.hover_pos() else {
        return;
    };
    if state.shown.drawing == Some(Drawing::Armed) {
        ui.set_cursor_icon(CursorIcon::Crosshair);
    } else if let Some(edges) = handle_at(state, placement, at) {
        ui.set_cursor_icon(cursor_of(edges, false));
    }
}

fn cursor_of(edges: Edges, is_new: bool) -> CursorIcon {
    match edges {
        _ if is_new => CursorIcon::Crosshair,
        [true, true, true, true] => CursorIcon::Move,
        [true, true, false, false] | [false, false, true, true] => CursorIcon::ResizeNwSe,
        [false, true, true, false] | [true, false, false, true] => CursorIcon::ResizeNeSw,
        [_, false, _, false] => CursorIcon::ResizeHorizontal,
        _ => CursorIcon::ResizeVertical,
    }
}

fn handle_at(state: &State, placement: &Placement, at: Pos2) -> Option<Edges> {
    let rect = edited_rect(state, placement, None)?;
    let distance = |(_, handle): &(Edges, Pos2)| handle.distance(at);
    let nearest = handles(rect).min_by(|left, right| distance(left).total_cmp(&distance(right)))?;
    (distance(&nearest) <= REACH).then_some(nearest.0)
}

/// The handles that have room, with their positions on screen.
fn handles(rect: Rect) -> impl Iterator<Item = (Edges, Pos2)> {
    let has_room = move |edges: &Edges| match edges.iter().filter(|moves| **moves).count() {
        2 => true,
        1 if edges[0] || edges[2] => rect.height() >= ROOM,
        1 => rect.width() >= ROOM,
        _ => rect.size().min_elem() >= ROOM,
    };
    let middle = rect.center();
    HANDLES.into_iter().filter(has_room).map(move |edges| {
        let [left, top, right, bottom] = edges;
        let along = |low: bool, high: bool, ends: [f32; 3]| match (low, high) {
            (true, false) => ends[0],
            (false, true) => ends[2],
            _ => ends[1],
        };
        let x = along(left, right, [rect.left(), middle.x, rect.right()]);
        let y = along(top, bottom, [rect.top(), middle.y, rect.bottom()]);
        (edges, pos2(x, y))
    })
}

/// The selected box on screen, if it can be changed.
fn edited_rect(state: &State, placement: &Placement, moved: Option<BoundingBox>) -> Option<Rect> {
    let is_possible = state.overlay == Overlay::None
        && state.shown.drawing.is_none()
        && state.right_side().is_none()
        && Action::DuplicateBox.check(state).is_ok();
    let bounds = moved.or_else(|| selected_bounds(state)).filter(|_| is_possible)?;
    let size = placement.image_size();
    Some(placement.screen_from_image(bounds.clipped(size.x as u32, size.y as u32)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_boxes_have_only_corner_handles() {
        let small = Rect::from_min_size(pos2(5.0, 5.0), vec2(20.0, 60.0));
        let large = Rect::from_min_size(pos2(5.0, 5.0), vec2(90.0, 60.0));
        assert_eq!(handles(small).count(), 6);
        assert_eq!(handles(large).count(), 9);
        let corner = handles(large).find(|(edges, _)| *edges == RIGHT_AND_BOTTOM).unwrap();
        assert_eq!(corner.1, large.right_bottom());
    }
}
