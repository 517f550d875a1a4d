//! Lines of CSV, as SageMaker joins predictions to CSV inputs: the input's columns, then the prediction. Pure.

use super::json::Json;
use super::recognize::{JOINED, SUM_SLACK};
use crate::annotations::rows::{Quotes, split_field};

/// The key of the input's columns next to the response. No line of JSON has it.
pub(super) const COLUMNS: &str = "columns of the input";

/// Whether the lines of a file, or of its output, are CSV.
pub(super) fn is_csv(key: &str) -> bool {
    let name = key.strip_suffix(super::OUT).unwrap_or(key);
    name.to_ascii_lowercase().ends_with(".csv")
}

/// The columns, and the response if there is one: JSON, quoted or not, or class probabilities that sum to 1. Other
/// numbers could be part of the input, so they are not treated as a response.
///
/// # Errors
/// The line is not valid CSV.
pub(super) fn read_csv_line(line: &[u8]) -> Result<Json, String> {
    let line = std::str::from_utf8(line).map_err(|_| "the line is not UTF-8 text".to_owned())?;
    let line = line.trim_end_matches('\r');
    let mut columns: Vec<Json> = Vec::new();
    let mut rest = Some(line);
    let mut response = None;
    while let Some(text) = rest {
        if text.starts_with(['{', '[']) && response.is_none() {
            response = Json::parse(text.as_bytes()).ok();
            if response.is_some() {
                break;
            }
        }
        let (column, behind) = split_field(text, ',').map_err(|quotes| match quotes {
            Quotes::Open => "the CSV line has an unclosed quote".to_owned(),
            Quotes::Misplaced => "the CSV line has text after a closing quote".to_owned(),
        })?;
        rest = behind;
        if rest.is_none() && column.starts_with(['{', '[']) {
            response = Json::parse(column.as_bytes()).ok();
        }
        if response.is_none() {
            columns.push(Json::Text(column.into()));
        }
    }
    let response = response.or_else(|| take_probabilities(&mut columns));
    let mut fields: Vec<(Box<str>, Json)> = vec![(COLUMNS.into(), Json::List(columns.into()))];
    fields.extend(response.map(|response| (JOINED.into(), response)));
    Ok(Json::Object(fields.into()))
}

/// The numbers at the end, after the last column that is not a number.
fn take_probabilities(columns: &mut Vec<Json>) -> Option<Json> {
    let number = |column: &Json| column.text()?.trim().parse::<f64>().ok();
    let mut numbers: Vec<f64> = columns.iter().rev().map_while(number).collect();
    numbers.reverse();
    let are_parts = numbers.iter().all(|part| (0.0..=1.0).contains(part));
    let sum: f64 = numbers.iter().sum();
    if numbers.len() < 2 || !are_parts || (sum - 1.0).abs() > SUM_SLACK {
        return None;
    }
    columns.truncate(columns.len() - numbers.len());
    Some(Json::Numbers(numbers.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, columns: &[&str], response: Option<&str>) {
        let found = read_csv_line(line.as_bytes()).unwrap();
        let Some(Json::List(got)) = found.get(COLUMNS) else {
            panic!("{line}: {found:?}");
        };
        let got: Vec<&str> = got.iter().filter_map(Json::text).collect();
        assert_eq!(got, columns, "{line}");
        let response = response.map(|text| Json::parse(text.as_bytes()).unwrap());
        assert_eq!(found.get(JOINED), response.as_ref(), "{line}");
    }

    #[test]
    fn input_columns_precede_the_response() {
        check(
            r#"a.jpg,7,{"status":"ok","classes":[1,2]}"#,
            &["a.jpg", "7"],
            Some(r#"{"status":"ok","classes":[1,2]}"#),
        );
        check("\"a, b\"\"c.jpg\",\"{\"\"n\"\":[1,2]}\"\r", &["a, b\"c.jpg"], Some(r#"{"n":[1,2]}"#));
        check("a.jpg,0.25, 0.75", &["a.jpg"], Some("[0.25,0.75]"));
        check("0.25,0.75", &[], Some("[0.25,0.75]"));
        // It is ambiguous which of them are the response.
        check("a.jpg,640,480,0.25,0.75", &["a.jpg", "640", "480", "0.25", "0.75"], None);
        check("a.jpg", &["a.jpg"], None);
        check("[a].jpg,x", &["[a].jpg", "x"], None);
    }

    #[test]
    fn invalid_csv_has_a_reason() {
        for (line, says) in
            [(&b"\"a.jpg,1"[..], "unclosed quote"), (b"\"a\"b,1", "after a closing quote"), (b"\xff,1", "UTF-8")]
        {
            assert!(read_csv_line(line).unwrap_err().contains(says));
        }
    }
}
