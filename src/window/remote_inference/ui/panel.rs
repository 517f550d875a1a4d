//! Where images are predicted, and what is known about the remote model.

use std::time::Duration;

use crate::domain::human_duration;
use crate::sagemaker::spec::remote_model::{RemoteAddress, RemoteModel};
use crate::window::models::ui::assumed_ui;
use crate::window::state::{InferenceCommand, RemoteEngine, RemoteReport};
use crate::window::ui::prelude::*;

const HERE: &str = "This computer";

/// Selects where images are predicted.
pub(crate) fn where_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    let chosen = state.inference.remote_model();
    ui.horizontal(|ui| {
        ui.label("Predict on");
        let text = chosen.map_or_else(|| HERE.to_owned(), title);
        Field::new("Where to predict")
            .width(ui.available_width())
            .list_ui(ui, &text, |ui| choices_ui(ui, state, chosen, commands));
    });
}

fn choices_ui(ui: &mut Ui, state: &State, chosen: Option<&RemoteModel>, commands: &mut Commands) {
    ui.selectable_label(chosen.is_none(), HERE).on_click(commands, || InferenceCommand::PredictAt(None));
    for model in &state.settings.recent_remote_models {
        let name = format!("{}{}", title(model), whereabouts(model));
        let button = Button::selectable(chosen == Some(model), &name);
        match recent_line_ui(ui, button, &name) {
            Some(RecentLine::Chosen) => {
                commands.push(InferenceCommand::PredictAt(Some(Box::new(model.clone()))));
            }
            Some(RecentLine::Forgotten) => {
                commands.push(InferenceCommand::ForgetRemoteModel(Box::new(model.clone())));
            }
            None => {}
        }
    }
    ui.separator();
    for (label, action) in
        [("SageMaker endpoint…", Action::PredictAtEndpoint), ("TensorFlow Serving…", Action::PredictInTfServing)]
    {
        let choice = ui.selectable_label(false, label);
        choice.on_hover_text(action.tooltip()).on_click(commands, || action);
    }
}

/// “Endpoint cats”
fn title(model: &RemoteModel) -> String {
    match &model.at {
        RemoteAddress::Endpoint { name, .. } => format!("Endpoint {name}"),
        RemoteAddress::TfServing { .. } => model.name(),
    }
}

fn whereabouts(model: &RemoteModel) -> String {
    match &model.at {
        RemoteAddress::Endpoint { access, .. } => match &access.region {
            Some(region) => format!(" in {region}"),
            None => String::new(),
        },
        RemoteAddress::TfServing { address } => {
            let (host, _) = address.split_once("/v1/").unwrap_or((address, ""));
            let (_, host) = host.split_once("://").unwrap_or(("", host));
            format!(" at {host}")
        }
    }
}

/// The remote model, in place of the local one.
pub(crate) fn remote_engine_ui(ui: &mut Ui, state: &State, remote: &RemoteEngine, commands: &mut Commands) {
    match &remote.status {
        Loadable::Ready(report) => report_ui(ui, state, report, commands),
        Loadable::Loading(_) => {
            ui.weak(format!("Waiting for {}…", remote.model.name()));
        }
        // The failure has its own banner.
        Loadable::Failed(_) => {}
        Loadable::NotLoaded => {
            ui.weak("No request sent yet");
        }
    }
    let note = "Only the image in view and images that you predict are sent";
    let note = small_note_ui(ui, note);
    note.on_hover_text(if state.settings.predict_on_open {
        "An image is sent when it stays in view and has no prediction yet. To send images only on request, turn off \
         “Predict images when opened”. Neighbors and thumbnails are never sent"
    } else {
        "An image is sent when you ask for its prediction. Neighbors and thumbnails are never sent"
    });
    ui.horizontal_wrapped(|ui| {
        ui.button("Change…")
            .on_hover_text("Address, request format and response mapping")
            .on_click(commands, || InferenceCommand::EditRemoteModel(Box::new(remote.model.clone())));
        action_button_ui(ui, state, Action::PredictHere, commands);
    });
}

fn report_ui(ui: &mut Ui, state: &State, report: &RemoteReport, commands: &mut Commands) {
    wrapped_ui(ui, strong(&report.name));
    let reading = format!("Predictions are read as {}", report.reading);
    note_ui(ui, reading);
    if let Some(latency) = report.latency {
        let text = match latency.calls {
            1 => format!("{} (1 prediction)", milliseconds(latency.p50)),
            // Too few for more than the median.
            count @ ..20 => format!("p50 {} ({count} predictions)", milliseconds(latency.p50)),
            count => {
                format!("p50 {}, p95 {} ({count} predictions)", milliseconds(latency.p50), milliseconds(latency.p95))
            }
        };
        key_value_ui(ui, "Latency", &text);
    }
    let run = state.run().filter(|run| !run.info.key.made.is_here());
    if let Some(run) = run {
        assumed_ui(ui, state, &run.info.card, commands);
    }
}

/// Below the results: how long the prediction took.
pub(crate) fn latency_ui(ui: &mut Ui, state: &State) {
    if let Some((took_ms, made)) = state.shown_latency_ms() {
        let text = format!("Predicted in {} by {made}", milliseconds(took_ms));
        let label = note_ui(ui, text);
        label.on_hover_text(
            "From sending the request to the complete response: network, queuing, decoding, inference and retries. \
            Reading the file on this computer is not included",
        );
    }
}

fn milliseconds(value: f64) -> String {
    match value {
        ..10.0 => format!("{value:.1} ms"),
        ..10_000.0 => format!("{value:.0} ms"),
        _ => human_duration(Duration::from_secs_f64(value / 1e3)),
    }
}
