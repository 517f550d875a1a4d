//! The common parts of the lists of jobs and endpoints: open, read from the start, read more.

use super::{begin, end};
use crate::domain::{Credentials, ListPage, ListQuery, S3Access};
use crate::tasks::ProgressUnit;
use crate::window::state::{
    Effect, Failure, Loadable, Overlay, Queue, RemoteList, S3Effect, State, TaskId, TaskKind, TaskSignal, Ticket,
};
use crate::window::{s3, tasks};

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
    pub(crate) fn toggle_dialog(&self, state: &mut State, effects: &mut Queue<Effect>) {
        if state.overlay == self.dialog {
            state.overlay = Overlay::None;
            return;
        }
        state.overlay = self.dialog;
        effects.push(S3Effect::ReadSetup);
        let read = (self.place)(state).requested.as_ref();
        if let Some(query) = read.map(|(_, query)| query.clone()) {
            return self.read(state, query, effects);
        }
        let place = state.place();
        if let Some(access) = place.map(|place| place.access.clone()) {
            s3::update::set_access(state, access, effects);
        }
    }

    /// Reads the list from the start; cancels a pending request.
    pub(crate) fn read(&self, state: &mut State, query: ListQuery<S>, effects: &mut Queue<Effect>) {
        if let Some(task) = (self.place)(state).status.task() {
            tasks::update::signal(state, task, TaskSignal::Cancel, effects);
        }
        let access = state.s3.access.clone();
        if access.credentials != Credentials::Anonymous {
            s3::update::check_sign_in(state, &access, effects);
        }
        let query = ListQuery { page_token: None, ..query };
        (self.place)(state).begin_anew(access, query);
        self.read_page(state, None, effects);
    }

    pub(crate) fn read_more(&self, state: &mut State, effects: &mut Queue<Effect>) {
        if let Some(next) = (self.place)(state).goes_on_at() {
            self.read_page(state, Some(next), effects);
        }
    }

    fn read_page(&self, state: &mut State, page_token: Option<String>, effects: &mut Queue<Effect>) {
        let Some((access, query)) = (self.place)(state).requested.clone() else {
            return;
        };
        let query = ListQuery { page_token, ..query };
        let (kind, title) = (self.kind.clone(), self.title.to_owned());
        let ticket = begin(state, kind, ProgressUnit::Steps, title);
        (self.place)(state).status = Loadable::Loading(ticket.id);
        effects.push((self.effect)(access, query, ticket));
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
