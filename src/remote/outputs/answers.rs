//! The answers in an output that holds many: one a line, or one behind the other.
//!
//! Memory does not grow with the output: what is too large to be taken as a whole is read in blocks, and a line that is too long to be
//! an answer is passed over and told.

use serde_json::Deserializer;

use super::folder::{OutputFile, OutputFolder};
use super::json::{Json, MAX_ANSWER_BYTES, too_long};
use crate::tasks::TaskControl;

/// Outputs up to this size are taken as a whole.
const WHOLE_BYTES: u64 = 8 << 20;
const BLOCK_BYTES: u64 = 4 << 20;

/// One of them, or why it cannot be read.
pub(super) type OneAnswer = Result<Json, String>;

/// An output that holds many answers.
pub(super) struct Answers<'f> {
    pub(super) folder: &'f OutputFolder,
    pub(super) file: &'f OutputFile,
    pub(super) control: &'f TaskControl,
}

impl Answers<'_> {
    /// How many there are, without reading what they say.
    ///
    /// # Errors
    /// The output cannot be read to its end.
    pub(super) fn count(&self) -> Result<u64, String> {
        let mut count = 0;
        self.each(|_| count += 1)?;
        Ok(count)
    }

    /// Hands over all of them in their order. Each whole, though what comes before it is broken: with line breaks between them. Where
    /// they are not one a line, but one behind the other, a broken one costs the rest.
    ///
    /// # Errors
    /// The output cannot be read to its end.
    pub(super) fn each(&self, mut visit: impl FnMut(OneAnswer)) -> Result<(), String> {
        if self.file.size_bytes <= WHOLE_BYTES {
            let bytes = self.folder.read(self.file, self.control)?;
            let all: Result<Vec<Json>, _> = Deserializer::from_slice(&bytes).into_iter().collect();
            match all {
                Ok(answers) => answers.into_iter().for_each(|answer| visit(Ok(answer))),
                Err(_) => bytes
                    .split(|byte| *byte == b'\n')
                    .for_each(|line| visit_line(line, &mut visit)),
            }
            return Ok(());
        }
        let mut line: Vec<u8> = Vec::new();
        // Of a line that is too long, and so not kept.
        let mut passed_over: u64 = 0;
        let mut position = 0;
        while position < self.file.size_bytes {
            let end = (position + BLOCK_BYTES).min(self.file.size_bytes);
            let block = self
                .folder
                .read_range(self.file, position..end, self.control)?;
            if block.is_empty() {
                return Err("the output has become shorter while it was read".to_owned());
            }
            position += block.len() as u64;
            let mut parts = block.split(|byte| *byte == b'\n').peekable();
            while let Some(part) = parts.next() {
                if passed_over > 0 || line.len() as u64 + part.len() as u64 > MAX_ANSWER_BYTES {
                    passed_over += line.len() as u64 + part.len() as u64;
                    line = Vec::new();
                } else {
                    line.extend_from_slice(part);
                }
                if parts.peek().is_some() {
                    end_line(&mut line, &mut passed_over, &mut visit);
                }
            }
        }
        end_line(&mut line, &mut passed_over, &mut visit);
        Ok(())
    }
}

fn end_line(line: &mut Vec<u8>, passed_over: &mut u64, visit: &mut impl FnMut(OneAnswer)) {
    if *passed_over > 0 {
        visit(Err(too_long(*passed_over)));
    } else {
        visit_line(line, visit);
    }
    *passed_over = 0;
    line.clear();
}

/// Empty lines are none.
fn visit_line(line: &[u8], visit: &mut impl FnMut(OneAnswer)) {
    if line.iter().all(u8::is_ascii_whitespace) {
        return;
    }
    match Json::parse(line) {
        Ok(answer) => visit(Ok(answer)),
        Err(reason) => {
            let several: Result<Vec<Json>, _> =
                Deserializer::from_slice(line).into_iter().collect();
            match several {
                Ok(answers) if line.len() as u64 <= MAX_ANSWER_BYTES => {
                    for answer in answers {
                        visit(Ok(answer));
                    }
                }
                _ => visit(Err(reason)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::tasks::ProgressUnit;

    /// What is found in an output with this content: `None` for a broken one.
    fn found(write: impl FnOnce(&mut std::fs::File)) -> Vec<Option<f64>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.out");
        let mut file = std::fs::File::create(&path).unwrap();
        write(&mut file);
        let file = OutputFile {
            key: "a.out".to_owned(),
            size_bytes: file.metadata().unwrap().len(),
            etag: None,
            modified_ns: None,
        };
        let answers = Answers {
            folder: &OutputFolder::local(folder.path()),
            file: &file,
            control: &TaskControl::new(ProgressUnit::Images),
        };
        let mut found = Vec::new();
        answers
            .each(|answer| found.push(answer.ok().and_then(|json| json.get("n")?.number())))
            .unwrap();
        assert_eq!(answers.count().unwrap(), found.len() as u64);
        found
    }

    fn of_text(text: &str) -> Vec<Option<f64>> {
        found(|file| file.write_all(text.as_bytes()).unwrap())
    }

    #[test]
    fn one_a_line_one_behind_the_other_or_spread_over_lines() {
        let three = [Some(1.0), Some(2.0), Some(3.0)];
        for text in [
            "{\"n\": 1}\n{\"n\": 2}\n{\"n\": 3}\n",
            "{\"n\": 1}\r\n\r\n{\"n\": 2}\r\n{\"n\": 3}",
            "{\"n\": 1}{\"n\": 2}{\"n\": 3}",
            "{\n  \"n\": 1\n}{\n  \"n\": 2\n}\n{\n  \"n\": 3\n}\n",
        ] {
            assert_eq!(of_text(text), three, "{text}");
        }
        assert!(of_text("").is_empty());
    }

    #[test]
    fn a_broken_line_costs_no_other() {
        assert_eq!(
            of_text("{\"n\": 1}\n{\"n\": \n{\"n\": 3}\n"),
            [Some(1.0), None, Some(3.0)]
        );
    }

    #[test]
    fn a_hundred_megabytes_without_a_line_break_are_one_problem() {
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
    fn lines_may_lie_across_the_blocks_that_are_read() {
        let found = found(|file| {
            for number in 0..400_000 {
                writeln!(file, "{{\"n\": {number}, \"more\": \"words\"}}").unwrap();
            }
        });
        assert_eq!(found.len(), 400_000);
        assert!(
            found
                .iter()
                .zip(0..)
                .all(|(found, number)| *found == Some(f64::from(number)))
        );
    }
}
