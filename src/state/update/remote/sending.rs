//! The form that sends a model and images to a Batch Transform job.

use std::sync::Arc;

use super::super::{run_tasks, s3};
use super::{begin, failed, jobs, take_check};
use crate::state::{
    Effect, ExportScope, JobId, ModelDraft, Overlay, RehearsalReport, RehearsalRequest, SendCheck,
    SendDraft, SendStage, State, TaskId, TaskKind, TaskOutcome, TaskSignal,
};
use crate::tasks::ProgressUnit;

pub(in super::super) fn open_form(state: &mut State, effects: &mut Vec<Effect>) {
    let place = state.source.as_ref().and_then(|open| open.place.clone());
    if let Some(place) = &place {
        s3::set_access(state, place.access.clone(), effects);
    }
    let mut draft = SendDraft {
        model: ModelDraft::of_library(state.models.chosen_id(), &state.settings.send.model),
        ..state.settings.send.clone()
    };
    if state.selection.selected().len() > 1 {
        draft.scope = ExportScope::Selection;
    } else if state.arranging.is_filtered() {
        draft.scope = ExportScope::Filter;
    }
    if let (true, Some(place)) = (draft.base.is_empty(), &place) {
        draft.base = format!("s3://{}/spotcheck/", place.address.bucket);
    }
    forget(state, effects);
    state.remote.sending.serial = state.ids.next();
    state.remote.sending.draft = draft;
    state.overlay = Overlay::Send;
    effects.push(Effect::ReadAwsSetup);
    effects.push(Effect::ReadPrices);
    let access = state.s3.access.clone();
    s3::ask_who(state, &access, effects);
}

/// Nobody waits for the check any more; what is being sent goes on.
fn forget(state: &mut State, effects: &mut Vec<Effect>) {
    let sending = &state.remote.sending;
    let tasks = [task_of(&sending.check), task_of(&sending.rehearsal)];
    for task in tasks.into_iter().flatten() {
        run_tasks::signal(state, task, TaskSignal::Cancel, effects);
    }
    let sending = &mut state.remote.sending;
    sending.check = SendStage::NotYet;
    sending.rehearsal = SendStage::NotYet;
    if !sending.start.is_running() {
        sending.start = SendStage::NotYet;
    }
}

pub(super) fn task_of<T>(stage: &SendStage<T>) -> Option<TaskId> {
    match stage {
        SendStage::Running(task) => Some(*task),
        SendStage::NotYet | SendStage::Done(_) | SendStage::Failed(_) => None,
    }
}

/// Checks the form as it stands now. A check before it is of no use any more.
pub(in super::super) fn check(state: &mut State, draft: SendDraft, effects: &mut Vec<Effect>) {
    forget(state, effects);
    let order = draft.order(state);
    state.remote.sending.draft = draft;
    match order {
        Err(missing) => state.remote.sending.missing = Some(missing),
        Ok(order) => {
            let title = format!("Check the job {}", order.spec.job_name);
            let (task, control) = begin(state, TaskKind::CheckJob, ProgressUnit::Steps, title);
            let sending = &mut state.remote.sending;
            sending.missing = None;
            sending.check = SendStage::Running(task);
            effects.push(Effect::CheckJob {
                order: Box::new(order),
                task,
                control,
            });
        }
    }
}

pub(in super::super) fn checked(
    state: &mut State,
    task: TaskId,
    result: Result<Box<SendCheck>, TaskOutcome>,
) {
    take_check(state, task, result, |state| &mut state.remote.sending.check);
}

/// Tries the archive on this machine, with some of the images, as Batch Transform would run it.
pub(in super::super) fn rehearse(
    state: &mut State,
    request: RehearsalRequest,
    effects: &mut Vec<Effect>,
) {
    if state.remote.sending.rehearsal.is_running() {
        return;
    }
    let (Some(source), Ok(mut order)) = (
        state.source.as_ref().map(|open| open.id),
        state.remote.sending.draft.order(state),
    ) else {
        return;
    };
    // As the job would run, with what the check has set.
    if let SendStage::Done(check) = &state.remote.sending.check {
        order.spec.clone_from(&check.plan.spec);
    }
    state.settings.rehearsal.clone_from(&request);
    let title = format!("Rehearse {} on this machine", order.model.name());
    let (task, control) = begin(state, TaskKind::Rehearse, ProgressUnit::Images, title);
    state.remote.sending.rehearsal = SendStage::Running(task);
    effects.push(Effect::Rehearse {
        source,
        order: Box::new(order),
        request,
        runtime_library: state.settings.runtime_library.clone(),
        task,
        control,
    });
}

pub(in super::super) fn rehearsed(
    state: &mut State,
    task: TaskId,
    result: Result<Box<RehearsalReport>, TaskOutcome>,
) {
    let is_wanted = state.remote.sending.rehearsal.is_by(task);
    let stage = match result {
        Ok(summary) => {
            let said = summary.summary.clone();
            drop(state.tasks.end(task, TaskOutcome::Done(said)));
            SendStage::Done(*summary)
        }
        Err(outcome) => failed(state, task, outcome),
    };
    if is_wanted {
        state.remote.sending.rehearsal = stage;
    }
}

/// Packs, uploads and starts what was checked.
pub(in super::super) fn start(state: &mut State, effects: &mut Vec<Effect>) {
    let SendStage::Done(check) = &state.remote.sending.check else {
        return;
    };
    if !check.is_startable() || state.remote.sending.start.is_running() {
        return;
    }
    let plan = Arc::clone(&check.plan);
    state.settings.send = state.remote.sending.draft.for_the_next();
    let title = format!("Start the job {}", plan.spec.job_name);
    let (task, control) = begin(state, TaskKind::StartJob, ProgressUnit::Bytes, title);
    state.remote.sending.start = SendStage::Running(task);
    effects.push(Effect::StartJob {
        plan,
        task,
        control,
    });
}

/// The job's page takes the place of the form.
pub(in super::super) fn started(
    state: &mut State,
    task: TaskId,
    result: Result<JobId, TaskOutcome>,
    effects: &mut Vec<Effect>,
) {
    let is_wanted = state.remote.sending.start.is_by(task);
    match result {
        Ok(id) => {
            let said = format!("Started the job {}", id.name);
            drop(state.tasks.end(task, TaskOutcome::Done(said.clone())));
            state.tell(said);
            state.remote.sending.start = SendStage::NotYet;
            state.remote.sending.check = SendStage::NotYet;
            if state.overlay == Overlay::Send {
                state.overlay = Overlay::Jobs;
                state.remote.open = Some(id.clone());
            }
            jobs::watch(state, &id, effects);
        }
        Err(outcome) => {
            if let TaskOutcome::Failed(message) = &outcome {
                let problem = crate::domain::Problem::general(message.clone());
                state.problems.add(problem, None);
            }
            let stage = failed(state, task, outcome);
            if is_wanted {
                state.remote.sending.start = stage;
            }
        }
    }
}
