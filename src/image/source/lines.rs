//! JSON files with images: one per line, `{"b64": "…"}`, as read by a job with `SplitType` Line, or a document with a
//! list of them, `{"instances": [{"b64": "…"}, …]}`, which a job sends as a whole. Such a file must be opened by itself;
//! in a folder, its content could be anything.

use std::ops::Range;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use serde::Deserialize;

use super::{Page, Source, SourceError, cut, for_task};
use crate::domain::{Problem, Sample, SampleUri, human_bytes, is_document_name, is_lines_name};
use crate::tasks::TaskControl;

/// The number of bytes scanned per read. Another request costs about 30 ms, in which a network transfers one or two
/// megabytes.
const BLOCK_BYTES: u64 = 1 << 20;
/// Far above the 100 MB limit for a job's request.
const LONGEST_ENTRY: u64 = 256 << 20;
/// The number of entries in the first page, so that it arrives soon; later pages are larger.
const FIRST_PAGE_LEN: usize = 32;
const PAGE_LEN: usize = 500;

/// The entries of one file as samples, whether or not an image can be read from them: a job sends every one. Blank lines
/// are skipped.
#[derive(Clone)]
pub struct LinesSource {
    inner: Arc<dyn Source>,
    file: Sample,
    index: Arc<Mutex<Index>>,
}

/// The entries found so far.
#[derive(Debug)]
struct Index {
    /// The ranges of the lines, without line breaks, or of the elements of a document.
    entries: Vec<Range<u64>>,
    /// The position up to which the file was scanned.
    looked_at: u64,
    scan: Scan,
    is_whole: bool,
}

#[derive(Debug)]
enum Scan {
    Lines(Lines),
    Document(Document),
}

/// The incomplete line at the end of the scanned part.
#[derive(Debug, Default)]
struct Lines {
    start: u64,
    /// Whether it contains anything but spaces.
    has_content: bool,
}

/// A JSON document up to the end of the scanned part. Only its structure is checked.
#[derive(Debug, Default)]
struct Document {
    /// The number of open brackets.
    depth: u32,
    string: StringState,
    /// The start of the newest string in the outer object.
    text: Vec<u8>,
    /// The newest key of the outer object.
    key: Vec<u8>,
    list: ListState,
    /// The start of the incomplete element of the list.
    element: Option<u64>,
    /// Whether the outer object itself is an image.
    is_image: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum StringState {
    #[default]
    Outside,
    Inside,
    /// After a backslash.
    Escaped,
}

/// The list of images of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ListState {
    #[default]
    Missing,
    Open,
    Closed,
}

/// The fields of an entry that are used; others are ignored.
#[derive(Deserialize)]
struct Entry<'e> {
    #[serde(borrow)]
    b64: std::borrow::Cow<'e, str>,
}

impl LinesSource {
    /// The images in a source that is a single lines file or document; any other source is returned unchanged.
    /// `control` cancels waits.
    pub fn in_place_of(source: Arc<dyn Source>, control: &TaskControl) -> Arc<dyn Source> {
        let name = source.name();
        if !is_lines_name(&name) && !is_document_name(&name) {
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
        let scan = if is_document_name(file.uri.as_str()) {
            Scan::Document(Document::default())
        } else {
            Scan::Lines(Lines::default())
        };
        let index = Index { entries: Vec::new(), looked_at: 0, scan, is_whole: false };
        Self { inner, file, index: Arc::new(Mutex::new(index)) }
    }

    /// What an entry is called.
    fn noun(&self) -> &'static str {
        if is_document_name(self.file.uri.as_str()) { "element" } else { "line" }
    }

    /// The unchanged entry of a sample.
    fn entry(&self, uri: &SampleUri) -> Result<Vec<u8>, SourceError> {
        let number = match uri.record() {
            Some((file, number)) if file == self.file.uri.as_str() => number,
            _ => return Err(SourceError::NotFound),
        };
        let range = self.range_of(number)?;
        let bytes = range.end - range.start;
        if bytes > LONGEST_ENTRY {
            return Err(SourceError::Damaged(format!(
                "{} {} has {}, which exceeds the maximum request size",
                self.noun(),
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
            if let Some(range) = index.entries.get(place) {
                return Ok(range.clone());
            }
            if index.is_whole {
                return Err(SourceError::Damaged(format!(
                    "{} {} no longer exists: the file changed since it was listed; open it again",
                    self.noun(),
                    number + 1
                )));
            }
            index.scan_further(&*self.inner, &self.file)?;
        }
    }

    fn image_in(&self, entry: &[u8]) -> Result<Vec<u8>, SourceError> {
        let noun = self.noun();
        let damaged = |why: String| SourceError::Damaged(why);
        let entry: Entry<'_> = serde_json::from_slice(entry)
            .map_err(|error| damaged(format!(r#"the {noun} is not {{"b64": "…"}} with a base64 image: {error}"#)))?;
        let decoded = STANDARD.decode(entry.b64.as_bytes());
        decoded.map_err(|error| damaged(format!("the {noun} is not valid base64: {error}")))
    }

    fn sample(&self, number: usize, entry: &Range<u64>) -> Sample {
        Sample {
            uri: SampleUri::from_record(self.file.uri.as_str(), number as u64),
            name: format!("{}/{number}", self.file.name),
            size_bytes: entry.end - entry.start,
            ..self.file.clone()
        }
    }
}

impl Index {
    /// Scans the next block.
    fn scan_further(&mut self, source: &dyn Source, file: &Sample) -> Result<(), SourceError> {
        let end = (self.looked_at + BLOCK_BYTES).min(file.size_bytes);
        let block = if self.looked_at < end { source.read_once(&file.uri, self.looked_at..end)? } else { Vec::new() };
        let bytes = (self.looked_at..).zip(&block);
        match &mut self.scan {
            Scan::Lines(lines) => self.entries.extend(bytes.filter_map(|(at, byte)| lines.take(at, *byte))),
            Scan::Document(document) => self.entries.extend(bytes.filter_map(|(at, byte)| document.take(at, *byte))),
        }
        self.looked_at += block.len() as u64;
        if block.is_empty() || self.looked_at >= file.size_bytes {
            match &mut self.scan {
                Scan::Lines(lines) => self.entries.extend(lines.take(self.looked_at, b'\n')),
                Scan::Document(document) => {
                    let whole = document.end().map_err(|reason| SourceError::Damaged(reason.to_owned()))?;
                    self.entries.extend(whole.then_some(0..self.looked_at));
                }
            }
            self.is_whole = true;
        }
        Ok(())
    }
}

impl Lines {
    /// Takes the next byte. Returns the line that it ends, unless that is blank.
    fn take(&mut self, at: u64, byte: u8) -> Option<Range<u64>> {
        if byte != b'\n' {
            self.has_content |= !byte.is_ascii_whitespace();
            return None;
        }
        let line = std::mem::replace(&mut self.start, at + 1)..at;
        std::mem::take(&mut self.has_content).then_some(line)
    }
}

impl Document {
    /// Longer than the keys that matter.
    const KEY_BYTES: usize = 16;

    /// Takes the next byte. Returns the element of the list that it ends.
    fn take(&mut self, at: u64, byte: u8) -> Option<Range<u64>> {
        if self.string != StringState::Outside {
            match byte {
                _ if self.string == StringState::Escaped => self.string = StringState::Inside,
                b'\\' => self.string = StringState::Escaped,
                b'"' => self.string = StringState::Outside,
                _ if self.depth == 1 && self.text.len() < Self::KEY_BYTES => self.text.push(byte),
                _ => {}
            }
            return None;
        }
        let is_between = self.list == ListState::Open && self.depth == 2;
        if is_between && matches!(byte, b',' | b']') {
            if byte == b']' {
                self.list = ListState::Closed;
                self.depth -= 1;
            }
            return self.element.take().map(|start| start..at);
        }
        if is_between && !byte.is_ascii_whitespace() {
            self.element.get_or_insert(at);
        }
        match byte {
            b'"' => {
                self.string = StringState::Inside;
                if self.depth == 1 {
                    self.text.clear();
                }
            }
            b':' if self.depth == 1 => {
                self.key = std::mem::take(&mut self.text);
                self.is_image |= self.key == b"b64";
            }
            b'[' | b'{' => {
                if self.depth == 1 && byte == b'[' && self.key == b"instances" {
                    self.list = ListState::Open;
                }
                self.depth += 1;
            }
            b']' | b'}' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        None
    }

    /// Takes the end. Returns whether the document as a whole is an image.
    fn end(&self) -> Result<bool, &'static str> {
        let has_list = self.list != ListState::Missing;
        if self.depth > 0 || self.string != StringState::Outside {
            Err("the document is truncated or is not JSON: a bracket or string is not closed")
        } else if has_list || self.is_image {
            Ok(!has_list)
        } else {
            Err(r#"the document has no list of images, {"instances": [{"b64": "…"}, …]}"#)
        }
    }
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
            while index.entries.len() < next + page_len && !index.is_whole {
                if let Err(error) = index.scan_further(&*source.inner, &source.file) {
                    is_over = true;
                    let message = match index.entries.len() {
                        0 => error.to_string(),
                        count => format!("{error} ({count} {}s were listed before it)", source.noun()),
                    };
                    let problem = Problem::new(source.file.uri.clone(), message);
                    // The caller that canceled the listing knows that it is incomplete.
                    let is_told = !matches!(error, SourceError::Cancelled);
                    page.problems.extend(is_told.then_some(problem));
                    break;
                }
            }
            is_over |= index.entries.len() <= next + page_len && index.is_whole;
            let found = index.entries.iter().enumerate().skip(next).take(page_len);
            page.samples.extend(found.map(|(number, entry)| source.sample(number, entry)));
            next += page.samples.len();
            page_len = PAGE_LEN;
            Some(page)
        }))
    }

    fn read(&self, uri: &SampleUri) -> Result<Vec<u8>, SourceError> {
        self.image_in(&self.entry(uri)?)
    }

    fn read_range(&self, uri: &SampleUri, range: Range<u64>) -> Result<Vec<u8>, SourceError> {
        self.read(uri).map(|image| cut(image, range))
    }

    fn read_line(&self, uri: &SampleUri) -> Result<Option<Vec<u8>>, SourceError> {
        let mut entry = self.entry(uri)?;
        if is_document_name(self.file.uri.as_str()) {
            // JSON has line breaks only between its parts.
            entry.iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b' ');
        }
        Ok(Some(entry))
    }

    fn record_count(&self, file: &SampleUri) -> Result<Option<u64>, SourceError> {
        if *file != self.file.uri {
            return Ok(None);
        }
        let mut index = self.index.lock();
        while !index.is_whole {
            index.scan_further(&*self.inner, &self.file)?;
        }
        Ok(Some(index.entries.len() as u64))
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
        entries_of("a.jsonl", text)
    }

    fn entries_of(name: &str, text: &[u8]) -> LinesSource {
        let files = [(name.to_owned(), text.to_vec())];
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

    #[test]
    fn each_element_of_a_document_is_a_sample() {
        let (cat, dog) = (Some(b"cat".to_vec()), Some(b"dog".to_vec()));
        for (text, expected) in [
            (
                r#"{"instances": [{"b64": "Y2F0"}, {"b64": "ZG9n", "image": "a ]}\",{.jpg"}]}"#,
                vec![cat.clone(), dog.clone()],
            ),
            (
                "{\n \"name\": \"instances\", \"other\": [1, {\"instances\": [2]}],\n \"instances\": [\n  {\n   \"b64\":\n\"Y2F0\"\n  },\n \
                 7, [{}], {\"b64\": \"?\"}, {\"b64\": \"ZG9n\"}\n ],\n \"b64\": \"?\"}\n",
                vec![cat.clone(), None, None, None, dog],
            ),
            (r#"{"b64": "Y2F0", "parts": ["b64", {"b64": "ZG9n"}]}"#, vec![cat]),
            (r#"{"instances": []}"#, vec![]),
        ] {
            let source = entries_of("a.json", text.as_bytes());
            let found = samples(&source);
            let images: Vec<Option<Vec<u8>>> = found.iter().map(|sample| source.read(&sample.uri).ok()).collect();
            assert_eq!(images, expected, "{text}");
            let count = expected.len() as u64;
            assert_eq!(source.record_count(&SampleUri::new("a.json")).unwrap(), Some(count), "{text}");
            for sample in &found {
                assert!(!source.read_line(&sample.uri).unwrap().unwrap().contains(&b'\n'), "{text}");
            }
        }
    }

    #[test]
    fn document_without_a_whole_list_is_a_problem() {
        for (text, listed, reason) in [
            ("", 0, "no list"),
            (r#"{"images": [{"id": 1}]}"#, 0, "no list"),
            (r#"[{"b64": "Y2F0"}]"#, 0, "no list"),
            (r#"{"instances": {"b64": "Y2F0"}}"#, 0, "no list"),
            (r#"{"instances": [{"b64": "Y2F0"}, {"b64": "Y2"#, 1, "truncated"),
            (r#"{"b64": "Y2F0"#, 0, "truncated"),
        ] {
            let source = entries_of("a.json", text.as_bytes());
            let pages: Vec<Page> = source.pages().collect();
            assert_eq!(pages.iter().map(|page| page.samples.len()).sum::<usize>(), listed, "{text}");
            let problems: Vec<&Problem> = pages.iter().flat_map(|page| &page.problems).collect();
            assert!(matches!(problems[..], [problem] if problem.message.contains(reason)), "{text}: {problems:?}");
        }
    }

    #[test]
    fn elements_are_found_across_blocks() {
        let images = (0..700).map(|number: u32| {
            let more = "]".repeat(if number % 300 == 299 { 3 << 19 } else { 1 });
            format!("{{\"more\": \"{more}\", \"b64\": \"{}\"}}", STANDARD.encode(number.to_string()))
        });
        let text = format!("{{\"instances\": [{}]}}", images.collect::<Vec<_>>().join(",\n"));
        let source = entries_of("a.json", text.as_bytes());
        let found = samples(&source);
        assert_eq!(found.len(), 700);
        for (number, sample) in found.iter().enumerate() {
            assert_eq!(source.read(&sample.uri).unwrap(), number.to_string().as_bytes());
        }
    }
}
