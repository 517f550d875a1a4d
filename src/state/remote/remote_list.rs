//! A list of things in SageMaker that comes page by page.

use crate::domain::{ListQuery, S3Access};
use crate::state::{Failure, TaskId};

/// A list of jobs or endpoints, as far as it was read: `S` is the status of a row, `T` a row.
#[derive(Debug)]
pub struct RemoteList<S, T> {
    /// The access and query of the list; `None` before it was first requested.
    pub requested: Option<(S3Access, ListQuery<S>)>,
    /// Newest first.
    pub rows: Vec<T>,
    /// The token of the next page, if there is one.
    pub next: Option<String>,
    pub task: Option<TaskId>,
    pub failure: Option<Failure>,
}

impl<S, T> Default for RemoteList<S, T> {
    fn default() -> Self {
        Self { requested: None, rows: Vec::new(), next: None, task: None, failure: None }
    }
}

impl<S: PartialEq, T> RemoteList<S, T> {
    /// Whether it is known that there is nothing.
    pub fn is_known_to_be_empty(&self) -> bool {
        self.rows.is_empty() && self.task.is_none() && self.failure.is_none()
    }

    /// The list is read from its beginning. If the query is the same as before, the old rows stay on screen until the
    /// new ones come.
    pub(in crate::state) fn begin_anew(&mut self, access: S3Access, query: ListQuery<S>) {
        let requested = Some((access, query));
        let rows = if self.requested == requested { std::mem::take(&mut self.rows) } else { Vec::new() };
        *self = Self { requested, rows, ..Self::default() };
    }

    /// The token of the next page, unless it is being read.
    pub(in crate::state) fn goes_on_at(&self) -> Option<String> {
        self.next.clone().filter(|_| self.task.is_none())
    }

    /// Adds a page and the token of the next one; the first page replaces all rows. False if the list is no longer
    /// awaited.
    pub(in crate::state) fn take(
        &mut self,
        task: TaskId,
        is_first: bool,
        page: Result<(Vec<T>, Option<String>), Failure>,
    ) -> bool {
        if self.task != Some(task) {
            return false;
        }
        self.task = None;
        match page {
            Ok((rows, next)) => {
                if is_first {
                    self.rows.clear();
                }
                self.rows.extend(rows);
                self.next = next;
                self.failure = None;
            }
            Err(failure) => self.failure = Some(failure),
        }
        true
    }
}
