//! Predicting with a remote model: its dialog, connecting to it, and storing its predictions.
//!
//! Only the current image and images requested by the user are sent: no neighbors, and no image twice.

use std::sync::Arc;

use crate::domain::{LatencyMs, Problem, RunInfo, RunKey, Sample, SampleId};
use crate::sagemaker::spec::output_mapping::ResponseExamples;
use crate::sagemaker::spec::remote_model::{RemoteAddress, RemoteModel};
use crate::tasks::ProgressUnit;
use crate::window::state::{
    ConnectFailure, ConnectRequest, EngineFailure, Failure, FoundModel, InferenceEffect, Loadable, Offer,
    OutputsEffect, Overlay, QueuedImages, RemoteCheck, RemoteEngine, RemoteOutcome, RemotePrediction, S3Effect,
    SourceId, State, TaskId, TaskKind, TaskOutcome,
};
use crate::window::tasks::update::{begin, cancel, settle};
use crate::window::{browse, outputs, predict, project, s3};

/// The number of queued images sent to determine a model's response format.
const PROBES: usize = 3;

/// Determines the response format of the remote model with the current image or the first queued images.
pub(crate) fn connect(state: &mut State) {
    let samples = samples_to_try(state);
    let (Some(remote), Some(source)) = (&state.inference.remote, &state.source) else {
        return;
    };
    if samples.is_empty() || matches!(remote.status, Loadable::Loading(_)) {
        return;
    }
    let (source, model) = (source.id, remote.model.clone());
    let runs = state.runs.iter().map(|run| &run.info);
    let known: Vec<RunInfo> = runs.filter(|info| model.is_where(&info.key.made)).cloned().collect();
    let title = format!("Connect to {}", model.name());
    let ticket = begin(state, TaskKind::Connect, ProgressUnit::Steps, title);
    state.inference.remote =
        Some(RemoteEngine { status: Loadable::Loading(ticket.id), ..RemoteEngine::new(model.clone()) });
    state.effects.push(InferenceEffect::Connect(ConnectRequest { source, model, samples, known, ticket }));
}

fn samples_to_try(state: &State) -> Vec<(SampleId, Sample)> {
    let run = predict::update::predict::active_run(state).and_then(|run| state.runs.get(run));
    let queued = predict::update::predict::queued_samples(state, run);
    let requested = queued.unwrap_or_else(|| state.selection.shown().into_iter().collect());
    let with_entry = |sample: SampleId| Some((sample, state.samples.get(sample)?.clone()));
    requested.iter().take(PROBES).filter_map(with_entry).collect()
}

pub(crate) fn connected(
    state: &mut State,
    source: SourceId,
    task: TaskId,
    at_ms: i64,
    result: Result<FoundModel, ConnectFailure>,
) {
    match &result {
        Ok(_) => state.tasks.forget(task),
        Err(ConnectFailure::Cancelled) => drop(state.tasks.end(task, TaskOutcome::Cancelled)),
        Err(ConnectFailure::OfImage(_, message) | ConnectFailure::Failed { message, .. }) => {
            state.tasks.end(task, TaskOutcome::Failed(message.clone()));
        }
    }
    let remote = state.inference.remote.as_ref();
    if remote.is_none_or(|remote| !remote.status.is_by(task)) {
        return;
    }
    match result {
        Ok(found) => model_found(state, source, at_ms, found),
        Err(_) if !state.is_open(source) => {
            // The images to send are no longer open.
            state.inference.reset();
            predict::update::predict::predict_shown_if_wanted(state);
        }
        Err(failure) => take_failure(state, failure),
    }
}

fn model_found(state: &mut State, source: SourceId, at_ms: i64, found: FoundModel) {
    let Some(remote) = &mut state.inference.remote else {
        return;
    };
    state.settings.remember_remote_model(&remote.model);
    remote.first_response = found.examples;
    remote.status = Loadable::Ready(found.report);
    remote.found = Some((found.key, found.card, found.labels));
    let Some(run) = predict::update::predict::begin_kept_run(state) else {
        return;
    };
    project::update::load_runs_on_screen(state);
    if let Some((prediction, took_ms)) = found.first {
        let queued = &mut state.inference.queued;
        if let Some(QueuedImages::These(samples)) = queued {
            samples.remove(prediction.sample);
            if samples.is_empty() {
                *queued = None;
            }
        }
        let latencies_ms = &mut state.inference.latencies_ms;
        latencies_ms.insert((run, prediction.sample), took_ms);
        predict::update::predicted(state, source, run, at_ms, vec![prediction]);
    }
    browse::update::shown::refresh(state);
    predict::update::predict::predict_shown_if_wanted(state);
    predict::update::predict::start_queued(state);
}

fn take_failure(state: &mut State, failure: ConnectFailure) {
    state.inference.queued = None;
    let Some(remote) = &mut state.inference.remote else {
        return;
    };
    remote.status = Loadable::Failed(match failure {
        ConnectFailure::Cancelled => {
            let message = "Canceled before the model responded".to_owned();
            EngineFailure::new(message, Offer::TryAgain)
        }
        ConnectFailure::OfImage(sample, message) => {
            if let Some(entry) = state.samples.get(sample) {
                let problem = Problem::new(entry.uri.clone(), message.clone());
                state.problems.add(problem, Some(sample));
            }
            EngineFailure { sample: Some(sample), ..EngineFailure::new(message, Offer::TryAgain) }
        }
        ConnectFailure::Failed { message, examples, renewal } => {
            state.problems.add_general(message.clone());
            let offer = match examples {
                Some(_) => Offer::SetResponseMapping,
                None => Offer::TryAgain,
            };
            remote.first_response = examples;
            remote.renewal = renewal;
            EngineFailure::new(message, offer)
        }
    });
    // Another image may be shown by now.
    predict::update::predict::predict_shown_if_wanted(state);
}

pub(crate) fn predicted(state: &mut State, prediction: RemotePrediction) {
    let RemotePrediction { image, task, at_ms, outcome } = prediction;
    let (source, run, sample) = (image.source, image.run, image.sample);
    let is_open = state.is_open(source);
    let is_predicted = matches!(outcome, RemoteOutcome::Predicted { .. });
    if let (false, true, Some(run)) = (is_predicted, is_open, state.runs.get_mut(run)) {
        run.predictions.stop_waiting(std::iter::once(sample));
    }
    match outcome {
        RemoteOutcome::Predicted { prediction, took_ms } => {
            state.tasks.forget(task);
            if !is_open {
                return;
            }
            let latencies_ms = &mut state.inference.latencies_ms;
            latencies_ms.remove(&(run, sample));
            latencies_ms.extend(took_ms.map(|took_ms| ((run, sample), took_ms)));
            predict::update::predicted(state, source, run, at_ms, vec![prediction]);
        }
        RemoteOutcome::NotSent => state.tasks.forget(task),
        RemoteOutcome::SourceUnreachable(message) => {
            state.tasks.end(task, TaskOutcome::Failed(message.clone()));
            state.problems.add_general(message);
        }
        RemoteOutcome::OutOfReach { message, renewal } => {
            state.tasks.end(task, TaskOutcome::Failed(message.clone()));
            let is_current = predict::update::lost(state, &image.key, message);
            if let (true, Some(remote)) = (is_current, &mut state.inference.remote) {
                remote.renewal = renewal;
            }
        }
    }
}

pub(crate) fn measured(state: &mut State, key: &RunKey, latency: Option<LatencyMs>) {
    let is_ready = state.inference.is_ready_for(key);
    let remote = state.inference.remote.as_mut().filter(|_| is_ready);
    if let Some(Loadable::Ready(report)) = remote.map(|remote| &mut remote.status) {
        report.latency = latency;
    }
}

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
        s3::update::set_access(state, access.into());
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
        outputs::update::set_examples(state, source, Some(model.at.clone()), first);
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
        outputs::update::set_examples(state, source, Some(of), examples);
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
