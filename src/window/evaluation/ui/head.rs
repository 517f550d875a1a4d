//! What is compared, and its progress.

use crate::annotations::matching::Doubt;
use crate::domain::DatasetSplit;
use crate::window::state::{
    Evaluating, EvaluationCommand, Listing, OpenedTruth, RunEvaluation, TruthNames, TruthReading,
};
use crate::window::ui::prelude::*;

/// Below this width, the buttons next to the title are a menu, in points.
const NARROW: f32 = 380.0;
/// The width of the title below which its buttons move under it.
const LEAST_TITLE: f32 = 160.0;

pub(crate) fn head_ui(ui: &mut Ui, state: &State, evaluating: &Evaluating, commands: &mut Commands) {
    title_ui(ui, state, commands);
    match &evaluating.truth {
        Loadable::NotLoaded if state.source.as_ref().is_some_and(|source| source.listing == Listing::Running) => {
            ui.weak(format!("{} will be read once all images are listed", evaluating.at.name()));
        }
        Loadable::NotLoaded => {
            let message = format!("The ground truth {} was not read", evaluating.at.name());
            banner_ui(ui, Tone::Hint, &message, |ui| read_again_ui(ui, state, commands));
        }
        Loadable::Loading(task) => {
            let name = evaluating.at.name();
            line_ui(ui, format!("Reading {name}"), &name, |ui| progress_ui(ui, state, *task, commands));
            matched_ui(ui, state, evaluating, commands);
        }
        Loadable::Failed(failure) => banner_ui(ui, Tone::Error, failure.message(), |ui| {
            read_again_ui(ui, state, commands);
        }),
        Loadable::Ready(opened) => {
            truth_ui(ui, opened, |ui| status_ui(ui, state, commands));
            matched_ui(ui, state, evaluating, commands);
            trouble_ui(ui, state, commands);
        }
    }
}

/// What is compared, and the current activity on the right. Its height does not depend on a button, so that what is
/// below it stays under the pointer.
fn line_ui(ui: &mut Ui, text: String, tooltip: &str, status_ui: impl FnOnce(&mut Ui)) {
    let row = vec2(ui.available_width(), ui.spacing().interact_size.y);
    ui.allocate_ui_with_layout(row, Layout::right_to_left(Align::Center), |ui| {
        ui.set_min_height(row.y);
        status_ui(ui);
        ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
            note_line_ui(ui, text).on_hover_text(tooltip);
        });
    });
}

/// Text on the right that leaves some of the line to what is compared.
fn words_ui(ui: &mut Ui, text: &str, color: eframe::egui::Color32) {
    let font = TextStyle::Body.resolve(ui.style());
    let galley = elided_in_middle(ui, text, &font, color, ui.available_width() * 0.6);
    let label = ui.add(Label::new(galley)).on_hover_text(text);
    label.widget_info(|| eframe::egui::WidgetInfo::labeled(eframe::egui::Role::Label, true, text));
}

fn title_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    let name_ui = |ui: &mut Ui, _: &mut _| {
        let run = state.run().map_or_else(String::new, |run| format!(" of {}", run.info.name));
        let title = format!("Evaluation{run}");
        truncated_ui(ui, strong(title).size(15.0));
    };
    let of_truth: &[Action] = &[Action::OpenTruth, Action::CloseTruth];
    let is_narrow = ui.available_width() < NARROW;
    let buttons_ui = |ui: &mut Ui, commands: &mut Commands| {
        if is_narrow {
            let menu = ui.menu_button("…", |ui| {
                action_menu_ui(ui, state, &[of_truth, &[Action::ExportEvaluation]], commands);
            });
            menu.response.on_hover_text("Ground truth and export").accessible_name("Ground truth and export");
        } else {
            ui.menu_button("Ground truth", |ui| action_menu_ui(ui, state, &[of_truth], commands));
            action_button_ui(ui, state, Action::ExportEvaluation, commands);
        }
        ui.button("Show the image")
            .on_hover_text("Back to the image and its boxes")
            .on_click(commands, || Action::Evaluation);
    };
    ends_or_lines_ui(ui, "title of the evaluation", LEAST_TITLE, commands, name_ui, buttons_ui);
}

fn truth_ui(ui: &mut Ui, opened: &OpenedTruth, status_ui: impl FnOnce(&mut Ui)) {
    let (truth, matched) = (&opened.truth, opened.images.matched);
    let images = truth.images.len();
    // The full path is in the tooltip.
    let name = truth.name.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or(&truth.name);
    let text = if matched == images {
        format!("Ground truth: {name} (all {} images matched)", grouped(images))
    } else {
        format!("Ground truth: {name} ({} of {} images matched)", grouped(matched), grouped(images))
    };
    line_ui(ui, text, &truth.name, status_ui);
}

/// How images and classes were matched, and doubts; of the last evaluation until the next one is ready.
fn matched_ui(ui: &mut Ui, state: &State, evaluating: &Evaluating, commands: &mut Commands) {
    let split = evaluating.truth.ready().and_then(|opened| opened.truth.split.as_ref());
    let matching = state.evaluated().map(|run| &run.evaluated.matching);
    if split.is_none() && matching.is_none() {
        return;
    }
    ui.horizontal_wrapped(|ui| {
        // The same height with and without a menu.
        ui.set_min_height(ui.spacing().interact_size.y);
        if let Some(split) = split {
            split_ui(ui, evaluating, split, commands);
        }
        if let Some(matching) = matching {
            note_ui(ui, format!("Matched: {}", matching.text()));
        }
    });
    for doubt in matching.into_iter().flat_map(|matching| &matching.doubts) {
        banner_ui(ui, Tone::Warning, &doubt.to_string(), |ui| {
            if matches!(doubt, Doubt::NumbersAlone { .. }) {
                names_ui(ui, state, evaluating, commands);
            }
        });
    }
}

/// Which split of a dataset was read, and the others.
fn split_ui(ui: &mut Ui, evaluating: &Evaluating, split: &DatasetSplit, commands: &mut Commands) {
    let DatasetSplit { name, all } = split;
    ui.weak("Split");
    Field::new(format!("Ground-truth split: {name}")).list_ui(ui, name, |ui| {
        for other in all {
            if ui.selectable_label(other == name, other).clicked() && other != name {
                let reading = TruthReading { split: Some(other.clone()), ..evaluating.reading.clone() };
                commands.push(EvaluationCommand::ReadTruthAs(reading));
            }
        }
    });
}

/// What the class numbers may mean.
fn names_ui(ui: &mut Ui, state: &State, evaluating: &Evaluating, commands: &mut Commands) {
    let coco = Some(TruthNames::Set("coco-80".to_owned()));
    let of_model = state.run().and_then(|run| TruthNames::in_order_of(run.labels()));
    ui.horizontal_wrapped(|ui| {
        ui.label("Class numbers mean");
        for (text, names) in [("COCO 80", coco), ("The model’s classes in order", of_model)] {
            if let Some(names) = names
                && ui.button(text).clicked()
            {
                let reading = TruthReading { names: Some(names), ..evaluating.reading.clone() };
                commands.push(EvaluationCommand::ReadTruthAs(reading));
            }
        }
        command_button_ui(ui, "Other class names…", commands, || Action::OpenTruth);
    });
}

fn read_again_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    ui.horizontal_wrapped(|ui| {
        command_button_ui(ui, "Read again", commands, || EvaluationCommand::EvaluateAgain);
        action_button_ui(ui, state, Action::OpenTruth, commands);
    });
}

fn has_predictions(state: &State) -> bool {
    state.run().is_some_and(|run| run.predictions.predicted() > 0)
}

/// One line: the current activity, or why the numbers are outdated.
fn status_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    let evaluation = state.evaluation();
    let weak = ui.visuals().weak_text_color();
    if let Some(task) = evaluation.and_then(|evaluation| evaluation.status.task()) {
        progress_ui(ui, state, task, commands);
    } else if !has_predictions(state) || evaluation.is_some_and(|evaluation| evaluation.status.failure().is_some()) {
        // Reported below.
    } else if state.tasks.prediction_is_running() {
        words_ui(ui, "Evaluates once all images are predicted", weak);
    } else if evaluation.is_some_and(was_cancelled) {
        again_ui(ui, "Evaluate", commands);
        words_ui(ui, "The evaluation was canceled", ui.visuals().text_color());
    } else if evaluation.is_none_or(|evaluation| evaluation.last.is_none()) {
        words_ui(ui, "Evaluates once the predictions are loaded", weak);
    } else if state.evaluation_is_outdated() {
        again_ui(ui, "Evaluate again", commands);
        let message = "⚠ Predictions or verdicts have changed since this was measured";
        words_ui(ui, message, ui.visuals().warn_fg_color);
    }
}

/// Why there are no numbers, in full.
fn trouble_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    let status = state.evaluation().map(|evaluation| &evaluation.status);
    if status.is_some_and(Loadable::is_loading) {
        return;
    }
    if !has_predictions(state) {
        let message = "No predictions to evaluate yet. Predict the images, or open predictions from another tool";
        banner_ui(ui, Tone::Hint, message, |ui| {
            ui.horizontal_wrapped(|ui| {
                action_button_ui(ui, state, Action::PredictAll, commands);
                action_button_ui(ui, state, Action::OpenPredictions, commands);
            });
        });
    } else if let Some(failure) = status.and_then(Loadable::failure) {
        banner_ui(ui, Tone::Error, failure.message(), |ui| again_ui(ui, "Try again", commands));
    }
}

fn was_cancelled(evaluation: &RunEvaluation) -> bool {
    matches!(evaluation.status, Loadable::NotLoaded)
}

fn again_ui(ui: &mut Ui, label: &str, commands: &mut Commands) {
    command_button_ui(ui, label, commands, || EvaluationCommand::EvaluateAgain);
}

fn progress_ui(ui: &mut Ui, state: &State, task: TaskId, commands: &mut Commands) {
    let Some(entry) = state.tasks.get(task) else {
        return;
    };
    let progress = entry.control.progress();
    command_button_ui(ui, "Cancel", commands, || Command::cancel(task));
    ui.add(progress_bar(progress.fraction()).desired_width(110.0));
    let text = progress_text(&progress, entry.control.is_paused());
    let text = if text.is_empty() { entry.title.clone() } else { text };
    words_ui(ui, &text, ui.visuals().weak_text_color());
}
