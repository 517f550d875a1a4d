//! The time of day.

use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

/// Milliseconds since 1970-01-01 UTC, by a clock that continues while the machine sleeps; 0 if it is set to an earlier
/// time.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as i64)
}

/// A moment in local time, relative to `now_ms`: `at 18:30`, `tomorrow at 09:05`, `on 2026-11-23 at 18:30`.
/// Milliseconds since 1970-01-01 UTC. The time zone is read on the first call, so that a frame reads no file.
pub fn clock_text(at_ms: i64, now_ms: i64) -> String {
    static ZONE: OnceLock<TimeZone> = OnceLock::new();
    clock_text_in(ZONE.get_or_init(TimeZone::system), at_ms, now_ms)
}

fn clock_text_in(zone: &TimeZone, at_ms: i64, now_ms: i64) -> String {
    let zoned = |ms: i64| {
        let at = Timestamp::from_millisecond(ms).unwrap_or_default();
        at.to_zoned(zone.clone())
    };
    let (at, today) = (zoned(at_ms), zoned(now_ms).date());
    let clock = at.strftime("%H:%M");
    if at.date() == today {
        format!("at {clock}")
    } else if today.checked_add(1.day()).ok() == Some(at.date()) {
        format!("tomorrow at {clock}")
    } else {
        format!("on {} at {clock}", at.date())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_shown_in_the_local_zone() {
        // 2026-11-21 22:30:00 UTC
        let now = 1_795_300_200_000;
        let zone = TimeZone::UTC;
        for (minutes, text) in [
            (0, "at 22:30"),
            (89, "at 23:59"),
            (90, "tomorrow at 00:00"),
            (24 * 60, "tomorrow at 22:30"),
            (48 * 60, "on 2026-11-23 at 22:30"),
            (-24 * 60, "on 2026-11-20 at 22:30"),
        ] {
            let at = now + minutes * 60_000;
            assert_eq!(clock_text_in(&zone, at, now), text);
        }
    }
}
