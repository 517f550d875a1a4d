//! Endpoints: listing them, and watching and deleting single ones.

pub(crate) mod auto_delete;

use std::sync::Arc;

use crate::aws::{AwsError, SageMaker};
use crate::domain::S3Access;
use crate::sagemaker::endpoints::{EndpointError, EndpointRecords};
use crate::sagemaker::jobs::read_prices;
use crate::sagemaker::log::endpoint_log_tail;
use crate::sagemaker::spec::Deleted;
use crate::sagemaker::spec::endpoint::{Endpoint, EndpointConfig, EndpointQuery, EndpointRecord};
use crate::sagemaker::spec::transform::SageMakerAccess;
use crate::sagemaker::{self, Poll};
use crate::tasks::{TaskControl, now_ms};
use crate::window::effects::{Effects, Shared};
use crate::window::remote::effects::trouble_text;
use crate::window::s3::effects::failure;
use crate::window::state::{DeletionCause, EndpointId, EndpointsEffect, EndpointsEvent, Failure, TaskId, Ticket};
use crate::window::{endpoints, remote};

pub(crate) fn carry_out(effects: &mut Effects, effect: EndpointsEffect) {
    let shared = &effects.shared;
    match effect {
        EndpointsEffect::Check { request, ticket } => {
            endpoints::form::effects::check(shared, *request, ticket);
        }
        EndpointsEffect::Deploy { plan, ticket } => endpoints::form::effects::start(shared, plan, ticket),
        EndpointsEffect::FollowRecords => effects.endpoints.start(shared),
        EndpointsEffect::List { access, query, ticket } => list(shared, access, query, ticket),
        EndpointsEffect::Watch { id, ticket } => {
            watch(shared, id, ticket);
        }
        EndpointsEffect::ReadLog { id, ticket } => {
            read_log(shared, id, ticket);
        }
        EndpointsEffect::Delete { id, cause, ticket } => delete(shared, id, cause, ticket),
        EndpointsEffect::SetDeletionTime { id, delete_at_ms } => {
            set_end(shared, id, delete_at_ms);
        }
    }
}

/// The number of log lines to read, a few screens; the rest is in CloudWatch.
const LOG_LINES: u32 = 300;

pub(crate) fn records(shared: &Shared) -> EndpointRecords {
    EndpointRecords::in_folder(shared.dirs.endpoints())
}

fn list(shared: &Arc<Shared>, access: S3Access, query: EndpointQuery, ticket: Ticket) {
    let is_first = query.page_token.is_none();
    remote::effects::run_once(
        shared,
        "list endpoints",
        (access, ticket),
        failure,
        move |shared, access, ticket| {
            let sagemaker = shared.aws.sagemaker(&SageMakerAccess::from(access));
            let region = sagemaker.region(Some(&ticket.control))?;
            let page = sagemaker.list_endpoints(&query, Some(&ticket.control))?;
            Ok((SageMakerAccess { region: Some(region), credentials: access.credentials.clone() }, page))
        },
        move |_, task, result| EndpointsEvent::Listed { task, is_first, result },
    );
}

/// Runs one request about an endpoint as a task.
fn run_once<T: Send + 'static>(
    shared: &Arc<Shared>,
    name: &str,
    (id, ticket): (EndpointId, Ticket),
    work: impl FnOnce(&Shared, &EndpointId, &Ticket) -> Result<T, EndpointError> + Send + 'static,
    event: impl FnOnce(EndpointId, TaskId, Result<T, Failure>) -> EndpointsEvent + Clone + Send + 'static,
) {
    remote::effects::run_once(shared, name, (id, ticket), failure_of, work, event);
}

/// Polls the endpoint until it no longer changes by itself.
fn watch(shared: &Arc<Shared>, id: EndpointId, ticket: Ticket) {
    run_once(
        shared,
        "watch an endpoint",
        (id, ticket),
        |shared, id, ticket| Ok(follow(shared, id, ticket)?),
        EndpointsEvent::WatchEnded,
    );
}

fn follow(shared: &Shared, id: &EndpointId, ticket: &Ticket) -> Result<(), AwsError> {
    let (task, control) = (ticket.id, &ticket.control);
    let sagemaker = shared.aws.sagemaker(&id.sagemaker);
    let mut known = None;
    let watched = sagemaker::endpoints::watch(&sagemaker, &id.name, None, control, |poll| match poll {
        Poll::Seen(endpoint) => {
            if known.is_none() {
                let config = config_of(&sagemaker, endpoint.as_ref(), control);
                known = config.map(|config| (price_of(shared, id, &config), config));
            }
            if let Some(endpoint) = endpoint {
                control.set_step(endpoint.status.to_string());
            }
            let is_open = shared.report(EndpointsEvent::Seen {
                id: id.clone(),
                task,
                endpoint: endpoint.clone().map(Box::new),
                usd_per_hour: known.as_ref().and_then(|(price, _)| *price),
                config: known.as_ref().map(|(_, config)| config.clone()),
            });
            if !is_open {
                control.cancel();
            }
        }
        Poll::Trouble { why, again_in } => {
            shared.report(EndpointsEvent::Trouble { id: id.clone(), task, text: trouble_text(why, again_in) });
        }
    });
    watched.map(drop)
}

/// The configuration of an endpoint; `None` if it cannot be read, because the permission to list endpoints may not
/// include it.
fn config_of(sagemaker: &SageMaker, endpoint: Option<&Endpoint>, control: &TaskControl) -> Option<EndpointConfig> {
    let name = endpoint?.config_name.as_deref()?;
    let config = sagemaker.describe_endpoint_config(name, Some(control));
    config.ok().flatten()
}

/// The price from the price table; `None` if that cannot be read, which is reported when an endpoint is deployed.
fn price_of(shared: &Shared, id: &EndpointId, config: &EndpointConfig) -> Option<f64> {
    let prices = read_prices(&shared.dirs.prices()).ok()?;
    let price = prices.find(config.instance_type.as_deref()?, Some(id.region()))?;
    Some(price.usd_per_hour)
}

fn read_log(shared: &Arc<Shared>, id: EndpointId, ticket: Ticket) {
    run_once(
        shared,
        "read the log of an endpoint",
        (id, ticket),
        |shared, id, ticket| {
            let sagemaker = shared.aws.sagemaker(&id.sagemaker);
            let lines = endpoint_log_tail(&sagemaker, &id.name, LOG_LINES, &ticket.control);
            Ok(lines?)
        },
        EndpointsEvent::LogRead,
    );
}

/// Deletes an endpoint. If that fails, it is due from now on and retried.
fn delete(shared: &Arc<Shared>, id: EndpointId, cause: DeletionCause, ticket: Ticket) {
    run_once(
        shared,
        "delete an endpoint",
        (id, ticket),
        move |shared, id, ticket| delete_now(shared, id, cause, &ticket.control),
        move |id, task, result| EndpointsEvent::Deleted { id, task, cause, result },
    );
}

fn delete_now(
    shared: &Shared,
    id: &EndpointId,
    cause: DeletionCause,
    control: &TaskControl,
) -> Result<Deleted, EndpointError> {
    let records = records(shared);
    let requested = match cause {
        DeletionCause::UserRequest => records.find(&id.name, id.region()).ok().flatten(),
        DeletionCause::TimeIsOver => None,
    };
    if let Some(record) = &requested {
        records.write(&EndpointRecord { delete_at_ms: Some(now_ms()), ..record.clone() })?;
    }
    let done = sagemaker::endpoints::delete(&shared.aws, &records, &id.sagemaker, &id.name, false, control);
    match done {
        // Another program deleted it first.
        Err(EndpointError::NotThere { name, .. }) => {
            Ok(Deleted { deleted: vec![format!("endpoint {name}")], kept: Vec::new() })
        }
        Err(error) => {
            // A canceled deletion keeps the earlier deletion time.
            let is_cancelled = matches!(error, EndpointError::Cancelled);
            if let (true, Some(record)) = (is_cancelled, &requested) {
                records.write(record)?;
            }
            Err(error)
        }
        done => done,
    }
}

fn failure_of(shared: &Shared, id: &EndpointId, error: EndpointError) -> Failure {
    match error {
        EndpointError::Cancelled => Failure::Cancelled,
        EndpointError::Aws(error) => failure(shared, &S3Access::from(&id.sagemaker), error),
        error => Failure::new(error.to_string()),
    }
}

/// Sets the time of the automatic deletion.
fn set_end(shared: &Arc<Shared>, id: EndpointId, delete_at_ms: Option<i64>) {
    shared.spawn("save the deletion time of an endpoint", move |shared| {
        let records = records(shared);
        let Ok(Some(record)) = records.find(&id.name, id.region()) else {
            return shared.report_problem(format!(
                "The endpoint {} was not deployed from this computer, so Spotcheck does not delete it automatically",
                id.name
            ));
        };
        let record = EndpointRecord { delete_at_ms, ..record };
        if let Err(error) = records.write(&record) {
            shared.report_problem(format!("Could not save the deletion time of endpoint {}: {error}", id.name));
        }
    });
}
