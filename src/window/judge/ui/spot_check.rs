//! The sample to judge: the dialog that draws it, and its progress above the judging bar.

use strum::VariantArray;

use crate::domain::ModelTask;
use crate::review::{SampleBy, SampleProgress, more_sentence};
use crate::window::state::SampleDesign;
use crate::window::ui::prelude::*;

const MAX_COUNT: usize = 1_000_000;

/// The choices, while the dialog is open.
#[derive(Default)]
pub(crate) struct SpotCheckMemory {
    design: Option<SampleDesign>,
}

pub(crate) fn spot_check_ui(ctx: &Context, state: &State, memory: &mut SpotCheckMemory, commands: &mut Commands) {
    if state.overlay != Overlay::SpotCheck {
        memory.design = None;
        return;
    }
    let known = state.spot_checks.sample.ready().map(|loaded| &loaded.sample);
    let design = memory.design.get_or_insert_with(|| SampleDesign {
        count: state.spot_checks.suggested,
        by: known.map_or(SampleBy::Random, |sample| sample.by),
        seed: known.map_or(1, |sample| sample.seed),
    });
    let task = state.task().unwrap_or(ModelTask::Detection);
    let [one, many] = task.judged_words();
    dialog_ui(ctx, "spot check", 440.0, Command::CLOSE_OVERLAY, commands, |ui, commands| {
        let about = format!("Judge a random sample of the visible {many} to estimate the precision of all of them.");
        heading_ui(ui, Action::SpotCheck.label(), &about);
        Field::new("Count").help("Small strata can add a few").row_ui(ui, |ui, field| {
            field.number_ui(ui, number_field(&mut design.count).range(1..=MAX_COUNT));
            ui.label(many);
        });
        for by in SampleBy::VARIANTS {
            radio_ui(ui, &mut design.by, *by, by_text(*by, task));
        }
        let help = "A higher count with the same seed extends the sample";
        Field::new("Seed").help(help).row_ui(ui, |ui, field| {
            field.number_ui(ui, number_field(&mut design.seed));
        });
        ui.add_space(6.0);
        if let (Some(sample), Some(progress)) = (known, state.spot_checks.progress) {
            let drawn = counted(sample.units.len(), one, many);
            let text = format!(
                "This run has a sample of {drawn}, {} of them judged. A higher count with the same seed and order extends \
                 it; anything else replaces it. Verdicts remain.",
                grouped(sample.units.len() - progress.missing())
            );
            wrapped_ui(ui, text);
        }
        let is_loading = state.spot_checks.sample.is_loading();
        if is_loading {
            ui.weak("Reading the run…");
        }
        ui.add_space(8.0);
        ui.horizontal_wrapped(|ui| {
            ui.add_enabled(!is_loading, primary_button(ui, "Draw sample"))
                .on_click(commands, || ReviewCommand::DrawSample(*design));
            if known.is_some() {
                command_button_ui(ui, "Continue sample", commands, || ReviewCommand::JudgeSample);
            }
            command_button_ui(ui, "Cancel", commands, || Command::CLOSE_OVERLAY);
        });
    });
}

fn by_text(by: SampleBy, task: ModelTask) -> &'static str {
    match (by, task) {
        (SampleBy::Random, _) => "At random",
        (SampleBy::Class, _) => "By class: more of rare classes",
        (SampleBy::Score, _) => "By score: more of rare scores",
        (SampleBy::Cover, _) => "By embedding: more of rare kinds of images",
        (SampleBy::Uncertain, ModelTask::Detection) => "Uncertain first: more near the minimum score",
        (SampleBy::Uncertain, ModelTask::Classification) => "Uncertain first: more with two likely classes",
    }
}

/// “Sample: 37 of 200 judged”, and what the verdicts say so far, while the search is limited to the sample.
pub(crate) fn progress_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    let (Some(_), Some(progress)) = (state.sample_to_judge(), state.spot_checks.progress) else {
        return;
    };
    ui.horizontal(|ui| {
        ends_ui(
            ui,
            "sample",
            commands,
            |ui, _| drop(truncated_ui(ui, progress_text(&progress))),
            |ui, commands| {
                command_button_ui(ui, Action::ReviewReport.label(), commands, || Action::ReviewReport);
                command_button_ui(ui, "End spot check", commands, || SearchCommand::SetQuery(String::new()));
            },
        );
    });
}

fn progress_text(progress: &SampleProgress) -> String {
    let SampleProgress { total, more_for_one_percent } = progress;
    let judged = grouped(total.sampled - progress.missing());
    let precision = match total.interval() {
        None if total.judged > 0 => Some(format!("No estimate: {}", total.reason())),
        interval => interval.map(|interval| format!("Precision {interval}")),
    };
    let more = more_for_one_percent.filter(|_| precision.is_some()).map(|more| more_sentence(more, total));
    let judged = Some(format!("Sample: {judged} of {} judged", grouped(total.sampled)));
    [judged, precision, more].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}
