//! The prediction of the shown image.

use eframe::egui::{Label, ProgressBar, RichText, Sense, Ui};

use super::super::theme;
use super::super::widgets::{
    Tone, action_button_ui, banner_ui, primary_action_button_ui, score_row_ui, verdict_sign, verdict_text,
};
use super::explanation::explanation_ui;
use super::remote_inference::latency_ui;
use crate::domain::{Prediction, PredictionContent, RemoteModel, SampleId, Verdict};
use crate::review::{OutcomeKind, PredictionStatus};
use crate::state::{Action, Command, Queue, ReviewCommand, State, TaskEntry, TaskKind, TaskSignal};

pub(super) fn results_ui(ui: &mut Ui, state: &State, commands: &mut Queue<Command>) {
    let Some(sample) = state.shown_sample() else {
        ui.weak("Choose an image to see its prediction");
        return;
    };
    if let Some(prediction) = &state.shown.prediction {
        outdated_ui(ui, state, sample, commands);
        prediction_ui(ui, state, prediction, commands);
        return;
    }
    if let Some(failure) = &state.shown.failure {
        let name = state.samples.get(sample).map_or("", |entry| entry.uri.file_name());
        ui.label(format!("⚠ {name}: {failure}"));
        return;
    }
    let is_waiting = state.run().is_some_and(|run| run.status(sample) == PredictionStatus::Waiting);
    if is_waiting {
        waiting_ui(ui, state, sample, commands);
    } else if state.inference.is_preparing() {
        preparing_ui(ui, state, commands);
    } else {
        ui.weak("No prediction yet");
        ui.add_space(4.0);
        primary_action_button_ui(ui, state, Action::PredictShown, commands);
    }
}

/// Says that the prediction is outdated, and what to do.
fn outdated_ui(ui: &mut Ui, state: &State, sample: SampleId, commands: &mut Queue<Command>) {
    let Some(run) = state.run().filter(|run| run.is_outdated(sample)) else {
        return;
    };
    let (text, action) = if state.keeps_prediction(run.id(), sample) {
        (
            "Outdated: the file changed after it was predicted. The prediction is kept because it was judged",
            Action::PredictAnew,
        )
    } else {
        ("Outdated: the file changed after it was predicted", Action::PredictShown)
    };
    banner_ui(ui, Tone::Warning, text, |ui| {
        action_button_ui(ui, state, action, commands);
    });
    ui.add_space(4.0);
}

/// A remote model may take long, so that the request can be cancelled.
fn waiting_ui(ui: &mut Ui, state: &State, sample: SampleId, commands: &mut Queue<Command>) {
    let is_asked = |task: &&TaskEntry| match task.kind {
        TaskKind::RemotePrediction { sample: about, .. } => about == sample,
        _ => false,
    };
    let Some(task) = state.tasks.running().iter().find(is_asked) else {
        ui.weak("Predicting…");
        return;
    };
    let model = state.inference.remote_model();
    let name = model.map_or_else(|| "the remote model".to_owned(), RemoteModel::name);
    ui.weak(format!("Waiting for {name}…"));
    if ui.button("Cancel").clicked() {
        commands.push(Command::SignalTask(task.id, TaskSignal::Cancel));
    }
}

/// The first time this takes a while: ONNX Runtime is downloaded, or the endpoint starts up.
fn preparing_ui(ui: &mut Ui, state: &State, commands: &mut Queue<Command>) {
    ui.label(match state.inference.remote_model() {
        Some(model) => format!("Waiting for {}…", model.name()),
        None => "Getting the model ready…".to_owned(),
    });
    let is_preparing = |task: &&TaskEntry| matches!(task.kind, TaskKind::Prepare | TaskKind::Connect);
    let Some(task) = state.tasks.running().iter().find(is_preparing) else {
        return;
    };
    let progress = task.control.progress();
    ui.add(Label::new(RichText::new(&progress.step).weak()).wrap());
    if let Some(fraction) = progress.fraction() {
        ui.add(ProgressBar::new(fraction).desired_height(8.0));
    }
    if ui.button("Cancel").clicked() {
        commands.push(Command::SignalTask(task.id, TaskSignal::Cancel));
    }
}

fn prediction_ui(ui: &mut Ui, state: &State, prediction: &Prediction, commands: &mut Queue<Command>) {
    made_ui(ui, state);
    truth_ui(ui, state);
    match &prediction.content {
        PredictionContent::Classes(_) => classes_ui(ui, state, prediction, commands),
        PredictionContent::Detections(_) => detections_ui(ui, state, prediction, commands),
    }
    latency_ui(ui, state);
    ui.add_space(4.0);
    explanation_ui(ui, state, commands);
}

/// The origin of the prediction, if it was not made on this machine.
fn made_ui(ui: &mut Ui, state: &State) {
    let made = state.run().map(|run| &run.info.key.made);
    if let Some(made) = made.filter(|made| !made.is_here()) {
        let text = RichText::new(format!("From {made}")).small().weak();
        ui.add(Label::new(text).wrap());
    }
}

/// What the image shows by the ground truth, of a classifier.
fn truth_ui(ui: &mut Ui, state: &State) {
    let labels = state.shown_sample().map(|sample| state.truth_labels(sample)).unwrap_or_default();
    if labels.is_empty() {
        return;
    }
    let outcome = match state.outcome_of_box(0) {
        Some((OutcomeKind::Correct, _)) => " (top class is right)",
        Some(_) => " (top class is wrong)",
        None => "",
    };
    let text = format!("Ground truth: {}{outcome}", labels.join(", "));
    ui.add(Label::new(text).wrap());
}

/// The objects of the ground truth that no right box on screen shows.
fn missed_ui(ui: &mut Ui, state: &State) {
    let objects = state.shown_objects();
    let missed: Vec<_> = objects.iter().filter(|object| object.counts && object.is_found == Some(false)).collect();
    if missed.is_empty() {
        return;
    }
    ui.add_space(4.0);
    ui.label(RichText::new(format!("Missed objects: {}", missed.len())).weak());
    for object in missed {
        let [left, top, right, bottom] = object.bounds;
        let text = format!("FN {}", object.label);
        let place = format!("left {left:.0}, top {top:.0}, {:.0} × {:.0} pixels", right - left, bottom - top);
        ui.add(Label::new(text).truncate()).on_hover_text(format!("No right box shows it\n{place}"));
    }
}

fn classes_ui(ui: &mut Ui, state: &State, prediction: &Prediction, commands: &mut Queue<Command>) {
    ui.spacing_mut().item_spacing.y = 4.0;
    for class in state.view().visible_classes(prediction) {
        let color = theme::accent(ui.visuals());
        let is_selected = state.shown.selected_class == Some(class.index);
        let sense = Sense::click();
        let response = score_row_ui(ui, &class.label, class.score, color, is_selected, sense);
        if response.clicked() {
            let selected = (!is_selected).then_some(class.index);
            commands.push(ReviewCommand::SelectClass(selected));
        }
        response.on_hover_text(format!("{} (class {})\nClick to explain this class", class.label, class.index));
    }
}

fn detections_ui(ui: &mut Ui, state: &State, prediction: &Prediction, commands: &mut Queue<Command>) {
    let visible = state.shown_boxes();
    let total = prediction.detections().len();
    ui.label(RichText::new(count_text(visible.len(), total)).weak());
    ui.spacing_mut().item_spacing.y = 4.0;
    for index in visible {
        let detection = &prediction.detections()[index];
        let color = theme::class_color(detection.class_id);
        let is_selected = state.shown.selected_box == Some(index);
        let verdict = state.shown_sample().and_then(|sample| state.judgements.box_verdict(sample, index));
        let label = match verdict {
            Some(Verdict::WrongClass(right)) => format!("≠ {} → {right}", detection.label),
            Some(other) => format!("{} {}", verdict_sign(other.into()), detection.label),
            None => detection.label.clone(),
        };
        let outcome = state.outcome_of_box(index);
        let label = match outcome {
            Some((kind, _)) => format!("{}: {label}", kind.text()),
            None => label,
        };
        let response = score_row_ui(ui, &label, detection.score, color, is_selected, Sense::click());
        if response.clicked() {
            let selected = (!is_selected).then_some(index);
            commands.push(ReviewCommand::SelectBox(selected));
        }
        let bounds = detection.bounds;
        let overlap = outcome.map_or_else(String::new, |(_, iou)| format!("\nIoU {iou:.2} with the ground truth"));
        let judged = verdict.map_or_else(String::new, |verdict| format!("\n{}", verdict_text(verdict)));
        response.on_hover_text(format!(
            "{}, class {}\nleft {:.0}, top {:.0}, {:.0} × {:.0} pixels{overlap}{judged}",
            detection.label,
            detection.class_id,
            bounds.x1,
            bounds.y1,
            bounds.width(),
            bounds.height()
        ));
    }
    missed_ui(ui, state);
}

fn count_text(visible: usize, total: usize) -> String {
    let boxes = match visible {
        0 => "No box".to_owned(),
        1 => "1 box".to_owned(),
        count => format!("{count} boxes"),
    };
    match total - visible {
        0 => boxes,
        hidden => format!("{boxes} shown, {hidden} filtered out"),
    }
}
