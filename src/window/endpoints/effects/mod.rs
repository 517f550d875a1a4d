//! Endpoints: listing, watching and deleting them, checking the form, and deploying from it.

pub(crate) mod auto_delete;

use std::sync::Arc;

use crate::aws::{AwsError, SageMaker};
use crate::sagemaker::endpoints::{DeployError, EndpointRecords, Leftovers, deploy, preflight};
use crate::sagemaker::jobs::read_prices;
use crate::sagemaker::log::endpoint_log_tail;
use crate::sagemaker::spec::Deleted;
use crate::sagemaker::spec::endpoint::{
    Endpoint, EndpointConfig, EndpointPage, EndpointPlan, EndpointQuery, EndpointRecord,
};
use crate::sagemaker::spec::transform::{Leftover, LogLine, SageMakerAccess};
use crate::sagemaker::{self, JobError, Poll};
use crate::tasks::{TaskControl, now_ms};
use crate::window::effects::{Effects, Shared};
use crate::window::remote;
use crate::window::remote::effects::{model_source, report_seen, report_trouble, run_once};
use crate::window::state::{
    DeletionCause, EndpointId, EndpointRequest, EndpointsEffect, EndpointsEvent, Failure, FormCheck, KnownEndpoint,
    RemoteEffect, RemoteEndpointsEffect, SeenEndpoint, Ticket,
};

pub(crate) fn carry_out(effects: &mut Effects, effect: EndpointsEffect) {
    let shared = &effects.shared;
    match effect {
        EndpointsEffect::Check { request, ticket } => {
            let checked = (request.access.clone(), *request, ticket);
            remote::effects::check(shared, "check an endpoint", checked, check_request, EndpointsEvent::Checked);
        }
        EndpointsEffect::Deploy { plan, ticket } => start(shared, plan, ticket),
        EndpointsEffect::FollowRecords => effects.endpoints.start(shared),
        EndpointsEffect::ReadLog(id, ticket) => {
            run_once(shared, "read the log of an endpoint", (id, ticket), read_log, EndpointsEvent::LogRead);
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

pub(crate) fn list_or_watch(shared: &Arc<Shared>, effect: RemoteEndpointsEffect) {
    match effect {
        RemoteEffect::List { access, query, ticket } => {
            remote::effects::list::<KnownEndpoint>(shared, "list endpoints", (&access, query, ticket), list_page);
        }
        RemoteEffect::Watch(id, ticket) => {
            remote::effects::watch::<KnownEndpoint>(shared, "watch an endpoint", (id, ticket), follow);
        }
    }
}

fn list_page(
    sagemaker: &SageMaker,
    query: &EndpointQuery,
    control: &TaskControl,
) -> Result<(EndpointPage, SageMakerAccess), AwsError> {
    let region = sagemaker.region(control)?;
    let page = sagemaker.list_endpoints(query, control)?;
    Ok((page, SageMakerAccess { region: Some(region), ..sagemaker.access() }))
}

/// Polls until the status of the endpoint is final. Its configuration is read once.
fn follow(shared: &Shared, id: &EndpointId, ticket: &Ticket) -> Result<(), JobError> {
    let control = &ticket.control;
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
            let (usd_per_hour, config) = known.clone().unzip();
            let seen = SeenEndpoint { endpoint: endpoint.clone(), config, usd_per_hour: usd_per_hour.flatten() };
            report_seen::<KnownEndpoint>(shared, id, ticket, seen);
        }
        Poll::Trouble { why, again_in } => report_trouble::<KnownEndpoint>(shared, id, ticket, why, again_in),
    });
    Ok(watched.map(drop)?)
}

/// The configuration of an endpoint; `None` if it cannot be read, because the permission to list endpoints may not
/// include it.
fn config_of(sagemaker: &SageMaker, endpoint: Option<&Endpoint>, control: &TaskControl) -> Option<EndpointConfig> {
    let name = endpoint?.config_name.as_deref()?;
    let config = sagemaker.describe_endpoint_config(name, control);
    config.ok().flatten()
}

/// The price from the price table; `None` if that cannot be read, which is reported when an endpoint is deployed.
fn price_of(shared: &Shared, id: &EndpointId, config: &EndpointConfig) -> Option<f64> {
    let prices = read_prices(&shared.dirs.prices()).ok()?;
    let price = prices.find(config.instance_type.as_deref()?, Some(id.region()))?;
    Some(price.usd_per_hour)
}

fn read_log(shared: &Shared, id: &EndpointId, control: &TaskControl) -> Result<Vec<LogLine>, JobError> {
    Ok(endpoint_log_tail(&shared.aws.sagemaker(&id.sagemaker), &id.name, LOG_LINES, control)?)
}

/// Deletes an endpoint. If that fails, it is due from now on and retried.
fn delete(shared: &Arc<Shared>, id: EndpointId, cause: DeletionCause, ticket: Ticket) {
    run_once(
        shared,
        "delete an endpoint",
        (id, ticket),
        move |shared, id, control| delete_now(shared, id, cause, control),
        move |id, task, result| EndpointsEvent::Deleted { id, task, cause, result },
    );
}

fn delete_now(
    shared: &Shared,
    id: &EndpointId,
    cause: DeletionCause,
    control: &TaskControl,
) -> Result<Deleted, JobError> {
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
        Err(JobError::NoEndpoint { name, .. }) => {
            Ok(Deleted { deleted: vec![Leftover::Endpoint(name)], kept: Vec::new() })
        }
        Err(error) => {
            // A canceled deletion keeps the earlier deletion time.
            let is_cancelled = matches!(error, JobError::Cancelled);
            if let (true, Some(record)) = (is_cancelled, &requested) {
                records.write(record)?;
            }
            Err(error)
        }
        done => done,
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

fn check_request(
    shared: &Shared,
    request: EndpointRequest,
    control: &TaskControl,
) -> Result<FormCheck<EndpointPlan>, JobError> {
    let mut plan = plan_of(shared, request, control)?;
    let prices = read_prices(&shared.dirs.prices())?;
    let preflight = preflight(&shared.aws, &records(shared), &mut plan, Leftovers::Block, &prices, control)?;
    Ok(FormCheck { preflight, commands: Vec::new(), plan: Arc::new(plan) })
}

/// The plan, with a packed model and its container if one is created.
fn plan_of(shared: &Shared, request: EndpointRequest, control: &TaskControl) -> Result<EndpointPlan, JobError> {
    let mut sagemaker = SageMakerAccess::from(&request.access);
    sagemaker.region = Some(shared.aws.sagemaker(&sagemaker).region(control)?);
    let config = request.config;
    let model = model_source(
        shared,
        request.model,
        (&config.model_name, &config.tags),
        (&sagemaker, &request.access),
        request.archive,
        config.instance_type.as_deref().unwrap_or_default(),
        control,
    )?;
    Ok(EndpointPlan {
        sagemaker,
        s3: request.access,
        model,
        config,
        usd_per_hour: request.usd_per_hour,
        delete_after_ms: request.delete_after_ms,
    })
}

pub(crate) fn start(shared: &Arc<Shared>, plan: Arc<EndpointPlan>, ticket: Ticket) {
    shared.run_task(
        "deploy an endpoint",
        ticket,
        move |shared, ticket| {
            let mut record = plan.record(now_ms());
            let id = EndpointId::from(&record);
            let unfinished = shared.dirs.uploads();
            let records = records(shared);
            let (aws, control) = (&shared.aws, &ticket.control);
            deploy(aws, &records, &mut record, &plan, &unfinished, control)
                .map_err(|error| failure_of_deployment(&error))?;
            Ok(id)
        },
        EndpointsEvent::Deployed,
    );
}

/// A canceled deployment that left nothing behind is not a failure.
fn failure_of_deployment(error: &DeployError) -> Failure {
    let is_cancelled = matches!(error.error, JobError::Cancelled);
    match error.done.kept.is_empty() {
        true if is_cancelled => Failure::Cancelled,
        true => Failure::new(error.to_string()),
        false => Failure::new(format!("{error}; retry in “Endpoints…”")),
    }
}
