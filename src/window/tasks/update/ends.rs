//! Follow-up actions when a task ends.

use crate::domain::Problem;
use crate::window::models;
use crate::window::state::{Effect, ModelsEffect, Queue, State, TaskId, TaskKind, TaskOutcome};

pub(crate) fn ended(
    state: &mut State,
    task: TaskId,
    outcome: TaskOutcome,
    notes: Vec<String>,
    effects: &mut Queue<Effect>,
) {
    for note in notes {
        state.problems.add(Problem::general(note), None);
    }
    if let TaskOutcome::Failed(message) = &outcome {
        state.problems.add(Problem::general(message.clone()), None);
    }
    let is_done = matches!(outcome, TaskOutcome::Done(_));
    let Some(entry) = state.tasks.end(task, outcome) else {
        return;
    };
    match entry.kind {
        TaskKind::Predict { run, samples } => {
            if let Some(run) = state.runs.get_mut(run) {
                run.predictions.stop_waiting(samples.iter());
            }
        }
        TaskKind::Fetch { model_id } => {
            if is_done {
                state.settings.model = Some(model_id.clone());
                state.models.choose(Some(model_id));
            }
            effects.push(ModelsEffect::List);
        }
        // The newly installed runtime may be the one that the model uses next.
        TaskKind::InstallRuntime(_) if is_done => models::update::runtime_changed(state, effects),
        TaskKind::InstallRuntime(_)
        | TaskKind::Explain
        | TaskKind::TryPresets
        | TaskKind::Compare
        | TaskKind::ReadTruth
        | TaskKind::Evaluate
        | TaskKind::Export
        | TaskKind::PlanUpload
        | TaskKind::Upload
        | TaskKind::CheckJob
        | TaskKind::Rehearse
        | TaskKind::StartJob
        | TaskKind::WatchJob
        | TaskKind::ReadOutputs
        | TaskKind::LookAtDropped
        | TaskKind::Jobs
        | TaskKind::Endpoints
        | TaskKind::SignIn
        | TaskKind::Browse
        | TaskKind::List
        | TaskKind::Prepare
        | TaskKind::Connect
        | TaskKind::RemotePrediction { .. }
        | TaskKind::CheckRemoteModel
        | TaskKind::LoadRun { .. } => {}
    }
}
