//! Predicting with a remote model: connecting to it, and storing its predictions.
//!
//! Only the current image and images requested by the user are sent: no neighbors, and no image twice.

pub(crate) mod form;

use crate::domain::{LatencyMs, Problem, RunInfo, RunKey, Sample, SampleId};
use crate::tasks::ProgressUnit;
use crate::window::state::{
    ConnectFailure, ConnectRequest, EngineFailure, FoundModel, InferenceEffect, Loadable, Offer, QueuedImages,
    RemoteEngine, RemoteOutcome, RemotePrediction, SourceId, State, TaskId, TaskKind, TaskOutcome,
};
use crate::window::tasks::update::begin;
use crate::window::{browse, predict, project};

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
    project::update::requests::load_runs_on_screen(state);
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
