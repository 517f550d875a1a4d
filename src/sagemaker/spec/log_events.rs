//! Container output as stored in CloudWatch Logs. Times are milliseconds since 1970-01-01 UTC.

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
