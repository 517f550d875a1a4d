//! Compact JSON documents, and pointers into them.
//!
//! Invalid JSON (`NaN`, a truncated document, a number outside the range of floats) and objects with duplicate keys are
//! rejected: a wrong prediction is worse than none.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess};

use crate::annotations::json::{Lenient, Scalar};
use crate::domain::human_bytes;
use crate::sagemaker::spec::output_mapping::{JsonPointer, JsonStep};

/// The longest response for one image that is read. Real ones have at most a few megabytes; the parsed form takes up to
/// eight times as much.
pub const MAX_RESPONSE_BYTES: u64 = 32 << 20;

#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    Number(f64),
    Text(Box<str>),
    /// A list of only numbers, which is most of a model's output; also an empty list.
    Numbers(Box<[f64]>),
    List(Box<[Json]>),
    /// Members in document order.
    Object(Box<[(Box<str>, Json)]>),
}

/// A value without inner lists, other than a list of only numbers.
#[derive(Debug, Clone, Copy)]
pub enum Leaf<'j> {
    Number(f64),
    Numbers(&'j [f64]),
    Text(&'j str),
    /// The kind of another value.
    Other(&'static str),
}

impl Json {
    /// # Errors
    /// What is wrong with it, for the user.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() as u64 > MAX_RESPONSE_BYTES {
            return Err(too_long(bytes.len() as u64));
        }
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Err("the output is empty".to_owned());
        }
        serde_json::from_slice(bytes).map_err(|error| explain(&error, bytes))
    }

    pub fn get(&self, key: &str) -> Option<&Self> {
        let Self::Object(fields) = self else {
            return None;
        };
        let found = fields.iter().find(|(name, _)| &**name == key);
        found.map(|(_, value)| value)
    }

    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The length of a list; `None` for other values.
    pub fn list_len(&self) -> Option<usize> {
        match self {
            Self::Numbers(numbers) => Some(numbers.len()),
            Self::List(list) => Some(list.len()),
            _ => None,
        }
    }

    /// The kind of value, for errors.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "true or false",
            Self::Number(_) => "a number",
            Self::Text(_) => "a string",
            Self::Numbers(_) => "a list of numbers",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }

    /// The values at a pointer, from lists of any depth.
    ///
    /// # Errors
    /// How far the pointer resolves, and what is found there.
    pub fn at(&self, pointer: &JsonPointer) -> Result<Vec<Leaf<'_>>, String> {
        let mut found = Vec::new();
        self.follow(pointer.steps(), &mut found)
            .map_err(|reason| format!("the output has nothing at {pointer}: {reason}"))?;
        Ok(found)
    }

    fn follow<'j>(&'j self, steps: &[JsonStep], found: &mut Vec<Leaf<'j>>) -> Result<(), String> {
        let Some((step, rest)) = steps.split_first() else {
            self.add_leaves(found);
            return Ok(());
        };
        match (self, step) {
            (Self::Numbers(numbers), JsonStep::Each) if rest.is_empty() || numbers.is_empty() => {
                found.extend(numbers.iter().copied().map(Leaf::Number));
                Ok(())
            }
            (Self::Numbers(numbers), JsonStep::To(key)) => {
                let number = numbers[index_in(numbers.len(), key)?];
                if !rest.is_empty() {
                    return Err(format!("a number has no member {step:?}"));
                }
                found.push(Leaf::Number(number));
                Ok(())
            }
            (Self::List(list), JsonStep::Each) => list.iter().try_for_each(|each| each.follow(rest, found)),
            (Self::List(list), JsonStep::To(key)) => list[index_in(list.len(), key)?].follow(rest, found),
            (Self::Object(_), JsonStep::To(key)) => {
                let inner = self.get(key).ok_or_else(|| format!("there is no “{}”", excerpt(key)))?;
                inner.follow(rest, found)
            }
            (Self::Object(_), JsonStep::Each) => Err("* matches list elements, but this is an object".to_owned()),
            (other, _) => Err(format!("it ends at {}", other.kind())),
        }
    }

    /// Adds the value, or the values in a list of any depth.
    pub fn add_leaves<'j>(&'j self, leaves: &mut Vec<Leaf<'j>>) {
        leaves.push(match self {
            Self::Number(number) => Leaf::Number(*number),
            Self::Numbers(numbers) => Leaf::Numbers(numbers),
            Self::Text(text) => Leaf::Text(text),
            Self::List(list) => return list.iter().for_each(|each| each.add_leaves(leaves)),
            other => Leaf::Other(other.kind()),
        });
    }
}

impl Leaf<'_> {
    fn kind(&self) -> &'static str {
        match self {
            Self::Number(_) => "a number",
            Self::Numbers(_) => "a list of numbers",
            Self::Text(_) => "a string",
            Self::Other(kind) => kind,
        }
    }
}

/// All numbers.
///
/// # Errors
/// There is something other than numbers.
pub(super) fn numbers_in(leaves: &[Leaf<'_>]) -> Result<Vec<f64>, String> {
    let mut numbers = Vec::new();
    for leaf in leaves {
        match leaf {
            Leaf::Number(number) => numbers.push(*number),
            Leaf::Numbers(list) => numbers.extend_from_slice(list),
            other => return Err(format!("expected a number, found {}", other.kind())),
        }
    }
    Ok(numbers)
}

/// All rows of four numbers.
///
/// # Errors
/// A row of another length, or something other than rows.
pub(super) fn rows_in(leaves: &[Leaf<'_>]) -> Result<Vec<[f64; 4]>, String> {
    let mut rows = Vec::new();
    for leaf in leaves {
        match leaf {
            Leaf::Numbers([]) => {}
            Leaf::Numbers(row) => {
                let four = <[f64; 4]>::try_from(*row);
                rows.push(four.map_err(|_| format!("a box has {} numbers instead of 4", row.len()))?);
            }
            other => return Err(format!("expected a box, found {}", other.kind())),
        }
    }
    Ok(rows)
}

/// # Errors
/// There is no such index.
fn index_in(len: usize, key: &str) -> Result<usize, String> {
    let is_number = key.bytes().all(|digit| digit.is_ascii_digit());
    let index = key.parse().ok().filter(|index| is_number && *index < len);
    index.ok_or_else(|| format!("a list of {len} has no index {key}"))
}

/// The beginning of a text in an output, for a message: short and without line breaks.
pub(super) fn excerpt(text: &str) -> String {
    const LONGEST: usize = 120;
    let mut short: String =
        text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).take(LONGEST).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

pub(super) fn too_long(bytes: u64) -> String {
    format!(
        "the output has {}, more than the limit of {} for one image",
        human_bytes(bytes),
        human_bytes(MAX_RESPONSE_BYTES)
    )
}

fn explain(error: &serde_json::Error, bytes: &[u8]) -> String {
    if error.is_eof() {
        return format!(
            "the output is truncated after {}; its write was not completed",
            human_bytes(bytes.len() as u64)
        );
    }
    let lines: usize =
        bytes.split(|byte| *byte == b'\n').take(error.line().saturating_sub(1)).map(|line| line.len() + 1).sum();
    let offset = (lines + error.column()).min(bytes.len());
    let around = &bytes[offset.saturating_sub(10)..(offset + 10).min(bytes.len())];
    let says = |word: &[u8]| around.windows(word.len()).any(|window| window == word);
    if error.is_syntax() && (says(b"NaN") || says(b"Infinity")) {
        return "the output contains NaN or Infinity, which are not numbers".to_owned();
    }
    let begin = String::from_utf8_lossy(&bytes[..bytes.len().min(80)]);
    let begin = excerpt(begin.trim());
    if is_csv(bytes) {
        return format!(
            "the output is CSV (“{begin}”), which mappings do not support: outputs must be JSON, or one line of JSON \
            per record. Set Accept to application/json if the model supports it"
        );
    }
    format!("the output is not JSON: {error}; it begins with “{begin}”")
}

/// Whether the first line contains numbers separated by commas.
fn is_csv(bytes: &[u8]) -> bool {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let Ok(line) = std::str::from_utf8(line) else {
        return false;
    };
    let is_number = |cell: &str| cell.trim().parse::<f64>().is_ok();
    line.contains(',') && line.split(',').all(is_number)
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(deserializer)
    }
}

impl<'de> Lenient<'de> for Json {
    fn from_scalar(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Bool(value) => Self::Bool(value),
            Scalar::Text(text) => Self::Text(text.into()),
            scalar => scalar.number().map_or(Self::Null, Self::Number),
        }
    }

    fn from_list<A: SeqAccess<'de>>(mut elements: A) -> Result<Self, A::Error> {
        let mut numbers = Vec::new();
        let other = loop {
            match elements.next_element()? {
                Some(Json::Number(number)) => numbers.push(number),
                Some(other) => break other,
                None => return Ok(Json::Numbers(numbers.into())),
            }
        };
        let mut list: Vec<Json> = numbers.into_iter().map(Json::Number).collect();
        list.push(other);
        while let Some(element) = elements.next_element()? {
            list.push(element);
        }
        Ok(Json::List(list.into()))
    }

    fn from_object<A: MapAccess<'de>>(mut entries: A) -> Result<Self, A::Error> {
        let mut fields: Vec<(Box<str>, Json)> = Vec::new();
        while let Some(entry) = entries.next_entry::<Box<str>, Json>()? {
            fields.push(entry);
        }
        let mut names: Vec<&str> = fields.iter().map(|(name, _)| &**name).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let name = excerpt(twice[0]);
            return Err(A::Error::custom(format_args!("it contains “{name}” twice")));
        }
        Ok(Json::Object(fields.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Json, String> {
        Json::parse(text.as_bytes())
    }

    #[test]
    fn invalid_json_has_a_reason() {
        for (text, reason) in [
            ("", "is empty"),
            (" \n", "is empty"),
            (r#"{"predictions": [0.5, 0."#, "truncated after 24 B"),
            (r#"{"predictions": [[NaN, 1]]}"#, "NaN or Infinity"),
            ("{\n\"a\": 1,\n\"b\": -Infinity}", "NaN or Infinity"),
            ("[1e999]", "out of range"),
            ("[1] [2]", "trailing characters"),
            (r#"{"a": 1, "b": 2, "a": 3}"#, "“a” twice"),
            ("<html>", "not JSON"),
            (r#"{"scores": [1, 2,]}"#, "not JSON"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
        let deep = "[".repeat(100_000);
        assert!(parse(&deep).unwrap_err().contains("recursion limit"));
        let long = " ".repeat(MAX_RESPONSE_BYTES as usize + 1);
        assert!(parse(&long).unwrap_err().contains("limit of 32"));
    }

    #[test]
    fn pointers_report_how_far_they_resolve() {
        let json = parse(r#"{"p": [{"box": [1, 2, 3, 4]}, {"box": [5, 6, 7, 8]}], "n": [1, 2], "e": []}"#);
        let json = json.unwrap();
        let at = |text: &str| json.at(&JsonPointer::parse(text).unwrap());
        let rows = rows_in(&at("/p/*/box").unwrap()).unwrap();
        assert_eq!(rows, [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]);
        assert!(matches!(at("/n/1").unwrap()[..], [Leaf::Number(2.0)]));
        assert_eq!(at("/n/*").unwrap().len(), 2);
        assert!(at("/e/*/box").unwrap().is_empty());
        for (pointer, reason) in [
            ("/q", "no “q”"),
            ("/p/2/box", "a list of 2 has no index 2"),
            ("/p/-1", "has no index -1"),
            ("/n/*/x", "ends at a list of numbers"),
            ("/*", "* matches list elements"),
            ("/p/0/box/0/1", "has no member"),
        ] {
            let error = at(pointer).err().unwrap();
            assert!(error.contains(reason), "{pointer}: {error}");
        }
    }

    #[test]
    fn rows_of_boxes_keep_their_length() {
        let ragged = parse("[[1, 2, 3], [4, 5, 6, 7, 8]]").unwrap();
        let mut leaves = Vec::new();
        ragged.add_leaves(&mut leaves);
        let error = rows_in(&leaves);
        assert!(error.unwrap_err().contains("3 numbers instead of 4"));
    }
}
