use std::time::Duration;

/// A snapshot of a task's progress.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    pub done: u64,
    /// The part of `done` from before the clock started: a resumed download.
    pub done_before: u64,
    /// `None` if unknown.
    pub total: Option<u64>,
    pub unit: ProgressUnit,
    /// The current step; can be empty.
    pub step: String,
    /// Frequently changing additional text, such as another count; can be empty.
    pub detail: String,
    /// Working time since `done_before`, without pauses.
    pub elapsed: Duration,
    /// Set if another system counted `done` instead of this task.
    pub counted: Option<Counted>,
}

/// A count that is updated only now and then. The task's own clock does not give its rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counted {
    /// Units per second, measured with the count.
    pub per_s: Option<f64>,
    pub age: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressUnit {
    Images,
    Bytes,
    Steps,
}

impl Progress {
    /// Units per second: as counted, or since the clock started; `None` before anything was done.
    pub fn rate(&self) -> Option<f64> {
        if let Some(counted) = self.counted {
            return counted.per_s;
        }
        let secs = self.elapsed.as_secs_f64();
        let done = self.done.saturating_sub(self.done_before);
        (done > 0 && secs > 0.0).then(|| done as f64 / secs)
    }

    /// The remaining time at the current rate; `None` if rate or total is unknown.
    pub fn time_left(&self) -> Option<Duration> {
        let left = self.total?.saturating_sub(self.done) as f64;
        let since_done = self.counted.map_or(Duration::ZERO, |counted| counted.age);
        let of_done = Duration::try_from_secs_f64(left / self.rate()?).ok()?;
        Some(of_done.saturating_sub(since_done))
    }

    /// “counted 40 s ago”; `None` if nothing was counted, or just now.
    pub fn count_age_text(&self) -> Option<String> {
        let seconds = self.counted?.age.as_secs();
        (seconds >= 1).then(|| format!("counted {seconds} s ago"))
    }

    /// `0.0..=1.0`; `None` while the total is unknown.
    pub fn fraction(&self) -> Option<f32> {
        let total = self.total?;
        (total > 0).then(|| (self.done as f64 / total as f64).min(1.0) as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_follows_the_rate() {
        let progress = Progress {
            done: 25,
            done_before: 0,
            total: Some(100),
            unit: ProgressUnit::Images,
            step: String::new(),
            detail: String::new(),
            elapsed: Duration::from_secs(5),
            counted: None,
        };
        assert_eq!(progress.rate(), Some(5.0));
        assert_eq!(progress.time_left(), Some(Duration::from_secs(15)));
        assert_eq!(progress.fraction(), Some(0.25));
    }
    #[test]
    fn earlier_items_do_not_affect_the_rate() {
        let progress = Progress {
            done: 90,
            done_before: 80,
            total: Some(100),
            unit: ProgressUnit::Bytes,
            step: String::new(),
            detail: String::new(),
            elapsed: Duration::from_secs(5),
            counted: None,
        };
        assert_eq!(progress.rate(), Some(2.0));
        assert_eq!(progress.fraction(), Some(0.9));
    }

    #[test]
    fn older_count_keeps_its_rate() {
        let counted = |age_secs: u64| Progress {
            done: 200,
            done_before: 0,
            total: Some(1000),
            unit: ProgressUnit::Images,
            step: String::new(),
            detail: String::new(),
            elapsed: Duration::from_secs(5 + age_secs),
            counted: Some(Counted { per_s: Some(100.0), age: Duration::from_secs(age_secs) }),
        };
        for (age_secs, left_secs, text) in
            [(0, 8, None), (3, 5, Some("counted 3 s ago")), (20, 0, Some("counted 20 s ago"))]
        {
            let progress = counted(age_secs);
            assert_eq!(progress.rate(), Some(100.0));
            assert_eq!(progress.time_left(), Some(Duration::from_secs(left_secs)));
            assert_eq!(progress.count_age_text().as_deref(), text);
        }
    }
}
