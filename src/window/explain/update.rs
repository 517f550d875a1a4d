//! Explaining predictions.

use std::sync::Arc;

use crate::domain::Saliency;
use crate::tasks::ProgressUnit;
use crate::window::predict;
use crate::window::state::{
    Effect, ExplainRequest, Explanation, Failure, Question, ReviewEffect, State, TaskId, TaskKind, TaskOutcome,
    TaskSignal,
};
use crate::window::tasks::update::begin;

/// Starts an explanation, or hides it if it is shown. The model is loaded first if needed.
pub(crate) fn explain(state: &mut State) {
    let (Some(question), Some(run)) = (state.question(), state.runs.current()) else {
        return;
    };
    if matches!(&state.shown.explanation, Explanation::Ready { question: shown, .. } if *shown == question) {
        hide(state);
        return;
    }
    if state.inference.is_ready_for(&run.info.key) {
        start(state, question);
    } else {
        let run = run.id();
        state.shown.explanation = Explanation::Waiting(question);
        predict::update::predict::load(state, run);
    }
    cancel_forgotten(state);
}

/// Starts a waiting explanation after the model was loaded.
pub(crate) fn start_waiting(state: &mut State) {
    if let Explanation::Waiting(question) = &state.shown.explanation
        && let Some(run) = state.runs.current()
        && state.inference.is_ready_for(&run.info.key)
    {
        start(state, question.clone());
    }
}

fn start(state: &mut State, question: Question) {
    let (Some(sample), Some(source), Some(run)) = (state.selection.shown(), &state.source, state.runs.current()) else {
        return;
    };
    let Some(entry) = state.samples.get(sample) else {
        return;
    };
    let (source, key, uri) = (source.id, run.info.key.clone(), entry.uri.clone());
    let title = format!("Explain {} in {}", question.label, uri.file_name());
    let ticket = begin(state, TaskKind::Explain, ProgressUnit::Steps, title);
    let (task, target) = (ticket.id, question.target);
    state.shown.explanation = Explanation::Running { task, question };
    let request = ExplainRequest { source, key, uri, target };
    state.effects.push(ReviewEffect::Explain { request, ticket });
}

/// Ends a waiting explanation because the model could not be loaded.
pub(crate) fn stop_waiting(state: &mut State, reason: &str) {
    if let Explanation::Waiting(question) = &state.shown.explanation {
        state.shown.explanation = Explanation::Failed { question: question.clone(), reason: reason.to_owned() };
    }
}

pub(crate) fn explained(state: &mut State, task: TaskId, result: Result<Arc<Saliency>, Failure>) {
    let outcome = match &result {
        Ok(saliency) => TaskOutcome::Done(format!("Covering {} parts in turn", saliency.drops.len())),
        Err(failure) => failure.clone().into(),
    };
    state.tasks.end(task, outcome);
    let is_asked = state.shown.explanation.task() == Some(task);
    let Some(question) = state.shown.explanation.question().filter(|_| is_asked).cloned() else {
        return;
    };
    state.shown.explanation = match result {
        Ok(saliency) => Explanation::Ready { task, question, saliency },
        Err(Failure::Failed { message: reason, .. }) => {
            let problem = format!("{} could not be explained: {reason}", question.label);
            state.problems.add_general(problem);
            Explanation::Failed { question, reason }
        }
        Err(Failure::Cancelled) => Explanation::None,
    };
}

/// Cancels explanations that are no longer shown.
pub(crate) fn cancel_forgotten(state: &mut State) {
    let requested = state.shown.explanation.task();
    for task in state.tasks.running() {
        if task.kind == TaskKind::Explain && Some(task.id) != requested {
            state.effects.push(Effect::Signal(task.control.clone(), TaskSignal::Cancel));
        }
    }
}

pub(crate) fn hide(state: &mut State) {
    state.shown.explanation = Explanation::None;
    cancel_forgotten(state);
}
