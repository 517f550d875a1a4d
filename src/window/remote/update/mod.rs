//! Remote work: sending models to SageMaker, its jobs and its endpoints.

pub(crate) mod forms;
pub(crate) mod lists;

pub(crate) use crate::window::jobs::form::update::open_form;
pub(crate) use crate::window::jobs::update::{open_jobs, watch_again};
pub(crate) use crate::window::outputs::update::{compare_with_local, outputs_dialog};
pub(crate) use crate::window::remote_inference::update::form::{
    check as check_remote_model, checked as remote_model_checked, edit as edit_remote_model, edit_endpoint,
    edit_tf_serving, response_shown, show_response,
};
pub(crate) use crate::window::remote_inference::update::{connect, connected, measured, predicted};

pub(crate) use crate::window::tasks::update::{begin, end, settle};
