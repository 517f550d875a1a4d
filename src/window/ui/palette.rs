//! Finds a command by typing part of its name; the text field of such overlays, which starts empty and keeps the focus.

use eframe::egui::{Modal, Modifiers};
use strum::VariantArray;

use crate::window::ui::keys;
use crate::window::ui::prelude::*;

const WIDTH: f32 = 460.0;
const LIST_HEIGHT: f32 = 360.0;

#[derive(Default)]
pub(crate) struct PaletteMemory {
    typing: Typing,
    /// The index of the command that Enter runs, among the possible ones.
    place: usize,
}

pub(crate) fn palette_ui(ctx: &Context, state: &State, memory: &mut PaletteMemory, commands: &mut Commands) {
    if !memory.typing.follow(state.overlay == Overlay::Palette) {
        return;
    }
    let area = Modal::default_area(Id::unique("command palette")).anchor(Align2::CENTER_TOP, vec2(0.0, 80.0));
    let modal = Modal::new(Id::unique("command palette")).area(area).show(ctx, |ui| {
        ui.set_width(WIDTH);
        contents_ui(ui, state, memory, commands);
    });
    if modal.should_close() {
        commands.push(Command::CLOSE_OVERLAY);
    }
}

fn contents_ui(ui: &mut Ui, state: &State, memory: &mut PaletteMemory, commands: &mut Commands) {
    let what = "Type a command";
    let typed = memory.typing.field_ui(ui, what, what);
    if typed.is_changed {
        memory.place = 0;
    }
    let found = matching(memory.typing.text());
    let can_be_done = |line: &usize| found[*line].check(state).is_ok();
    let choices: Vec<usize> = (0..found.len()).filter(can_be_done).collect();
    memory.place = memory.place.saturating_add_signed(typed.steps).min(choices.len().saturating_sub(1));
    let current = choices.get(memory.place).copied();
    ui.add_space(4.0);
    if found.is_empty() {
        ui.weak("No matching command");
    }
    let mut chosen = current.map(|line| found[line]).filter(|_| typed.enter);
    // Not lower if there is room: it would stay as low as the last short list.
    let list = ScrollArea::vertical().max_height(LIST_HEIGHT).min_scrolled_height(LIST_HEIGHT);
    list.show(ui, |ui| {
        ui.spacing_mut().item_spacing.y = 2.0;
        for (line, action) in found.iter().enumerate() {
            let is_current = current == Some(line);
            let response = line_ui(ui, state, *action, is_current);
            if is_current && typed.steps != 0 {
                response.scroll_to_me(None);
            }
            if response.clicked() {
                chosen = Some(*action);
            }
        }
    });
    if let Some(action) = chosen {
        commands.push(Command::CLOSE_OVERLAY);
        commands.push(action);
    }
}

fn line_ui(ui: &mut Ui, state: &State, action: Action, is_current: bool) -> Response {
    let check = action.check(state);
    let keys = keys::shortcut_text(ui.ctx(), action).unwrap_or_default();
    let label = action.label_in(state);
    let name = format!("{label} {keys}");
    let button = Button::selectable(is_current, label)
        .right_text(RichText::new(keys).weak())
        .min_size(vec2(ui.available_width(), 0.0))
        .sense(Sense::CLICK);
    ui.add_enabled(check.is_ok(), button)
        .accessible_name(name.trim_end())
        .on_hover_text(action.tooltip())
        .on_disabled_hover_text(check.err().unwrap_or_default())
}

/// Actions whose names contain every typed word, those that begin with the first word first; then those whose
/// descriptions contain the remaining words.
fn matching(query: &str) -> Vec<Action> {
    let query = query.to_lowercase();
    let words: Vec<&str> = query.split_whitespace().map(|word| word.trim_end_matches(['.', '…'])).collect();
    let label = |action: &Action| action.label().to_lowercase();
    let has_all = |text: &str| words.iter().all(|word| text.contains(word));
    let described = |action: &Action| has_all(&format!("{} {}", label(action), action.tooltip().to_lowercase()));
    let all = Action::VARIANTS.iter().copied().filter(|action| *action != Action::Palette);
    let mut found: Vec<Action> = all.filter(described).collect();
    let first = words.first().copied().unwrap_or_default();
    found.sort_by_key(|action| (!has_all(&label(action)), !label(action).starts_with(first)));
    found
}

/// The text of such an overlay.
#[derive(Default)]
pub(crate) struct Typing {
    text: String,
    is_open: bool,
    /// Whether it was closed in the last frame.
    is_new: bool,
}

/// The user's input in the field in this frame.
pub(crate) struct TypedKeys {
    /// Whether the text changed, or the overlay has just opened.
    pub(crate) is_changed: bool,
    /// Lines down, or up if negative.
    pub(crate) steps: isize,
    pub(crate) enter: bool,
}

impl Typing {
    /// Must be called in every frame. Returns whether the overlay is open.
    pub(crate) fn follow(&mut self, is_open: bool) -> bool {
        self.is_new = is_open && !self.is_open;
        self.is_open = is_open;
        if self.is_new {
            self.text.clear();
        }
        is_open
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_new(&self) -> bool {
        self.is_new
    }

    /// `name` is for screen readers. The up and down arrows and Enter are for the overlay, not for the field.
    pub(crate) fn field_ui(&mut self, ui: &mut Ui, hint: &str, name: &str) -> TypedKeys {
        let steps = taken_line_steps(ui);
        let enter = ui.input_mut(|input| input.consume_key(Modifiers::NONE, Key::Enter));
        let field = Field::new(name).hint(hint).text_ui(ui, &mut self.text);
        if !field.has_focus() {
            field.request_focus();
        }
        let is_changed = field.changed() || self.is_new;
        TypedKeys { is_changed, steps, enter }
    }
}

/// Lines down, or up if negative. Consumes the keys, so that the field does not move its cursor.
pub(crate) fn taken_line_steps(ui: &Ui) -> isize {
    let take = |key| ui.input_mut(|input| input.count_and_consume_key(Modifiers::NONE, key));
    take(Key::ArrowDown).cast_signed() - take(Key::ArrowUp).cast_signed()
}

/// The marked line after these steps; `None` is above the first line.
pub(crate) fn stepped_line(line: Option<usize>, steps: isize, count: usize) -> Option<usize> {
    let position = line.map_or(0, |line| line + 1);
    position.saturating_add_signed(steps).min(count).checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_must_contain_all_words() {
        assert_eq!(matching("predict sel")[0], Action::PredictSelection);
        assert_eq!(matching("FIT")[0], Action::FitImage);
        assert_eq!(matching("open ground truth...")[0], Action::OpenTruth);
        assert!(matching("in place of").contains(&Action::Evaluation), "in its description");
        assert!(matching("no such thing").is_empty());
    }

    #[test]
    fn prefix_matches_come_first() {
        assert_eq!(matching("open")[0], Action::OpenFolder);
    }

    #[test]
    fn steps_stop_at_both_ends() {
        for (line, steps, count, expected) in [
            (None, 1, 3, Some(0)),
            (None, -1, 3, None),
            (Some(0), 1, 3, Some(1)),
            (Some(0), 5, 3, Some(2)),
            (Some(2), -2, 3, Some(0)),
            (Some(0), -1, 3, None),
            (Some(2), 0, 1, Some(0)),
            (Some(0), 1, 0, None),
        ] {
            assert_eq!(stepped_line(line, steps, count), expected, "{line:?} {steps} {count}");
        }
    }
}
