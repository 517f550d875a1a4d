//! The same picture a second time, with what another run says of it.

use eframe::egui::{Color32, FontId, Id, Rect, Role, Sense, Ui, WidgetInfo, vec2};

use super::super::textures::Textures;
use super::super::theme;
use super::labels::Labels;
use super::placement::Placement;
use super::{boxes, paint_picture};
use crate::domain::{Prediction, RunId};
use crate::state::{Command, Comparing, State};

/// Between the two pictures, in points.
const GAP: f32 = 2.0;
/// Classes of a classifier that are named.
const CLASSES: usize = 3;

/// Leaves the left half in `canvas` and gives the right one.
pub(super) fn split(canvas: &mut Rect) -> Rect {
    let middle = canvas.center().x;
    let (mut left, mut right) = canvas.split_left_right_at_x(middle);
    left.max.x -= GAP / 2.0;
    right.min.x += GAP / 2.0;
    *canvas = left;
    right
}

/// The right half: zoom and place are those of the left one. `size` is the picture's in pixels.
pub(super) fn picture_ui(
    ui: &mut Ui,
    state: &State,
    textures: &mut Textures,
    comparing: &Comparing,
    (half, size): (Rect, eframe::egui::Vec2),
    commands: &mut Vec<Command>,
) {
    let id = Id::unique("the picture of the other run");
    let response = ui.interact(half, id, Sense::CLICK | Sense::DRAG);
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, "Picture with the other run"));
    let painter = ui.painter_at(half);
    let placement = Placement::new(half, size, state.canvas);
    paint_picture(state, textures, &painter, placement.on_screen);
    if let Some(prediction) = state.compared_answer() {
        let mut labels = Labels::on_canvas(&painter, half);
        let visible = state.compared_boxes();
        let drawn = |index: usize| {
            let detection = &prediction.detections()[index];
            let clipped = detection
                .bounds
                .clipped(prediction.width, prediction.height);
            let color = theme::class_color(comparing.classes.left_of(detection.class_id));
            (detection, placement.screen_from_picture(clipped), color)
        };
        for &index in visible.iter().rev() {
            let (_, place, color) = drawn(index);
            boxes::frame(&painter, place, color, 1.0, false, boxes::Line::Solid);
        }
        for &index in &visible {
            let (detection, place, color) = drawn(index);
            boxes::tag(
                &mut labels,
                place,
                &boxes::tag_texts(detection, None),
                color,
            );
        }
    }
    caption_ui(ui, state, half, ("B", comparing.right));
    if let Some(view) = placement.navigated(ui, &response, state) {
        commands.push(Command::SetCanvas(view));
    }
}

/// Whose picture it is, and for a classifier what it saw.
pub(super) fn caption_ui(ui: &Ui, state: &State, half: Rect, (letter, run): (&str, RunId)) {
    let name = state.runs.get(run).map_or("", |run| run.info.name.as_str());
    let sample = state.shown_sample();
    let prediction = sample.and_then(|sample| state.runs.prediction(run, sample));
    let mut text = format!("{letter}: {name}");
    for line in prediction.into_iter().flat_map(|found| class_lines(found)) {
        text.push('\n');
        text.push_str(&line);
    }
    plate_ui(ui, half, Id::unique(("caption of a run", run.0)), &text);
}

/// Words over the picture, at the bottom left: the labels of boxes stand at their tops.
pub(super) fn plate_ui(ui: &Ui, canvas: Rect, id: Id, text: &str) {
    let painter = ui.painter_at(canvas);
    let font = FontId::proportional(12.0);
    let galley = painter.layout(text.to_owned(), font, Color32::WHITE, canvas.width() - 40.0);
    let size = galley.size() + vec2(20.0, 12.0);
    let left_top = canvas.left_bottom() + vec2(10.0, -10.0 - size.y);
    let place = Rect::from_min_size(left_top, size);
    painter.rect_filled(place, 6.0, Color32::from_black_alpha(215));
    painter.galley(place.min + vec2(10.0, 6.0), galley, Color32::WHITE);
    let response = ui.interact(place, id, Sense::hover());
    response.widget_info(|| WidgetInfo::labeled(Role::Label, true, text));
}

fn class_lines(prediction: &Prediction) -> impl Iterator<Item = String> {
    let classes = prediction.classes().iter().take(CLASSES);
    classes.map(|class| format!("{} {:.1} %", class.label, class.score * 100.0))
}
