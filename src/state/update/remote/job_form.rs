//! The form that starts a Batch Transform job.

use super::super::run_tasks;
use super::{begin, failed, forms, jobs};
use crate::domain::TransformPlan;
use crate::state::{
    Effect, ExportScope, FormCheck, JobDraft, JobId, Overlay, RehearsalReport, RehearsalRequest,
    SendStage, State, TaskId, TaskKind, TaskOutcome, TaskSignal,
};
use crate::tasks::ProgressUnit;

pub(in super::super) fn open_form(state: &mut State, effects: &mut Vec<Effect>) {
    let mut draft = state.settings.job.clone();
    if state.selection.selected().len() > 1 {
        draft.scope = ExportScope::Selection;
    } else if state.arranging.is_filtered() {
        draft.scope = ExportScope::Filter;
    }
    forget_rehearsal(state, effects);
    effects.push(Effect::ReadPrices);
    forms::open(state, draft, Overlay::StartJob, effects);
}

fn forget_rehearsal(state: &mut State, effects: &mut Vec<Effect>) {
    if let Some(task) = state.remote.rehearsal.task() {
        run_tasks::signal(state, task, TaskSignal::Cancel, effects);
    }
    state.remote.rehearsal = SendStage::NotYet;
}

/// Checks the form with this draft, and cancels the check before it.
pub(in super::super) fn check(state: &mut State, draft: JobDraft, effects: &mut Vec<Effect>) {
    forms::forget_check::<JobDraft>(state, effects);
    forget_rehearsal(state, effects);
    let request = draft.request(state);
    let title =
        |request: &crate::state::JobRequest| format!("Check the job {}", request.spec.job_name);
    let begun = forms::begin_check(state, draft, request, TaskKind::CheckJob, title);
    if let Some((request, task, control)) = begun {
        effects.push(Effect::CheckJob {
            request: Box::new(request),
            task,
            control,
        });
    }
}

pub(in super::super) fn checked(
    state: &mut State,
    task: TaskId,
    result: Result<Box<FormCheck<TransformPlan>>, TaskOutcome>,
) {
    forms::checked::<JobDraft>(state, task, result);
}

/// Tries the archive on this machine, with some of the images, as Batch Transform would run it.
pub(in super::super) fn rehearse(
    state: &mut State,
    request: RehearsalRequest,
    effects: &mut Vec<Effect>,
) {
    if state.remote.rehearsal.is_running() {
        return;
    }
    let (Some(source), Ok(mut job)) = (
        state.source.as_ref().map(|open| open.id),
        state.remote.job_form.draft.request(state),
    ) else {
        return;
    };
    // As the job would run, with what the check has set.
    if let Some(check) = state.remote.job_form.check.done() {
        job.spec.clone_from(&check.plan.spec);
    }
    state.settings.rehearsal.clone_from(&request);
    let title = format!("Rehearse {} on this machine", job.model.model.name());
    let (task, control) = begin(state, TaskKind::Rehearse, ProgressUnit::Images, title);
    state.remote.rehearsal = SendStage::Running(task);
    effects.push(Effect::Rehearse {
        source,
        job: Box::new(job),
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
    let is_wanted = state.remote.rehearsal.is_by(task);
    let stage = match result {
        Ok(summary) => {
            let said = summary.summary.clone();
            drop(state.tasks.end(task, TaskOutcome::Done(said)));
            SendStage::Done(*summary)
        }
        Err(outcome) => failed(state, task, outcome),
    };
    if is_wanted {
        state.remote.rehearsal = stage;
    }
}

/// Packs, uploads and starts what was checked.
pub(in super::super) fn start(state: &mut State, effects: &mut Vec<Effect>) {
    let title = |plan: &TransformPlan| format!("Start the job {}", plan.spec.job_name);
    if let Some((plan, task, control)) =
        forms::begin_start::<JobDraft>(state, TaskKind::StartJob, title)
    {
        state.settings.job = state.remote.job_form.draft.for_the_next();
        effects.push(Effect::StartJob {
            plan,
            task,
            control,
        });
    }
}

/// The job's page takes the place of the form.
pub(in super::super) fn started(
    state: &mut State,
    task: TaskId,
    result: Result<JobId, TaskOutcome>,
    effects: &mut Vec<Effect>,
) {
    let said = |id: &JobId| format!("Started the job {}", id.name);
    if let Some(id) = forms::started::<JobDraft, _>(state, task, result, said) {
        if state.overlay == Overlay::StartJob {
            state.overlay = Overlay::Jobs;
            state.remote.open = Some(id.clone());
        }
        jobs::watch(state, &id, effects);
    }
}
