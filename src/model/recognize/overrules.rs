//! Card fields set by the user, by path: `input.channels=bgr`.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::finding::{Basis, Finding};
use crate::domain::ResizeRule;

/// Card fields set by the user, in the given order, and the selected reading of the outputs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Overrules {
    fields: Vec<Overrule>,
    reading: usize,
}

/// Not a field of the card: the number of a reading of the outputs, from 1.
const READING: &str = "reading";

#[derive(Debug, Clone, PartialEq)]
struct Overrule {
    path: Vec<String>,
    text: String,
}

/// A field that cannot be set like this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot set {field} to {value}: {reason}")]
pub struct OverruleError {
    pub field: String,
    pub value: String,
    pub reason: String,
}

/// Tables of a card whose key is a choice: another key replaces it.
const CHOICES: [&str; 2] = ["input.resize", "output"];

impl Overrules {
    /// Parses `FIELD=VALUE` items. A value is a number, `true`, a list `[1, 2, 3]`, a table `{"width": 640}` or a word.
    ///
    /// # Errors
    /// An item without `=`, or with an empty field name.
    pub fn parse<S: AsRef<str>>(items: &[S]) -> Result<Self, OverruleError> {
        let parse_one = |item: &S| {
            let item = item.as_ref();
            let (field, text) = item.split_once('=').unwrap_or((item, ""));
            let path: Vec<String> = field.trim().split('.').map(str::to_owned).collect();
            if !item.contains('=') || path.iter().any(String::is_empty) {
                return Err(OverruleError {
                    field: field.to_owned(),
                    value: text.to_owned(),
                    reason: "write FIELD=VALUE, for example input.channels=bgr".to_owned(),
                });
            }
            Ok(Overrule { path, text: text.trim().to_owned() })
        };
        let mut overrules = Self::default();
        for overrule in items.iter().map(parse_one) {
            let overrule = overrule?;
            if overrule.path == [READING] {
                overrules.reading = overrule.reading()?;
            } else {
                overrules.fields.push(overrule);
            }
        }
        Ok(overrules)
    }

    /// The reading with this index in [`Recognition::readings`](super::Recognition::readings).
    pub fn with_reading(reading: usize) -> Self {
        Self { reading, ..Self::default() }
    }

    pub(crate) fn reading(&self) -> usize {
        self.reading
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The last value for exactly this field, as text.
    pub fn text(&self, field: &str) -> Option<&str> {
        let given = self.fields.iter().rev().find(|one| one.field() == field)?;
        Some(given.text.trim_matches('"'))
    }

    /// Sets the fields below `prefix` (`""` for a whole card, `"input"` for only its input).
    ///
    /// # Errors
    /// A field that does not exist, or an invalid value.
    pub fn apply<T: Serialize + DeserializeOwned>(&self, prefix: &str, target: &T) -> Result<T, OverruleError> {
        let value = serde_json::to_value(target).expect("cards have only text keys");
        let mut result: T = serde_json::from_value(value).expect("what was written reads back");
        for overrule in &self.fields {
            let path = match overrule.path.split_first() {
                _ if prefix.is_empty() => &overrule.path[..],
                Some((first, rest)) if first == prefix && !rest.is_empty() => rest,
                _ => continue,
            };
            result = overrule.set_in(&result, prefix, path)?;
        }
        Ok(result)
    }

    /// Replaces the findings for these fields with the user's values.
    pub(crate) fn apply_to_findings(&self, findings: &mut Vec<Finding>) {
        for overrule in &self.fields {
            let field = overrule.field();
            let choice = CHOICES.iter().find(|choice| is_below(&field, choice));
            findings.retain(|finding| {
                let same =
                    finding.field == field || is_below(&finding.field, &field) || is_below(&field, &finding.field);
                let replaced_choice =
                    choice.is_some_and(|choice| finding.basis != Basis::Given && finding.field == **choice);
                !(same || replaced_choice)
            });
            findings.push(Finding {
                field,
                value: overrule.text.clone(),
                basis: Basis::Given,
                because: "set by you".to_owned(),
            });
        }
    }
}

/// Whether `field` is inside the table `table`.
fn is_below(field: &str, table: &str) -> bool {
    field.strip_prefix(table).is_some_and(|rest| rest.starts_with('.'))
}

impl Overrule {
    fn field(&self) -> String {
        self.path.join(".")
    }

    fn reading(&self) -> Result<usize, OverruleError> {
        let number = self.text.parse().ok().and_then(|number: usize| number.checked_sub(1));
        number.ok_or_else(|| OverruleError {
            field: self.field(),
            value: self.text.clone(),
            reason: "use the number of a reading that `models inspect` prints".to_owned(),
        })
    }

    fn set_in<T: Serialize + DeserializeOwned>(
        &self,
        target: &T,
        prefix: &str,
        path: &[String],
    ) -> Result<T, OverruleError> {
        let attempt = |value: Value| -> Result<T, String> {
            let mut whole = serde_json::to_value(target).map_err(|error| error.to_string())?;
            if !self.set_resize(&mut whole, prefix, &value) {
                set(&mut whole, prefix, path, value)?;
            }
            serde_json::from_value(whole).map_err(|error| error.to_string())
        };
        let word = Value::String(self.text.clone());
        // A name made of digits is text if the card's field is text: the ONNX Model Zoo has an output named 6379.
        let result = match serde_json::from_str(&self.text) {
            Ok(value) => attempt(value).or_else(|reason| attempt(word).map_err(|_| reason)),
            Err(_) => attempt(word),
        };
        result.map_err(|reason| OverruleError { field: self.field(), value: self.text.clone(), reason })
    }

    /// Sets a resize rule as a whole: its kind (`input.resize=letterbox`), or some of its fields; the others are
    /// derived from the size in the current rule. A field of another kind changes only the kind. Returns whether
    /// nothing is left to set.
    fn set_resize(&self, whole: &mut Value, prefix: &str, value: &Value) -> bool {
        let place = if prefix.is_empty() { "/input/resize" } else { "/resize" };
        let (Some(inner), Some(present)) = (self.field_in_resize(), whole.pointer_mut(place)) else {
            return false;
        };
        let Some(kind) = inner.first().map(String::as_str).or(value.as_str()) else {
            return false;
        };
        let Some(mut fields) = fields_of_kind(kind, present) else {
            return false;
        };
        match (inner.len(), value) {
            (0, _) => {}
            (1, Value::Object(given)) => fields.extend(given.clone()),
            (2.., _) if present.get(kind).is_none() => {}
            _ => return false,
        }
        *present = Value::Object(Map::from_iter([(kind.to_owned(), Value::Object(fields))]));
        inner.len() < 2
    }

    /// The path below `input.resize`.
    fn field_in_resize(&self) -> Option<&[String]> {
        match &self.path[..] {
            [input, resize, inner @ ..] if input == "input" && resize == "resize" => Some(inner),
            _ => None,
        }
    }
}

fn set(whole: &mut Value, prefix: &str, path: &[String], value: Value) -> Result<(), String> {
    let (last, tables) = path.split_last().ok_or("the field has no name")?;
    let mut table = whole;
    let mut place = prefix.to_owned();
    for key in tables {
        table = enter(table, &mut place, key)?;
    }
    let fields = as_table(table, &place)?;
    if CHOICES.contains(&place.as_str()) {
        fields.retain(|present, _| present == last);
    }
    fields.insert(last.clone(), value);
    Ok(())
}

/// The fields of a resize rule of this kind, for an input of the same size as in `present`.
fn fields_of_kind(kind: &str, present: &Value) -> Option<Map<String, Value>> {
    let present: ResizeRule = serde_json::from_value(present.clone()).ok()?;
    present.of_each_kind().iter().find_map(|rule| match serde_json::to_value(rule).ok()?.get_mut(kind)?.take() {
        Value::Object(fields) => Some(fields),
        _ => None,
    })
}

fn enter<'v>(table: &'v mut Value, place: &mut String, key: &str) -> Result<&'v mut Value, String> {
    let fields = as_table(table, place)?;
    if CHOICES.contains(&place.as_str()) {
        fields.retain(|present, _| present == key);
    }
    if !place.is_empty() {
        place.push('.');
    }
    place.push_str(key);
    Ok(fields.entry(key).or_insert_with(|| Value::Object(Map::new())))
}

fn as_table<'v>(value: &'v mut Value, place: &str) -> Result<&'v mut Map<String, Value>, String> {
    value.as_object_mut().ok_or_else(|| format!("{place} is not a table"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{
        BoxesBack, ChannelOrder, ElementType, Fill, ImageInput, Layout, Position, ResizeRule, Rounding,
    };

    fn input() -> ImageInput {
        ImageInput {
            divide_by: 255.0,
            mean: [0.485, 0.456, 0.406],
            ..ImageInput::new(Layout::Nchw, ElementType::Float32, ResizeRule::stretch(32, 32))
        }
    }

    fn apply(items: &[&str]) -> Result<ImageInput, OverruleError> {
        Overrules::parse(items)?.apply("input", &input())
    }

    #[test]
    fn settings_of_every_type_are_parsed() {
        let changed = apply(&[
            "input.channels=bgr",
            "input.divide_by=1",
            "input.mean=[123.68, 116.78, 103.94]",
            "input.name=6379",
            "name=other",
        ])
        .unwrap();
        assert_eq!(changed.channels, ChannelOrder::Bgr);
        assert_eq!(changed.mean, [123.68, 116.78, 103.94]);
        assert_eq!(changed.name.as_deref(), Some("6379"));
        assert_eq!(changed.std, [1.0; 3]);
    }

    #[test]
    fn resize_rule_is_replaced() {
        let changed = apply(&[
            r#"input.resize.letterbox={"width": 64, "height": 48, "fill": 114}"#,
            "input.resize.letterbox.fill=0",
        ])
        .unwrap();
        let letterbox = ResizeRule::Letterbox {
            width: 64,
            height: 48,
            fill: Fill([0; 3]),
            position: Position::Center,
            rounding: Rounding::HalfEven,
            stride: None,
            boxes_back: BoxesBack::EachAxis,
        };
        assert_eq!(changed.resize, letterbox);
    }

    #[test]
    fn resize_rule_of_another_kind_keeps_the_size() {
        let letterbox = |fill| ResizeRule::Letterbox {
            width: 32,
            height: 32,
            fill: Fill([fill; 3]),
            position: Position::Center,
            rounding: Rounding::HalfEven,
            stride: None,
            boxes_back: BoxesBack::EachAxis,
        };
        for (items, expected) in [
            (&["input.resize=letterbox"][..], letterbox(114)),
            (&[r#"input.resize.letterbox={"fill": 0}"#], letterbox(0)),
            (&["input.resize.letterbox.fill=0"], letterbox(0)),
            (&["input.resize=letterbox", "input.resize=stretch"], ResizeRule::stretch(32, 32)),
            (&["input.resize=letterbox", "input.resize.stretch.width=48"], ResizeRule::stretch(48, 32)),
            (&["input.resize=keep"], ResizeRule::Keep {}),
        ] {
            assert_eq!(apply(items).unwrap().resize, expected, "{items:?}");
        }
        let ResizeRule::ShortSideCrop { short_side, crop_width, .. } =
            apply(&["input.resize=short-side-crop"]).unwrap().resize
        else {
            panic!("another rule");
        };
        assert_eq!((short_side, crop_width), (36, 32));
        let error = apply(&["input.resize=strech"]).unwrap_err().to_string();
        assert!(error.contains("short-side-crop"), "{error}");
    }

    #[test]
    fn misspelled_fields_and_wrong_types_are_refused() {
        for (item, part) in [
            ("input.chanels=bgr", "chanels"),
            ("input.channels=brg", "brg"),
            ("input.mean=[1, 2]", "length"),
            ("input.layout.x=1", "not a table"),
            ("input.channels", "FIELD=VALUE"),
            ("reading=0", "number of a reading"),
        ] {
            let error = apply(&[item]).unwrap_err().to_string();
            assert!(error.contains(part), "{item}: {error}");
        }
    }
}
