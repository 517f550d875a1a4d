//! Boxes over the picture, each with its label: readable on any background, and never by colour alone.

use eframe::egui::{
    Color32, CornerRadius, FontId, Id, Painter, Pos2, Rect, Shape, Stroke, StrokeKind, Ui, pos2,
    vec2,
};

use super::super::theme;
use super::super::widgets::{box_count, verdict_sign};
use super::compared;
use super::placement::Placement;
use crate::domain::{Answer, BoundingBox, Detection, Prediction, RunId, Verdict};
use crate::evaluation::MATCHING_IOU;
use crate::review::VerdictKind;
use crate::state::{Display, State};

const LINE: f32 = 2.0;
const SELECTED_LINE: f32 = 3.5;
const TAG_PADDING: f32 = 4.0;
/// In points: some screens long.
const LONGEST_BROKEN_LINE: f32 = 40_000.0;
/// Stored boxes beyond these are drawn with whole lines and without labels, which is quick however many there are.
const MOST_DASHED: usize = 100;
/// The others step back while one is selected.
const DIMMED: f32 = 0.35;

/// Draws what the view shows of the prediction; gives the box under the pointer (index into the detections).
pub(super) fn boxes_ui(
    painter: &Painter,
    state: &State,
    placement: &Placement,
    pointer: Option<Pos2>,
) -> Option<usize> {
    let prediction = state.shown.prediction.as_ref()?;
    let detections = prediction.detections();
    let visible = state.view().visible_detections(prediction);
    let size = placement.picture_size();
    let place = |index: usize| {
        let bounds = detections[index].bounds;
        let clipped = bounds.clipped(size.x as u32, size.y as u32);
        placement.screen_from_picture(clipped)
    };
    let sample = state.shown_sample()?;
    let verdict = |index: usize| state.judgements.box_verdict(sample, index);
    let selected = state.shown.selected_box;
    let hovered = pointer.and_then(|at| smallest_under(&visible, place, at));
    // The best scores last, on top of the others; what is pointed at on top of all.
    let is_raised = |index: usize| Some(index) == hovered || Some(index) == selected;
    let mut order: Vec<usize> = visible.iter().rev().copied().collect();
    order.sort_by_key(|&index| is_raised(index));
    for &index in &order {
        let color = theme::class_color(detections[index].class_id);
        let strength = match selected {
            Some(selected) if selected != index && hovered != Some(index) => DIMMED,
            _ => 1.0,
        };
        let line = line_of(verdict(index));
        frame(
            painter,
            place(index),
            color,
            strength,
            is_raised(index),
            line,
        );
    }
    for &index in &order {
        let is_dimmed = selected.is_some_and(|selected| selected != index);
        if !is_dimmed || hovered == Some(index) {
            tag(
                painter,
                placement.canvas(),
                place(index),
                &tag_text(&detections[index], verdict(index)),
                theme::class_color(detections[index].class_id),
            );
        }
    }
    hovered
}

/// The boxes of the run that is compared with, dashed, and which line is whose. Labels only where the run on screen has no
/// such box.
pub(super) fn compared_ui(ui: &Ui, state: &State, placement: &Placement) {
    let (Some(comparing), Some(prediction)) = (&state.comparing, state.compared_answer()) else {
        return;
    };
    let painter = ui.painter_at(placement.canvas());
    let view = state.view_of_run(comparing.right);
    let visible = view.visible_detections(prediction);
    for &index in &visible {
        let detection = &prediction.detections()[index];
        let clipped = detection
            .bounds
            .clipped(prediction.width, prediction.height);
        let place = placement.screen_from_picture(clipped);
        let class = comparing.classes.left_of(detection.class_id);
        let color = theme::class_color(class);
        frame(&painter, place, color, 1.0, false, DASHED);
        if !is_matched(state, detection, class) {
            let text = tag_text(detection, None);
            tag(&painter, placement.canvas(), place, &text, color);
        }
    }
    legend_ui(
        ui,
        state,
        placement.canvas(),
        [comparing.left, comparing.right],
    );
}

/// The boxes that were stored with the image, dashed in white, below those of the model. Not where two runs are compared: there, what is
/// dashed is the other run's.
pub(super) fn stored_ui(ui: &Ui, state: &State, placement: &Placement) {
    let Display::Ready(info) = &state.shown.display else {
        return;
    };
    let stored = &info.stored_boxes;
    if !state.settings.show_stored_boxes || stored.is_empty() || state.comparing.is_some() {
        return;
    }
    let painter = ui.painter_at(placement.canvas());
    let [width, height] = info.size;
    let place = |bounds: BoundingBox| placement.screen_from_picture(bounds.clipped(width, height));
    let places: Vec<Rect> = stored
        .iter()
        .map(|stored| place(BoundingBox::from(stored.in_pixels(info.size))))
        .collect();
    let line = if stored.len() > MOST_DASHED {
        Line::Solid
    } else {
        DASHED
    };
    for place in &places {
        frame(&painter, *place, Color32::WHITE, 1.0, false, line);
    }
    for (stored, place) in stored.iter().zip(&places).take(MOST_DASHED) {
        // At the bottom, where the model's label is not.
        let text = stored.label.to_string();
        let below = place.translate(vec2(0.0, place.height()));
        tag(&painter, placement.canvas(), below, &text, Color32::WHITE);
    }
    let boxes = box_count(stored.len());
    let text = format!("Dashed in white: {boxes} stored with the image");
    let id = Id::unique("legend of stored boxes");
    compared::plate_ui(ui, placement.canvas(), id, &text);
}

/// Whether the run on screen shows a box of this class at this place.
fn is_matched(state: &State, detection: &Detection, class: u32) -> bool {
    let Some(prediction) = &state.shown.prediction else {
        return false;
    };
    let visible = state.view().visible_detections(prediction);
    visible.iter().any(|&index| {
        let other = &prediction.detections()[index];
        other.class_id == class && other.bounds.iou(&detection.bounds) >= MATCHING_IOU
    })
}

/// Which line is whose; for a classifier, what each of them saw.
fn legend_ui(ui: &Ui, state: &State, canvas: Rect, runs: [RunId; 2]) {
    let [left, right] = runs.map(|run| {
        let run = state.runs.get(run);
        run.map_or("", |run| run.info.name.as_str())
    });
    let shown = state.shown.prediction.as_deref();
    let text = match shown.map(|prediction| &prediction.answer) {
        Some(Answer::Classes(_)) => {
            let top = |prediction: Option<&Prediction>| {
                let first = prediction.and_then(|prediction| prediction.classes().first());
                first.map_or_else(
                    || "no answer".to_owned(),
                    |class| format!("{} {:.1} %", class.label, class.score * 100.0),
                )
            };
            let other = top(state.compared_answer());
            format!("A, {left}: {}\nB, {right}: {other}", top(shown))
        }
        _ => format!("A, solid: {left}\nB, dashed: {right}"),
    };
    compared::plate_ui(ui, canvas, Id::unique("legend of two runs"), &text);
}

/// Small boxes inside large ones can be pointed at.
fn smallest_under(visible: &[usize], place: impl Fn(usize) -> Rect, at: Pos2) -> Option<usize> {
    visible
        .iter()
        .copied()
        .filter(|&index| place(index).contains(at))
        .min_by(|&left, &right| place(left).area().total_cmp(&place(right).area()))
}

/// How an edge is drawn: verdicts and runs can be told apart without colours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Line {
    Solid,
    /// Dashes of these lengths, one after the other, with a gap after each, in points.
    Broken(&'static [f32], f32),
}

/// Rejected.
pub(super) const DASHED: Line = Line::Broken(&[8.0], 5.0);
const DOTTED: Line = Line::Broken(&[2.0], 4.0);
const DASH_DOTTED: Line = Line::Broken(&[9.0, 2.0], 4.0);

fn line_of(verdict: Option<&Verdict>) -> Line {
    match verdict {
        None | Some(Verdict::Accept) => Line::Solid,
        Some(Verdict::Reject) => DASHED,
        Some(Verdict::Unsure) => DOTTED,
        Some(Verdict::WrongClass(_)) => DASH_DOTTED,
    }
}

/// With the verdict's sign, and the class that would be right.
pub(super) fn tag_text(detection: &Detection, verdict: Option<&Verdict>) -> String {
    let text = format!("{} {:.0} %", detection.label, detection.score * 100.0);
    match verdict {
        None => text,
        Some(Verdict::WrongClass(right)) => format!("≠ {text} → {right}"),
        Some(other) => format!("{} {text}", verdict_sign(VerdictKind::from(other))),
    }
}

/// A coloured line between two dark ones.
pub(super) fn frame(
    painter: &Painter,
    rect: Rect,
    color: Color32,
    strength: f32,
    is_raised: bool,
    line: Line,
) {
    let corner = CornerRadius::same(2);
    if is_raised {
        let fill = color.gamma_multiply(0.10);
        painter.rect_filled(rect, corner, fill);
    }
    let width = if is_raised { SELECTED_LINE } else { LINE };
    let dark = Color32::from_black_alpha((170.0 * strength) as u8);
    let outline = Stroke::new(width + 2.0, dark);
    let stroke = Stroke::new(width, color.gamma_multiply(strength));
    let Line::Broken(dashes, gap) = line else {
        painter.rect_stroke(rect, corner, outline, StrokeKind::Middle);
        painter.rect_stroke(rect, corner, stroke, StrokeKind::Middle);
        return;
    };
    // Where dashes would be too many to tell apart, or to draw, the line is whole.
    let around = 2.0 * (rect.width() + rect.height());
    let edges = [
        rect.left_top(),
        rect.right_top(),
        rect.right_bottom(),
        rect.left_bottom(),
        rect.left_top(),
    ];
    if !around.is_finite() || around > LONGEST_BROKEN_LINE {
        painter.rect_stroke(rect, corner, stroke, StrokeKind::Middle);
        return;
    }
    let gaps = vec![gap; dashes.len()];
    for stroke in [outline, stroke] {
        painter.extend(Shape::dashed_line_with_offset(
            &edges, stroke, dashes, &gaps, 0.0,
        ));
    }
}

/// Text on the class's colour, above the box where there is room.
pub(super) fn tag(painter: &Painter, canvas: Rect, rect: Rect, text: &str, background: Color32) {
    let color = theme::text_on(background);
    let font = FontId::new(12.0, theme::strong_family());
    let galley = painter.layout_no_wrap(text.to_owned(), font, color);
    let size = galley.size() + vec2(2.0 * TAG_PADDING, 3.0);
    let fits_above = rect.top() - size.y >= canvas.top();
    let top = if fits_above {
        rect.top() - size.y
    } else {
        rect.top().max(canvas.top())
    };
    let right_most = (canvas.right() - size.x).max(canvas.left());
    let left = (rect.left() - LINE / 2.0).clamp(canvas.left(), right_most);
    let place = Rect::from_min_size(pos2(left, top), size);
    let edge = Stroke::new(1.0, Color32::from_black_alpha(150));
    painter.rect(place, 3.0, background, edge, StrokeKind::Outside);
    painter.galley(place.min + vec2(TAG_PADDING, 1.5), galley, color);
}
