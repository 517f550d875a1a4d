//! Keys of the action table.

use eframe::egui::{self, Key, KeyboardShortcut, Modifiers};
use strum::VariantArray;

use crate::state::{Action, BrowseCommand, Command, Overlay, Queue, ReviewCommand, State};

/// Pushes the command of every shortcut that was pressed. Bare letters go to a text field that has the focus, and while
/// a dialog is open only the keys that it needs work. `was_typing` says whether a text field had the keyboard at the
/// end of the last frame.
pub(super) fn take_shortcuts(ctx: &egui::Context, state: &State, was_typing: bool, commands: &mut Queue<Command>) {
    let is_typing = ctx.text_edit_focused();
    // A button or slider that was reached with Tab uses some keys itself; letters go on to work.
    let has_focus = super::grid::is_taken_remote(ctx);
    if ctx.input(|input| input.key_pressed(Key::Escape))
        && let Some(command) = escape(ctx, state, was_typing, has_focus)
    {
        commands.push(command);
        return;
    }
    for (action, shortcut) in shortcuts() {
        if state.has_dialog() && !works_in_dialog(action, state.overlay) {
            continue;
        }
        let is_bare = shortcut.modifiers.is_none();
        let is_taken = is_typing || (has_focus && moves_or_presses(shortcut.logical_key));
        if is_bare && is_taken {
            continue;
        }
        // In a text field these belong to the text.
        let is_text_editing = matches!(
            action,
            Action::SelectAll | Action::PreviousImage | Action::NextImage | Action::Undo | Action::Redo
        );
        if is_text_editing && is_typing {
            continue;
        }
        if ctx.input_mut(|input| consume(input, shortcut)) {
            commands.push(Command::Do(action));
        }
    }
}

/// What Escape does: one step back from what was done last.
fn escape(ctx: &egui::Context, state: &State, was_typing: bool, has_focus: bool) -> Option<Command> {
    // A menu that is open closes first.
    if egui::Popup::is_any_open(ctx) {
        return None;
    }
    if state.overlay != Overlay::None {
        return Some(Command::SetOverlay(Overlay::None));
    }
    // Escape leaves a text field, and egui has taken the keyboard from it before this sees the key.
    if state.has_dialog() || was_typing || has_focus {
        return None;
    }
    if state.shown.selected_box.is_some() {
        Some(Command::Review(ReviewCommand::SelectBox(None)))
    } else if state.selection.selected().len() > 1 {
        Some(Command::Browse(BrowseCommand::ClearSelection))
    } else {
        let is_large = state.large_image;
        is_large.then_some(Command::Do(Action::LargeImage))
    }
}

/// Any other action would change the window behind the dialog, unseen. The key that opened a dialog closes it again.
fn works_in_dialog(action: Action, overlay: Overlay) -> bool {
    match action {
        Action::Quit | Action::InterfaceLarger | Action::InterfaceSmaller | Action::InterfaceNormal => true,
        Action::Palette => overlay == Overlay::Palette,
        Action::OpenS3 => overlay == Overlay::OpenS3,
        Action::Help => overlay == Overlay::Help,
        _ => false,
    }
}

/// Keys that a focused button or slider takes for itself.
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

/// As `consume_shortcut`, but exact: Ctrl+Shift+P is not also Ctrl+P.
fn consume(input: &mut egui::InputState, shortcut: KeyboardShortcut) -> bool {
    let before = input.events.len();
    input.events.retain(|event| {
        !matches!(event, egui::Event::Key { key, pressed: true, modifiers, .. }
            if *key == shortcut.logical_key && is_exactly(*modifiers, shortcut))
    });
    input.events.len() != before
}

fn is_exactly(pressed: Modifiers, shortcut: KeyboardShortcut) -> bool {
    let wanted = shortcut.modifiers;
    // On many keyboards Plus is Equals with Shift, and either of the two is reported.
    let may_need_shift = matches!(shortcut.logical_key, Key::Plus | Key::Equals);
    let shift_is_free = may_need_shift || (!wanted.command && !wanted.alt && !wanted.shift);
    pressed.command == wanted.command && pressed.alt == wanted.alt && (pressed.shift == wanted.shift || shift_is_free)
}

/// The first shortcut of an action, as the platform writes it.
pub(super) fn shortcut_text(ctx: &egui::Context, action: Action) -> Option<String> {
    let shortcut = parse(action.keys().next()?)?;
    Some(as_printed(shortcut.logical_key, ctx.format_shortcut(&shortcut)))
}

/// Punctuation as it is printed on the key. Plus and minus keep their names: “Ctrl++” is hard to read.
fn as_printed(key: Key, shortcut: String) -> String {
    match key {
        Key::OpenBracket | Key::CloseBracket | Key::Slash => shortcut.replace(key.name(), key.symbol_or_name()),
        _ => shortcut,
    }
}

fn shortcuts() -> impl Iterator<Item = (Action, KeyboardShortcut)> {
    Action::VARIANTS.iter().flat_map(|action| {
        let parsed = action.keys().filter_map(parse);
        parsed.map(move |shortcut| (*action, shortcut))
    })
}

/// Reads `Ctrl+Shift+O`.
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
    use super::*;

    #[test]
    fn every_key_of_the_table_can_be_pressed() {
        for action in Action::VARIANTS {
            for keys in action.keys() {
                assert!(parse(keys).is_some(), "{keys} of {action:?}");
            }
        }
    }

    #[test]
    fn punctuation_is_written_as_it_stands_on_the_key() {
        let ctx = egui::Context::default();
        let text = |action| shortcut_text(&ctx, action).unwrap();
        assert_eq!(text(Action::Search), "/");
        assert_eq!(text(Action::NextBox), "]");
        assert!(text(Action::SmallerThumbnails).ends_with("+["));
        assert!(text(Action::ZoomIn).ends_with("Plus"));
    }

    #[test]
    fn a_shortcut_is_not_a_longer_one() {
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
