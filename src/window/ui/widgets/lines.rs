//! Navigation in the list below a text field: the arrow keys mark a line without leaving the field.

use eframe::egui::{Key, Modifiers, Ui};

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
