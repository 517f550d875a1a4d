//! The real-time endpoints of an account: their list, their cost and deletion time as text, and the banner for those
//! that are billed.

mod page;

use std::time::Duration;

use eframe::egui::{Margin, Panel};

use crate::domain::S3Access;
use crate::sagemaker::spec::endpoint::{Endpoint, EndpointStatus};
use crate::sagemaker::spec::transform::human_usd;
use crate::tasks::{clock_text, now_ms};
use crate::window::remote::ui::{EmptyPage, ListMemory, ListWords, ResourceUi, row_ui};
use crate::window::s3::ui::sign_in::duration_text;
use crate::window::state::{EndpointId, EndpointPresence, Endpoints, EndpointsCommand, KnownEndpoint, RemoteCommand};
use crate::window::ui::prelude::*;

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
        row.on_hover_text(&word).on_click(commands, || RemoteCommand::Open(self.id.clone()));
    }

    fn row_ui(ui: &mut Ui, state: &State, _: &S3Access, row: &Endpoint, commands: &mut Commands) {
        let Endpoints { all, listed_in: Some(sagemaker), .. } = &state.remote.endpoints else {
            return;
        };
        let id = EndpointId { sagemaker: sagemaker.clone(), name: row.name.clone() };
        let word = row.status.to_string();
        let is_ours = all.get(&id).is_some_and(|known| known.record.is_some());
        let hover = if is_ours { format!("{word}, deployed from this computer") } else { word.clone() };
        let text = ago_text(row.created_ms);
        let row = endpoint_row_ui(ui, state, &id, (endpoint_sign(row.status), &word), &text);
        row.on_hover_text(hover).on_click(commands, || RemoteCommand::Open(id));
    }

    fn page_ui(&self, ui: &mut Ui, state: &State, _: &mut EndpointsMemory, commands: &mut Commands) {
        page::page_ui(ui, state, self, commands);
    }
}

fn endpoint_row_ui(ui: &mut Ui, state: &State, id: &EndpointId, (sign, word): (&str, &str), text: &str) -> Response {
    let is_open = state.remote.endpoints.all.open.as_ref() == Some(id);
    row_ui(ui, is_open, format!("{sign} {}", id.name), text)
        .on_hover_text(&id.name)
        .accessible_name(format!("Endpoint {}, {word}", id.name))
}

/// A sign, so that not only color distinguishes statuses.
pub(crate) fn endpoint_sign(status: EndpointStatus) -> &'static str {
    match status {
        EndpointStatus::InService => "✓",
        EndpointStatus::Failed | EndpointStatus::UpdateRollbackFailed => "✗",
        EndpointStatus::OutOfService | EndpointStatus::Deleting => "■",
        EndpointStatus::Creating
        | EndpointStatus::Updating
        | EndpointStatus::SystemUpdating
        | EndpointStatus::RollingBack => "▶",
    }
}

/// SageMaker's status, such as `InService`, or our own words if SageMaker gives none.
pub(crate) fn endpoint_word(endpoint: &KnownEndpoint) -> String {
    match &endpoint.presence {
        _ if endpoint.deleting.is_some() => "being deleted".to_owned(),
        EndpointPresence::Present(there) => there.status.to_string(),
        EndpointPresence::Absent if endpoint.deletion.is_some() => "deleted".to_owned(),
        EndpointPresence::Absent => "gone".to_owned(),
        EndpointPresence::Unknown if endpoint.watch.trouble.is_some() || endpoint.watch.failure.is_some() => {
            "could not be checked".to_owned()
        }
        EndpointPresence::Unknown if endpoint.watch.task.is_some() => "being checked".to_owned(),
        EndpointPresence::Unknown => "not checked".to_owned(),
    }
}

/// “about $0.42 so far at $0.74 per hour”.
pub(crate) fn endpoint_cost_text(endpoint: &KnownEndpoint, now_ms: i64) -> String {
    match endpoint.cost_usd(now_ms) {
        _ if endpoint.is_serverless() => "billed only for requests".to_owned(),
        Some((so_far, hour)) => {
            let so_far = if so_far < 0.01 { "less than $0.01".to_owned() } else { format!("about ${so_far:.2}") };
            format!("{so_far} so far at {} per hour", human_usd(hour))
        }
        None => "cost unknown: no price given".to_owned(),
    }
}

/// “deleted at 18:30 (in 2 h 10 min)”.
pub(crate) fn endpoint_end_text(endpoint: &KnownEndpoint, now_ms: i64) -> String {
    let record = endpoint.record.as_ref();
    match record.and_then(|record| record.delete_at_ms) {
        _ if endpoint.undeleted.is_some() => "could not be deleted yet; retrying".to_owned(),
        None => "no automatic deletion".to_owned(),
        Some(at) if at <= now_ms => "due for deletion".to_owned(),
        Some(at) => format!("deleted {} (in {})", clock_text(at, now_ms), duration_text(at - now_ms)),
    }
}

/// A button that deletes after confirmation.
pub(crate) fn delete_endpoint_button(ui: &mut Ui, endpoint: &KnownEndpoint) -> Response {
    let is_free = endpoint.deleting.is_none();
    ui.add_enabled(is_free, Button::new("Delete…"))
        .on_hover_text("Lists what is deleted and what is kept before deleting")
}

/// How often the cost is redrawn.
const PERIOD: Duration = Duration::from_secs(10);
/// Below this width, in points, the buttons are below the text.
const ONE_LINE_WIDTH: f32 = 900.0;
const BUTTONS_WIDTH: f32 = 140.0;
/// The number of endpoints shown; further ones are only counted, because the image needs the space.
const MOST: usize = 3;

pub(crate) fn endpoints_banner_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    let count = state.endpoints_at_our_cost().count();
    ui.ctx().request_repaint_after(PERIOD);
    let visuals = ui.visuals();
    let frame = Frame::side_top_panel(ui.style())
        .fill(theme::raised_fill(visuals))
        .stroke(Stroke::new(1.0, visuals.warn_fg_color))
        .inner_margin(Margin::symmetric(8, 4));
    Panel::top("endpoints").frame(frame).show(ui, |ui| {
        for endpoint in state.endpoints_at_our_cost().take(MOST) {
            line_ui(ui, endpoint, commands);
        }
        if count > MOST {
            let text = match count - MOST {
                1 => "and 1 more billed endpoint".to_owned(),
                more => format!("and {more} more billed endpoints"),
            };
            ui.horizontal(|ui| {
                ui.label(text);
                command_button_ui(ui, "Show all", commands, || Action::Endpoints);
            });
        }
    });
}

fn line_ui(ui: &mut Ui, endpoint: &KnownEndpoint, commands: &mut Commands) {
    let text = banner_text(endpoint, now_ms());
    if ui.available_width() < ONE_LINE_WIDTH {
        wrapped_ui(ui, text);
        ui.horizontal(|ui| buttons_ui(ui, endpoint, commands));
        return;
    }
    ui.horizontal(|ui| {
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            // From the right, so the last one comes first.
            ui.allocate_ui_with_layout(
                vec2(BUTTONS_WIDTH, ui.available_height()),
                Layout::left_to_right(Align::Center),
                |ui| buttons_ui(ui, endpoint, commands),
            );
            ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                truncated_ui(ui, text);
            });
        });
    });
}

fn buttons_ui(ui: &mut Ui, endpoint: &KnownEndpoint, commands: &mut Commands) {
    let name = &endpoint.id.name;
    ui.button("Show")
        .on_click(commands, || RemoteCommand::Open(endpoint.id.clone()))
        .accessible_name(format!("Show the endpoint {name}"));
    delete_endpoint_button(ui, endpoint)
        .on_click(commands, || EndpointsCommand::ConfirmDeletion(endpoint.id.clone()))
        .accessible_name(format!("Delete the endpoint {name}…"));
}

/// “⚠ Endpoint cats: `InService`, about $0.42 so far at $0.74 per hour, deleted at 18:30 (in 2 h 10 min)”.
fn banner_text(endpoint: &KnownEndpoint, now_ms: i64) -> String {
    let is_wrong = endpoint.undeleted.is_some() || endpoint.watch.trouble.is_some() || endpoint.watch.failure.is_some();
    let sign = match endpoint.presence.status() {
        _ if is_wrong => "⚠",
        Some(EndpointStatus::InService) | None => "",
        Some(status) => endpoint_sign(status),
    };
    let name = &endpoint.id.name;
    let mut parts = vec![format!("Endpoint {name}: {}", endpoint_word(endpoint))];
    if endpoint.record.is_some() {
        // AWS does not document whether instances that never came into service are billed.
        if endpoint.presence.status() != Some(EndpointStatus::Failed) {
            parts.push(endpoint_cost_text(endpoint, now_ms));
        }
        parts.push(endpoint_end_text(endpoint, now_ms));
    }
    let text = parts.join(", ");
    if sign.is_empty() { text } else { format!("{sign} {text}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::state::{EndpointPresence, Failure};

    #[test]
    fn banner_shows_cost_and_deletion_time() {
        const HOUR: i64 = 3_600_000;
        let mut endpoint = KnownEndpoint::example();
        let now = 10 * HOUR;
        let record = endpoint.record.as_mut().unwrap();
        record.created_ms = now - 2 * HOUR;
        record.delete_at_ms = None;
        assert_eq!(
            banner_text(&endpoint, now),
            "Endpoint cats: not checked, cost unknown: no price given, no automatic deletion"
        );
        let record = endpoint.record.as_mut().unwrap();
        record.usd_per_hour = Some(0.37);
        record.config.instance_count = 2;
        record.delete_at_ms = Some(now + HOUR);
        endpoint.presence = EndpointPresence::example(EndpointStatus::InService);
        let text = banner_text(&endpoint, now);
        let begin = "Endpoint cats: InService, about $1.48 so far at $0.74 per hour, deleted ";
        assert!(text.starts_with(begin), "{text}");
        assert!(text.ends_with(" (in 1 h 0 min)"), "{text}");
        endpoint.presence = EndpointPresence::example(EndpointStatus::Failed);
        let text = banner_text(&endpoint, now);
        assert!(text.starts_with("✗ Endpoint cats: Failed, "), "{text}");
        endpoint.presence = EndpointPresence::Unknown;
        endpoint.watch.trouble = Some("connection refused".to_owned());
        endpoint.undeleted = Some(Failure::Cancelled);
        assert_eq!(
            banner_text(&endpoint, now),
            "⚠ Endpoint cats: could not be checked, about $1.48 so far at $0.74 per hour, could not be deleted yet; \
            retrying"
        );
    }
}
