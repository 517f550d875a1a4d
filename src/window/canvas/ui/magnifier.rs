//! The selected box enlarged, with some of its surroundings.

use crate::domain::{Detection, Prediction};
use crate::window::ui::prelude::*;
use crate::window::ui::textures::Textures;

const HEIGHT: f32 = 210.0;
/// The margin on each side, as a fraction of the box's longer side.
const CONTEXT: f32 = 0.15;
/// Screen points per image pixel; with more, only a few pixels would be visible.
const MAX_ZOOM: f32 = 24.0;

pub(crate) fn magnifier_ui(ui: &mut Ui, state: &State, textures: &mut Textures, commands: &mut Commands) {
    let Some((prediction, detection)) = selected(state) else {
        let hint_ui = |ui: &mut Ui, _: &mut _| {
            let hint = RichText::new("Select a box to enlarge it").weak();
            truncated_ui(ui, hint);
        };
        ends_ui(ui, "box and its buttons", commands, hint_ui, |ui, commands| walk_ui(ui, state, commands));
        return;
    };
    crop_ui(ui, state, textures, detection);
    let name_ui = |ui: &mut Ui, _: &mut _| {
        let name = format!("{} {:.1}%", detection.label, detection.score * 100.0);
        truncated_ui(ui, strong(name));
    };
    ends_ui(ui, "box and its buttons", commands, name_ui, |ui, commands| {
        action_button_ui(ui, state, Action::ZoomToBox, commands);
        walk_ui(ui, state, commands);
    });
    let text = RichText::new(size_text(prediction, detection)).weak();
    wrapped_ui(ui, text);
}

fn selected(state: &State) -> Option<(&Prediction, &Detection)> {
    let prediction = state.shown.prediction.as_deref()?;
    let detection = prediction.detections().get(state.shown.selected_box?)?;
    Some((prediction, detection))
}

fn walk_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    action_icon_ui(ui, state, Action::PreviousBox, "←", commands);
    action_icon_ui(ui, state, Action::NextBox, "→", commands);
}

/// `123 × 88 pixels, 1.2 % of the image`
fn size_text(prediction: &Prediction, detection: &Detection) -> String {
    let bounds = detection.bounds.clipped(prediction.width, prediction.height);
    let whole = prediction.width as f32 * prediction.height as f32;
    format!(
        "{:.0} × {:.0} pixels, {:.1}% of the image",
        bounds.width(),
        bounds.height(),
        bounds.area() / whole.max(1.0) * 100.0
    )
}

fn crop_ui(ui: &mut Ui, state: &State, textures: &mut Textures, detection: &Detection) {
    let (place, _) = ui.allocate_exact_size(vec2(ui.available_width(), HEIGHT), Sense::hover());
    let painter = ui.painter_at(place);
    painter.rect_filled(place, 4.0, theme::canvas_fill(ui.visuals()));
    let (Some(sample), Some(source)) = (state.shown_sample(), &state.source) else {
        return;
    };
    let Some(shown) = textures.image_of(source.id, sample) else {
        let font = TextStyle::Body.resolve(ui.style());
        let color = ui.visuals().weak_text_color();
        painter.text(place.center(), Align2::CENTER_CENTER, "Reading…", font, color);
        return;
    };
    let [width, height] = shown.size();
    let bounds = detection.bounds.clipped(width, height);
    let size = vec2(bounds.width(), bounds.height()).max(Vec2::splat(1.0));
    let with_context = size + Vec2::splat(2.0 * CONTEXT * size.max_elem());
    let zoom = (place.size() / with_context).min_elem().min(MAX_ZOOM);
    let center = vec2(bounds.x1, bounds.y1) + size / 2.0;
    let origin = place.center() - center * zoom;
    let on_screen = Rect::from_min_size(origin, vec2(width as f32, height as f32) * zoom);
    shown.paint(&painter, on_screen);
    let outline = Rect::from_min_size(origin + vec2(bounds.x1, bounds.y1) * zoom, size * zoom);
    let stroke = |width: f32, color: Color32| Stroke::new(width, color);
    let dark = stroke(3.0, Color32::from_black_alpha(150));
    painter.rect_stroke(outline, 1.0, dark, StrokeKind::Outside);
    let line = stroke(1.5, theme::class_color(&detection.label));
    painter.rect_stroke(outline, 1.0, line, StrokeKind::Outside);
}
