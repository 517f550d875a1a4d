//! Below the picture: what people say of the answer, how much is judged, and whether it is saved.

use eframe::egui::{
    self, Align, Button, Checkbox, Id, Key, Label, Layout, Panel, Rect, RichText, Sense, TextEdit,
    Ui, vec2,
};

use super::super::theme;
use super::super::widgets::{
    action_button_ui, grouped, paint_verdict, verdict_color, verdict_sign, verdict_text,
    verdict_word,
};
use super::super::{keys, widgets};
use crate::domain::{SampleSet, Verdict};
use crate::review::VerdictKind;
use crate::state::{Action, Command, JudgeField, State, VerdictCounts};

const MAX_SUGGESTIONS: usize = 6;

/// The drafts of the text fields.
#[derive(Default)]
pub(in super::super) struct JudgeMemory {
    note: String,
    /// The images that the note is about, since it is being written.
    note_of: Option<SampleSet>,
    tag: String,
    /// The last wish for the keyboard that was granted.
    focused: u64,
}

pub(in super::super) fn judge_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut JudgeMemory,
    commands: &mut Vec<Command>,
) {
    if state.samples.is_empty() {
        return;
    }
    Panel::bottom("judging bar").show(ui, |ui| {
        ui.add_space(3.0);
        ui.horizontal_wrapped(|ui| verdicts_ui(ui, state, commands));
        ui.horizontal_wrapped(|ui| {
            subject_ui(ui, state);
            words_ui(ui, state, memory, commands);
        });
        progress_ui(ui, state, commands);
        ui.add_space(2.0);
    });
}

fn verdicts_ui(ui: &mut Ui, state: &State, commands: &mut Vec<Command>) {
    let now = subject_verdict(state).map(VerdictKind::from);
    for (action, kind) in [
        (Action::Accept, VerdictKind::Accept),
        (Action::Reject, VerdictKind::Reject),
        (Action::Unsure, VerdictKind::Unsure),
        (Action::WrongClass, VerdictKind::WrongClass),
    ] {
        verdict_button_ui(ui, state, action, kind, now == Some(kind), commands);
    }
    plain_button_ui(ui, state, Action::ClearVerdict, commands);
    plain_button_ui(ui, state, Action::NextUnjudged, commands);
    plain_button_ui(ui, state, Action::NextUncertain, commands);
    action_button_ui(ui, state, Action::Undo, commands);
    action_button_ui(ui, state, Action::Redo, commands);
}

/// With its sign, and its key on the right.
fn verdict_button_ui(
    ui: &mut Ui,
    state: &State,
    action: Action,
    kind: VerdictKind,
    is_given: bool,
    commands: &mut Vec<Command>,
) {
    let text = format!("{} {}", verdict_sign(kind), action.label());
    let mut button = Button::new(text).selected(is_given);
    if is_given {
        button = button.stroke(egui::Stroke::new(1.5, verdict_color(kind)));
    }
    action_ui(ui, state, action, button, commands);
}

fn plain_button_ui(ui: &mut Ui, state: &State, action: Action, commands: &mut Vec<Command>) {
    action_ui(ui, state, action, Button::new(action.label()), commands);
}

/// A button that shows the action's key.
fn action_ui(
    ui: &mut Ui,
    state: &State,
    action: Action,
    mut button: Button<'_>,
    commands: &mut Vec<Command>,
) {
    if let Some(keys) = keys::shortcut_text(ui.ctx(), action) {
        button = button.shortcut_text(RichText::new(keys).weak());
    }
    widgets::button_of_action_ui(ui, state, action, button, commands);
}

/// What the next verdict is about, and the one it has.
fn subject_ui(ui: &mut Ui, state: &State) {
    let verdict = subject_verdict(state);
    let verdict_words = verdict.map_or_else(|| "not judged".to_owned(), verdict_text);
    let text = format!("{}: {verdict_words}", subject(state));
    if let Some(verdict) = verdict {
        let (rect, _) = ui.allocate_exact_size(vec2(18.0, 18.0), Sense::hover());
        paint_verdict(ui.painter(), rect.center(), 7.5, verdict.into());
    }
    ui.add(Label::new(text).extend());
    let is_saving = state
        .shown_sample()
        .is_some_and(|sample| state.judgements.is_saving(sample));
    if is_saving {
        let saving = ui.label(RichText::new("saving…").weak());
        saving.on_hover_text("This is being written to the project file");
    }
}

/// “Box 2, cup”, “3 images”, “Image”.
fn subject(state: &State) -> String {
    let selected = state.selection.selected().len();
    if selected > 1 {
        return widgets::image_count(selected);
    }
    let prediction = state.shown.prediction.as_ref();
    let detection = state
        .shown
        .selected_box
        .and_then(|index| prediction?.detections().get(index));
    match detection {
        Some(detection) => format!("Box “{}”", detection.label),
        None => "Image".to_owned(),
    }
}

/// Of the selected box or of the shown image.
fn subject_verdict(state: &State) -> Option<&Verdict> {
    let sample = state.shown_sample()?;
    let is_alone = state.selection.selected().len() == 1;
    match state.shown.selected_box.filter(|_| is_alone) {
        Some(index) => state.judgements.box_verdict(sample, index),
        None => state.judgements.verdict(sample),
    }
}

fn words_ui(ui: &mut Ui, state: &State, memory: &mut JudgeMemory, commands: &mut Vec<Command>) {
    let wanted = state
        .judge_focus
        .filter(|(_, number)| *number > memory.focused);
    if let Some((_, number)) = wanted {
        memory.focused = number;
    }
    let wanted = wanted.map(|(field, _)| field);
    note_ui(
        ui,
        state,
        memory,
        wanted == Some(JudgeField::Note),
        commands,
    );
    tags_ui(ui, state, memory, wanted == Some(JudgeField::Tag), commands);
}

/// Written when the field is left or Enter is pressed; Escape gives up what was typed.
fn note_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut JudgeMemory,
    wants_focus: bool,
    commands: &mut Vec<Command>,
) {
    let Some(sample) = state.shown_sample() else {
        return;
    };
    let note = state.judgements.note(sample);
    if memory.note_of.is_none() && memory.note != note {
        note.clone_into(&mut memory.note);
    }
    let is_writable = state.project.is_writable();
    let field = ui.add_enabled(
        is_writable,
        TextEdit::singleline(&mut memory.note)
            .id(Id::unique("note"))
            .hint_text("Note (N)")
            .desired_width(260.0),
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
        let is_given_up = ui.input(|input| input.key_pressed(Key::Escape));
        if !is_given_up {
            let text = memory.note.clone();
            commands.push(Command::SetNote { samples, text });
        }
    }
    field
        .on_hover_text("For all selected images; Enter writes it, Escape gives it up")
        .accessible_name("Note");
}

fn tags_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut JudgeMemory,
    wants_focus: bool,
    commands: &mut Vec<Command>,
) {
    let Some(sample) = state.shown_sample() else {
        return;
    };
    let is_writable = state.project.is_writable();
    for tag in state.judgements.tags(sample) {
        let chip = Button::new(format!("{tag} ×")).corner_radius(10).small();
        let chip = ui
            .add_enabled(is_writable, chip)
            .on_hover_text(format!("Take the tag “{tag}” away"));
        if chip.clicked() {
            commands.push(Command::RemoveTag(tag.clone()));
        }
        chip.accessible_name(format!("Take the tag {tag} away"));
    }
    let field = ui.add_enabled(
        is_writable,
        TextEdit::singleline(&mut memory.tag)
            .id(Id::unique("tag"))
            .hint_text("Tag (T)")
            .desired_width(110.0),
    );
    if wants_focus {
        field.request_focus();
    }
    let is_entered = field.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter));
    if is_entered && !memory.tag.trim().is_empty() {
        commands.push(Command::AddTag(std::mem::take(&mut memory.tag)));
        // For the next one.
        field.request_focus();
    }
    if field.has_focus() && !memory.tag.is_empty() {
        for tag in suggestions(state, &memory.tag) {
            let suggestion = ui.add(Button::new(RichText::new(tag).weak()).small());
            if suggestion.clicked() {
                commands.push(Command::AddTag(tag.to_owned()));
                memory.tag.clear();
                field.request_focus();
                break;
            }
            suggestion.accessible_name(format!("Tag with {tag}"));
        }
    }
    field
        .on_hover_text("Enter puts the tag on all selected images")
        .accessible_name("Tag");
}

/// Tags in use that begin like this.
fn suggestions<'s>(state: &'s State, typed: &str) -> Vec<&'s str> {
    let typed = typed.trim().to_lowercase();
    let known = state.judgements.known_tags();
    known
        .filter(|tag| tag.to_lowercase().starts_with(&typed))
        .take(MAX_SUGGESTIONS)
        .collect()
}

fn progress_ui(ui: &mut Ui, state: &State, commands: &mut Vec<Command>) {
    ui.horizontal(|ui| {
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            let mut goes_on = state.settings.next_after_verdict;
            let switch = ui
                .add(Checkbox::new(&mut goes_on, "Go on after a verdict"))
                .on_hover_text(
                    "A verdict on an image shows the next image, one on a box selects the next box",
                );
            if switch.changed() {
                commands.push(Command::SetNextAfterVerdict(goes_on));
            }
            ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                let (counts, total) = (state.judgements.counts(), state.samples.len());
                bar_ui(ui, counts, total);
                let text = RichText::new(progress_text(counts, total)).weak();
                ui.add(Label::new(text).truncate());
            });
        });
    });
}

/// One stretch a verdict; how much is empty is still to be judged.
fn bar_ui(ui: &mut Ui, counts: VerdictCounts, total: usize) {
    let width = (ui.available_width() * 0.25).clamp(40.0, 160.0);
    let (rect, _) = ui.allocate_exact_size(vec2(width, 8.0), Sense::hover());
    let painter = ui.painter();
    painter.rect_filled(rect, 4.0, theme::sunken_fill(ui.visuals()));
    let mut left = rect.left();
    for (kind, count) in stretches(counts) {
        let width = rect.width() * count as f32 / total.max(1) as f32;
        let stretch = Rect::from_min_size(egui::pos2(left, rect.top()), vec2(width, rect.height()));
        painter.rect_filled(stretch, 0.0, verdict_color(kind));
        left += width;
    }
}

fn stretches(counts: VerdictCounts) -> [(VerdictKind, usize); 4] {
    [
        (VerdictKind::Accept, counts.accept),
        (VerdictKind::Reject, counts.reject),
        (VerdictKind::WrongClass, counts.wrong),
        (VerdictKind::Unsure, counts.unsure),
    ]
}

/// “134 of 2,000 judged: 120 accepted, 8 rejected”.
fn progress_text(counts: VerdictCounts, total: usize) -> String {
    let parts: Vec<String> = stretches(counts)
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(kind, count)| format!("{} {}", grouped(count), verdict_word(kind)))
        .collect();
    let judged = format!("{} of {} judged", grouped(counts.judged()), grouped(total));
    if parts.is_empty() {
        judged
    } else {
        format!("{judged}: {}", parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_progress_line_names_only_the_verdicts_that_were_given() {
        let counts = VerdictCounts {
            accept: 1200,
            reject: 8,
            unsure: 0,
            wrong: 4,
        };
        assert_eq!(
            progress_text(counts, 20_000),
            "1,212 of 20,000 judged: 1,200 accepted, 8 rejected, 4 wrong class"
        );
        let nothing = VerdictCounts::default();
        assert_eq!(progress_text(nothing, 3), "0 of 3 judged");
    }
}
