//! A value that a task loads in the background, or the reason for its failure.

use super::{TaskId, TaskOutcome};
use crate::tasks::Cancelled;

/// A value that a task loads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Loadable<T, E = Failure> {
    #[default]
    NotLoaded,
    Loading(TaskId),
    Ready(T),
    Failed(E),
}

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The task was canceled; nothing is wrong.
    Cancelled,
    Failed {
        /// The message: what happened, why, and what to do.
        message: String,
        /// The command that renews the sign-in, if that helps.
        renewal: Option<String>,
    },
}

impl<T, E> Loadable<T, E> {
    pub fn ready(&self) -> Option<&T> {
        match self {
            Self::Ready(value) => Some(value),
            Self::NotLoaded | Self::Loading(_) | Self::Failed(_) => None,
        }
    }

    pub fn is_loading(&self) -> bool {
        self.task().is_some()
    }

    pub fn task(&self) -> Option<TaskId> {
        match self {
            Self::Loading(task) => Some(*task),
            Self::NotLoaded | Self::Ready(_) | Self::Failed(_) => None,
        }
    }

    pub fn failure(&self) -> Option<&E> {
        match self {
            Self::Failed(failure) => Some(failure),
            Self::NotLoaded | Self::Loading(_) | Self::Ready(_) => None,
        }
    }

    pub(crate) fn is_by(&self, task: TaskId) -> bool {
        self.task() == Some(task)
    }
}

impl<T> Loadable<T> {
    /// Stores the result of a task. Returns false, without a change, for a late result: another task is loading the
    /// value, or none is.
    pub(crate) fn settle(&mut self, task: TaskId, result: Result<T, Failure>) -> bool {
        let is_wanted = self.is_by(task);
        if is_wanted {
            *self = match result {
                Ok(value) => Self::Ready(value),
                Err(Failure::Cancelled) => Self::NotLoaded,
                Err(failure) => Self::Failed(failure),
            };
        }
        is_wanted
    }
}

impl Failure {
    pub fn new(message: impl Into<String>) -> Self {
        Self::Failed { message: message.into(), renewal: None }
    }

    pub fn message(&self) -> &str {
        match self {
            Self::Cancelled => "Canceled",
            Self::Failed { message, .. } => message,
        }
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}

impl From<Cancelled> for Failure {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

impl From<Failure> for TaskOutcome {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Cancelled => Self::Cancelled,
            Failure::Failed { message, .. } => Self::Failed(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_result_is_dropped_and_canceled_one_repeated() {
        let (first, second) = (TaskId(1), TaskId(2));
        let mut value = Loadable::Loading(second);
        assert!(!value.settle(first, Ok(1)));
        assert_eq!(value, Loadable::Loading(second));
        assert!(value.settle(second, Err(Failure::Cancelled)));
        assert_eq!(value, Loadable::NotLoaded);
        assert!(!value.settle(second, Ok(2)));
        value = Loadable::Loading(first);
        assert!(value.settle(first, Ok(3)));
        assert_eq!(value.ready(), Some(&3));
    }
}
