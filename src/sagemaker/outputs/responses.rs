//! The responses in an output, one by one: one per line, or concatenated.
//!
//! Memory does not grow with the output: large outputs are read in blocks, and lines that are too long for a response
//! are skipped and reported.

use std::collections::VecDeque;

use serde_json::Deserializer;

use super::csv_line::{is_csv, read_csv_line};
use super::folder::OutputFolder;
use super::json::{Json, MAX_RESPONSE_BYTES, too_long};
use super::recognize::JOINED;
use crate::image::source::FileEntry;
use crate::tasks::TaskControl;

/// Outputs up to this size are read as a whole.
const WHOLE_BYTES: u64 = 8 << 20;
const BLOCK_BYTES: u64 = 4 << 20;

/// A response, or why it cannot be read.
pub(super) type OneResponse = Result<Json, String>;

#[derive(Clone, Copy)]
pub struct ResponseFile<'f> {
    pub folder: &'f OutputFolder,
    pub file: &'f FileEntry,
    pub control: &'f TaskControl,
    pub format: ResponseFormat,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ResponseFormat {
    /// The whole file is the response for one image.
    One,
    /// Responses can be separated by line breaks, or concatenated if each begins like the first. One response can be
    /// for several images. Each is complete even if an earlier one is broken.
    Several,
}

/// The responses of a file in order, read as needed.
pub struct Responses<'f> {
    of: ResponseFile<'f>,
    position: u64,
    /// The last line of the block before `position`.
    line: Line,
    found: VecDeque<OneResponse>,
    is_over: bool,
}

impl<'f> ResponseFile<'f> {
    pub fn responses(self) -> Responses<'f> {
        Responses { of: self, position: 0, line: Line::default(), found: VecDeque::new(), is_over: false }
    }

    /// # Errors
    /// The file cannot be read to its end.
    pub fn count(self) -> Result<u64, String> {
        let mut responses = self.responses();
        let mut count = 0;
        while responses.read_next()?.is_some() {
            count += 1;
        }
        Ok(count)
    }
}

impl Responses<'_> {
    /// The next response; `None` at the end.
    ///
    /// # Errors
    /// The file cannot be read any further.
    pub fn read_next(&mut self) -> Result<Option<OneResponse>, String> {
        while self.found.is_empty() && !self.is_over {
            let ResponseFile { folder, file, control, format } = self.of;
            if format == ResponseFormat::Several && file.size_bytes > WHOLE_BYTES && !is_csv(&file.key) {
                self.read_block()?;
                continue;
            }
            self.is_over = true;
            let bytes = folder.read(file, control)?;
            match format {
                ResponseFormat::One => self.found.push_back(Json::parse(&bytes)),
                // A column with a line break after an image is a broken line.
                ResponseFormat::Several if is_csv(&file.key) => self.add(lines(&bytes).map(read_csv_line)),
                ResponseFormat::Several => self.add(read_whole(&bytes)),
            }
        }
        Ok(self.found.pop_front())
    }

    fn read_block(&mut self) -> Result<(), String> {
        let ResponseFile { folder, file, control, .. } = self.of;
        let end = (self.position + BLOCK_BYTES).min(file.size_bytes);
        let block = folder.read_range(file, self.position..end, control)?;
        if block.is_empty() {
            return Err("the output shrank while it was read".to_owned());
        }
        self.position += block.len() as u64;
        self.is_over = self.position >= file.size_bytes;
        let mut found = Vec::new();
        for (number, part) in block.split(|byte| *byte == b'\n').enumerate() {
            if number > 0 {
                self.line.end(&mut found);
            }
            self.line.extend(part, &mut found);
        }
        if self.is_over {
            self.line.end(&mut found);
        }
        self.add(found);
        Ok(())
    }

    fn add(&mut self, responses: impl IntoIterator<Item = OneResponse>) {
        for response in responses {
            match response {
                Ok(response) => self.found.extend(one_by_one(response).into_iter().map(Ok)),
                broken => self.found.push_back(broken),
            }
        }
    }
}

/// Blank lines are skipped.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == b'\n').filter(|line| !is_blank(line))
}

fn is_blank(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_whitespace)
}

/// Splits a response for several images (`instances`, `predictions`) into one per image; returns others unchanged.
fn one_by_one(whole: Json) -> Vec<Json> {
    let holds_image = |value: &Json| value.get("b64").and_then(Json::text).is_some();
    let instances = match whole.get("instances") {
        Some(Json::List(list)) if list.iter().any(holds_image) => Some(&**list),
        _ => None,
    };
    let output = whole.get(JOINED);
    let predictions = output.unwrap_or(&whole);
    let predictions = predictions.get("predictions").and_then(several_responses);
    let field = |name: &str, value: Json| (Box::from(name), value);
    let prediction = |one: &Json| Json::Object([field("predictions", Json::List([one.clone()].into()))].into());
    let joined = |(instance, one): (&Json, &Json)| {
        let mut fields = match instance {
            Json::Object(fields) => fields.to_vec(),
            _ => Vec::new(),
        };
        fields.push(field(JOINED, prediction(one)));
        Json::Object(fields.into())
    };
    match (instances, predictions) {
        (Some(instances), Some(responses)) if instances.len() == responses.len() => {
            instances.iter().zip(responses).map(joined).collect()
        }
        (None, Some(responses)) if output.is_none() => responses.iter().map(prediction).collect(),
        (Some(instances), None) if output.is_none() => instances.to_vec(),
        _ => match whole.get("inputs") {
            Some(inputs) if holds_image(inputs) => vec![inputs.clone()],
            _ => vec![whole],
        },
    }
}

/// The responses for several images: from our own container, and from a model in TensorFlow Serving behind our handler.
/// In other models, such a list can contain the boxes of one image.
fn several_responses(predictions: &Json) -> Option<&[Json]> {
    let is_response = |one: &Json| {
        let fields = ["status", "probabilities", "detection_boxes"];
        fields.iter().any(|field| one.get(field).is_some())
    };
    match predictions {
        Json::List(list) if list.iter().all(is_response) => Some(list),
        _ => None,
    }
}

/// An output in memory: concatenated JSON documents, however they are spread over lines, or else lines.
fn read_whole(bytes: &[u8]) -> Vec<OneResponse> {
    let all: Result<Vec<OneResponse>, _> =
        Deserializer::from_slice(bytes).into_iter().map(|response| response.map(Ok)).collect();
    all.unwrap_or_else(|_| {
        let mut found = Vec::new();
        lines(bytes).for_each(|line| read_line(line, &mut found));
        found
    })
}

/// A line of which a part has arrived. If it contains many responses, complete ones have already been taken.
#[derive(Default)]
struct Line {
    bytes: Vec<u8>,
    /// Bytes of a response that is too long, of which only the end is kept.
    passed_over: u64,
    /// The start of the skipped response; the next one on its line starts in the same way. Empty if unknown.
    opening: Vec<u8>,
}

impl Line {
    fn extend(&mut self, part: &[u8], found: &mut Vec<OneResponse>) {
        self.bytes.extend_from_slice(part);
        if self.passed_over > 0 {
            self.passed_over += part.len() as u64;
            let Some(next) = place_of(&self.opening, &self.bytes) else {
                return self.keep_tail();
            };
            let behind = (self.bytes.len() - next) as u64;
            found.push(Err(too_long(std::mem::take(&mut self.passed_over) - behind)));
            self.bytes.drain(..next);
        }
        if self.bytes.len() as u64 >= BLOCK_BYTES {
            let taken = read_several(&self.bytes, Ending::MayGoOn, found);
            self.bytes.drain(..taken);
        }
        if self.bytes.len() as u64 > MAX_RESPONSE_BYTES {
            self.passed_over = self.bytes.len() as u64;
            self.opening = opening_of(&self.bytes).unwrap_or_default().to_vec();
            self.keep_tail();
        }
    }

    /// The next response may have begun there.
    fn keep_tail(&mut self) {
        let kept = self.opening.len().saturating_sub(1);
        let end = self.bytes.len().saturating_sub(kept);
        self.bytes = self.bytes.split_off(end);
    }

    fn end(&mut self, found: &mut Vec<OneResponse>) {
        let bytes = std::mem::take(&mut self.bytes);
        match std::mem::take(&mut self.passed_over) {
            0 if is_blank(&bytes) => {}
            0 => read_line(&bytes, found),
            bytes => found.push(Err(too_long(bytes))),
        }
    }
}

fn read_line(line: &[u8], found: &mut Vec<OneResponse>) {
    let response = Json::parse(line);
    if response.is_err() && next_like_first(line, 0).is_some() {
        read_several(line, Ending::IsThere, found);
    } else {
        found.push(response);
    }
}

/// Whether more text follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    IsThere,
    MayGoOn,
}

/// Reads consecutive responses; returns the number of bytes that they took. A broken one does not affect the others:
/// the next one starts like the first.
fn read_several(text: &[u8], ending: Ending, found: &mut Vec<OneResponse>) -> usize {
    let mut taken = 0;
    loop {
        let mut responses = Deserializer::from_slice(&text[taken..]).into_iter::<Json>();
        let mut behind = 0;
        let error = loop {
            match responses.next() {
                Some(Ok(response)) => {
                    behind = responses.byte_offset();
                    found.push(Ok(response));
                }
                Some(Err(error)) => break error,
                None => return text.len(),
            }
        };
        taken += behind;
        let spaces = text[taken..].iter();
        taken += spaces.take_while(|byte| byte.is_ascii_whitespace()).count();
        let next = next_like_first(text, taken);
        if ending == Ending::MayGoOn && (error.is_eof() || next.is_none()) {
            return taken;
        }
        let end = next.unwrap_or(text.len());
        let broken = Json::parse(&text[taken..end]).err();
        found.push(Err(broken.unwrap_or_else(|| error.to_string())));
        taken = end;
        if next.is_none() {
            return taken;
        }
    }
}

/// The position after `from` where a response seems to begin: with the same first field as the text, such as
/// `{"predictions":`.
fn next_like_first(text: &[u8], from: usize) -> Option<usize> {
    let opening = opening_of(text)?;
    let text_start = text.iter().position(|byte| !byte.is_ascii_whitespace())?;
    let from = from.max(text_start) + 1;
    place_of(opening, text.get(from..)?).map(|at| from + at)
}

/// The start of a response up to its first value; `None` if it is not an object.
fn opening_of(text: &[u8]) -> Option<&[u8]> {
    /// Field names are short.
    const LONGEST: usize = 100;
    let first = text.trim_ascii_start();
    let colon = first.iter().take(LONGEST).position(|byte| *byte == b':')?;
    Some(&first[..=colon]).filter(|opening| opening.starts_with(b"{"))
}

fn place_of(opening: &[u8], text: &[u8]) -> Option<usize> {
    if opening.is_empty() {
        return None;
    }
    text.windows(opening.len()).position(|place| place == opening)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::tasks::ProgressUnit;

    /// The responses in an output with this content: `None` for a broken one.
    fn found(write: impl FnOnce(&mut std::fs::File)) -> Vec<Option<f64>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.out");
        let mut file = std::fs::File::create(&path).unwrap();
        write(&mut file);
        let (folder, control) = (OutputFolder::local(folder.path()), TaskControl::new(ProgressUnit::Images));
        let file = folder.list(&control, |_| true).unwrap().remove(0);
        let file = ResponseFile { folder: &folder, file: &file, control: &control, format: ResponseFormat::Several };
        let mut responses = file.responses();
        let mut found = Vec::new();
        while let Some(response) = responses.read_next().unwrap() {
            found.push(response.ok().and_then(|json| json.get("n")?.number()));
        }
        assert_eq!(file.count().unwrap(), found.len() as u64);
        found
    }

    fn found_in_text(text: &str) -> Vec<Option<f64>> {
        found(|file| file.write_all(text.as_bytes()).unwrap())
    }

    #[test]
    fn responses_are_split_by_line_or_concatenation() {
        let three = [Some(1.0), Some(2.0), Some(3.0)];
        for text in [
            "{\"n\": 1}\n{\"n\": 2}\n{\"n\": 3}\n",
            "{\"n\": 1}\r\n\r\n{\"n\": 2}\r\n{\"n\": 3}",
            "{\"n\": 1}{\"n\": 2}{\"n\": 3}",
            "{\n  \"n\": 1\n}{\n  \"n\": 2\n}\n{\n  \"n\": 3\n}\n",
        ] {
            assert_eq!(found_in_text(text), three, "{text}");
        }
        assert!(found_in_text("").is_empty());
    }

    /// The parts of a document, as JSON again.
    fn split(document: &str) -> Vec<String> {
        fn text(json: &Json) -> String {
            match json {
                Json::Object(fields) => {
                    let fields = fields.iter();
                    let fields: Vec<String> = fields.map(|(name, value)| format!("{name}: {}", text(value))).collect();
                    format!("{{{}}}", fields.join(", "))
                }
                Json::List(list) => {
                    let list: Vec<String> = list.iter().map(text).collect();
                    format!("[{}]", list.join(", "))
                }
                Json::Text(text) => text.to_string(),
                other => other.kind().to_owned(),
            }
        }
        let document = Json::parse(document.as_bytes()).unwrap();
        one_by_one(document).iter().map(text).collect()
    }

    #[test]
    fn multi_image_responses_are_split() {
        for (document, expected) in [
            (
                r#"{"predictions": [{"status": "ok"}, {"status": "failed"}]}"#,
                &["{predictions: [{status: ok}]}", "{predictions: [{status: failed}]}"][..],
            ),
            // A model in TensorFlow Serving.
            (
                r#"{"predictions": [{"probabilities": "p"}, {"probabilities": "q"}]}"#,
                &["{predictions: [{probabilities: p}]}", "{predictions: [{probabilities: q}]}"],
            ),
            // This key has another meaning in other formats.
            (r#"{"predictions": [{"box": "b"}, {"box": "c"}]}"#, &["{predictions: [{box: b}, {box: c}]}"]),
            (r#"{"instances": [{"box": "b"}]}"#, &["{instances: [{box: b}]}"]),
            // Lines of a list.
            (r#"{"instances": [{"b64": "x"}, {"b64": "y"}]}"#, &["{b64: x}", "{b64: y}"]),
            (r#"{"inputs": {"b64": "x"}}"#, &["{b64: x}"]),
            (r#"{"b64": "x"}"#, &["{b64: x}"]),
            // Joined with the request.
            (
                r#"{"instances": [{"b64": "x", "image": "a"}, {"b64": "y"}],
                    "SageMakerOutput": {"predictions": [{"status": "ok"}, {"status": "failed"}]}}"#,
                &[
                    "{b64: x, image: a, SageMakerOutput: {predictions: [{status: ok}]}}",
                    "{b64: y, SageMakerOutput: {predictions: [{status: failed}]}}",
                ],
            ),
        ] {
            assert_eq!(split(document), expected, "{document}");
        }
    }

    #[test]
    fn broken_line_costs_only_itself() {
        assert_eq!(found_in_text("{\"n\": 1}\n{\"n\": \n{\"n\": 3}\n"), [Some(1.0), None, Some(3.0)]);
    }

    #[test]
    fn broken_concatenated_response_costs_only_itself() {
        for broken in
            [r#"{"n": "#, r#"{"n": 2, "more": ["a", "#, r#"{"n": 2, "text": "never en"#, r#"{"n": NaN}"#, r#"{"n": 2]"#]
        {
            for spaces in ["", "  "] {
                let text = format!("{{\"n\": 1}}{spaces}{broken}{{\"n\": 3}}{spaces}{{\"n\": 4}}");
                assert_eq!(found_in_text(&text), [Some(1.0), None, Some(3.0), Some(4.0)], "{text}");
            }
            let last = format!("{{\"n\": 1}}{{\"n\": 2}}{broken}");
            assert_eq!(found_in_text(&last), [Some(1.0), Some(2.0), None], "{last}");
        }
        // A line is one response if nothing in it begins like its start.
        assert_eq!(found_in_text("{\"n\": 1} and more\n{\"n\": 2}"), [None, Some(2.0)]);
    }

    #[test]
    fn many_concatenated_responses_need_no_line_break() {
        let many = 1_200_000;
        let found = found(|file| {
            let mut text = std::io::BufWriter::new(file);
            for number in 0..many {
                let response = match number {
                    600_000 => "{\"n\": 600000, \"more\": [\"words".to_owned(),
                    _ => format!("{{\"n\": {number}, \"more\": [\"words\"]}}"),
                };
                text.write_all(response.as_bytes()).unwrap();
            }
            text.flush().unwrap();
        });
        assert_eq!(found.len(), many);
        let expected = (0..many).map(|number| (number != 600_000).then_some(number as f64));
        assert!(found.into_iter().eq(expected));
    }

    #[test]
    fn huge_line_is_one_problem() {
        let spaces = vec![b' '; 1 << 20];
        let found = found(|file| {
            file.write_all(b"{\"n\": 1}\n{\"n\": ").unwrap();
            for _ in 0..100 {
                file.write_all(&spaces).unwrap();
            }
            file.write_all(b"2}\n{\"n\": 3}").unwrap();
        });
        assert_eq!(found, [Some(1.0), None, Some(3.0)]);
    }

    #[test]
    fn overlong_response_costs_only_itself() {
        let letters = vec![b'x'; 1 << 20];
        let found = found(|file| {
            file.write_all(b"{\"n\": 1}{\"n\": \"").unwrap();
            for _ in 0..70 {
                file.write_all(&letters).unwrap();
            }
            file.write_all(b"\"}{\"n\": 3}{\"n\": 4}\n{\"n\": 5}").unwrap();
        });
        let expected = [Some(1.0), None, Some(3.0), Some(4.0), Some(5.0)];
        assert_eq!(found, expected);
    }

    #[test]
    fn lines_span_read_blocks() {
        let found = found(|file| {
            for number in 0..400_000 {
                writeln!(file, "{{\"n\": {number}, \"more\": \"words\"}}").unwrap();
            }
        });
        assert_eq!(found.len(), 400_000);
        assert!(found.iter().zip(0..).all(|(found, number)| *found == Some(f64::from(number))));
    }
}
