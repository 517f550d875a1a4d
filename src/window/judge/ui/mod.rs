//! The judging bar: verdicts on the prediction, the number of judged images, and whether they are saved.

pub(crate) mod dialogs;
pub(crate) mod report;
pub(crate) mod spot_check;

use std::sync::Arc;

use eframe::egui::{Galley, Popup, PopupCloseBehavior, RectAlign};
use strum::VariantArray;

use crate::domain::{SampleId, SampleSet, Verdict};
use crate::review::{FilterCounts, VerdictKind};
use crate::window::evaluation::ui::suspicious::fix_line_ui;
use crate::window::state::{JudgeField, ProjectCommand};
use crate::window::ui::keys;
use crate::window::ui::prelude::*;

const MAX_SUGGESTIONS: usize = 6;
/// From this width, in points, the whole bar fits on one line.
const ONE_LINE_WIDTH: f32 = 1330.0;
/// What the link to another run needs in addition.
const LINK_WIDTH: f32 = 150.0;
/// From this width, all buttons fit on one line.
const BUTTONS_WIDTH: f32 = 960.0;
/// From this width, the verdicts and their subject fit on one line.
const VERDICTS_WIDTH: f32 = 640.0;
/// A fixed width for the verdict as text, so that no button moves while judging.
const SUBJECT_WIDTH: f32 = 152.0;
const TAG_WIDTH: f32 = 74.0;
const NOTE_WIDTHS: std::ops::RangeInclusive<f32> = 64.0..=420.0;

#[derive(Default)]
pub(crate) struct JudgeMemory {
    note: String,
    /// The images that the note is for, while it is being written.
    note_of: Option<SampleSet>,
    tag: String,
    /// A click on a suggestion removes the focus from the field before it arrives.
    is_pointer_on_suggestions: bool,
    /// The last fulfilled request for focus.
    focused: u64,
}

/// As wide as the window, so that the buttons are in the same place in every view.
pub(crate) fn judge_ui(ui: &mut Ui, state: &State, memory: &mut JudgeMemory, commands: &mut Commands) {
    ui.add_space(3.0);
    let spacing = ui.spacing_mut();
    spacing.item_spacing = vec2(6.0, 4.0);
    spacing.button_padding.x = 8.0;
    spot_check::progress_ui(ui, state, commands);
    fix_line_ui(ui, state, commands);
    lines_ui(ui, state, memory, commands);
    ui.add_space(2.0);
}

/// On as many lines as necessary, keeping related items on one line.
fn lines_ui(ui: &mut Ui, state: &State, memory: &mut JudgeMemory, commands: &mut Commands) {
    let width = ui.available_width();
    let link = if state.other_judged_run().is_some() { LINK_WIDTH } else { 0.0 };
    if width >= ONE_LINE_WIDTH + link {
        ui.horizontal(|ui| {
            subject_ui(ui, state);
            verdicts_ui(ui, state, commands);
            walk_ui(ui, state, commands);
            ui.separator();
            words_and_progress_ui(ui, state, memory, commands);
        });
    } else if width >= BUTTONS_WIDTH {
        ui.horizontal(|ui| {
            subject_ui(ui, state);
            verdicts_ui(ui, state, commands);
            walk_ui(ui, state, commands);
        });
        ui.horizontal(|ui| words_and_progress_ui(ui, state, memory, commands));
    } else if width >= VERDICTS_WIDTH {
        ui.horizontal(|ui| {
            subject_ui(ui, state);
            verdicts_ui(ui, state, commands);
        });
        ui.horizontal(|ui| {
            walk_ui(ui, state, commands);
            words_and_progress_ui(ui, state, memory, commands);
        });
    } else {
        ui.horizontal_wrapped(|ui| {
            subject_ui(ui, state);
            walk_ui(ui, state, commands);
        });
        ui.horizontal_wrapped(|ui| verdicts_ui(ui, state, commands));
        ui.horizontal(|ui| words_and_progress_ui(ui, state, memory, commands));
    }
}

fn verdicts_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    let now = subject_kind(state);
    for (action, kind) in [
        (Action::Accept, VerdictKind::Accept),
        (Action::Reject, VerdictKind::Reject),
        (Action::Unsure, VerdictKind::Unsure),
        (Action::WrongClass, VerdictKind::WrongClass),
    ] {
        verdict_button_ui(ui, state, action, kind, now == Some(kind), commands);
    }
    action_icon_ui(ui, state, Action::ClearVerdict, "⌫", commands);
    ui.add_space(6.0);
}

/// Next and previous.
fn walk_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    plain_button_ui(ui, state, Action::NextUnjudged, commands);
    plain_button_ui(ui, state, Action::NextUncertain, commands);
    ui.add_space(6.0);
    action_icon_ui(ui, state, Action::Undo, "↺", commands);
    action_icon_ui(ui, state, Action::Redo, "↻", commands);
}

fn words_and_progress_ui(ui: &mut Ui, state: &State, memory: &mut JudgeMemory, commands: &mut Commands) {
    ends_ui(
        ui,
        "words and progress",
        &mut (memory, commands),
        |ui, (memory, commands)| words_ui(ui, state, memory, commands),
        |ui, (_, commands)| {
            other_judged_run_ui(ui, state, commands);
            progress_ui(ui, state);
        },
    );
}

/// A verdict button, with its sign, and its key on the right.
fn verdict_button_ui(
    ui: &mut Ui,
    state: &State,
    action: Action,
    kind: VerdictKind,
    is_given: bool,
    commands: &mut Commands,
) {
    let text = format!("{} {}", verdict_sign(kind), action.label());
    let mut button = Button::new(text).selected(is_given);
    if is_given {
        button = button.stroke(Stroke::new(1.5, verdict_color(kind)));
    }
    action_ui(ui, state, action, button, commands);
}

fn plain_button_ui(ui: &mut Ui, state: &State, action: Action, commands: &mut Commands) {
    action_ui(ui, state, action, Button::new(action.label()), commands);
}

/// A button that shows the action's key.
fn action_ui(ui: &mut Ui, state: &State, action: Action, mut button: Button<'_>, commands: &mut Commands) {
    if let Some(keys) = keys::shortcut_text(ui.ctx(), action) {
        button = button.shortcut_text(RichText::new(keys).weak());
    }
    let response = button_of_action_ui(ui, state, action, button, commands);
    // Without the sign and the key.
    let is_enabled = response.enabled();
    response.widget_info(|| WidgetInfo::labeled(Role::Button, is_enabled, action.label()));
}

/// The subject of the next verdict, and its current verdict.
fn subject_ui(ui: &mut Ui, state: &State) {
    let verdict = subject_verdict(state);
    let is_saving = state.shown_sample().is_some_and(|sample| state.judgments.is_saving(sample));
    let saving = if is_saving { ", saving…" } else { "" };
    let (subject, words) = (subject(state), subject_words(state, verdict));
    let text = format!("{}{saving}", on_one_line(&subject, &words));
    let size = vec2(SUBJECT_WIDTH, ui.spacing().interact_size.y);
    let (rect, response) = ui.allocate_exact_size(size, Sense::hover());
    response.widget_info(|| WidgetInfo::labeled(Role::Label, true, text.as_str()));
    let sign = pos2(rect.left() + 9.0, rect.center().y);
    if let Some(kind) = shown_kind(state) {
        paint_verdict(ui.painter(), sign, 7.5, kind);
    } else {
        let pen = Stroke::new(1.5, theme::line(ui.visuals()));
        ui.painter().circle_stroke(sign, 7.0, pen);
    }
    if is_saving {
        let ring = Stroke::new(1.5, theme::accent(ui.visuals()));
        ui.painter().circle_stroke(sign, 10.0, ring);
    }
    // The sign shows that it is another class, and the ring that it is being saved: text for it would come and go with
    // each verdict.
    let words = match verdict {
        Some(Verdict::WrongClass(right)) => format!("is “{right}”"),
        _ => words,
    };
    paint_subject(ui, rect.with_min_x(rect.left() + 24.0), &subject, &words);
    response.on_hover_text(text);
}

/// The verdict of the sign: that of the selected box, or of the image with its boxes, as on its thumbnail.
fn shown_kind(state: &State) -> Option<VerdictKind> {
    if state.judged_boxes().is_empty() && state.selection.selected().len() <= 1 {
        return state.verdict_of(state.shown_sample()?);
    }
    subject_kind(state)
}

/// The verdict of the subject itself; `None` for several.
fn subject_kind(state: &State) -> Option<VerdictKind> {
    match state.judged_boxes().as_slice() {
        [(sample, shows)] => state.verdict_on(*sample, *shows),
        [] => subject_verdict(state).map(VerdictKind::from),
        _ => None,
    }
}

fn on_one_line(subject: &str, words: &str) -> String {
    if words.is_empty() { subject.to_owned() } else { format!("{subject}: {words}") }
}

/// On one line if there is room, else on two small ones.
fn paint_subject(ui: &Ui, place: Rect, subject: &str, words: &str) {
    let color = ui.visuals().text_color();
    let paint = |galley: Arc<Galley>, top: f32| {
        ui.painter().galley(pos2(place.left(), top), galley, color);
    };
    let font = TextStyle::Body.resolve(ui.style());
    let whole = on_one_line(subject, words);
    let whole = truncated(ui, &whole, font, color, place.width());
    if !whole.elided {
        let top = place.center().y - whole.size().y / 2.0;
        paint(whole, top);
        return;
    }
    let font = TextStyle::Small.resolve(ui.style());
    let tops = [place.top() - 1.0, place.center().y];
    for (line, top) in [subject, words].into_iter().zip(tops) {
        paint(truncated(ui, line, font.clone(), color, place.width()), top);
    }
}

/// “Box “cup””, “FN “cup””, “3 boxes”, “3 images”, “Image”.
fn subject(state: &State) -> String {
    let (boxes, selected) = (state.judged_boxes().len(), state.selection.selected().len());
    if boxes > 1 {
        return box_count(boxes);
    }
    if selected > 1 {
        return image_count(selected);
    }
    if let Some(object) = state.selected_object() {
        return format!("FN “{}”", object.label);
    }
    let prediction = state.shown.prediction.as_ref();
    let detection = state.shown.selected_box.and_then(|index| prediction?.detections().get(index));
    match detection {
        Some(detection) => format!("Box “{}”", detection.label),
        None => "Image".to_owned(),
    }
}

/// Its verdict, or the number of an image's judged boxes, because they judge it together. Empty for several images,
/// which can have different verdicts.
fn subject_words(state: &State, verdict: Option<&Verdict>) -> String {
    if state.selection.selected().len() > 1 || state.judged_boxes().len() > 1 {
        return String::new();
    }
    if let Some(object) = state.selected_object() {
        return label_verdict_text(object.verdict).unwrap_or("not judged").to_owned();
    }
    if let Some(verdict) = verdict {
        return match shown_kind(state) {
            Some(kind) if kind != VerdictKind::from(verdict) => {
                format!("{}, but a box is {}", verdict_text(verdict), kind.participle())
            }
            _ => verdict_text(verdict),
        };
    }
    let boxes = state.shown_boxes();
    let is_judged = |index: &&usize| {
        let sample = state.shown_sample();
        sample.is_some_and(|sample| state.judgments.box_verdict(sample, **index).is_some())
    };
    let is_image = state.shown.selected_box.is_none();
    match boxes.iter().filter(is_judged).count() {
        judged if is_image && judged > 0 => {
            format!("{judged} of {} judged", box_count(boxes.len()))
        }
        _ => "not judged".to_owned(),
    }
}

/// For the selected box or the shown image; `None` for several images.
fn subject_verdict(state: &State) -> Option<&Verdict> {
    let sample = state.shown_sample()?;
    if state.selection.selected().len() > 1 || state.judged_boxes().len() > 1 || state.shown.selected_object.is_some() {
        return None;
    }
    match state.shown.selected_box {
        Some(index) => state.judgments.box_verdict(sample, index),
        None => state.judgments.verdict(sample),
    }
}

fn words_ui(ui: &mut Ui, state: &State, memory: &mut JudgeMemory, commands: &mut Commands) {
    let wanted = state.judge_focus.filter(|(_, number)| *number > memory.focused);
    if let Some((_, number)) = wanted {
        memory.focused = number;
    }
    let wanted = wanted.map(|(field, _)| field);
    let Some(sample) = state.shown_sample() else {
        return;
    };
    let room = Room::new(ui, state, sample);
    note_ui(ui, state, memory, (sample, room.note), wanted == Some(JudgeField::Note), commands);
    tags_ui(ui, state, memory, (sample, room.tags), wanted == Some(JudgeField::Tag), commands);
}

/// The note is saved when the field is left or Enter is pressed; Escape cancels.
fn note_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut JudgeMemory,
    (sample, width): (SampleId, f32),
    wants_focus: bool,
    commands: &mut Commands,
) {
    let note = state.judgments.note(sample);
    if memory.note_of.is_none() && memory.note != note {
        note.clone_into(&mut memory.note);
    }
    let is_writable = state.project.is_writable();
    let field = ui.add_enabled(
        is_writable,
        TextEdit::singleline(&mut memory.note).id(Id::unique("note")).hint_text("Note (N)").desired_width(width),
    );
    if wants_focus {
        field.request_focus();
    }
    if field.has_focus() && memory.note_of.is_none() {
        memory.note_of = Some(state.selection.selected().clone());
    }
    if field.lost_focus()
        && let Some(samples) = memory.note_of.take()
    {
        let is_cancelled = ui.input(|input| input.key_pressed(Key::Escape));
        if !is_cancelled {
            let text = memory.note.clone();
            commands.push(ReviewCommand::SetNote { samples, text });
        }
    }
    field.on_hover_text("For all selected images. Enter: save. Escape: cancel").accessible_name("Note");
}

/// The division of the rest of the line: the width of the note, and the number of tags after it. Further tags are in a
/// menu, so that the bar has the same height for every image.
struct Room {
    note: f32,
    tags: usize,
}

impl Room {
    fn new(ui: &Ui, state: &State, sample: SampleId) -> Self {
        let font = TextStyle::Button.resolve(ui.style());
        let spacing = ui.spacing();
        let width = |text: String| {
            let galley = ui.painter().layout_no_wrap(text, font.clone(), Color32::WHITE);
            galley.size().x + 2.0 * spacing.button_padding.x + spacing.item_spacing.x
        };
        let chips: Vec<f32> = state.judgments.tags(sample).iter().map(|tag| width(chip_text(tag))).collect();
        let room = ui.available_width() - TAG_WIDTH - 3.0 * spacing.item_spacing.x;
        let all = chips.iter().sum::<f32>();
        if all <= room - *NOTE_WIDTHS.start() {
            return Self { note: (room - all).min(*NOTE_WIDTHS.end()), tags: chips.len() };
        }
        let mut left = room - *NOTE_WIDTHS.start() - width(more_tags_text(chips.len()));
        let fits = |chip: &&f32| {
            left -= **chip;
            left >= 0.0
        };
        Self { note: *NOTE_WIDTHS.start(), tags: chips.iter().take_while(fits).count() }
    }
}

fn more_tags_text(count: usize) -> String {
    format!("+{count}")
}

fn chip_text(tag: &str) -> String {
    format!("{tag} ×")
}

fn chip_ui(ui: &mut Ui, state: &State, tag: &str, commands: &mut Commands) {
    let chip = Button::new(chip_text(tag)).corner_radius(12);
    ui.add_enabled(state.project.is_writable(), chip)
        .on_hover_text(format!("Remove the tag “{tag}”"))
        .on_click(commands, || ReviewCommand::RemoveTag(tag.to_owned()))
        .accessible_name(format!("Remove the tag {tag}"));
}

fn tags_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut JudgeMemory,
    (sample, shown): (SampleId, usize),
    wants_focus: bool,
    commands: &mut Commands,
) {
    let is_writable = state.project.is_writable();
    let tags = state.judgments.tags(sample);
    for tag in tags.iter().take(shown) {
        chip_ui(ui, state, tag, commands);
    }
    if tags.len() > shown {
        let more = ui.menu_button(more_tags_text(tags.len() - shown), |ui| {
            for tag in tags.iter().skip(shown) {
                chip_ui(ui, state, tag, commands);
            }
        });
        let names: Vec<&str> = tags.iter().skip(shown).map(String::as_str).collect();
        more.response.on_hover_text(format!("More tags: {}", names.join(", ")));
    }
    let field = ui.add_enabled(
        is_writable,
        TextEdit::singleline(&mut memory.tag).id(Id::unique("tag")).hint_text("Tag (T)").desired_width(TAG_WIDTH - 8.0),
    );
    if wants_focus {
        field.request_focus();
    }
    let pressed = |key| ui.input(|input| input.key_pressed(key));
    let is_entered = field.lost_focus() && pressed(Key::Enter);
    if is_entered && !memory.tag.trim().is_empty() {
        commands.push(ReviewCommand::AddTag(memory.tag.clone()));
    }
    let is_left = is_entered || pressed(Key::Escape) || !memory.is_pointer_on_suggestions;
    if is_left && !field.has_focus() {
        // What was typed for this image must not carry over to the next one.
        memory.tag.clear();
    }
    let known = suggestions(state, &memory.tag);
    let chosen = suggestions_ui(&field, memory, &known);
    if let Some(tag) = chosen {
        commands.push(ReviewCommand::AddTag(tag.to_owned()));
        memory.tag.clear();
        field.surrender_focus();
    }
    field.on_hover_text("Enter adds the tag to all selected images").accessible_name("Tag");
}

/// Above the field, because they would make the bar higher next to it. Returns the clicked one.
fn suggestions_ui<'t>(field: &Response, memory: &mut JudgeMemory, tags: &[&'t str]) -> Option<&'t str> {
    memory.is_pointer_on_suggestions = false;
    if tags.is_empty() {
        return None;
    }
    let shown = Popup::from_response(field)
        .open(true)
        .align(RectAlign::TOP_START)
        .close_behavior(PopupCloseBehavior::IgnoreClicks)
        .show(|ui| {
            let mut chosen = None;
            for &tag in tags {
                let suggestion = ui.button(tag);
                if suggestion.clicked() {
                    chosen = Some(tag);
                }
                suggestion.accessible_name(format!("Tag with {tag}"));
            }
            chosen
        })?;
    memory.is_pointer_on_suggestions = shown.response.contains_pointer();
    shown.inner
}

/// Tags in use that begin with the typed text; none before something is typed.
fn suggestions<'s>(state: &'s State, typed: &str) -> Vec<&'s str> {
    let typed = typed.trim().to_lowercase();
    if typed.is_empty() {
        return Vec::new();
    }
    let known = state.judgments.known_tags();
    known.filter(|tag| tag.to_lowercase().starts_with(&typed)).take(MAX_SUGGESTIONS).collect()
}

/// The number of judged images, on a bar with a section per verdict; the empty part is unjudged.
fn progress_ui(ui: &mut Ui, state: &State) {
    let nothing = FilterCounts::default();
    let counts = state.arranging.counts().unwrap_or(&nothing);
    let total = state.samples.len();
    let font = TextStyle::Body.resolve(ui.style());
    let color = ui.visuals().weak_text_color();
    let galley = ui.painter().layout_no_wrap(judged_text(counts, total), font, color);
    let size = vec2(galley.size().x.max(90.0) + 4.0, ui.spacing().interact_size.y);
    let (rect, response) = ui.allocate_exact_size(size, Sense::hover());
    let text = progress_text(counts, total);
    response.widget_info(|| WidgetInfo::labeled(Role::Label, true, text.as_str()));
    let at = pos2(rect.right() - galley.size().x, rect.top() + 1.0);
    ui.painter().galley(at, galley, color);
    let bar = rect.with_min_y(rect.bottom() - 5.0);
    bar_ui(ui, bar, counts, total);
    response.on_hover_text(text);
}

/// Leads to the run with the verdicts, if the one on screen has none.
fn other_judged_run_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    if let (Some(run), Some(text)) = (state.other_judged_run(), state.other_judged_run_text()) {
        ui.link("Judged in another run")
            .on_hover_text(format!("{text}. Click to show that run"))
            .on_click(commands, || ProjectCommand::SwitchRun(run))
            .accessible_name(text);
    }
}

fn bar_ui(ui: &Ui, bar: Rect, counts: &FilterCounts, total: usize) {
    let painter = ui.painter();
    painter.rect_filled(bar, 2.0, theme::line(ui.visuals()));
    let mut left = bar.left();
    for (kind, count) in stretches(counts) {
        let width = bar.width() * count as f32 / total.max(1) as f32;
        let stretch = Rect::from_min_size(pos2(left, bar.top()), vec2(width, bar.height()));
        painter.rect_filled(stretch, 0.0, verdict_color(kind));
        left += width;
    }
}

fn stretches(counts: &FilterCounts) -> [(VerdictKind, usize); VerdictKind::VARIANTS.len()] {
    use VerdictKind::{Accept, Added, Complete, Moved, Reject, Returned, Unsure, WrongClass};
    [Accept, Complete, Reject, WrongClass, Moved, Added, Unsure, Returned].map(|kind| (kind, counts.verdict(kind)))
}

/// “134 of 2,000 images judged”.
fn judged_text(counts: &FilterCounts, total: usize) -> String {
    let judged = grouped(counts.all - counts.unjudged);
    format!("{judged} of {} judged", image_count(total))
}

/// “134 of 2,000 images judged: 120 accepted, 8 rejected”.
fn progress_text(counts: &FilterCounts, total: usize) -> String {
    let parts: Vec<String> = stretches(counts)
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(kind, count)| format!("{} {}", grouped(count), kind.participle()))
        .collect();
    let judged = judged_text(counts, total);
    if parts.is_empty() { judged } else { format!("{judged}: {}", parts.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_names_only_given_verdicts() {
        let mut counts = FilterCounts { all: 20_000, unjudged: 20_000 - 1212, ..FilterCounts::default() };
        counts.verdicts[VerdictKind::Accept as usize] = 1200;
        counts.verdicts[VerdictKind::Reject as usize] = 8;
        counts.verdicts[VerdictKind::WrongClass as usize] = 4;
        assert_eq!(
            progress_text(&counts, 20_000),
            "1,212 of 20,000 images judged: 1,200 accepted, 8 rejected, 4 wrong class"
        );
        let nothing = FilterCounts::default();
        assert_eq!(progress_text(&nothing, 3), "0 of 3 images judged");
    }
}
