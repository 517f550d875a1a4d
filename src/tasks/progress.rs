//! How far a task is.

use std::time::Duration;

/// A snapshot of a task's progress.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    pub done: u64,
    /// How much of `done` was there before the clock was started: a download that goes on after a cut.
    pub done_before: u64,
    /// `None` while it is not known.
    pub total: Option<u64>,
    pub unit: ProgressUnit,
    /// What is being done right now, for people; may be empty.
    pub step: String,
    /// What changes all the time besides, such as another count, for people; may be empty.
    pub detail: String,
    /// Time worked since `done_before`, pauses left out.
    pub elapsed: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressUnit {
    Images,
    Bytes,
    Steps,
}

impl Progress {
    /// Units a second since the clock was started; `None` before anything was done.
    pub fn rate(&self) -> Option<f64> {
        let secs = self.elapsed.as_secs_f64();
        let done = self.done.saturating_sub(self.done_before);
        (done > 0 && secs > 0.0).then(|| done as f64 / secs)
    }

    /// Time left at the rate so far; `None` where rate or total are not known.
    pub fn time_left(&self) -> Option<Duration> {
        let left = self.total?.saturating_sub(self.done) as f64;
        Duration::try_from_secs_f64(left / self.rate()?).ok()
    }

    /// `0.0..=1.0`; `None` while the total is not known.
    pub fn fraction(&self) -> Option<f32> {
        let total = self.total?;
        (total > 0).then(|| (self.done as f64 / total as f64).min(1.0) as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_follows_the_rate_so_far() {
        let progress = Progress {
            done: 25,
            done_before: 0,
            total: Some(100),
            unit: ProgressUnit::Images,
            step: String::new(),
            detail: String::new(),
            elapsed: Duration::from_secs(5),
        };
        assert_eq!(progress.rate(), Some(5.0));
        assert_eq!(progress.time_left(), Some(Duration::from_secs(15)));
        assert_eq!(progress.fraction(), Some(0.25));
    }
    #[test]
    fn what_was_there_before_does_not_count_for_the_rate() {
        let progress = Progress {
            done: 90,
            done_before: 80,
            total: Some(100),
            unit: ProgressUnit::Bytes,
            step: String::new(),
            detail: String::new(),
            elapsed: Duration::from_secs(5),
        };
        assert_eq!(progress.rate(), Some(2.0));
        assert_eq!(progress.fraction(), Some(0.9));
    }
}
