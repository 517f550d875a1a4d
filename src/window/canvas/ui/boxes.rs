//! Boxes on the image with labels: legible on any background, and never distinguished only by color.

use eframe::egui::Shape;

use super::labels::Labels;
use super::placement::Placement;
use crate::domain::{BoundingBox, Detection, Prediction, PredictionContent, RunId, Verdict};
use crate::evaluation::MATCHING_IOU;
use crate::review::NamedOutcome;
use crate::window::comparison::ui::canvas::{CAPTION_SIZE, Caption, caption, names};
use crate::window::state::{RightSide, ShownObject};
use crate::window::ui::prelude::*;

const LINE: f32 = 2.0;
const SELECTED_LINE: f32 = 3.5;
/// The longest dashed line, in points: several screens.
const LONGEST_BROKEN_LINE: f32 = 40_000.0;
/// With more stored boxes than this, they are drawn with solid lines and without labels, which is always fast.
const MOST_DASHED: usize = 100;
/// About the height of a label, in points.
const SMALL: f32 = 16.0;
/// The opacity of the other boxes while one is selected.
const DIMMED: f32 = 0.35;

/// Draws the boxes that the filters show, the selected one where the pointer `moved` it (in image pixels). Returns the
/// box under the pointer, as an index into the detections.
pub(crate) fn boxes_ui(
    painter: &Painter,
    state: &State,
    placement: &Placement,
    pointer: Option<Pos2>,
    moved: Option<BoundingBox>,
    labels: &mut Labels<'_>,
) -> Option<usize> {
    let prediction = state.shown.prediction.as_ref()?;
    let detections = prediction.detections();
    let visible = state.shown_boxes();
    let size = placement.image_size();
    let selected = state.shown.selected_box;
    let place = |index: usize| {
        let bounds = moved.filter(|_| selected == Some(index)).unwrap_or(detections[index].bounds);
        let clipped = bounds.clipped(size.x as u32, size.y as u32);
        placement.screen_from_image(clipped)
    };
    let sample = state.shown_sample()?;
    let verdict = |index: usize| state.judgments.box_verdict(sample, index);
    let hovered = pointer.and_then(|at| smallest_under(&visible, place, at));
    // The highest scores last, on top of the others; the hovered and selected boxes on top of all.
    let is_raised = |index: usize| Some(index) == hovered || Some(index) == selected;
    let mut order: Vec<usize> = visible.iter().rev().copied().collect();
    order.sort_by_key(|&index| is_raised(index));
    for &index in &order {
        let color = theme::class_color(&detections[index].label);
        let strength = match selected {
            Some(selected) if selected != index && hovered != Some(index) => DIMMED,
            _ => 1.0,
        };
        let line = line_of(verdict(index));
        frame(painter, place(index), color, strength, is_raised(index), line);
        let is_wrong = state.outcome_of_box(sample, index).is_some_and(|outcome| outcome.kind.is_wrong());
        if is_wrong && !state.settings.outlines_only {
            wrong(painter, place(index), strength);
        }
    }
    labels_ui(state, labels, &visible, [selected, hovered], place);
    hovered
}

/// Labels of the highest scores are placed first, whatever the pointer is over: moving labels cannot be read. Hovered
/// and selected boxes are labeled even without room; while a box is selected, or with outlines only, the others have no
/// labels.
fn labels_ui(
    state: &State,
    labels: &mut Labels<'_>,
    visible: &[usize],
    [selected, hovered]: [Option<usize>; 2],
    place: impl Fn(usize) -> Rect,
) {
    let (Some(prediction), Some(sample)) = (&state.shown.prediction, state.shown_sample()) else {
        return;
    };
    let is_raised = |index: usize| [selected, hovered].contains(&Some(index));
    let mut without_room = Vec::new();
    for &index in visible {
        if (selected.is_some() || state.settings.outlines_only) && !is_raised(index) {
            continue;
        }
        let detection = &prediction.detections()[index];
        let verdict = state.judgments.box_verdict(sample, index);
        let texts = tag_texts(state, detection, verdict, state.outcome_of_box(sample, index));
        let color = theme::class_color(&detection.label);
        let is_placed = tag(labels, place(index), &texts, color);
        if !is_placed && is_raised(index) {
            without_room.push((index, texts, color));
        }
    }
    for (index, [text, _], color) in without_room {
        if let Some(label) = labels.insist(place(index), &text, theme::text_on(color)) {
            labels.add(label, color);
        }
    }
}

/// The dashed boxes of the run to compare with. Labeled only where the run on screen has no such box.
pub(crate) fn compared_ui(ui: &Ui, state: &State, placement: &Placement, labels: &mut Labels<'_>) {
    let (Some(comparing), Some(prediction)) = (&state.comparing, state.compared_prediction()) else {
        return;
    };
    let painter = ui.painter_at(placement.canvas());
    for index in state.compared_boxes() {
        let detection = &prediction.detections()[index];
        let clipped = detection.bounds.clipped(prediction.width, prediction.height);
        let place = placement.screen_from_image(clipped);
        let class = comparing.classes.left_of(detection.class_id);
        let color = theme::class_color(&detection.label);
        frame(&painter, place, color, 1.0, false, DASHED);
        if !is_matched(state, detection, class) && !state.settings.outlines_only {
            tag(labels, place, &tag_texts(state, detection, None, None), color);
        }
    }
}

/// Draws the ground-truth objects, dashed in white, below the model's boxes; missed ones with long dashes, and in the
/// accent color if selected. They are omitted where the boxes of two runs overlap, because the other run's boxes are
/// dashed there.
pub(crate) fn truth_ui(painter: &Painter, objects: &[ShownObject], placement: &Placement, selected: Option<usize>) {
    for (place, object) in truth_places(objects, placement) {
        let line = match object.is_false_negative() {
            _ if objects.len() > MOST_DASHED => Line::Solid,
            true => MISSED,
            false => DASHED,
        };
        let color = match selected {
            Some(index) if index == object.index => theme::accent(&painter.ctx().global_style().visuals),
            _ => Color32::WHITE,
        };
        frame(painter, place, color, 1.0, line == MISSED, line);
    }
}

/// The undetected object under the pointer, unless the box there, `hovered`, is smaller.
pub(crate) fn false_negative_under(
    state: &State,
    objects: &[ShownObject],
    placement: &Placement,
    pointer: Option<Pos2>,
    hovered: Option<usize>,
) -> Option<usize> {
    let at = pointer?;
    let under = truth_places(objects, placement)
        .filter(|(place, object)| object.is_false_negative() && clickable(*place).contains(at));
    let (place, object) = under.min_by(|left, right| left.0.area().total_cmp(&right.0.area()))?;
    let size = placement.image_size();
    let of_box = hovered.and_then(|index| {
        let detection = state.shown.prediction.as_ref()?.detections().get(index)?;
        Some(placement.screen_from_image(detection.bounds.clipped(size.x as u32, size.y as u32)).area())
    });
    of_box.is_none_or(|of_box| place.area() < of_box).then_some(object.index)
}

/// The area of an undetected object for the pointer: even the smallest one can be clicked.
fn clickable(place: Rect) -> Rect {
    Rect::from_center_size(place.center(), place.size().max(Vec2::splat(SMALL)))
}

/// Labels of ground-truth objects, if the model's labels leave room; found ones need none.
pub(crate) fn truth_labels_ui(objects: &[ShownObject], placement: &Placement, labels: &mut Labels<'_>) {
    let unlabeled = truth_places(objects, placement).filter(|(_, object)| object.is_found != Some(true));
    for (place, object) in unlabeled.take(MOST_DASHED) {
        let around = if is_small(place) {
            clickable(place)
        } else {
            // At the bottom, where the model's label is not.
            let bottom = place.bottom().min(placement.canvas().bottom());
            place.with_min_y(bottom).with_max_y(bottom)
        };
        tag(labels, around, &[object_text(object)], Color32::WHITE);
    }
}

/// Keeps labels, also their own, off undetected objects that a label would cover.
pub(crate) fn reserve_small(objects: &[ShownObject], placement: &Placement, labels: &mut Labels<'_>) {
    let small =
        truth_places(objects, placement).filter(|(place, object)| object.is_false_negative() && is_small(*place));
    for (place, _) in small.take(MOST_DASHED) {
        labels.reserve(clickable(place));
    }
}

fn is_small(place: Rect) -> bool {
    place.height() < 2.0 * SMALL
}

/// “person · FN” for a missed object, “✓ person · FN” if its label is right.
pub(crate) fn object_text(object: &ShownObject) -> String {
    match object.verdict.filter(|_| object.is_false_negative()) {
        Some(verdict) => format!("{} {} · FN", verdict_sign(verdict), object.label),
        None if object.is_false_negative() => format!("{} · FN", object.label),
        _ if !object.counts => format!("{} (ignored)", object.label),
        _ => object.label.clone(),
    }
}

/// The objects of the shown image, if they are to be drawn with the run on screen.
pub(crate) fn drawn_objects(state: &State) -> Vec<ShownObject> {
    let is_possible = match state.right_side() {
        Some(RightSide::Run(_)) => true,
        Some(RightSide::Truth) => false,
        None => state.comparing.is_none() || state.presenting.is_some(),
    };
    let is_wanted = state.settings.show_stored_boxes && is_possible;
    if is_wanted { state.shown_objects() } else { Vec::new() }
}

fn truth_places<'o>(
    objects: &'o [ShownObject],
    placement: &Placement,
) -> impl Iterator<Item = (Rect, &'o ShownObject)> {
    let size = placement.image_size();
    objects.iter().map(move |object| {
        let bounds = object.bounds.clipped(size.x as u32, size.y as u32);
        (placement.screen_from_image(bounds), object)
    })
}

/// The legend, if the lines need one.
pub(crate) fn legend(ui: &Ui, state: &State, objects: &[ShownObject], canvas: Rect) -> Option<Caption> {
    if let Some((right, run)) = state.right_side().zip(state.run_id()) {
        let [name, _] = names(state, right);
        return Some(caption(ui, state, canvas, (name, Some(run)), objects));
    }
    if let Some(comparing) = &state.comparing {
        state.compared_prediction()?;
        let text = legend_text(state, [comparing.left, comparing.right]);
        let id = Id::unique("legend of two runs");
        return Some(Caption::new(ui, canvas, id, CAPTION_SIZE, text));
    }
    if objects.is_empty() {
        return None;
    }
    let id = Id::unique("legend of the ground truth");
    Some(Caption::new(ui, canvas, id, CAPTION_SIZE, truth_legend(state, objects)))
}

pub(crate) fn truth_legend(state: &State, objects: &[ShownObject]) -> String {
    if !state.shown_sample().is_some_and(|sample| state.has_truth(sample)) {
        return format!("White dashes: stored with the image ({})", objects.len());
    }
    let missed = objects.iter().filter(|object| object.is_false_negative()).count();
    match missed {
        0 => format!("White dashes: ground truth ({})", objects.len()),
        _ => format!("White dashes: ground truth ({}). Long dashes: false negatives ({missed})", objects.len()),
    }
}

/// Whether the run on screen shows a box of this class at this position.
fn is_matched(state: &State, detection: &Detection, class: u32) -> bool {
    let Some(prediction) = &state.shown.prediction else {
        return false;
    };
    state.shown_boxes().into_iter().any(|index| {
        let other = &prediction.detections()[index];
        other.class_id == class && other.bounds.iou(&detection.bounds) >= MATCHING_IOU
    })
}

/// The legend of two runs; for a classifier, with the top class of each.
fn legend_text(state: &State, runs: [RunId; 2]) -> String {
    let [left, right] = runs.map(|run| {
        let run = state.runs.get(run);
        run.map_or("", |run| run.info.name.as_str())
    });
    let shown = state.shown.prediction.as_deref();
    match shown.map(|prediction| &prediction.content) {
        Some(PredictionContent::Classes(_)) => {
            let top = |prediction: Option<&Prediction>| {
                let first = prediction.and_then(|prediction| prediction.classes().first());
                first.map_or_else(
                    || "no prediction".to_owned(),
                    |class| format!("{} {:.1}%", class.label, class.score * 100.0),
                )
            };
            let other = top(state.compared_prediction());
            format!("A, {left}: {}\nB, {right}: {other}", top(shown))
        }
        _ => format!("A, solid: {left}\nB, dashed: {right}"),
    }
}

/// Allows pointing at small boxes inside large ones.
fn smallest_under(visible: &[usize], place: impl Fn(usize) -> Rect, at: Pos2) -> Option<usize> {
    visible
        .iter()
        .copied()
        .filter(|&index| place(index).contains(at))
        .min_by(|&left, &right| place(left).area().total_cmp(&place(right).area()))
}

/// The line style of an edge, which distinguishes verdicts and runs without colors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Line {
    Solid,
    /// Dashes of these lengths in turn, with a gap after each, in points.
    Broken(&'static [f32], f32),
}

/// The line of rejected and stored boxes, and of those of the other run.
pub(crate) const DASHED: Line = Line::Broken(&[8.0], 5.0);
/// The line of missed objects.
const MISSED: Line = Line::Broken(&[16.0], 5.0);
const DOTTED: Line = Line::Broken(&[2.0], 4.0);
const DASH_DOTTED: Line = Line::Broken(&[9.0, 2.0], 4.0);

fn line_of(verdict: Option<&Verdict>) -> Line {
    match verdict {
        None | Some(Verdict::Accept | Verdict::Moved(_) | Verdict::Added(_)) => Line::Solid,
        Some(Verdict::Reject | Verdict::Complete | Verdict::Returned | Verdict::Spurious(_)) => DASHED,
        Some(Verdict::Unsure) => DOTTED,
        Some(Verdict::WrongClass(_)) => DASH_DOTTED,
    }
}

/// In full, and without the score and the error (except the class) if that is too long.
pub(crate) fn tag_texts(
    state: &State,
    detection: &Detection,
    verdict: Option<&Verdict>,
    outcome: Option<NamedOutcome<'_>>,
) -> [String; 2] {
    let label = class_text(state, detection, verdict, outcome);
    // The model did not score a box that a person added.
    if let Some(Verdict::Added(_)) = verdict {
        return [label.clone(), label];
    }
    let full = format!("{label} {:.0}%", detection.score * 100.0);
    match outcome {
        None => [full, label],
        Some(outcome) => [format!("{full} · {}", outcome.mark_text()), format!("{label} · {}", outcome.kind.mark())],
    }
}

/// In the upper right corner of a wrong box.
pub(crate) fn wrong(painter: &Painter, rect: Rect, strength: f32) {
    if rect.width() >= 2.0 * MARK_SIZE.x && rect.height() >= 2.0 * MARK_SIZE.y {
        paint_wrong(painter, rect.right_top() - vec2(MARK_SIZE.x, 0.0), strength);
        return;
    }
    let side = 10.0_f32.min(rect.width() / 2.0).min(rect.height() / 2.0);
    let corner = rect.right_top() - vec2(side, 0.0);
    paint_wrong_small(painter, Rect::from_min_size(corner, vec2(side, side)), strength);
}

/// A colored line between two dark ones.
pub(crate) fn frame(painter: &Painter, rect: Rect, color: Color32, strength: f32, is_raised: bool, line: Line) {
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
    // If there would be too many dashes to tell apart or to draw, the line is solid.
    let around = 2.0 * (rect.width() + rect.height());
    let edges = [rect.left_top(), rect.right_top(), rect.right_bottom(), rect.left_bottom(), rect.left_top()];
    if !around.is_finite() || around > LONGEST_BROKEN_LINE {
        painter.rect_stroke(rect, corner, stroke, StrokeKind::Middle);
        return;
    }
    let gaps = vec![gap; dashes.len()];
    for stroke in [outline, stroke] {
        painter.extend(Shape::dashed_line_with_offset(&edges, stroke, dashes, &gaps, 0.0));
    }
}

/// Draws the first of `texts` that fits, on the class's color. Returns false if none does.
pub(crate) fn tag(labels: &mut Labels<'_>, rect: Rect, texts: &[String], background: Color32) -> bool {
    let around = rect.translate(vec2(-LINE / 2.0, 0.0));
    let Some(label) = labels.place(around, texts, theme::text_on(background)) else {
        return false;
    };
    labels.add(label, background);
    true
}
