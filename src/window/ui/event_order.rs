//! The order of keys and clicks.
//!
//! egui passes all events of a frame to every widget, and the focused widget is the same for the whole frame. In a slow
//! frame, a key that opens a field arrives together with the text for that field. [`EventOrder`] passes egui only the
//! events that no earlier event can redirect, and holds the rest for the next frame.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use eframe::egui::{Context, Event, FocusDirection, Key, Plugin, RawInput, Ui};

/// The events that wait for the next frame, oldest first.
#[derive(Default)]
pub(crate) struct EventOrder {
    held: VecDeque<Event>,
    /// The last frame that received events: a second pass of it receives none.
    frame: Option<u64>,
    /// Since when keys have been waiting for the boxes that they judge.
    waiting_since: Option<Instant>,
}

/// The longest time that keys wait for boxes. Reading them takes milliseconds; predicting them can take much longer.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// How an event can redirect later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Moves the focus before anything is drawn.
    MovesFocus,
    /// Can press a button, or leave the focused field.
    Confirms,
    Click,
    /// Moves through the list below a field.
    Walks,
    Text,
    OtherKey,
    Passive,
}

impl Role {
    fn new(event: &Event, is_typing: bool) -> Self {
        match event {
            Event::Key { key, pressed: true, .. } => match key {
                Key::Escape | Key::Tab => Self::MovesFocus,
                Key::Enter => Self::Confirms,
                Key::Space if !is_typing => Self::Confirms,
                Key::ArrowUp | Key::ArrowDown if is_typing => Self::Walks,
                _ => Self::OtherKey,
            },
            Event::Text(_) | Event::Paste(_) | Event::Ime(_) => Self::Text,
            Event::Copy | Event::Cut => Self::OtherKey,
            Event::PointerButton { .. } | Event::AccessKitActionRequest(_) => Self::Click,
            _ => Self::Passive,
        }
    }
}

/// The number of these events that can share a frame.
fn batch_len<'e>(events: impl Iterator<Item = &'e Event>, is_typing: bool) -> usize {
    let (mut has_click, mut has_key, mut has_text) = (false, false, false);
    let mut count = 0;
    for event in events {
        let role = Role::new(event, is_typing);
        let is_redirected = match role {
            Role::MovesFocus => has_click || has_key,
            Role::Confirms | Role::Walks => has_click || (is_typing && has_text),
            Role::Text | Role::OtherKey => has_click,
            Role::Click => has_key,
            Role::Passive => false,
        };
        if is_redirected {
            return count;
        }
        count += 1;
        if matches!(role, Role::MovesFocus | Role::Confirms) {
            return count;
        }
        has_click |= role == Role::Click;
        has_text |= role == Role::Text;
        has_key |= matches!(role, Role::Text | Role::OtherKey | Role::Walks);
    }
    count
}

impl EventOrder {
    /// Whether the event repeats a held key that needs a frame of its own: repeats would outpace slow frames.
    fn is_surplus_repeat(&self, event: &Event) -> bool {
        let &Event::Key { key, pressed: true, .. } = event else {
            return false;
        };
        let last = self.held.iter().rev().find_map(|held| match held {
            Event::Key { key: other, pressed, .. } if *other == key => Some(*pressed),
            _ => None,
        });
        last == Some(true) && matches!(Role::new(event, true), Role::MovesFocus | Role::Confirms)
    }
}

impl Plugin for EventOrder {
    fn debug_name(&self) -> &'static str {
        "event order"
    }

    fn input_hook(&mut self, ctx: &Context, input: &mut RawInput) {
        for event in input.events.drain(..) {
            if !self.is_surplus_repeat(&event) {
                self.held.push_back(event);
            }
        }
        let frame = ctx.cumulative_frame_nr();
        if self.frame.replace(frame) != Some(frame) {
            let count = batch_len(self.held.iter(), ctx.text_edit_focused());
            input.events.extend(self.held.drain(..count));
        }
    }

    fn on_end_pass(&mut self, ui: &mut Ui) {
        if !self.held.is_empty() {
            ui.ctx().request_repaint();
        }
    }
}

/// Holds what was typed from this event on for the next frame, because its target has just been opened.
pub(crate) fn hold_from(ctx: &Context, position: usize) {
    let Some(order) = ctx.plugin_opt::<EventOrder>() else {
        return;
    };
    let rest = ctx.input_mut(|input| {
        let rest = input.events.split_off(position.min(input.events.len()));
        let is_typed = |event: &Event| {
            let is_release = matches!(event, Event::Key { pressed: false, .. });
            is_release || matches!(Role::new(event, true), Role::Text | Role::OtherKey | Role::Walks | Role::Confirms)
        };
        let (typed, other): (Vec<Event>, Vec<Event>) = rest.into_iter().partition(is_typed);
        input.events.extend(other);
        for event in &typed {
            if let Event::Key { key, pressed: true, .. } = event {
                // Seen again, it would count as a repeat.
                input.keys_down.remove(key);
            }
        }
        typed
    });
    // An arrow key among them has asked egui for another widget.
    ctx.memory_mut(|memory| memory.move_focus(FocusDirection::None));
    let mut order = order.lock();
    for event in rest.into_iter().rev() {
        order.held.push_front(event);
    }
}

/// Holds keys from this event on while the boxes that they judge are loaded. Returns false if that takes too long.
pub(crate) fn hold_for_boxes(ctx: &Context, position: usize) -> bool {
    let since =
        ctx.plugin_opt::<EventOrder>().map(|order| *order.lock().waiting_since.get_or_insert_with(Instant::now));
    let waits = since.is_some_and(|since| since.elapsed() < LONGEST_WAIT);
    if waits {
        hold_from(ctx, position);
    }
    waits
}

/// The boxes are loaded: the next keys that have to wait can wait as long.
pub(crate) fn end_wait(ctx: &Context) {
    if let Some(order) = ctx.plugin_opt::<EventOrder>() {
        order.lock().waiting_since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eframe::egui::{Modifiers, PointerButton, Pos2};

    fn key(key: Key) -> Event {
        Event::Key { key, physical_key: None, pressed: true, repeat: false, modifiers: Modifiers::NONE }
    }

    fn text(text: &str) -> Event {
        Event::Text(text.to_owned())
    }

    fn click() -> Event {
        Event::PointerButton {
            pos: Pos2::ZERO,
            button: PointerButton::Primary,
            pressed: true,
            modifiers: Modifiers::NONE,
        }
    }

    #[test]
    fn events_share_a_frame_until_focus_may_change() {
        let check = |is_typing: bool, events: &[Event], expected: usize| {
            assert_eq!(batch_len(events.iter(), is_typing), expected, "{events:?}");
        };
        for is_typing in [false, true] {
            check(is_typing, &[], 0);
            check(is_typing, &[key(Key::A), text("a"), key(Key::A), text("a")], 4);
            check(is_typing, &[key(Key::A), key(Key::Escape), key(Key::B)], 1);
            check(is_typing, &[key(Key::Escape), key(Key::B)], 1);
            check(is_typing, &[key(Key::Tab), key(Key::Tab)], 1);
            check(is_typing, &[key(Key::Enter), key(Key::A)], 1);
            check(is_typing, &[click(), click(), key(Key::A)], 2);
            check(is_typing, &[key(Key::A), click()], 1);
        }
        check(true, &[text("a"), key(Key::Enter)], 1);
        check(true, &[text("a"), key(Key::ArrowDown)], 1);
        check(true, &[key(Key::Space), text(" "), text("b")], 3);
        check(false, &[key(Key::Space), key(Key::A)], 1);
        check(false, &[key(Key::ArrowDown), key(Key::A), key(Key::ArrowDown)], 3);
    }

    #[test]
    fn held_key_does_not_fill_the_queue() {
        let mut order = EventOrder::default();
        order.held.push_back(key(Key::Tab));
        assert!(order.is_surplus_repeat(&key(Key::Tab)));
        assert!(!order.is_surplus_repeat(&key(Key::Enter)));
        let released =
            Event::Key { key: Key::Tab, physical_key: None, pressed: false, repeat: false, modifiers: Modifiers::NONE };
        order.held.push_back(released);
        assert!(!order.is_surplus_repeat(&key(Key::Tab)));
    }
}
