//! Names of classes: from the user's file, from the exporter's metadata, or a built-in set that fits in number.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::RecognitionRequest;
use super::finding::Refusal;
use crate::domain::LabelSet;

/// The file beside the card that holds the names, from the user's file or the metadata.
pub(super) const LABEL_FILE: &str = "labels.txt";

/// How many classes a label set is for: gaps between ids count.
pub(super) fn label_count(labels: &LabelSet) -> usize {
    labels.max_id().map_or(0, |id| id as usize + 1)
}

/// The message for a label set of `count` classes if the model `has` another number.
pub(super) fn misfit(has: impl std::fmt::Display, count: usize) -> Refusal {
    Refusal::new(format!(
        "the model {has} and the label file names {count} classes: give the label file that the model was trained with"
    ))
}

/// The names that exporters write into `names`: a list, or a dictionary from number to name, of Python or JSON.
pub(super) fn from_metadata(model: &RecognitionRequest<'_>) -> Option<LabelSet> {
    let names = parse_names(model.graph.metadata.get("names")?)?;
    let mut text = String::new();
    for (id, name) in names {
        let _ = writeln!(text, "{id}\t{name}");
    }
    LabelSet::parse(&text).ok().filter(|labels| !labels.is_empty())
}

fn parse_names(text: &str) -> Option<BTreeMap<u32, String>> {
    let text = text.trim();
    let with_ids = match (text.strip_prefix('{'), text.strip_prefix('[')) {
        (Some(_), _) => true,
        (_, Some(_)) => false,
        _ => return None,
    };
    let mut names = BTreeMap::new();
    let mut rest = &text[1..];
    while let Some(start) = rest.find(['\'', '"']) {
        let quote = rest[start..].chars().next()?;
        let (name, behind) = quoted(&rest[start + 1..], quote)?;
        let digits: String = rest[..start].chars().filter(char::is_ascii_digit).collect();
        let (id, name, behind) = match digits.parse() {
            _ if !with_ids => (names.len() as u32, name, behind),
            Ok(id) => (id, name, behind),
            // JSON quotes the keys too: `"0": "person"`.
            Err(_) => {
                let start = behind.find(['\'', '"'])?;
                let quote = behind[start..].chars().next()?;
                let (value, behind) = quoted(&behind[start + 1..], quote)?;
                (name.trim().parse().ok()?, value, behind)
            }
        };
        names.insert(id, name);
        rest = behind;
    }
    (!names.is_empty()).then_some(names)
}

/// The text up to the closing quote, backslashes undone, and what follows.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((position, character)) = characters.next() {
        match character {
            '\\' => name.push(characters.next()?.1),
            _ if character == quote => return Some((name, &text[position + quote.len_utf8()..])),
            _ => name.push(character),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_python_and_json_dictionaries_and_lists_are_read() {
        for text in [
            r#"{0: 'person', 1: "driver's seat", 2: 'fire, "big"'}"#,
            r#"{"0": "person", "1": "driver's seat", "2": "fire, \"big\""}"#,
            r#"["person", "driver's seat", "fire, \"big\""]"#,
        ] {
            let names = parse_names(text).unwrap();
            let names: Vec<&str> = names.values().map(String::as_str).collect();
            assert_eq!(names, ["person", "driver's seat", "fire, \"big\""], "{text}");
        }
    }

    #[test]
    fn what_is_no_list_of_names_is_left_alone() {
        for text in ["", "person", "{}", "[1, 2]", "{'a': 'b'}", "['open"] {
            assert_eq!(parse_names(text), None, "{text}");
        }
    }
}
