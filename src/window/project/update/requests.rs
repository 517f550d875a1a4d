//! Requests to the project: saving changes, and loading runs and predictions.

use serde::Serialize;

use crate::domain::{Change, RunId, SampleId};
use crate::review::PredictionStatus;
use crate::tasks::ProgressUnit;
use crate::window::predict::state::runs::Loading;
use crate::window::state::{Listing, PredictionRequest, ProjectEffect, State, TaskKind};
use crate::window::tasks;

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
pub(crate) fn may_hold(state: &State, run: RunId, sample: SampleId) -> bool {
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
