//! What the overlays that one types into have in common: each begins empty, with the keyboard in its field, where it stays. What
//! they list is walked through with the arrows: a line that took the keyboard would not be the one that Enter takes.

use eframe::egui::{Key, Modifiers, TextEdit, Ui};

/// The text of such an overlay.
#[derive(Default)]
pub(super) struct Typing {
    text: String,
    is_open: bool,
    /// It was not open in the last frame.
    is_new: bool,
}

/// What was done in the field in this frame.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is something that a key does"
)]
pub(super) struct TypedKeys {
    /// There is another text, or the overlay has just opened.
    pub(super) is_changed: bool,
    pub(super) up: bool,
    pub(super) down: bool,
    pub(super) enter: bool,
}

impl Typing {
    /// In every frame. Gives back whether the overlay is open.
    pub(super) fn follow(&mut self, is_open: bool) -> bool {
        self.is_new = is_open && !self.is_open;
        self.is_open = is_open;
        if self.is_new {
            self.text.clear();
        }
        is_open
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    /// `name` is for those who hear it. The arrows up and down and Enter are for the overlay, not for the field.
    pub(super) fn field_ui(&mut self, ui: &mut Ui, hint: &str, name: &str) -> TypedKeys {
        let take = |key| ui.input_mut(|input| input.consume_key(Modifiers::NONE, key));
        let (up, down, enter) = (take(Key::ArrowUp), take(Key::ArrowDown), take(Key::Enter));
        let field = ui.add(
            TextEdit::singleline(&mut self.text)
                .hint_text(hint)
                .desired_width(f32::INFINITY),
        );
        if !field.has_focus() {
            field.request_focus();
        }
        let is_changed = field.changed() || self.is_new;
        field.accessible_name(name);
        TypedKeys {
            is_changed,
            up,
            down,
            enter,
        }
    }
}
