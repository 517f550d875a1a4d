//! The real-time endpoints of an account: their list, and the page of a single one.

pub(crate) mod banner;
mod page;
pub(crate) mod words;

use eframe::egui::{Response, Ui};

use crate::domain::S3Access;
use crate::sagemaker::spec::endpoint::{EndpointStatus, EndpointSummary};
use crate::window::remote::ui::{EmptyPage, ListCommand, ListMemory, ListWords, ResourceUi, row_ui};
use crate::window::state::{
    Command, Commands, EndpointId, EndpointPresence, Endpoints, EndpointsCommand, KnownEndpoint, State,
};
use crate::window::ui::widgets::{ago_text, endpoint_sign, endpoint_word};

pub(crate) type EndpointsMemory = ListMemory<EndpointStatus>;

impl ResourceUi for KnownEndpoint {
    type Memory = EndpointsMemory;

    const TITLE: &'static str = "SageMaker endpoints";
    const NOTHING_OPEN: EmptyPage =
        EmptyPage { title: "No endpoint selected", advice: "List the endpoints and choose one" };
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
        above: "Deployed or opened here",
        empty: "No matching endpoint in this account and region; to create one, choose “Deploy to an endpoint…”",
    };

    fn list_memory(memory: &mut EndpointsMemory) -> &mut ListMemory<EndpointStatus> {
        memory
    }

    fn command(command: ListCommand<EndpointStatus>) -> Command {
        Command::Endpoints(match command {
            ListCommand::Read(query) => EndpointsCommand::List(query),
            ListCommand::ReadMore => EndpointsCommand::ListMore,
            ListCommand::Close => EndpointsCommand::Close,
        })
    }

    /// A completely deleted endpoint is listed only while its page is shown.
    fn is_above_list(&self, state: &State) -> bool {
        let Endpoints { all, listed_in, .. } = &state.remote.endpoints;
        let region = listed_in.as_ref().and_then(|access| access.region.as_deref());
        let is_listed =
            region == Some(self.id.region()) && all.list.rows.iter().any(|listed| listed.name == self.id.name);
        let matters = self.record.is_some()
            || matches!(self.presence, EndpointPresence::Present(_))
            || all.open.as_ref() == Some(&self.id);
        matters && !is_listed
    }

    fn known_row_ui(&self, ui: &mut Ui, state: &State, commands: &mut Commands) {
        let sign = self.presence.status().map_or("■", endpoint_sign);
        let word = endpoint_word(self);
        let row = endpoint_row_ui(ui, state, &self.id, (sign, &word), self.id.region());
        if row.on_hover_text(&word).clicked() {
            commands.push(EndpointsCommand::Open(self.id.clone()));
        }
    }

    fn row_ui(ui: &mut Ui, state: &State, _: &S3Access, row: &EndpointSummary, commands: &mut Commands) {
        let Endpoints { all, listed_in: Some(sagemaker), .. } = &state.remote.endpoints else {
            return;
        };
        let id = EndpointId { sagemaker: sagemaker.clone(), name: row.name.clone() };
        let word = row.status.to_string();
        let is_ours = all.get(&id).is_some_and(|known| known.record.is_some());
        let hover = if is_ours { format!("{word}, deployed from this computer") } else { word.clone() };
        let text = ago_text(row.created_ms);
        let row = endpoint_row_ui(ui, state, &id, (endpoint_sign(row.status), &word), &text);
        if row.on_hover_text(hover).clicked() {
            commands.push(EndpointsCommand::Open(id));
        }
    }

    fn page_ui(&self, ui: &mut Ui, state: &State, _: &mut EndpointsMemory, height: f32, commands: &mut Commands) {
        page::page_ui(ui, state, self, height, commands);
    }
}

fn endpoint_row_ui(ui: &mut Ui, state: &State, id: &EndpointId, (sign, word): (&str, &str), text: &str) -> Response {
    let is_open = state.remote.endpoints.all.open.as_ref() == Some(id);
    row_ui(ui, is_open, format!("{sign} {}", id.name), text)
        .on_hover_text(&id.name)
        .accessible_name(format!("Endpoint {}, {word}", id.name))
}
