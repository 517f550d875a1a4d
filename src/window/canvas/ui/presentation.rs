//! Presentation mode: one image on a dark screen with large predictions, and nothing that reveals where the image is
//! stored.

use std::fmt::Debug;
use std::hash::Hash;

use eframe::egui::{CentralPanel, Event, Modifiers, ViewportCommand};

use crate::domain::{ModelTask, Prediction, SampleId, ViewSettings};
use crate::window::canvas::ui::boxes::{drawn_objects, reserve_small, truth_labels_ui, truth_legend, truth_ui};
use crate::window::canvas::ui::{Labels, Placement, image_size, paint_image, position_texts};
use crate::window::comparison::ui::canvas::{Caption, Side, divider_ui, names, right_objects};
use crate::window::explain::ui::{heat_ui, status_text};
use crate::window::state::{CanvasView, Display, Explanation, RightSide, ShownObject, Step, ViewNumber};
use crate::window::ui::keys::shortcut_text;
use crate::window::ui::prelude::*;
use crate::window::ui::textures::Textures;

const BACKDROP: Color32 = Color32::from_rgb(8, 9, 11);
/// How long a box or class takes to fade in, and the time between two, in seconds.
const FADE_SECS: f64 = 0.5;
const STAGGER_SECS: f64 = 0.12;
/// The last box starts no later than this.
const LAST_BEGINS_SECS: f64 = 1.5;
const KEYS_SHOWN_SECS: f64 = 4.0;
const CAPTION_SIZE: f32 = 18.0;

/// The actions that work here, besides those of [`command`]. The first ones are among the key hints.
const ACTIONS: [Action; 13] = [
    Action::PreviousRun,
    Action::NextRun,
    Action::NextLayout,
    Action::DividerLeft,
    Action::DividerRight,
    Action::Explain,
    Action::ToggleStoredBoxes,
    Action::ToggleCaption,
    Action::PreviousImage,
    Action::NextImage,
    Action::FirstImage,
    Action::LastImage,
    Action::Present,
];
const HINTED_ACTIONS: usize = 8;
/// A space at which no line ends.
const UNBROKEN: &str = "\u{a0}";

#[derive(Default)]
pub(crate) struct PresentationMemory {
    /// `None` before the first frame: a window can open full screen because it was closed like that.
    is_fullscreen: Option<bool>,
    /// The shown sample, and since when it is visible, in seconds of the window's clock.
    shown: Option<SampleId>,
    seen_since: Option<f64>,
    /// When the key hints disappear.
    keys_until: f64,
    /// What the last key may have changed without a visible effect.
    hint: Option<Hint>,
}

/// Shown with the key hints.
#[derive(PartialEq)]
struct Hint {
    slide_secs: f32,
    min_score: Option<f32>,
    refusal: Option<&'static str>,
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
        image_ui(ui, state, textures, screen, seen_secs, commands);
        plates_ui(ui, state, memory, screen, now);
    });
    turn(ui.ctx(), state, memory, seen_secs, commands);
}

/// The command of a key while presenting, which may be that of an action.
pub(crate) fn command(key: Key, modifiers: Modifiers, action: Option<Action>, state: &State) -> Option<Command> {
    if let Some(action) = action.filter(|action| ACTIONS.contains(action)) {
        return Some(action.into());
    }
    if modifiers.alt || modifiers.command {
        return None;
    }
    let walk = |step| Some(BrowseCommand::Walk(step).into());
    let wait = |by| Some(ReviewCommand::SetNumber(ViewNumber::SlideSecs, state.settings.slide_secs + by).into());
    let is_playing = state.presenting.is_some_and(|presenting| presenting.is_playing);
    match key {
        Key::Escape => Some(ReviewCommand::EndPresentation.into()),
        Key::Space => Some(ReviewCommand::PlaySlides(!is_playing).into()),
        Key::ArrowRight | Key::PageDown => walk(Step::By(1)),
        Key::ArrowLeft | Key::PageUp => walk(Step::By(-1)),
        Key::ArrowUp => wait(1.0),
        Key::ArrowDown => wait(-1.0),
        Key::Plus | Key::Equals => Some(ReviewCommand::StepMinScore(1.0).into()),
        Key::Minus => Some(ReviewCommand::StepMinScore(-1.0).into()),
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

/// What one side shows over the image.
struct Content<'s> {
    is_right: bool,
    prediction: Option<&'s Prediction>,
    /// Indices of its visible boxes, highest score first.
    boxes: Vec<usize>,
    /// Below the image.
    classes: Vec<String>,
    objects: Vec<ShownObject>,
    caption: String,
}

impl<'s> Content<'s> {
    /// The run on screen. `right` is next to it.
    fn left(state: &'s State, right: Option<RightSide>) -> Self {
        // An audience must not see boxes of another image.
        let prediction = state.shown.prediction.as_deref().filter(|_| !state.shown_is_outdated());
        let objects = drawn_objects(state);
        let name = match right {
            Some(right) => names(state, right).into_iter().next(),
            None => state.run().map(|run| run.info.name.clone()).filter(|_| state.settings.show_caption),
        };
        Self {
            is_right: false,
            prediction,
            boxes: prediction.map_or_else(Vec::new, |_| state.shown_boxes()),
            classes: class_lines(prediction, &state.view()),
            caption: caption_text(state, name, &objects),
            objects,
        }
    }

    fn right(state: &'s State, right: RightSide) -> Self {
        let [_, caption] = names(state, right);
        let objects = right_objects(state, right);
        let content =
            Self { is_right: true, prediction: None, boxes: Vec::new(), classes: Vec::new(), objects, caption };
        let sample = state.shown_sample();
        match right {
            RightSide::Truth => {
                let classes = sample.map_or_else(Vec::new, |sample| state.truth_labels(sample));
                Self { classes, ..content }
            }
            RightSide::Run(run) => {
                let is_outdated = state.runs.get(run).zip(sample).is_some_and(|(run, sample)| run.is_outdated(sample));
                let prediction = state.compared_prediction().filter(|_| !is_outdated);
                Self {
                    prediction,
                    boxes: prediction.map_or_else(Vec::new, |_| state.compared_boxes()),
                    classes: class_lines(prediction, &state.view_of_run(run)),
                    ..content
                }
            }
        }
    }
}

fn class_lines(prediction: Option<&Prediction>, view: &ViewSettings) -> Vec<String> {
    let classes = prediction.map_or(&[][..], |prediction| view.visible_classes(prediction));
    classes.iter().map(|class| format!("{} {:.0}%", class.label, class.score * 100.0)).collect()
}

/// The name of a side and, if the user asked for it, what there is to know about the image.
fn caption_text(state: &State, name: Option<String>, objects: &[ShownObject]) -> String {
    let mut lines: Vec<String> = name.into_iter().collect();
    let shown = state.shown_sample().filter(|_| state.settings.show_caption);
    if let Some((sample, entry)) = shown.and_then(|sample| Some((sample, state.samples.get(sample)?))) {
        let [position, _] = position_texts(state, sample);
        lines.push(format!("{position}  ·  {}", entry.uri.file_name()));
        let note = state.judgments.note(sample);
        lines.extend((!note.is_empty()).then(|| note.to_owned()));
        lines.extend((!objects.is_empty()).then(|| truth_legend(state, objects)));
    }
    lines.join("\n")
}

fn image_ui(ui: &Ui, state: &State, textures: &mut Textures, screen: Rect, seen_secs: f64, commands: &mut Commands) {
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
    // Classes are below the image.
    let has_classes = state.task() == Some(ModelTask::Classification);
    let foot = if has_classes { screen.height() * 0.2 } else { 0.0 };
    let (canvas, foot) = screen.split_top_bottom_at_y(screen.bottom() - foot);
    let right = state.right_side();
    let left = Content::left(state, right);
    if let Some(right) = right {
        let image = Placement::new(canvas, size, CanvasView::Fit).on_screen;
        let sides = Side::both(state, canvas, image);
        let (left_foot, right_foot) = foot.split_left_right_at_x(foot.center().x);
        let contents = [(left, left_foot), (Content::right(state, right), right_foot)];
        for (side, (content, foot)) in sides.into_iter().zip(contents) {
            side_ui(ui, state, textures, (side, size), &content, seen_secs);
            classes_ui(ui, &content, foot, seen_secs);
        }
        divider_ui(ui, state, [canvas, image], canvas.width(), commands);
    } else {
        side_ui(ui, state, textures, (Side::whole(canvas), size), &left, seen_secs);
        classes_ui(ui, &left, foot, seen_secs);
    }
    let lasts = LAST_BEGINS_SECS + FADE_SECS;
    if seen_secs < lasts {
        ui.ctx().request_repaint();
    }
}

/// `size` is the image's in pixels.
fn side_ui(
    ui: &Ui,
    state: &State,
    textures: &mut Textures,
    (side, size): (Side, Vec2),
    content: &Content<'_>,
    seen_secs: f64,
) {
    let painter = ui.painter_at(side.clip);
    let placement = Placement::new(side.canvas, size, CanvasView::Fit);
    paint_image(state, textures, &painter, placement.on_screen);
    if !content.is_right {
        heat_ui(&painter, state, textures, placement.on_screen);
    }
    let id = Id::unique(("caption in a presentation", content.is_right));
    let has_caption = !content.caption.is_empty();
    let caption = has_caption.then(|| Caption::new(ui, side.half, id, CAPTION_SIZE, content.caption.clone()));
    let large = (side.canvas.height() / 36.0).clamp(16.0, 34.0);
    let mut labels = Labels::new(&painter, side.clip, large, vec2(8.0, 3.0));
    if let Some(caption) = &caption {
        labels.reserve(caption.place);
    }
    reserve_small(&content.objects, &placement, &mut labels);
    truth_ui(&painter, &content.objects, &placement, None);
    boxes_ui(ui, content, &placement, (&painter, &mut labels), seen_secs);
    truth_labels_ui(&content.objects, &placement, &mut labels);
    labels.paint();
    if let Some(caption) = caption {
        caption.ui(ui, side.half);
    }
}

/// The opacity of the item at this index of the list, `0.0..=1.0`.
fn light(place: usize, seen_secs: f64) -> f32 {
    let begins = (place as f64 * STAGGER_SECS).min(LAST_BEGINS_SECS);
    ((seen_secs - begins) / FADE_SECS).clamp(0.0, 1.0) as f32
}

fn boxes_ui(
    ui: &Ui,
    content: &Content<'_>,
    placement: &Placement,
    (painter, labels): (&Painter, &mut Labels<'_>),
    seen_secs: f64,
) {
    let Some(prediction) = content.prediction else {
        return;
    };
    let visible = &content.boxes;
    let drawn = |place: usize, index: usize| {
        let detection = &prediction.detections()[index];
        let clipped = detection.bounds.clipped(prediction.width, prediction.height);
        let rect = placement.screen_from_image(clipped);
        let color = theme::class_color(&detection.label);
        (detection, rect, color, light(place, seen_secs))
    };
    // The highest score appears first, and is painted last: on top.
    for (place, &index) in visible.iter().enumerate().rev() {
        let (_, rect, color, light) = drawn(place, index);
        let dark = Stroke::new(7.0, Color32::from_black_alpha(150).gamma_multiply(light));
        painter.rect_stroke(rect, 4.0, dark, StrokeKind::Middle);
        let line = Stroke::new(4.0, color.gamma_multiply(light));
        painter.rect_stroke(rect, 4.0, line, StrokeKind::Middle);
    }
    for (place, &index) in visible.iter().enumerate() {
        let (detection, rect, color, light) = drawn(place, index);
        let text = format!("{} {:.0}%", detection.label, detection.score * 100.0);
        let ink = theme::text_on(color).gamma_multiply(light);
        let texts = [text, detection.label.clone()];
        let Some(label) = labels.place(rect, &texts, ink) else {
            continue;
        };
        painter.rect_filled(label.plate, 5.0, color.gamma_multiply(light));
        said(ui, label.plate, (content.is_right, index), &texts[0]);
        painter.galley(label.at, label.galley, ink);
    }
}

fn classes_ui(ui: &Ui, content: &Content<'_>, place: Rect, seen_secs: f64) {
    let sizes = [0.36_f32, 0.2, 0.2];
    let mut top = place.top() + place.height() * 0.04;
    for (rank, (text, share)) in content.classes.iter().zip(sizes).enumerate() {
        let light = light(rank * 2, seen_secs);
        let strength = if rank == 0 { 255 } else { 165 };
        let ink = Color32::from_gray(strength).gamma_multiply(light);
        let font = FontId::new(place.height() * share * 0.82, theme::strong_family());
        let height = place.height() * share;
        let at = pos2(place.center().x, top + height / 2.0);
        let line = ui.painter_at(place).text(at, Align2::CENTER_CENTER, text, font, ink);
        said(ui, line, (content.is_right, rank), text);
        top += height * 1.12;
    }
}

/// Announces painted text to screen readers.
fn said(ui: &Ui, place: Rect, number: impl Hash + Debug, text: &str) {
    let id = Id::unique(("presented", number));
    let response = ui.interact(place, id, Sense::hover());
    response.widget_info(|| WidgetInfo::labeled(Role::Label, true, text));
}

/// The key hints, for a while, when the pointer moves, after keys without a visible effect and after unknown keys; and
/// the state of the explanation.
fn plates_ui(ui: &Ui, state: &State, memory: &mut PresentationMemory, screen: Rect, now: f64) {
    let hint = Some(Hint {
        slide_secs: state.settings.slide_secs,
        min_score: min_score(state),
        refusal: state.presenting.and_then(|presenting| presenting.refusal),
    });
    let is_unknown_key = |event: &Event| matches!(event, Event::Key { pressed: true, .. });
    let is_asked = ui.input(|input| {
        let has_moved = input.pointer.delta() != Vec2::ZERO && !input.pointer.any_down();
        has_moved || input.events.iter().any(is_unknown_key)
    });
    if is_asked || memory.hint != hint {
        memory.keys_until = now + KEYS_SHOWN_SECS;
        memory.hint = hint;
    }
    let mut texts = Vec::new();
    let left = memory.keys_until - now;
    if left > 0.0 {
        ui.ctx().request_repaint_after_secs(left as f32);
        texts.push(hints(ui.ctx(), state));
        texts.extend(memory.hint.as_ref().and_then(|hint| hint.refusal).map(str::to_owned));
    }
    texts.extend(match &state.shown.explanation {
        // The reason may contain a path.
        Explanation::Failed { question, .. } => Some(format!("“{}” could not be explained", question.label)),
        explanation => status_text(explanation),
    });
    let mut top = screen.top() + 16.0;
    for (number, text) in texts.iter().enumerate() {
        top = plate_ui(ui, screen, top, (number, text)) + 8.0;
    }
}

/// Draws a text at the top of the screen, and returns its lower edge.
fn plate_ui(ui: &Ui, screen: Rect, top: f32, (number, text): (usize, &str)) -> f32 {
    let font = FontId::proportional(16.0);
    let margin = vec2(14.0, 7.0);
    let width = screen.width() - 4.0 * margin.x;
    let galley = ui.painter().layout(text.to_owned(), font, Color32::from_gray(225), width);
    let size = galley.size() + 2.0 * margin;
    let plate = Rect::from_center_size(pos2(screen.center().x, top + size.y / 2.0), size);
    ui.painter().rect_filled(plate, 8.0, Color32::from_black_alpha(210));
    ui.painter().galley(plate.min + margin, galley, Color32::WHITE);
    said(ui, plate, ("plate", number), &text.replace(UNBROKEN, " "));
    plate.bottom()
}

/// The minimum score of the run on screen.
fn min_score(state: &State) -> Option<f32> {
    state.task().map(|task| state.view().min_score_for(task))
}

/// The keys that have an effect now.
fn hints(ctx: &Context, state: &State) -> String {
    let is_playing = state.presenting.is_some_and(|presenting| presenting.is_playing);
    let mut hints = vec![
        format!("Space {}", if is_playing { "pauses" } else { "plays" }),
        "←/→ previous, next".to_owned(),
        format!("↑/↓ seconds per image ({:.0})", state.settings.slide_secs),
    ];
    hints.extend(min_score(state).map(|score| format!("+/− minimum score ({score:.2})")));
    let has_effect = |action: &Action| match action {
        Action::ToggleStoredBoxes => !state.shown_objects().is_empty(),
        action => action.check(state).is_ok(),
    };
    for action in ACTIONS.into_iter().take(HINTED_ACTIONS).filter(has_effect) {
        let keys = shortcut_text(ctx, action).unwrap_or_default();
        hints.push(format!("{keys} {}", action.label().to_lowercase()));
    }
    hints.push("Escape exits".to_owned());
    let hints: Vec<String> = hints.iter().map(|hint| hint.replace(' ', UNBROKEN)).collect();
    hints.join("  ·  ")
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
