//! Requests for predictions: their run, the queue before the model is ready, and what is sent to the model.

use crate::domain::{InferenceLocation, KeepRule, LabelSet, ModelCard, RunId, RunInfo, RunKey, SampleId, SampleSet};
use crate::review::PredictionStatus;
use crate::sagemaker::spec::remote_model::RemoteModel;
use crate::tasks::ProgressUnit;
use crate::window::state::{
    Action, ImageRequest, ImagesRequest, InferenceEffect, Loadable, Overlay, PrepareRequest, QueuedImages, Run, State,
    TaskKind,
};
use crate::window::tasks::update::begin;
use crate::window::update::images;
use crate::window::{browse, judge, project, remote_inference, tasks};

/// Predicts with this remote model from now on; `None` predicts on this computer.
pub(crate) fn predict_at(state: &mut State, model: Option<RemoteModel>) {
    state.overlay = Overlay::None;
    let is_other = state.inference.remote_model() != model.as_ref();
    if is_other || state.inference.failure().is_some() {
        tasks::update::cancel_preparation(state);
        state.inference.switch_to(model);
    }
    go_to_active_run(state);
}

/// Switches back to local predictions; the run on screen stays.
pub(crate) fn switch_to_local(state: &mut State) {
    if state.inference.remote.is_some() {
        tasks::update::cancel_preparation(state);
        state.inference.switch_to(None);
    }
}

/// Shows the run that predictions go to now, which may be a different one.
pub(crate) fn go_to_active_run(state: &mut State) {
    let run = active_run(state);
    state.runs.switch_to(run);
    run_changed(state);
}

/// Updates everything that depends on the run on screen.
pub(crate) fn run_changed(state: &mut State) {
    state.shown.selected_box = None;
    project::update::load_runs_on_screen(state);
    browse::update::shown::refresh(state);
    predict_shown_if_wanted(state);
}

/// Resets runs, which belong to a source. The model stays loaded: [`begin_run`] starts its run over the new source.
pub(crate) fn source_changed(state: &mut State) {
    let inference = &mut state.inference;
    inference.queued = None;
    inference.local.latest = None;
    inference.latencies_ms.clear();
    let failure = inference.failure();
    if failure.is_some_and(|failure| failure.sample.is_some()) {
        inference.reset();
    }
}

/// The model that predicts now, with what its run starts with; `None` if its weights are missing, or if it is remote
/// and has not responded yet.
fn active_model(state: &State) -> Option<(RunKey, &ModelCard, &LabelSet)> {
    if let Some(remote) = &state.inference.remote {
        let (key, card, labels) = remote.found.as_ref()?;
        return Some((key.clone(), card, labels));
    }
    let chosen = state.models.chosen().filter(|chosen| chosen.is_ready)?;
    let key = RunKey {
        model_id: chosen.card.id.clone(),
        weights_sha256: chosen.card.file.sha256.clone(),
        device: state.settings.device,
        batch: state.settings.batch,
        threads: state.settings.threads,
        keep: KeepRule::default(),
        made: InferenceLocation::Here,
    };
    Some((key, &chosen.card, &chosen.labels))
}

/// Whether that model is loaded or connected.
pub(crate) fn is_ready(state: &State) -> bool {
    active_model(state).is_some_and(|(key, ..)| state.inference.is_ready_for(&key))
}

/// The run that predictions go to now, if it has started. For a remote model that has not responded yet: its newest
/// run.
pub(crate) fn active_run(state: &State) -> Option<RunId> {
    let remote = state.inference.remote_model();
    let model = active_model(state);
    let is_active = |run: &&Run| match (&model, remote) {
        // The origin includes how the remote model is requested and how its responses are read.
        (Some((key, card, _)), Some(_)) => run.info.key == *key && run.info.card.origin == card.origin,
        // The user may have edited the card since.
        (Some((key, card, labels)), None) => {
            run.info.key == *key && run.info.card.predicts_as(card) && run.info.labels == **labels
        }
        (None, Some(remote)) => remote.is_where(&run.info.key.made),
        (None, None) => false,
    };
    state.runs.iter().filter(is_active).last().map(Run::id)
}

/// The active run, which is started if necessary; `None` if there is no [`active_model`].
pub(crate) fn begin_run(state: &mut State) -> Option<RunId> {
    let (key, card, labels) = active_model(state)?;
    let (card, labels) = (card.clone(), labels.clone());
    let run = active_run(state).unwrap_or_else(|| {
        let is_taken = |name: &str| state.runs.iter().any(|run| run.info.name == name);
        let name = key.run_name(&card.name, is_taken);
        let id = state.runs.new_id();
        // The time is set with the first prediction.
        let info = RunInfo { id, name, key, card, labels, created_ms: 0 };
        state.runs.add(Run::automatic(info));
        id
    });
    state.runs.switch_to(Some(run));
    Some(run)
}

/// Like [`begin_run`], for a user's request: the project keeps the run, however little it contains.
pub(crate) fn begin_kept_run(state: &mut State) -> Option<RunId> {
    let run = begin_run(state)?;
    if let Some(run) = state.runs.get_mut(run) {
        run.is_automatic = false;
    }
    Some(run)
}

/// Predicts an image when it is opened, unless it has a prediction or predicting would only fail again.
pub(crate) fn predict_shown_if_wanted(state: &mut State) {
    // While the run is being read, `project::update::read_missing` requests this one prediction from the project
    // first.
    if state.run().is_none_or(Run::is_loaded) {
        predict_shown_if_missing(state);
    }
}

/// Predicts the shown image unless the run has a prediction for it.
pub(crate) fn predict_shown_if_missing(state: &mut State) {
    let is_wanted = state.settings.predict_on_open && state.project.is_writable();
    let shown = state.selection.shown().filter(|_| is_wanted);
    let Some(sample) = shown.filter(|shown| !state.inference.has_failed_for(*shown)) else {
        return;
    };
    let is_missing = state.run().is_none_or(|run| {
        !has_prediction(run, sample) && !state.keeps_prediction(run.id(), sample) && active_run(state) == Some(run.id())
    });
    if is_missing {
        request_shown(state);
    }
}

fn has_prediction(run: &Run, sample: SampleId) -> bool {
    matches!(run.status(sample), PredictionStatus::Predicted | PredictionStatus::Failed)
}

/// Predicts the shown image on request, even if it has a prediction, unless that was judged.
pub(crate) fn predict_shown(state: &mut State) {
    let Some(sample) = sample_to_request(state) else {
        return;
    };
    let run = begin_kept_run(state);
    let is_ready = is_ready(state);
    if let Some(run) = run {
        if state.keeps_prediction(run, sample) {
            let how = Action::PredictAnew.label();
            state.show_notice(format!(
                "This image has a verdict, so its prediction is kept; to replace it, choose \
                “{how}”"
            ));
            return;
        }
        if !is_ready && state.runs.get(run).is_some_and(|run| has_prediction(run, sample)) {
            // Once the model is ready, only an image without a prediction is predicted automatically.
            state.inference.queued = Some(QueuedImages::only(sample));
        }
    }
    predict_or_prepare(state, run, is_ready, sample);
}

/// Clears the verdicts on the shown image's prediction, so that it can be replaced, and requests a new one.
pub(crate) fn predict_anew(state: &mut State) {
    let run = begin_kept_run(state).or_else(|| active_run(state));
    if let (Some(run), Some(sample)) = (run, state.selection.shown()) {
        judge::update::verdicts::take_back_prediction(state, run, sample);
        predict_shown(state);
    }
}

/// Requests a prediction of the shown image, or prepares the model first.
pub(crate) fn request_shown(state: &mut State) {
    if let Some(sample) = sample_to_request(state) {
        let run = begin_run(state);
        let is_ready = is_ready(state);
        predict_or_prepare(state, run, is_ready, sample);
    }
}

/// The shown image. Until the runs of the project are known, it is only queued.
fn sample_to_request(state: &mut State) -> Option<SampleId> {
    let sample = state.selection.shown()?;
    if state.project.is_writable() {
        return Some(sample);
    }
    state.inference.queued = Some(QueuedImages::only(sample));
    None
}

fn predict_or_prepare(state: &mut State, run: Option<RunId>, is_ready: bool, sample: SampleId) {
    match run {
        Some(run) if is_ready => predict_one(state, run, sample),
        run => prepare(state, run),
    }
}

pub(crate) fn predict_selection(state: &mut State) {
    let samples = state.selection.selected().clone();
    predict_many(state, QueuedImages::These(samples));
}

pub(crate) fn predict_all(state: &mut State) {
    predict_many(state, QueuedImages::Unpredicted);
}

pub(crate) fn predict_filtered(state: &mut State) {
    let samples = state.order().ids().collect();
    predict_many(state, QueuedImages::UnpredictedOf(samples));
}

fn predict_many(state: &mut State, images: QueuedImages) {
    state.inference.queued = Some(images);
    prepare_queued(state);
}

/// Prepares what the queued images need: the project, the model and the existing predictions.
pub(crate) fn prepare_queued(state: &mut State) {
    if state.inference.queued.is_none() || !state.project.is_writable() {
        return;
    }
    let run = begin_kept_run(state);
    project::update::load_runs_on_screen(state);
    if is_ready(state) {
        start_queued(state);
    } else {
        prepare(state, run);
    }
}

/// The queued images that are still to be predicted.
pub(crate) fn queued_samples(state: &State, run: Option<&Run>) -> Option<SampleSet> {
    let is_unpredicted = |id: &SampleId| run.is_none_or(|run| run.lacks_prediction(*id));
    Some(match state.inference.queued.as_ref()? {
        QueuedImages::These(samples) => samples.clone(),
        QueuedImages::Unpredicted => state.samples.ids().filter(is_unpredicted).collect(),
        QueuedImages::UnpredictedOf(samples) => samples.iter().filter(is_unpredicted).collect(),
    })
}

/// Predicts the queued images, once the model is ready and the existing predictions are known.
pub(crate) fn start_queued(state: &mut State) {
    let active = active_run(state);
    let current = state.runs.current();
    let Some(run) = current.filter(|run| Some(run.id()) == active && run.is_loaded()) else {
        return;
    };
    let run_id = run.id();
    let Some(queued) = queued_samples(state, Some(run)).filter(|_| is_ready(state)) else {
        return;
    };
    let is_free = |id: &SampleId| !state.keeps_prediction(run_id, *id);
    let samples: SampleSet = queued.iter().filter(is_free).collect();
    state.inference.queued = None;
    match queued.len() - samples.len() {
        0 if samples.is_empty() => state.show_notice("All of these images already have predictions"),
        0 => {}
        1 => state.show_notice("1 image has a verdict, so its prediction is kept"),
        count => state.show_notice(format!("{} have verdicts, so their predictions are kept", images(count))),
    }
    if !samples.is_empty() {
        start_many(state, run_id, samples);
    }
}

fn start_many(state: &mut State, run_id: RunId, samples: SampleSet) {
    let (Some(source), Some(run)) = (&state.source, state.runs.get_mut(run_id)) else {
        return;
    };
    let source = source.id;
    let mut entries = Vec::with_capacity(samples.len());
    for id in samples.iter() {
        if let Some(entry) = state.samples.get(id) {
            run.predictions.set_waiting(id);
            entries.push((id, entry.clone()));
        }
    }
    let key = run.info.key.clone();
    let model = if key.made.is_here() { run.info.card.name.clone() } else { key.made.to_string() };
    let what = if run.task().is_some() { "Predict" } else { "Compute embeddings of" };
    let title = format!("{what} {} with {model}", images(entries.len()));
    let kind = TaskKind::Predict { run: run_id, samples };
    let ticket = begin(state, kind, ProgressUnit::Images, title);
    ticket.control.set_total(Some(entries.len() as u64));
    state.effects.push(InferenceEffect::Predict(ImagesRequest { source, run: run_id, key, samples: entries, ticket }));
}

/// Predicts one image, before everything else.
fn predict_one(state: &mut State, run_id: RunId, sample: SampleId) {
    let is_remote = state.inference.remote.is_some();
    if is_remote && state.tasks.predicts(run_id, sample) {
        return;
    }
    // The user has left the previous image. If its prediction has started, the result is still accepted.
    if !is_remote
        && let Some(passed) = state.inference.local.latest.replace(sample)
        && passed != sample
        && !state.tasks.predicts(run_id, passed)
        && let Some(run) = state.runs.get_mut(run_id)
    {
        run.predictions.stop_waiting(std::iter::once(passed));
    }
    let (Some(source), Some(run), Some(entry)) = (&state.source, state.runs.get_mut(run_id), state.samples.get(sample))
    else {
        return;
    };
    run.predictions.set_waiting(sample);
    let image =
        ImageRequest { source: source.id, run: run_id, key: run.info.key.clone(), sample, entry: entry.clone() };
    let effect = match state.inference.remote_model() {
        None => InferenceEffect::PredictOne(image),
        Some(model) => {
            let title = format!("Predict with {}: {}", model.name(), entry.uri.file_name());
            let kind = TaskKind::RemotePrediction { run: run_id, sample };
            let ticket = begin(state, kind, ProgressUnit::Steps, title);
            InferenceEffect::PredictRemotely { image, ticket }
        }
    };
    state.effects.push(effect);
}

/// Loads the model of the active run, or connects to the remote model.
fn prepare(state: &mut State, run: Option<RunId>) {
    if state.inference.remote.is_some() {
        remote_inference::update::connect(state);
    } else if let Some(run) = run {
        load(state, run);
    }
}

/// Loads the local model of a run, unless it is being loaded.
pub(crate) fn load(state: &mut State, run_id: RunId) {
    let Some(run) = state.runs.get(run_id) else {
        return;
    };
    let key = run.info.key.clone();
    let local = &state.inference.local;
    if local.key.as_ref() == Some(&key) && matches!(local.status, Loadable::Loading(_)) {
        return;
    }
    let title = format!("Prepare {}", run.info.card.name);
    tasks::update::cancel_preparation(state);
    let ticket = begin(state, TaskKind::Prepare, ProgressUnit::Bytes, title);
    state.inference.local.key = Some(key.clone());
    state.inference.local.status = Loadable::Loading(ticket.id);
    state.effects.push(InferenceEffect::Prepare(PrepareRequest {
        key,
        runtime_library: state.settings.runtime_library.clone(),
        embeddings: state.settings.save_embeddings,
        ticket,
    }));
}
