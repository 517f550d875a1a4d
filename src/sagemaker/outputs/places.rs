//! The values in a response and their pointers.

use super::json::Json;
use crate::sagemaker::spec::output_mapping::{JsonPlace, JsonPointer, PlaceContent};

/// The maximum number of listed values.
const MAX_PLACES: usize = 200;
/// Deeper than any meaningful response.
const MAX_DEPTH: usize = 16;
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
    if path.depth > MAX_DEPTH || places.len() >= MAX_PLACES {
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
