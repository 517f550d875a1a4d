//! Remote work: sending models to SageMaker, its jobs and its endpoints.

pub(super) mod endpoint_form;
pub(super) mod endpoints;
mod forms;
mod job_form;
pub(super) mod jobs;
mod lists;
pub(super) mod outputs;
mod prices;
pub(super) mod reading;
mod remote_inference;
mod remote_model;

pub(super) use job_form::open_form;
pub(super) use jobs::{open_jobs, watch_again};
pub(super) use outputs::{compare_with_local, outputs_dialog};
pub(super) use remote_inference::{connect, connected, measured, predicted};
pub(super) use remote_model::{
    check as check_remote_model, checked as remote_model_checked, edit as edit_remote_model, edit_endpoint,
    edit_tf_serving, response_shown, show_response,
};

use super::run_tasks::{begin, end, settle};
