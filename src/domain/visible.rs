//! Text with visible control characters.

use std::borrow::Cow;

/// The text with control characters as `\\u{1b}` or `\\n`: no escape sequence in a file name reaches a terminal, and no
/// name breaks a line.
pub fn visible(text: &str) -> Cow<'_, str> {
    shown(text, char::is_control)
}

/// As [`visible`], but line breaks and tabs stay.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    shown(text, |letter| letter.is_control() && !matches!(letter, '\n' | '\t'))
}

fn shown(text: &str, is_hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        if is_hidden(letter) {
            shown.extend(letter.escape_default());
        } else {
            shown.push(letter);
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_made_visible() {
        for (name, expected) in [
            ("고양이 é \\ '.jpg", "고양이 é \\ '.jpg"),
            ("\u{1b}[31mred.jpg", "\\u{1b}[31mred.jpg"),
            ("new\nline\r.jpg", "new\\nline\\r.jpg"),
            ("\u{9b}31m\u{7f}", "\\u{9b}31m\\u{7f}"),
        ] {
            assert_eq!(visible(name), expected);
        }
        assert_eq!(visible_lines("a\tb\nc\u{7}\n"), "a\tb\nc\\u{7}\n");
    }
}
