//! Named background work that can be watched, paused and stopped; the time of day.
//!
//! Knows nothing about the work itself. A worker holds a [`TaskControl`], reports through it and asks it at every
//! checkpoint whether to continue; its starter holds another handle of the same control.

mod control;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

pub use control::{CancelHook, Cancelled, Counted, Progress, ProgressUnit, TaskControl, Waker};

/// Starts a named thread. A panic in `work` is caught and passed to `on_panic` as text, so that every task reports a
/// result.
pub fn spawn(
    name: impl Into<String>,
    work: impl FnOnce() + Send + 'static,
    on_panic: impl FnOnce(String) + Send + 'static,
) {
    let name = name.into();
    let thread_name = name.clone();
    let body = move || {
        if let Err(panic) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
            on_panic(panic_text(&*panic));
        }
    };
    if let Err(error) = std::thread::Builder::new().name(thread_name).spawn(body) {
        log::error!("could not start the thread of task “{name}”: {error}");
    }
}

/// The results for the numbers below `count`, in their order, from several threads. Each takes the next number as soon as
/// it is free, and calls `work` with its own index and the number. A panic in `work` continues here.
///
/// # Errors
/// The first error of `work`. No thread takes another number after it.
pub fn in_parallel<T: Send, E: Send>(
    threads: usize,
    count: usize,
    work: impl Fn(usize, usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let next = AtomicUsize::new(0);
    let work_on = &|thread| {
        let mut done = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return Ok(done);
            }
            let result = work(thread, number).inspect_err(|_| next.store(count, Ordering::Relaxed))?;
            done.push((number, result));
        }
    };
    let mut done: Vec<(usize, T)> = Vec::with_capacity(count);
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..threads.clamp(1, count.max(1))).map(|thread| scope.spawn(move || work_on(thread))).collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(of_thread) => of_thread.map(|of_thread| done.extend(of_thread)),
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    done.sort_unstable_by_key(|(number, _)| *number);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

/// Gives priority to the window's thread if they compete for a core, so that no frame is late because of background
/// work. Applies to the calling thread and, on Linux, to threads that it starts. If the system refuses, nothing
/// changes.
pub fn give_way() {
    // A niceness of 10 on Linux, below normal on other systems; costs nothing while no other thread competes.
    let below_normal = thread_priority::ThreadPriorityValue::try_from(25u8);
    let result =
        below_normal.map(|priority| thread_priority::ThreadPriority::Crossplatform(priority).set_for_current());
    if !matches!(result, Ok(Ok(()))) {
        log::debug!("threads cannot be given a lower priority: {result:?}");
    }
}

/// The message of a caught panic.
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a message".to_owned())
}

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
    fn parallel_results_keep_their_order_until_an_error() {
        let square = |_: usize, number: usize| if number == 90 { Err("too large") } else { Ok(number * number) };
        let squares: Vec<usize> = (0..80).map(|number| number * number).collect();
        assert_eq!(in_parallel(7, 80, square), Ok(squares));
        assert_eq!(in_parallel(0, 2, square), Ok(vec![0, 1]));
        assert_eq!(in_parallel(3, 0, square), Ok(Vec::new()));
        assert_eq!(in_parallel(7, 200, square), Err("too large"));
    }

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
