//! Lower bounds of metrics, for pipelines.

use anyhow::{Context, bail};
use serde_json::Value;

use crate::evaluation::Evaluated;

/// A metric by its name in the JSON file, and its bound.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bound {
    name: String,
    lowest: f64,
}

impl Bound {
    /// # Errors
    /// It is not of the form `ap50=0.5`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let parts = text.split_once('=').and_then(|(name, lowest)| Some((name, lowest.parse::<f64>().ok()?)));
        let (name, lowest) = parts
            .filter(|(name, lowest)| !name.is_empty() && lowest.is_finite())
            .ok_or_else(|| format!("“{text}” is not METRIC=MINIMUM, for example ap50=0.5"))?;
        Ok(Self { name: name.to_owned(), lowest })
    }
}

/// Returns a sentence for each metric below its bound.
///
/// # Errors
/// The metric does not exist, or was not measured.
pub(crate) fn violations(bounds: &[Bound], evaluated: &Evaluated) -> anyhow::Result<Vec<String>> {
    let numbers = serde_json::to_value(evaluated).context("Could not compare the metrics with --fail-below")?;
    let mut violations = Vec::new();
    for Bound { name, lowest } in bounds {
        match &numbers[name] {
            Value::Null if numbers.get(name).is_some() => {
                bail!("--fail-below {name}: there is no data to compute this metric")
            }
            number => match number.as_f64() {
                Some(number) if number < *lowest => {
                    violations.push(format!("{name} is {number}, below the minimum of {lowest}"));
                }
                Some(_) => {}
                None => bail!("--fail-below {name}: unknown metric; the names are in the JSON file that --out writes"),
            },
        }
    }
    Ok(violations)
}
