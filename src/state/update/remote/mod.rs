//! What happens elsewhere: sending models to SageMaker, and the jobs there.

mod jobs;
mod outputs;
mod sending;

pub(super) use jobs::{
    delete_leftovers, leftovers_deleted, leftovers_found, list, list_more, listed,
    look_for_leftovers, look_for_outcome, open, open_jobs, outcome_found, retried, retry, seen,
    stop, stop_asked, stop_watching, trouble, watch, watch_again, watch_ended,
};
pub(super) use outputs::{compare_with_local, labelled, open_outputs, outputs_found, outputs_read};
pub(super) use sending::{check, checked, open_form, rehearse, rehearsed, start, started};

use crate::state::{S3Failure, State, TaskEntry, TaskId, TaskKind, TaskOutcome};
use crate::tasks::{ProgressUnit, TaskControl};

fn begin(
    state: &mut State,
    kind: TaskKind,
    unit: ProgressUnit,
    title: String,
) -> (TaskId, TaskControl) {
    let control = TaskControl::new(unit);
    let id = TaskId(state.ids.next());
    state.tasks.start(TaskEntry {
        id,
        kind,
        title,
        control: control.clone(),
    });
    (id, control)
}

/// What went well is seen where it was asked for; a failure is listed as well.
fn end(state: &mut State, task: TaskId, failure: Option<&S3Failure>) {
    match failure {
        None | Some(S3Failure::Cancelled) => state.tasks.forget(task),
        Some(S3Failure::Failed { message, .. }) => {
            drop(state.tasks.end(task, TaskOutcome::Failed(message.clone())));
        }
    }
}

/// For people: a cancelled task needs no words.
fn words_of(failure: S3Failure) -> String {
    match failure {
        S3Failure::Cancelled => "Cancelled".to_owned(),
        S3Failure::Failed { message, .. } => message,
    }
}
