//! Endpoints: records, watching and deleting.

use std::sync::Arc;

use super::{command, event};
use crate::domain::S3Access;
use crate::sagemaker::spec::Deleted;
use crate::sagemaker::spec::endpoint::{EndpointConfig, EndpointPlan, EndpointRecord, EndpointStatus, default_ami};
use crate::sagemaker::spec::transform::{Leftover, ModelSource, Preflight, SageMakerAccess};
use crate::window::state::{
    Action, DeletionCause, Effect, EndpointDraft, EndpointId, EndpointPresence, EndpointsCommand, EndpointsEffect,
    EndpointsEvent, Event, Failure, FormCheck, KnownEndpoint, Overlay, RemoteEffect, RemoteEndpointsCommand,
    RemoteEndpointsEvent, SeenEndpoint, State, TaskId, TaskOutcome, TaskSignal, WatchEnd,
};

fn record() -> EndpointRecord {
    let example = KnownEndpoint::example();
    example.record.expect("it was deployed from here")
}

fn id() -> EndpointId {
    EndpointId::from(&record())
}

fn read(state: &mut State, records: Vec<EndpointRecord>, due: Vec<EndpointId>) -> Vec<Effect> {
    event(state, Event::Endpoints(EndpointsEvent::RecordsRead { records, unreadable: Vec::new(), due }))
}

fn known(state: &State) -> &KnownEndpoint {
    state.remote.endpoints.all.get(&id()).expect("it is known")
}

/// Reports a poll.
fn see(state: &mut State, presence: EndpointPresence) {
    let task = known(state).watch.task.expect("it is watched");
    let endpoint = match presence {
        EndpointPresence::Present(endpoint) => Some(*endpoint),
        EndpointPresence::Unknown | EndpointPresence::Absent => None,
    };
    let seen = Box::new(SeenEndpoint { endpoint, config: None, usd_per_hour: None });
    event(state, RemoteEndpointsEvent::Seen { id: id(), task, seen });
}

fn end_watching(state: &mut State) {
    let task = known(state).watch.task.expect("it is watched");
    event(state, RemoteEndpointsEvent::WatchEnded(id(), task, WatchEnd::Over));
}

fn deleting(state: &State) -> TaskId {
    known(state).deleting.expect("it is being deleted")
}

fn end_deletion(state: &mut State, result: Result<Deleted, Failure>) {
    let task = deleting(state);
    event(
        state,
        Event::Endpoints(EndpointsEvent::Deleted { id: id(), task, cause: DeletionCause::TimeIsOver, result }),
    );
}

fn notice(state: &mut State) -> Option<String> {
    state.notice.take().map(|notice| notice.text)
}

fn refused() -> Failure {
    Failure::Failed { message: "Could not delete the endpoint cats: no".to_owned(), renewal: None }
}

#[test]
fn deployed_endpoints_are_watched_and_changes_reported() {
    let mut state = State::default();
    let effects = read(&mut state, vec![record()], Vec::new());
    assert!(has!(effects, Effect::RemoteEndpoints(RemoteEffect::Watch(id, _)) if id.name == "cats"), "{effects:?}");
    // Reading the same records again changes nothing.
    let effects = read(&mut state, vec![record()], Vec::new());
    assert!(effects.is_empty(), "{effects:?}");
    see(&mut state, EndpointPresence::example(EndpointStatus::Creating));
    assert_eq!(notice(&mut state), None);
    see(&mut state, EndpointPresence::example(EndpointStatus::InService));
    let text = notice(&mut state).expect("a notice");
    assert!(text.contains("cats"), "{text}");
    assert_eq!(state.endpoints_at_our_cost().count(), 1);

    end_watching(&mut state);
    let effects = event(&mut state, EndpointsEvent::Outdated);
    assert!(has!(effects, Effect::RemoteEndpoints(RemoteEffect::Watch(id, _)) if id.name == "cats"), "{effects:?}");
    see(&mut state, EndpointPresence::Absent);
    let text = notice(&mut state).expect("that is unexpected");
    assert!(text.contains("cats"), "{text}");
    assert_eq!(state.endpoints_at_our_cost().count(), 0);
    assert_eq!(
        known(&state).goes_with_it(),
        [Leftover::Configuration("cats".to_owned()), Leftover::Model("cats".to_owned())]
    );
}

#[test]
fn endpoint_unknown_to_sagemaker_is_free() {
    let mut state = State::default();
    let half = EndpointRecord { is_started: false, ..record() };
    let effects = read(&mut state, vec![half], Vec::new());
    assert!(effects.is_empty(), "{effects:?}");
    assert_eq!(state.endpoints_at_our_cost().count(), 0);
    let effects = read(&mut state, vec![record()], Vec::new());
    assert!(has!(effects, Effect::RemoteEndpoints(RemoteEffect::Watch(id, _)) if id.name == "cats"), "{effects:?}");
}

#[test]
fn due_endpoint_is_deleted_once_and_failure_reported() {
    let mut state = State::default();
    let effects = read(&mut state, vec![record()], vec![id()]);
    assert!(
        has!(effects, Effect::Endpoints(EndpointsEffect::Delete { id, cause: DeletionCause::TimeIsOver, .. })
            if id.name == "cats"),
        "{effects:?}"
    );
    let effects = read(&mut state, vec![record()], vec![id()]);
    assert!(!has!(effects, Effect::Endpoints(EndpointsEffect::Delete { .. })), "{effects:?}");

    end_deletion(&mut state, Err(refused()));
    let text = notice(&mut state).expect("it still costs money");
    assert!(text.contains("is still billed"), "{text}");
    assert_eq!(state.problems.len(), 1);
    assert_eq!(state.endpoints_at_our_cost().count(), 1);

    let effects = read(&mut state, vec![record()], vec![id()]);
    assert!(has!(effects, Effect::Endpoints(EndpointsEffect::Delete { .. })), "{effects:?}");
    end_deletion(&mut state, Err(refused()));
    assert_eq!(notice(&mut state), None);
    assert_eq!(state.problems.len(), 1);

    read(&mut state, vec![record()], vec![id()]);
    let done = Deleted { deleted: vec![Leftover::Endpoint("cats".to_owned())], kept: Vec::new() };
    end_deletion(&mut state, Ok(done));
    let text = notice(&mut state).expect("it is done");
    assert!(text.contains("Deleted: endpoint cats"), "{text}");
    assert_eq!(state.endpoints_at_our_cost().count(), 0);
    let last = state.tasks.finished().next().expect("it is listed");
    assert_eq!(last.outcome, TaskOutcome::Done(text));
}

#[test]
fn endpoint_being_deleted_by_sagemaker_stays_deleted() {
    let mut state = State::default();
    read(&mut state, vec![record()], vec![id()]);
    let kept = vec![(Leftover::Model("cats".to_owned()), "it is in use".to_owned())];
    end_deletion(&mut state, Ok(Deleted { deleted: vec![Leftover::Endpoint("cats".to_owned())], kept }));
    notice(&mut state);
    command(&mut state, EndpointsCommand::ConfirmDeletion(id()));
    for presence in [EndpointPresence::example(EndpointStatus::Deleting), EndpointPresence::Absent] {
        see(&mut state, presence);
        assert_eq!(known(&state).goes_with_it(), [Leftover::Model("cats".to_owned())]);
        assert_eq!(state.endpoints_at_our_cost().count(), 0);
        assert_eq!(notice(&mut state), None);
    }
    // Another program has deployed it again.
    see(&mut state, EndpointPresence::example(EndpointStatus::Creating));
    assert_eq!(state.endpoints_at_our_cost().count(), 1);
}

#[test]
fn stopped_deletion_explains_postponing() {
    let mut state = State::default();
    read(&mut state, vec![record()], vec![id()]);
    end_deletion(&mut state, Err(Failure::Cancelled));
    let text = notice(&mut state).expect("it is still due");
    assert!(text.contains("postpone"), "{text}");
    assert!(state.problems.is_empty());
    assert_eq!(known(&state).undeleted, None);
}

#[test]
fn deletion_needs_confirmation() {
    let mut state = State::default();
    read(&mut state, vec![record()], Vec::new());
    let effects = command(&mut state, EndpointsCommand::ConfirmDeletion(id()));
    assert!(!has!(effects, Effect::Endpoints(EndpointsEffect::Delete { .. })), "{effects:?}");
    assert_eq!(state.overlay, Overlay::Endpoints);
    command(&mut state, EndpointsCommand::Keep);
    assert_eq!(state.remote.endpoints.confirming, None);
    command(&mut state, EndpointsCommand::ConfirmDeletion(id()));
    let effects = command(&mut state, EndpointsCommand::Delete(id()));
    assert!(
        has!(effects, Effect::Endpoints(EndpointsEffect::Delete { id, cause: DeletionCause::UserRequest, .. })
            if id.name == "cats"),
        "{effects:?}"
    );
    // Polling stops meanwhile, because its results would be outdated.
    assert!(has!(effects, Effect::Signal(_, TaskSignal::Cancel)), "{effects:?}");
}

#[test]
fn automatic_deletion_leaves_the_question_open() {
    let mut state = State::default();
    read(&mut state, vec![record()], Vec::new());
    command(&mut state, EndpointsCommand::ConfirmDeletion(id()));
    read(&mut state, vec![record()], vec![id()]);
    assert_eq!(state.remote.endpoints.confirming, Some(id()));
    // The answer needs no second deletion.
    let effects = command(&mut state, EndpointsCommand::Delete(id()));
    assert!(!has!(effects, Effect::Endpoints(EndpointsEffect::Delete { .. })), "{effects:?}");
    assert_eq!(state.remote.endpoints.confirming, None);
}

#[test]
fn unreadable_record_is_reported_once() {
    let mut state = State::default();
    for _ in 0..2 {
        event(
            &mut state,
            EndpointsEvent::RecordsRead {
                records: Vec::new(),
                unreadable: vec!["could not read the record of an endpoint".to_owned()],
                due: Vec::new(),
            },
        );
    }
    assert_eq!(state.problems.len(), 1);
}

#[test]
fn list_is_requested_when_opened() {
    let mut state = State::default();
    let effects = command(&mut state, Action::Endpoints);
    assert!(!has!(effects, Effect::RemoteEndpoints(RemoteEffect::List { .. })), "{effects:?}");
    let query = crate::sagemaker::spec::endpoint::EndpointQuery::default();
    let effects = command(&mut state, RemoteEndpointsCommand::List(query));
    assert!(has!(effects, Effect::RemoteEndpoints(RemoteEffect::List { .. })), "{effects:?}");
}

#[test]
fn form_restores_settings_and_deploys_the_checked_plan() {
    let (mut state, _, _) = super::opened();
    state.settings.job.model.role = "arn:aws:iam::123456789012:role/r".to_owned();
    command(&mut state, Action::DeployEndpoint);
    assert_eq!(state.overlay, Overlay::DeployEndpoint);
    let mut draft = state.remote.endpoint_form.draft.clone();
    draft.base = "s3://bucket/models".to_owned();
    draft.config.name = "cats".to_owned();
    draft.config.instance_type = Some("ml.g5.xlarge".to_owned());
    assert_eq!(draft.model.role, "arn:aws:iam::123456789012:role/r");
    assert!(draft.delete_after_h.is_some());
    let request = draft.request(&state).expect("nothing is missing");
    assert_eq!(
        request.archive.map(|archive| archive.to_string()),
        Some("s3://bucket/models/spotcheck-files/cats/model.tar.gz".to_owned())
    );
    assert_eq!(request.config.ami_version.as_deref(), default_ami("ml.g5.xlarge"));
    assert_eq!(request.delete_after_ms, Some(2 * 3_600_000));

    let for_good = EndpointDraft { delete_after_h: None, ..draft };
    let effects = command(&mut state, EndpointsCommand::Check(Box::new(for_good)));
    let task = effects.iter().find_map(|effect| match effect {
        Effect::Endpoints(EndpointsEffect::Check { ticket, .. }) => Some(ticket.id),
        _ => None,
    });
    let plan = Arc::new(EndpointPlan {
        sagemaker: SageMakerAccess::default(),
        s3: S3Access::default(),
        model: ModelSource::Existing,
        config: EndpointConfig::default(),
        usd_per_hour: Some(0.25),
        delete_after_ms: None,
    });
    let check = FormCheck { preflight: Preflight::default(), commands: Vec::new(), plan: Arc::clone(&plan) };
    // Nothing is deployed without a check.
    assert!(command(&mut state, EndpointsCommand::Deploy).is_empty());
    event(&mut state, EndpointsEvent::Checked(task.expect("it is checked"), Ok(Box::new(check))));
    let effects = command(&mut state, EndpointsCommand::Deploy);
    let deployed = effects.into_iter().find_map(|effect| match effect {
        Effect::Endpoints(EndpointsEffect::Deploy { plan, .. }) => Some(plan),
        _ => None,
    });
    assert_eq!(deployed, Some(plan));
    assert!(state.settings.endpoint.delete_after_h.is_some());
}
