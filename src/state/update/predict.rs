//! Choosing a model and asking it.

use crate::domain::{DeviceReport, KeepRule, Prediction, Problem, human_bytes};
use crate::domain::{RunId, RunKey, SampleId, SampleSet};
use crate::state::{
    AnswerStatus, Effect, Engine, EngineStatus, ModelDefaults, ModelEntry, Offer, Run, RuntimeKind,
    SourceId, State, TaskEntry, TaskId, TaskKind, TaskOutcome,
};
use crate::tasks::{ProgressUnit, TaskControl};

pub(super) fn models_listed(
    state: &mut State,
    entries: Vec<ModelEntry>,
    defaults: ModelDefaults,
    problems: Vec<Problem>,
    effects: &mut Vec<Effect>,
) {
    let is_first = !state.models.is_listed();
    state.models.set_entries(entries);
    if is_first {
        for problem in problems {
            state.problems.add(problem, None);
        }
    }
    if state.models.chosen().is_none() {
        if let Some(missing) = state.models.chosen_id() {
            state.tell(format!("There is no model “{missing}” any more"));
        }
        let default = defaults.detection.or(defaults.classification);
        state.models.choose(default);
    }
    chosen_changed(state, effects);
}

pub(super) fn choose_model(state: &mut State, id: String, effects: &mut Vec<Effect>) {
    state.settings.model = Some(id.clone());
    state.models.choose(Some(id));
    settings_changed(state, effects);
}

/// Model, device, batch or threads are different: these are other answers.
pub(super) fn settings_changed(state: &mut State, effects: &mut Vec<Effect>) {
    if state.engine.has_failed() {
        state.engine = Engine::default();
    }
    chosen_changed(state, effects);
}

fn chosen_changed(state: &mut State, effects: &mut Vec<Effect>) {
    let run = run_key(state).and_then(|key| state.runs.find(&key));
    state.runs.switch_to(run);
    state.shown.selected_box = None;
    refresh_shown(state);
    predict_shown_if_wanted(state, effects);
}

/// Runs belong to a source. The loaded model stays loaded: `ensure_run` gives its run the new source's answers.
pub(super) fn source_changed(state: &mut State) {
    state.engine.waiting = None;
    state.engine.asked = None;
}

fn run_key(state: &State) -> Option<RunKey> {
    let chosen = state.models.chosen().filter(|chosen| chosen.is_ready)?;
    Some(RunKey {
        model_id: chosen.card.id.clone(),
        weights_sha256: chosen.card.file.sha256.clone(),
        device: state.settings.device,
        batch: state.settings.batch,
        threads: state.settings.threads,
        keep: KeepRule::default(),
    })
}

/// The run of the chosen model and settings, begun where there is none; `None` where the model has no weights yet.
fn ensure_run(state: &mut State) -> Option<RunId> {
    let key = run_key(state)?;
    if let Some(run) = state.runs.find(&key) {
        state.runs.switch_to(Some(run));
        return Some(run);
    }
    let chosen = state.models.chosen()?;
    let (task, labels) = (chosen.card.task, chosen.labels.clone());
    // The model that is loaded for the same key goes on under its old number, with the answers of another source gone.
    let loaded = state.engine.key.as_ref() == Some(&key);
    let id = match state.engine.run {
        Some(run) if loaded => run,
        _ => RunId(state.ids.next()),
    };
    state.runs.add(Run::new(id, key, task, labels));
    Some(id)
}

/// Opening a picture predicts it at once, unless it has an answer or asking could only fail again.
pub(super) fn predict_shown_if_wanted(state: &mut State, effects: &mut Vec<Effect>) {
    let is_wanted = state.settings.predict_on_open && !state.engine.has_failed();
    let Some(sample) = state.selection.shown().filter(|_| is_wanted) else {
        return;
    };
    let status = state.run().map(|run| run.status(sample));
    let has_answer = matches!(status, Some(AnswerStatus::Answered | AnswerStatus::Failed));
    if !has_answer {
        predict_shown(state, effects);
    }
}

pub(super) fn predict_shown(state: &mut State, effects: &mut Vec<Effect>) {
    let Some(sample) = state.selection.shown() else {
        return;
    };
    let Some(run) = ensure_run(state) else {
        return;
    };
    if is_loaded(state, run) {
        ask_one(state, run, sample, effects);
    } else {
        prepare(state, run, effects);
    }
}

pub(super) fn predict_selection(state: &mut State, effects: &mut Vec<Effect>) {
    let samples = state.selection.selected().clone();
    predict_many(state, samples, effects);
}

pub(super) fn predict_all(state: &mut State, effects: &mut Vec<Effect>) {
    let Some(run) = ensure_run(state).and_then(|run| state.runs.get(run)) else {
        return;
    };
    let unanswered = |id: &SampleId| {
        !matches!(
            run.status(*id),
            AnswerStatus::Answered | AnswerStatus::Failed
        )
    };
    let samples: SampleSet = state.samples.ids().filter(unanswered).collect();
    if samples.is_empty() {
        state.tell("Every image has an answer already");
        return;
    }
    predict_many(state, samples, effects);
}

fn predict_many(state: &mut State, samples: SampleSet, effects: &mut Vec<Effect>) {
    let Some(run) = ensure_run(state) else {
        return;
    };
    state.settings.show_tasks_panel = true;
    if is_loaded(state, run) {
        start_many(state, run, samples, effects);
    } else {
        state.engine.waiting = Some(samples);
        prepare(state, run, effects);
    }
}

fn start_many(state: &mut State, run_id: RunId, samples: SampleSet, effects: &mut Vec<Effect>) {
    let (Some(source), Some(run)) = (&state.source, state.runs.get_mut(run_id)) else {
        return;
    };
    let mut asked = Vec::with_capacity(samples.len());
    for id in samples.iter() {
        if let Some(entry) = state.samples.get(id) {
            run.set_waiting(id);
            asked.push((id, entry.clone()));
        }
    }
    let control = TaskControl::new(ProgressUnit::Images);
    control.set_total(Some(asked.len() as u64));
    let task = TaskId(state.ids.next());
    let model = state.models.get(&run.key.model_id);
    let model_name = model.map_or(run.key.model_id.as_str(), |entry| entry.card.name.as_str());
    state.tasks.start(TaskEntry {
        id: task,
        title: format!("Predict {} with {model_name}", images(asked.len())),
        kind: TaskKind::Predict {
            run: run_id,
            samples,
        },
        control: control.clone(),
    });
    effects.push(Effect::Predict {
        source: source.id,
        run: run_id,
        samples: asked,
        task,
        control,
    });
}

fn ask_one(state: &mut State, run_id: RunId, sample: SampleId, effects: &mut Vec<Effect>) {
    let is_in_a_task = |state: &State, id: SampleId| {
        state.tasks.running().iter().any(|task| {
            matches!(&task.kind, TaskKind::Predict { run, samples } if *run == run_id && samples.contains(id))
        })
    };
    // The one that was asked for before has been passed by; if it was begun its answer is still taken.
    if let Some(passed) = state.engine.asked.replace(sample)
        && passed != sample
        && !is_in_a_task(state, passed)
        && let Some(run) = state.runs.get_mut(run_id)
    {
        run.stop_waiting(std::iter::once(passed));
    }
    let (Some(source), Some(run), Some(entry)) = (
        &state.source,
        state.runs.get_mut(run_id),
        state.samples.get(sample),
    ) else {
        return;
    };
    run.set_waiting(sample);
    effects.push(Effect::PredictOne {
        source: source.id,
        run: run_id,
        sample,
        entry: entry.clone(),
    });
}

fn is_loaded(state: &State, run: RunId) -> bool {
    state.engine.run == Some(run) && state.engine.report().is_some()
}

/// Starts loading unless that is under way already.
fn prepare(state: &mut State, run_id: RunId, effects: &mut Vec<Effect>) {
    let is_under_way =
        state.engine.run == Some(run_id) && matches!(state.engine.status, EngineStatus::Preparing);
    let Some(run) = state.runs.get(run_id).filter(|_| !is_under_way) else {
        return;
    };
    let key = run.key.clone();
    let model = state.models.get(&key.model_id);
    let model_name = model.map_or(key.model_id.as_str(), |entry| entry.card.name.as_str());
    let title = format!("Prepare {model_name}");
    super::run_tasks::cancel_preparation(state, effects);
    state.engine.run = Some(run_id);
    state.engine.key = Some(key.clone());
    state.engine.status = EngineStatus::Preparing;
    let control = TaskControl::new(ProgressUnit::Bytes);
    let task = TaskId(state.ids.next());
    state.engine.task = Some(task);
    state.tasks.start(TaskEntry {
        id: task,
        kind: TaskKind::Prepare { run: run_id },
        title,
        control: control.clone(),
    });
    effects.push(Effect::Prepare {
        run: run_id,
        key,
        runtime_library: state.settings.runtime_library.clone(),
        task,
        control,
    });
}

pub(super) fn engine_ready(
    state: &mut State,
    task: TaskId,
    report: Box<DeviceReport>,
    restart_to_use: Option<String>,
    effects: &mut Vec<Effect>,
) {
    state.tasks.forget(task);
    if state.engine.task != Some(task) {
        return;
    }
    state.engine.status = EngineStatus::Ready(report);
    state.engine.restart_to_use = restart_to_use;
    let is_current = run_key(state) == state.engine.key;
    if !is_current {
        return;
    }
    let Some(run) = ensure_run(state) else {
        return;
    };
    let waiting = state.engine.waiting.take();
    predict_shown_if_wanted(state, effects);
    if let Some(samples) = waiting {
        start_many(state, run, samples, effects);
    }
}

pub(super) fn engine_failed(
    state: &mut State,
    task: TaskId,
    message: String,
    offer: Option<Offer>,
) {
    state.tasks.end(task, TaskOutcome::Failed(message.clone()));
    if state.engine.task == Some(task) {
        state.engine.waiting = None;
        state.problems.add(Problem::general(message.clone()), None);
        state.engine.status = EngineStatus::Failed { message, offer };
    }
}

pub(super) fn engine_cancelled(state: &mut State, task: TaskId) {
    state.tasks.end(task, TaskOutcome::Cancelled);
    if state.engine.task == Some(task) {
        state.engine.waiting = None;
        state.engine.status = EngineStatus::Failed {
            message: "You cancelled before the model was ready".to_owned(),
            offer: Some(Offer::TryAgain),
        };
    }
}

/// What was computed stays; the rest can be asked for again once the model is loaded anew.
pub(super) fn device_lost(state: &mut State, run: RunId, message: String) {
    state.problems.add(Problem::general(message.clone()), None);
    if state.engine.run == Some(run) {
        state.engine.status = EngineStatus::Failed {
            message,
            offer: Some(Offer::TryAgain),
        };
    }
}

pub(super) fn try_again(state: &mut State, effects: &mut Vec<Effect>) {
    state.engine = Engine::default();
    predict_shown(state, effects);
}

pub(super) fn reported(state: &mut State, run: RunId, report: Box<DeviceReport>) {
    if state.engine.run == Some(run) && state.engine.report().is_some() {
        state.engine.status = EngineStatus::Ready(report);
    }
}

pub(super) fn predicted(
    state: &mut State,
    source: SourceId,
    run_id: RunId,
    answers: Vec<(SampleId, Result<Prediction, String>)>,
) {
    let is_open = state.source.as_ref().is_some_and(|open| open.id == source);
    let Some(run) = state.runs.get_mut(run_id).filter(|_| is_open) else {
        return;
    };
    let mut shown_has_answer = false;
    for (sample, result) in answers {
        shown_has_answer |= state.selection.shown() == Some(sample);
        if let (Err(reason), Some(entry)) = (&result, state.samples.get(sample))
            && state.samples.unreadable(sample).is_none()
        {
            let problem = Problem::of_sample(entry.uri.clone(), reason.clone());
            state.problems.add(problem, Some(sample));
        }
        run.record(sample, result);
    }
    if shown_has_answer {
        refresh_shown(state);
    }
}

/// Takes the shown sample's answer out of the current run.
pub(super) fn refresh_shown(state: &mut State) {
    let (prediction, failure) = match (state.runs.current(), state.selection.shown()) {
        (Some(run), Some(sample)) => (
            run.prediction(sample),
            run.failure(sample).map(str::to_owned),
        ),
        _ => (None, None),
    };
    if state.shown.prediction != prediction {
        state.shown.selected_box = None;
    }
    state.shown.prediction = prediction;
    state.shown.failure = failure;
}

pub(super) fn fetch_model(state: &mut State, id: String, effects: &mut Vec<Effect>) {
    let Some(entry) = state.models.get(&id) else {
        return;
    };
    let title = format!("Download {}", entry.card.name);
    if state.tasks.fetches(&id) {
        return;
    }
    let control = TaskControl::new(ProgressUnit::Bytes);
    control.set_total(Some(entry.card.file.bytes));
    let task = TaskId(state.ids.next());
    state.tasks.start(TaskEntry {
        id: task,
        kind: TaskKind::Fetch {
            model_id: id.clone(),
        },
        title,
        control: control.clone(),
    });
    state.settings.show_tasks_panel = true;
    effects.push(Effect::FetchModel { id, task, control });
}

pub(super) fn install_runtime(state: &mut State, kind: RuntimeKind, effects: &mut Vec<Effect>) {
    let is_installing = |task: &TaskEntry| task.kind == TaskKind::InstallRuntime;
    if state.tasks.running().iter().any(is_installing) {
        state.tell("An installation is already under way");
        return;
    }
    let control = TaskControl::new(ProgressUnit::Bytes);
    let task = TaskId(state.ids.next());
    state.tasks.start(TaskEntry {
        id: task,
        kind: TaskKind::InstallRuntime,
        title: format!("Install {}", kind.name()),
        control: control.clone(),
    });
    state.settings.show_tasks_panel = true;
    effects.push(Effect::InstallRuntime {
        kind,
        task,
        control,
    });
}

pub(super) fn model_removed(
    state: &mut State,
    id: &str,
    result: Result<u64, String>,
    effects: &mut Vec<Effect>,
) {
    match result {
        Ok(bytes) => {
            state.runs.forget_model(id);
            let name = state
                .models
                .get(id)
                .map_or(id, |entry| entry.card.name.as_str());
            let text = format!("Removed {name}, {} freed", human_bytes(bytes));
            state.tell(text);
            refresh_shown(state);
        }
        Err(message) => super::went_wrong(state, Problem::general(message)),
    }
    effects.push(Effect::ListModels);
}

fn images(count: usize) -> String {
    match count {
        1 => "1 image".to_owned(),
        count => format!("{count} images"),
    }
}
