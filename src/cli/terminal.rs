//! The terminal: interrupts, confirmations, local times, and the progress of long-running work: a bar in a terminal,
//! plain lines otherwise.

use std::collections::BTreeMap;
use std::io::{self, BufRead, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};

use crate::domain::{Problem, counted, human_bytes, visible, visible_lines};
use crate::sagemaker::spec::transform::LogLine;
use crate::tasks::{CancelHook, Progress, ProgressUnit, TaskControl};

/// The number of problems with the same message that are printed.
const SAME_PROBLEMS: usize = 20;

/// Prints to stderr; ignores a closed stderr.
pub(crate) fn print_note(text: &str) {
    let _ = std::io::stderr().write_all(visible_lines(text).as_bytes());
}

/// Standard output for people, with visible control characters.
pub(crate) fn stdout() -> impl Write {
    Stdout { is_for_people: true }
}

/// Standard output for programs, unchanged.
pub(crate) fn raw_stdout() -> impl Write {
    Stdout { is_for_people: false }
}

struct Stdout {
    is_for_people: bool,
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut stdout = io::stdout().lock();
        let written = if self.is_for_people {
            let text = String::from_utf8_lossy(bytes);
            stdout.write_all(visible_lines(&text).as_bytes())
        } else {
            stdout.write_all(bytes)
        };
        written.map(|()| bytes.len()).map_err(marked)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush().map_err(marked)
    }
}

/// The reader closed standard output, as `head` does.
#[derive(Debug, thiserror::Error)]
#[error("the reader of the output is gone")]
struct OutputClosed;

/// Other pipes and connections break for other reasons.
fn marked(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe => io::Error::new(io::ErrorKind::BrokenPipe, OutputClosed),
        _ => error,
    }
}

/// Whether a command ended because its standard output was closed.
pub(crate) fn is_output_closed(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref));
    causes.any(<dyn std::error::Error + Send + Sync>::is::<OutputClosed>)
}

/// A control that Ctrl+C, SIGTERM and a closed terminal cancel.
pub(crate) fn interruptible(unit: ProgressUnit) -> anyhow::Result<TaskControl> {
    let control = TaskControl::new(unit);
    let on_interrupt = control.clone();
    let outlives_terminal = outlives_terminal();
    ctrlc::set_handler(move || on_interrupt.cancel()).context("Could not listen for Ctrl+C")?;
    if outlives_terminal {
        ignore_end_of_terminal();
    }
    Ok(control)
}

/// A control for a step of a command; while the hook lives, canceling the command cancels the step.
pub(crate) fn step_of(command: &TaskControl, unit: ProgressUnit) -> (TaskControl, CancelHook) {
    let step = TaskControl::new(unit);
    let of_step = step.clone();
    (step, command.on_cancel(move || of_step.cancel()))
}

/// Whether the program survives a closed terminal, as under `nohup`.
#[cfg(unix)]
fn outlives_terminal() -> bool {
    // SAFETY: all zeros is a valid action, and without a new one, only the current one is written.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGHUP, std::ptr::null(), &raw mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}

#[cfg(unix)]
fn ignore_end_of_terminal() {
    // SAFETY: none of our handlers is involved.
    unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
}

#[cfg(not(unix))]
fn outlives_terminal() -> bool {
    false
}

#[cfg(not(unix))]
fn ignore_end_of_terminal() {}

/// Asks for confirmation in the terminal. Fails without a terminal.
pub(crate) fn confirm(question: &str) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        bail!("{question} Nothing was done because standard input is not a terminal; confirm with --yes");
    }
    eprint!("{question} [y/N] ");
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(["y", "yes"].contains(&line.trim().to_lowercase().as_str()))
}

/// Prints one line per problem; of those with the same message, only the first ones and their number.
pub(crate) fn print_problems(lead: &str, problems: &[Problem]) {
    let mut messages: BTreeMap<&str, usize> = BTreeMap::new();
    for problem in problems {
        let count = messages.entry(&problem.message).or_default();
        *count += 1;
        if *count <= SAME_PROBLEMS {
            eprintln!("{lead}{problem}");
        }
    }
    for (message, count) in messages.iter().filter(|(_, count)| **count > SAME_PROBLEMS) {
        eprintln!("and {} more: {message}", count - SAME_PROBLEMS);
    }
}

/// Prints log lines with their times and streams.
pub(crate) fn print_log(lines: &[LogLine]) -> io::Result<()> {
    let mut out = stdout();
    for line in lines {
        let at = jiff::Timestamp::from_millisecond(line.at_ms).unwrap_or_default();
        writeln!(out, "{at:.3} {} {}", line.stream, line.message)?;
    }
    out.flush()
}

/// `2026-11-21 14:05:09`, in local time.
pub(crate) fn local_time(at_ms: i64) -> String {
    let at = jiff::Timestamp::from_millisecond(at_ms).unwrap_or_default();
    let local = at.to_zoned(jiff::tz::TimeZone::system());
    local.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

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
