//! What happens elsewhere: sending models to SageMaker, the jobs there, and the endpoints.

pub(super) mod endpoint_form;
pub(super) mod endpoints;
mod forms;
mod job_form;
mod jobs;
mod outputs;
mod prices;
pub(super) mod reading;
mod remote_inference;
mod remote_model;

pub(super) use job_form::{check, checked, open_form, rehearse, rehearsed, start, started};
pub(super) use jobs::{
    delete_leftovers, drop_retry, leftovers_deleted, leftovers_found, list, list_more, listed,
    look_for_leftovers, look_for_outcome, open, open_jobs, outcome_found, plan_retry,
    retry_planned, retry_started, seen, start_retry, stop, stop_asked, stop_watching, trouble,
    watch, watch_again, watch_ended,
};
pub(super) use outputs::{
    compare_with_local, labelled, look_at_outputs, looked_at_outputs, open_outputs, outputs_dialog,
    outputs_found, outputs_read,
};
pub(super) use prices::prices_read;
pub(super) use remote_inference::{connect, connected, measured, predicted};
pub(super) use remote_model::{
    check as check_remote_model, checked as remote_model_checked, edit as edit_remote_model,
    edit_endpoint, edit_tf_serving, response_shown, show_response,
};

use super::run_tasks::{self, begin, end};
use super::s3;
use crate::domain::{Credentials, S3Access};
use crate::state::{
    Effect, JobFinding, Overlay, S3Failure, SendStage, State, TaskId, TaskOutcome, TaskSignal,
};

/// Opens or closes the dialog with a list. True where it is open now: a list that was read before is read anew. Nobody is asked before the
/// user wants it: a first time, there is a button.
fn open_list(
    state: &mut State,
    dialog: Overlay,
    is_first: bool,
    effects: &mut Vec<Effect>,
) -> bool {
    if state.overlay == dialog {
        state.overlay = Overlay::None;
        return false;
    }
    state.overlay = dialog;
    effects.push(Effect::ReadAwsSetup);
    let place = state.source.as_ref().and_then(|open| open.place.as_ref());
    if let (true, Some(access)) = (is_first, place.map(|place| place.access.clone())) {
        s3::set_access(state, access, effects);
    }
    true
}

/// Who is asked for a list now; whoever is still asking is stopped.
fn access_for_list(
    state: &mut State,
    running: Option<TaskId>,
    effects: &mut Vec<Effect>,
) -> S3Access {
    if let Some(task) = running {
        run_tasks::signal(state, task, TaskSignal::Cancel, effects);
    }
    let access = state.s3.access.clone();
    if access.credentials != Credentials::Anonymous {
        s3::ask_who(state, &access, effects);
    }
    access
}

/// Ends a task that came to nothing.
fn failed<T>(state: &mut State, task: TaskId, outcome: TaskOutcome) -> SendStage<T> {
    match outcome {
        TaskOutcome::Failed(message) => {
            drop(state.tasks.end(task, TaskOutcome::Failed(message.clone())));
            SendStage::Failed(message)
        }
        TaskOutcome::Done(_) | TaskOutcome::Cancelled => {
            drop(state.tasks.end(task, outcome));
            SendStage::NotYet
        }
    }
}

/// What was looked for, or why it is not known.
fn finding<T>(result: Result<T, S3Failure>) -> JobFinding<T> {
    match result {
        Ok(found) => JobFinding::Known(found),
        Err(failure) => JobFinding::Failed(words_of(failure)),
    }
}

/// For people: a cancelled task needs no words.
fn words_of(failure: S3Failure) -> String {
    match failure {
        S3Failure::Cancelled => "Cancelled".to_owned(),
        S3Failure::Failed { message, .. } => message,
    }
}
