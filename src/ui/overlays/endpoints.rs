//! The real-time endpoints of an account: their list, and the page of one of them.

mod page;

use eframe::egui::{
    self, Button, ComboBox, Key, Response, RichText, ScrollArea, TextEdit, Ui, vec2,
};

use super::super::widgets::{ago_text, endpoint_sign, endpoint_word, renew_in_time};
use super::list_and_page::{EmptyPage, columns_ui, dialog_ui, list_head_ui};
use super::open_s3::access::{AccessMemory, access_ui};
use crate::domain::{EndpointQuery, EndpointStatus, EndpointSummary};
use crate::state::{
    Action, Command, EndpointId, EndpointSight, EndpointsCommand, KnownEndpoint, Overlay, Queue,
    State,
};

/// Drafts of the fields.
#[derive(Default)]
pub(in super::super) struct EndpointsMemory {
    name: String,
    status: Option<EndpointStatus>,
    access: AccessMemory,
}

pub(in super::super) fn endpoints_ui(
    ctx: &egui::Context,
    state: &State,
    memory: &mut EndpointsMemory,
    commands: &mut Queue<Command>,
) {
    if state.overlay != Overlay::Endpoints {
        return;
    }
    renew_in_time(ctx, &state.s3.access, state, commands);
    dialog_ui(
        ctx,
        "endpoint list",
        "Endpoints of SageMaker",
        commands,
        |ui, height, commands| contents_ui(ui, state, memory, height, commands),
    );
}

fn contents_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut EndpointsMemory,
    height: f32,
    commands: &mut Queue<Command>,
) {
    let nothing = EmptyPage {
        title: "No endpoint is chosen",
        advice: "List the endpoints and choose one, wherever it was deployed",
    };
    let page = state.remote.endpoints.open_endpoint().map(|endpoint| {
        |ui: &mut Ui, height: f32, context: &mut (&mut EndpointsMemory, &mut Queue<Command>)| {
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

fn list_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut EndpointsMemory,
    height: f32,
    commands: &mut Queue<Command>,
) {
    let top = ui.cursor().top();
    access_ui(ui, state, &mut memory.access, commands);
    ui.add_space(6.0);
    filter_ui(ui, state, memory, commands);
    ui.add_space(4.0);
    let height = height - (ui.cursor().top() - top);
    ScrollArea::vertical()
        .id_salt("endpoints")
        .max_height(height)
        .min_scrolled_height(height)
        .auto_shrink([false, true])
        .show(ui, |ui| rows_ui(ui, state, commands));
}

const STATUSES: [Option<EndpointStatus>; 7] = [
    None,
    Some(EndpointStatus::InService),
    Some(EndpointStatus::Creating),
    Some(EndpointStatus::Updating),
    Some(EndpointStatus::Failed),
    Some(EndpointStatus::OutOfService),
    Some(EndpointStatus::Deleting),
];

fn filter_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut EndpointsMemory,
    commands: &mut Queue<Command>,
) {
    let field = TextEdit::singleline(&mut memory.name)
        .hint_text("Part of the name")
        .desired_width(f32::INFINITY);
    let field = ui.add(field);
    let mut is_wanted = field.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter));
    field.accessible_name("Part of the name of an endpoint");
    let list = &state.remote.endpoints.list;
    ui.horizontal_wrapped(|ui| {
        let text = |status: Option<EndpointStatus>| {
            status.map_or_else(|| "any status".to_owned(), |status| status.to_string())
        };
        let before = memory.status;
        let combo = ComboBox::from_id_salt("status of endpoints")
            .width(110.0)
            .selected_text(text(memory.status))
            .show_ui(ui, |ui| {
                for status in STATUSES {
                    ui.selectable_value(&mut memory.status, status, text(status));
                }
            });
        combo.response.accessible_name("Status of the endpoints");
        // Whoever has listed them once wants to see the others at once.
        is_wanted |= before != memory.status && list.asked.is_some();
        is_wanted |= ui.button("List endpoints").clicked();
        if list.task.is_some() {
            ui.spinner();
        }
    });
    if is_wanted {
        let name = memory.name.trim();
        commands.push(EndpointsCommand::List(EndpointQuery {
            name_contains: (!name.is_empty()).then(|| name.to_owned()),
            status: memory.status,
            page_token: None,
        }));
    }
}

fn rows_ui(ui: &mut Ui, state: &State, commands: &mut Queue<Command>) {
    let list = &state.remote.endpoints.list;
    known_ui(ui, state, commands);
    let unasked =
        "Nobody was asked yet: list the endpoints of the account and region you are signed in to";
    if list_head_ui(ui, state, list, unasked, commands).is_none() {
        return;
    }
    if list.is_known_to_be_empty() {
        ui.weak(format!(
            "There is no such endpoint in this account and region; “{}” makes one",
            Action::DeployEndpoint.label()
        ));
    }
    for endpoint in &list.rows {
        listed_ui(ui, state, endpoint, commands);
    }
    if list.next.is_some() {
        let more = ui.add_enabled(list.task.is_none(), Button::new("More endpoints"));
        if more.clicked() {
            commands.push(EndpointsCommand::ListMore);
        }
    }
}

/// Those that were deployed from here or opened, and are not in the list.
fn known_ui(ui: &mut Ui, state: &State, commands: &mut Queue<Command>) {
    let endpoints = &state.remote.endpoints;
    let region = endpoints.listed_in.as_ref();
    let region = region.and_then(|access| access.region.as_deref());
    let is_listed = |known: &&KnownEndpoint| {
        let mut listed = endpoints.list.rows.iter();
        region == Some(known.id.region()) && listed.any(|listed| listed.name == known.id.name)
    };
    // What is gone and leaves nothing is only shown as long as its page is.
    let matters = |known: &&KnownEndpoint| {
        known.record.is_some()
            || matches!(known.seen, EndpointSight::There(_))
            || endpoints.open.as_ref() == Some(&known.id)
    };
    let known = endpoints.known.iter().rev();
    let mut is_any = false;
    for known in known.filter(matters).filter(|known| !is_listed(known)) {
        if !is_any {
            ui.weak("Deployed or opened here");
        }
        is_any = true;
        let sign = known.seen.status().map_or("■", endpoint_sign);
        let word = endpoint_word(known);
        let row = row_ui(ui, state, &known.id, sign, &word, known.id.region());
        if row.on_hover_text(&word).clicked() {
            commands.push(EndpointsCommand::Open(known.id.clone()));
        }
    }
    if is_any {
        ui.separator();
    }
}

fn listed_ui(
    ui: &mut Ui,
    state: &State,
    endpoint: &EndpointSummary,
    commands: &mut Queue<Command>,
) {
    let Some(sagemaker) = &state.remote.endpoints.listed_in else {
        return;
    };
    let id = EndpointId {
        sagemaker: sagemaker.clone(),
        name: endpoint.name.clone(),
    };
    let word = endpoint.status.to_string();
    let sign = endpoint_sign(endpoint.status);
    let known = state.remote.endpoints.get(&id);
    let is_ours = known.is_some_and(|known| known.record.is_some());
    let hover = if is_ours {
        format!("{word}, deployed from this machine")
    } else {
        word.clone()
    };
    let row = row_ui(ui, state, &id, sign, &word, &ago_text(endpoint.created_ms));
    if row.on_hover_text(hover).clicked() {
        commands.push(EndpointsCommand::Open(id));
    }
}

fn row_ui(
    ui: &mut Ui,
    state: &State,
    id: &EndpointId,
    sign: &str,
    word: &str,
    text: &str,
) -> Response {
    let is_open = state.remote.endpoints.open.as_ref() == Some(id);
    let button = Button::selectable(is_open, format!("{sign} {}", id.name))
        .right_text(RichText::new(text).weak())
        .truncate()
        .min_size(vec2(ui.available_width(), 0.0));
    ui.add(button)
        .on_hover_text(&id.name)
        .accessible_name(format!("Endpoint {}, {word}", id.name))
}
