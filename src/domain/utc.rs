//! Calendar dates and times in UTC.

use std::fmt;

use jiff::Timestamp;

/// A moment, to the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Utc(Timestamp);

impl Utc {
    pub fn of_ms(ms: i64) -> Self {
        Self(Timestamp::from_millisecond(ms).unwrap_or_default())
    }

    /// `2026-11-21`
    pub fn date(self) -> String {
        self.0.strftime("%F").to_string()
    }

    /// `14:05:09`
    pub fn time(self) -> String {
        self.0.strftime("%T").to_string()
    }
}

/// `2026-11-21 14:05:09 UTC`
impl fmt::Display for Utc {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.strftime("%F %T UTC").fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_match_gnu_date() {
        // `date -u -d @SECONDS '+%F %T UTC'`
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (-1, "1969-12-31 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_795_269_909, "2026-11-21 14:05:09 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(Utc::of_ms(seconds * 1000).to_string(), text);
        }
        let at = Utc::of_ms(1_795_269_909_999);
        assert_eq!((at.date(), at.time()), ("2026-11-21".to_owned(), "14:05:09".to_owned()));
    }
}
