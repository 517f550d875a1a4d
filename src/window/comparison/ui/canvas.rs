//! The same image again, with the predictions of another run.

use std::sync::Arc;

use eframe::egui::{Color32, FontId, Galley, Id, Rect, Role, Sense, Ui, WidgetInfo, vec2};

use crate::domain::{Prediction, RunId};
use crate::window::canvas;
use crate::window::canvas::ui::labels::Labels;
use crate::window::canvas::ui::paint_image;
use crate::window::canvas::ui::placement::Placement;
use crate::window::state::{Commands, Comparing, ReviewCommand, ShownObject, State};
use crate::window::ui::textures::Textures;
use crate::window::ui::theme;

/// The gap between the two images, in points.
const GAP: f32 = 2.0;
/// The number of classes named for a classifier.
const CLASSES: usize = 3;

/// Leaves the left half in `canvas` and returns the right one.
pub(crate) fn split(canvas: &mut Rect) -> Rect {
    let middle = canvas.center().x;
    let (mut left, mut right) = canvas.split_left_right_at_x(middle);
    left.max.x -= GAP / 2.0;
    right.min.x += GAP / 2.0;
    *canvas = left;
    right
}

/// The right half, with the zoom and position of the left one. `size` is the image's in pixels.
pub(crate) fn image_ui(
    ui: &mut Ui,
    state: &State,
    textures: &mut Textures,
    comparing: &Comparing,
    (half, size): (Rect, eframe::egui::Vec2),
    commands: &mut Commands,
) {
    let id = Id::unique("the image of the other run");
    let response = ui.interact(half, id, Sense::CLICK | Sense::DRAG);
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, "Image with the other run"));
    let painter = ui.painter_at(half);
    let placement = Placement::new(half, size, state.canvas);
    paint_image(state, textures, &painter, placement.on_screen);
    let objects = if state.settings.show_stored_boxes { state.compared_objects() } else { Vec::new() };
    let caption = caption(ui, state, half, ("B", comparing.right), &objects);
    canvas::ui::boxes::truth_ui(ui, &objects, &placement, None);
    if let Some(prediction) = state.compared_prediction() {
        let mut labels = Labels::on_canvas(&painter, half);
        labels.reserve(caption.place);
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
            canvas::ui::boxes::frame(&painter, place, color, 1.0, false, canvas::ui::boxes::Line::Solid);
            if !state.settings.outlines_only && outcome(index).is_some_and(|outcome| outcome.kind.is_wrong()) {
                canvas::ui::boxes::wrong(&painter, place, 1.0);
            }
        }
        for &index in &visible {
            let (detection, place, color) = drawn(index);
            let texts = canvas::ui::boxes::tag_texts(detection, None, outcome(index));
            canvas::ui::boxes::tag(&mut labels, place, &texts, color);
        }
        canvas::ui::boxes::truth_labels_ui(&objects, &placement, &mut labels);
        if !state.settings.outlines_only {
            labels.paint();
        }
    }
    caption.ui(ui, half);
    if let Some(view) = placement.navigated(ui, &response, state, true) {
        commands.push(ReviewCommand::SetCanvas(view));
    }
}

/// The name of the run, a classifier's top classes, and the number of ground-truth objects that it missed.
pub(crate) fn caption(
    ui: &Ui,
    state: &State,
    half: Rect,
    (letter, run): (&str, RunId),
    objects: &[ShownObject],
) -> Caption {
    let name = state.runs.get(run).map_or("", |run| run.info.name.as_str());
    let sample = state.shown_sample();
    let prediction = sample.and_then(|sample| state.runs.prediction(run, sample));
    let mut text = format!("{letter}: {name}");
    for line in prediction.into_iter().flat_map(|found| class_lines(found)) {
        text.push('\n');
        text.push_str(&line);
    }
    if !objects.is_empty() {
        text.push('\n');
        text.push_str(&canvas::ui::boxes::truth_legend(state, objects));
    }
    Caption::new(ui, half, Id::unique(("caption of a run", run.0)), text)
}

/// Text on the image, at the bottom left. Painted last, and labels avoid it.
pub(crate) struct Caption {
    pub(crate) place: Rect,
    galley: Arc<Galley>,
    id: Id,
    text: String,
}

impl Caption {
    pub(crate) fn new(ui: &Ui, canvas: Rect, id: Id, text: String) -> Self {
        let font = FontId::proportional(12.0);
        let width = canvas.width() - 40.0;
        let galley = ui.painter().layout(text.clone(), font, Color32::WHITE, width);
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
