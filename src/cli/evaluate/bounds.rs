//! Lower bounds of metrics, for pipelines.

use anyhow::{Context, bail};
use serde_json::Value;

use crate::annotations::matching::MatchSummary;
use crate::domain::ModelTask;
use crate::evaluation::{Counted, Evaluated, Metrics};

/// A metric by its name in the JSON file, and its bound.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bound {
    name: String,
    lowest: f64,
}

impl Bound {
    /// # Errors
    /// It is not of the form `ap50=0.5`, or neither task has the metric.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let parts = text.split_once('=').and_then(|(name, lowest)| Some((name, lowest.parse::<f64>().ok()?)));
        let (name, lowest) = parts
            .filter(|(name, lowest)| !name.is_empty() && lowest.is_finite())
            .ok_or_else(|| format!("“{text}” is not METRIC=MINIMUM, for example ap50=0.5"))?;
        let tasks = [ModelTask::Detection, ModelTask::Classification];
        if !tasks.into_iter().any(|task| metric_names(task).iter().any(|known| known == name)) {
            let [boxes, classes] = tasks.map(|task| metric_names(task).join(", "));
            return Err(format!("unknown metric “{name}”. Detection: {boxes}. Classification: {classes}"));
        }
        Ok(Self { name: name.to_owned(), lowest })
    }
}

/// The numbers in the JSON file of an evaluation.
fn metric_names(task: ModelTask) -> Vec<String> {
    let metrics = match task {
        ModelTask::Detection => Metrics::Detection { metrics: Box::default(), intervals: None },
        ModelTask::Classification => Metrics::Classification { metrics: Box::default(), intervals: None },
    };
    let (counted, matching, confident_errors) = (Counted::default(), MatchSummary::default(), Vec::new());
    let Ok(Value::Object(fields)) = serde_json::to_value(Evaluated { metrics, counted, matching, confident_errors })
    else {
        return Vec::new();
    };
    let is_number = |(name, value): &(String, Value)| {
        value.is_number() || (value.is_null() && !["best", "intervals"].contains(&name.as_str()))
    };
    fields.into_iter().filter(is_number).map(|(name, _)| name).collect()
}

/// # Errors
/// A metric is one of the other task.
pub(crate) fn check(bounds: &[Bound], task: ModelTask) -> anyhow::Result<()> {
    let known = metric_names(task);
    match bounds.iter().find(|bound| !known.contains(&bound.name)) {
        Some(Bound { name, .. }) => {
            bail!("--fail-below {name}: not a metric of {}. Its metrics: {}", task.into_str(), known.join(", "))
        }
        None => Ok(()),
    }
}

/// Returns a sentence for each metric below its bound.
///
/// # Errors
/// The metric was not measured.
pub(crate) fn violations(bounds: &[Bound], evaluated: &Evaluated) -> anyhow::Result<Vec<String>> {
    let numbers = serde_json::to_value(evaluated).context("Could not compare the metrics with --fail-below")?;
    let mut violations = Vec::new();
    for Bound { name, lowest } in bounds {
        match numbers[name].as_f64() {
            Some(number) if number < *lowest => {
                violations.push(format!("{name} is {number}, below the minimum of {lowest}"));
            }
            Some(_) => {}
            None => bail!("--fail-below {name}: there is no data to compute this metric"),
        }
    }
    Ok(violations)
}
