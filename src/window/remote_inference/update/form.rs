//! The dialog for a remote model.

use std::sync::Arc;

use crate::domain::S3Access;
use crate::sagemaker::spec::output_mapping::ResponseExamples;
use crate::sagemaker::spec::remote_model::{RemoteAddress, RemoteModel};
use crate::tasks::ProgressUnit;
use crate::window::state::{
    Failure, InferenceEffect, Loadable, OutputsEffect, Overlay, RemoteCheck, S3Effect, SourceId, State, TaskId,
    TaskKind,
};
use crate::window::tasks::update::{begin, cancel, settle};
use crate::window::{outputs, s3};

/// Shows the dialog with the last chosen endpoint.
pub(crate) fn edit_endpoint(state: &mut State) {
    let is_endpoint = |model: &&RemoteModel| matches!(model.at, RemoteAddress::Endpoint { .. });
    let last = last_of(state, is_endpoint).unwrap_or_else(|| {
        let place = state.place();
        let access = place.map_or(&state.s3.access, |place| &place.access);
        RemoteModel::at_endpoint("", access.into())
    });
    edit(state, last);
}

pub(crate) fn edit_tf_serving(state: &mut State) {
    let is_served = |model: &&RemoteModel| matches!(model.at, RemoteAddress::TfServing { .. });
    let last = last_of(state, is_served).unwrap_or_else(|| RemoteModel::in_tf_serving(""));
    edit(state, last);
}

fn last_of(state: &State, is_it: impl Fn(&&RemoteModel) -> bool) -> Option<RemoteModel> {
    let chosen = state.inference.remote_model().into_iter();
    let recent = state.settings.recent_remote_models.iter();
    chosen.chain(recent).find(is_it).cloned()
}

/// Shows the dialog with these fields.
pub(crate) fn edit(state: &mut State, model: RemoteModel) {
    stop_checking(state);
    if let RemoteAddress::Endpoint { access, .. } = &model.at {
        let access =
            S3Access { credentials: access.credentials.clone(), region: access.region.clone(), ..S3Access::default() };
        s3::update::set_access(state, access);
        state.effects.push(S3Effect::ReadSetup);
    }
    show_first_prediction(state, &model);
    let form = &mut state.remote.remote_model;
    form.serial = state.ids.next();
    form.draft = Some(model);
    if form.response.failure().is_some() {
        form.response = Loadable::NotLoaded;
    }
    state.remote.reading.failure = None;
    state.overlay = Overlay::RemoteInference;
    state.effects.push(OutputsEffect::ListMappings);
}

/// Uses the first response of this model for testing a mapping, not those of other models.
fn show_first_prediction(state: &mut State, model: &RemoteModel) {
    let remote = state.inference.remote.as_ref();
    let first = remote.filter(|remote| remote.model.at == model.at).and_then(|remote| remote.first_response.clone());
    if state.remote.reading.examples_of.as_ref() != Some(&model.at) || first.is_some() {
        state.remote.reading.forget_examples();
    }
    if let (Some(first), Some(source)) = (first, state.source_id()) {
        state.remote.reading.requested = Some(model.reading.clone());
        outputs::reading::update::set_examples(state, source, Some(model.at.clone()), first);
    }
}

/// Requests a prediction of the shown image, only to show how the response is read.
pub(crate) fn show_response(state: &mut State, model: RemoteModel) {
    let (false, Some(source), Some(sample)) =
        (state.remote.remote_model.response.is_loading(), state.source_id(), state.shown_sample())
    else {
        return;
    };
    let Some(entry) = state.samples.get(sample).cloned() else {
        return;
    };
    let title = format!("Preview a prediction of {}", model.name());
    let ticket = begin(state, TaskKind::Connect, ProgressUnit::Steps, title);
    let form = &mut state.remote.remote_model;
    form.response = Loadable::Loading(ticket.id);
    state.effects.push(InferenceEffect::ShowResponse { source, model, entry, ticket });
}

pub(crate) fn response_shown(
    state: &mut State,
    source: SourceId,
    task: TaskId,
    of: RemoteAddress,
    result: Result<Arc<ResponseExamples>, Failure>,
) {
    let examples = result.as_ref().ok().cloned();
    let is_wanted = settle(state, task, result.map(drop), |state| Some(&mut state.remote.remote_model.response));
    if let (true, Some(examples)) = (is_wanted, examples) {
        outputs::reading::update::set_examples(state, source, Some(of), examples);
    }
}

fn stop_checking(state: &mut State) {
    cancel(state, state.remote.remote_model.check.task());
    let form = &mut state.remote.remote_model;
    form.check = Loadable::NotLoaded;
    form.checked = None;
}

/// Checks whether the model is available; replaces an earlier check.
pub(crate) fn check(state: &mut State, model: RemoteModel) {
    stop_checking(state);
    let title = format!("Check {}", model.name());
    let kind = TaskKind::CheckRemoteModel;
    let ticket = begin(state, kind, ProgressUnit::Steps, title);
    let form = &mut state.remote.remote_model;
    form.check = Loadable::Loading(ticket.id);
    form.checked = Some(model.clone());
    state.effects.push(InferenceEffect::CheckRemoteModel { model, ticket });
}

/// Stores the check. A failure appears only in the dialog, not among the problems, because the name may be half typed.
pub(crate) fn checked(state: &mut State, task: TaskId, result: Result<RemoteCheck, Failure>) {
    state.tasks.forget(task);
    state.remote.remote_model.check.settle(task, result);
}
