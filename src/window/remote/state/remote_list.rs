//! A paginated list from SageMaker.

use crate::domain::{ListPage, ListQuery, S3Access};
use crate::window::state::{Failure, Loadable, TaskId};

/// A list of jobs or endpoints, as far as read: `S` is the status of a row, `T` a row.
#[derive(Debug)]
pub struct RemoteList<S, T> {
    /// The access and query of the list; `None` before it was first requested.
    pub requested: Option<(S3Access, ListQuery<S>)>,
    /// Newest first.
    pub rows: Vec<T>,
    /// The token of the next page, if there is one.
    pub next: Option<String>,
    /// The task that reads the last page.
    pub status: Loadable<()>,
}

impl<S, T> Default for RemoteList<S, T> {
    fn default() -> Self {
        Self { requested: None, rows: Vec::new(), next: None, status: Loadable::NotLoaded }
    }
}

impl<S: PartialEq, T> RemoteList<S, T> {
    pub fn is_known_to_be_empty(&self) -> bool {
        self.rows.is_empty() && self.status.ready().is_some()
    }

    /// Restarts the list. If the query is unchanged, the old rows stay on screen until the new ones arrive.
    pub(crate) fn begin_anew(&mut self, access: S3Access, query: ListQuery<S>) {
        let requested = Some((access, query));
        let rows = if self.requested == requested { std::mem::take(&mut self.rows) } else { Vec::new() };
        *self = Self { requested, rows, ..Self::default() };
    }

    /// The token of the next page, unless it is being read.
    pub(crate) fn goes_on_at(&self) -> Option<String> {
        self.next.clone().filter(|_| !self.status.is_loading())
    }

    /// Adds a page; the first one replaces all rows. False if it is late.
    pub(crate) fn take(&mut self, task: TaskId, is_first: bool, page: Result<ListPage<T>, Failure>) -> bool {
        let (page, result) = match page {
            Ok(page) => (Some(page), Ok(())),
            Err(failure) => (None, Err(failure)),
        };
        let is_wanted = self.status.settle(task, result);
        if let Some(page) = page.filter(|_| is_wanted) {
            if is_first {
                self.rows.clear();
            }
            self.rows.extend(page.items);
            self.next = page.next;
        }
        is_wanted
    }
}
