//! The state of the control plane, behind one lock.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::container::Lifeline;
use super::endpoints::{Endpoint, EndpointConfig};
use super::jobs::Job;
use super::logs::Logs;
use super::models::Model;
use super::training::Training;
use super::{Refusal, seconds, text};

/// Longer than any state lasts on a busy computer.
pub(super) const PATIENCE: Duration = Duration::from_mins(2);

#[derive(Default)]
pub(super) struct World {
    pub(super) models: BTreeMap<String, Model>,
    pub(super) jobs: BTreeMap<String, Job>,
    pub(super) trainings: BTreeMap<String, Training>,
    pub(super) configs: BTreeMap<String, EndpointConfig>,
    pub(super) endpoints: BTreeMap<String, Endpoint>,
    /// Tags by ARN.
    pub(super) tags: BTreeMap<String, BTreeMap<String, String>>,
    pub(super) logs: Logs,
    pub(super) pace: Pace,
    /// The number of objects that containers are processing.
    pub(super) busy: usize,
    /// The number of held workers and jobs.
    pub(super) held: usize,
    /// Whether the test is over.
    pub(super) closing: bool,
    /// Lifelines of containers, each with the ARN of its job or endpoint.
    pub(super) lifelines: Vec<(String, Lifeline)>,
    created: u64,
}

/// The speed limit of jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Pace {
    #[default]
    Free,
    /// Jobs do not start, and process no objects.
    Held,
    /// Jobs start, but process only this many objects.
    HeldAfter(usize),
}

/// When something was created, with a number, because times can be equal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Birth {
    pub(super) at_s: f64,
    pub(super) number: u64,
}

/// A row of a list, with its sort and filter keys.
pub(super) struct Row {
    pub(super) name: String,
    pub(super) birth: Birth,
    pub(super) changed_s: f64,
    pub(super) status: &'static str,
    pub(super) summary: Value,
}

impl World {
    pub(super) fn birth(&mut self) -> Birth {
        self.created += 1;
        Birth { at_s: seconds(SystemTime::now()), number: self.created }
    }

    pub(super) fn is_paused(&self) -> bool {
        let holds = matches!(self.pace, Pace::Held | Pace::HeldAfter(0));
        holds && self.held > 0 && self.busy == 0
    }

    /// Ends all work.
    pub(super) fn close(&mut self) {
        self.closing = true;
        self.cut_lifelines(|_| true);
    }

    /// Ends the containers of those whose ARN is `chosen`, regardless of their activity.
    pub(super) fn cut_lifelines(&mut self, chosen: impl Fn(&str) -> bool) {
        let chosen = |(owner, lifeline): &(String, Lifeline)| {
            let chosen = chosen(owner);
            if chosen {
                lifeline.lock().unwrap().take();
            }
            !chosen
        };
        self.lifelines.retain(chosen);
    }
}

/// The page of a list that `request` asks for: the rows, and the token of the next page.
pub(super) fn page(mut rows: Vec<Row>, request: &Value) -> Result<(Vec<Value>, Option<String>), Refusal> {
    let wanted = |row: &Row| {
        let after = |name: &str| request[name].as_f64().unwrap_or(f64::NEG_INFINITY);
        let before = |name: &str| request[name].as_f64().unwrap_or(f64::INFINITY);
        let created = after("CreationTimeAfter")..before("CreationTimeBefore");
        let changed = after("LastModifiedTimeAfter")..before("LastModifiedTimeBefore");
        row.name.contains(text(request, "NameContains"))
            && request["StatusEquals"].as_str().is_none_or(|status| status == row.status)
            && created.contains(&row.birth.at_s)
            && changed.contains(&row.changed_s)
    };
    rows.retain(wanted);
    match text(request, "SortBy") {
        "Name" => rows.sort_by(|a, b| a.name.cmp(&b.name)),
        "Status" => rows.sort_by_key(|row| (row.status, row.birth.number)),
        _ => rows.sort_by_key(|row| row.birth.number),
    }
    if text(request, "SortOrder") != "Ascending" {
        rows.reverse();
    }
    let start = match request["NextToken"].as_str() {
        None => 0,
        // The rows after the one that ended the last page, wherever it is now.
        Some(token) => {
            let last = rows.iter().position(|row| format!("after-{}", row.birth.number) == token);
            last.ok_or_else(|| Refusal::validation("The pagination token is invalid."))? + 1
        }
    };
    let count = request["MaxResults"].as_u64().unwrap_or(10) as usize;
    let next = (rows.len() > start + count).then(|| format!("after-{}", rows[start + count - 1].birth.number));
    let rows = rows.into_iter().skip(start).take(count);
    Ok((rows.map(|row| row.summary).collect(), next))
}

/// `list` under its name, with the token if there is one.
pub(super) fn listing(name: &str, list: Vec<Value>, next: Option<String>) -> Value {
    let mut response = serde_json::Map::new();
    response.insert(name.to_owned(), list.into());
    if let Some(next) = next {
        response.insert("NextToken".to_owned(), next.into());
    }
    response.into()
}
