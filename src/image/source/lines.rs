//! JSON Lines files with one image per line, `{"b64": "…"}`, as read by a job with `SplitType` Line. Such a file must
//! be opened by itself; in a folder, its content could be anything.

use std::ops::Range;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use serde::Deserialize;

use super::{Page, Source, SourceError, cut, for_task};
use crate::domain::{Problem, Sample, SampleUri, human_bytes, is_lines_name};
use crate::tasks::TaskControl;

/// The number of bytes scanned per read. Another request costs about 30 ms, in which a network transfers one or two
/// megabytes.
const BLOCK_BYTES: u64 = 1 << 20;
/// Far above the 100 MB limit for a job's request.
const LONGEST_LINE: u64 = 256 << 20;
/// The number of lines in the first page, so that it arrives soon; later pages are larger.
const FIRST_PAGE_LEN: usize = 32;
const PAGE_LEN: usize = 500;

/// The lines of one file as samples, whether or not an image can be read from them: a job sends every line. Blank lines
/// are skipped.
#[derive(Clone)]
pub struct LinesSource {
    inner: Arc<dyn Source>,
    file: Sample,
    index: Arc<Mutex<Index>>,
}

/// The lines found so far.
#[derive(Debug, Default)]
struct Index {
    /// The ranges of the lines, without line breaks.
    lines: Vec<Range<u64>>,
    /// The position up to which the file was scanned.
    looked_at: u64,
    /// The start of the incomplete line at that position.
    line_start: u64,
    /// Whether it contains anything but spaces.
    has_content: bool,
    is_whole: bool,
}

/// The fields of a line that are used; others are ignored.
#[derive(Deserialize)]
struct Line<'l> {
    #[serde(borrow)]
    b64: std::borrow::Cow<'l, str>,
}

impl LinesSource {
    /// The lines of a source that is a single lines file; any other source is returned unchanged. `control` cancels
    /// waits.
    pub fn in_place_of(source: Arc<dyn Source>, control: &TaskControl) -> Arc<dyn Source> {
        let name = source.name();
        if !is_lines_name(&name) {
            return source;
        }
        let mut listed = for_task(&source, control).pages().flat_map(|page| page.samples);
        match listed.next() {
            Some(file) if file.uri.as_str() == name => Arc::new(Self::over(source, file)),
            _ => source,
        }
    }

    /// `file` is one that `inner` lists.
    fn over(inner: Arc<dyn Source>, file: Sample) -> Self {
        Self { inner, file, index: Arc::default() }
    }

    /// The unchanged line of a sample.
    fn line(&self, uri: &SampleUri) -> Result<Vec<u8>, SourceError> {
        let number = match uri.record() {
            Some((file, number)) if file == self.file.uri.as_str() => number,
            _ => return Err(SourceError::NotFound),
        };
        let range = self.range_of(number)?;
        let bytes = range.end - range.start;
        if bytes > LONGEST_LINE {
            return Err(SourceError::Damaged(format!(
                "line {} has {}, which exceeds the maximum request size",
                number + 1,
                human_bytes(bytes)
            )));
        }
        self.inner.read_range(&self.file.uri, range)
    }

    fn range_of(&self, number: u64) -> Result<Range<u64>, SourceError> {
        let place = usize::try_from(number).unwrap_or(usize::MAX);
        let mut index = self.index.lock();
        loop {
            if let Some(range) = index.lines.get(place) {
                return Ok(range.clone());
            }
            if index.is_whole {
                return Err(SourceError::Damaged(format!(
                    "line {} no longer exists: the file changed since it was listed; open it again",
                    number + 1
                )));
            }
            index.scan_further(&*self.inner, &self.file)?;
        }
    }

    fn sample(&self, number: usize, line: &Range<u64>) -> Sample {
        Sample {
            uri: SampleUri::from_record(self.file.uri.as_str(), number as u64),
            name: format!("{}/{number}", self.file.name),
            size_bytes: line.end - line.start,
            ..self.file.clone()
        }
    }
}

impl Index {
    /// Scans the next block.
    fn scan_further(&mut self, source: &dyn Source, file: &Sample) -> Result<(), SourceError> {
        let end = (self.looked_at + BLOCK_BYTES).min(file.size_bytes);
        let block = if self.looked_at < end { source.read_once(&file.uri, self.looked_at..end)? } else { Vec::new() };
        for (at, byte) in (self.looked_at..).zip(&block) {
            if *byte == b'\n' {
                self.end_line(at);
            } else {
                self.has_content |= !byte.is_ascii_whitespace();
            }
        }
        self.looked_at += block.len() as u64;
        if block.is_empty() || self.looked_at >= file.size_bytes {
            self.end_line(self.looked_at);
            self.is_whole = true;
        }
        Ok(())
    }

    fn end_line(&mut self, at: u64) {
        if std::mem::take(&mut self.has_content) {
            self.lines.push(self.line_start..at);
        }
        self.line_start = at + 1;
    }
}

fn image_in(line: &[u8]) -> Result<Vec<u8>, SourceError> {
    let damaged = |why: String| SourceError::Damaged(why);
    let line: Line<'_> = serde_json::from_slice(line)
        .map_err(|error| damaged(format!(r#"the line is not {{"b64": "…"}} with a base64 image: {error}"#)))?;
    STANDARD.decode(line.b64.as_bytes()).map_err(|error| damaged(format!("the line is not valid base64: {error}")))
}

impl Source for LinesSource {
    fn name(&self) -> String {
        self.inner.name()
    }

    fn pages(&self) -> Box<dyn Iterator<Item = Page> + Send> {
        let source = self.clone();
        let (mut next, mut page_len, mut is_over) = (0, FIRST_PAGE_LEN, false);
        Box::new(std::iter::from_fn(move || {
            if is_over {
                return None;
            }
            let mut page = Page::default();
            let mut index = source.index.lock();
            while index.lines.len() < next + page_len && !index.is_whole {
                if let Err(error) = index.scan_further(&*source.inner, &source.file) {
                    is_over = true;
                    let message = format!("{error} ({} lines were listed before it)", index.lines.len());
                    let problem = Problem::new(source.file.uri.clone(), message);
                    // The caller that canceled the listing knows that it is incomplete.
                    let is_told = !matches!(error, SourceError::Cancelled);
                    page.problems.extend(is_told.then_some(problem));
                    break;
                }
            }
            is_over |= index.lines.len() <= next + page_len && index.is_whole;
            let found = index.lines.iter().enumerate().skip(next).take(page_len);
            page.samples.extend(found.map(|(number, line)| source.sample(number, line)));
            next += page.samples.len();
            page_len = PAGE_LEN;
            Some(page)
        }))
    }

    fn read(&self, uri: &SampleUri) -> Result<Vec<u8>, SourceError> {
        image_in(&self.line(uri)?)
    }

    fn read_range(&self, uri: &SampleUri, range: Range<u64>) -> Result<Vec<u8>, SourceError> {
        self.read(uri).map(|image| cut(image, range))
    }

    fn read_line(&self, uri: &SampleUri) -> Result<Option<Vec<u8>>, SourceError> {
        self.line(uri).map(Some)
    }

    fn record_count(&self, file: &SampleUri) -> Result<Option<u64>, SourceError> {
        if *file != self.file.uri {
            return Ok(None);
        }
        let mut index = self.index.lock();
        while !index.is_whole {
            index.scan_further(&*self.inner, &self.file)?;
        }
        Ok(Some(index.lines.len() as u64))
    }

    fn server(&self) -> Option<&str> {
        self.inner.server()
    }

    fn useful_reads(&self) -> usize {
        self.inner.useful_reads()
    }

    fn for_task(&self, control: &TaskControl) -> Option<Arc<dyn Source>> {
        let inner = self.inner.for_task(control)?;
        Some(Arc::new(Self { inner, ..self.clone() }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::MemorySource;
    use super::*;

    fn lines_of(text: &[u8]) -> LinesSource {
        let files = [("a.jsonl".to_owned(), text.to_vec())];
        let memory: Arc<dyn Source> = Arc::new(MemorySource::new(files));
        let file = memory.pages().flat_map(|page| page.samples).next().unwrap();
        LinesSource::over(memory, file)
    }

    fn samples(source: &LinesSource) -> Vec<Sample> {
        source.pages().flat_map(|page| page.samples).collect()
    }

    #[test]
    fn each_line_is_a_sample() {
        let text = b"{\"b64\": \"Y2F0\", \"image\": \"cat.jpg\"}\r\n\n \n{\"b64\": \"?\"}\nnone\n{\"b64\": \"ZG9n\"}";
        let source = lines_of(text);
        let found = samples(&source);
        let names: Vec<&str> = found.iter().map(|sample| sample.name.as_str()).collect();
        assert_eq!(names, ["a.jsonl/0", "a.jsonl/1", "a.jsonl/2", "a.jsonl/3"]);
        let images = found.iter().map(|sample| source.read(&sample.uri).ok());
        let images: Vec<Option<Vec<u8>>> = images.collect();
        let expected = [Some(b"cat".to_vec()), None, None, Some(b"dog".to_vec())];
        assert_eq!(images, expected);
        let line = source.read_line(&found[2].uri).unwrap().unwrap();
        assert_eq!(line, b"none");
        let file = SampleUri::new("a.jsonl");
        assert_eq!(source.record_count(&file).unwrap(), Some(4));
    }

    #[test]
    fn lines_are_found_across_blocks_and_pages() {
        let long = "x".repeat(3 << 19);
        let mut text = String::new();
        for number in 0..700 {
            let image = STANDARD.encode(number.to_string());
            let more = if number % 300 == 299 { &long } else { "" };
            let line = format!("{{\"b64\":\"{image}\",\"more\":\"{more}\"}}\n");
            text.push_str(&line);
        }
        let source = lines_of(text.as_bytes());
        let late = SampleUri::from_record("a.jsonl", 699);
        assert_eq!(source.read(&late).unwrap(), b"699");
        let missing = SampleUri::from_record("a.jsonl", 700);
        assert!(source.read(&missing).is_err());

        let source = lines_of(text.as_bytes());
        let found = samples(&source);
        assert_eq!(found.len(), 700);
        for (number, sample) in found.iter().enumerate() {
            let image = source.read(&sample.uri).unwrap();
            assert_eq!(image, number.to_string().as_bytes());
        }
        assert_eq!(samples(&lines_of(b"\n\n")), []);
    }
}
