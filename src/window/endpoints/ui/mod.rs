//! The real-time endpoints of an account: their list, and the page of a single one.

pub(crate) mod banner;
mod page;
pub(crate) mod words;

use eframe::egui::{Context, Response, Ui};

use crate::sagemaker::spec::endpoint::{EndpointStatus, EndpointSummary};
use crate::window::remote::ui::{EmptyPage, ListMemory, ListRequest, ListWords, columns_ui, list_dialog_ui, row_ui};
use crate::window::state::{Commands, EndpointId, EndpointPresence, EndpointsCommand, KnownEndpoint, Overlay, State};
use crate::window::ui::widgets::{ago_text, endpoint_sign, endpoint_word, renew_in_time};

pub(crate) type EndpointsMemory = ListMemory<EndpointStatus>;

pub(crate) fn endpoints_ui(ctx: &Context, state: &State, memory: &mut EndpointsMemory, commands: &mut Commands) {
    if state.overlay != Overlay::Endpoints {
        return;
    }
    renew_in_time(ctx, &state.s3.access, state, commands);
    list_dialog_ui(ctx, "endpoint list", "SageMaker endpoints", commands, |ui, height, commands| {
        contents_ui(ui, state, memory, height, commands);
    });
}

fn contents_ui(ui: &mut Ui, state: &State, memory: &mut EndpointsMemory, height: f32, commands: &mut Commands) {
    let nothing = EmptyPage { title: "No endpoint selected", advice: "List the endpoints and choose one" };
    let page = state.remote.endpoints.open_endpoint().map(|endpoint| {
        |ui: &mut Ui, height: f32, context: &mut (&mut EndpointsMemory, &mut Commands)| {
            let (_, commands) = context;
            page::page_ui(ui, state, endpoint, height, commands);
        }
    });
    let goes_back = columns_ui(
        ui,
        height,
        "All endpoints",
        &nothing,
        &mut (memory, &mut *commands),
        |ui, height, (memory, commands)| list_ui(ui, state, memory, height, commands),
        page,
    );
    if goes_back {
        commands.push(EndpointsCommand::Close);
    }
}

const WORDS: ListWords<EndpointStatus> = ListWords {
    things: "endpoints",
    name_hint: "Part of the name",
    name_label: "Part of an endpoint name",
    statuses: &[
        EndpointStatus::InService,
        EndpointStatus::Creating,
        EndpointStatus::Updating,
        EndpointStatus::Failed,
        EndpointStatus::OutOfService,
        EndpointStatus::Deleting,
    ],
    word: |status| status.to_string(),
    empty: "No matching endpoint in this account and region; to create one, choose “Deploy to an endpoint…”",
};

fn list_ui(ui: &mut Ui, state: &State, memory: &mut EndpointsMemory, height: f32, commands: &mut Commands) {
    let request = WORDS.list_ui(
        ui,
        state,
        memory,
        &state.remote.endpoints.list,
        height,
        commands,
        |_, _, _| {},
        |ui, commands| known_ui(ui, state, commands),
        |ui, _, endpoint, commands| listed_ui(ui, state, endpoint, commands),
    );
    match request {
        Some(ListRequest::Read(query)) => commands.push(EndpointsCommand::List(query)),
        Some(ListRequest::ReadMore) => commands.push(EndpointsCommand::ListMore),
        None => {}
    }
}

/// Endpoints that were deployed from here or opened, and are not in the list.
fn known_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    let endpoints = &state.remote.endpoints;
    let region = endpoints.listed_in.as_ref();
    let region = region.and_then(|access| access.region.as_deref());
    let is_listed = |known: &&KnownEndpoint| {
        let mut listed = endpoints.list.rows.iter();
        region == Some(known.id.region()) && listed.any(|listed| listed.name == known.id.name)
    };
    // A completely deleted endpoint is listed only while its page is shown.
    let matters = |known: &&KnownEndpoint| {
        known.record.is_some()
            || matches!(known.presence, EndpointPresence::Present(_))
            || endpoints.open.as_ref() == Some(&known.id)
    };
    let known = endpoints.known.iter().rev();
    let mut is_any = false;
    for known in known.filter(matters).filter(|known| !is_listed(known)) {
        if !is_any {
            ui.weak("Deployed or opened here");
        }
        is_any = true;
        let sign = known.presence.status().map_or("■", endpoint_sign);
        let word = endpoint_word(known);
        let row = endpoint_row_ui(ui, state, &known.id, (sign, &word), known.id.region());
        if row.on_hover_text(&word).clicked() {
            commands.push(EndpointsCommand::Open(known.id.clone()));
        }
    }
    if is_any {
        ui.separator();
    }
}

fn listed_ui(ui: &mut Ui, state: &State, endpoint: &EndpointSummary, commands: &mut Commands) {
    let Some(sagemaker) = &state.remote.endpoints.listed_in else {
        return;
    };
    let id = EndpointId { sagemaker: sagemaker.clone(), name: endpoint.name.clone() };
    let word = endpoint.status.to_string();
    let sign = endpoint_sign(endpoint.status);
    let known = state.remote.endpoints.get(&id);
    let is_ours = known.is_some_and(|known| known.record.is_some());
    let hover = if is_ours { format!("{word}, deployed from this computer") } else { word.clone() };
    let row = endpoint_row_ui(ui, state, &id, (sign, &word), &ago_text(endpoint.created_ms));
    if row.on_hover_text(hover).clicked() {
        commands.push(EndpointsCommand::Open(id));
    }
}

fn endpoint_row_ui(ui: &mut Ui, state: &State, id: &EndpointId, (sign, word): (&str, &str), text: &str) -> Response {
    let is_open = state.remote.endpoints.open.as_ref() == Some(id);
    row_ui(ui, is_open, format!("{sign} {}", id.name), text)
        .on_hover_text(&id.name)
        .accessible_name(format!("Endpoint {}, {word}", id.name))
}
