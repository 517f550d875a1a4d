//! Words and numbers in messages.

use std::borrow::Cow;
use std::fmt::Display;

/// “1 image”, “3,000 images”.
pub fn counted<T: Display + PartialEq + From<u8>>(count: T, one: &str, several: &str) -> String {
    let noun = if count == T::from(1) { one } else { several };
    format!("{} {noun}", grouped(count))
}

/// A whole number with digit separators: `100,000`.
pub fn grouped(number: impl Display) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

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
