//! The names of a graph's nodes and values, which ONNX Runtime does not report. Reads only the names and skips the
//! weights.

use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom};

/// Field numbers in `onnx.proto`.
const GRAPH: u64 = 7;
const NODE: u64 = 1;
/// Inputs, outputs and the name of a node.
const NODE_NAMES: std::ops::RangeInclusive<u64> = 1..=3;
/// Longer names are skipped, in bytes.
const MAX_NAME: u64 = 4096;

/// The first of the names that `accept` accepts, in the order of the nodes.
///
/// # Errors
/// The file cannot be read, or is not an ONNX file.
pub fn find_name<T>(mut file: impl Read + Seek, mut accept: impl FnMut(&str) -> Option<T>) -> io::Result<Option<T>> {
    let model_end = file.seek(SeekFrom::End(0))?;
    file.rewind()?;
    let mut reader = Reader { file: BufReader::new(file), position: 0 };
    while let Some((field, end)) = reader.next(model_end)? {
        while let Some((field, end)) = reader.next(if field == GRAPH { end } else { 0 })? {
            while let Some((field, end)) = reader.next(if field == NODE { end } else { 0 })? {
                if NODE_NAMES.contains(&field)
                    && let Some(found) = accept(&reader.text(end)?)
                {
                    return Ok(Some(found));
                }
                reader.skip_to(end)?;
            }
            reader.skip_to(end)?;
        }
        reader.skip_to(end)?;
    }
    Ok(None)
}

/// A protocol buffer: <https://protobuf.dev/programming-guides/encoding/>.
struct Reader<R> {
    file: BufReader<R>,
    position: u64,
}

impl<R: Read + Seek> Reader<R> {
    /// The number and end of the next message, text or list in a message that ends at `end`. It begins at the position.
    fn next(&mut self, end: u64) -> io::Result<Option<(u64, u64)>> {
        while self.position < end {
            let tag = self.varint()?;
            let length = match tag & 7 {
                0 => {
                    self.varint()?;
                    0
                }
                1 => 8,
                2 => self.varint()?,
                5 => 4,
                _ => return Err(ErrorKind::InvalidData.into()),
            };
            let field_end = self.position.checked_add(length).filter(|field_end| *field_end <= end);
            let field_end = field_end.ok_or(ErrorKind::InvalidData)?;
            if tag & 7 == 2 {
                return Ok(Some((tag >> 3, field_end)));
            }
            self.skip_to(field_end)?;
        }
        Ok(None)
    }

    fn text(&mut self, end: u64) -> io::Result<String> {
        let mut bytes = Vec::new();
        if end - self.position <= MAX_NAME {
            self.position += (&mut self.file).take(end - self.position).read_to_end(&mut bytes)? as u64;
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn varint(&mut self) -> io::Result<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let mut byte = [0];
            self.file.read_exact(&mut byte)?;
            self.position += 1;
            number |= u64::from(byte[0] & 0x7f) << shift;
            if byte[0] & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(ErrorKind::InvalidData.into())
    }

    /// `position` is in the file and not before the present one.
    fn skip_to(&mut self, position: u64) -> io::Result<()> {
        let distance = i64::try_from(position - self.position).map_err(|_| ErrorKind::InvalidData)?;
        self.file.seek_relative(distance)?;
        self.position = position;
        Ok(())
    }
}
