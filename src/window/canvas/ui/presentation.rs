//! Presentation mode: one image on a dark screen with large predictions, and nothing that reveals where the image is
//! stored.

use eframe::egui::{
    Align2, CentralPanel, Color32, Context, FontId, Frame, Id, Key, Rect, Role, Sense, Stroke, StrokeKind, Ui, Vec2,
    ViewportCommand, WidgetInfo, pos2, vec2,
};

use crate::domain::{Prediction, PredictionContent, SampleId};
use crate::window::canvas::ui::{Labels, Placement, image_size, paint_image};
use crate::window::state::{
    BrowseCommand, CanvasView, Command, Commands, Display, Presenting, ReviewCommand, Settings, State, Step, ViewNumber,
};
use crate::window::ui::textures::Textures;
use crate::window::ui::theme;

const BACKDROP: Color32 = Color32::from_rgb(8, 9, 11);
/// How long a box or class takes to fade in, and the time between two, in seconds.
const FADE_SECS: f64 = 0.5;
const STAGGER_SECS: f64 = 0.12;
/// The last box starts no later than this.
const LAST_BEGINS_SECS: f64 = 1.5;
const KEYS_SHOWN_SECS: f64 = 4.0;

#[derive(Default)]
pub(crate) struct PresentationMemory {
    /// `None` before the first frame: a window can open full screen because it was closed like that.
    is_fullscreen: Option<bool>,
    /// The shown sample, and since when it is visible, in seconds of the window's clock.
    shown: Option<SampleId>,
    seen_since: Option<f64>,
    /// When the key hints disappear.
    keys_until: f64,
}

/// Enters and leaves full screen as the state requires.
pub(crate) fn follow_fullscreen(ctx: &Context, state: &State, memory: &mut PresentationMemory) {
    let wanted = state.presenting.is_some();
    let of_window = ctx.input(|input| input.viewport().fullscreen);
    if must_switch(memory.is_fullscreen, of_window, wanted) {
        ctx.send_viewport_cmd(ViewportCommand::Fullscreen(wanted));
        *memory = PresentationMemory {
            keys_until: ctx.input(|input| input.time) + KEYS_SHOWN_SECS,
            ..PresentationMemory::default()
        };
    }
    memory.is_fullscreen = Some(wanted);
}

/// The window's own report counts only before the first frame: later, the user may have changed it on the desktop.
fn must_switch(remembered: Option<bool>, of_window: Option<bool>, wanted: bool) -> bool {
    remembered.or(of_window).unwrap_or_default() != wanted
}

/// Draws the presentation instead of all panels.
pub(crate) fn presentation_ui(
    ui: &mut Ui,
    state: &State,
    textures: &mut Textures,
    memory: &mut PresentationMemory,
    commands: &mut Commands,
) {
    let now = ui.input(|input| input.time);
    if memory.shown != state.shown_sample() {
        memory.shown = state.shown_sample();
        memory.seen_since = None;
    }
    let is_there = !matches!(state.shown.display, Display::Loading);
    if memory.seen_since.is_none() && is_there {
        memory.seen_since = Some(now);
    }
    let seen_secs = memory.seen_since.map_or(0.0, |since| now - since);
    CentralPanel::default().frame(Frame::new().fill(BACKDROP)).show(ui, |ui| {
        let screen = ui.available_rect_before_wrap();
        image_ui(ui, state, textures, screen, seen_secs);
        keys_ui(ui, state, memory, screen, now);
    });
    turn(ui.ctx(), state, memory, seen_secs, commands);
}

/// The command of a key while presenting.
pub(crate) fn command(key: Key, presenting: Presenting, settings: &Settings) -> Option<Command> {
    let walk = |step| Some(BrowseCommand::Walk(step).into());
    let wait = |by| Some(ReviewCommand::SetNumber(ViewNumber::SlideSecs, settings.slide_secs + by).into());
    match key {
        Key::Escape | Key::F11 => Some(ReviewCommand::Present(false).into()),
        Key::Space => Some(ReviewCommand::PlaySlides(!presenting.is_playing).into()),
        Key::ArrowRight | Key::PageDown => walk(Step::By(1)),
        Key::ArrowLeft | Key::PageUp => walk(Step::By(-1)),
        Key::Home => walk(Step::First),
        Key::End => walk(Step::Last),
        Key::ArrowUp => wait(1.0),
        Key::ArrowDown => wait(-1.0),
        _ => None,
    }
}

/// Shows the next image when the time is up; the first one follows the last.
fn turn(ctx: &Context, state: &State, memory: &mut PresentationMemory, seen_secs: f64, commands: &mut Commands) {
    let is_playing = state.presenting.is_some_and(|presenting| presenting.is_playing);
    if !is_playing || memory.seen_since.is_none() {
        return;
    }
    let left = f64::from(state.settings.slide_secs) - seen_secs;
    if left > 0.0 {
        ctx.request_repaint_after_secs(left as f32);
        return;
    }
    let order = state.order();
    let place = state.shown_sample().and_then(|id| order.place_of(id));
    let is_last = place.is_some_and(|place| place + 1 == order.len());
    let step = if is_last { Step::First } else { Step::By(1) };
    commands.push(BrowseCommand::Walk(step));
    // A single image is shown again.
    memory.seen_since = None;
    ctx.request_repaint();
}

fn image_ui(ui: &mut Ui, state: &State, textures: &mut Textures, screen: Rect, seen_secs: f64) {
    let Some(size) = image_size(state, textures) else {
        let text = match state.shown.display {
            Display::Failed(_) => "This image cannot be shown",
            _ => "",
        };
        let font = FontId::proportional(28.0);
        let center = Align2::CENTER_CENTER;
        ui.painter().text(screen.center(), center, text, font, Color32::GRAY);
        return;
    };
    // An audience must not see boxes of another image.
    let prediction = state.shown.prediction.as_deref();
    let prediction = prediction.filter(|_| !state.shown_is_outdated());
    let has_classes = prediction.is_some_and(|prediction| matches!(prediction.content, PredictionContent::Classes(_)));
    // Classes are below the image.
    let foot = if has_classes { screen.height() * 0.2 } else { 0.0 };
    let canvas = screen.with_max_y(screen.bottom() - foot);
    let placement = Placement::new(canvas, size, CanvasView::Fit);
    paint_image(state, textures, ui.painter(), placement.on_screen);
    let Some(prediction) = prediction else {
        return;
    };
    if has_classes {
        let place = screen.with_min_y(canvas.bottom());
        classes_ui(ui, state, prediction, place, seen_secs);
    } else {
        boxes_ui(ui, state, prediction, &placement, seen_secs);
    }
    let lasts = LAST_BEGINS_SECS + FADE_SECS;
    if seen_secs < lasts {
        ui.ctx().request_repaint();
    }
}

/// The opacity of the item at this index of the list, `0.0..=1.0`.
fn light(place: usize, seen_secs: f64) -> f32 {
    let begins = (place as f64 * STAGGER_SECS).min(LAST_BEGINS_SECS);
    ((seen_secs - begins) / FADE_SECS).clamp(0.0, 1.0) as f32
}

fn boxes_ui(ui: &mut Ui, state: &State, prediction: &Prediction, placement: &Placement, seen_secs: f64) {
    let visible = state.shown_boxes();
    let drawn = |place: usize, index: usize| {
        let detection = &prediction.detections()[index];
        let clipped = detection.bounds.clipped(prediction.width, prediction.height);
        let rect = placement.screen_from_image(clipped);
        let color = theme::class_color(&detection.label);
        (detection, rect, color, light(place, seen_secs))
    };
    let painter = ui.painter();
    // The highest score appears first, and is painted last: on top.
    for (place, &index) in visible.iter().enumerate().rev() {
        let (_, rect, color, light) = drawn(place, index);
        let dark = Stroke::new(7.0, Color32::from_black_alpha(150).gamma_multiply(light));
        painter.rect_stroke(rect, 4.0, dark, StrokeKind::Middle);
        let line = Stroke::new(4.0, color.gamma_multiply(light));
        painter.rect_stroke(rect, 4.0, line, StrokeKind::Middle);
    }
    let large = (placement.canvas().height() / 36.0).clamp(16.0, 34.0);
    let mut labels = Labels::new(painter, placement.canvas(), large, vec2(8.0, 3.0));
    for (place, &index) in visible.iter().enumerate() {
        let (detection, rect, color, light) = drawn(place, index);
        let text = format!("{} {:.0}%", detection.label, detection.score * 100.0);
        let ink = theme::text_on(color).gamma_multiply(light);
        let texts = [text, detection.label.clone()];
        let Some(label) = labels.place(rect, &texts, ink) else {
            continue;
        };
        painter.rect_filled(label.plate, 5.0, color.gamma_multiply(light));
        said(ui, label.plate, index, &texts[0]);
        painter.galley(label.at, label.galley, ink);
    }
}

fn classes_ui(ui: &mut Ui, state: &State, prediction: &Prediction, place: Rect, seen_secs: f64) {
    let sizes = [0.36_f32, 0.2, 0.2];
    let mut top = place.top() + place.height() * 0.04;
    let classes = state.view().visible_classes(prediction);
    for (rank, (class, share)) in classes.iter().zip(sizes).enumerate() {
        let light = light(rank * 2, seen_secs);
        let text = format!("{} {:.0}%", class.label, class.score * 100.0);
        let strength = if rank == 0 { 255 } else { 165 };
        let ink = Color32::from_gray(strength).gamma_multiply(light);
        let font = FontId::new(place.height() * share * 0.82, theme::strong_family());
        let height = place.height() * share;
        let at = pos2(place.center().x, top + height / 2.0);
        let line = ui.painter().text(at, Align2::CENTER_CENTER, &text, font, ink);
        said(ui, line, rank, &text);
        top += height * 1.12;
    }
}

/// Announces painted text to screen readers.
fn said(ui: &Ui, place: Rect, index: usize, text: &str) {
    let id = Id::unique(("presented", index));
    let response = ui.interact(place, id, Sense::hover());
    response.widget_info(|| WidgetInfo::labeled(Role::Label, true, text));
}

/// The key hints, for a while and whenever the pointer moves.
fn keys_ui(ui: &mut Ui, state: &State, memory: &mut PresentationMemory, screen: Rect, now: f64) {
    let has_moved = ui.input(|input| input.pointer.delta() != Vec2::ZERO);
    if has_moved {
        memory.keys_until = now + KEYS_SHOWN_SECS;
    }
    let left = memory.keys_until - now;
    if left <= 0.0 {
        return;
    }
    ui.ctx().request_repaint_after_secs(left as f32);
    let is_playing = state.presenting.is_some_and(|presenting| presenting.is_playing);
    let what = if is_playing { "pauses" } else { "plays" };
    let text = format!(
        "Space {what}  ·  ←/→ previous, next  ·  ↑/↓ seconds per image ({:.0})  ·  Escape exits",
        state.settings.slide_secs
    );
    let font = FontId::proportional(16.0);
    let painter = ui.painter();
    let galley = painter.layout_no_wrap(text.clone(), font, Color32::from_gray(225));
    let size = galley.size() + vec2(28.0, 14.0);
    let center = pos2(screen.center().x, screen.top() + size.y);
    let plate = Rect::from_center_size(center, size);
    painter.rect_filled(plate, 8.0, Color32::from_black_alpha(210));
    painter.galley(plate.min + vec2(14.0, 7.0), galley, Color32::WHITE);
    said(ui, plate, usize::MAX, &text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_closed_while_presenting_regains_its_frame() {
        assert!(must_switch(None, Some(true), false));
        assert!(!must_switch(None, None, false));
        assert!(!must_switch(Some(false), Some(true), false), "the user's own full screen stays");
        assert!(must_switch(Some(false), Some(false), true));
    }

    #[test]
    fn boxes_appear_in_turn_within_two_seconds() {
        assert!(light(0, 0.3) > light(1, 0.3));
        assert!(light(0, 0.0) <= 0.0);
        assert!(light(500, LAST_BEGINS_SECS + FADE_SECS) >= 1.0);
    }
}
