//! Reading from and writing to the project.

use std::path::PathBuf;

use serde::Serialize;

use crate::domain::{Change, Prediction, RunId, SECOND_PASS, Sample, SampleId};
use crate::review::PredictionStatus;
use crate::tasks::ProgressUnit;
use crate::window::predict::state::runs::Loading;
use crate::window::project::merge;
use crate::window::state::{
    BrowseEvent, Failure, FilePick, FileRequest, Listing, PredictionRequest, ProjectCommand, ProjectContent,
    ProjectEffect, ProjectEvent, Run, SourceId, SpotChecks, State, StoredPrediction, StoredRow, TaskId, TaskKind,
    TaskOutcome, TaskSignal,
};
use crate::window::update::images;
use crate::window::{browse, canvas, evaluation, judge, predict, search, state, tasks};

pub(crate) fn on_command(state: &mut State, command: ProjectCommand) {
    match command {
        ProjectCommand::LoadPredictions(requested) => load_predictions(state, &requested),
        ProjectCommand::SwitchRun(run) => switch_run(state, run),
        ProjectCommand::RenameRun(run, name) => rename_run(state, run, &name),
        ProjectCommand::DeleteRun(run) => delete_run(state, run),
        ProjectCommand::SaveAs(path) => save_as(state, path),
        ProjectCommand::StartSecondPass(path) => start_second_pass(state, path),
        ProjectCommand::Move(folder) => move_to(state, folder),
        ProjectCommand::Merge(command) => merge::update::on_command(state, command),
    }
}

pub(crate) fn on_event(state: &mut State, event: ProjectEvent) {
    match event {
        ProjectEvent::Opened { source, content } => {
            opened(state, source, *content);
        }
        ProjectEvent::Saved { source, up_to } => saved(state, source, up_to),
        ProjectEvent::SaveFailed { source, reason } => {
            save_failed(state, source, reason);
        }
        ProjectEvent::RunLoaded { source, run, predictions } => run_loaded(state, source, run, predictions),
        ProjectEvent::RunLoadingEnded { source, run, task, result } => {
            run_loading_ended(state, source, run, task, result);
        }
        ProjectEvent::PredictionsLoaded { source, predictions } => {
            predictions_loaded(state, source, predictions);
        }
        ProjectEvent::Merge(event) => merge::update::on_event(state, event),
        ProjectEvent::SavedAs { source, result } => saved_as(state, source, result),
        ProjectEvent::SecondPassWritten { source, task, result } => second_pass_written(state, source, task, result),
    }
}

fn opened(state: &mut State, source: SourceId, mut content: ProjectContent) {
    if !state.is_open(source) {
        return;
    }
    state.project.status = content.status.clone();
    state.project.path = content.path.take();
    state.runs.begin_ids_at(content.next_run);
    predict::update::run_on_screen::restore(state, &mut content);
    for info in content.runs {
        let mut run = Run::stored(info);
        run.is_automatic = predict::update::run_on_screen::is_automatic(state, run.id());
        state.runs.add(run);
    }
    let verdicts = content.judgments.iter().flat_map(|judged| &judged.verdicts);
    state.own_classes = verdicts.filter_map(|(_, verdict)| Some(verdict.right_class()?.to_owned())).collect();
    let samples = &state.samples;
    state.judgments.restore(content.judgments, |uri| samples.find(uri));
    state.spot_checks = SpotChecks::default();
    for (name, json) in &content.views {
        judge::update::spot_check::restore(state, name, json);
        canvas::update::restore(state, name, json);
        search::update::restore(state, name, json);
        evaluation::update::restore(state, name, json);
        browse::update::restore(state, name, json);
    }
    state.project.is_second_pass = content.views.iter().any(|(name, json)| name == SECOND_PASS && json == "true");
    for note in content.notes {
        state.report_problem(note);
    }
    predict::update::run_on_screen::show(state);
    browse::update::project_opened(state);
    predict::update::predict::prepare_queued(state);
}

fn saved(state: &mut State, source: SourceId, up_to: u64) {
    if !state.is_open(source) {
        return;
    }
    state.project.set_saved(up_to);
    state.runs.set_saved(up_to);
    state.judgments.saved(up_to);
    for task in std::mem::take(&mut state.project.held_back) {
        tasks::update::signal(state, task, TaskSignal::Resume);
    }
}

/// Pauses predictions, because unsaved changes stay in memory until there is room on the disk.
fn save_failed(state: &mut State, source: SourceId, reason: String) {
    if !state.is_open(source) || state.project.trouble.as_ref() == Some(&reason) {
        return;
    }
    state.report_problem(reason.clone());
    state.project.trouble = Some(reason);
    let runs = state.tasks.running().iter();
    let held_back: Vec<TaskId> =
        runs.filter(|task| task.can_pause() && !task.control.is_paused()).map(|task| task.id).collect();
    for task in &held_back {
        tasks::update::signal(state, *task, TaskSignal::Pause);
    }
    state.project.held_back.extend(held_back);
}

fn run_loaded(state: &mut State, source: SourceId, run_id: RunId, predictions: Vec<StoredRow>) {
    if !state.is_open(source) {
        return;
    }
    let Some(run) = state.runs.get_mut(run_id) else {
        return;
    };
    for row in predictions {
        // The predictions of images that were moved away stay in the project.
        let Some(sample) = state.samples.find(&row.sample) else {
            continue;
        };
        let is_of_this_file = |entry: &Sample| row.stamp.is_none_or(|seen| seen == entry.stamp());
        let is_outdated = !state.samples.get(sample).is_some_and(is_of_this_file);
        let is_judged = matches!(row.prediction, StoredPrediction::Predicted { .. })
            && state.judgments.is_prediction_judged(run_id, sample);
        if is_outdated && !is_judged {
            run.outdated_count += 1;
            continue;
        }
        // Predictions made meanwhile are newer.
        if matches!(run.predictions.status(sample), PredictionStatus::Predicted | PredictionStatus::Failed) {
            continue;
        }
        if is_outdated {
            run.outdated.insert(sample);
            run.kept += 1;
        }
        match row.prediction {
            StoredPrediction::Predicted { width, height, classes, scores, warnings } => {
                run.predictions.record_summary(sample, width, height, &classes, &scores);
                run.predictions.set_warnings(sample, warnings);
            }
            StoredPrediction::Failed(reason) => run.predictions.record_failure(sample, reason),
        }
    }
}

fn run_loading_ended(state: &mut State, source: SourceId, run_id: RunId, task: TaskId, result: Result<(), String>) {
    match &result {
        Ok(()) => state.tasks.forget(task),
        Err(reason) => drop(state.tasks.end(task, TaskOutcome::Failed(reason.clone()))),
    }
    if !state.is_open(source) {
        return;
    }
    if let Some(run) = state.runs.get_mut(run_id) {
        run.loading = if result.is_ok() { Loading::Done } else { Loading::NotYet };
    }
    match result {
        Ok(()) => {
            report_outdated(state, run_id);
            browse::update::shown::refresh(state);
            predict::update::predict::predict_shown_if_wanted(state);
            predict::update::predict::start_queued(state);
        }
        Err(reason) => state.report_problem(reason),
    }
}

fn report_outdated(state: &mut State, run_id: RunId) {
    let counts = state.runs.get(run_id).map(|run| (run.outdated_count, run.kept));
    let (outdated, kept) = counts.unwrap_or_default();
    let mut texts = Vec::new();
    match outdated {
        0 => {}
        1 => {
            texts.push("1 image is outdated: it changed after it was predicted. Predict it again".to_owned());
        }
        count => texts.push(format!(
            "{} are outdated: they changed after they were predicted. Predict them again",
            images(count)
        )),
    }
    match kept {
        0 => {}
        1 => texts
            .push("1 image is outdated: it changed after its prediction was judged. The prediction is kept".to_owned()),
        count => texts.push(format!(
            "{} are outdated: they changed after their predictions were judged. The predictions are kept",
            images(count)
        )),
    }
    for text in texts {
        state.report_problem(text);
    }
}

fn predictions_loaded(state: &mut State, source: SourceId, predictions: Vec<(RunId, SampleId, Option<Prediction>)>) {
    if !state.is_open(source) {
        return;
    }
    let shown = state.run_id().zip(state.selection.shown());
    let mut is_shown_missing = false;
    for (run_id, sample, prediction) in predictions {
        let Some(prediction) = prediction else {
            is_shown_missing |= shown == Some((run_id, sample));
            continue;
        };
        if let Some(run) = state.runs.get_mut(run_id)
            && !run.is_loaded()
            && matches!(run.status(sample), PredictionStatus::Unpredicted | PredictionStatus::Waiting)
        {
            run.predictions.record(sample, &prediction);
        }
        state.runs.page_in(run_id, sample, prediction);
    }
    browse::update::shown::take(state);
    if is_shown_missing {
        predict::update::predict::predict_shown_if_missing(state);
    }
}

pub(crate) fn switch_run(state: &mut State, run_id: RunId) {
    let Some(key) = state.runs.get(run_id).map(|run| run.info.key.clone()) else {
        return;
    };
    // This lets further predictions continue this run, if its model is still available. No image is sent anywhere for
    // that.
    if key.made.is_here() {
        predict::update::predict::switch_to_local(state);
    }
    if key.made.is_here() && state.models.get(&key.model_id).is_some() {
        state.settings.model = Some(key.model_id.clone());
        state.models.choose(Some(key.model_id));
        state.settings.device = key.device;
        state.settings.batch = key.batch;
        state.settings.threads = key.threads;
    }
    state.runs.switch_to(Some(run_id));
    predict::update::predict::run_changed(state);
}

fn rename_run(state: &mut State, run_id: RunId, name: &str) {
    let name = name.trim();
    if let Err(reason) = state.project.check_writable() {
        state.show_notice(reason);
        return;
    }
    let Some(run) = state.runs.get_mut(run_id).filter(|_| !name.is_empty()) else {
        return;
    };
    name.clone_into(&mut run.info.name);
    run.is_automatic = false;
    if run.is_in_project {
        save(state, vec![Change::RenameRun(run_id, name.to_owned())]);
    }
}

fn delete_run(state: &mut State, run_id: RunId) {
    if let Err(reason) = state.project.check_writable() {
        state.show_notice(reason);
        return;
    }
    let Some(run) = state.runs.get(run_id) else {
        return;
    };
    let is_in_project = run.is_in_project;
    tasks::update::cancel_run(state, run_id);
    state.runs.remove(run_id);
    state.judgments.forget_run(run_id);
    evaluation::update::forget_run(state, run_id);
    if is_in_project {
        save(state, vec![Change::DeleteRun(run_id)]);
    }
    browse::update::shown::take(state);
}

pub(crate) fn save_as(state: &mut State, path: PathBuf) {
    if let Some(source) = &state.source {
        state.effects.push(ProjectEffect::SaveAs { source: source.id, path });
    }
}

pub(crate) fn start_second_pass(state: &mut State, path: PathBuf) {
    if let Some(source) = state.source_id() {
        let title = "Copy the project for a second pass".to_owned();
        let ticket = tasks::update::begin(state, TaskKind::Export, ProgressUnit::Bytes, title);
        state.effects.push(ProjectEffect::StartSecondPass { source, path, ticket });
    }
}

/// Opens the copy, unless something else was opened meanwhile.
fn second_pass_written(state: &mut State, source: SourceId, task: TaskId, result: Result<PathBuf, Failure>) {
    tasks::update::end(state, task, result.as_ref().err());
    match result {
        Ok(copy) if state.is_open(source) => {
            let pick = FilePick::Picked(FileRequest::Project, vec![copy]);
            browse::update::on_event(state, BrowseEvent::FilesPicked(pick));
        }
        Ok(copy) => state.show_notice(format!("The project of the second pass is {}", copy.display())),
        Err(Failure::Failed { message, .. }) => {
            state.report_problem(format!("Could not start the second pass: {message}"));
        }
        Err(Failure::Cancelled) => {}
    }
}

fn saved_as(state: &mut State, source: SourceId, result: Result<(PathBuf, RunId), String>) {
    if !state.is_open(source) {
        return;
    }
    match result {
        Ok((path, next_run)) => {
            // Another program may have added runs while the project was read-only here.
            state.runs.begin_ids_at(next_run);
            state.show_notice(format!("The project is now {}", path.display()));
            state.project.path = Some(path);
            state.project.status = state::ProjectStatus::Writable;
        }
        Err(reason) => state.report_problem(reason),
    }
}

pub(crate) fn move_to(state: &mut State, folder: PathBuf) {
    if let Some(source) = &state.source {
        state.effects.push(ProjectEffect::Move { source: source.id, folder });
    }
}

/// Saves changes. They are on disk once the ticket is saved.
pub(crate) fn save(state: &mut State, changes: Vec<Change>) -> u64 {
    let ticket = state.project.next_ticket();
    if let Some(source) = &state.source {
        state.effects.push(ProjectEffect::Save { source: source.id, ticket, changes });
    }
    ticket
}

/// Saves a value of the window under this name, if the project can be changed.
pub(crate) fn save_view(state: &mut State, name: String, value: &impl Serialize) {
    if state.project.is_writable()
        && let Ok(json) = serde_json::to_string(value)
    {
        save(state, vec![Change::SetView { name, json }]);
    }
}

/// Reads the summaries of the run on screen and of the one it is compared with, once enough images are listed to match
/// their predictions.
pub(crate) fn load_runs_on_screen(state: &mut State) {
    let compared = state.compared_run();
    for run in state.run_id().into_iter().chain(compared) {
        load_run(state, run);
    }
}

fn load_run(state: &mut State, run_id: RunId) {
    let Some(source) = state.source.as_ref().filter(|source| source.listing != Listing::Running) else {
        return;
    };
    let source = source.id;
    let Some(run) = state.runs.get_mut(run_id).filter(|run| run.loading == Loading::NotYet) else {
        return;
    };
    run.loading = Loading::Running;
    let title = format!("Read the predictions of {}", run.info.name);
    let kind = TaskKind::LoadRun { run: run_id };
    let ticket = tasks::update::begin(state, kind, ProgressUnit::Images, title);
    state.effects.push(ProjectEffect::LoadRun { source, run: run_id, ticket });
}

/// Reads the complete predictions that panels show, unless they are in memory.
pub(crate) fn load_predictions(state: &mut State, samples: &[SampleId]) {
    if let Some(run) = state.run_id() {
        state.runs.requested = samples.iter().map(|sample| (run, *sample)).collect();
        read_missing(state);
    }
}

/// Requests the shown predictions that are not in memory; the shown image comes first.
pub(crate) fn read_missing(state: &mut State) {
    let shown = state.run_id().zip(state.selection.shown());
    let shown = shown.filter(|(run, sample)| may_hold(state, *run, *sample));
    let mut missing: Vec<(RunId, SampleId)> = shown.into_iter().collect();
    let compared = state.compared_run();
    let compared = compared.zip(state.selection.shown());
    missing.extend(compared.filter(|(run, sample)| may_hold(state, *run, *sample)));
    missing.extend(state.runs.missing().into_iter().filter(|it| Some(*it) != shown));
    let Some(source) = state.source.as_ref().filter(|_| !missing.is_empty()) else {
        return;
    };
    let with_uri = |(run, sample): (RunId, SampleId)| {
        let entry = state.samples.get(sample)?;
        let is_outdated = state.runs.get(run)?.is_outdated(sample);
        Some(PredictionRequest { run, sample, uri: entry.uri.clone(), stamp: (!is_outdated).then(|| entry.stamp()) })
    };
    state.effects.push(ProjectEffect::LoadPredictions {
        source: source.id,
        requested: missing.into_iter().filter_map(with_uri).collect(),
    });
}

/// Whether the project may have this prediction although memory does not.
fn may_hold(state: &State, run: RunId, sample: SampleId) -> bool {
    let Some(known) = state.runs.get(run) else {
        return false;
    };
    let is_possible = match known.status(sample) {
        PredictionStatus::Predicted => true,
        PredictionStatus::Failed => false,
        PredictionStatus::Unpredicted | PredictionStatus::Waiting => !known.is_loaded(),
    };
    is_possible && state.runs.prediction(run, sample).is_none()
}
