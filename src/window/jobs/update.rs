//! The list of jobs, the pages of single ones, and the form that starts one.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::sagemaker::spec::Deleted;
use crate::sagemaker::spec::transform::{
    JobKind, JobOutcome, JobRetry, PriceTable, RetryChoice, SageMakerAccess, TransformPlan, TransformStatus,
};
use crate::tasks::ProgressUnit;
use crate::window::endpoints;
use crate::window::remote;
use crate::window::remote::update::{ResourceUpdate, begin_for};
use crate::window::s3;
use crate::window::state::{
    ExportScope, Failure, JobDraft, JobId, JobRequest, JobsCommand, JobsEffect, JobsEvent, KnownJob, Leftovers,
    Loadable, ModelDraft, ModelFrom, ModelUse, Overlay, RehearsalOptions, RehearsalReport, RehearsalRequest, SeenJob,
    State, TaskId, TaskKind, TaskOutcome, WatchEnd,
};
use crate::window::tasks::update::{begin, cancel, end, settle};

pub(crate) fn on_command(state: &mut State, command: JobsCommand) {
    match command {
        JobsCommand::Check(draft) => check_form(state, *draft),
        JobsCommand::Rehearse(request) => rehearse(state, request),
        JobsCommand::Start => start(state),
        JobsCommand::KeepPrice(price) => state.effects.push(JobsEffect::KeepPrice(price)),
        JobsCommand::ChangePrice(change) => state.effects.push(JobsEffect::ChangePrice(change)),
        JobsCommand::Stop(id) => stop(state, &id),
        JobsCommand::FindOutcome(id) => find_outcome(state, &id),
        JobsCommand::PlanRetry(id, choice) => plan_retry(state, &id, choice),
        JobsCommand::StartRetry(id) => start_retry(state, &id),
        JobsCommand::DropRetry(id) => drop_retry(state, &id),
        JobsCommand::FindLeftovers(id) => find_leftovers(state, &id),
        JobsCommand::DeleteLeftovers(id) => delete_leftovers(state, &id),
        JobsCommand::UseModel(id, model_use) => use_model(state, &id, model_use),
    }
}

pub(crate) fn on_event(state: &mut State, event: JobsEvent) {
    match event {
        JobsEvent::PricesRead { path, result } => prices_read(state, path, result),
        JobsEvent::Checked(task, result) => remote::update::checked::<JobDraft>(state, task, result),
        JobsEvent::Rehearsed(task, result) => rehearsed(state, task, result),
        JobsEvent::Started(task, result) => started(state, task, result),
        JobsEvent::StopRequested(id, task, result) => {
            if ended(state, &id, task, result, |job| &mut job.stopping).is_some() {
                watch(state, &id);
            }
        }
        JobsEvent::OutcomeFound(id, task, result) => {
            settle(state, task, result, |state| Some(&mut state.remote.jobs.get_mut(&id)?.outcome));
        }
        JobsEvent::RetryPlanned(id, task, result) => {
            let result = result.map(|plan| *plan);
            settle(state, task, result, |state| Some(&mut state.remote.jobs.get_mut(&id)?.retry));
        }
        JobsEvent::RetryStarted(id, task, result) => {
            retry_started(state, &id, task, result);
        }
        JobsEvent::LeftoversFound(id, task, result) => {
            settle(state, task, result, |state| Some(&mut state.remote.jobs.get_mut(&id)?.left));
        }
        JobsEvent::LeftoversDeleted(id, task, result) => {
            leftovers_deleted(state, &id, task, result);
        }
    }
}

impl ResourceUpdate for KnownJob {
    fn open(state: &mut State, id: &JobId) {
        state.overlay = Overlay::Jobs;
        state.remote.jobs.open = Some(id.clone());
        let job = state.remote.jobs.get_or_insert(id);
        match (job.is_over(), id.kind) {
            (false, _) => watch(state, id),
            // Other jobs may use its model meanwhile.
            (true, JobKind::Training) => drop(remote::update::watch::<Self>(state, id)),
            (true, JobKind::Transform) => {}
        }
        // A retry may have changed the outcome meanwhile.
        let known = job_outcome(state, id);
        if known.is_some_and(|outcome| outcome.retry_under_way().is_some()) {
            find_outcome(state, id);
        }
    }

    fn begin_watching(state: &mut State, id: &JobId) {
        watch(state, id);
    }

    fn end_watching(state: &mut State, id: &JobId) {
        stop_watching(state, id);
    }

    fn listed(state: &mut State, is_first: bool, unlisted: Option<String>) {
        state.remote.jobs.list.rows.sort_by_key(|job| Reverse(job.created_ms));
        if let Some(why) = unlisted.filter(|_| is_first) {
            state.report_problem(why);
        }
    }

    fn seen(state: &mut State, id: &JobId, seen: SeenJob) {
        let job = state.remote.jobs.get_or_insert(id);
        match seen {
            SeenJob::Transform(progress) => job.progress = Some(progress),
            SeenJob::Training(progress, used_by) => (job.training, job.used_by) = (Some(progress), used_by),
        }
        let Some(status) = job.status() else {
            return;
        };
        let list = &mut state.remote.jobs.list;
        let is_listed =
            list.requested.as_ref().is_some_and(|(access, _)| SageMakerAccess::from(access) == id.sagemaker);
        for job in list.rows.iter_mut().filter(|job| is_listed && (job.kind, &job.name) == (id.kind, &id.name)) {
            job.status = status;
        }
    }

    fn watch_ended(state: &mut State, id: &JobId, end: &WatchEnd) {
        match end {
            WatchEnd::Over => {
                let was_watched = state.settings.watched_jobs.contains(id);
                forget_watching(state, id);
                if was_watched {
                    job_ended(state, id);
                }
            }
            WatchEnd::Absent(_) | WatchEnd::Failed(Failure::Cancelled) => forget_watching(state, id),
            // The job itself continues and is watched again at the next start.
            WatchEnd::Failed(Failure::Failed { .. }) => {}
        }
    }
}

fn job_outcome<'s>(state: &'s State, id: &JobId) -> Option<&'s JobOutcome> {
    state.remote.jobs.get(id)?.outcome.ready()
}

/// Resumes watching the jobs that were watched when Spotcheck ended.
pub(crate) fn watch_again(state: &mut State) {
    for id in state.settings.watched_jobs.clone() {
        watch(state, &id);
    }
}

/// Polls a job until it ends.
pub(crate) fn watch(state: &mut State, id: &JobId) {
    if remote::update::watch::<KnownJob>(state, id) && !state.settings.watched_jobs.contains(id) {
        state.settings.watched_jobs.push(id.clone());
    }
}

/// Restarts polling a job, because the basis of its counts has changed.
fn watch_anew(state: &mut State, id: &JobId) {
    stop_watching(state, id);
    state.remote.jobs.get_or_insert(id).watch.task = None;
    watch(state, id);
}

/// Stops watching, now and after the next start.
fn stop_watching(state: &mut State, id: &JobId) {
    forget_watching(state, id);
    remote::update::stop_watching::<KnownJob>(state, id);
}

fn forget_watching(state: &mut State, id: &JobId) {
    state.settings.watched_jobs.retain(|watched| watched != id);
}

/// Reports the end of a watched job, as a problem if outputs are missing, and lists its leftovers.
fn job_ended(state: &mut State, id: &JobId) {
    if let Some(progress) = state.remote.jobs.get(id).and_then(|job| job.training.as_ref()) {
        match progress.training.problem() {
            Some(problem) => state.report_problem(format!("Training job {} has no complete model: {problem}", id.name)),
            None => state.show_notice(format!("Training job {} completed", id.name)),
        }
        return find_leftovers(state, id);
    }
    let Some(progress) = state.remote.jobs.get(id).and_then(|job| job.progress.as_ref()) else {
        return;
    };
    let has_failed = progress.job.status == TransformStatus::Failed;
    let (name, status) = (&id.name, progress.job.status.into_str());
    let outputs = progress.outputs.unwrap_or_default();
    match progress.missing() {
        Some(missing) if missing > 0 => {
            let text = format!("Job {name} {status}. Outputs: {outputs} found, {missing} missing");
            state.report_problem(text);
            find_outcome(state, id);
        }
        _ => {
            state.show_notice(format!("Job {name} {status}. Outputs: {outputs}"));
            // Failed objects may have been uploaded again since, and would look as if they were newer.
            if has_failed {
                find_outcome(state, id);
            }
        }
    }
    find_leftovers(state, id);
}

fn stop(state: &mut State, id: &JobId) {
    begin_for(
        state,
        id,
        format!("Stop the job {}", id.name),
        |job: &mut KnownJob, task| job.stopping = Some(task),
        JobsEffect::Stop,
    );
}

/// Ends a task whose id `note` is stored with the job, and stores its failure there.
fn ended<T>(
    state: &mut State,
    id: &JobId,
    task: TaskId,
    result: Result<T, Failure>,
    note: impl FnOnce(&mut KnownJob) -> &mut Option<TaskId>,
) -> Option<T> {
    end(state, task, result.as_ref().err());
    let job = state.remote.jobs.get_mut(id)?;
    *note(job) = None;
    result.map_err(|failure| job.watch.failure = Some(failure)).ok()
}

/// Lists the objects without an output, and the reasons.
fn find_outcome(state: &mut State, id: &JobId) {
    begin_for(
        state,
        id,
        format!("Find failed images of the job {}", id.name),
        |job: &mut KnownJob, task| job.outcome = Loadable::Loading(task),
        JobsEffect::FindOutcome,
    );
}

/// Plans a separate job for only the failed objects.
fn plan_retry(state: &mut State, id: &JobId, choice: RetryChoice) {
    if job_outcome(state, id).is_none_or(|found| found.failed.is_empty()) {
        return;
    }
    begin_for(
        state,
        id,
        format!("Plan a retry of the job {}", id.name),
        |job: &mut KnownJob, task| job.retry = Loadable::Loading(task),
        |id, ticket| JobsEffect::PlanRetry { id, choice, ticket },
    );
}

fn drop_retry(state: &mut State, id: &JobId) {
    if let Some(job) = state.remote.jobs.get_mut(id) {
        let dropped = std::mem::take(&mut job.retry);
        cancel(state, dropped.task());
    }
}

/// Starts the plan, unless the check predicts a failure.
fn start_retry(state: &mut State, id: &JobId) {
    let Some(job) = state.remote.jobs.get(id) else {
        return;
    };
    let planned = job.retry.ready().filter(|planned| planned.is_startable());
    let (Some(planned), None) = (planned, job.retrying) else {
        return;
    };
    let plan = Arc::clone(&planned.plan);
    begin_for(
        state,
        id,
        format!("Retry failed images of the job {}", id.name),
        |job: &mut KnownJob, task| job.retrying = Some(task),
        |id, ticket| JobsEffect::StartRetry { id, plan, ticket },
    );
}

fn retry_started(state: &mut State, id: &JobId, task: TaskId, result: Result<String, Failure>) {
    let Some(name) = ended(state, id, task, result, |job| &mut job.retrying) else {
        return;
    };
    let job = state.remote.jobs.get_or_insert(id);
    let planned = std::mem::take(&mut job.retry);
    let images = planned.ready().and_then(|planned| Some(planned.plan.manifest.as_ref()?.names.len()));
    if let Loadable::Ready(outcome) = &mut job.outcome {
        let under_way = images.unwrap_or_default() as u64;
        outcome.retries.push(JobRetry { job_name: name.clone(), predicted: 0, under_way });
    }
    state.show_notice(format!("Started the job {name}"));
    let next = JobId { name, ..id.clone() };
    if state.remote.jobs.open.as_ref() == Some(id) {
        state.remote.jobs.open = Some(next.clone());
    }
    watch(state, &next);
}

fn find_leftovers(state: &mut State, id: &JobId) {
    begin_for(
        state,
        id,
        format!("Find the leftovers of the job {}", id.name),
        |job: &mut KnownJob, task| {
            job.left = Loadable::Loading(task);
            job.cleaned = None;
        },
        JobsEffect::FindLeftovers,
    );
}

fn delete_leftovers(state: &mut State, id: &JobId) {
    let left = state.remote.jobs.get(id).and_then(|job| job.left.ready());
    let found = match left {
        Some(Leftovers::Recorded(found)) if !found.is_empty() => found.clone(),
        _ => return,
    };
    begin_for(
        state,
        id,
        format!("Clean up after the job {}", id.name),
        |job: &mut KnownJob, task| job.cleaning = Some(task),
        |id, ticket| JobsEffect::DeleteLeftovers { id, found, ticket },
    );
}

fn leftovers_deleted(state: &mut State, id: &JobId, task: TaskId, result: Result<Deleted, Failure>) {
    if let Ok(done) = &result {
        drop(state.tasks.end(task, TaskOutcome::Done(done.to_string())));
    }
    let Some(done) = ended(state, id, task, result, |job| &mut job.cleaning) else {
        return;
    };
    let job = state.remote.jobs.get_or_insert(id);
    job.cleaned = Some(done.to_string());
    job.left = Loadable::Ready(Leftovers::Recorded(done.kept.into_iter().map(|(left, _)| left).collect()));
    // A retry may need what was deleted.
    job.retry = Loadable::NotLoaded;
    if job.outcome.ready().is_some_and(|outcome| !outcome.failed.is_empty()) {
        find_outcome(state, id);
    }
}

/// Opens a form with the model of a training job: its archive, unchanged, and its role.
fn use_model(state: &mut State, id: &JobId, model_use: ModelUse) {
    let training = state.remote.jobs.get(id).and_then(|job| Some(&job.training.as_ref()?.training));
    let Some((archive, role)) = training.and_then(|training| Some((training.archive()?, training.spec.role.clone())))
    else {
        return;
    };
    let model = match model_use {
        ModelUse::Job => {
            open_form(state);
            &mut state.remote.job_form.draft.model
        }
        ModelUse::Endpoint => {
            endpoints::update::open_form(state);
            &mut state.remote.endpoint_form.draft.model
        }
    };
    *model = ModelDraft { from: ModelFrom::Archive, archive: archive.to_string(), role, image: None, ..model.clone() };
    s3::update::set_access(state, id.s3.clone());
}

fn prices_read(state: &mut State, path: String, result: Result<PriceTable, String>) {
    let prices = &mut state.remote.prices;
    prices.path = path;
    let table = match result {
        Ok(table) => table,
        Err(why) => {
            prices.problem = Some(why);
            return;
        }
    };
    prices.problem = None;
    if prices.table == table {
        return;
    }
    prices.table = table;
    match state.overlay {
        Overlay::StartJob if !matches!(state.remote.job_form.check, Loadable::NotLoaded) => {
            let draft = state.remote.job_form.draft.clone();
            check_form(state, draft);
        }
        Overlay::Jobs => {
            if let Some(id) = state.remote.jobs.open.clone() {
                watch_anew(state, &id);
            }
        }
        _ => {}
    }
}

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
pub(crate) fn check_form(state: &mut State, draft: JobDraft) {
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
        watch(state, &id);
    }
}
