//! Lists the records of one file, without reading large images.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use super::SourceError;
use super::example::{Example, Part, WireError};
use super::index::{Blocks, Broken, Bytes, FOOTER, FileIndex, HEADER, Next, ReadError, next_record};
use super::names::clean_name;
use crate::domain::{Problem, Sample, SampleUri, human_bytes};

/// The number of records without an image that are reported one by one; in a file of something else, every record is
/// one.
const MAX_PROBLEMS: u64 = 20;
/// Protocol buffers are limited to 2 GiB.
pub(super) const LONGEST_RECORD: u64 = 2 << 30;

pub(super) type Entry = Result<Sample, Problem>;

/// The records of a file, in order. Damage is reported as a problem, and the listing continues where possible.
pub(super) struct FileScan {
    file: Sample,
    blocks: Blocks,
    index: Arc<FileIndex>,
    /// The records to list; `None` for all.
    only: Option<BTreeSet<u64>>,
    /// The start of the next record.
    start: u64,
    number: u64,
    /// Records without an image.
    without_image: u64,
    /// The remaining messages, once all records were seen.
    ending: Option<std::vec::IntoIter<Problem>>,
}

impl FileScan {
    pub(super) fn new(file: Sample, blocks: Blocks, index: Arc<FileIndex>, only: Option<BTreeSet<u64>>) -> Self {
        Self { file, blocks, index, only, start: 0, number: 0, without_image: 0, ending: None }
    }

    /// The entry of this record in the listing; `None` if it has none.
    fn record(&mut self, record: Range<u64>) -> Option<Entry> {
        let number = self.number;
        self.number += 1;
        self.start = record.end;
        self.index.learn(number, record.end);
        if let Some(only) = &mut self.only
            && !only.remove(&number)
        {
            return None;
        }
        let data = record.start + HEADER..record.end - FOOTER;
        if data.end - data.start >= LONGEST_RECORD {
            return self.problem(number, "is longer than 2 GiB, the limit of a record");
        }
        match Example::read(&mut self.blocks, data, Part::ImageAndName) {
            Ok(example) => match example.image() {
                Some(image) => Some(Ok(self.sample(number, &example, image.end - image.start))),
                None => self.problem(number, &example.without_image()),
            },
            Err(WireError::Garbage(reason)) => self.problem(number, &format!("is not a tf.Example: {reason}")),
            Err(WireError::Read(ReadError::End)) => self.problem(number, "was truncated while it was read"),
            Err(WireError::Read(ReadError::Source(error))) => {
                self.stop(&error);
                None
            }
        }
    }

    fn sample(&self, number: u64, example: &Example, size_bytes: u64) -> Sample {
        let name = example.name().and_then(clean_name);
        let name = name.unwrap_or_else(|| number.to_string());
        Sample {
            uri: SampleUri::from_record(self.file.uri.as_str(), number),
            name: format!("{}/{name}", self.file.name),
            size_bytes,
            ..self.file.clone()
        }
    }

    fn problem(&mut self, number: u64, message: &str) -> Option<Entry> {
        self.without_image += 1;
        let uri = SampleUri::from_record(self.file.uri.as_str(), number);
        (self.without_image <= MAX_PROBLEMS).then(|| Err(Problem::new(uri, message)))
    }

    fn broken(&mut self, broken: &Broken) -> Problem {
        let number = self.number;
        let so_far = format!("the {} before it can be used", records(number));
        let message = match broken {
            Broken::Length if number == 0 => self.why_no_record(),
            Broken::Cut { .. } if number == 0 && self.start_is_compressed().is_some() => self.why_no_record(),
            Broken::Length => format!(
                "is damaged: the length of record {number} has a wrong checksum, so it and all later records are \
                lost; {so_far}"
            ),
            Broken::Cut { missing } => format!(
                "ends in the middle of record {number}: {} are missing; {so_far}. The file is still being written, or \
                its copy is incomplete",
                human_bytes(*missing)
            ),
        };
        Problem::new(self.file.uri.clone(), message)
    }

    fn why_no_record(&mut self) -> String {
        match self.start_is_compressed() {
            Some(how) => format!(
                "is compressed ({how}), so individual records cannot be read; decompress it, or write it without \
                 compression"
            ),
            None => "is not a TFRecord file, or its beginning is damaged: the length of the first record has a wrong \
                checksum"
                .to_owned(),
        }
    }

    /// The compression of the file, if it is one of `tf.io.TFRecordWriter`.
    fn start_is_compressed(&mut self) -> Option<&'static str> {
        match self.blocks.at(0..2).ok()? {
            [0x1f, 0x8b] => Some("gzip"),
            [0x78, 0x01 | 0x5e | 0x9c | 0xda] => Some("zlib"),
            _ => None,
        }
    }

    /// Ends where the file cannot be read any further. The caller that canceled the listing knows that it is
    /// incomplete.
    fn stop(&mut self, error: &SourceError) {
        let message = format!("{error} ({} were listed before it)", records(self.number));
        let problem = Problem::new(self.file.uri.clone(), message);
        let is_told = !matches!(error, SourceError::Cancelled);
        self.finish(is_told.then_some(problem));
    }

    fn finish(&mut self, last: Option<Problem>) {
        let mut problems = Vec::new();
        let untold = self.without_image.saturating_sub(MAX_PROBLEMS);
        if untold > 0 {
            let message = format!("{} more contain no image", records(untold));
            problems.push(Problem::new(self.file.uri.clone(), message));
        }
        problems.extend(last);
        for number in self.only.take().into_iter().flatten() {
            let uri = SampleUri::from_record(self.file.uri.as_str(), number);
            let message = format!("does not exist; {} were found", records(self.number));
            problems.push(Problem::new(uri, message));
        }
        self.ending = Some(problems.into_iter());
    }
}

/// `None` for a record without a result, so that the listing can stop in between.
impl Iterator for FileScan {
    type Item = Option<Entry>;

    fn next(&mut self) -> Option<Option<Entry>> {
        if let Some(ending) = &mut self.ending {
            return ending.next().map(|problem| Some(Err(problem)));
        }
        if self.only.as_ref().is_some_and(BTreeSet::is_empty) {
            self.finish(None);
            return Some(None);
        }
        match next_record(&mut self.blocks, self.start) {
            Ok(Next::Record(record)) => return Some(self.record(record)),
            Ok(Next::End) if self.number == 0 => {
                let uri = self.file.uri.clone();
                self.finish(Some(Problem::new(uri, "is empty: it contains no records")));
            }
            Ok(Next::End) => self.finish(None),
            Ok(Next::Broken(broken)) => {
                let problem = self.broken(&broken);
                self.finish(Some(problem));
            }
            Err(error) => self.stop(&error),
        }
        Some(None)
    }
}

fn records(count: u64) -> String {
    match count {
        1 => "1 record".to_owned(),
        _ => format!("{count} records"),
    }
}
