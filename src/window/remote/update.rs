//! What jobs and endpoints share: the list (open, read from the start, read more) and the form (open, check, start).

use std::sync::Arc;

use crate::domain::{Credentials, ListPage, ListQuery, S3Access};
use crate::tasks::ProgressUnit;
use crate::window::s3;
use crate::window::state::{
    Draft, Effect, Failure, FormCheck, Loadable, ModelDraft, Overlay, RemoteList, S3Effect, State, TaskId, TaskKind,
    TaskOutcome, Ticket,
};
use crate::window::tasks::update::{begin, cancel, end, settle};

/// A remote list: `S` is the status of a row, `T` a row.
pub(crate) struct ListOf<S, T> {
    pub(crate) dialog: Overlay,
    pub(crate) kind: TaskKind,
    pub(crate) title: &'static str,
    pub(crate) place: fn(&mut State) -> &mut RemoteList<S, T>,
    pub(crate) effect: fn(S3Access, ListQuery<S>, Ticket) -> Effect,
}

impl<S: Clone + PartialEq, T> ListOf<S, T> {
    /// Opens or closes the dialog. A list that was read before is read again; the first time, the user requests it.
    pub(crate) fn toggle_dialog(&self, state: &mut State) {
        if state.overlay == self.dialog {
            state.overlay = Overlay::None;
            return;
        }
        state.overlay = self.dialog;
        state.effects.push(S3Effect::ReadSetup);
        let read = (self.place)(state).requested.as_ref();
        if let Some(query) = read.map(|(_, query)| query.clone()) {
            return self.read(state, query);
        }
        let place = state.place();
        if let Some(access) = place.map(|place| place.access.clone()) {
            s3::update::set_access(state, access);
        }
    }

    /// Reads the list from the start; cancels a pending request.
    pub(crate) fn read(&self, state: &mut State, query: ListQuery<S>) {
        let earlier = (self.place)(state).status.task();
        cancel(state, earlier);
        let access = state.s3.access.clone();
        if access.credentials != Credentials::Anonymous {
            s3::update::check_sign_in(state, &access);
        }
        let query = ListQuery { page_token: None, ..query };
        (self.place)(state).begin_anew(access, query);
        self.read_page(state, None);
    }

    pub(crate) fn read_more(&self, state: &mut State) {
        if let Some(next) = (self.place)(state).goes_on_at() {
            self.read_page(state, Some(next));
        }
    }

    fn read_page(&self, state: &mut State, page_token: Option<String>) {
        let Some((access, query)) = (self.place)(state).requested.clone() else {
            return;
        };
        let query = ListQuery { page_token, ..query };
        let (kind, title) = (self.kind.clone(), self.title.to_owned());
        let ticket = begin(state, kind, ProgressUnit::Steps, title);
        (self.place)(state).status = Loadable::Loading(ticket.id);
        state.effects.push((self.effect)(access, query, ticket));
    }

    /// Stores a page. False if it is late.
    pub(crate) fn take(
        &self,
        state: &mut State,
        task: TaskId,
        is_first: bool,
        page: Result<ListPage<T>, Failure>,
    ) -> bool {
        end(state, task, page.as_ref().err());
        (self.place)(state).take(task, is_first, page)
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
