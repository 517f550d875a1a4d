//! Choosing a model and asking it.

use std::path::PathBuf;
use std::sync::Arc;

use super::{project, remote};
use crate::domain::{
    Change, DeviceReport, InferenceLocation, KeepRule, LabelSet, Prediction, Problem, RunId,
    RunInfo, RunKey, SampleId, SamplePrediction, SampleSet, human_bytes,
};
use crate::review::PredictionStatus;
use crate::state::engine::Wish;
use crate::state::{
    Action, Display, Effect, Engine, EngineStatus, Explanation, ModelDefaults, ModelEntry,
    NewPrediction, Offer, Run, RuntimeKind, SourceId, State, TaskEntry, TaskId, TaskKind,
    TaskOutcome,
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
            state.tell(format!("The model “{missing}” no longer exists"));
        }
        let default = defaults.detection.or(defaults.classification);
        state.models.choose(default);
    }
    chosen_changed(state, effects);
}

pub(super) fn choose_model(state: &mut State, id: String, effects: &mut Vec<Effect>) {
    remote::come_back(state, effects);
    state.settings.model = Some(id.clone());
    state.models.choose(Some(id));
    settings_changed(state, effects);
}

/// Model, device, batch or threads are different: these are other predictions.
pub(super) fn settings_changed(state: &mut State, effects: &mut Vec<Effect>) {
    if state.remote.remote_inference.chosen.is_some() {
        // They are about this computer.
        return;
    }
    if state.engine.has_failed() {
        state.engine = Engine::default();
    }
    chosen_changed(state, effects);
}

/// Goes to the run of the chosen model and settings.
pub(super) fn chosen_changed(state: &mut State, effects: &mut Vec<Effect>) {
    let run = chosen_run(state);
    state.runs.switch_to(run);
    run_changed(state, effects);
}

/// The run that is there already of what is chosen. Of a model elsewhere that nobody has asked yet: the newest that it
/// made.
pub(super) fn chosen_run(state: &State) -> Option<RunId> {
    let key = run_key(state);
    let Some(model) = &state.remote.remote_inference.chosen else {
        return state.runs.find(&key?);
    };
    let found = key.zip(state.engine.found.as_ref());
    let is_it = |run: &&Run| match &found {
        // How it was asked, and how its predictions were read, stands in the origin.
        Some((key, (card, _))) => run.info.key == *key && run.info.card.origin == card.origin,
        None => model.is_where(&run.info.key.made),
    };
    state.runs.iter().filter(is_it).last().map(Run::id)
}

/// Other answers are on screen.
pub(super) fn run_changed(state: &mut State, effects: &mut Vec<Effect>) {
    state.shown.selected_box = None;
    project::load_current_run(state, effects);
    refresh_shown(state, effects);
    predict_shown_if_wanted(state, effects);
}

/// Runs belong to a source. The loaded model stays loaded: `ensure_run` gives its run the new source's answers.
pub(super) fn source_changed(state: &mut State) {
    state.engine.waiting = None;
    state.engine.asked = None;
    state.remote.remote_inference.took.clear();
    if state.engine.failed_about.take().is_some() {
        state.engine = Engine::default();
    }
}

fn run_key(state: &State) -> Option<RunKey> {
    if let Some(model) = &state.remote.remote_inference.chosen {
        let is_it = state.engine.remote.as_ref() == Some(model);
        return state.engine.key.clone().filter(|_| is_it);
    }
    let chosen = state.models.chosen().filter(|chosen| chosen.is_ready)?;
    Some(RunKey {
        model_id: chosen.card.id.clone(),
        weights_sha256: chosen.card.file.sha256.clone(),
        device: state.settings.device,
        batch: state.settings.batch,
        threads: state.settings.threads,
        keep: KeepRule::default(),
        made: InferenceLocation::Here,
    })
}

/// The run of the chosen model and settings, begun where there is none; `None` where the model has no weights yet, or
/// is elsewhere and nobody knows yet what it answers.
pub(super) fn ensure_run(state: &mut State) -> Option<RunId> {
    let key = run_key(state)?;
    if let Some(run) = chosen_run(state) {
        state.runs.switch_to(Some(run));
        return Some(run);
    }
    let (card, labels) = match &state.engine.found {
        Some(found) if state.remote.remote_inference.chosen.is_some() => found.clone(),
        _ => {
            let chosen = state.models.chosen()?;
            (chosen.card.clone(), LabelSet::clone(&chosen.labels))
        }
    };
    let is_taken = |name: &str| state.runs.iter().any(|run| run.info.name == name);
    let name = key.run_name(&card.name, is_taken);
    let id = state.runs.new_id();
    state.runs.add(Run::new(RunInfo {
        id,
        name,
        key,
        card,
        labels,
        // Set with the first prediction.
        created_ms: 0,
    }));
    state.runs.switch_to(Some(id));
    Some(id)
}

/// Opening an image predicts it at once, unless it has a prediction or asking could only fail again.
pub(super) fn predict_shown_if_wanted(state: &mut State, effects: &mut Vec<Effect>) {
    // Where the run is still being read, the project is asked for this one prediction first (`project::read_missing`).
    let is_known = state.run().is_none_or(Run::is_loaded);
    if is_known {
        predict_the_rest(state, effects);
    }
}

/// Predicts the shown image unless the run has a prediction for it.
pub(super) fn predict_the_rest(state: &mut State, effects: &mut Vec<Effect>) {
    let is_wanted = state.settings.predict_on_open && state.project.is_writable();
    let shown = state.selection.shown().filter(|_| is_wanted);
    let Some(sample) = shown.filter(|shown| !state.engine.has_failed_for(*shown)) else {
        return;
    };
    let status = state.run().map(|run| run.status(sample));
    let has_prediction = matches!(
        status,
        Some(PredictionStatus::Predicted | PredictionStatus::Failed)
    );
    let is_current = state.run().is_none_or(|run| {
        if state.remote.remote_inference.chosen.is_some() {
            return chosen_run(state) == Some(run.id());
        }
        run_key(state).as_ref() == Some(&run.info.key)
    });
    let is_kept = state
        .run()
        .is_some_and(|run| state.keeps_prediction(run.id(), sample));
    if !has_prediction && !is_kept && is_current {
        ask_shown(state, effects);
    }
}

/// Because the user says so, also where there is a prediction: unless that was judged.
pub(super) fn predict_shown(state: &mut State, effects: &mut Vec<Effect>) {
    let run = state.project.is_writable().then(|| ensure_run(state));
    if let (Some(run), Some(sample)) = (run.flatten(), state.selection.shown()) {
        if state.keeps_prediction(run, sample) {
            let how = Action::PredictAnew.label();
            state.tell(format!(
                "This image keeps its judged prediction; replace it with “{how}”"
            ));
            return;
        }
        let status = state.runs.get(run).map(|run| run.status(sample));
        let has_prediction = matches!(
            status,
            Some(PredictionStatus::Predicted | PredictionStatus::Failed)
        );
        if has_prediction && !is_loaded(state, run) {
            // Nobody would ask again once the model is loaded.
            state.engine.waiting = Some(Wish::These([sample].into_iter().collect()));
        }
    }
    ask_shown(state, effects);
}

/// Takes back what was judged of the shown image's answer, so that there can be another one, and asks for that.
pub(super) fn predict_anew(state: &mut State, effects: &mut Vec<Effect>) {
    let run = ensure_run(state).or_else(|| chosen_run(state));
    if let (Some(run), Some(sample)) = (run, state.selection.shown()) {
        super::judge::take_back_prediction(state, run, sample, effects);
        predict_shown(state, effects);
    }
}

/// Asks for a prediction for the shown image, as soon as that is possible.
fn ask_shown(state: &mut State, effects: &mut Vec<Effect>) {
    let Some(sample) = state.selection.shown() else {
        return;
    };
    if !state.project.is_writable() {
        // Its runs are not known yet.
        state.engine.waiting = Some(Wish::These([sample].into_iter().collect()));
        return;
    }
    let run = ensure_run(state);
    match run.filter(|run| is_loaded(state, *run)) {
        Some(run) => ask_one(state, run, sample, effects),
        None => get_ready(state, run, effects),
    }
}

/// Loads the model of the run, or finds out what the one elsewhere answers.
fn get_ready(state: &mut State, run: Option<RunId>, effects: &mut Vec<Effect>) {
    if state.remote.remote_inference.chosen.is_some() {
        remote::connect(state, effects);
    } else if let Some(run) = run {
        prepare(state, run, effects);
    }
}

pub(super) fn predict_selection(state: &mut State, effects: &mut Vec<Effect>) {
    let samples = state.selection.selected().clone();
    predict_many(state, Wish::These(samples), effects);
}

pub(super) fn predict_all(state: &mut State, effects: &mut Vec<Effect>) {
    predict_many(state, Wish::Unpredicted, effects);
}

pub(super) fn predict_filtered(state: &mut State, effects: &mut Vec<Effect>) {
    let samples = state.order().ids().collect();
    predict_many(state, Wish::UnpredictedOf(samples), effects);
}

fn predict_many(state: &mut State, request: Wish, effects: &mut Vec<Effect>) {
    state.engine.waiting = Some(request);
    pursue_request(state, effects);
}

/// Gets ready whatever the wish waits for: the project, the model, the predictions that are there already.
pub(super) fn pursue_request(state: &mut State, effects: &mut Vec<Effect>) {
    if state.engine.waiting.is_none() || !state.project.is_writable() {
        return;
    }
    let run = ensure_run(state);
    project::load_current_run(state, effects);
    if run.is_some_and(|run| is_loaded(state, run)) {
        grant_request(state, effects);
    } else {
        get_ready(state, run, effects);
    }
}

/// Starts what waits for the model, once it is ready and it is known which images have a prediction.
pub(super) fn grant_request(state: &mut State, effects: &mut Vec<Effect>) {
    let Some(run) = state.runs.current() else {
        return;
    };
    if !run.is_loaded() || !is_loaded(state, run.id()) {
        return;
    }
    let run_id = run.id();
    let unpredicted = |id: &SampleId| run.lacks_prediction(*id);
    let mut kept = 0;
    let mut is_free = |id: &SampleId| {
        let is_kept = state.keeps_prediction(run_id, *id);
        kept += usize::from(is_kept);
        !is_kept
    };
    let wanted: SampleSet = match state.engine.waiting.clone() {
        None => return,
        Some(Wish::These(samples)) => samples,
        Some(Wish::Unpredicted) => state.samples.ids().filter(unpredicted).collect(),
        Some(Wish::UnpredictedOf(samples)) => samples.iter().filter(unpredicted).collect(),
    };
    let samples: SampleSet = wanted.iter().filter(&mut is_free).collect();
    state.engine.waiting = None;
    match kept {
        0 if samples.is_empty() => state.tell("Every one of these images has a prediction already"),
        0 => {}
        1 => state.tell("1 image keeps its judged prediction"),
        count => state.tell(format!("{count} images keep their judged predictions")),
    }
    if !samples.is_empty() {
        start_many(state, run_id, samples, effects);
    }
}

fn start_many(state: &mut State, run_id: RunId, samples: SampleSet, effects: &mut Vec<Effect>) {
    let (Some(source), Some(run)) = (&state.source, state.runs.get_mut(run_id)) else {
        return;
    };
    let mut asked = Vec::with_capacity(samples.len());
    for id in samples.iter() {
        if let Some(entry) = state.samples.get(id) {
            run.predictions.set_waiting(id);
            asked.push((id, entry.clone()));
        }
    }
    let control = TaskControl::new(ProgressUnit::Images);
    control.set_total(Some(asked.len() as u64));
    let task = TaskId(state.ids.next());
    let key = run.info.key.clone();
    let count = images(asked.len());
    let title = if key.made.is_here() {
        format!("Predict {count} with {}", run.info.card.name)
    } else {
        format!("Predict {count} with {}", key.made)
    };
    state.tasks.start(TaskEntry {
        id: task,
        title,
        kind: TaskKind::Predict {
            run: run_id,
            samples,
        },
        control: control.clone(),
    });
    effects.push(Effect::Predict {
        source: source.id,
        run: run_id,
        key,
        samples: asked,
        task,
        control,
    });
}

fn ask_one(state: &mut State, run_id: RunId, sample: SampleId, effects: &mut Vec<Effect>) {
    if state.remote.remote_inference.chosen.is_some() {
        return remote::ask(state, run_id, sample, effects);
    }
    let is_in_a_task = |state: &State, id: SampleId| {
        state.tasks.running().iter().any(|task| {
            matches!(&task.kind, TaskKind::Predict { run, samples } if *run == run_id && samples.contains(id))
        })
    };
    // The one that was asked for before has been passed by; if it was begun its prediction is still taken.
    if let Some(passed) = state.engine.asked.replace(sample)
        && passed != sample
        && !is_in_a_task(state, passed)
        && let Some(run) = state.runs.get_mut(run_id)
    {
        run.predictions.stop_waiting(std::iter::once(passed));
    }
    let (Some(source), Some(run), Some(entry)) = (
        &state.source,
        state.runs.get_mut(run_id),
        state.samples.get(sample),
    ) else {
        return;
    };
    run.predictions.set_waiting(sample);
    effects.push(Effect::PredictOne {
        source: source.id,
        run: run_id,
        key: run.info.key.clone(),
        sample,
        entry: entry.clone(),
    });
}

pub(super) fn is_loaded(state: &State, run: RunId) -> bool {
    let run = state.runs.get(run);
    run.is_some_and(|run| state.engine.is_ready_for(&run.info.key))
}

/// Starts loading unless that is under way already.
pub(super) fn prepare(state: &mut State, run_id: RunId, effects: &mut Vec<Effect>) {
    let Some(run) = state.runs.get(run_id) else {
        return;
    };
    let is_under_way = state.engine.key.as_ref() == Some(&run.info.key)
        && matches!(state.engine.status, EngineStatus::Preparing);
    if is_under_way {
        return;
    }
    let key = run.info.key.clone();
    let title = format!("Prepare {}", run.info.card.name);
    super::run_tasks::cancel_preparation(state, effects);
    state.engine.key = Some(key.clone());
    state.engine.status = EngineStatus::Preparing;
    let control = TaskControl::new(ProgressUnit::Bytes);
    let task = TaskId(state.ids.next());
    state.engine.task = Some(task);
    state.tasks.start(TaskEntry {
        id: task,
        kind: TaskKind::Prepare,
        title,
        control: control.clone(),
    });
    effects.push(Effect::Prepare {
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
    super::explain::start_waiting(state, effects);
    let is_current = run_key(state) == state.engine.key;
    if !is_current {
        return;
    }
    if ensure_run(state).is_some() {
        predict_shown_if_wanted(state, effects);
        grant_request(state, effects);
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
        super::explain::stop_waiting(state, &message);
        state.problems.add(Problem::general(message.clone()), None);
        state.engine.status = EngineStatus::Failed { message, offer };
    }
}

pub(super) fn engine_cancelled(state: &mut State, task: TaskId) {
    state.tasks.end(task, TaskOutcome::Cancelled);
    if state.engine.task == Some(task) {
        state.engine.waiting = None;
        super::explain::stop_waiting(state, "the model was not loaded");
        state.engine.status = EngineStatus::Failed {
            message: "Cancelled before the model was ready".to_owned(),
            offer: Some(Offer::TryAgain),
        };
    }
}

/// What was computed stays; the rest can be asked for again once the model is loaded anew, or in reach again.
pub(super) fn device_lost(state: &mut State, key: &RunKey, message: String) {
    state.problems.add(Problem::general(message.clone()), None);
    if state.engine.key.as_ref() != Some(key) {
        return;
    }
    state.engine.status = EngineStatus::Failed {
        message,
        offer: Some(Offer::TryAgain),
    };
    if let (Some(run), Some(asked)) = (chosen_run(state), state.engine.asked.take())
        && let Some(run) = state.runs.get_mut(run)
    {
        run.predictions.stop_waiting(std::iter::once(asked));
    }
}

/// The image stays without a prediction: nothing is known of it.
pub(super) fn source_unreachable(
    state: &mut State,
    source: SourceId,
    run: RunId,
    sample: SampleId,
    message: String,
) {
    let is_open = state.source.as_ref().is_some_and(|open| open.id == source);
    if let (true, Some(run)) = (is_open, state.runs.get_mut(run)) {
        run.predictions.stop_waiting(std::iter::once(sample));
        state.problems.add(Problem::general(message), None);
    }
}

/// Another ONNX Runtime is there. It is about this computer.
pub(super) fn runtime_changed(state: &mut State, effects: &mut Vec<Effect>) {
    if state.remote.remote_inference.chosen.is_some() {
        state.remote.remote_inference.parked = Engine::default();
    } else {
        try_again(state, effects);
    }
}

pub(super) fn try_again(state: &mut State, effects: &mut Vec<Effect>) {
    state.engine = Engine::default();
    ask_shown(state, effects);
}

pub(super) fn reported(state: &mut State, key: &RunKey, report: Box<DeviceReport>) {
    if state.engine.is_ready_for(key) {
        state.engine.status = EngineStatus::Ready(report);
    }
}

pub(super) fn predicted(
    state: &mut State,
    source: SourceId,
    run_id: RunId,
    at_ms: i64,
    predictions: Vec<NewPrediction>,
    effects: &mut Vec<Effect>,
) {
    let is_open = state.source.as_ref().is_some_and(|open| open.id == source);
    if !is_open {
        return;
    }
    let predictions = without_kept(state, run_id, predictions);
    let Some(run) = state
        .runs
        .get_mut(run_id)
        .filter(|_| !predictions.is_empty())
    else {
        return;
    };
    let replaced = predictions.iter().map(|prediction| prediction.sample);
    let replaced = replaced.filter(|sample| run.status(*sample) == PredictionStatus::Predicted);
    state
        .judgements
        .forget_predictions(run_id, &replaced.collect());
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
    changes.push(Change::Predictions {
        run: run_id,
        predictions: predictions.iter().filter_map(with_uri).collect(),
    });
    let ticket = project::save(state, changes, effects);
    let mut shown_has_prediction = false;
    for prediction in predictions {
        let is_outdated = !is_of_file(state, &prediction);
        let NewPrediction { sample, result, .. } = prediction;
        shown_has_prediction |= state.selection.shown() == Some(sample);
        if let (Err(reason), Some(entry)) = (&result, state.samples.get(sample))
            && state.samples.unreadable(sample).is_none()
        {
            let problem = Problem::of_sample(entry.uri.clone(), reason.clone());
            state.problems.add(problem, Some(sample));
        }
        state
            .runs
            .record(run_id, sample, result.map(Arc::new), ticket);
        if is_outdated && let Some(run) = state.runs.get_mut(run_id) {
            run.written_since.insert(sample);
        }
    }
    if shown_has_prediction {
        refresh_shown(state, effects);
    }
}

/// Whether the file is still the one that the model saw.
fn is_of_file(state: &State, prediction: &NewPrediction) -> bool {
    let entry = state.samples.get(prediction.sample);
    entry.is_none_or(|entry| prediction.stamp.is_of(&entry.stamp()))
}

/// Leaves out answers for images whose present answer was judged while they were computed, and those about an older
/// version of a file that has a prediction about the present one already.
fn without_kept(
    state: &mut State,
    run: RunId,
    predictions: Vec<NewPrediction>,
) -> Vec<NewPrediction> {
    let is_late = |prediction: &NewPrediction| {
        let known = state.runs.get(run).filter(|run| {
            run.status(prediction.sample) == PredictionStatus::Predicted
                && !run.is_outdated(prediction.sample)
        });
        known.is_some() && !is_of_file(state, prediction)
    };
    let (kept, taken): (Vec<_>, Vec<_>) = predictions
        .into_iter()
        .filter(|prediction| !is_late(prediction))
        .partition(|prediction| state.keeps_prediction(run, prediction.sample));
    let first = kept
        .first()
        .and_then(|prediction| state.samples.get(prediction.sample));
    if let Some(entry) = first {
        let name = entry.uri.file_name();
        state.tell(format!(
            "{name} keeps its judged prediction; the new one is discarded"
        ));
    }
    taken
}

/// Takes the shown sample's answer out of the current run, or asks the project for it.
pub(super) fn refresh_shown(state: &mut State, effects: &mut Vec<Effect>) {
    take_shown(state);
    super::explain::cancel_forgotten(state, effects);
    project::read_missing(state, effects);
}

/// Takes the shown sample's answer, where it is in memory.
pub(super) fn take_shown(state: &mut State) {
    let (prediction, failure) = match (state.runs.current(), state.selection.shown()) {
        (Some(run), Some(sample)) => (
            state.runs.prediction(run.id(), sample).cloned(),
            run.failure(sample).map(str::to_owned),
        ),
        _ => (None, None),
    };
    let (prediction, failure) = match prediction.as_deref().and_then(|it| other_size(state, it)) {
        Some(reason) => (None, Some(reason)),
        None => (prediction, failure),
    };
    if state.shown.prediction != prediction {
        state.shown.selected_box = None;
        state.shown.selected_class = None;
        state.shown.explanation = Explanation::None;
    }
    state.shown.prediction = prediction;
    if state.shown.prediction.is_some()
        && let Some(wanted) = state.shown.wanted_box.take()
    {
        state.shown.selected_box = Some(wanted).filter(|_| state.has_boxes());
    }
    state.shown.failure = failure;
}

/// Why a prediction from elsewhere cannot be about the image, now that its size is known: answers about images far away
/// are opened without a look at them.
fn other_size(state: &State, prediction: &Prediction) -> Option<String> {
    let Display::Ready(info) = &state.shown.display else {
        return None;
    };
    let (run, sample) = (state.runs.current()?, state.selection.shown()?);
    let told = [prediction.width, prediction.height];
    if run.info.key.made.is_here() || run.is_outdated(sample) || told == info.size {
        return None;
    }
    let [width, height] = info.size;
    Some(format!(
        "the prediction is for an image of {} x {} pixels, and this one has {width} x {height}: it belongs to another \
        image, or to an earlier version of this one",
        told[0], told[1]
    ))
}

/// Downloads the weights of a model, or takes them out of a file of the user's.
pub(super) fn fetch_model(
    state: &mut State,
    id: String,
    from: Option<PathBuf>,
    effects: &mut Vec<Effect>,
) {
    let Some(entry) = state.models.get(&id) else {
        return;
    };
    let title = match from {
        None => format!("Download {}", entry.card.name),
        Some(_) => format!("Copy {}", entry.card.name),
    };
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
    effects.push(Effect::FetchModel {
        id,
        from,
        task,
        control,
    });
}

pub(super) fn install_runtime(state: &mut State, kind: RuntimeKind, effects: &mut Vec<Effect>) {
    if state.tasks.installs_runtime() {
        state.tell("An installation is already under way");
        return;
    }
    let control = TaskControl::new(ProgressUnit::Bytes);
    let task = TaskId(state.ids.next());
    state.tasks.start(TaskEntry {
        id: task,
        kind: TaskKind::InstallRuntime(kind),
        title: format!("Install {}", kind.name()),
        control: control.clone(),
    });
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
            let name = state
                .models
                .get(id)
                .map_or(id, |entry| entry.card.name.as_str());
            let text = format!("Removed {name}, {} freed", human_bytes(bytes));
            state.tell(text);
        }
        Err(message) => super::went_wrong(state, Problem::general(message)),
    }
    effects.push(Effect::ListModels);
}

pub(super) fn images(count: usize) -> String {
    match count {
        1 => "1 image".to_owned(),
        count => format!("{count} images"),
    }
}
