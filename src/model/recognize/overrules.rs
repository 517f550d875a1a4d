//! Card fields set by the user, by path: `input.channels=bgr`.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Basis, Finding};
use crate::domain::card_fields::{CHOICES, is_below, set_value};

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
    /// Its path in the card.
    field: String,
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

impl Overrules {
    /// Parses `FIELD=VALUE` items. A value is a number, `true`, a list `[1, 2, 3]`, a table `{"width": 640}` or a word.
    ///
    /// # Errors
    /// An item without `=`, or with an empty field name.
    pub fn parse<S: AsRef<str>>(items: &[S]) -> Result<Self, OverruleError> {
        let parse_one = |item: &S| {
            let item = item.as_ref();
            let (field, text) = item.split_once('=').unwrap_or((item, ""));
            if !item.contains('=') || field.trim().split('.').any(str::is_empty) {
                return Err(OverruleError {
                    field: field.to_owned(),
                    value: text.to_owned(),
                    reason: "write FIELD=VALUE, for example input.channels=bgr".to_owned(),
                });
            }
            Ok(Overrule { field: field.trim().to_owned(), text: text.trim().to_owned() })
        };
        let mut overrules = Self::default();
        for overrule in items.iter().map(parse_one) {
            let overrule = overrule?;
            if overrule.field == READING {
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

    pub fn reading(&self) -> usize {
        self.reading
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The last value for exactly this field, as text.
    pub fn text(&self, field: &str) -> Option<&str> {
        let given = self.fields.iter().rev().find(|one| one.field == field)?;
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
            if prefix.is_empty() || is_below(&overrule.field, prefix) {
                result = overrule.set_in(&result, prefix)?;
            }
        }
        Ok(result)
    }

    /// Replaces the findings for these fields with the user's values.
    pub fn apply_to_findings(&self, findings: &mut Vec<Finding>) {
        for overrule in &self.fields {
            let field = &overrule.field;
            let choice = CHOICES.iter().find(|choice| is_below(field, choice));
            findings.retain(|finding| {
                let same =
                    finding.field == *field || is_below(&finding.field, field) || is_below(field, &finding.field);
                let replaced_choice =
                    choice.is_some_and(|choice| finding.basis != Basis::Given && finding.field == **choice);
                !(same || replaced_choice)
            });
            findings.push(Finding {
                field: field.clone(),
                value: overrule.text.clone(),
                basis: Basis::Given,
                because: "set by you".to_owned(),
            });
        }
    }
}

impl Overrule {
    fn reading(&self) -> Result<usize, OverruleError> {
        let number = self.text.parse().ok().and_then(|number: usize| number.checked_sub(1));
        number.ok_or_else(|| OverruleError {
            field: self.field.clone(),
            value: self.text.clone(),
            reason: "use the number of a reading that `models inspect` prints".to_owned(),
        })
    }

    fn set_in<T: Serialize + DeserializeOwned>(&self, target: &T, prefix: &str) -> Result<T, OverruleError> {
        let attempt = |value: Value| -> Result<T, String> {
            let target = serde_json::to_value(target).map_err(|error| error.to_string())?;
            let mut card = if prefix.is_empty() { target } else { json!({ prefix: target }) };
            set_value(&mut card, &self.field, value)?;
            let target = if prefix.is_empty() { card } else { card[prefix].take() };
            serde_json::from_value(target).map_err(|error| error.to_string())
        };
        let word = Value::String(self.text.clone());
        // A name made of digits is text if the card's field is text: the ONNX Model Zoo has an output named 6379.
        let result = match serde_json::from_str(&self.text) {
            Ok(value) => attempt(value).or_else(|reason| attempt(word).map_err(|_| reason)),
            Err(_) => attempt(word),
        };
        result.map_err(|reason| OverruleError { field: self.field.clone(), value: self.text.clone(), reason })
    }
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
