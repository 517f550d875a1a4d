//! The review report: what the verdicts say about the run on screen.

use crate::domain::{ModelTask, capitalized};
use crate::project::export::options::ExportFormat;
use crate::review::{Part, ReviewReport};
use crate::window::state::Failure;
use crate::window::ui::prelude::*;

/// Further corrections are in the file of `spotcheck review report`.
const MAX_CORRECTIONS: usize = 20;
/// In points; the same for all tables.
const COLUMN_WIDTH: f32 = 110.0;

pub(crate) fn report_ui(ctx: &Context, state: &State, commands: &mut Commands) {
    if state.overlay != Overlay::ReviewReport {
        return;
    }
    dialog_ui(ctx, "review report", 640.0, Command::CLOSE_OVERLAY, commands, |ui, commands| {
        let is_done = state.sample_to_judge().is_some()
            && state.spot_checks.progress.is_some_and(|progress| progress.missing() == 0);
        ui.label(strong(if is_done { "The sample is judged" } else { "Review report" }).size(15.0));
        if let Some(run) = state.run() {
            note_line_ui(ui, &run.info.name);
        }
        ui.add_space(6.0);
        match &state.review_report {
            Loadable::Ready(report) => contents_ui(ui, report, state.target_precision, commands),
            Loadable::Failed(Failure::Failed { message, .. }) => drop(wrapped_ui(ui, message)),
            Loadable::Loading(_) => drop(ui.weak("Reading the run…")),
            Loadable::NotLoaded | Loadable::Failed(Failure::Cancelled) => drop(ui.weak("Canceled")),
        }
        ui.add_space(8.0);
        ui.horizontal_wrapped(|ui| {
            command_button_ui(ui, "Close", commands, || Command::CLOSE_OVERLAY);
            let takes_boxes = state.task() == Some(ModelTask::Detection);
            let labels = if takes_boxes { ExportFormat::Coco } else { ExportFormat::Csv };
            command_button_ui(ui, "Export labels…", commands, || ReviewCommand::Export(labels));
            if state.corrected_truth().is_some() {
                command_button_ui(ui, "Export changes…", commands, || Action::ExportLabelChanges);
            }
            command_button_ui(ui, "Export report…", commands, || ReviewCommand::Export(ExportFormat::Report));
            let sample = state.spot_checks.sample.ready().map(|loaded| &loaded.sample);
            let is_whole = sample.is_some_and(|sample| sample.units.len() >= sample.population());
            if state.project.is_writable() && !is_whole {
                let more = if sample.is_some() { "Sample more…" } else { "Draw a sample…" };
                command_button_ui(ui, more, commands, || Action::SpotCheck);
            }
        });
    });
}

fn contents_ui(ui: &mut Ui, report: &ReviewReport, target_precision: f64, commands: &mut Commands) {
    let height = (ui.ctx().content_rect().height() - 220.0).max(160.0);
    ScrollArea::vertical().max_height(height).show(ui, |ui| {
        ui.set_width(ui.available_width());
        let sentences = report.sentences();
        let [headline, rest @ ..] = &sentences[..] else {
            return;
        };
        ui.label(strong(headline).size(18.0));
        for sentence in rest {
            ui.label(sentence);
        }
        target_ui(ui, report, target_precision, commands);
        for note in &report.notes {
            note_ui(ui, capitalized(note));
        }
        let scores = report.scores.iter().map(|row| (format!("{:.1} to {:.1}", row.from, row.to), &row.part));
        parts_ui(ui, "Score", scores.collect());
        parts_ui(ui, "Class", report.classes.iter().map(|row| (row.class.clone(), &row.part)).collect());
        let corrections = report.corrections.iter().take(MAX_CORRECTIONS);
        let corrections = corrections.map(|row| (format!("{} → {}", row.from, row.to), row.count));
        counts_ui(ui, "Corrected classes", corrections.collect());
        let added = report.added.iter().map(|row| (row.class.clone(), row.count));
        counts_ui(ui, "Objects that the model missed", added.collect());
        let truth = report.classes.iter().filter_map(|row| Some((row.class.clone(), row.truth?.text())));
        lines_ui(ui, "Verdicts that the ground truth agrees with", truth.collect());
    });
}

/// The minimum score that reaches a precision, which can be changed.
fn target_ui(ui: &mut Ui, report: &ReviewReport, mut precision: f64, commands: &mut Commands) {
    if report.min_scores.is_empty() {
        return;
    }
    let help = "The lowest minimum score with this estimated precision";
    Field::new("Target precision").help(help).row_ui(ui, |ui, field| {
        let number = number_field(&mut precision).range(0.0..=1.0).speed(0.005).max_decimals(3);
        if field.number_ui(ui, number).changed() {
            commands.push(ReviewCommand::SetTargetPrecision(precision));
        }
    });
    ui.label(report.target(precision).sentence());
}

/// One row per part with a verdict.
fn parts_ui(ui: &mut Ui, title: &str, mut parts: Vec<(String, &Part)>) {
    parts.retain(|(_, part)| part.judged > 0);
    if parts.is_empty() {
        return;
    }
    ui.add_space(8.0);
    Grid::new(title).num_columns(4).striped(true).min_col_width(COLUMN_WIDTH).spacing(vec2(12.0, 3.0)).show(ui, |ui| {
        for heading in [title, "Verdicts", "Precision (95% interval)", "Accepted (95% interval)"] {
            ui.label(strong(heading));
        }
        ui.end_row();
        for (name, part) in parts {
            ui.label(name);
            ui.label(format!("{} of {}", grouped(part.judged), grouped(part.population)));
            match part.cell() {
                Some(interval) => ui.label(interval),
                None => ui.weak(format!("No estimate: {}", part.reason())),
            };
            ui.label(part.acceptance.cell().unwrap_or_default());
            ui.end_row();
        }
    });
}

fn counts_ui(ui: &mut Ui, title: &str, counts: Vec<(String, usize)>) {
    lines_ui(ui, title, counts.into_iter().map(|(name, count)| (name, grouped(count))).collect());
}

fn lines_ui(ui: &mut Ui, title: &str, lines: Vec<(String, String)>) {
    if lines.is_empty() {
        return;
    }
    ui.add_space(8.0);
    ui.label(strong(title));
    for (name, text) in lines {
        ui.label(format!("{name}: {text}"));
    }
}
