//! The form for deploying a model to a real-time endpoint.

use crate::sagemaker::spec::endpoint::EndpointPlan;
use crate::window::state::{
    EndpointDraft, EndpointId, EndpointRequest, EndpointsEffect, Failure, Overlay, State, TaskId, TaskKind,
};
use crate::window::{endpoints, remote};

pub(crate) fn open_form(state: &mut State) {
    let mut draft = state.settings.endpoint.clone();
    // The last job's role and folder can be reused here.
    let job = &state.settings.job;
    for (field, known) in [(&mut draft.model.role, &job.model.role), (&mut draft.base, &job.base)] {
        if field.is_empty() {
            field.clone_from(known);
        }
    }
    remote::update::open(state, draft, Overlay::DeployEndpoint);
}

/// Checks the form with this draft, and cancels the previous check.
pub(crate) fn check(state: &mut State, draft: EndpointDraft) {
    remote::update::forget_check::<EndpointDraft>(state);
    let request = draft.request(state);
    let title = |request: &EndpointRequest| format!("Check the endpoint {}", request.config.name);
    let begun = remote::update::begin_check(state, draft, request, TaskKind::Endpoints, title);
    if let Some((request, ticket)) = begun {
        state.effects.push(EndpointsEffect::Check { request: Box::new(request), ticket });
    }
}

/// Uploads the model and starts the checked endpoint.
pub(crate) fn deploy(state: &mut State) {
    let title = |plan: &EndpointPlan| format!("Deploy the endpoint {}", plan.config.name);
    if let Some((plan, ticket)) = remote::update::begin_start::<EndpointDraft>(state, TaskKind::Endpoints, title) {
        state.settings.endpoint = state.remote.endpoint_form.draft.for_the_next();
        state.effects.push(EndpointsEffect::Deploy { plan, ticket });
    }
}

/// Replaces the form with the endpoint's page.
pub(crate) fn deployed(state: &mut State, task: TaskId, result: Result<EndpointId, Failure>) {
    let said = |id: &EndpointId| format!("Started the endpoint {}", id.name);
    if let Some(id) = remote::update::started::<EndpointDraft, _>(state, task, result, said) {
        if state.overlay == Overlay::DeployEndpoint {
            endpoints::update::open(state, &id);
        } else {
            endpoints::update::watch(state, &id);
        }
    }
}
