//! Random access to bytes: of a record in memory, or of a file that is read in blocks.

use std::ops::Range;
use std::sync::Arc;

use super::super::{Source, SourceError};
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
    pub(super) fn expect_records_of(&mut self, len: u64) {
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
