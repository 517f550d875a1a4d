//! The terminal: interrupts, confirmations, and local times.

use std::collections::BTreeMap;
use std::io::{self, BufRead, IsTerminal, Write};

use anyhow::{Context, bail};

use crate::domain::{Problem, visible_lines};
use crate::sagemaker::spec::transform::LogLine;
use crate::tasks::{CancelHook, ProgressUnit, TaskControl};

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
