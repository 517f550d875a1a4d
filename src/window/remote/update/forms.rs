//! The common parts of the job and endpoint forms: open, check, start.

use std::sync::Arc;

use super::{begin, settle};
use crate::domain::Problem;
use crate::tasks::ProgressUnit;
use crate::window::state::{
    Draft, Effect, Failure, FormCheck, Loadable, ModelDraft, Overlay, Queue, S3Effect, State, TaskId, TaskKind,
    TaskOutcome, TaskSignal, Ticket,
};
use crate::window::{s3, tasks};

/// Opens the form with this draft, for the chosen model and with the access to the open images.
pub(crate) fn open<D: Draft>(state: &mut State, mut draft: D, overlay: Overlay, effects: &mut Queue<Effect>) {
    let place = state.place().cloned();
    if let Some(place) = place {
        if draft.base().is_empty() {
            *draft.base() = format!("s3://{}/spotcheck/", place.address.bucket);
        }
        s3::update::set_access(state, place.access, effects);
    }
    *draft.model() = ModelDraft::of_library(state.models.chosen_id(), draft.model());
    forget_check::<D>(state, effects);
    let serial = state.ids.next();
    let form = D::form(state);
    form.serial = serial;
    form.draft = draft;
    state.overlay = overlay;
    effects.push(S3Effect::ReadSetup);
    let access = state.s3.access.clone();
    s3::update::check_sign_in(state, &access, effects);
}

/// Cancels the check; a start continues.
pub(crate) fn forget_check<D: Draft>(state: &mut State, effects: &mut Queue<Effect>) {
    if let Some(task) = D::form(state).check.task() {
        tasks::update::signal(state, task, TaskSignal::Cancel, effects);
    }
    let form = D::form(state);
    form.check = Loadable::NotLoaded;
    if !form.start.is_loading() {
        form.start = Loadable::NotLoaded;
    }
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
                state.problems.add(Problem::general(message.clone()), None);
                state.show_notice(message.clone());
            }
            settle(state, task, Err(failure), |state| Some(&mut D::form(state).start));
            None
        }
    }
}
