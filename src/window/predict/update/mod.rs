//! The results of loading a model and of predicting.

pub(crate) mod predict;
pub(crate) mod run_on_screen;

use std::sync::Arc;

use crate::domain::{Change, DeviceReport, Problem, RunId, RunKey, SampleId, SamplePrediction};
use crate::review::PredictionStatus;
use crate::window::state::{
    EngineFailure, InferenceCommand, InferenceEvent, Loadable, NewPrediction, Offer, SourceId, State, TaskId,
    TaskOutcome,
};
use crate::window::{browse, explain, models, project, remote_inference};

pub(crate) fn on_command(state: &mut State, command: InferenceCommand) {
    match command {
        InferenceCommand::PredictAt(model) => {
            predict::predict_at(state, model.map(|model| *model));
        }
        InferenceCommand::EditRemoteModel(model) => {
            remote_inference::update::edit(state, *model);
        }
        InferenceCommand::CheckRemoteModel(model) => {
            remote_inference::update::check(state, *model);
        }
        InferenceCommand::ForgetRemoteModel(model) => {
            let recent = &mut state.settings.recent_remote_models;
            recent.retain(|known| *known != *model);
        }
        InferenceCommand::ShowResponse(model) => remote_inference::update::show_response(state, *model),
        InferenceCommand::ChooseDevice(device) => {
            state.settings.device = device;
            models::update::settings_changed(state);
        }
        InferenceCommand::SetBatch(batch) => {
            state.settings.batch = batch;
            models::update::settings_changed(state);
        }
        InferenceCommand::SetThreads(threads) => {
            state.settings.threads = threads;
            models::update::settings_changed(state);
        }
        InferenceCommand::SetRuntimeLibrary(path) => {
            state.settings.runtime_library = path;
            models::update::runtime_changed(state);
        }
        InferenceCommand::InstallRuntime(kind) => models::update::install_runtime(state, kind),
        InferenceCommand::SetPredictOnOpen(enabled) => {
            state.settings.predict_on_open = enabled;
            predict::predict_shown_if_wanted(state);
        }
        InferenceCommand::TryAgain => try_again(state),
    }
}

pub(crate) fn on_event(state: &mut State, event: InferenceEvent) {
    match event {
        InferenceEvent::Ready { task, report, restart_to_use } => ready(state, task, report, restart_to_use),
        InferenceEvent::Failed { task, message, offer } => failed(state, task, message, offer),
        InferenceEvent::Cancelled { task } => cancelled(state, task),
        InferenceEvent::Connected { source, task, at_ms, result } => {
            let result = result.map(|found| *found);
            remote_inference::update::connected(state, source, task, at_ms, result);
        }
        InferenceEvent::RemotePredicted(prediction) => {
            remote_inference::update::predicted(state, *prediction);
        }
        InferenceEvent::RemoteLatency { key, latency } => remote_inference::update::measured(state, &key, latency),
        InferenceEvent::RemoteModelChecked(task, result) => {
            remote_inference::update::checked(state, task, result);
        }
        InferenceEvent::DeviceLost { key, message } => drop(lost(state, &key, message)),
        InferenceEvent::Report { key, report } => reported(state, &key, report),
        InferenceEvent::NotPredicted { source, run, sample, message } => {
            not_predicted(state, source, run, sample, message);
        }
        InferenceEvent::Predicted { source, run, at_ms, predictions } => {
            predicted(state, source, run, at_ms, predictions);
        }
        InferenceEvent::ResponseShown { source, task, of, result } => {
            remote_inference::update::response_shown(state, source, task, *of, result);
        }
    }
}

fn ready(state: &mut State, task: TaskId, report: Box<DeviceReport>, restart_to_use: Option<String>) {
    state.tasks.forget(task);
    let local = &mut state.inference.local;
    if !local.status.is_by(task) {
        return;
    }
    local.status = Loadable::Ready(report);
    local.restart_to_use = restart_to_use;
    explain::update::start_waiting(state);
    if predict::is_ready(state) && predict::begin_run(state).is_some() {
        predict::predict_shown_if_wanted(state);
        predict::start_queued(state);
    }
}

fn failed(state: &mut State, task: TaskId, message: String, offer: Offer) {
    state.tasks.end(task, TaskOutcome::Failed(message.clone()));
    if state.inference.local.status.is_by(task) {
        state.problems.add_general(message.clone());
        explain::update::stop_waiting(state, &message);
        not_loaded(state, message, offer);
    }
}

fn cancelled(state: &mut State, task: TaskId) {
    state.tasks.end(task, TaskOutcome::Cancelled);
    if state.inference.local.status.is_by(task) {
        explain::update::stop_waiting(state, "the model was not loaded");
        let message = "Canceled before the model was ready".to_owned();
        not_loaded(state, message, Offer::TryAgain);
    }
}

fn not_loaded(state: &mut State, message: String, offer: Offer) {
    state.inference.queued = None;
    state.inference.local.status = Loadable::Failed(EngineFailure::new(message, offer));
}

/// Handles a lost device or an unreachable remote model. Predictions stay; the rest can be requested once the model is
/// ready again.
///
/// Returns false if another model predicts by now.
pub(crate) fn lost(state: &mut State, key: &RunKey, message: String) -> bool {
    state.problems.add_general(message.clone());
    let failure = EngineFailure::new(message, Offer::TryAgain);
    let is_current = state.inference.fail_for(key, failure);
    if is_current
        && let Some(latest) = state.inference.local.latest.take()
        && let Some(run) = predict::active_run(state)
        && let Some(run) = state.runs.get_mut(run)
    {
        run.predictions.stop_waiting(std::iter::once(latest));
    }
    is_current
}

/// Leaves the image without a prediction, so that it can be requested again.
fn not_predicted(state: &mut State, source: SourceId, run: RunId, sample: SampleId, message: String) {
    if let (true, Some(run)) = (state.is_open(source), state.runs.get_mut(run)) {
        run.predictions.stop_waiting(std::iter::once(sample));
        state.problems.add_general(message);
    }
}

pub(crate) fn try_again(state: &mut State) {
    state.inference.reset();
    predict::request_shown(state);
}

fn reported(state: &mut State, key: &RunKey, report: Box<DeviceReport>) {
    if state.inference.is_ready_for(key) {
        state.inference.local.status = Loadable::Ready(report);
    }
}

pub(crate) fn predicted(
    state: &mut State,
    source: SourceId,
    run_id: RunId,
    at_ms: i64,
    predictions: Vec<NewPrediction>,
) {
    if !state.is_open(source) {
        return;
    }
    let predictions = without_kept(state, run_id, predictions);
    let Some(run) = state.runs.get_mut(run_id).filter(|_| !predictions.is_empty()) else {
        return;
    };
    let replaced = predictions.iter().map(|prediction| prediction.sample);
    let replaced = replaced.filter(|sample| run.status(*sample) == PredictionStatus::Predicted);
    state.judgments.forget_predictions(run_id, &replaced.collect());
    let mut changes = Vec::new();
    if !run.is_in_project {
        run.is_in_project = true;
        run.info.created_ms = at_ms;
        changes.push(Change::AddRun(Box::new(run.info.clone())));
    }
    let with_uri = |prediction: &NewPrediction| {
        let entry = state.samples.get(prediction.sample)?;
        Some(SamplePrediction {
            sample: entry.uri.clone(),
            stamp: prediction.stamp.clone(),
            result: prediction.result.clone(),
        })
    };
    changes.push(Change::Predictions { run: run_id, predictions: predictions.iter().filter_map(with_uri).collect() });
    let ticket = project::update::save(state, changes);
    let mut shown_has_prediction = false;
    for prediction in predictions {
        let is_outdated = !is_of_file(state, &prediction);
        let NewPrediction { sample, result, .. } = prediction;
        shown_has_prediction |= state.selection.shown() == Some(sample);
        if let (Err(reason), Some(entry)) = (&result, state.samples.get(sample))
            && state.samples.unreadable(sample).is_none()
        {
            let problem = Problem::new(entry.uri.clone(), reason.clone());
            state.problems.add(problem, Some(sample));
        }
        state.runs.record(run_id, sample, result.map(Arc::new), ticket);
        if is_outdated && let Some(run) = state.runs.get_mut(run_id) {
            run.outdated.insert(sample);
        }
    }
    if shown_has_prediction {
        browse::update::shown::refresh(state);
    }
}

/// Whether the file is still the version that the model saw.
fn is_of_file(state: &State, prediction: &NewPrediction) -> bool {
    let entry = state.samples.get(prediction.sample);
    entry.is_none_or(|entry| prediction.stamp.is_of(&entry.stamp()))
}

/// Drops predictions for images whose current prediction was judged meanwhile, and those of an older file version if a
/// current one exists.
fn without_kept(state: &mut State, run: RunId, predictions: Vec<NewPrediction>) -> Vec<NewPrediction> {
    let is_late = |prediction: &NewPrediction| {
        let known = state.runs.get(run).filter(|run| {
            run.status(prediction.sample) == PredictionStatus::Predicted && !run.is_outdated(prediction.sample)
        });
        known.is_some() && !is_of_file(state, prediction)
    };
    let (kept, taken): (Vec<_>, Vec<_>) = predictions
        .into_iter()
        .filter(|prediction| !is_late(prediction))
        .partition(|prediction| state.keeps_prediction(run, prediction.sample));
    let first = kept.first().and_then(|prediction| state.samples.get(prediction.sample));
    if let Some(entry) = first {
        let name = entry.uri.file_name();
        state.show_notice(format!("{name} has a verdict, so its prediction is kept and the new one is discarded"));
    }
    taken
}
