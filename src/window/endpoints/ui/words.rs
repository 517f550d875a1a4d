//! The cost and deletion time of endpoints, as text.

use eframe::egui::{Button, Response, Ui};

use crate::sagemaker::spec::endpoint::EndpointStatus;
use crate::sagemaker::spec::transform::human_usd;
use crate::tasks::clock_text;
use crate::window::s3::ui::sign_in::duration_text;
use crate::window::state::{EndpointPresence, KnownEndpoint};

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
