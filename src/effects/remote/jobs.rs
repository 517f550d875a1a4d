//! The jobs of an account: their list, and single ones watched, stopped, sent again and cleaned up after.

use std::sync::Arc;

use super::super::Shared;
use super::super::s3::{failed, failure};
use super::{failure_of, records};
use crate::aws::AwsErrorKind;
use crate::domain::{
    JobOutcome, JobProgress, JobQuery, JobRecord, Leftover, S3Access, SageMakerAccess,
    TransformPlan,
};
use crate::remote::transform::{
    self, Checked, JobError, PlannedRetry, Retry, RetryChanges, RetryChoice, StartFolders, Watch,
    WatchEvent, clean_up, find_record, outcome, preflight, read_prices,
};
use crate::state::{Event, JobId, Leftovers, RetryPlan, TaskId, WatchEnd};
use crate::tasks::{TaskControl, now_ms};

pub(in super::super) fn list(
    shared: &Arc<Shared>,
    access: S3Access,
    query: JobQuery,
    task: TaskId,
    control: TaskControl,
) {
    let is_first = query.page_token.is_none();
    let listed = move |result| Event::JobsListed {
        task,
        is_first,
        result,
    };
    shared.spawn_reporting(
        "list jobs",
        move |shared| {
            let sagemaker = shared.aws.sagemaker(&SageMakerAccess::from(&access));
            let page = sagemaker.list_transform_jobs(&query, Some(&control));
            listed(page.map_err(|error| failure(shared, &access, error)))
        },
        move |mistake| listed(Err(failed(mistake))),
    );
}

/// Tells of the job each time it was looked at.
pub(in super::super) fn watch(shared: &Arc<Shared>, id: JobId, task: TaskId, control: TaskControl) {
    let of_mistake = id.clone();
    shared.spawn_reporting(
        "watch a job",
        move |shared| {
            let end = match follow(shared, &id, task, &control) {
                Ok(()) => WatchEnd::JobOver,
                Err(error) if error.aws_kind() == Some(AwsErrorKind::NotFound) => {
                    WatchEnd::NoSuchJob(failure_of(shared, &id, error))
                }
                Err(error) => WatchEnd::Failed(failure_of(shared, &id, error)),
            };
            Event::JobWatchEnded { id, task, end }
        },
        move |mistake| Event::JobWatchEnded {
            id: of_mistake,
            task,
            end: WatchEnd::Failed(failed(mistake)),
        },
    );
}

fn follow(
    shared: &Shared,
    id: &JobId,
    task: TaskId,
    control: &TaskControl,
) -> Result<(), JobError> {
    let record = record_of(shared, id, control)?;
    let prices = read_prices(&shared.dirs.prices())?;
    let mut watch = Watch::of(
        &shared.aws,
        &id.sagemaker,
        &id.s3,
        &id.name,
        record,
        prices,
        None,
    );
    let seen = |progress: &JobProgress| {
        control.set_step(progress.phase.into_str());
        let is_open = shared.report(Event::JobSeen {
            id: id.clone(),
            task,
            progress: Box::new(progress.clone()),
        });
        if !is_open {
            control.cancel();
        }
    };
    let last = watch.follow(control, |event| match event {
        WatchEvent::Progress(progress) => seen(progress),
        WatchEvent::Trouble { why, again_in } => {
            let text = format!("{why}. Retry in {} s", again_in.as_secs());
            shared.report(Event::JobTrouble {
                id: id.clone(),
                task,
                text,
            });
        }
    })?;
    seen(&last);
    Ok(())
}

/// What is kept of the job, where it was started here.
fn record_of(
    shared: &Shared,
    id: &JobId,
    control: &TaskControl,
) -> Result<Option<JobRecord>, JobError> {
    find_record(
        &shared.aws,
        &records(shared),
        &id.sagemaker,
        &id.name,
        control,
    )
}

/// Does something with a job that is told of once.
fn prediction<T: Send + 'static>(
    shared: &Arc<Shared>,
    name: &str,
    (id, task): (JobId, TaskId),
    work: impl FnOnce(&Shared, &JobId) -> Result<T, JobError> + Send + 'static,
    event: impl Fn(JobId, TaskId, Result<T, crate::state::S3Failure>) -> Event + Clone + Send + 'static,
) {
    let (of_mistake, event_of_mistake) = (id.clone(), event.clone());
    shared.spawn_reporting(
        name,
        move |shared| {
            let result = work(shared, &id).map_err(|error| failure_of(shared, &id, error));
            event(id, task, result)
        },
        move |mistake| event_of_mistake(of_mistake, task, Err(failed(mistake))),
    );
}

pub(in super::super) fn stop(shared: &Arc<Shared>, id: JobId, task: TaskId, control: TaskControl) {
    let work = move |shared: &Shared, id: &JobId| {
        let sagemaker = shared.aws.sagemaker(&id.sagemaker);
        Ok(sagemaker.stop_transform_job(&id.name, Some(&control))?)
    };
    prediction(
        shared,
        "stop a job",
        (id, task),
        work,
        |id, task, result| Event::JobStopAsked { id, task, result },
    );
}

pub(in super::super) fn find_outcome(
    shared: &Arc<Shared>,
    id: JobId,
    task: TaskId,
    control: TaskControl,
) {
    let work = move |shared: &Shared, id: &JobId| {
        let sagemaker = shared.aws.sagemaker(&id.sagemaker);
        let job = sagemaker.describe_transform_job(&id.name, Some(&control))?;
        let asked = (&id.sagemaker, &id.s3);
        outcome(&shared.aws, asked, &job, &records(shared), &control)
    };
    prediction(
        shared,
        "find failed images",
        (id, task),
        work,
        |id, task, result| Event::OutcomeFound { id, task, result },
    );
}

/// Plans to send what has no output again, as a job of its own.
pub(in super::super) fn plan_retry(
    shared: &Arc<Shared>,
    id: JobId,
    failed_ones: JobOutcome,
    task: TaskId,
    control: TaskControl,
) {
    let work = move |shared: &Shared, id: &JobId| {
        let sagemaker = shared.aws.sagemaker(&id.sagemaker);
        let job = sagemaker.describe_transform_job(&id.name, Some(&control))?;
        let record = record_of(shared, id, &control)?;
        let again = Retry {
            sagemaker: &id.sagemaker,
            s3: &id.s3,
            job: &job,
            record: record.as_ref(),
            outcome: &failed_ones,
            choice: RetryChoice::Missing,
            changes: RetryChanges::default(),
        };
        let PlannedRetry { plan, notes, doubt } =
            transform::plan_retry(&shared.aws, &again, now_ms(), &control)?;
        let notes = doubt.into_iter().chain(notes).collect();
        let prices = read_prices(&shared.dirs.prices())?;
        let Checked { plan, preflight } = preflight(&shared.aws, plan, &prices, &control)?;
        Ok(Box::new(RetryPlan {
            plan: Arc::new(plan),
            preflight,
            notes,
        }))
    };
    prediction(
        shared,
        "plan a retry",
        (id, task),
        work,
        |id, task, result| Event::RetryPlanned { id, task, result },
    );
}

/// Starts a job over what failed, as it was planned.
pub(in super::super) fn start_retry(
    shared: &Arc<Shared>,
    id: JobId,
    plan: Arc<TransformPlan>,
    task: TaskId,
    control: TaskControl,
) {
    let work = move |shared: &Shared, _: &JobId| {
        let record = start_plan(shared, &plan, &control)?;
        Ok(record.spec.job_name)
    };
    prediction(
        shared,
        "retry failed images",
        (id, task),
        work,
        |id, task, result| Event::RetryStarted { id, task, result },
    );
}

pub(super) fn start_plan(
    shared: &Shared,
    plan: &TransformPlan,
    control: &TaskControl,
) -> Result<JobRecord, JobError> {
    let folders = StartFolders {
        records: &records(shared),
        unfinished: &shared.dirs.uploads(),
    };
    transform::start(&shared.aws, plan, folders, now_ms(), control)
}

pub(in super::super) fn find_leftovers(
    shared: &Arc<Shared>,
    id: JobId,
    task: TaskId,
    control: TaskControl,
) {
    let work = move |shared: &Shared, id: &JobId| {
        let record = record_of(shared, id, &control)?;
        Ok(record.map_or(Leftovers::Untold, |record| Leftovers::Told(record.left)))
    };
    prediction(
        shared,
        "find the leftovers of a job",
        (id, task),
        work,
        |id, task, result| Event::LeftoversFound { id, task, result },
    );
}

pub(in super::super) fn delete_leftovers(
    shared: &Arc<Shared>,
    id: JobId,
    found: Vec<Leftover>,
    task: TaskId,
    control: TaskControl,
) {
    let work = move |shared: &Shared, id: &JobId| {
        let record = record_of(shared, id, &control)?;
        let record = record.filter(|record| record.left == found);
        let record = record.ok_or_else(|| {
            JobError::Plan("The leftovers of the job have changed; list them again".to_owned())
        })?;
        let done = clean_up(&shared.aws, &records(shared), record, &control)?;
        let deleted = match done.deleted.as_slice() {
            [] => "Nothing was deleted".to_owned(),
            deleted => {
                let names: Vec<String> = deleted.iter().map(ToString::to_string).collect();
                format!("Deleted: {}", names.join(", "))
            }
        };
        let kept = done.kept.iter();
        let kept: Vec<String> = kept.map(|(left, why)| format!("{left} ({why})")).collect();
        let said = if kept.is_empty() {
            deleted
        } else {
            format!("{deleted}. Left: {}", kept.join(", "))
        };
        Ok((said, done.kept.into_iter().map(|(left, _)| left).collect()))
    };
    prediction(
        shared,
        "clean up after a job",
        (id, task),
        work,
        |id, task, result| Event::LeftoversDeleted { id, task, result },
    );
}
