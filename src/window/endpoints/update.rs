//! The list of endpoints, watching and deleting single ones, and the form that deploys one.

use crate::sagemaker::spec::Deleted;
use crate::sagemaker::spec::endpoint::{EndpointPlan, EndpointRecord, EndpointStatus};
use crate::sagemaker::spec::transform::SageMakerAccess;
use crate::window::remote;
use crate::window::remote::update::{ResourceUpdate, begin_for};
use crate::window::state::{
    DeletionCause, EndpointDraft, EndpointId, EndpointPresence, EndpointRequest, EndpointsCommand, EndpointsEffect,
    EndpointsEvent, Failure, KnownEndpoint, Loadable, Overlay, SeenEndpoint, State, TaskId, TaskKind, TaskOutcome,
};
use crate::window::tasks::update::{end, settle};

pub(crate) fn on_command(state: &mut State, command: EndpointsCommand) {
    match command {
        EndpointsCommand::Check(draft) => check_form(state, *draft),
        EndpointsCommand::Deploy => deploy(state),
        EndpointsCommand::ReadLog(id) => read_log(state, &id),
        EndpointsCommand::ConfirmDeletion(id) => ask_to_delete(state, &id),
        EndpointsCommand::Keep => state.remote.endpoints.confirming = None,
        EndpointsCommand::Delete(id) => {
            delete(state, &id, DeletionCause::UserRequest);
        }
        EndpointsCommand::SetDeletionTime(id, delete_at_ms) => {
            set_end(state, id, delete_at_ms);
        }
    }
}

pub(crate) fn on_event(state: &mut State, event: EndpointsEvent) {
    match event {
        EndpointsEvent::RecordsRead { records, unreadable, due } => {
            records_read(state, records, unreadable, &due);
        }
        EndpointsEvent::Outdated => watch_deployed(state),
        EndpointsEvent::Checked(task, result) => {
            remote::update::checked::<EndpointDraft>(state, task, result);
        }
        EndpointsEvent::Deployed(task, result) => {
            deployed(state, task, result);
        }
        EndpointsEvent::LogRead(id, task, result) => {
            settle(state, task, result, |state| Some(&mut state.remote.endpoints.all.get_mut(&id)?.log));
        }
        EndpointsEvent::Deleted { id, task, cause, result } => deleted(state, &id, task, cause, result),
    }
}

impl ResourceUpdate for KnownEndpoint {
    fn open(state: &mut State, id: &EndpointId) {
        state.overlay = Overlay::Endpoints;
        let endpoints = &mut state.remote.endpoints;
        endpoints.all.open = Some(id.clone());
        if endpoints.confirming.as_ref() != Some(id) {
            endpoints.confirming = None;
        }
        if endpoints.all.get_or_insert(id).deleting.is_none() {
            watch(state, id);
        }
    }

    fn listed(state: &mut State, _: bool, listed_in: SageMakerAccess) {
        state.remote.endpoints.listed_in = Some(listed_in);
    }

    fn seen(state: &mut State, id: &EndpointId, seen: SeenEndpoint) {
        let endpoint = state.remote.endpoints.all.get_or_insert(id);
        endpoint.config = seen.config.or(endpoint.config.take());
        endpoint.usd_per_hour = seen.usd_per_hour;
        // SageMaker still describes an endpoint for a moment after accepting its deletion.
        let is_deleted = endpoint.presence == EndpointPresence::Absent && endpoint.deletion.is_some();
        let found = seen.endpoint.filter(|found| !is_deleted || found.status != EndpointStatus::Deleting);
        let presence = found.map_or(EndpointPresence::Absent, |found| EndpointPresence::Present(Box::new(found)));
        let before = std::mem::replace(&mut endpoint.presence, presence);
        let now = endpoint.presence.clone();
        let is_ours = endpoint.is_ours();
        if let Some(status) = now.status() {
            list_as(state, id, status);
        }
        if before != now && is_ours {
            show_change(state, id, &before, &now);
        }
    }
}

/// Asks for confirmation before the endpoint is deleted.
fn ask_to_delete(state: &mut State, id: &EndpointId) {
    state.remote.endpoints.confirming = Some(id.clone());
    KnownEndpoint::open(state, id);
}

/// Stores the records of this computer, and deletes the endpoints whose deletion time has passed.
fn records_read(state: &mut State, records: Vec<EndpointRecord>, unreadable: Vec<String>, due: &[EndpointId]) {
    for problem in &unreadable {
        if !state.remote.endpoints.unreadable.contains(problem) {
            let text =
                format!("{problem}. Check in “Endpoints…” or the AWS console whether that endpoint is still billed");
            state.problems.add_general(text);
        }
    }
    let endpoints = &mut state.remote.endpoints;
    endpoints.unreadable = unreadable;
    let before = endpoints.all.known.iter().filter(|endpoint| endpoint.is_ours());
    let before: Vec<EndpointId> = before.map(|endpoint| endpoint.id.clone()).collect();
    for endpoint in &mut endpoints.all.known {
        endpoint.record = None;
    }
    let mut new = Vec::new();
    for record in records {
        let id = EndpointId::from(&record);
        if record.is_started && !before.contains(&id) && !due.contains(&id) {
            new.push(id.clone());
        }
        let endpoint = endpoints.all.get_or_insert(&id);
        // It was listed with the current credentials; the stored ones may be older.
        endpoint.id = id;
        endpoint.record = Some(record);
    }
    for id in due {
        delete(state, id, DeletionCause::TimeIsOver);
    }
    for id in new {
        watch(state, &id);
    }
}

/// Polls the endpoints deployed from this computer again, because another program may have changed or deleted them.
fn watch_deployed(state: &mut State) {
    let known = state.remote.endpoints.all.known.iter();
    let ours = known.filter(|endpoint| endpoint.is_at_our_cost() && endpoint.deleting.is_none());
    let ids: Vec<EndpointId> = ours.map(|endpoint| endpoint.id.clone()).collect();
    for id in ids {
        watch(state, &id);
    }
}

/// Polls an endpoint until it no longer changes by itself.
pub(crate) fn watch(state: &mut State, id: &EndpointId) {
    remote::update::watch::<KnownEndpoint>(state, id);
}

/// Shows a notice if the status of an endpoint deployed from this computer has changed.
fn show_change(state: &mut State, id: &EndpointId, before: &EndpointPresence, now: &EndpointPresence) {
    let (name, is_on_screen) = (&id.name, is_on_screen(state, id));
    match (before, now) {
        (_, EndpointPresence::Present(endpoint)) => match endpoint.status {
            // When it is polled for the first time, nothing has changed since it was deployed.
            EndpointStatus::InService if *before != EndpointPresence::Unknown => {
                state.show_notice(format!("The endpoint {name} is in service"));
            }
            EndpointStatus::Failed | EndpointStatus::UpdateRollbackFailed => {
                let why = endpoint.failure_words();
                let text = format!(
                    "The endpoint {name} failed: {why}. Check its log in CloudWatch, /aws/sagemaker/Endpoints/{name}, \
                    and delete it"
                );
                if !is_on_screen {
                    state.show_notice(text.clone());
                }
                state.problems.add_general(text);
            }
            _ => {}
        },
        (_, EndpointPresence::Absent) => state.show_notice(format!(
            "The endpoint {name} no longer exists: it was deleted outside this window. Delete its leftovers in \
            “Endpoints…”"
        )),
        (_, EndpointPresence::Unknown) => {}
    }
}

/// Reads the end of its containers' log, which shows why one does not start.
fn read_log(state: &mut State, id: &EndpointId) {
    if state.remote.endpoints.all.get_or_insert(id).log.is_loading() {
        return;
    }
    begin_for(
        state,
        id,
        format!("Read the log of the endpoint {}", id.name),
        |endpoint: &mut KnownEndpoint, task| endpoint.log = Loadable::Loading(task),
        EndpointsEffect::ReadLog,
    );
}

/// Changes the time of the automatic deletion.
fn set_end(state: &mut State, id: EndpointId, delete_at_ms: Option<i64>) {
    if let Some(endpoint) = state.remote.endpoints.all.get_mut(&id) {
        endpoint.undeleted = None;
    }
    state.effects.push(EndpointsEffect::SetDeletionTime { id, delete_at_ms });
}

/// Deletes an endpoint with its configuration and its other resources.
fn delete(state: &mut State, id: &EndpointId, cause: DeletionCause) {
    // An automatic deletion leaves the user's question open.
    let confirming = &mut state.remote.endpoints.confirming;
    if cause == DeletionCause::UserRequest && confirming.as_ref() == Some(id) {
        *confirming = None;
    }
    if state.remote.endpoints.all.get_or_insert(id).deleting.is_some() {
        return;
    }
    remote::update::stop_watching::<KnownEndpoint>(state, id);
    let title = match cause {
        DeletionCause::UserRequest => format!("Delete the endpoint {}", id.name),
        DeletionCause::TimeIsOver => {
            format!("Delete the endpoint {} at its deletion time", id.name)
        }
    };
    begin_for(
        state,
        id,
        title,
        |endpoint: &mut KnownEndpoint, task| endpoint.deleting = Some(task),
        |id, ticket| EndpointsEffect::Delete { id, cause, ticket },
    );
}

fn deleted(state: &mut State, id: &EndpointId, task: TaskId, cause: DeletionCause, result: Result<Deleted, Failure>) {
    let Some(endpoint) = state.remote.endpoints.all.get_mut(id) else {
        return;
    };
    if endpoint.deleting == Some(task) {
        endpoint.deleting = None;
    }
    match result {
        Ok(deletion) => deletion_done(state, id, task, cause, deletion),
        Err(failure) => {
            end(state, task, Some(&failure));
            not_deleted(state, id, cause, &failure);
        }
    }
}

fn deletion_done(state: &mut State, id: &EndpointId, task: TaskId, cause: DeletionCause, deletion: Deleted) {
    let said = match cause {
        DeletionCause::TimeIsOver => format!("The endpoint {} has reached its deletion time. {deletion}", id.name),
        DeletionCause::UserRequest => deletion.to_string(),
    };
    drop(state.tasks.end(task, TaskOutcome::Done(said.clone())));
    list_as(state, id, EndpointStatus::Deleting);
    let endpoint = state.remote.endpoints.all.get_or_insert(id);
    endpoint.presence = EndpointPresence::Absent;
    endpoint.undeleted = None;
    let is_left = !deletion.kept.is_empty();
    let before = endpoint.deletion.replace(deletion);
    let kept_before = before.map(|before| before.kept);
    let kept = endpoint.deletion.as_ref().map(|now| &now.kept);
    // A failed deletion is retried periodically and reported once.
    if is_left && kept_before.as_ref() == kept {
        return;
    }
    if is_left {
        state.problems.add_general(said.clone());
    }
    if cause == DeletionCause::TimeIsOver || !is_on_screen(state, id) {
        state.show_notice(said);
    }
}

fn not_deleted(state: &mut State, id: &EndpointId, cause: DeletionCause, failure: &Failure) {
    let name = &id.name;
    if *failure == Failure::Cancelled {
        if cause == DeletionCause::TimeIsOver {
            state.show_notice(format!(
                "The endpoint {name} is about to be deleted; postpone this in “Endpoints…” to keep it"
            ));
        }
        return;
    }
    let endpoint = state.remote.endpoints.all.get_or_insert(id);
    let before = endpoint.undeleted.replace(failure.clone());
    if before.as_ref() == Some(failure) {
        return;
    }
    let why = failure.message();
    let text = format!(
        "The endpoint {name} could not be deleted and is still billed: {why}. Spotcheck retries while it runs and at \
         its next start. If that fails, delete the endpoint in the AWS console"
    );
    state.report_problem(text);
}

/// Whether the endpoint's page is open, which makes a notice redundant.
fn is_on_screen(state: &State, id: &EndpointId) -> bool {
    state.overlay == Overlay::Endpoints && state.remote.endpoints.all.open.as_ref() == Some(id)
}

/// Updates the status in the list, if the endpoint is in it.
fn list_as(state: &mut State, id: &EndpointId, status: EndpointStatus) {
    let endpoints = &mut state.remote.endpoints;
    let region = endpoints.listed_in.as_ref().map(|access| &access.region);
    if region != Some(&id.sagemaker.region) {
        return;
    }
    let same = endpoints.all.list.rows.iter_mut();
    for listed in same.filter(|listed| listed.name == id.name) {
        listed.status = status;
    }
}

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
pub(crate) fn check_form(state: &mut State, draft: EndpointDraft) {
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
            KnownEndpoint::open(state, &id);
        } else {
            watch(state, &id);
        }
    }
}
