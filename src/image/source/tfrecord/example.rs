//! `tf.Example`: named features, including an image, its name and its annotations; with a zero-copy reader for the
//! parts of protocol buffers that it needs.
//!
//! Source: `tensorflow/core/example/{example,feature}.proto`. An Example has its Features in field 1, as a
//! `SequenceExample` has its context, so both are read.

use std::ops::Range;

use super::index::{Bytes, ReadError};
use crate::domain::{BoundingBox, Truth, TruthBox, TruthLabel};

// If both exist, the first one is used; the second is that of TensorFlow Datasets.
const IMAGE_KEYS: [&str; 2] = ["image/encoded", "image"];
const NAME_KEYS: [&str; 2] = ["image/filename", "file_name"];
const LABEL_KEYS: [&str; 2] = ["image/class/label", "label"];
const LABEL_NAME_KEY: &str = "image/class/text";
const BOX_KEYS: [&str; 4] =
    ["image/object/bbox/xmin", "image/object/bbox/ymin", "image/object/bbox/xmax", "image/object/bbox/ymax"];
const BOX_LABEL_KEY: &str = "image/object/class/label";
const BOX_LABEL_NAME_KEY: &str = "image/object/class/text";

/// Features with longer names are ignored.
const LONGEST_KEY: u64 = 256;
const LONGEST_TEXT: u64 = 512;
/// The number of values kept per feature.
const MAX_VALUES: usize = 10_000;
/// The number of feature names in a message about a missing image.
const MAX_KEYS_SHOWN: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    ImageAndName,
    Truth,
}

/// The parts of an Example. Ranges are relative to the bytes that it was read from.
#[derive(Debug, Default)]
pub(super) struct Example {
    /// Images by [`IMAGE_KEYS`].
    images: [Option<Range<u64>>; IMAGE_KEYS.len()],
    names: [Option<String>; NAME_KEYS.len()],
    labels: [List<i64>; LABEL_KEYS.len()],
    label_names: List<String>,
    sides: [List<f32>; BOX_KEYS.len()],
    box_labels: List<i64>,
    box_label_names: List<String>,
    /// The names of the first features.
    keys: Vec<String>,
    more_keys: bool,
}

/// The first values of a feature.
#[derive(Debug)]
struct List<T> {
    values: Vec<T>,
    /// Whether there are more values.
    is_cut: bool,
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self { values: Vec::new(), is_cut: false }
    }
}

impl<T> List<T> {
    fn push(&mut self, value: T) {
        if self.values.len() < MAX_VALUES {
            self.values.push(value);
        } else {
            self.is_cut = true;
        }
    }
}

impl Example {
    pub(super) fn read(bytes: &mut impl Bytes, record: Range<u64>, part: Part) -> Result<Self, WireError> {
        let mut example = Self::default();
        let mut fields = Fields::new(record);
        while let Some(field) = fields.next(bytes)? {
            let (1, Value::Span(features)) = field else {
                continue;
            };
            let mut features = Fields::new(features);
            while let Some(feature) = features.next(bytes)? {
                if let (1, Value::Span(entry)) = feature {
                    example.entry(bytes, entry, part)?;
                }
            }
        }
        Ok(example)
    }

    pub(super) fn image(&self) -> Option<Range<u64>> {
        self.images.iter().flatten().next().cloned()
    }

    pub(super) fn name(&self) -> Option<&str> {
        let mut names = self.names.iter().flatten();
        names.next().map(String::as_str)
    }

    /// Why there is no image.
    pub(super) fn without_image(&self) -> String {
        if self.keys.is_empty() {
            return "contains no image: it is not a tf.Example, or has no features".to_owned();
        }
        let more = if self.more_keys { ", …" } else { "" };
        let keys = self.keys.join(", ");
        format!("contains no image: the feature image/encoded has no bytes; its features are {keys}{more}")
    }

    pub(super) fn truth(self) -> Truth {
        let mut truth = Truth::default();
        let cut = self.sides.iter().any(|side| side.is_cut) || self.labels.iter().any(|labels| labels.is_cut);
        if cut {
            let note = format!("more than {MAX_VALUES} values; the rest is not shown");
            truth.notes.push(note);
        }
        let numbers = self.labels.into_iter().map(|labels| labels.values);
        let numbers = numbers.into_iter().find(|numbers| !numbers.is_empty());
        truth.labels = labels(numbers.unwrap_or_default(), self.label_names.values);
        let [x0, y0, x1, y1] = self.sides.map(|side| side.values);
        let lens = [x0.len(), y0.len(), x1.len(), y1.len()];
        let count = lens.into_iter().min().unwrap_or_default();
        if lens.iter().any(|len| *len != count) {
            let note = format!("boxes have different numbers of xmin, ymin, xmax and ymax values: {lens:?}");
            truth.notes.push(note);
        }
        let mut labels = labels(self.box_labels.values, self.box_label_names.values).into_iter();
        truth.boxes = (0..count)
            .map(|place| TruthBox {
                bounds: BoundingBox::new(x0[place], y0[place], x1[place], y1[place]),
                label: labels.next().unwrap_or_default(),
            })
            .collect();
        truth
    }

    /// Reads one feature and its name, in either order.
    fn entry(&mut self, bytes: &mut impl Bytes, entry: Range<u64>, part: Part) -> Result<(), WireError> {
        let (mut key, mut feature) = (None, None);
        let mut fields = Fields::new(entry);
        while let Some(field) = fields.next(bytes)? {
            match field {
                (1, Value::Span(span)) => key = Some(span),
                (2, Value::Span(span)) => feature = Some(span),
                _ => {}
            }
        }
        let (Some(key), Some(feature)) = (key, feature) else {
            return Ok(());
        };
        if key.end - key.start > LONGEST_KEY {
            return Ok(());
        }
        let key = text(bytes, key)?;
        self.feature(bytes, &key, feature, part)?;
        if self.keys.len() < MAX_KEYS_SHOWN {
            self.keys.push(key);
        } else {
            self.more_keys = true;
        }
        Ok(())
    }

    fn feature(&mut self, bytes: &mut impl Bytes, key: &str, feature: Range<u64>, part: Part) -> Result<(), WireError> {
        let place_in = |keys: &[&str]| keys.iter().position(|known| *known == key);
        if let Some(place) = place_in(&IMAGE_KEYS) {
            self.images[place] = first_bytes(bytes, feature)?;
        } else if let Some(place) = place_in(&NAME_KEYS) {
            self.names[place] = match first_bytes(bytes, feature)? {
                Some(name) if name.end - name.start <= LONGEST_TEXT => Some(text(bytes, name)?),
                _ => None,
            };
        } else if part == Part::Truth {
            self.truth_feature(bytes, key, feature)?;
        }
        Ok(())
    }

    fn truth_feature(&mut self, bytes: &mut impl Bytes, key: &str, feature: Range<u64>) -> Result<(), WireError> {
        let place_in = |keys: &[&str]| keys.iter().position(|known| *known == key);
        if let Some(place) = place_in(&LABEL_KEYS) {
            self.labels[place] = integers(bytes, feature)?;
        } else if let Some(place) = place_in(&BOX_KEYS) {
            self.sides[place] = floats(bytes, feature)?;
        } else {
            match key {
                LABEL_NAME_KEY => self.label_names = texts(bytes, feature)?,
                BOX_LABEL_KEY => self.box_labels = integers(bytes, feature)?,
                BOX_LABEL_NAME_KEY => self.box_label_names = texts(bytes, feature)?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// Numbers and names of the same classes, in the same order.
fn labels(numbers: Vec<i64>, names: Vec<String>) -> Vec<TruthLabel> {
    let count = numbers.len().max(names.len());
    let mut numbers = numbers.into_iter();
    let mut names = names.into_iter().map(|name| name.trim().to_owned());
    let label = |_| TruthLabel { number: numbers.next(), name: names.next().filter(|name| !name.is_empty()) };
    (0..count).map(label).collect()
}

/// The list of a feature of one kind: field 1 has bytes, 2 floats, 3 integers. In each of them, field 1 has the values.
fn list(bytes: &mut impl Bytes, feature: Range<u64>, kind: u64) -> Result<Option<Range<u64>>, WireError> {
    let mut fields = Fields::new(feature);
    let mut found = None;
    while let Some(field) = fields.next(bytes)? {
        if let (number, Value::Span(span)) = field
            && number == kind
        {
            found = Some(span);
        }
    }
    Ok(found)
}

fn first_bytes(bytes: &mut impl Bytes, feature: Range<u64>) -> Result<Option<Range<u64>>, WireError> {
    let Some(values) = list(bytes, feature, 1)? else {
        return Ok(None);
    };
    let mut values = Fields::new(values);
    while let Some(value) = values.next(bytes)? {
        if let (1, Value::Span(span)) = value {
            return Ok(Some(span));
        }
    }
    Ok(None)
}

/// The values of a feature of one kind; `take` adds those of one field.
fn values<B: Bytes, T>(
    bytes: &mut B,
    feature: Range<u64>,
    kind: u64,
    take: impl Fn(&mut B, Value, &mut List<T>) -> Result<(), WireError>,
) -> Result<List<T>, WireError> {
    let mut found = List::default();
    let Some(values) = list(bytes, feature, kind)? else {
        return Ok(found);
    };
    let mut values = Fields::new(values);
    while !found.is_cut
        && let Some((number, value)) = values.next(bytes)?
    {
        if number == 1 {
            take(bytes, value, &mut found)?;
        }
    }
    Ok(found)
}

fn texts(bytes: &mut impl Bytes, feature: Range<u64>) -> Result<List<String>, WireError> {
    values(bytes, feature, 1, |bytes, value, found| {
        if let Value::Span(span) = value {
            let end = span.end.min(span.start + LONGEST_TEXT);
            found.push(text(bytes, span.start..end)?);
        }
        Ok(())
    })
}

fn floats(bytes: &mut impl Bytes, feature: Range<u64>) -> Result<List<f32>, WireError> {
    values(bytes, feature, 2, |bytes, value, found| {
        let Value::Span(span) = value else {
            return Ok(());
        };
        // Packed, or one by one: each value takes four bytes.
        for start in span.clone().step_by(4) {
            let end = start + 4;
            if end > span.end {
                return Err(WireError::Garbage("a list of numbers is truncated"));
            }
            let value = bytes.at(start..end)?;
            let value = f32::from_le_bytes([value[0], value[1], value[2], value[3]]);
            found.push(value);
            if found.is_cut {
                break;
            }
        }
        Ok(())
    })
}

fn integers(bytes: &mut impl Bytes, feature: Range<u64>) -> Result<List<i64>, WireError> {
    values(bytes, feature, 3, |bytes, value, found| {
        match value {
            Value::Number(number) => found.push(number as i64),
            Value::Span(packed) => {
                let mut packed = Fields::new(packed);
                while !found.is_cut
                    && let Some(number) = packed.next_packed(bytes)?
                {
                    found.push(number as i64);
                }
            }
        }
        Ok(())
    })
}

fn text(bytes: &mut impl Bytes, span: Range<u64>) -> Result<String, WireError> {
    Ok(String::from_utf8_lossy(bytes.at(span)?).into_owned())
}

#[derive(Debug)]
pub(super) enum WireError {
    /// The bytes are not a protocol buffer, and why.
    Garbage(&'static str),
    Read(ReadError),
}

impl From<ReadError> for WireError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Value {
    Number(u64),
    /// The range of a message, a text, bytes, a packed list or a number of fixed size.
    Span(Range<u64>),
}

/// The fields of one message, in written order (<https://protobuf.dev/programming-guides/encoding/>). A generated reader
/// would have to hold the whole record, and would unpack lists of whatever length a file claims.
#[derive(Debug)]
pub(super) struct Fields {
    at: u64,
    end: u64,
}

const LONGEST_VARINT: u64 = 10;

impl Fields {
    pub(super) fn new(message: Range<u64>) -> Self {
        Self { at: message.start, end: message.end }
    }

    /// The number and value of the next field; `None` at the end of the message.
    pub(super) fn next(&mut self, bytes: &mut impl Bytes) -> Result<Option<(u64, Value)>, WireError> {
        if self.at >= self.end {
            return Ok(None);
        }
        let tag = self.varint(bytes)?;
        let value = match tag & 7 {
            0 => Value::Number(self.varint(bytes)?),
            1 => self.span(8)?,
            2 => {
                let len = self.varint(bytes)?;
                self.span(len)?
            }
            5 => self.span(4)?,
            _ => return Err(WireError::Garbage("a field has a type that does not exist")),
        };
        Ok(Some((tag >> 3, value)))
    }

    /// The next number of a packed list, instead of a field; `None` at the end of the list.
    fn next_packed(&mut self, bytes: &mut impl Bytes) -> Result<Option<u64>, WireError> {
        if self.at >= self.end {
            return Ok(None);
        }
        self.varint(bytes).map(Some)
    }

    fn span(&mut self, len: u64) -> Result<Value, WireError> {
        let start = self.at;
        let end = start.checked_add(len).filter(|end| *end <= self.end);
        self.at = end.ok_or(WireError::Garbage("a field is longer than its message"))?;
        Ok(Value::Span(start..self.at))
    }

    fn varint(&mut self, bytes: &mut impl Bytes) -> Result<u64, WireError> {
        let longest = LONGEST_VARINT.min(self.end - self.at);
        let bytes = bytes.at(self.at..self.at + longest)?;
        let mut number = 0;
        for (place, byte) in bytes.iter().enumerate() {
            number |= u64::from(byte & 0x7f).checked_shl(7 * place as u32).unwrap_or(0);
            if byte & 0x80 == 0 {
                self.at += place as u64 + 1;
                return Ok(number);
            }
        }
        Err(WireError::Garbage("a number is not terminated"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(message: &[u8]) -> Result<Vec<(u64, Value)>, WireError> {
        let mut bytes = message;
        let mut fields = Fields::new(0..message.len() as u64);
        let mut found = Vec::new();
        while let Some(field) = fields.next(&mut bytes)? {
            found.push(field);
        }
        Ok(found)
    }

    #[test]
    fn fields_of_every_type_are_read() {
        // The examples in the documentation of the encoding: 150 is `96 01`, "testing" is `12 07 …`.
        let message = b"\x08\x96\x01\x12\x07testing\x1d\0\0\x80\x3f\x21\0\0\0\0\0\0\0\0";
        let expected =
            [(1, Value::Number(150)), (2, Value::Span(5..12)), (3, Value::Span(13..17)), (4, Value::Span(18..26))];
        assert_eq!(fields(message).unwrap(), expected);
        let minus_one = b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
        assert_eq!(fields(minus_one).unwrap(), [(1, Value::Number(u64::MAX))]);
    }

    #[test]
    fn invalid_message_is_an_error() {
        for garbage in [
            b"\x12\x05abc".as_slice(),
            b"\x0b",
            b"\x08",
            b"\x08\xff",
            b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\x1d\0\0",
        ] {
            let result = fields(garbage);
            assert!(matches!(result, Err(WireError::Garbage(_))), "{garbage:?}: {result:?}");
        }
    }
}
