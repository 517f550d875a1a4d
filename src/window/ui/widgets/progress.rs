//! The progress of a task.

use eframe::egui::{Label, ProgressBar, RichText, Ui};

use super::text::human_duration;
use crate::domain::{grouped, human_bytes};
use crate::tasks::{Progress, ProgressUnit};
use crate::window::state::{Command, Queue, State, TaskId, TaskSignal};

/// A bar, a cancel button, and the progress as text.
pub(crate) fn progress_ui(ui: &mut Ui, state: &State, task: TaskId, cancel: &str, commands: &mut Queue<Command>) {
    let Some(entry) = state.tasks.get(task) else {
        return;
    };
    let progress = entry.control.progress();
    ui.horizontal(|ui| {
        ui.add(ProgressBar::new(progress.fraction().unwrap_or(0.0)).desired_width(150.0).desired_height(8.0));
        if ui.button(cancel).clicked() {
            commands.push(Command::SignalTask(task, TaskSignal::Cancel));
        }
        let text = progress_text(&progress, entry.control.is_paused());
        let text = if text.is_empty() { entry.title.clone() } else { text };
        ui.add(Label::new(RichText::new(text).small().weak()).truncate());
    });
}

/// `120 of 812, 14.2 images/s, 49 s left`.
pub(crate) fn progress_text(progress: &Progress, is_paused: bool) -> String {
    let amount = |number: u64| match progress.unit {
        ProgressUnit::Bytes => human_bytes(number),
        ProgressUnit::Images | ProgressUnit::Steps => grouped(number as usize),
    };
    let mut parts = Vec::new();
    let texts = [&progress.step, &progress.detail];
    parts.extend(texts.into_iter().filter(|text| !text.is_empty()).cloned());
    match progress.total {
        Some(total) => parts.push(format!("{} of {}", amount(progress.done), amount(total))),
        None if progress.done > 0 => parts.push(amount(progress.done)),
        None => {}
    }
    if is_paused {
        parts.push("paused".to_owned());
        return parts.join(", ");
    }
    if let Some(rate) = progress.rate() {
        match progress.unit {
            ProgressUnit::Images => parts.push(format!("{rate:.1} images/s")),
            ProgressUnit::Bytes => parts.push(format!("{}/s", human_bytes(rate as u64))),
            ProgressUnit::Steps => {}
        }
    }
    if let Some(left) = progress.time_left() {
        parts.push(format!("{} left", human_duration(left)));
    }
    parts.extend(progress.count_age_text());
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn progress_shows_amount_rate_and_time_left() {
        let progress = Progress {
            done: 20,
            total: Some(100),
            unit: ProgressUnit::Images,
            step: String::new(),
            detail: String::new(),
            done_before: 0,
            elapsed: Duration::from_secs(4),
            counted: None,
        };
        let text = progress_text(&progress, false);
        assert_eq!(text, "20 of 100, 5.0 images/s, 16 s left");
        assert_eq!(progress_text(&progress, true), "20 of 100, paused");
    }
}
