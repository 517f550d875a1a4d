//! Words, numbers, amounts of data and times in messages.

use std::borrow::Cow;
use std::fmt::{self, Display, Write as _};
use std::time::Duration;

use jiff::Timestamp;
use strum::VariantArray;

/// Enough for scores of 32 bits.
const MIN_SCORE_DECIMALS: usize = 7;

/// “1 image”, “3,000 images”.
pub fn counted<T: Display + PartialEq + From<u8>>(count: T, one: &str, several: &str) -> String {
    let noun = if count == T::from(1) { one } else { several };
    format!("{} {noun}", grouped(count))
}

/// The character between the columns of a CSV file with this first line: a comma, semicolon or tab.
pub fn column_delimiter(header: &str) -> char {
    let count = |delimiter: &char| header.matches(*delimiter).count();
    [',', ';', '\t'].into_iter().rev().max_by_key(count).unwrap_or(',')
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

/// A score with all its digits, at least two decimals: `0.50`, `0.9345`.
pub fn score_text(score: f64) -> String {
    let text = score.to_string();
    let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    if decimals < 2 { format!("{score:.2}") } else { text }
}

/// A computed minimum score, rounded down to seven decimals: rounded up, it would hide the box that has this score.
pub fn min_score_text(score: f64) -> String {
    let mut text = score_text(score);
    let end = text.find('.').map_or(text.len(), |point| point + 1 + MIN_SCORE_DECIMALS);
    text.truncate(end);
    text
}

/// Two lowercase digits per byte.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string does not fail");
        text
    })
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

/// `one of json, csv`: all words of `T`. For strum's `parse_err_fn`, so it receives the rejected word, which clap
/// quotes itself.
pub fn one_of<T: VariantArray + Into<&'static str> + Copy>(_rejected: &str) -> String {
    let words: Vec<&str> = T::VARIANTS.iter().map(|&variant| variant.into()).collect();
    format!("one of {}", words.join(", "))
}

/// `bytes` in the largest unit that gives at least 1, with two or three digits: `512 B`, `9.8 MiB`, `98 MiB`.
pub fn human_bytes(bytes: u64) -> String {
    let mut amount = bytes as f64;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        // 1023.5 would round to 1024.
        if amount < 1023.5 {
            break;
        }
        amount /= 1024.0;
        unit = larger;
    }
    // 9.95 would round to 10.0.
    if unit == "B" || amount >= 9.95 { format!("{amount:.0} {unit}") } else { format!("{amount:.1} {unit}") }
}

/// Rounded to natural units: `3.1 s`, `42 s`, `2 min 10 s`, `1 h 5 min`.
pub fn human_duration(duration: Duration) -> String {
    let secs = duration.as_secs();
    match secs {
        0..10 => format!("{:.1} s", duration.as_secs_f64()),
        10..60 => format!("{secs} s"),
        60..3600 => format!("{} min {} s", secs / 60, secs % 60),
        _ => format!("{} h {} min", secs / 3600, secs % 3600 / 60),
    }
}

/// A moment, to the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Utc(Timestamp);

impl Utc {
    pub fn from_ms(ms: i64) -> Self {
        Self(Timestamp::from_millisecond(ms).unwrap_or_default())
    }

    /// `2026-11-21`
    pub fn date(self) -> String {
        self.0.strftime("%F").to_string()
    }

    /// `14:05:09`
    pub fn time(self) -> String {
        self.0.strftime("%T").to_string()
    }

    /// `20261121-140509007`
    pub fn compact(self) -> String {
        self.0.strftime("%Y%m%d-%H%M%S%3f").to_string()
    }
}

/// `2026-11-21 14:05:09 UTC`
impl fmt::Display for Utc {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.strftime("%F %T UTC").fmt(formatter)
    }
}

/// The disk usage of the cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheUsage {
    pub thumbnail_bytes: u64,
    /// Encoded images from S3.
    pub image_bytes: u64,
    /// Maps of embeddings.
    pub map_bytes: u64,
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

    #[test]
    fn durations_have_natural_units() {
        for (secs, expected) in [(3.12, "3.1 s"), (42.0, "42 s"), (131.0, "2 min 11 s"), (3900.0, "1 h 5 min")] {
            assert_eq!(human_duration(Duration::from_secs_f64(secs)), expected);
        }
    }

    #[test]
    fn minimum_score_is_never_rounded_up() {
        for (score, exact, minimum) in [
            (0.5, "0.50", "0.50"),
            (1.0, "1.00", "1.00"),
            (0.0, "0.00", "0.00"),
            (0.9345, "0.9345", "0.9345"),
            (0.934_488_9, "0.9344889", "0.9344889"),
            (0.934_488_952_159_881_6, "0.9344889521598816", "0.9344889"),
            (0.999_999_99, "0.99999999", "0.9999999"),
        ] {
            assert_eq!((score_text(score).as_str(), min_score_text(score).as_str()), (exact, minimum));
        }
    }

    #[test]
    fn bytes_have_a_suitable_unit() {
        for (bytes, expected) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (10 * 1024 - 1, "10 KiB"),
            (102_442_452, "98 MiB"),
            (1024 * 1024 * 1024 - 1, "1.0 GiB"),
        ] {
            assert_eq!(human_bytes(bytes), expected, "{bytes}");
        }
    }

    #[test]
    fn times_match_gnu_date() {
        // `date -u -d @SECONDS '+%F %T UTC'`
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (-1, "1969-12-31 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_795_269_909, "2026-11-21 14:05:09 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(Utc::from_ms(seconds * 1000).to_string(), text);
        }
        let at = Utc::from_ms(1_795_269_909_999);
        assert_eq!((at.date(), at.time()), ("2026-11-21".to_owned(), "14:05:09".to_owned()));
    }
}
