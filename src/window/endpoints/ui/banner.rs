//! The banner at the top: each billed endpoint that was deployed from this computer.

use std::time::Duration;

use eframe::egui::{Align, Frame, Label, Layout, Margin, Panel, Stroke, Ui, vec2};

use crate::sagemaker::spec::endpoint::EndpointStatus;
use crate::tasks::now_ms;
use crate::window::state::{Action, Commands, EndpointsCommand, KnownEndpoint, State};
use crate::window::ui::theme;
use crate::window::ui::widgets::{
    command_button_ui, delete_endpoint_button, endpoint_cost_text, endpoint_end_text, endpoint_sign, endpoint_word,
};

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
        ui.add(Label::new(text).wrap());
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
                ui.add(Label::new(text).truncate());
            });
        });
    });
}

fn buttons_ui(ui: &mut Ui, endpoint: &KnownEndpoint, commands: &mut Commands) {
    let name = &endpoint.id.name;
    let show = ui.button("Show");
    if show.clicked() {
        commands.push(EndpointsCommand::Open(endpoint.id.clone()));
    }
    show.accessible_name(format!("Show the endpoint {name}"));
    let delete = delete_endpoint_button(ui, endpoint);
    if delete.clicked() {
        commands.push(EndpointsCommand::ConfirmDeletion(endpoint.id.clone()));
    }
    delete.accessible_name(format!("Delete the endpoint {name}…"));
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
