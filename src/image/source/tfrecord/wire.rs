//! A zero-copy reader for the parts of protocol buffers that an Example needs.
//!
//! Source: <https://protobuf.dev/programming-guides/encoding/>. A generated reader would have to hold the whole record,
//! and would unpack lists of whatever length a file claims.

use std::ops::Range;

use super::blocks::{Bytes, ReadError};

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

/// The fields of one message, in written order.
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
    pub(super) fn next_packed(&mut self, bytes: &mut impl Bytes) -> Result<Option<u64>, WireError> {
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
