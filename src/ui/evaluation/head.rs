//! What is compared with what, and how far that is.

use eframe::egui::{Align, Label, Layout, RichText, Ui};

use super::super::widgets::{Tone, action_button_ui, action_menu_item_ui, banner_ui, grouped, progress_ui, strong};
use crate::state::{
    Action, Command, Evaluating, EvaluationCommand, Listing, Loadable, OpenedTruth, Queue, RunEvaluation, State,
};

pub(super) fn head_ui(ui: &mut Ui, state: &State, evaluating: &Evaluating, commands: &mut Queue<Command>) {
    title_ui(ui, state, commands);
    match &evaluating.truth {
        Loadable::NotLoaded if state.source.as_ref().is_some_and(|source| source.listing == Listing::Running) => {
            ui.weak(format!("{} is read as soon as all images are listed", evaluating.at.name()));
        }
        Loadable::NotLoaded => {
            let message = format!("The ground truth {} was not read", evaluating.at.name());
            banner_ui(ui, Tone::Hint, &message, |ui| read_again_ui(ui, state, commands));
        }
        Loadable::Loading(task) => {
            ui.add(Label::new(format!("Reading {}", evaluating.at.name())).truncate());
            progress_ui(ui, state, *task, "Cancel", commands);
        }
        Loadable::Failed(failure) => banner_ui(ui, Tone::Error, failure.message(), |ui| {
            read_again_ui(ui, state, commands);
        }),
        Loadable::Ready(opened) => {
            truth_ui(ui, opened);
            status_ui(ui, state, commands);
        }
    }
}

fn title_ui(ui: &mut Ui, state: &State, commands: &mut Queue<Command>) {
    ui.horizontal(|ui| {
        // From the right, so that the words take what the buttons leave.
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            if ui.button("Show the image").on_hover_text("Back to the image and its boxes").clicked() {
                commands.push(Action::Evaluation);
            }
            action_button_ui(ui, state, Action::ExportEvaluation, commands);
            ui.menu_button("Ground truth", |ui| {
                for action in [Action::OpenTruth, Action::CloseTruth] {
                    action_menu_item_ui(ui, state, action, commands);
                }
            });
            ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                let run = state.run().map_or_else(String::new, |run| format!(" of {}", run.info.name));
                let title = format!("Evaluation{run}");
                ui.add(Label::new(strong(title).size(15.0)).truncate());
            });
        });
    });
}

fn truth_ui(ui: &mut Ui, opened: &OpenedTruth) {
    let (truth, matched) = (&opened.truth, opened.images.matched);
    let images = truth.images.len();
    // The whole path is in the tooltip.
    let name = truth.name.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or(&truth.name);
    let text = format!("Ground truth: {name}, {} of its {} images are open here", grouped(matched), grouped(images));
    ui.add(Label::new(RichText::new(text).weak()).truncate()).on_hover_text(&truth.name);
}

fn read_again_ui(ui: &mut Ui, state: &State, commands: &mut Queue<Command>) {
    ui.horizontal_wrapped(|ui| {
        if ui.button("Read it again").clicked() {
            commands.push(EvaluationCommand::EvaluateAgain);
        }
        action_button_ui(ui, state, Action::OpenTruth, commands);
    });
}

fn status_ui(ui: &mut Ui, state: &State, commands: &mut Queue<Command>) {
    let has_predictions = state.run().is_some_and(|run| run.predictions.predicted() > 0);
    let evaluation = state.evaluation();
    if let Some(task) = evaluation.and_then(|evaluation| evaluation.status.task()) {
        progress_ui(ui, state, task, "Cancel", commands);
    } else if !has_predictions {
        let message = "There are no predictions to compare with the ground truth yet. Predict the images, or open \
                       predictions of another program";
        banner_ui(ui, Tone::Hint, message, |ui| {
            ui.horizontal_wrapped(|ui| {
                action_button_ui(ui, state, Action::PredictAll, commands);
                action_button_ui(ui, state, Action::OpenPredictions, commands);
            });
        });
    } else if state.tasks.prediction_is_running() {
        ui.weak("The run is evaluated when all images are predicted");
    } else if let Some(failure) = evaluation.and_then(|evaluation| evaluation.status.failure()) {
        banner_ui(ui, Tone::Error, failure.message(), |ui| again_ui(ui, "Try again", commands));
    } else if evaluation.is_some_and(was_cancelled) {
        banner_ui(ui, Tone::Hint, "The evaluation was cancelled", |ui| again_ui(ui, "Evaluate", commands));
    } else if evaluation.is_none_or(|evaluation| evaluation.last.is_none()) {
        ui.weak("The run is evaluated as soon as its predictions are loaded");
    } else if state.evaluation_is_outdated() {
        let message = "Predictions or verdicts have changed since this was measured";
        banner_ui(ui, Tone::Warning, message, |ui| again_ui(ui, "Evaluate again", commands));
    }
}

fn was_cancelled(evaluation: &RunEvaluation) -> bool {
    matches!(evaluation.status, Loadable::NotLoaded)
}

fn again_ui(ui: &mut Ui, label: &str, commands: &mut Queue<Command>) {
    if ui.button(label).clicked() {
        commands.push(EvaluationCommand::EvaluateAgain);
    }
}
