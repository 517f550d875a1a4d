//! Plain data about jobs, endpoints and their outputs: specifications, plans, checks, progress.

pub mod aws_region;
pub mod endpoint;
pub mod output_mapping;
pub mod remote_model;
pub mod transform;

use std::fmt;

/// The result of deleting several resources, such as “endpoint cats”.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deleted<T = String> {
    /// Includes resources that were already gone.
    pub deleted: Vec<T>,
    /// The remaining resources, with the reasons.
    pub kept: Vec<(T, String)>,
}

impl<T> Default for Deleted<T> {
    fn default() -> Self {
        Self { deleted: Vec::new(), kept: Vec::new() }
    }
}

impl<T: fmt::Display> Deleted<T> {
    /// “model cats (it is in use), archive s3://… (…)”
    pub fn kept_text(&self) -> String {
        let kept: Vec<String> = self.kept.iter().map(|(what, why)| format!("{what} ({why})")).collect();
        kept.join(", ")
    }
}

/// “Deleted: endpoint cats, configuration cats. Left: model cats (…)”
impl<T: fmt::Display> fmt::Display for Deleted<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let deleted: Vec<String> = self.deleted.iter().map(ToString::to_string).collect();
        match deleted.as_slice() {
            [] => formatter.write_str("Nothing was deleted")?,
            deleted => write!(formatter, "Deleted: {}", deleted.join(", "))?,
        }
        if self.kept.is_empty() { Ok(()) } else { write!(formatter, ". Left: {}", self.kept_text()) }
    }
}

/// The output of one container, or SageMaker's messages about one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogStream {
    /// `cats/i-0123456789abcdef0-1700000000`
    pub name: String,
    /// `None` while empty.
    pub last_event_ms: Option<i64>,
}

/// Where to start reading a log stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogFrom {
    Beginning,
    /// At most this many of the newest lines, `1..=10000`.
    Newest(u32),
    /// The lines after the page with this [`LogPage::next`].
    After(String),
}

/// A part of a stream, oldest line first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogPage {
    pub events: Vec<LogEvent>,
    /// The token of the next page. If it equals the request's token, there is nothing new yet.
    pub next: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEvent {
    pub at_ms: i64,
    pub message: String,
}
