//! What happens elsewhere: sending models to SageMaker, the jobs there, and the endpoints.

pub(super) mod deploying;
mod elsewhere;
pub(super) mod endpoints;
mod jobs;
mod outputs;
mod prices;
pub(super) mod reading;
mod sending;

pub(super) use elsewhere::{
    Heard, answer_looked_at, ask, asked, check as check_remote_model,
    checked as remote_model_checked, come_back, connect, connected, edit as edit_remote_model,
    edit_endpoint, edit_tf_serving, look_at_answer, predict_at, took,
};
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
pub(super) use sending::{check, checked, open_form, rehearse, rehearsed, start, started};

use super::run_tasks::{begin, end};
use crate::state::{JobFinding, S3Failure};

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
