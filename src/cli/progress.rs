//! Progress of long-running work: a bar in a terminal, plain lines otherwise.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};

use crate::domain::{counted, human_bytes, visible};
use crate::tasks::{Progress, ProgressUnit, TaskControl};

const BAR_REFRESH: Duration = Duration::from_millis(100);
const LINE_EVERY: Duration = Duration::from_secs(5);
/// The interval of lines that would only repeat the last one.
const SAME_LINE_EVERY: Duration = Duration::from_mins(5);

/// Runs `work` and meanwhile shows the progress of `control` on stderr.
pub(crate) fn with_progress<T>(label: &str, control: &TaskControl, work: impl FnOnce() -> T) -> T {
    let finished = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let watch = if std::io::stderr().is_terminal() { draw_bar } else { print_lines };
            watch(label, control, &finished);
        });
        let _finish = SetOnDrop(&finished, watcher.thread().clone());
        work()
    })
}

/// Ends the watcher even if the work panics.
struct SetOnDrop<'f>(&'f AtomicBool, std::thread::Thread);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
        self.1.unpark();
    }
}

fn draw_bar(label: &str, control: &TaskControl, finished: &AtomicBool) {
    let bar = ProgressBar::new(u64::MAX);
    bar.set_style(
        ProgressStyle::with_template("{prefix} {bar:30} {msg}").unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    bar.set_prefix(label.to_owned());
    while !finished.load(Ordering::Acquire) {
        let progress = control.progress();
        // An unknown total is drawn as an empty bar.
        bar.set_length(progress.total.unwrap_or(u64::MAX));
        bar.set_position(progress.done);
        bar.set_message(visible(&describe(&progress)).into_owned());
        std::thread::park_timeout(BAR_REFRESH);
    }
    bar.finish_and_clear();
}

fn print_lines(label: &str, control: &TaskControl, finished: &AtomicBool) {
    let mut last_line = Instant::now();
    let mut printed = None;
    loop {
        let is_finished = finished.load(Ordering::Acquire);
        let progress = control.progress();
        let wait = wait_for_line(printed.as_ref(), &progress);
        if wait.is_zero() || (!is_finished && last_line.elapsed() >= wait) {
            eprintln!("{label}: {}", visible(&describe(&progress)));
            last_line = Instant::now();
            printed = Some(progress);
        }
        if is_finished {
            break;
        }
        std::thread::park_timeout(BAR_REFRESH);
    }
}

/// The time from the last printed line to the next: none before a new step, some seconds if there was progress,
/// otherwise long.
fn wait_for_line(printed: Option<&Progress>, progress: &Progress) -> Duration {
    let last_step = printed.map_or("", |printed| printed.step.as_str());
    if progress.step != last_step {
        return Duration::ZERO;
    }
    let is_same = |printed: &Progress| {
        let numbers = |progress: &Progress| (progress.done, progress.total);
        numbers(printed) == numbers(progress) && printed.detail == progress.detail
    };
    if printed.is_some_and(is_same) { SAME_LINE_EVERY } else { LINE_EVERY }
}

/// `transforming, 120 of 500, 41.2 images/s, 9 seconds left, $0.03 so far`
fn describe(progress: &Progress) -> String {
    let bytes = progress.unit == ProgressUnit::Bytes;
    let amount = |amount: u64| {
        if bytes { human_bytes(amount) } else { amount.to_string() }
    };
    let mut parts = vec![progress.step.clone()];
    match progress.total {
        Some(total) => parts.push(format!("{} of {}", amount(progress.done), amount(total))),
        None if progress.done > 0 => parts.push(amount(progress.done)),
        None => {}
    }
    match (progress.unit, progress.rate()) {
        (ProgressUnit::Images, Some(rate)) => parts.push(format!("{rate:.1} images/s")),
        (ProgressUnit::Bytes, Some(rate)) => parts.push(format!("{}/s", human_bytes(rate as u64))),
        _ => {}
    }
    if let Some(left) = progress.time_left().filter(|left| *left >= Duration::from_secs(1)) {
        parts.push(format!("{} left", HumanDuration(left)));
    }
    parts.extend(progress.count_age_text());
    parts.push(progress.detail.clone());
    parts.retain(|part| !part.is_empty());
    parts.join(", ")
}

/// The summary of finished work: `500 images in 4.1 s, 121.9 images/s`.
pub(crate) fn summary(progress: &Progress) -> String {
    let done = progress.done.saturating_sub(progress.done_before);
    let images = counted(done, "image", "images");
    let rate = progress.rate().map_or_else(String::new, |rate| format!(", {rate:.1} images/s"));
    format!("{images} in {:.1} s{rate}", progress.elapsed.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(step: &str, done: u64, detail: &str) -> Progress {
        let control = TaskControl::new(ProgressUnit::Images);
        control.set_total(Some(10));
        control.set_done(done);
        control.set_step(step);
        control.set_detail(detail);
        control.progress()
    }

    #[test]
    fn line_is_repeated_only_after_a_change() {
        let printed = progress("transforming", 3, "$0.01 so far");
        for (last, now, expected) in [
            (None, progress("", 0, ""), LINE_EVERY),
            (None, progress("starting", 0, ""), Duration::ZERO),
            (Some(&printed), progress("stopping", 3, "$0.01 so far"), Duration::ZERO),
            (Some(&printed), progress("transforming", 4, "$0.01 so far"), LINE_EVERY),
            (Some(&printed), progress("transforming", 3, "$0.02 so far"), LINE_EVERY),
            (Some(&printed), progress("transforming", 3, "$0.01 so far"), SAME_LINE_EVERY),
        ] {
            assert_eq!(wait_for_line(last, &now), expected, "{now:?}");
        }
    }
}
