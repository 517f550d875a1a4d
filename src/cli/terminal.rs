//! The person at the terminal: interrupts, answers, and reads times as the clock on the wall shows them.

use std::io::{BufRead, IsTerminal};

use anyhow::{Context, bail};

use crate::tasks::{ProgressUnit, TaskControl};

/// A control that Ctrl+C cancels.
pub(in crate::cli) fn interruptible(unit: ProgressUnit) -> anyhow::Result<TaskControl> {
    let control = TaskControl::new(unit);
    let on_interrupt = control.clone();
    ctrlc::set_handler(move || on_interrupt.cancel()).context("Could not listen for Ctrl+C")?;
    Ok(control)
}

/// Asks on the terminal; nobody there is no answer.
pub(in crate::cli) fn confirm(question: &str) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        bail!("{question} Nobody is at the terminal to say so; repeat the command with --yes");
    }
    eprint!("{question} [y/N] ");
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

/// `2026-11-21 14:05:09`, in the time of this machine.
pub(in crate::cli) fn local_time(at_ms: i64) -> String {
    let at = jiff::Timestamp::from_millisecond(at_ms).unwrap_or_default();
    let local = at.to_zoned(jiff::tz::TimeZone::system());
    local.strftime("%Y-%m-%d %H:%M:%S").to_string()
}
