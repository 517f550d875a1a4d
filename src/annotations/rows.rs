//! Text and its lines, and the rows of a CSV file (RFC 4180) with theirs. An unclosed quote costs only its own line.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Read};

/// The UTF-8 byte order mark, which is skipped.
pub const BOM: &[u8] = b"\xef\xbb\xbf";

/// The text of a file or line, without a byte order mark.
///
/// # Errors
/// A message to follow the location.
pub fn text_of(bytes: &[u8]) -> Result<&str, &'static str> {
    if is_utf16(bytes) {
        return Err("is in UTF-16; save it as UTF-8");
    }
    std::str::from_utf8(bytes.strip_prefix(BOM).unwrap_or(bytes)).map_err(|_| "is not UTF-8; save the file as UTF-8")
}

/// Whether text begins with UTF-16's byte order mark, or with two ASCII characters in UTF-16.
pub fn is_utf16(bytes: &[u8]) -> bool {
    match bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => true,
        [0, one, 0, other, ..] | [one, 0, other, 0, ..] => *one != 0 && *other != 0,
        _ => false,
    }
}

/// Longer lines are rejected.
const LONGEST_LINE: u64 = 64 << 20;

/// Passes on each nonblank line with its number from 1, without its line break (`\n`, `\r\n` or `\r`).
///
/// # Errors
/// Those of the reader.
pub fn each_line(reader: impl Read, mut each: impl FnMut(u64, Result<&str, &str>)) -> io::Result<()> {
    each_ended_line(reader, |number, text, _| {
        if !text.is_ok_and(is_blank) {
            each(number, text);
        }
    })
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// Passes on each line with its number from 1, and its line break.
fn each_ended_line(reader: impl Read, mut each: impl FnMut(u64, Result<&str, &str>, &'static str)) -> io::Result<()> {
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
            each(number, Err("is longer than 64 MiB"), "\n");
            continue;
        }
        let text = read.strip_suffix(b"\n").unwrap_or(&read);
        let (text, last) = text.strip_suffix(b"\r").map_or((text, "\n"), |text| (text, "\r\n"));
        let mut lines = text.split(|byte| *byte == b'\r').peekable();
        while let Some(line) = lines.next() {
            number += 1;
            each(number, text_of(line), if lines.peek().is_some() { "\r" } else { last });
        }
    }
}

/// Maximum number of lines in a row.
const MOST_LINES: usize = 100;
const LARGEST_ROW: usize = 1 << 20;

/// Passes on the fields of each nonblank row with the line in which it begins, from 1; for a line that is not a row,
/// the reason.
///
/// # Errors
/// Those of the reader.
pub fn each_row(
    reader: impl Read,
    delimiter: char,
    each: impl FnMut(u64, Result<&[Cow<'_, str>], &str>),
) -> io::Result<()> {
    let mut rows = Rows { delimiter, columns: None, open: Vec::new(), each };
    each_ended_line(reader, |number, text, end| match text {
        Ok(text) => rows.line(number, text, end),
        Err(reason) => {
            rows.close();
            (rows.each)(number, Err(reason));
        }
    })?;
    rows.close();
    Ok(())
}

/// Quotes that do not enclose a whole field.
#[derive(Debug, PartialEq)]
pub enum Quotes {
    /// The field continues after the end of the text.
    Open,
    /// The closing quote is followed by more text.
    Misplaced,
}

struct Rows<F> {
    delimiter: char,
    /// The number of fields in the first row.
    columns: Option<usize>,
    /// The lines of a row whose end has not been found yet, each with its line break.
    open: Vec<(u64, String, &'static str)>,
    each: F,
}

impl<F: FnMut(u64, Result<&[Cow<'_, str>], &str>)> Rows<F> {
    fn line(&mut self, number: u64, text: &str, end: &'static str) {
        if self.open.is_empty() {
            return match fields(text, self.delimiter) {
                _ if is_blank(text) => {}
                Ok(fields) => {
                    self.columns.get_or_insert(fields.len());
                    (self.each)(number, Ok(&fields));
                }
                Err(Quotes::Open) => self.open.push((number, text.to_owned(), end)),
                Err(Quotes::Misplaced) => (self.each)(number, Err("has a quote inside a quoted field")),
            };
        }
        let size = self.open.iter().map(|(_, text, _)| text.len()).sum::<usize>() + text.len();
        if self.is_row(text) || self.open.len() == MOST_LINES || size > LARGEST_ROW {
            self.refuse_first();
            return self.line(number, text, end);
        }
        let before: String = self.open.iter().flat_map(|(_, text, end)| [text.as_str(), end]).collect();
        self.open.push((number, text.to_owned(), end));
        match fields(&(before + text), self.delimiter) {
            Ok(fields) => {
                (self.each)(self.open[0].0, Ok(&fields));
                self.open.clear();
            }
            Err(Quotes::Open) => {}
            Err(Quotes::Misplaced) => self.refuse_first(),
        }
    }

    /// Whether a line looks like a row rather than the middle of a field.
    fn is_row(&self, text: &str) -> bool {
        let columns = text.split(self.delimiter).count();
        columns > 1 && Some(columns) == self.columns && !text.contains('"')
    }

    /// Rejects the line with the open quote, and reads the following ones as separate rows.
    fn refuse_first(&mut self) {
        for (index, (number, text, end)) in std::mem::take(&mut self.open).into_iter().enumerate() {
            match index {
                0 => (self.each)(number, Err("has a quote that is not closed")),
                _ => self.line(number, &text, end),
            }
        }
    }

    fn close(&mut self) {
        while !self.open.is_empty() {
            self.refuse_first();
        }
    }
}

pub fn fields(row: &str, delimiter: char) -> Result<Vec<Cow<'_, str>>, Quotes> {
    let mut fields = Vec::new();
    let mut rest = Some(row);
    while let Some(text) = rest {
        let (field, behind) = split_field(text, delimiter)?;
        fields.push(field);
        rest = behind;
    }
    Ok(fields)
}

/// The first field without its quotes, and the rest after its delimiter.
pub fn split_field(text: &str, delimiter: char) -> Result<(Cow<'_, str>, Option<&str>), Quotes> {
    let Some(quoted) = text.strip_prefix('"') else {
        return Ok(text.split_once(delimiter).map_or((text.into(), None), |(field, rest)| (field.into(), Some(rest))));
    };
    let bytes = quoted.as_bytes();
    let mut end = 0;
    let mut has_doubled = false;
    loop {
        end += quoted[end..].find('"').ok_or(Quotes::Open)?;
        if bytes.get(end + 1) != Some(&b'"') {
            break;
        }
        has_doubled = true;
        end += 2;
    }
    let (field, behind) = (&quoted[..end], &quoted[end + 1..]);
    let rest = behind.strip_prefix(delimiter);
    if rest.is_none() && !behind.trim().is_empty() {
        return Err(Quotes::Misplaced);
    }
    Ok((if has_doubled { field.replace("\"\"", "\"").into() } else { field.into() }, rest))
}

/// The text, with a leading apostrophe if a spreadsheet would evaluate it without its own apostrophes, or if it begins or
/// ends with spaces, which readers drop: different texts stay different. Not for numbers.
pub fn escaped(text: &str) -> String {
    let plain = text.trim_start_matches('\'');
    if plain.trim() != plain || plain.starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']) {
        format!("'{text}")
    } else {
        text.to_owned()
    }
}

/// The text before [`escaped`]; without spaces around it if it was not escaped.
pub fn unescaped(text: &str) -> &str {
    let is_escaped = |rest: &&str| escaped(rest).len() > rest.len();
    text.trim_start().strip_prefix('\'').filter(is_escaped).unwrap_or_else(|| text.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_names_stay_different() {
        for (name, in_file) in [
            ("-x", "'-x"),
            ("'-x", "''-x"),
            ("''=x", "'''=x"),
            ("'x", "'x"),
            ("x-", "x-"),
            ("'", "'"),
            (" x", "' x"),
            ("x ", "'x "),
            ("' x", "'' x"),
            ("\tx", "'\tx"),
            ("x\ny", "x\ny"),
            ("x\n", "'x\n"),
        ] {
            assert_eq!((&*escaped(name), unescaped(in_file)), (in_file, name));
        }
        assert_eq!([" x ", " '-x"].map(unescaped), ["x", "-x"]);
    }

    #[test]
    fn quotes_enclose_whole_fields() {
        for (row, expected) in [
            ("a,b", Ok(vec!["a", "b"])),
            (",", Ok(vec!["", ""])),
            ("\"a,b\",c", Ok(vec!["a,b", "c"])),
            ("\"say \"\"hi\"\"\",\"\"", Ok(vec!["say \"hi\"", ""])),
            ("5\" disk,\"x\" ", Ok(vec!["5\" disk", "x"])),
            ("a,\"b", Err(Quotes::Open)),
            ("\"\"\"", Err(Quotes::Open)),
            ("\"a\"b,c", Err(Quotes::Misplaced)),
        ] {
            let expected = expected.map(|fields| fields.into_iter().map(Cow::Borrowed).collect::<Vec<_>>());
            assert_eq!(fields(row, ','), expected, "{row}");
        }
    }

    #[track_caller]
    fn check(text: &str, expected: &[(u64, &str)]) {
        let mut rows = Vec::new();
        each_row(text.as_bytes(), ',', |line, row| {
            let row = row.map_or_else(|reason| format!("! {reason}"), |fields| fields.join("|"));
            rows.push((line, row));
        })
        .unwrap();
        let rows: Vec<(u64, &str)> = rows.iter().map(|(line, row)| (*line, row.as_str())).collect();
        assert_eq!(rows, expected, "{text:?}");
    }

    #[test]
    fn rows_have_their_first_line() {
        check("a,b\r\n\r\n\nc,d\r\n\"e\nf\",g\nh,i", &[(1, "a|b"), (4, "c|d"), (5, "e\nf|g"), (7, "h|i")]);
        check("\u{feff}a,b\rc,d\r\re,f", &[(1, "a|b"), (2, "c|d"), (4, "e|f")]);
        check("a,b\r\n\"e\r\n\r\nf\ng\rh\",i", &[(1, "a|b"), (2, "e\r\n\r\nf\ng\rh|i")]);
    }

    #[test]
    fn open_quote_costs_only_its_line() {
        let open = "! has a quote that is not closed";
        check("a,b\n\"c,d\ne,f\n\"g,h", &[(1, "a|b"), (2, open), (3, "e|f"), (4, open)]);
        check("a,b\nc,\"d\nfree text", &[(1, "a|b"), (2, open), (3, "free text")]);
        check("a,b\nc,\"d\ne,\"f\ng,h", &[(1, "a|b"), (2, open), (3, open), (4, "g|h")]);
        check("a\n\"b\"c\nd", &[(1, "a"), (2, "! has a quote inside a quoted field"), (3, "d")]);
        let long = format!("a\n\"b\n{}", "c\n".repeat(1000));
        let mut count = 0;
        each_row(long.as_bytes(), ',', |_, row| count += u64::from(row.is_ok())).unwrap();
        assert_eq!(count, 1001);
    }
}
