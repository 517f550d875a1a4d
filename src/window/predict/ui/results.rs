//! The prediction of the shown image.

use crate::domain::{
    BoundingBox, ModelCard, NEW_CLASS, OutputConvention, Prediction, PredictionContent, SampleId, Verdict, problem_of,
};
use crate::review::{OutcomeKind, PredictionStatus};
use crate::sagemaker::spec::remote_model::RemoteModel;
use crate::window::canvas::ui::boxes::object_text;
use crate::window::explain::ui::explanation_ui;
use crate::window::remote_inference::ui::panel::latency_ui;
use crate::window::state::{ShownObject, TaskEntry, TaskKind};
use crate::window::ui::menu_bar::{BOX_MENU, CLASS_MENU};
use crate::window::ui::prelude::*;

/// Further rows are shown on request.
const ROWS_SHOWN: usize = 5;
const ROW_GAP: f32 = 4.0;
/// The minimum height of the results: the rows, and a line above and below. What follows stays in place from image to
/// image.
const HEIGHT: f32 = ROWS_SHOWN as f32 * (SCORE_ROW_HEIGHT + ROW_GAP) + 84.0;

#[derive(Default)]
pub(crate) struct ResultsMemory {
    shows_all: bool,
}

pub(crate) fn results_ui(ui: &mut Ui, state: &State, memory: &mut ResultsMemory, commands: &mut Commands) {
    ui.set_min_height(HEIGHT);
    let Some(sample) = state.shown_sample() else {
        ui.weak("Choose an image to see its prediction");
        return;
    };
    if let Some(prediction) = &state.shown.prediction {
        outdated_ui(ui, state, sample, commands);
        prediction_ui(ui, state, memory, prediction, commands);
        return;
    }
    if let Some(failure) = &state.shown.failure {
        let name = state.samples.file_name(sample);
        ui.label(format!("⚠ {}", problem_of(name, failure)));
        return;
    }
    let is_waiting = state.run().is_some_and(|run| run.status(sample) == PredictionStatus::Waiting);
    if is_waiting {
        waiting_ui(ui, state, sample, commands);
    } else if state.inference.is_preparing() {
        preparing_ui(ui, state, commands);
    } else {
        ui.weak(if state.uses_encoder() { "No embedding yet" } else { "No prediction yet" });
        ui.add_space(4.0);
        primary_action_button_ui(ui, state, Action::PredictShown, commands);
    }
}

/// Reports that the prediction is outdated, and what to do.
fn outdated_ui(ui: &mut Ui, state: &State, sample: SampleId, commands: &mut Commands) {
    let Some(run) = state.run().filter(|run| run.is_outdated(sample)) else {
        return;
    };
    let (text, action) = if state.keeps_prediction(run.id(), sample) {
        (
            "Outdated: the file changed after it was predicted. The prediction is kept because it has a verdict",
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

/// A remote model can take long, so the request can be canceled.
fn waiting_ui(ui: &mut Ui, state: &State, sample: SampleId, commands: &mut Commands) {
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
    command_button_ui(ui, "Cancel", commands, || Command::cancel(task.id));
}

/// The first time takes a while: ONNX Runtime is downloaded, or the endpoint starts.
fn preparing_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    ui.label(match state.inference.remote_model() {
        Some(model) => format!("Waiting for {}…", model.name()),
        None => "Loading the model…".to_owned(),
    });
    let is_preparing = |task: &&TaskEntry| matches!(task.kind, TaskKind::Prepare | TaskKind::Connect);
    let Some(task) = state.tasks.running().iter().find(is_preparing) else {
        return;
    };
    let progress = task.control.progress();
    note_ui(ui, &progress.step);
    if let Some(fraction) = progress.fraction() {
        ui.add(ProgressBar::new(fraction).desired_height(8.0));
    }
    command_button_ui(ui, "Cancel", commands, || Command::cancel(task.id));
}

fn prediction_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut ResultsMemory,
    prediction: &Prediction,
    commands: &mut Commands,
) {
    if let Some(card) = state.run().map(|run| &run.info.card).filter(|card| card.is_encoder()) {
        embedding_ui(ui, state, card, commands);
        return;
    }
    made_ui(ui, state);
    truth_ui(ui, state);
    match &prediction.content {
        PredictionContent::Classes(_) => classes_ui(ui, state, prediction, commands),
        PredictionContent::Detections(_) => detections_ui(ui, state, memory, prediction, commands),
    }
    latency_ui(ui, state);
    ui.add_space(4.0);
    explanation_ui(ui, state, commands);
}

/// What an encoder leaves behind, and what it is for.
fn embedding_ui(ui: &mut Ui, state: &State, card: &ModelCard, commands: &mut Commands) {
    let output = match &card.output {
        OutputConvention::Embedding(output) => output.name.as_str(),
        OutputConvention::Classification(_) | OutputConvention::Detection(_) => "",
    };
    ui.label("This image has an embedding");
    note_ui(ui, format!("By {}, output {output}. It predicts nothing, but compares images", card.id));
    ui.add_space(4.0);
    ui.horizontal_wrapped(|ui| {
        for action in [Action::FindAlike, Action::FindDuplicates, Action::Map] {
            action_button_ui(ui, state, action, commands);
        }
    });
}

/// The origin of the prediction, if it was not made on this computer.
fn made_ui(ui: &mut Ui, state: &State) {
    let made = state.run().map(|run| &run.info.key.made);
    if let Some(made) = made.filter(|made| !made.is_here()) {
        let text = RichText::new(format!("From {made}")).small().weak();
        wrapped_ui(ui, text);
    }
}

/// The true class of the image, for a classifier.
fn truth_ui(ui: &mut Ui, state: &State) {
    let labels = state.shown_sample().map(|sample| state.truth_labels(sample)).unwrap_or_default();
    if labels.is_empty() {
        return;
    }
    let outcome = match state.shown_sample().and_then(|sample| state.outcome_of_box(sample, 0)) {
        Some(outcome) if outcome.kind == OutcomeKind::Correct => " (top class is correct)",
        Some(_) => " (top class is wrong)",
        None => "",
    };
    let text = format!("Ground truth: {}{outcome}", labels.join(", "));
    wrapped_ui(ui, text);
}

fn false_negative_ui(ui: &mut Ui, state: &State, object: &ShownObject, commands: &mut Commands) {
    let BoundingBox { x1: left, y1: top, .. } = object.bounds;
    let is_selected = state.shown.selected_object == Some(object.index);
    let color = theme::line(ui.visuals());
    let row = score_row_ui(ui, &object_text(object), None, color, is_selected, Sense::click());
    if row.clicked() {
        commands.push(if is_selected {
            ReviewCommand::SelectBox(None)
        } else {
            ReviewCommand::SelectObject(object.index)
        });
    }
    if row.secondary_clicked() {
        commands.push(ReviewCommand::SelectObject(object.index));
    }
    context_menu_ui(&row, state, BOX_MENU, commands);
    let judged = label_verdict_text(object.verdict).map_or_else(String::new, |text| format!("\n{text}"));
    row.on_hover_text(format!(
        "Not detected\nleft {left:.0}, top {top:.0}, {:.0} × {:.0} pixels{judged}",
        object.bounds.width(),
        object.bounds.height()
    ));
}

fn classes_ui(ui: &mut Ui, state: &State, prediction: &Prediction, commands: &mut Commands) {
    ui.spacing_mut().item_spacing.y = 4.0;
    for class in state.view().visible_classes(prediction) {
        let color = theme::accent(ui.visuals());
        let is_selected = state.shown.selected_class == Some(class.index);
        let sense = Sense::click();
        let response = score_row_ui(ui, &class.label, Some(class.score), color, is_selected, sense);
        if response.clicked() {
            let selected = (!is_selected).then_some(class.index);
            commands.push(ReviewCommand::SelectClass(selected));
        } else if response.secondary_clicked() {
            commands.push(ReviewCommand::SelectClass(Some(class.index)));
        }
        context_menu_ui(&response, state, CLASS_MENU, commands);
        response.on_hover_text(format!("{} (class {})\nClick to explain this class", class.label, class.index));
    }
}

/// The boxes, then the missed objects: only the first few, so that what is below stays in place, and all on request.
fn detections_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut ResultsMemory,
    prediction: &Prediction,
    commands: &mut Commands,
) {
    let visible = state.shown_boxes();
    let missed = state.false_negatives();
    let hidden = prediction.detections().len() - visible.len();
    ui.weak(count_text(visible.len(), hidden, missed.len()));
    ui.spacing_mut().item_spacing.y = ROW_GAP;
    let rows = visible.len() + missed.len();
    let selected = state.shown.selected_box.and_then(|index| visible.iter().position(|other| *other == index));
    let object = missed.iter().position(|object| state.shown.selected_object == Some(object.index));
    let selected = selected.or(object.map(|object| visible.len() + object));
    let shows_all = memory.shows_all || selected.is_some_and(|row| row >= ROWS_SHOWN);
    let limit = if shows_all { rows } else { ROWS_SHOWN };
    for &index in visible.iter().take(limit) {
        detection_ui(ui, state, prediction, index, commands);
    }
    for object in missed.iter().take(limit.saturating_sub(visible.len())) {
        false_negative_ui(ui, state, object, commands);
    }
    if rows > ROWS_SHOWN {
        let text = if shows_all { "Show fewer".to_owned() } else { format!("Show all {rows}") };
        if ui.link(text).clicked() {
            memory.shows_all = !shows_all;
        }
    }
}

/// One row: a click selects the box.
fn detection_ui(ui: &mut Ui, state: &State, prediction: &Prediction, index: usize, commands: &mut Commands) {
    let detection = &prediction.detections()[index];
    let color = theme::class_color(&detection.label);
    let is_selected = state.shown.selected_box == Some(index);
    let verdict = state.shown_sample().and_then(|sample| state.judgments.box_verdict(sample, index));
    let outcome = state.shown_sample().and_then(|sample| state.outcome_of_box(sample, index));
    let label = class_text(state, detection, verdict, outcome);
    let label = match outcome {
        Some(outcome) => format!("{label} · {}", outcome.mark_text()),
        None => label,
    };
    // The model did not score a box that a person added.
    let score = Some(detection.score).filter(|_| !matches!(verdict, Some(Verdict::Added(_))));
    let response = score_row_ui(ui, &label, score, color, is_selected, Sense::click());
    if response.clicked() {
        let selected = (!is_selected).then_some(index);
        commands.push(ReviewCommand::SelectBox(selected));
    } else if response.secondary_clicked() {
        commands.push(ReviewCommand::SelectBox(Some(index)));
    }
    context_menu_ui(&response, state, BOX_MENU, commands);
    let bounds = detection.bounds;
    let class = match detection.class_id {
        NEW_CLASS => "which is not a class of the model".to_owned(),
        class_id => format!("class {class_id}"),
    };
    let overlap = outcome.map_or_else(String::new, |outcome| {
        let object = outcome.right_class.map_or_else(String::new, |right| format!(": {right}"));
        format!("\n{}, IoU {:.2} with the ground truth{object}", outcome.kind.text(), outcome.iou)
    });
    let judged = verdict.map_or_else(String::new, |verdict| format!("\n{}", verdict_text(verdict)));
    response.on_hover_text(format!(
        "{}, {class}\nleft {:.0}, top {:.0}, {:.0} × {:.0} pixels{overlap}{judged}",
        detection.label,
        bounds.x1,
        bounds.y1,
        bounds.width(),
        bounds.height()
    ));
}

/// “2 boxes, 5 hidden by the filters, 1 object missed”
fn count_text(visible: usize, hidden: usize, missed: usize) -> String {
    let boxes = if visible == 0 { "No boxes".to_owned() } else { box_count(visible) };
    let hidden = (hidden > 0).then(|| format!("{} hidden by the filters", grouped(hidden)));
    let missed = match missed {
        0 => None,
        1 => Some("1 object not detected".to_owned()),
        count => Some(format!("{} objects not detected", grouped(count))),
    };
    let parts: Vec<String> = [Some(boxes), hidden, missed].into_iter().flatten().collect();
    parts.join(", ")
}
