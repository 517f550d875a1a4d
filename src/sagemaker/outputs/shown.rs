//! A response for display: indented, with long lists and texts shortened; and its values with their pointers, to select
//! from.

use std::fmt::Write;

use super::json::Json;
use crate::sagemaker::spec::output_mapping::{JsonPlace, JsonPointer, PlaceContent};

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

/// The maximum number of listed values.
const MAX_PLACES: usize = 200;
/// Deeper than any meaningful response.
const MAX_PLACE_DEPTH: usize = 16;
/// Lists with one element per input, of which there was one; in other lists, each element counts.
const LISTS_OF_INPUTS: [&str; 3] = ["predictions", "outputs", "instances"];

/// Every value that a mapping can use, in response order.
pub(super) fn places_of(response: &Json) -> Vec<JsonPlace> {
    let mut places = Vec::new();
    walk(&[response], &Path::default(), &mut places);
    places
}

/// The pointer to the current value.
#[derive(Clone, Default)]
struct Path {
    text: String,
    depth: usize,
    /// Whether it applies to every element of a list.
    is_each: bool,
}

impl Path {
    fn to(&self, step: &str) -> Self {
        Self { text: format!("{}/{step}", self.text), depth: self.depth + 1, is_each: self.is_each }
    }

    fn to_key(&self, key: &str) -> Self {
        self.to(&key.replace('~', "~0").replace('/', "~1"))
    }

    fn to_each(&self) -> Self {
        Self { is_each: true, ..self.to("*") }
    }

    /// Whether the last key is one of these.
    fn ends_in(&self, keys: &[&str]) -> bool {
        let last = self.text.rsplit('/').next().unwrap_or_default();
        keys.contains(&last)
    }
}

/// `found` are the targets of the path: several only if it goes through a list.
fn walk(found: &[&Json], path: &Path, places: &mut Vec<JsonPlace>) {
    if path.depth > MAX_PLACE_DEPTH || places.len() >= MAX_PLACES {
        return;
    }
    if let (Some(holds), Ok(pointer)) = (content(found, path.is_each), JsonPointer::parse(&path.text)) {
        places.push(JsonPlace { pointer, holds });
    }
    match found {
        [Json::Object(fields), ..] => {
            for (key, _) in fields.iter().filter(|(key, _)| &**key != "*") {
                let inner: Option<Vec<&Json>> = found.iter().map(|each| each.get(key)).collect();
                if let Some(inner) = inner {
                    walk(&inner, &path.to_key(key), places);
                }
            }
        }
        [Json::List(list)] if list.len() == 1 && !path.is_each => {
            let is_of_objects = matches!(list[0], Json::Object(_));
            // A single object here may be one of many in another response.
            if is_of_objects && !path.ends_in(&LISTS_OF_INPUTS) {
                walk(&[&list[0]], &path.to_each(), places);
            } else {
                walk(&[&list[0]], &path.to("0"), places);
            }
        }
        [Json::List(_), ..] => {
            let lists = found.iter().map(|each| match each {
                Json::List(list) => Some(list.iter()),
                _ => None,
            });
            let elements: Option<Vec<_>> = lists.collect();
            let elements: Vec<&Json> = elements.into_iter().flatten().flatten().collect();
            let is_of = |kind: fn(&Json) -> bool| elements.iter().all(|each| kind(each));
            let are_alike =
                is_of(|each| matches!(each, Json::Object(_))) || is_of(|each| matches!(each, Json::List(_)));
            if are_alike && !elements.is_empty() {
                walk(&elements, &path.to_each(), places);
            }
        }
        _ => {}
    }
}

/// `None` if no field of a mapping can be read from it.
fn content(found: &[&Json], is_each: bool) -> Option<PlaceContent> {
    if found.iter().all(|each| matches!(each, Json::Number(_))) {
        if !is_each {
            return Some(PlaceContent::Number);
        }
        let numbers: Vec<f64> = found.iter().filter_map(|each| each.number()).collect();
        return Some(PlaceContent::Numbers { count: numbers.len(), are_parts: are_parts(&numbers) });
    }
    if found.iter().all(|each| each.text().is_some()) {
        return Some(if is_each { PlaceContent::Texts { count: found.len() } } else { PlaceContent::Text });
    }
    if is_each && found.iter().all(|each| matches!(each, Json::Numbers(_))) {
        return rows_content(found.iter().copied());
    }
    match found {
        [Json::Numbers(numbers)] if !numbers.is_empty() => {
            Some(PlaceContent::Numbers { count: numbers.len(), are_parts: are_parts(numbers) })
        }
        [Json::List(list)] if list.iter().all(|each| each.text().is_some()) => {
            Some(PlaceContent::Texts { count: list.len() })
        }
        // A single one is described by its content.
        [Json::List(list)] if list.len() > 1 && list.iter().all(|each| matches!(each, Json::Numbers(_))) => {
            rows_content(list.iter())
        }
        [Json::List(list)] => match &**list {
            [row @ Json::Numbers(numbers)] if numbers.len() == 4 => rows_content([row].into_iter()),
            _ => None,
        },
        _ => None,
    }
}

/// Lists of numbers, as they are read: rows of four, or all concatenated.
fn rows_content<'j>(lists: impl Iterator<Item = &'j Json>) -> Option<PlaceContent> {
    let (mut rows, mut numbers) = (0, 0);
    let (mut all_parts, mut all_fours) = (true, true);
    for list in lists {
        if let Json::Numbers(row) = list {
            rows += 1;
            numbers += row.len();
            all_parts &= are_parts(row);
            all_fours &= row.len() == 4;
        }
    }
    match numbers {
        0 => None,
        _ if all_fours => Some(PlaceContent::Rows { count: rows, are_parts: all_parts }),
        count => Some(PlaceContent::Numbers { count, are_parts: all_parts }),
    }
}

fn are_parts(numbers: &[f64]) -> bool {
    numbers.iter().all(|number| (0.0..=1.0).contains(number))
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

    /// “/scores: 3 numbers”, one per line.
    fn found(text: &str) -> Vec<String> {
        let json = Json::parse(text.as_bytes()).unwrap();
        let places = places_of(&json);
        for place in &places {
            // Each pointer can be followed.
            assert!(json.at(&place.pointer).is_ok(), "{}", place.pointer);
        }
        places.iter().map(|place| format!("{}: {}", place.pointer, place.holds.words())).collect()
    }

    #[test]
    fn response_paths_are_listed_with_their_values() {
        for (text, expected) in [
            ("[0.1, 0.9]", vec![": 2 numbers"]),
            ("[[0.1, 0.9]]", vec!["/0: 2 numbers"]),
            (
                r#"{"verdict": {"certainty": [0.25, 0.75], "best": 1, "why": "fur"}}"#,
                vec!["/verdict/certainty: 2 numbers", "/verdict/best: a number", "/verdict/why: a string"],
            ),
            (
                r#"{"predictions": [{"scores": [0.5, 0.5], "names": ["cat", "dog"]}]}"#,
                vec!["/predictions/0/scores: 2 numbers", "/predictions/0/names: 2 strings"],
            ),
            (
                r#"{"boxes": [[1, 2, 3, 4], [5, 6, 7, 8]], "n": [2.0], "m": []}"#,
                vec!["/boxes: 2 rows of 4 numbers", "/n: 1 number"],
            ),
            (r#"{"boxes": [[1, 2, 3, 4]]}"#, vec!["/boxes: 1 row of 4 numbers", "/boxes/0: 4 numbers"]),
            (
                r#"{"items": [{"box": [1, 2, 3, 4], "at": {"x": 1}, "tag": "a"},
                    {"box": [5, 6, 7, 8], "at": {"x": 2}, "tag": "b", "more": 1}]}"#,
                vec!["/items/*/box: 2 rows of 4 numbers", "/items/*/at/x: 2 numbers", "/items/*/tag: 2 strings"],
            ),
            (r#"{"items": [{"score": 0.5}]}"#, vec!["/items/*/score: 1 number"]),
            (r#"{"a/b": {"*": 1, "c~d": 2}}"#, vec!["/a~1b/c~0d: a number"]),
            (r#"[1, "two", null]"#, vec![]),
            ("true", vec![]),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
    }

    #[test]
    fn hostile_response_has_few_paths() {
        let fields: Vec<String> = (0..5000).map(|key| format!("\"{key}\": 1")).collect();
        assert_eq!(found(&format!("{{{}}}", fields.join(","))).len(), MAX_PLACES);
        let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
        assert!(found(&deep).is_empty());
    }
}
