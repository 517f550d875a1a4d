//! Tasks: pausing, canceling, ending.

use crate::domain::RunId;
use crate::tasks::{ProgressUnit, TaskControl};
use crate::window::models;
use crate::window::state::{
    Effect, Failure, Loadable, ModelsEffect, State, TaskEntry, TaskId, TaskKind, TaskOutcome, TaskSignal, Ticket,
};

/// Adds a task to the running ones.
pub(crate) fn begin(state: &mut State, kind: TaskKind, unit: ProgressUnit, title: String) -> Ticket {
    let ticket = Ticket { id: TaskId(state.ids.next()), control: TaskControl::new(unit) };
    state.tasks.start(TaskEntry { id: ticket.id, kind, title, control: ticket.control.clone() });
    ticket
}

/// Ends a task. Its success is visible at the request; a failure is also listed as a problem.
pub(crate) fn end(state: &mut State, task: TaskId, failure: Option<&Failure>) {
    match failure {
        None | Some(Failure::Cancelled) => state.tasks.forget(task),
        Some(Failure::Failed { message, .. }) => {
            drop(state.tasks.end(task, TaskOutcome::Failed(message.clone())));
        }
    }
}

/// Ends a task and stores its result with the request. False if it is late, because the result is no longer requested
/// or another task was started.
pub(crate) fn settle<T>(
    state: &mut State,
    task: TaskId,
    result: Result<T, Failure>,
    place: impl FnOnce(&mut State) -> Option<&mut Loadable<T>>,
) -> bool {
    end(state, task, result.as_ref().err());
    place(state).is_some_and(|place| place.settle(task, result))
}

pub(crate) fn signal(state: &mut State, task: TaskId, signal: TaskSignal) {
    if let Some(entry) = state.tasks.get(task) {
        state.effects.push(Effect::Signal(entry.control.clone(), signal));
    }
}

pub(crate) fn cancel(state: &mut State, task: Option<TaskId>) {
    if let Some(task) = task {
        signal(state, task, TaskSignal::Cancel);
    }
}

pub(crate) fn signal_all(state: &mut State, signal: TaskSignal) {
    let concerned = |task: &&TaskEntry| signal == TaskSignal::Cancel || task.can_pause();
    for task in state.tasks.running().iter().filter(concerned) {
        state.effects.push(Effect::Signal(task.control.clone(), signal));
    }
}

/// Cancels work on samples that are about to be dropped. Their ends are still awaited.
pub(crate) fn cancel_work_on_samples(state: &mut State) {
    cancel_where(state, |kind| {
        matches!(
            kind,
            TaskKind::List
                | TaskKind::Predict { .. }
                | TaskKind::RemotePrediction { .. }
                | TaskKind::LoadRun { .. }
                | TaskKind::Explain
                | TaskKind::ReadCaptures
                | TaskKind::FindAlike
                | TaskKind::FindDuplicates
                | TaskKind::Measure
                | TaskKind::Compare
                | TaskKind::ReviewReport
                | TaskKind::ReadTruth
                | TaskKind::Evaluate
                | TaskKind::Map
                | TaskKind::ReadOutputs
        )
    });
}

/// Cancels loading a model that is no longer chosen.
pub(crate) fn cancel_preparation(state: &mut State) {
    cancel_where(state, |kind| matches!(kind, TaskKind::Prepare | TaskKind::Connect));
}

/// Cancels browsing before the tree of buckets is dropped.
pub(crate) fn cancel_browsing(state: &mut State) {
    cancel_where(state, |kind| matches!(kind, TaskKind::Browse));
}

pub(crate) fn cancel_planning(state: &mut State) {
    cancel_where(state, |kind| matches!(kind, TaskKind::PlanUpload));
}

/// Cancels tasks of a run before its predictions are deleted.
pub(crate) fn cancel_run(state: &mut State, doomed: RunId) {
    cancel_where(state, |kind| {
        matches!(kind, TaskKind::Predict { run, .. } | TaskKind::RemotePrediction { run, .. }
                    | TaskKind::LoadRun { run } if *run == doomed)
    });
}

fn cancel_where(state: &mut State, is_concerned: impl Fn(&TaskKind) -> bool) {
    for task in state.tasks.running() {
        if is_concerned(&task.kind) {
            state.effects.push(Effect::Signal(task.control.clone(), TaskSignal::Cancel));
        }
    }
}

/// Ends a task, lists its failure and notes as problems, and starts what follows from it.
pub(crate) fn ended(state: &mut State, task: TaskId, outcome: TaskOutcome, notes: Vec<String>) {
    for note in notes {
        state.problems.add_general(note);
    }
    if let TaskOutcome::Failed(message) = &outcome {
        state.problems.add_general(message.clone());
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
            state.effects.push(ModelsEffect::List);
        }
        // The newly installed runtime may be the one that the model uses next.
        TaskKind::InstallRuntime(_) if is_done => models::update::runtime_changed(state),
        _ => {}
    }
}
