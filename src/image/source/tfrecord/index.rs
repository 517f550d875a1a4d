//! The framing of records (length: 8 bytes, little endian; its checksum: 4; the data, and their checksum: 4), and the
//! positions of the records of one file, in eight bytes of memory per record.

use std::ops::Range;

use parking_lot::Mutex;

use super::SourceError;
use super::blocks::{Blocks, Bytes, ReadError};

/// Filled by the listing, or by reading a record that is not listed yet.
#[derive(Debug, Default)]
pub(super) struct FileIndex {
    /// The ends of the records; the first record starts at 0.
    ends: Mutex<Vec<u64>>,
}

/// What is found where a record should start.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Header, data and footer.
    Record(Range<u64>),
    End,
    /// No record can be found after this point.
    Broken(Broken),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// The length has a wrong checksum.
    Length,
    /// The file ends inside the record, which needs this many more bytes.
    Cut { missing: u64 },
}

impl FileIndex {
    /// The record's range, if it is known.
    fn find(ends: &[u64], number: u64) -> Option<Range<u64>> {
        let number = usize::try_from(number).ok()?;
        let end = *ends.get(number)?;
        let start = number.checked_sub(1).map_or(0, |before| ends[before]);
        Some(start..end)
    }

    /// The record's range, found by following the lengths if it is not known yet.
    pub(super) fn range_of(&self, number: u64, blocks: impl FnOnce() -> Blocks) -> Result<Range<u64>, SourceError> {
        let mut ends = self.ends.lock();
        if let Some(range) = Self::find(&ends, number) {
            return Ok(range);
        }
        let mut blocks = blocks();
        loop {
            let start = ends.last().copied().unwrap_or_default();
            match next_record(&mut blocks, start)? {
                Next::Record(range) => ends.push(range.end),
                Next::End | Next::Broken(_) => return Err(not_there(number)),
            }
            if let Some(range) = Self::find(&ends, number) {
                return Ok(range);
            }
        }
    }

    /// The number of records in the file, including those without an image.
    ///
    /// # Errors
    /// The file cannot be read to its end, or is damaged.
    pub(super) fn count(&self, blocks: impl FnOnce() -> Blocks) -> Result<u64, SourceError> {
        let mut ends = self.ends.lock();
        let mut blocks = blocks();
        loop {
            let start = ends.last().copied().unwrap_or_default();
            match next_record(&mut blocks, start)? {
                Next::Record(range) => ends.push(range.end),
                Next::End => break,
                Next::Broken(_) => return Err(cut_behind(ends.len())),
            }
        }
        // If the length of the file is unknown, the last record may extend past its end.
        let Some(last) = ends.last().copied() else {
            return Ok(0);
        };
        match blocks.at(last - 1..last) {
            Ok(_) => Ok(ends.len() as u64),
            Err(ReadError::End) => {
                ends.pop();
                Err(cut_behind(ends.len()))
            }
            Err(ReadError::Source(error)) => Err(error),
        }
    }

    pub(super) fn learn(&self, number: u64, end: u64) {
        let mut ends = self.ends.lock();
        if ends.len() as u64 == number {
            ends.push(end);
        }
    }
}

fn cut_behind(records: usize) -> SourceError {
    SourceError::Damaged(format!(
        "the file is damaged or truncated after {records} records, so their number is unknown; copy or download it \
        again"
    ))
}

/// Only a record from an earlier version of the file is read without being listed.
pub(super) fn not_there(number: u64) -> SourceError {
    SourceError::Damaged(format!(
        "record {number} no longer exists: the file changed since it was listed; open it again"
    ))
}

/// Reads the header of the record at `start`.
pub(super) fn next_record(blocks: &mut Blocks, start: u64) -> Result<Next, SourceError> {
    if blocks.len() == Some(start) {
        return Ok(Next::End);
    }
    let Some(header_end) = start.checked_add(HEADER) else {
        return Ok(Next::End);
    };
    let header = match blocks.at(start..header_end) {
        Ok(header) => header,
        Err(ReadError::Source(error)) => return Err(error),
        Err(ReadError::End) => {
            return Ok(match blocks.at(start..start + 1) {
                Err(ReadError::Source(error)) => return Err(error),
                Err(ReadError::End) => Next::End,
                Ok(_) => {
                    let known = blocks.len().map_or(0, |len| len - start);
                    let missing = HEADER - known;
                    Next::Broken(Broken::Cut { missing })
                }
            });
        }
    };
    let Some(len) = data_len(header) else {
        return Ok(Next::Broken(Broken::Length));
    };
    // An impossible length is as good as a wrong one.
    let end = header_end.checked_add(len);
    let Some(end) = end.and_then(|end| end.checked_add(FOOTER)) else {
        return Ok(Next::Broken(Broken::Length));
    };
    blocks.expect_records_of(len);
    Ok(match blocks.len() {
        Some(file_len) if end > file_len => Next::Broken(Broken::Cut { missing: end - file_len }),
        _ => Next::Record(start..end),
    })
}

/// Bytes before the data of a record.
pub(super) const HEADER: u64 = 12;
/// Bytes after the data.
pub(super) const FOOTER: u64 = 4;

/// The length of the data; `None` if the checksum shows that this is not a header.
pub(super) fn data_len(header: &[u8]) -> Option<u64> {
    let (len, crc) = header.split_at_checked(8)?;
    let is_whole = masked_crc(len).to_le_bytes() == crc;
    is_whole.then_some(u64::from_le_bytes(len.try_into().ok()?))
}

/// Why a whole record, with header and footer, cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BadFrame {
    /// The header is damaged: no record here has this length.
    Header,
    Data,
}

/// The range of the data in a whole record.
pub(super) fn check(record: &[u8]) -> Result<std::ops::Range<usize>, BadFrame> {
    let (header, footer) = (HEADER as usize, FOOTER as usize);
    let data = header..record.len().checked_sub(footer).filter(|end| *end >= header).ok_or(BadFrame::Header)?;
    if data_len(&record[..header]) != Some(data.len() as u64) {
        return Err(BadFrame::Header);
    }
    if masked_crc(&record[data.clone()]).to_le_bytes() == record[data.end..] { Ok(data) } else { Err(BadFrame::Data) }
}

fn masked_crc(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// A whole record around `data`.
pub fn framed(data: &[u8]) -> Vec<u8> {
    let len = (data.len() as u64).to_le_bytes();
    let mut record = len.to_vec();
    record.extend(masked_crc(&len).to_le_bytes());
    record.extend(data);
    record.extend(masked_crc(data).to_le_bytes());
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_record_part_is_named() {
        let whole = framed(b"some data");
        assert_eq!(check(&whole), Ok(12..21));
        assert_eq!(check(&framed(b"")), Ok(12..12));
        let with_flipped_byte = |place: usize| {
            let mut record = whole.clone();
            record[place] ^= 1;
            check(&record)
        };
        assert_eq!(with_flipped_byte(0), Err(BadFrame::Header));
        assert_eq!(with_flipped_byte(11), Err(BadFrame::Header));
        assert_eq!(with_flipped_byte(12), Err(BadFrame::Data));
        assert_eq!(with_flipped_byte(24), Err(BadFrame::Data));
        for len in 0..whole.len() {
            assert_eq!(check(&whole[..len]), Err(BadFrame::Header), "{len}");
        }
    }
}
