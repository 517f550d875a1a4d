//! A response for display: indented, with long lists and texts shortened.

use std::fmt::Write;

use super::json::Json;

/// The number of numbers shown per list.
const NUMBERS: usize = 6;
/// The number of other elements shown per list.
const ELEMENTS: usize = 3;
const FIELDS: usize = 40;
const TEXT: usize = 60;
/// The maximum length; the rest is cut off.
const LONGEST: usize = 6000;
/// Deeper than anybody reads.
const MAX_DEPTH: usize = 16;

/// An excerpt that marks omissions in place, so it is not valid JSON.
pub(super) fn shown(response: &Json) -> String {
    let mut text = String::new();
    write_json(response, 0, &mut text);
    if text.len() > LONGEST {
        text.truncate(text.floor_char_boundary(LONGEST));
        text.push('…');
    }
    text
}

/// The start of an output that is not JSON.
pub(super) fn shown_raw(response: &[u8]) -> String {
    let beginning = &response[..response.len().min(LONGEST)];
    let mut text = String::from_utf8_lossy(beginning).into_owned();
    if response.len() > LONGEST {
        text.push('…');
    }
    text
}

fn write_json(json: &Json, depth: usize, text: &mut String) {
    if text.len() > LONGEST || depth > MAX_DEPTH {
        text.push('…');
        return;
    }
    match json {
        Json::Null => text.push_str("null"),
        Json::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Json::Number(number) => write_number(*number, text),
        Json::Text(value) => write_text(value, text),
        Json::Numbers(numbers) => write_numbers(numbers, text),
        Json::List(list) => {
            text.push('[');
            for (place, element) in list.iter().take(ELEMENTS).enumerate() {
                if place > 0 {
                    text.push(',');
                }
                new_line(depth + 1, text);
                write_json(element, depth + 1, text);
            }
            write_rest(list.len(), ELEMENTS, depth, text);
            new_line(depth, text);
            text.push(']');
        }
        Json::Object(fields) => {
            text.push('{');
            for (place, (name, value)) in fields.iter().take(FIELDS).enumerate() {
                if place > 0 {
                    text.push(',');
                }
                new_line(depth + 1, text);
                write_text(name, text);
                text.push_str(": ");
                write_json(value, depth + 1, text);
            }
            write_rest(fields.len(), FIELDS, depth, text);
            new_line(depth, text);
            text.push('}');
        }
    }
}

fn write_numbers(numbers: &[f64], text: &mut String) {
    text.push('[');
    for (place, number) in numbers.iter().take(NUMBERS).enumerate() {
        if place > 0 {
            text.push_str(", ");
        }
        write_number(*number, text);
    }
    if numbers.len() > NUMBERS {
        append(text, format_args!(", … {} more", numbers.len() - NUMBERS));
    }
    text.push(']');
}

fn write_rest(all: usize, written: usize, depth: usize, text: &mut String) {
    if all > written {
        text.push(',');
        new_line(depth + 1, text);
        append(text, format_args!("… {} more", all - written));
    }
}

/// Writes as many digits as distinguish two scores.
fn write_number(number: f64, text: &mut String) {
    let is_whole = number.fract() == 0.0 && number.abs() < 1e15;
    if is_whole {
        append(text, format_args!("{number}"));
    } else if (1e-4..1e6).contains(&number.abs()) {
        let digits = format!("{number:.5}");
        text.push_str(digits.trim_end_matches('0'));
    } else {
        append(text, format_args!("{number:.3e}"));
    }
}

fn write_text(value: &str, text: &mut String) {
    text.push('"');
    for letter in value.chars().take(TEXT) {
        match letter {
            '"' | '\\' => text.extend(['\\', letter]),
            letter if letter.is_control() => text.push(' '),
            letter => text.push(letter),
        }
    }
    if value.chars().nth(TEXT).is_some() {
        text.push('…');
    }
    text.push('"');
}

fn new_line(depth: usize, text: &mut String) {
    text.push('\n');
    for _ in 0..depth {
        text.push_str("  ");
    }
}

fn append(text: &mut String, what: std::fmt::Arguments<'_>) {
    text.write_fmt(what).expect("writing to a string cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown_text(text: &str) -> String {
        shown(&Json::parse(text.as_bytes()).unwrap())
    }

    #[test]
    fn shown_response_is_indented_and_elided() {
        assert_eq!(
            shown_text(
                r#"{"scores": [0.25, 0.75000001, 1e-9, 4, 5, 6, 7, 8], "name": "a \"cat\"",
                "boxes": [[1, 2], [3, 4], [5, 6], [7, 8]]}"#
            ),
            concat!(
                "{\n",
                "  \"scores\": [0.25, 0.75, 1.000e-9, 4, 5, 6, … 2 more],\n",
                "  \"name\": \"a \\\"cat\\\"\",\n",
                "  \"boxes\": [\n",
                "    [1, 2],\n",
                "    [3, 4],\n",
                "    [5, 6],\n",
                "    … 1 more\n",
                "  ]\n",
                "}"
            )
        );
        assert_eq!(shown_text("[]"), "[]");
        assert_eq!(shown_text("null"), "null");
    }

    #[test]
    fn huge_response_is_shown_briefly() {
        let fields: Vec<String> =
            (0..1000).map(|key| format!("\"{key}\": [[[1], [2], [3]], [[4], [5], [6]], [[7], [8], [9]]]")).collect();
        let text = shown_text(&format!("[{{{0}}}, {{{0}}}, {{{0}}}]", fields.join(",")));
        assert!(text.len() < LONGEST + 100, "{}", text.len());
        assert!(text.ends_with('…'), "{text}");
        assert!(shown_raw(&vec![b'x'; 10_000]).len() < LONGEST + 100);
    }
}
