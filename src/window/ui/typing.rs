//! Shared parts of overlays with a text field: each starts empty and keeps the focus in its field. The arrow keys move
//! through the list below it without moving the focus, so that Enter selects the marked line.

use eframe::egui::{Key, Modifiers, Ui};

use crate::window::ui::field::Field;

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
