//! Checking the endpoint form and deploying an endpoint from it.

use std::sync::Arc;

use crate::sagemaker::endpoints::{CheckedEndpoint, DeployError, EndpointError, Leftovers, deploy, preflight};
use crate::sagemaker::jobs::{JobError, read_prices};
use crate::sagemaker::spec::endpoint::EndpointPlan;
use crate::sagemaker::spec::transform::SageMakerAccess;
use crate::tasks::{TaskControl, now_ms};
use crate::window::effects::Shared;
use crate::window::endpoints::effects::records;
use crate::window::remote;
use crate::window::remote::effects::model_source;
use crate::window::state::{EndpointId, EndpointRequest, EndpointsEvent, Failure, FormCheck, Ticket};

pub(crate) fn check(shared: &Arc<Shared>, request: EndpointRequest, ticket: Ticket) {
    remote::effects::check(shared, "check an endpoint", (request, ticket), check_request, EndpointsEvent::Checked);
}

fn check_request(
    shared: &Shared,
    request: EndpointRequest,
    control: &TaskControl,
) -> Result<FormCheck<EndpointPlan>, JobError> {
    let plan = plan_of(shared, request, control)?;
    let prices = read_prices(&shared.dirs.prices())?;
    let records = records(shared);
    let CheckedEndpoint { plan, preflight } =
        preflight(&shared.aws, &records, plan, Leftovers::Block, &prices, control)?;
    Ok(FormCheck { preflight, commands: Vec::new(), plan: Arc::new(plan) })
}

/// The plan, with a packed model and its container if one is created.
fn plan_of(shared: &Shared, request: EndpointRequest, control: &TaskControl) -> Result<EndpointPlan, JobError> {
    let mut sagemaker = SageMakerAccess::from(&request.access);
    sagemaker.region = Some(shared.aws.sagemaker(&sagemaker).region(Some(control))?);
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
            deploy(aws, &records, &mut record, &plan, &unfinished, control).map_err(|error| failure_of(&error))?;
            Ok(id)
        },
        EndpointsEvent::Deployed,
    );
}

/// A canceled deployment that left nothing behind is not a failure.
fn failure_of(error: &DeployError) -> Failure {
    let is_cancelled = matches!(error.error, EndpointError::Cancelled);
    match error.done.kept.is_empty() {
        true if is_cancelled => Failure::Cancelled,
        true => Failure::new(error.to_string()),
        false => Failure::new(format!("{error}; retry in “Endpoints…”")),
    }
}
