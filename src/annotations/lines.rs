//! Text files, line by line.

use std::io::{self, BufRead, BufReader, Read};

/// Longer lines are rejected.
const LONGEST_LINE: u64 = 64 << 20;

/// Passes on each nonblank line with its number from 1, without its line break (`\n`, `\r\n` or `\r`).
///
/// # Errors
/// Those of the reader.
pub(crate) fn each_line(reader: impl Read, mut each: impl FnMut(u64, Result<&str, &str>)) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(256 << 10, reader);
    let mut read = Vec::new();
    let mut number = 0;
    loop {
        read.clear();
        if reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut read)? == 0 {
            return Ok(());
        }
        let is_cut = read.len() as u64 == LONGEST_LINE && read.last() != Some(&b'\n');
        if is_cut {
            reader.skip_until(b'\n')?;
            number += 1;
            each(number, Err("is longer than 64 MiB"));
            continue;
        }
        let text = read.strip_suffix(b"\n").unwrap_or(&read);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        for line in text.split(|byte| *byte == b'\r') {
            number += 1;
            let text = super::text_of(line);
            if text.is_ok_and(|text| text.trim().is_empty()) {
                continue;
            }
            each(number, text);
        }
    }
}
