//! Values of flags that several commands take.

use crate::domain::{endpoint_name_problem, region_problem};

pub(in crate::cli) fn parse_pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(key, _)| !key.is_empty());
    let (key, value) = pair.ok_or("it looks like KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

pub(in crate::cli) fn parse_positive(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok();
    let number = number.filter(|number| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "it is a number above zero".to_owned())
}

pub(in crate::cli) fn parse_score(text: &str) -> Result<f32, String> {
    let score = text
        .parse()
        .ok()
        .filter(|score| (0.0..=1.0).contains(score));
    score.ok_or_else(|| "a score lies between 0 and 1".to_owned())
}

pub(in crate::cli) fn parse_endpoint_name(text: &str) -> Result<String, String> {
    match endpoint_name_problem(text) {
        Some(problem) => Err(format!("the name {problem}")),
        None => Ok(text.to_owned()),
    }
}

/// Of AWS: another server may call its regions anything.
pub(in crate::cli) fn parse_region(text: &str) -> Result<String, String> {
    match region_problem(text) {
        Some(problem) => Err(problem),
        None => Ok(text.to_owned()),
    }
}
