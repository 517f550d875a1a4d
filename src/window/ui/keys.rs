//! The keys of the window: those of the action table, and those that move through the images.

use eframe::egui::{Context, Event, Key, KeyboardShortcut, Modifiers, Popup};
use strum::VariantArray;

use crate::window::browse::ui::grid;
use crate::window::browse::ui::grid::GridSteps;
use crate::window::canvas;
use crate::window::state::{
    Action, BrowseCommand, Command, KeyboardOwner, LEFT_AND_TOP, Overlay, RIGHT_AND_BOTTOM, ReviewCommand, State, Step,
    WHOLE_BOX,
};
use crate::window::ui::event_order::{end_wait, hold_for_boxes, hold_from};

/// Reads the keys of a frame in order. Each command is executed before the next key is read, and what is typed after a
/// command that opens a field or a dialog goes there, in the next frame.
pub struct PressedKeys {
    position: usize,
    owner: KeyboardOwner,
    steps: GridSteps,
    /// Whether a text field had the focus at the end of the last frame.
    was_typing: bool,
}

impl PressedKeys {
    pub(crate) fn new(state: &State, steps: GridSteps, was_typing: bool) -> Self {
        Self { position: 0, owner: state.keyboard_owner(), steps, was_typing }
    }

    /// The command of the next key that has one.
    pub fn next(&mut self, ctx: &Context, state: &State) -> Option<Command> {
        if state.keyboard_owner() != self.owner {
            hold_from(ctx, self.position);
            return None;
        }
        if !state.awaits_boxes() {
            end_wait(ctx);
        }
        loop {
            let event = ctx.input(|input| input.events.get(self.position).cloned())?;
            if let Some(press) = KeyPress::new(&event)
                && let Some(command) = self.command(ctx, state, press)
            {
                let judges = matches!(command, Command::Do(action) if action.is_verdict());
                if judges && state.awaits_boxes() && hold_for_boxes(ctx, self.position) {
                    return None;
                }
                ctx.input_mut(|input| press.consume(&mut input.events, self.position));
                return Some(command);
            }
            self.position += 1;
        }
    }

    /// `None` if the key is for a widget.
    fn command(&self, ctx: &Context, state: &State, press: KeyPress) -> Option<Command> {
        if state.presenting.is_some() {
            let action = shortcuts().find(|(_, shortcut)| press.is(*shortcut)).map(|(action, _)| action);
            return canvas::ui::presentation::command(press.key, press.modifiers, action, state);
        }
        if press.key == Key::Escape {
            return self.escape(ctx, state);
        }
        let Some((action, shortcut)) = shortcuts().find(|(_, shortcut)| press.is(*shortcut)) else {
            return nudge(ctx, state, press).or_else(|| self.walk(ctx, state, press));
        };
        // A verdict applies to one image or box, so holding a key down gives only one.
        let is_surplus = press.is_repeat && action.is_verdict();
        (!is_surplus && is_free(ctx, state, action, shortcut)).then_some(Command::Do(action))
    }

    /// Undoes the most recent step of navigation.
    fn escape(&self, ctx: &Context, state: &State) -> Option<Command> {
        // An open menu closes first.
        if Popup::is_any_open(ctx) {
            return None;
        }
        if state.path_question.is_some() {
            return Some(BrowseCommand::CancelPath.into());
        }
        if state.overlay != Overlay::None {
            return Some(Command::CLOSE_OVERLAY);
        }
        // Escape leaves a text field, and egui has already removed the focus before this sees the key.
        if state.has_dialog() || self.was_typing || grid::is_taken_remote(ctx) {
            return None;
        }
        if state.shown.drawing.is_some() {
            Some(Command::Do(Action::DrawBox))
        } else if !state.judged_boxes().is_empty() {
            Some(Command::Review(ReviewCommand::SelectBox(None)))
        } else if state.selection.selected().len() > 1 {
            Some(Command::Browse(BrowseCommand::ClearSelection))
        } else {
            let is_large = state.large_image;
            is_large.then_some(Command::Do(Action::LargeImage))
        }
    }

    /// Arrow and page keys move; with Shift, they select.
    fn walk(&self, ctx: &Context, state: &State, press: KeyPress) -> Option<Command> {
        let GridSteps { row, page } = self.steps;
        let by = match press.key {
            Key::ArrowLeft => -1,
            Key::ArrowRight => 1,
            Key::ArrowUp => -row,
            Key::ArrowDown => row,
            Key::PageUp => -page,
            Key::PageDown => page,
            _ => return None,
        };
        let Modifiers { alt, shift, command, .. } = press.modifiers;
        if alt || command || grid::is_taken_remote(ctx) || state.has_dialog() || state.order().is_empty() {
            return None;
        }
        let step = if shift { Step::ExtendBy(by) } else { Step::By(by) };
        Some(BrowseCommand::Walk(step).into())
    }
}

/// From this zoom on, arrow keys move a box by half a pixel, the precision that is stored.
const ZOOM_OF_HALF_PIXELS: f32 = 200.0;

/// With Ctrl, arrow keys move the selected box; with Ctrl and Shift, only its right and bottom edges; with Alt and Shift,
/// only its left and top edges.
fn nudge(ctx: &Context, state: &State, press: KeyPress) -> Option<Command> {
    let [x, y] = match press.key {
        Key::ArrowLeft => [-1.0, 0.0],
        Key::ArrowRight => [1.0, 0.0],
        Key::ArrowUp => [0.0, -1.0],
        Key::ArrowDown => [0.0, 1.0],
        _ => return None,
    };
    let Modifiers { alt, shift, command, .. } = press.modifiers;
    let edges = match (command, alt, shift) {
        (true, false, false) => WHOLE_BOX,
        (true, false, true) => RIGHT_AND_BOTTOM,
        (false, true, true) => LEFT_AND_TOP,
        _ => return None,
    };
    let is_taken = ctx.text_edit_focused() || grid::is_taken_remote(ctx) || state.has_dialog();
    let is_large = canvas::ui::zoom_percent(ctx).is_some_and(|zoom| zoom >= ZOOM_OF_HALF_PIXELS);
    let step = if is_large { 0.5 } else { 1.0 };
    let is_meant = state.shown.selected_box.is_some() && !is_taken;
    is_meant.then_some(ReviewCommand::NudgeBox { by: [x * step, y * step], edges }.into())
}

#[derive(Debug, Clone, Copy)]
struct KeyPress {
    key: Key,
    modifiers: Modifiers,
    is_repeat: bool,
}

impl KeyPress {
    fn new(event: &Event) -> Option<Self> {
        match *event {
            Event::Key { key, pressed: true, repeat, modifiers, .. } => {
                Some(Self { key, modifiers, is_repeat: repeat })
            }
            _ => None,
        }
    }

    /// Removes the key at this position, and its text.
    fn consume(self, events: &mut Vec<Event>, position: usize) {
        events.remove(position);
        let is_its_letter = matches!(events.get(position), Some(Event::Text(_)));
        if is_its_letter && !self.modifiers.command && !self.modifiers.alt {
            events.remove(position);
        }
    }

    /// As `consume_shortcut`, but exact: Ctrl+Shift+P does not match Ctrl+P.
    fn is(self, shortcut: KeyboardShortcut) -> bool {
        self.key == shortcut.logical_key && is_exactly(self.modifiers, shortcut)
    }
}

/// Keys without modifiers belong to a focused text field, and while a dialog is open, only its keys work.
fn is_free(ctx: &Context, state: &State, action: Action, shortcut: KeyboardShortcut) -> bool {
    if state.has_dialog() && !works_in_dialog(action, state.overlay) {
        return false;
    }
    let is_typing = ctx.text_edit_focused();
    // A button or slider reached with Tab uses some keys itself; letters keep working.
    let is_pressing = grid::is_taken_remote(ctx) && moves_or_presses(shortcut.logical_key);
    let is_text_editing =
        matches!(action, Action::SelectAll | Action::PreviousImage | Action::NextImage | Action::Undo | Action::Redo);
    let is_taken = if shortcut.modifiers.is_none() { is_typing || is_pressing } else { is_typing && is_text_editing };
    !is_taken
}

/// Any other action would change the hidden window behind the dialog. The key that opened a dialog closes it again.
fn works_in_dialog(action: Action, overlay: Overlay) -> bool {
    match action {
        Action::Quit | Action::InterfaceLarger | Action::InterfaceSmaller | Action::InterfaceNormal => true,
        Action::Palette => overlay == Overlay::Palette,
        Action::OpenS3 => overlay == Overlay::OpenS3,
        Action::Help => overlay == Overlay::Help,
        _ => false,
    }
}

/// Keys that a focused button or slider handles itself.
fn moves_or_presses(key: Key) -> bool {
    matches!(
        key,
        Key::Space
            | Key::Enter
            | Key::ArrowLeft
            | Key::ArrowRight
            | Key::ArrowUp
            | Key::ArrowDown
            | Key::Home
            | Key::End
    )
}

fn is_exactly(pressed: Modifiers, shortcut: KeyboardShortcut) -> bool {
    let wanted = shortcut.modifiers;
    // On many keyboards, Plus is Shift with Equals, and either of the two is reported.
    let may_need_shift = matches!(shortcut.logical_key, Key::Plus | Key::Equals);
    let shift_is_free = may_need_shift || (!wanted.command && !wanted.alt && !wanted.shift);
    pressed.command == wanted.command && pressed.alt == wanted.alt && (pressed.shift == wanted.shift || shift_is_free)
}

/// The first shortcut of an action, in the platform's notation.
pub(crate) fn shortcut_text(ctx: &Context, action: Action) -> Option<String> {
    let shortcut = parse(action.keys().next()?)?;
    Some(as_printed(shortcut.logical_key, ctx.format_shortcut(&shortcut)))
}

/// Punctuation as printed on the key. Plus and minus keep their names: “Ctrl++” is hard to read.
fn as_printed(key: Key, shortcut: String) -> String {
    match key {
        Key::OpenBracket | Key::CloseBracket | Key::Slash | Key::Comma | Key::Period => {
            shortcut.replace(key.name(), key.symbol_or_name())
        }
        _ => shortcut,
    }
}

fn shortcuts() -> impl Iterator<Item = (Action, KeyboardShortcut)> {
    Action::VARIANTS.iter().flat_map(|action| {
        let parsed = action.keys().filter_map(parse);
        parsed.map(move |shortcut| (*action, shortcut))
    })
}

/// Parses `Ctrl+Shift+O`.
fn parse(keys: &str) -> Option<KeyboardShortcut> {
    let mut modifiers = Modifiers::NONE;
    let mut key = None;
    for part in keys.split('+') {
        match part {
            "Ctrl" => modifiers |= Modifiers::COMMAND,
            "Shift" => modifiers |= Modifiers::SHIFT,
            "Alt" => modifiers |= Modifiers::ALT,
            name => key = Some(Key::from_name(name)?),
        }
    }
    Some(KeyboardShortcut::new(modifiers, key?))
}

#[cfg(test)]
mod tests {
    use eframe::egui;

    use super::*;

    #[test]
    fn all_shortcuts_can_be_pressed() {
        for action in Action::VARIANTS {
            for keys in action.keys() {
                assert!(parse(keys).is_some(), "{keys} of {action:?}");
            }
        }
    }

    #[test]
    fn punctuation_is_written_as_on_the_key() {
        let ctx = egui::Context::default();
        let text = |action| shortcut_text(&ctx, action).unwrap();
        assert_eq!(text(Action::Search), "/");
        assert_eq!(text(Action::NextBox), "]");
        assert!(text(Action::SmallerThumbnails).ends_with("+["));
        assert!(text(Action::ZoomIn).ends_with("Plus"));
    }

    #[test]
    fn shortcut_ignores_longer_ones() {
        let with_shift = Modifiers::COMMAND | Modifiers::SHIFT;
        let wanted = KeyboardShortcut::new(Modifiers::COMMAND, Key::P);
        assert!(is_exactly(Modifiers::COMMAND, wanted));
        assert!(!is_exactly(with_shift, wanted));
        let bare = KeyboardShortcut::new(Modifiers::NONE, Key::Plus);
        assert!(is_exactly(Modifiers::SHIFT, bare));
        let plus = KeyboardShortcut::new(Modifiers::COMMAND, Key::Plus);
        assert!(is_exactly(Modifiers::COMMAND, plus) && is_exactly(with_shift, plus));
    }
}
