//! Predicting with a model elsewhere.
//!
//! Nothing is sent but the image in view and what was asked for: no neighbours, no image twice.

use std::sync::Arc;

use super::super::{predict, project, run_tasks, s3};
use super::{begin, end, reading};
use crate::domain::{
    LatencyMs, Problem, RemoteAddress, RemoteModel, ResponseExamples, RunId, RunInfo, RunKey,
    S3Access, Sample, SampleId,
};
use crate::state::engine::Wish;
use crate::state::{
    Asked, ConnectFailure, Effect, Engine, EngineStatus, FoundModel, Offer, Overlay, RemoteCheck,
    RemoteReport, S3Failure, SendStage, SourceId, State, TaskId, TaskKind, TaskOutcome, TaskSignal,
};
use crate::tasks::ProgressUnit;

/// How many images of many are tried to find out what a model answers.
const PROBES: usize = 3;

/// From now on images are predicted there.
pub(in super::super) fn predict_at(
    state: &mut State,
    model: Option<RemoteModel>,
    effects: &mut Vec<Effect>,
) {
    state.overlay = Overlay::None;
    let is_remote = model.is_some();
    let is_other = state.remote.remote_inference.chosen != model;
    let before = std::mem::replace(&mut state.remote.remote_inference.chosen, model);
    if is_other || state.engine.has_failed() {
        run_tasks::cancel_preparation(state, effects);
        turn_to(state, before.is_some(), is_remote);
    }
    predict::chosen_changed(state, effects);
}

/// What is loaded on this computer stays so while images are predicted elsewhere.
fn turn_to(state: &mut State, was_remote: bool, is_remote: bool) {
    state.remote.remote_inference.first = None;
    state.remote.remote_inference.renewal = None;
    let here = if was_remote {
        std::mem::take(&mut state.remote.remote_inference.parked)
    } else {
        std::mem::take(&mut state.engine)
    };
    // What is being loaded has just been cancelled, and what failed may do better.
    let here = Some(here).filter(|engine| engine.report().is_some());
    let here = Engine {
        waiting: None,
        asked: None,
        ..here.unwrap_or_default()
    };
    if is_remote {
        state.remote.remote_inference.parked = here;
        state.engine = Engine::default();
    } else {
        state.engine = here;
    }
}

/// Images are predicted on this computer again; the run on screen stays.
pub(in super::super) fn come_back(state: &mut State, effects: &mut Vec<Effect>) {
    if state.remote.remote_inference.chosen.take().is_some() {
        run_tasks::cancel_preparation(state, effects);
        turn_to(state, true, false);
    }
}

/// Finds out what the chosen model answers: with the image in view, or with the first of those that are to be
/// predicted.
pub(in super::super) fn connect(state: &mut State, effects: &mut Vec<Effect>) {
    let (Some(model), Some(source)) = (
        state.remote.remote_inference.chosen.clone(),
        state.source.as_ref().map(|open| open.id),
    ) else {
        return;
    };
    let is_under_way = matches!(state.engine.status, EngineStatus::Preparing);
    let samples = samples_to_try(state);
    if is_under_way || samples.is_empty() {
        return;
    }
    let runs = state.runs.iter().map(|run| &run.info);
    let known: Vec<RunInfo> = runs
        .filter(|info| model.is_where(&info.key.made))
        .cloned()
        .collect();
    let title = format!("Connect to {}", model.name());
    let (task, control) = begin(state, TaskKind::Connect, ProgressUnit::Steps, title);
    state.remote.remote_inference.first = None;
    state.remote.remote_inference.renewal = None;
    state.engine = Engine {
        status: EngineStatus::Preparing,
        task: Some(task),
        remote: Some(model.clone()),
        waiting: state.engine.waiting.take(),
        ..Engine::default()
    };
    effects.push(Effect::Connect {
        source,
        model,
        samples,
        known,
        task,
        control,
    });
}

fn samples_to_try(state: &State) -> Vec<(SampleId, Sample)> {
    let run = predict::chosen_run(state).and_then(|run| state.runs.get(run));
    let is_unpredicted = |sample: &SampleId| run.is_none_or(|run| run.lacks_prediction(*sample));
    let with_entry = |sample: SampleId| Some((sample, state.samples.get(sample)?.clone()));
    let wanted: Vec<SampleId> = match &state.engine.waiting {
        None => state.selection.shown().into_iter().collect(),
        Some(Wish::These(samples)) => samples.iter().take(PROBES).collect(),
        Some(Wish::Unpredicted) => {
            let all = state.samples.ids();
            all.filter(is_unpredicted).take(PROBES).collect()
        }
        Some(Wish::UnpredictedOf(samples)) => {
            samples.iter().filter(is_unpredicted).take(PROBES).collect()
        }
    };
    wanted.into_iter().filter_map(with_entry).collect()
}

pub(in super::super) fn connected(
    state: &mut State,
    source: SourceId,
    task: TaskId,
    at_ms: i64,
    result: Result<FoundModel, ConnectFailure>,
    effects: &mut Vec<Effect>,
) {
    end_connecting(state, task, &result);
    if state.engine.task != Some(task) {
        return;
    }
    let is_open = state.source.as_ref().is_some_and(|open| open.id == source);
    match result {
        Ok(found) => take_found(state, source, at_ms, found, effects),
        // The images that it was to be asked about are not there any more.
        Err(_) if !is_open => {
            state.engine = Engine::default();
            predict::predict_shown_if_wanted(state, effects);
        }
        Err(failure) => take_failure(state, failure, effects),
    }
}

fn end_connecting(state: &mut State, task: TaskId, result: &Result<FoundModel, ConnectFailure>) {
    let outcome = match result {
        Ok(_) => return state.tasks.forget(task),
        Err(ConnectFailure::Cancelled) => TaskOutcome::Cancelled,
        Err(ConnectFailure::OfImage(_, message) | ConnectFailure::Failed { message, .. }) => {
            TaskOutcome::Failed(message.clone())
        }
    };
    drop(state.tasks.end(task, outcome));
}

fn take_found(
    state: &mut State,
    source: SourceId,
    at_ms: i64,
    found: FoundModel,
    effects: &mut Vec<Effect>,
) {
    let FoundModel {
        key,
        card,
        labels,
        report,
        examples,
        first,
    } = found;
    state.remote.remote_inference.first = examples;
    if let Some(model) = &state.engine.remote {
        state.settings.remember_remote_model(model);
    }
    state.engine.status = EngineStatus::Connected(report);
    state.engine.key = Some(key);
    state.engine.found = Some((card, labels));
    let Some(run) = predict::ensure_run(state) else {
        return;
    };
    project::load_current_run(state, effects);
    if let Some((prediction, took_ms)) = first {
        if let Some(Wish::These(samples)) = &mut state.engine.waiting {
            samples.remove(prediction.sample);
            if samples.is_empty() {
                state.engine.waiting = None;
            }
        }
        let took = &mut state.remote.remote_inference.took;
        took.insert((run, prediction.sample), took_ms);
        predict::predicted(state, source, run, at_ms, vec![prediction], effects);
    }
    predict::refresh_shown(state, effects);
    predict::predict_shown_if_wanted(state, effects);
    predict::grant_request(state, effects);
}

fn take_failure(state: &mut State, failure: ConnectFailure, effects: &mut Vec<Effect>) {
    state.engine.waiting = None;
    let (message, offer) = match failure {
        ConnectFailure::Cancelled => (
            "Cancelled before the model responded".to_owned(),
            Offer::TryAgain,
        ),
        ConnectFailure::OfImage(sample, message) => {
            state.engine.failed_about = Some(sample);
            if let Some(entry) = state.samples.get(sample) {
                let problem = Problem::of_sample(entry.uri.clone(), message.clone());
                state.problems.add(problem, Some(sample));
            }
            (message, Offer::TryAgain)
        }
        ConnectFailure::Failed {
            message,
            examples,
            renewal,
        } => {
            state.problems.add(Problem::general(message.clone()), None);
            let offer = match examples {
                Some(_) => Offer::SetResponseMapping,
                None => Offer::TryAgain,
            };
            state.remote.remote_inference.first = examples;
            state.remote.remote_inference.renewal = renewal;
            (message, offer)
        }
    };
    state.engine.status = EngineStatus::Failed {
        message,
        offer: Some(offer),
    };
    // Another image may have come into view meanwhile.
    predict::predict_shown_if_wanted(state, effects);
}

/// Asks about the image in view, unless that is under way.
pub(in super::super) fn ask(
    state: &mut State,
    run_id: RunId,
    sample: SampleId,
    effects: &mut Vec<Effect>,
) {
    if state.tasks.asks(run_id, sample) {
        return;
    }
    let (Some(source), Some(model), Some(entry)) = (
        state.source.as_ref().map(|open| open.id),
        state.remote.remote_inference.chosen.as_ref(),
        state.samples.get(sample).cloned(),
    ) else {
        return;
    };
    let title = format!("Predict with {}: {}", model.name(), entry.uri.file_name());
    let kind = TaskKind::Ask {
        run: run_id,
        sample,
    };
    let (task, control) = begin(state, kind, ProgressUnit::Steps, title);
    let Some(run) = state.runs.get_mut(run_id) else {
        return state.tasks.forget(task);
    };
    run.predictions.set_waiting(sample);
    effects.push(Effect::AskOne {
        source,
        run: run_id,
        key: run.info.key.clone(),
        sample,
        entry,
        task,
        control,
    });
}

/// What came of asking about one image, and when.
pub(in super::super) struct Heard {
    pub(in super::super) source: SourceId,
    pub(in super::super) task: TaskId,
    pub(in super::super) run: RunId,
    pub(in super::super) at_ms: i64,
}

pub(in super::super) fn asked(
    state: &mut State,
    heard: &Heard,
    key: &RunKey,
    outcome: Asked,
    effects: &mut Vec<Effect>,
) {
    let is_open = state
        .source
        .as_ref()
        .is_some_and(|open| open.id == heard.source);
    let about = state
        .tasks
        .get(heard.task)
        .and_then(|task| match task.kind {
            TaskKind::Ask { sample, .. } => Some(sample),
            _ => None,
        });
    let is_predicted = matches!(outcome, Asked::Predicted { .. });
    if let (false, true, Some(run)) = (is_predicted, is_open, state.runs.get_mut(heard.run)) {
        run.predictions.stop_waiting(about);
    }
    match outcome {
        Asked::Predicted {
            prediction,
            took_ms,
        } => {
            state.tasks.forget(heard.task);
            if !is_open {
                return;
            }
            let took = &mut state.remote.remote_inference.took;
            let asked = (heard.run, prediction.sample);
            match took_ms {
                Some(ms) => drop(took.insert(asked, ms)),
                None => drop(took.remove(&asked)),
            }
            predict::predicted(
                state,
                heard.source,
                heard.run,
                heard.at_ms,
                vec![prediction],
                effects,
            );
        }
        Asked::NotSent => state.tasks.forget(heard.task),
        Asked::SourceUnreachable(message) => {
            drop(
                state
                    .tasks
                    .end(heard.task, TaskOutcome::Failed(message.clone())),
            );
            state.problems.add(Problem::general(message), None);
        }
        Asked::OutOfReach { message, renewal } => {
            let outcome = TaskOutcome::Failed(message.clone());
            drop(state.tasks.end(heard.task, outcome));
            if state.engine.key.as_ref() == Some(key) {
                state.remote.remote_inference.renewal = renewal;
            }
            predict::device_lost(state, key, message);
        }
    }
}

pub(in super::super) fn took(state: &mut State, key: &RunKey, latency: Option<LatencyMs>) {
    if !state.engine.is_ready_for(key) {
        return;
    }
    if let EngineStatus::Connected(report) = &mut state.engine.status {
        *report = RemoteReport {
            latency,
            ..report.clone()
        };
    }
}

/// Shows the dialog with these fields.
pub(in super::super) fn edit(state: &mut State, model: RemoteModel, effects: &mut Vec<Effect>) {
    stop_checking(state, effects);
    if let RemoteAddress::Endpoint { access, .. } = &model.at {
        let access = S3Access {
            credentials: access.credentials.clone(),
            region: access.region.clone(),
            ..S3Access::default()
        };
        s3::set_access(state, access, effects);
        effects.push(Effect::ReadAwsSetup);
    }
    show_first_prediction(state, &model, effects);
    let form = &mut state.remote.remote_inference.form;
    form.serial = state.ids.next();
    form.draft = Some(model);
    form.not_seen = None;
    state.remote.reading.failure = None;
    state.overlay = Overlay::RemoteInference;
    effects.push(Effect::ListMappings);
}

/// What the model has answered already is what a mapping is tried on; what others have answered is not.
fn show_first_prediction(state: &mut State, model: &RemoteModel, effects: &mut Vec<Effect>) {
    let remote_inference = &state.remote.remote_inference;
    let is_chosen = remote_inference
        .chosen
        .as_ref()
        .is_some_and(|chosen| chosen.at == model.at);
    let first = remote_inference.first.clone().filter(|_| is_chosen);
    if state.remote.reading.examples_of.as_ref() != Some(&model.at) || first.is_some() {
        state.remote.reading.forget_examples();
    }
    if let (Some(first), Some(source)) = (first, state.source.as_ref().map(|open| open.id)) {
        state.remote.reading.asked = Some(model.reading.clone());
        reading::set_examples(state, source, Some(model.at.clone()), first, effects);
    }
}

/// Asks about the image in view, to see how the prediction is read, and nothing else comes of it.
pub(in super::super) fn show_response(
    state: &mut State,
    model: RemoteModel,
    effects: &mut Vec<Effect>,
) {
    let (None, Some(source), Some(sample)) = (
        state.remote.remote_inference.form.looking,
        state.source.as_ref().map(|open| open.id),
        state.shown_sample(),
    ) else {
        return;
    };
    let Some(entry) = state.samples.get(sample).cloned() else {
        return;
    };
    let title = format!("Preview a prediction of {}", model.name());
    let (task, control) = begin(state, TaskKind::Connect, ProgressUnit::Steps, title);
    let form = &mut state.remote.remote_inference.form;
    form.looking = Some(task);
    form.not_seen = None;
    effects.push(Effect::ShowResponse {
        source,
        model,
        entry,
        task,
        control,
    });
}

pub(in super::super) fn response_shown(
    state: &mut State,
    source: SourceId,
    task: TaskId,
    of: RemoteAddress,
    result: Result<Arc<ResponseExamples>, S3Failure>,
    effects: &mut Vec<Effect>,
) {
    end(state, task, result.as_ref().err());
    let form = &mut state.remote.remote_inference.form;
    if form.looking != Some(task) {
        return;
    }
    form.looking = None;
    match result {
        Ok(examples) => reading::set_examples(state, source, Some(of), examples, effects),
        Err(failure) => form.not_seen = Some(failure),
    }
}

/// Shows the dialog about an endpoint, or about TensorFlow Serving, with what was chosen of it last.
pub(in super::super) fn edit_endpoint(state: &mut State, effects: &mut Vec<Effect>) {
    let is_endpoint = |model: &&RemoteModel| matches!(model.at, RemoteAddress::Endpoint { .. });
    let last = last_of(state, is_endpoint).unwrap_or_else(|| {
        let place = state.source.as_ref().and_then(|open| open.place.as_ref());
        let access = place.map_or(&state.s3.access, |place| &place.access);
        RemoteModel::at_endpoint("", access.into())
    });
    edit(state, last, effects);
}

pub(in super::super) fn edit_tf_serving(state: &mut State, effects: &mut Vec<Effect>) {
    let is_served = |model: &&RemoteModel| matches!(model.at, RemoteAddress::TfServing { .. });
    let last = last_of(state, is_served).unwrap_or_else(|| RemoteModel::in_tf_serving(""));
    edit(state, last, effects);
}

fn last_of(state: &State, is_it: impl Fn(&&RemoteModel) -> bool) -> Option<RemoteModel> {
    let chosen = state.remote.remote_inference.chosen.iter();
    let recent = state.settings.recent_remote_models.iter();
    chosen.chain(recent).find(is_it).cloned()
}

fn stop_checking(state: &mut State, effects: &mut Vec<Effect>) {
    if let SendStage::Running(task) = state.remote.remote_inference.form.check {
        run_tasks::signal(state, task, TaskSignal::Cancel, effects);
    }
    let form = &mut state.remote.remote_inference.form;
    form.check = SendStage::NotYet;
    form.checked = None;
    form.failure = None;
}

/// Looks whether it is there. A look before it is of no use any more.
pub(in super::super) fn check(state: &mut State, model: RemoteModel, effects: &mut Vec<Effect>) {
    stop_checking(state, effects);
    let title = format!("Check {}", model.name());
    let kind = TaskKind::CheckRemoteModel;
    let (task, control) = begin(state, kind, ProgressUnit::Steps, title);
    let form = &mut state.remote.remote_inference.form;
    form.check = SendStage::Running(task);
    form.checked = Some(model.clone());
    effects.push(Effect::CheckRemoteModel {
        model,
        task,
        control,
    });
}

/// What is wrong is said in the dialog, and nowhere else: a name that is half typed is no problem.
pub(in super::super) fn checked(
    state: &mut State,
    task: TaskId,
    result: Result<RemoteCheck, S3Failure>,
) {
    state.tasks.forget(task);
    let form = &mut state.remote.remote_inference.form;
    if !form.check.is_by(task) {
        return;
    }
    form.check = match &result {
        Ok(check) => SendStage::Done(check.clone()),
        Err(S3Failure::Cancelled) => SendStage::NotYet,
        Err(S3Failure::Failed { message, .. }) => SendStage::Failed(message.clone()),
    };
    form.failure = result.err();
}
