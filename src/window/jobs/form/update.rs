//! The form for starting a Batch Transform job.

use crate::sagemaker::spec::transform::TransformPlan;
use crate::tasks::ProgressUnit;
use crate::window::state::{
    ExportScope, Failure, JobDraft, JobId, JobRequest, JobsEffect, Loadable, Overlay, RehearsalOptions,
    RehearsalReport, RehearsalRequest, State, TaskId, TaskKind, TaskOutcome,
};
use crate::window::tasks::update::{begin, cancel, settle};
use crate::window::{jobs, remote};

pub(crate) fn open_form(state: &mut State) {
    let mut draft = state.settings.job.clone();
    if state.selection.selected().len() > 1 {
        draft.scope = ExportScope::Selection;
    } else if state.arranging.is_filtered() {
        draft.scope = ExportScope::Filter;
    }
    forget_rehearsal(state);
    state.effects.push(JobsEffect::ReadPrices);
    remote::update::open(state, draft, Overlay::StartJob);
}

fn forget_rehearsal(state: &mut State) {
    let forgotten = std::mem::take(&mut state.remote.rehearsal);
    cancel(state, forgotten.task());
}

/// Checks the form with this draft, and cancels the previous check.
pub(crate) fn check(state: &mut State, draft: JobDraft) {
    remote::update::forget_check::<JobDraft>(state);
    forget_rehearsal(state);
    let request = draft.request(state);
    let title = |request: &JobRequest| format!("Check the job {}", request.spec.job_name);
    let begun = remote::update::begin_check(state, draft, request, TaskKind::CheckJob, title);
    if let Some((request, ticket)) = begun {
        state.effects.push(JobsEffect::Check { request: Box::new(request), ticket });
    }
}

/// Tests the archive on this computer with some of the images, the way Batch Transform would run it.
pub(crate) fn rehearse(state: &mut State, options: RehearsalOptions) {
    if state.remote.rehearsal.is_loading() {
        return;
    }
    let (Some(source), Ok(mut job)) = (state.source_id(), state.remote.job_form.draft.request(state)) else {
        return;
    };
    // The test uses the job's settings, including those set by the check.
    if let Some(check) = state.remote.job_form.check.ready() {
        job.spec.clone_from(&check.plan.spec);
    }
    state.settings.rehearsal.clone_from(&options);
    let title = format!("Rehearse {} on this computer", job.model.model.name());
    let ticket = begin(state, TaskKind::Rehearse, ProgressUnit::Images, title);
    state.remote.rehearsal = Loadable::Loading(ticket.id);
    let request = RehearsalRequest { source, job, options, runtime_library: state.settings.runtime_library.clone() };
    state.effects.push(JobsEffect::Rehearse { request: Box::new(request), ticket });
}

pub(crate) fn rehearsed(state: &mut State, task: TaskId, result: Result<Box<RehearsalReport>, Failure>) {
    if let Ok(report) = &result {
        let summary = report.summary.clone();
        drop(state.tasks.end(task, TaskOutcome::Done(summary)));
    }
    let result = result.map(|report| *report);
    settle(state, task, result, |state| Some(&mut state.remote.rehearsal));
}

/// Packs and uploads what was checked, and starts it.
pub(crate) fn start(state: &mut State) {
    let title = |plan: &TransformPlan| format!("Start the job {}", plan.spec.job_name);
    if let Some((plan, ticket)) = remote::update::begin_start::<JobDraft>(state, TaskKind::StartJob, title) {
        state.settings.job = state.remote.job_form.draft.for_the_next();
        state.effects.push(JobsEffect::Start { plan, ticket });
    }
}

/// Replaces the form with the job's page.
pub(crate) fn started(state: &mut State, task: TaskId, result: Result<JobId, Failure>) {
    let said = |id: &JobId| format!("Started the job {}", id.name);
    if let Some(id) = remote::update::started::<JobDraft, _>(state, task, result, said) {
        if state.overlay == Overlay::StartJob {
            state.overlay = Overlay::Jobs;
            state.remote.jobs.open = Some(id.clone());
        }
        jobs::update::watch(state, &id);
    }
}
