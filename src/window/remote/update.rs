//! What jobs and endpoints share: the list (open, read from the start, read more), polling, and the form (open, check,
//! start).

use std::sync::Arc;

use crate::domain::{Credentials, ListQuery};
use crate::tasks::ProgressUnit;
use crate::window::s3;
use crate::window::state::{
    Draft, Effect, Failure, FormCheck, Loadable, ModelDraft, Overlay, RemoteCommand, RemoteEffect, RemoteEvent,
    Resource, S3Effect, State, TaskId, TaskKind, TaskOutcome, Ticket, Watch, WatchEnd,
};
use crate::window::tasks::update::{begin, cancel, end, settle};

/// What a kind of resource does beyond what all do.
pub(crate) trait ResourceUpdate: Resource {
    fn open(state: &mut State, id: &Self::Id);

    fn begin_watching(state: &mut State, id: &Self::Id) {
        watch::<Self>(state, id);
    }

    fn end_watching(state: &mut State, id: &Self::Id) {
        stop_watching::<Self>(state, id);
    }

    /// A page of the list was added.
    fn listed(state: &mut State, is_first: bool, listed: Self::Listed);

    fn seen(state: &mut State, id: &Self::Id, seen: Self::Seen);

    fn watch_ended(_state: &mut State, _id: &Self::Id, _end: &WatchEnd) {}
}

pub(crate) fn on_command<R: ResourceUpdate>(state: &mut State, command: RemoteCommand<R::Id, R::Status>) {
    match command {
        RemoteCommand::List(query) => read_list::<R>(state, query),
        RemoteCommand::ListMore => read_more::<R>(state),
        RemoteCommand::Open(id) => R::open(state, &id),
        RemoteCommand::Close => R::all_mut(state).open = None,
        RemoteCommand::Watch(id) => R::begin_watching(state, &id),
        RemoteCommand::StopWatching(id) => R::end_watching(state, &id),
    }
}

pub(crate) fn on_event<R: ResourceUpdate>(state: &mut State, event: RemoteEvent<R>) {
    match event {
        RemoteEvent::Listed { task, is_first, result } => {
            end(state, task, result.as_ref().err());
            let (page, listed) = result.map_or_else(|why| (Err(why), None), |(page, more)| (Ok(page), Some(more)));
            let is_wanted = R::all_mut(state).list.take(task, is_first, page);
            if let Some(listed) = listed.filter(|_| is_wanted) {
                R::listed(state, is_first, listed);
            }
        }
        RemoteEvent::Seen { id, task, seen } => {
            if let Some(known) = watched_by::<R>(state, &id, task) {
                *known.watch() = Watch { task: Some(task), ..Watch::default() };
                R::seen(state, &id, *seen);
            }
        }
        RemoteEvent::Trouble { id, task, text } => {
            if let Some(known) = watched_by::<R>(state, &id, task) {
                known.watch().trouble = Some(text);
            }
        }
        RemoteEvent::WatchEnded(id, task, ending) => {
            let failure = match &ending {
                WatchEnd::Over => None,
                WatchEnd::Absent(failure) | WatchEnd::Failed(failure) => Some(failure),
            };
            end(state, task, failure);
            if let Some(known) = watched_by::<R>(state, &id, task) {
                let failure = failure.filter(|failure| **failure != Failure::Cancelled).cloned();
                let watch = known.watch();
                *watch = Watch { task: None, failure: failure.or(watch.failure.take()), trouble: None };
                R::watch_ended(state, &id, &ending);
            }
        }
    }
}

/// Opens or closes the dialog. A list that was read before is read again; the first time, the user requests it.
pub(crate) fn toggle_dialog<R: Resource>(state: &mut State) {
    if state.overlay == R::DIALOG {
        state.overlay = Overlay::None;
        return;
    }
    state.overlay = R::DIALOG;
    state.effects.push(S3Effect::ReadSetup);
    if let Some((_, query)) = R::all_mut(state).list.requested.clone() {
        return read_list::<R>(state, query);
    }
    let place = state.place();
    if let Some(access) = place.map(|place| place.access.clone()) {
        s3::update::set_access(state, access);
    }
}

/// Reads the list from the start; cancels a pending request.
pub(crate) fn read_list<R: Resource>(state: &mut State, query: ListQuery<R::Status>) {
    let earlier = R::all_mut(state).list.status.task();
    cancel(state, earlier);
    let access = state.s3.access.clone();
    if access.credentials != Credentials::Anonymous {
        s3::update::check_sign_in(state, &access);
    }
    let query = ListQuery { page_token: None, ..query };
    R::all_mut(state).list.begin_anew(access, query);
    read_page::<R>(state, None);
}

pub(crate) fn read_more<R: Resource>(state: &mut State) {
    if let Some(next) = R::all_mut(state).list.goes_on_at() {
        read_page::<R>(state, Some(next));
    }
}

fn read_page<R: Resource>(state: &mut State, page_token: Option<String>) {
    let Some((access, query)) = R::all_mut(state).list.requested.clone() else {
        return;
    };
    let ticket = begin(state, R::TASKS, ProgressUnit::Steps, format!("List SageMaker {}s", R::NOUN));
    R::all_mut(state).list.status = Loadable::Loading(ticket.id);
    state.effects.push(R::effect(RemoteEffect::List { access, query: ListQuery { page_token, ..query }, ticket }));
}

/// Polls a resource until it no longer changes by itself. False if it is being polled already.
pub(crate) fn watch<R: Resource>(state: &mut State, id: &R::Id) -> bool {
    if R::all_mut(state).get_or_insert(id).watch().task.is_some() {
        return false;
    }
    let (kind, unit) = R::POLLING;
    let ticket = begin(state, kind, unit, format!("Watch the {} {}", R::NOUN, R::name_of(id)));
    let known = R::all_mut(state).get_or_insert(id);
    *known.watch() = Watch { task: Some(ticket.id), failure: None, trouble: known.watch().trouble.take() };
    let id = known.id().clone();
    state.effects.push(R::effect(RemoteEffect::Watch(id, ticket)));
    true
}

pub(crate) fn stop_watching<R: Resource>(state: &mut State, id: &R::Id) {
    let task = R::all_mut(state).get_mut(id).and_then(|known| known.watch().task);
    cancel(state, task);
}

/// The resource that a task polls; `None` if it is late.
fn watched_by<'s, R: Resource>(state: &'s mut State, id: &R::Id, task: TaskId) -> Option<&'s mut R> {
    let known = R::all_mut(state).get_mut(id)?;
    (known.watch().task == Some(task)).then_some(known)
}

/// Starts a task for a known resource: `note` stores its id there.
pub(crate) fn begin_for<R: Resource, E: Into<Effect>>(
    state: &mut State,
    id: &R::Id,
    title: String,
    note: impl FnOnce(&mut R, TaskId),
    effect: impl FnOnce(R::Id, Ticket) -> E,
) {
    if R::all_mut(state).get_mut(id).is_some() {
        let ticket = begin(state, R::TASKS, ProgressUnit::Steps, title);
        let known = R::all_mut(state).get_or_insert(id);
        note(known, ticket.id);
        let id = known.id().clone();
        state.effects.push(effect(id, ticket));
    }
}

/// Opens the form with this draft, for the chosen model and with the access to the open images.
pub(crate) fn open<D: Draft>(state: &mut State, mut draft: D, overlay: Overlay) {
    let place = state.place().cloned();
    if let Some(place) = place {
        if draft.base().is_empty() {
            *draft.base() = format!("s3://{}/spotcheck/", place.address.bucket);
        }
        s3::update::set_access(state, place.access);
    }
    *draft.model() = ModelDraft::from_library(state.models.chosen_id(), draft.model());
    forget_check::<D>(state);
    let serial = state.ids.next();
    let form = D::form(state);
    form.serial = serial;
    form.draft = draft;
    state.overlay = overlay;
    state.effects.push(S3Effect::ReadSetup);
    let access = state.s3.access.clone();
    s3::update::check_sign_in(state, &access);
}

/// Cancels the check; a start continues.
pub(crate) fn forget_check<D: Draft>(state: &mut State) {
    let form = D::form(state);
    let forgotten = std::mem::take(&mut form.check);
    if !form.start.is_loading() {
        form.start = Loadable::NotLoaded;
    }
    cancel(state, forgotten.task());
}

/// Stores the draft and what is missing in it, or starts to check `request`, which has this title.
pub(crate) fn begin_check<D: Draft, R>(
    state: &mut State,
    draft: D,
    request: Result<R, String>,
    kind: TaskKind,
    title: impl FnOnce(&R) -> String,
) -> Option<(R, Ticket)> {
    D::form(state).draft = draft;
    match request {
        Err(missing) => {
            D::form(state).missing = Some(missing);
            None
        }
        Ok(request) => {
            let ticket = begin(state, kind, ProgressUnit::Steps, title(&request));
            let form = D::form(state);
            form.missing = None;
            form.check = Loadable::Loading(ticket.id);
            Some((request, ticket))
        }
    }
}

/// Stores the result of a check, unless a newer one has started.
pub(crate) fn checked<D: Draft>(state: &mut State, task: TaskId, result: Result<Box<FormCheck<D::Plan>>, Failure>) {
    let result = result.map(|found| *found);
    settle(state, task, result, |state| Some(&mut D::form(state).check));
}

/// Starts what was checked, unless the check found a problem or it is being started already.
pub(crate) fn begin_start<D: Draft>(
    state: &mut State,
    kind: TaskKind,
    title: impl FnOnce(&D::Plan) -> String,
) -> Option<(Arc<D::Plan>, Ticket)> {
    let form = D::form(state);
    let check = form.check.ready().filter(|check| check.is_startable())?;
    if form.start.is_loading() {
        return None;
    }
    let plan = Arc::clone(&check.plan);
    let ticket = begin(state, kind, ProgressUnit::Bytes, title(&plan));
    D::form(state).start = Loadable::Loading(ticket.id);
    Some((plan, ticket))
}

/// Ends the start. Returns what was started, so that its page replaces the form.
pub(crate) fn started<D: Draft, I>(
    state: &mut State,
    task: TaskId,
    result: Result<I, Failure>,
    said: impl FnOnce(&I) -> String,
) -> Option<I> {
    let is_wanted = D::form(state).start.is_by(task);
    match result {
        Ok(id) => {
            let said = said(&id);
            drop(state.tasks.end(task, TaskOutcome::Done(said.clone())));
            state.show_notice(said);
            if is_wanted {
                let form = D::form(state);
                form.start = Loadable::NotLoaded;
                form.check = Loadable::NotLoaded;
            }
            Some(id)
        }
        Err(failure) => {
            if let Failure::Failed { message, .. } = &failure {
                state.report_problem(message);
            }
            settle(state, task, Err(failure), |state| Some(&mut D::form(state).start));
            None
        }
    }
}
