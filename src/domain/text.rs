//! Words and numbers in messages.

use std::borrow::Cow;
use std::fmt::Display;

/// “1 image”, “3 images”.
pub fn counted<T: Display + PartialEq + From<u8>>(count: T, one: &str, several: &str) -> String {
    let noun = if count == T::from(1) { one } else { several };
    format!("{count} {noun}")
}

/// The text with an uppercase first letter.
pub fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The first `max_chars` characters, followed by “…” if there are more.
pub fn shortened(text: &str, max_chars: usize) -> Cow<'_, str> {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}
