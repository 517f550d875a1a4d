//! What a container wrote, as CloudWatch Logs keeps it. Times are milliseconds since 1970-01-01 UTC.

/// What one container wrote, or what SageMaker wrote about one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogStream {
    /// `cats/i-0123456789abcdef0-1700000000`
    pub name: String,
    /// `None` while nothing was written.
    pub last_event_ms: Option<i64>,
}

/// The start of a page of a log stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogFrom {
    Beginning,
    /// At most this number of the newest lines, `1..=10000`.
    Newest(u32),
    /// The lines after the page with this [`LogPage::next`].
    After(String),
}

/// A part of a stream, the oldest line first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogPage {
    pub events: Vec<LogEvent>,
    /// The token of the next page. The same token as that of the request means that there is nothing new yet.
    pub next: String,
}

/// A line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEvent {
    pub at_ms: i64,
    pub message: String,
}
