//! What happens elsewhere: sending models to SageMaker, the jobs there, and the endpoints.

pub(super) mod endpoint_form;
pub(super) mod endpoints;
mod forms;
mod job_form;
pub(super) mod jobs;
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
    check as check_remote_model, checked as remote_model_checked, edit as edit_remote_model,
    edit_endpoint, edit_tf_serving, response_shown, show_response,
};

use super::run_tasks::{self, begin, end, settle};
use super::s3;
use crate::domain::{Credentials, S3Access};
use crate::state::{Effect, Overlay, Queue, S3Effect, State, TaskId, TaskSignal};

/// Opens or closes the dialog with a list. True where it is open now: a list that was read before is read anew. Nobody is asked before the
/// user wants it: a first time, there is a button.
fn open_list(
    state: &mut State,
    dialog: Overlay,
    is_first: bool,
    effects: &mut Queue<Effect>,
) -> bool {
    if state.overlay == dialog {
        state.overlay = Overlay::None;
        return false;
    }
    state.overlay = dialog;
    effects.push(S3Effect::ReadSetup);
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
    effects: &mut Queue<Effect>,
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
