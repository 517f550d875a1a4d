//! Text files, line by line.

use std::io::{self, BufRead, BufReader, Read};

/// The length above which a line is refused.
const LONGEST_LINE: u64 = 64 << 20;

/// Hands over each line that is not blank, with its number from 1, without its line break.
///
/// # Errors
/// The reader’s.
pub(super) fn each_line(reader: impl Read, mut each: impl FnMut(u64, Result<&str, &str>)) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(256 << 10, reader);
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        if reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let is_cut = line.len() as u64 == LONGEST_LINE && line.last() != Some(&b'\n');
        if is_cut {
            reader.skip_until(b'\n')?;
            each(number, Err("is longer than 64 MiB"));
            continue;
        }
        let text = if number == 1 { line.strip_prefix(super::BOM).unwrap_or(&line) } else { &line };
        let text = text.trim_ascii();
        if !text.is_empty() {
            each(number, std::str::from_utf8(text).map_err(|_| "is not UTF-8"));
        }
    }
    Ok(())
}
