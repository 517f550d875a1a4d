//! The two sides of a divided image: two runs, or predictions and ground truth.

use std::sync::Arc;

use eframe::egui::text::LayoutJob;
use eframe::egui::{CursorIcon, Galley, lerp, remap};

use crate::domain::{Prediction, RunId};
use crate::window::canvas::ui::boxes;
use crate::window::canvas::ui::labels::Labels;
use crate::window::canvas::ui::paint_image;
use crate::window::canvas::ui::placement::Placement;
use crate::window::state::{CompareLayout, RightSide, ShownObject, ViewNumber};
use crate::window::ui::prelude::*;
use crate::window::ui::textures::Textures;

/// The gap between two images, in points.
const GAP: f32 = 2.0;
/// The distance from the line between two sides at which the pointer takes it, in points.
pub(crate) const DIVIDER_REACH: f32 = 6.0;
/// The number of classes named for a classifier.
const CLASSES: usize = 3;

/// Where one side is drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Side {
    /// The canvas of its whole image.
    pub(crate) canvas: Rect,
    /// The part of the canvas that belongs to it.
    pub(crate) clip: Rect,
    /// The part for its caption, which stays in place while the line moves.
    pub(crate) half: Rect,
}

impl Side {
    pub(crate) fn whole(canvas: Rect) -> Self {
        Self { canvas, clip: canvas, half: canvas }
    }

    /// The left and the right side. `image` is the rectangle of the whole image on an undivided canvas.
    pub(crate) fn both(state: &State, canvas: Rect, image: Rect) -> [Self; 2] {
        let (mut left, mut right) = canvas.split_left_right_at_x(canvas.center().x);
        if state.settings.compare_layout == CompareLayout::SideBySide {
            left.max.x -= GAP / 2.0;
            right.min.x += GAP / 2.0;
            return [Self::whole(left), Self::whole(right)];
        }
        let (left_clip, right_clip) = canvas.split_left_right_at_x(divider(state, canvas, image));
        [Self { canvas, clip: left_clip, half: left }, Self { canvas, clip: right_clip, half: right }]
    }
}

/// The horizontal position of the line between the sides.
fn divider(state: &State, canvas: Rect, image: Rect) -> f32 {
    lerp(image.intersect(canvas).x_range(), state.settings.divider)
}

/// The line between two sides of one image. The pointer drags it within `reach` of it; for keys, there are actions.
pub(crate) fn divider_ui(ui: &Ui, state: &State, [canvas, image]: [Rect; 2], reach: f32, commands: &mut Commands) {
    if state.settings.compare_layout == CompareLayout::SideBySide {
        return;
    }
    let x = divider(state, canvas, image);
    let handle = Rect::from_x_y_ranges(x - reach..=x + reach, canvas.y_range()).intersect(canvas);
    let response = ui.interact(handle, Id::unique("line between two sides"), Sense::DRAG);
    if response.hovered() || response.dragged() {
        ui.set_cursor_icon(CursorIcon::ResizeHorizontal);
    }
    let span = image.intersect(canvas).x_range();
    if let Some(at) = response.interact_pointer_pos().filter(|_| response.dragged() && span.span() > 0.0) {
        let value = remap(at.x, span, 0.0..=1.0);
        commands.push(ReviewCommand::SetNumber(ViewNumber::Divider, value));
    }
    let painter = ui.painter_at(canvas);
    let line = image.intersect(canvas).y_range();
    painter.vline(x, line, Stroke::new(4.0, Color32::from_black_alpha(150)));
    painter.vline(x, line, Stroke::new(2.0, Color32::WHITE));
    let knob = pos2(x, line.center());
    painter.circle(knob, 9.0, Color32::WHITE, Stroke::new(1.0, Color32::from_black_alpha(150)));
    painter.text(knob, Align2::CENTER_CENTER, "↔", FontId::proportional(13.0), Color32::BLACK);
}

/// The right side, with the zoom and position of the left one. `size` is the image's in pixels.
pub(crate) fn image_ui(
    ui: &Ui,
    state: &State,
    textures: &mut Textures,
    right: RightSide,
    (side, size): (Side, Vec2),
    commands: &mut Commands,
) {
    let id = Id::unique("the right side of the image");
    let response = ui.interact(side.clip, id, Sense::CLICK | Sense::DRAG);
    let name = match right {
        RightSide::Run(_) => "Image with the other run",
        RightSide::Truth => "Image with the ground truth",
    };
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, name));
    let painter = ui.painter_at(side.clip);
    let placement = Placement::new(side.canvas, size, state.canvas);
    paint_image(state, textures, &painter, placement.on_screen);
    let objects = right_objects(state, right);
    let run = match right {
        RightSide::Run(run) => Some(run),
        RightSide::Truth => None,
    };
    let [_, name] = names(state, right);
    let caption = caption(ui, state, side.half, (name, run), &objects);
    let mut labels = Labels::on_canvas(&painter, side.clip);
    labels.reserve(caption.place);
    boxes::reserve_small(&objects, &placement, &mut labels);
    boxes::truth_ui(&painter, &objects, &placement, None);
    if run.is_some() {
        run_ui(&painter, state, &placement, &mut labels);
    }
    boxes::truth_labels_ui(&objects, &placement, &mut labels);
    if !state.settings.outlines_only {
        labels.paint();
    }
    caption.ui(ui, side.half);
    if let Some(view) = placement.navigated(ui, &response, state, true) {
        commands.push(ReviewCommand::SetCanvas(view));
    }
}

/// The boxes of the other run.
fn run_ui(painter: &Painter, state: &State, placement: &Placement, labels: &mut Labels<'_>) {
    let Some(prediction) = state.compared_prediction() else {
        return;
    };
    let visible = state.compared_boxes();
    let drawn = |index: usize| {
        let detection = &prediction.detections()[index];
        let clipped = detection.bounds.clipped(prediction.width, prediction.height);
        let color = theme::class_color(&detection.label);
        (detection, placement.screen_from_image(clipped), color)
    };
    let outcome = |index: usize| state.compared_outcome_of_box(state.shown_sample()?, index);
    for &index in visible.iter().rev() {
        let (_, place, color) = drawn(index);
        boxes::frame(painter, place, color, 1.0, false, boxes::Line::Solid);
        if !state.settings.outlines_only && outcome(index).is_some_and(|outcome| outcome.kind.is_wrong()) {
            boxes::wrong(painter, place, 1.0);
        }
    }
    for &index in &visible {
        let (detection, place, color) = drawn(index);
        let texts = boxes::tag_texts(state, detection, None, outcome(index));
        boxes::tag(labels, place, &texts, color);
    }
}

/// The ground-truth objects on the right side.
pub(crate) fn right_objects(state: &State, right: RightSide) -> Vec<ShownObject> {
    match right {
        RightSide::Run(_) if state.settings.show_stored_boxes => state.compared_objects(),
        RightSide::Run(_) => Vec::new(),
        RightSide::Truth => {
            let mut objects = state.shown_objects();
            for object in &mut objects {
                // Found objects have no label next to the box that finds them, which is not on this side.
                object.is_found.take_if(|is_found| *is_found);
            }
            objects
        }
    }
}

/// The names of both sides.
pub(crate) fn names(state: &State, right: RightSide) -> [String; 2] {
    let name = |run: Option<RunId>| {
        let run = run.and_then(|run| state.runs.get(run));
        run.map_or("No predictions", |run| run.info.name.as_str())
    };
    let left = name(state.run_id());
    match right {
        RightSide::Run(run) => [format!("A: {left}"), format!("B: {}", name(Some(run)))],
        RightSide::Truth => [left.to_owned(), "Ground truth".to_owned()],
    }
}

/// The name of a side, a classifier's top classes or those of the ground truth (without a run), and the number of
/// ground-truth objects that the run missed.
pub(crate) fn caption(
    ui: &Ui,
    state: &State,
    half: Rect,
    (name, run): (String, Option<RunId>),
    objects: &[ShownObject],
) -> Caption {
    let sample = state.shown_sample();
    let mut lines = vec![name];
    match (run, sample) {
        (Some(run), Some(sample)) => {
            lines.extend(state.runs.prediction(run, sample).into_iter().flat_map(|found| class_lines(found)));
        }
        (None, Some(sample)) => lines.extend(state.truth_labels(sample)),
        (_, None) => {}
    }
    if !objects.is_empty() {
        lines.push(boxes::truth_legend(state, objects));
    } else if run.is_none() && lines.len() == 1 {
        lines.push("Nothing for this image".to_owned());
    }
    Caption::new(ui, half, Id::unique(("caption of a side", run)), CAPTION_SIZE, lines.join("\n"))
}

/// The text size of captions on the canvas, in points.
pub(crate) const CAPTION_SIZE: f32 = 12.0;

/// Text on the image, at the bottom left. Painted last, and labels avoid it.
pub(crate) struct Caption {
    pub(crate) place: Rect,
    galley: Arc<Galley>,
    id: Id,
    text: String,
}

impl Caption {
    pub(crate) fn new(ui: &Ui, canvas: Rect, id: Id, font_size: f32, text: String) -> Self {
        let font = FontId::proportional(font_size);
        let mut job = LayoutJob::simple(text.clone(), font, Color32::WHITE, canvas.width() - 40.0);
        // In a small window, a long name would hide the image.
        job.wrap.max_rows = (canvas.height() / (3.0 * font_size)).max(2.0) as usize;
        let galley = ui.painter().layout_job(job);
        let size = galley.size() + vec2(20.0, 12.0);
        let left_top = canvas.left_bottom() + vec2(10.0, -10.0 - size.y);
        let place = Rect::from_min_size(left_top, size);
        Self { place, galley, id, text }
    }

    pub(crate) fn ui(self, ui: &Ui, canvas: Rect) {
        let painter = ui.painter_at(canvas);
        painter.rect_filled(self.place, 6.0, Color32::from_black_alpha(215));
        painter.galley(self.place.min + vec2(10.0, 6.0), self.galley, Color32::WHITE);
        let response = ui.interact(self.place, self.id, Sense::hover());
        response.widget_info(|| WidgetInfo::labeled(Role::Label, true, self.text.as_str()));
    }
}

fn class_lines(prediction: &Prediction) -> impl Iterator<Item = String> {
    let classes = prediction.classes().iter().take(CLASSES);
    classes.map(|class| format!("{} {:.1}%", class.label, class.score * 100.0))
}
