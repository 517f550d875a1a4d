//! Moments as dates of the calendar, in UTC.

use std::fmt;

/// A moment of the Gregorian calendar, to the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Utc {
    pub year: i64,
    /// `1..=12`
    pub month: u32,
    /// `1..=31`
    pub day: u32,
    pub hour: u32,
    pub minute: u32,
    pub second: u32,
}

impl Utc {
    /// Of milliseconds since 1970-01-01 UTC.
    pub fn of_ms(ms: i64) -> Self {
        let seconds = ms.div_euclid(1000);
        let (days, in_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let (year, month, day) = date_of(days);
        Self {
            year,
            month,
            day,
            hour: (in_day / 3600) as u32,
            minute: (in_day / 60 % 60) as u32,
            second: (in_day % 60) as u32,
        }
    }

    /// `2026-11-21`
    pub fn date(self) -> String {
        format!("{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }

    /// `20261121-140509`: for names that sort by time.
    pub fn compact(self) -> String {
        format!(
            "{:04}{:02}{:02}-{:02}{:02}{:02}",
            self.year, self.month, self.day, self.hour, self.minute, self.second
        )
    }
}

/// `2026-11-21 14:05:09 UTC`
impl fmt::Display for Utc {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{:04}-{:02}-{:02} {:02}:{:02}:{:02} UTC",
            self.year, self.month, self.day, self.hour, self.minute, self.second
        )
    }
}

/// Year, month and day of a number of days since 1970-01-01: Howard Hinnant's `civil_from_days`
/// (<https://howardhinnant.github.io/date_algorithms.html>), which counts years from March so that the leap day comes last.
fn date_of(days: i64) -> (i64, u32, u32) {
    let from_march_of_0 = days + 719_468;
    let era = from_march_of_0.div_euclid(146_097);
    let day_of_era = from_march_of_0.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month as u32, day as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_gnu_date_writes_them() {
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
        assert_eq!(Utc::of_ms(1_795_269_909_999).compact(), "20261121-140509");
    }
}
