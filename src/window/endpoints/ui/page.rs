//! The page of one endpoint: its status, its cost, when it is deleted, and what is deleted with it.

use crate::domain::{Utc, capitalized};
use crate::sagemaker::spec::Deleted;
use crate::sagemaker::spec::endpoint::{Endpoint, EndpointRecord, EndpointStatus};
use crate::sagemaker::spec::remote_model::RemoteModel;
use crate::tasks::now_ms;
use crate::window::remote::ui::{log_lines_ui, page_name_ui, watch_problems_ui};
use crate::window::state::{
    EndpointId, EndpointPresence, EndpointsCommand, InferenceCommand, KnownEndpoint, RemoteCommand,
};
use crate::window::ui::prelude::*;

const HOUR_MS: i64 = 60 * 60_000;
/// Hours by which the deletion can be postponed with one click.
const LATER_H: [i64; 3] = [1, 4, 12];

pub(crate) fn page_ui(ui: &mut Ui, state: &State, endpoint: &KnownEndpoint, commands: &mut Commands) {
    name_ui(ui, endpoint, commands);
    watch_problems_ui(ui, &endpoint.watch, endpoint.undeleted.as_ref(), commands);
    status_ui(ui, endpoint, commands);
    deletion_ui(ui, state, endpoint, commands);
    log_ui(ui, endpoint, commands);
    facts_ui(ui, endpoint);
}

fn name_ui(ui: &mut Ui, endpoint: &KnownEndpoint, commands: &mut Commands) {
    page_name_ui(ui, &endpoint.id.name, commands, |ui, commands| {
        if endpoint.watch.task.is_some() {
            let stop = ui.button("Stop watching");
            stop.on_hover_text("The endpoint keeps running and is still billed")
                .on_click(commands, || RemoteCommand::StopWatching(endpoint.id.clone()));
        } else if ui.add_enabled(endpoint.deleting.is_none(), Button::new("Refresh")).clicked() {
            commands.push(RemoteCommand::Watch(endpoint.id.clone()));
        }
    });
}

fn status_ui(ui: &mut Ui, endpoint: &KnownEndpoint, commands: &mut Commands) {
    let word = endpoint_word(endpoint);
    ui.horizontal_wrapped(|ui| {
        let sign = endpoint.presence.status().map_or("■", endpoint_sign);
        ui.label(strong(format!("{sign} {word}")));
        if endpoint.watch.task.is_some() || endpoint.deleting.is_some() {
            ui.spinner();
        }
    });
    if endpoint.accepts_requests() {
        predict_here_ui(ui, endpoint, commands);
    }
    match &endpoint.presence {
        EndpointPresence::Present(there) => there_ui(ui, there),
        EndpointPresence::Absent if endpoint.deletion.is_some() => {}
        EndpointPresence::Absent if endpoint.is_ours() => {
            let text = "This endpoint no longer exists and is not billed: it was deleted outside this window. The \
                resources created for it still exist";
            message_ui(ui, Tone::Warning, text);
        }
        EndpointPresence::Absent if endpoint.record.is_some() => {
            let text = "This endpoint was never started and is not billed. The resources created for it still exist";
            message_ui(ui, Tone::Warning, text);
        }
        EndpointPresence::Absent => {
            ui.weak(format!("There is no endpoint with this name in {}", endpoint.id.region()));
        }
        EndpointPresence::Unknown => {}
    }
    let has_failed = endpoint.presence.status() == Some(EndpointStatus::Failed);
    if !has_failed && (endpoint.presence.endpoint().is_some() || endpoint.is_at_our_cost()) {
        ui.label(capitalized(&endpoint_cost_text(endpoint, now_ms())));
    }
    if endpoint.record.is_none() && endpoint.presence.endpoint().is_some() {
        ui.weak("Not deployed from this computer; it may be in use");
    }
}

/// The status and the failure that SageMaker reports.
fn there_ui(ui: &mut Ui, there: &Endpoint) {
    match there.status {
        EndpointStatus::Failed | EndpointStatus::UpdateRollbackFailed => {
            let why = there.failure_words();
            let text = format!(
                "The endpoint failed: {why}. Check its log below. Delete the endpoint, fix the problem, then deploy \
                 again"
            );
            message_ui(ui, Tone::Error, &text);
        }
        EndpointStatus::Creating => {
            ui.weak("Starting the container and downloading the model. This takes several minutes");
        }
        _ => {
            if let Some(why) = &there.failure {
                message_ui(ui, Tone::Warning, why);
            }
        }
    }
}

/// When the endpoint is deleted, and what is deleted with it.
fn deletion_ui(ui: &mut Ui, state: &State, endpoint: &KnownEndpoint, commands: &mut Commands) {
    if let Some(deletion) = &endpoint.deletion {
        done_ui(ui, deletion);
    }
    if let Some(record) = endpoint.record.as_ref().filter(|_| endpoint.is_at_our_cost()) {
        end_ui(ui, endpoint, record, commands);
    }
    let goes = endpoint.goes_with_it();
    if goes.is_empty() {
        return;
    }
    ui.add_space(4.0);
    if state.remote.endpoints.confirming.as_ref() != Some(&endpoint.id) {
        delete_endpoint_button(ui, endpoint)
            .on_click(commands, || EndpointsCommand::ConfirmDeletion(endpoint.id.clone()));
        return;
    }
    banner_ui(ui, Tone::Warning, "This will be deleted:", |ui| {
        for what in &goes {
            wrapped_ui(ui, format!("•  the {what}"));
        }
        ui.add_space(2.0);
        if let Some(model) = endpoint.model_that_stays() {
            let text = format!("The model {model} is kept: it was not created for this endpoint and is not billed");
            note_ui(ui, text);
        }
        if endpoint.record.is_none() {
            let text = "Not deployed from this computer; make sure it is not in use";
            wrapped_ui(ui, text);
        }
        ui.add_space(4.0);
        ui.horizontal(|ui| {
            command_button_ui(ui, "Delete it", commands, || EndpointsCommand::Delete(endpoint.id.clone()));
            command_button_ui(ui, "Keep it", commands, || EndpointsCommand::Keep);
        });
    });
}

/// The results of the last deletion, line by line.
fn done_ui(ui: &mut Ui, deletion: &Deleted) {
    let (tone, message) = if deletion.kept.is_empty() {
        (Tone::Hint, "Deleted:")
    } else {
        (Tone::Warning, "Not everything was deleted:")
    };
    banner_ui(ui, tone, message, |ui| {
        for what in &deletion.deleted {
            wrapped_ui(ui, format!("✓  {what}"));
        }
        for (what, why) in &deletion.kept {
            wrapped_ui(ui, format!("✗  Kept: {what}: {why}"));
        }
    });
}

/// The buttons that predict with this endpoint.
fn predict_here_ui(ui: &mut Ui, endpoint: &KnownEndpoint, commands: &mut Commands) {
    let EndpointId { sagemaker, name } = &endpoint.id;
    ui.horizontal(|ui| {
        let predict = ui
            .button("Predict here")
            .on_hover_text("Sends only the image in view and images that you predict to this endpoint");
        if predict.clicked() {
            let model = RemoteModel::at_endpoint(name.as_str(), sagemaker.clone());
            commands.push(InferenceCommand::PredictAt(Some(Box::new(model))));
        }
        let other = ui.button("Predict here with options…").on_hover_text("Request format and response mapping");
        if other.clicked() {
            let model = RemoteModel::at_endpoint(name.as_str(), sagemaker.clone());
            commands.push(InferenceCommand::EditRemoteModel(Box::new(model)));
        }
    });
}

/// When Spotcheck deletes it, and buttons for another time.
fn end_ui(ui: &mut Ui, endpoint: &KnownEndpoint, record: &EndpointRecord, commands: &mut Commands) {
    let text = endpoint_end_text(endpoint, now_ms());
    ui.label(match record.delete_at_ms {
        Some(at) if at > now_ms() && endpoint.undeleted.is_none() => format!("Will be {text}"),
        _ => capitalized(&text),
    });
    if record.delete_at_ms.is_some() {
        ui.weak("If Spotcheck is running at that time, otherwise at its next start");
    }
    ui.horizontal_wrapped(|ui| {
        let from = record.delete_at_ms.unwrap_or_else(now_ms).max(now_ms());
        let mut set = |at: Option<i64>| {
            commands.push(EndpointsCommand::SetDeletionTime(endpoint.id.clone(), at));
        };
        for hours in LATER_H {
            let label = match record.delete_at_ms {
                Some(_) => format!("{hours} h later"),
                None => format!("In {hours} h"),
            };
            if ui.button(label).clicked() {
                set(Some(from + hours * HOUR_MS));
            }
        }
        if record.delete_at_ms.is_some() {
            let never = ui.button("No automatic deletion");
            let never = never.on_hover_text("Billed until it is deleted");
            if never.clicked() {
                set(None);
            }
        }
    });
}

/// The log is read only on request. CloudWatch keeps it as long as configured, even after the endpoint is deleted.
fn log_ui(ui: &mut Ui, endpoint: &KnownEndpoint, commands: &mut Commands) {
    ui.add_space(4.0);
    let has_failed = endpoint.presence.status() == Some(EndpointStatus::Failed);
    CollapsingHeader::new("Container log")
        // An endpoint that fails while its page is shown opens the log.
        .id_salt(("log", has_failed))
        .default_open(has_failed)
        .show(ui, |ui| {
            let label = match &endpoint.log {
                Loadable::NotLoaded => "Read the log",
                Loadable::Loading(_) => {
                    ui.spinner();
                    return;
                }
                Loadable::Ready(lines) => {
                    log_lines_ui(ui, lines);
                    "Read again"
                }
                Loadable::Failed(why) => {
                    message_ui(ui, Tone::Error, why.message());
                    "Retry"
                }
            };
            command_button_ui(ui, label, commands, || EndpointsCommand::ReadLog(endpoint.id.clone()));
        });
}

fn facts_ui(ui: &mut Ui, endpoint: &KnownEndpoint) {
    ui.add_space(4.0);
    CollapsingHeader::new("Details").default_open(true).show(ui, |ui| {
        key_value_ui(ui, "Region", endpoint.id.region());
        let who = endpoint.id.sagemaker.credentials.to_string();
        key_value_ui(ui, "Credentials", &who);
        if let Some(config) = endpoint.config() {
            key_value_ui(ui, "Model", &config.model_name);
            key_value_ui(ui, "Configuration", &config.name);
            key_value_ui(ui, "Instances", &config.instances_text());
            if let Some(version) = &config.ami_version {
                key_value_ui(ui, "AMI", version);
            }
        }
        let Some(there) = endpoint.presence.endpoint() else {
            return;
        };
        for variant in &there.variants {
            if let Some(image) = variant.image() {
                key_value_ui(ui, "Container", image);
            }
        }
        key_value_ui(ui, "Created", &Utc::from_ms(there.created_ms).to_string());
        key_value_ui(ui, "Last modified", &Utc::from_ms(there.modified_ms).to_string());
        let log = format!("/aws/sagemaker/Endpoints/{}", there.name);
        key_value_ui(ui, "Log", &log);
    });
}
