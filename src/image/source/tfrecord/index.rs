//! The records of one file: random access to its bytes, their framing (length: 8 bytes, little endian; its checksum: 4;
//! the data, and their checksum: 4), and their positions, in eight bytes of memory per record.

use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;

use super::super::Source;
use super::SourceError;
use crate::domain::SampleUri;

/// Bytes that may be far apart.
pub(super) trait Bytes {
    /// Reads all bytes of `range`, which is short.
    fn at(&mut self, range: Range<u64>) -> Result<&[u8], ReadError>;
}

#[derive(Debug)]
pub(super) enum ReadError {
    /// The data ends before the range does.
    End,
    Source(SourceError),
}

impl Bytes for &[u8] {
    fn at(&mut self, range: Range<u64>) -> Result<&[u8], ReadError> {
        self.get(range.start as usize..range.end as usize).ok_or(ReadError::End)
    }
}

#[derive(Debug, Clone, Copy)]
struct Rule {
    /// The size of the first block, small so that the first records arrive soon; and of every block if records are
    /// large.
    first: u64,
    /// Blocks double up to this size.
    largest: u64,
    /// Records of at least this length are skipped by seeking; shorter ones are cheaper to read.
    jump_from: u64,
}

/// A seek on a disk costs about as much as reading 100 KB.
const FILE: Rule = Rule { first: 16 << 10, largest: 1 << 20, jump_from: 128 << 10 };

/// Another request costs about 30 ms, in which a network transfers one or two megabytes.
const OBJECT: Rule = Rule { first: 64 << 10, largest: 4 << 20, jump_from: 1 << 20 };

/// A file of which only small parts are read, from beginning to end.
pub(super) struct Blocks {
    source: Arc<dyn Source>,
    file: SampleUri,
    /// The length of the file, if known.
    len: Option<u64>,
    rule: Rule,
    next_block: u64,
    start: u64,
    block: Vec<u8>,
}

impl Blocks {
    pub(super) fn new(source: Arc<dyn Source>, file: SampleUri, len: Option<u64>) -> Self {
        let rule = if file.as_str().contains("://") { OBJECT } else { FILE };
        Self { source, file, len, rule, next_block: rule.first, start: 0, block: Vec::new() }
    }

    pub(super) fn len(&self) -> Option<u64> {
        self.len
    }

    /// Announces that records are about this long.
    fn expect_records_of(&mut self, len: u64) {
        if len >= self.rule.jump_from {
            self.next_block = self.rule.first;
        }
    }

    fn read_from(&mut self, range: &Range<u64>) -> Result<(), ReadError> {
        let wanted = (range.end - range.start).max(self.next_block);
        let end = range.start.saturating_add(wanted);
        let end = self.len.map_or(end, |len| end.min(len));
        self.next_block = (self.next_block * 2).min(self.rule.largest);
        self.start = range.start;
        self.block = match self.source.read_once(&self.file, range.start..end) {
            Ok(block) => block,
            Err(error) => {
                self.block.clear();
                return Err(ReadError::Source(error));
            }
        };
        Ok(())
    }

    fn found(&self, range: &Range<u64>) -> Option<Range<usize>> {
        let start = range.start.checked_sub(self.start)?;
        let end = range.end.checked_sub(self.start)?;
        (end <= self.block.len() as u64).then_some(start as usize..end as usize)
    }
}

impl Bytes for Blocks {
    fn at(&mut self, range: Range<u64>) -> Result<&[u8], ReadError> {
        if self.len.is_some_and(|len| range.end > len) {
            return Err(ReadError::End);
        }
        if self.found(&range).is_none() {
            self.read_from(&range)?;
        }
        let found = self.found(&range).ok_or(ReadError::End)?;
        Ok(&self.block[found])
    }
}

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

/// As in TensorFlow's `tensorflow/core/lib/io/record_writer.h` and `lib/hash/crc32c.h`.
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
