//! Jobs: listing, watching, stopping, retrying and cleaning them up, checking the form, and starting a job from it.

pub(crate) mod rehearse;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use strum::VariantArray;

use crate::aws::{AwsError, AwsErrorKind, SageMaker, upload};
use crate::domain::{S3Address, Sample, SampleUri, counted};
use crate::sagemaker::jobs::{
    CleanUp, Followed, JobRecords, PlannedRetry, PolledJob, Retry, RetryChanges, StartFolders, Watch, add_price,
    aws_commands, change_price, clean_up, find_record, manifest_of, outcome, preflight, read_prices, shell_script,
};
use crate::sagemaker::spec::Deleted;
use crate::sagemaker::spec::training::{TrainingProgress, TrainingSpec};
use crate::sagemaker::spec::transform::{
    ImagesInside, JobKind, JobOutcome, JobPage, JobQuery, JobRecord, JobSpec, Leftover, ManifestPlan, PriceTable,
    RetryChoice, SageMakerAccess, TransformJob, TransformPlan, TransformSpec,
};
use crate::sagemaker::{self, JobError, Poll, training};
use crate::tasks::{TaskControl, now_ms};
use crate::window::effects::{Effects, Shared};
use crate::window::remote;
use crate::window::remote::effects::{model_source, report_seen, report_trouble, run_once};
use crate::window::state::{
    FormCheck, ImagesFrom, JobId, JobImages, JobRequest, JobsEffect, JobsEvent, KnownJob, Leftovers, RemoteEffect,
    RemoteJobsEffect, RetryPlan, SeenJob, Ticket,
};

pub(crate) fn carry_out(effects: &mut Effects, effect: JobsEffect) {
    let shared = &effects.shared;
    match effect {
        JobsEffect::Check { request, ticket } => {
            let checked = (request.access.clone(), *request, ticket);
            remote::effects::check(shared, "check a job", checked, check_request, JobsEvent::Checked);
        }
        JobsEffect::Rehearse { request, ticket } => rehearse::start(shared, *request, ticket),
        JobsEffect::ReadPrices => work_on_prices(shared, "read prices", read_prices),
        JobsEffect::KeepPrice(price) => work_on_prices(shared, "save a price", move |path| add_price(path, &price)),
        JobsEffect::ChangePrice(change) => {
            work_on_prices(shared, "change a price", move |path| change_price(path, &change));
        }
        JobsEffect::Start { plan, ticket } => start(shared, plan, ticket),
        JobsEffect::Stop(id, ticket) => run_once(shared, "stop a job", (id, ticket), stop, JobsEvent::StopRequested),
        JobsEffect::FindOutcome(id, ticket) => {
            run_once(shared, "find failed images", (id, ticket), find_outcome, JobsEvent::OutcomeFound);
        }
        JobsEffect::PlanRetry { id, choice, ticket } => {
            run_once(
                shared,
                "plan a retry",
                (id, ticket),
                move |shared, id, control| plan_retry(shared, id, choice, control),
                JobsEvent::RetryPlanned,
            );
        }
        JobsEffect::StartRetry { id, plan, ticket } => {
            run_once(
                shared,
                "retry failed images",
                (id, ticket),
                move |shared, _, control| Ok(start_plan(shared, &plan, control)?.spec.job_name),
                JobsEvent::RetryStarted,
            );
        }
        JobsEffect::FindLeftovers(id, ticket) => {
            run_once(shared, "find the leftovers of a job", (id, ticket), find_leftovers, JobsEvent::LeftoversFound);
        }
        JobsEffect::DeleteLeftovers { id, found, ticket } => {
            run_once(
                shared,
                "clean up after a job",
                (id, ticket),
                move |shared, id, control| delete_leftovers(shared, id, &found, control),
                JobsEvent::LeftoversDeleted,
            );
        }
    }
}

pub(crate) fn list_or_watch(shared: &Arc<Shared>, effect: RemoteJobsEffect) {
    match effect {
        RemoteEffect::List { access, query, ticket } => {
            remote::effects::list::<KnownJob>(shared, "list jobs", (&access, query, ticket), list_page);
        }
        RemoteEffect::Watch(id, ticket) => {
            remote::effects::watch::<KnownJob>(shared, "watch a job", (id, ticket), follow);
        }
    }
}

/// A page of all kinds of jobs, newest first, and why one kind could not be listed. Its token has a line per kind, which
/// is empty after the last page.
fn list_page(
    sagemaker: &SageMaker,
    query: &JobQuery,
    control: &TaskControl,
) -> Result<(JobPage, Option<String>), AwsError> {
    let mut tokens = query.page_token.as_deref().map(str::lines);
    let (mut items, mut next, mut denied) = (Vec::new(), Vec::new(), Vec::new());
    for kind in JobKind::VARIANTS {
        let page_token = tokens.as_mut().map(|lines| lines.next().unwrap_or_default().to_owned());
        let mut after = String::new();
        if page_token.as_deref() != Some("") {
            match sagemaker.list_jobs(*kind, &JobQuery { page_token, ..query.clone() }, control) {
                Err(error) if error.kind == AwsErrorKind::AccessDenied => denied.push(error),
                Err(error) => return Err(error),
                Ok(page) => {
                    items.extend(page.items);
                    after = page.next.unwrap_or_default();
                }
            }
        }
        next.push(after);
    }
    if denied.len() == JobKind::VARIANTS.len() {
        return Err(denied.remove(0));
    }
    items.sort_by_key(|job| Reverse(job.created_ms));
    let is_more = next.iter().any(|token| !token.is_empty());
    let next = is_more.then(|| next.join("\n"));
    Ok((JobPage { items, next }, denied.pop().map(|error| error.to_string())))
}

fn follow(shared: &Shared, id: &JobId, ticket: &Ticket) -> Result<(), JobError> {
    let control = &ticket.control;
    match id.kind {
        JobKind::Transform => {
            let (record, polled) = polled::<TransformSpec>(shared, id, control)?;
            let mut watch = Watch::new(polled, record.clone());
            let last = follow_until_end(shared, (id, ticket), || watch.poll(control), SeenJob::Transform)?;
            if let Some(Err(error)) = record.map(|record| records(shared).note_speed(&record, &last)) {
                log::warn!("{error}");
            }
        }
        JobKind::Training => {
            let (_, mut polled) = polled::<TrainingSpec>(shared, id, control)?;
            let seen = |progress: TrainingProgress| {
                let archive = progress.training.archive();
                SeenJob::Training(progress, archive.map_or_else(Vec::new, |archive| users_of(shared, &archive)))
            };
            follow_until_end(shared, (id, ticket), || training::poll(&mut polled, control), seen)?;
        }
    }
    Ok(())
}

/// The record of the job, if it was started here, and how to poll it.
fn polled<S: JobSpec>(
    shared: &Shared,
    id: &JobId,
    control: &TaskControl,
) -> Result<(Option<JobRecord<S>>, PolledJob), JobError> {
    let record = record_of(shared, id, control)?;
    let prices = read_prices(&shared.dirs.prices())?;
    let polled = PolledJob::new(&shared.aws, (&id.sagemaker, &id.s3), &id.name, record.as_ref(), (None, prices));
    Ok((record, polled))
}

/// Reports each state of a job, as `seen`, until it ends.
fn follow_until_end<P: Followed + Clone>(
    shared: &Shared,
    (id, ticket): (&JobId, &Ticket),
    poll: impl FnMut() -> Result<P, JobError>,
    seen: impl Fn(P) -> SeenJob,
) -> Result<P, JobError> {
    let control = &ticket.control;
    let report = |progress: &P| {
        control.set_step(progress.glance().phase);
        report_seen::<KnownJob>(shared, id, ticket, seen(progress.clone()));
    };
    let last = sagemaker::jobs::follow(poll, control, |event| match event {
        Poll::Seen(progress) => report(progress),
        Poll::Trouble { why, again_in } => report_trouble::<KnownJob>(shared, id, ticket, why, again_in),
    })?;
    report(&last);
    Ok(last)
}

/// The jobs started here that use this archive, newest first.
fn users_of(shared: &Shared, archive: &S3Address) -> Vec<JobId> {
    let (records, _) = records(shared).all();
    let users = records
        .into_iter()
        .filter(|record| record.is_started && record.model.as_ref().is_some_and(|model| model.archive == *archive));
    let users = users.map(|record| JobId {
        sagemaker: record.sagemaker,
        s3: record.s3,
        name: record.spec.job_name,
        kind: JobKind::Transform,
    });
    users.collect()
}

fn records(shared: &Shared) -> JobRecords {
    JobRecords::of_dirs(&shared.dirs)
}

/// The record of the job, if it was started here.
fn record_of<S: JobSpec>(shared: &Shared, id: &JobId, control: &TaskControl) -> Result<Option<JobRecord<S>>, JobError> {
    find_record(&shared.aws, &JobRecords::of_dirs(&shared.dirs), &id.sagemaker, &id.name, control)
}

fn stop(shared: &Shared, id: &JobId, control: &TaskControl) -> Result<(), JobError> {
    Ok(shared.aws.sagemaker(&id.sagemaker).stop_job(id.kind, &id.name, control)?)
}

fn find_outcome(shared: &Shared, id: &JobId, control: &TaskControl) -> Result<JobOutcome, JobError> {
    Ok(outcome_of(shared, id, control)?.1)
}

fn outcome_of(shared: &Shared, id: &JobId, control: &TaskControl) -> Result<(TransformJob, JobOutcome), JobError> {
    let job = shared.aws.sagemaker(&id.sagemaker).describe_job::<TransformSpec>(&id.name, control)?;
    let outcome = outcome(&shared.aws, (&id.sagemaker, &id.s3), &job, &records(shared), control)?;
    Ok((job, outcome))
}

/// Plans a separate job for the images that have no output now: some may have been replaced since they failed.
fn plan_retry(
    shared: &Shared,
    id: &JobId,
    choice: RetryChoice,
    control: &TaskControl,
) -> Result<Box<RetryPlan>, JobError> {
    let (job, outcome) = outcome_of(shared, id, control)?;
    let record: Option<JobRecord> = record_of(shared, id, control)?;
    let again = Retry {
        sagemaker: &id.sagemaker,
        s3: &id.s3,
        job: &job,
        record: record.as_ref(),
        outcome: &outcome,
        choice,
        changes: RetryChanges::default(),
        model_environment: BTreeMap::new(),
    };
    let PlannedRetry { mut plan, notes, doubt } = sagemaker::jobs::plan_retry(&shared.aws, &again, now_ms(), control)?;
    let notes = doubt.into_iter().chain(notes).collect();
    let prices = read_prices(&shared.dirs.prices())?;
    let preflight = preflight(&shared.aws, &mut plan, (&prices, &records(shared)), control)?;
    Ok(Box::new(RetryPlan { plan: Arc::new(plan), preflight, notes }))
}

fn start_plan(shared: &Shared, plan: &TransformPlan, control: &TaskControl) -> Result<JobRecord, JobError> {
    let folders = StartFolders { records: &records(shared), unfinished: &shared.dirs.uploads() };
    sagemaker::jobs::start(&shared.aws, plan, folders, now_ms(), control)
}

fn find_leftovers(shared: &Shared, id: &JobId, control: &TaskControl) -> Result<Leftovers, JobError> {
    let left = match id.kind {
        JobKind::Transform => record_of::<TransformSpec>(shared, id, control)?.map(|record| record.left),
        JobKind::Training => record_of::<TrainingSpec>(shared, id, control)?.map(|record| record.left),
    };
    Ok(left.map_or(Leftovers::Unrecorded, Leftovers::Recorded))
}

fn delete_leftovers(
    shared: &Shared,
    id: &JobId,
    found: &[Leftover],
    control: &TaskControl,
) -> Result<Deleted, JobError> {
    match id.kind {
        JobKind::Transform => delete_found(shared, id, found, control, clean_up),
        JobKind::Training => delete_found(shared, id, found, control, training::clean_up),
    }
}

fn delete_found<S: JobSpec>(
    shared: &Shared,
    id: &JobId,
    found: &[Leftover],
    control: &TaskControl,
    clean_up: CleanUp<S>,
) -> Result<Deleted, JobError> {
    let record = record_of(shared, id, control)?;
    let record = record.filter(|record| record.left == found);
    let record =
        record.ok_or_else(|| JobError::Plan("The job's leftovers have changed; list them again".to_owned()))?;
    clean_up(&shared.aws, &JobRecords::of_dirs(&shared.dirs), record, control)
}

fn work_on_prices(
    shared: &Arc<Shared>,
    name: &str,
    work: impl FnOnce(&Path) -> Result<PriceTable, JobError> + Send + 'static,
) {
    let path = shared.dirs.prices().display().to_string();
    shared.run(
        name,
        move |shared| work(&shared.dirs.prices()).map_err(|error| error.to_string()),
        move |result| JobsEvent::PricesRead { path, result },
    );
}

fn check_request(
    shared: &Shared,
    request: JobRequest,
    control: &TaskControl,
) -> Result<FormCheck<TransformPlan>, JobError> {
    let mut plan = plan_of(shared, request, control)?;
    let prices = read_prices(&shared.dirs.prices())?;
    let preflight = preflight(&shared.aws, &mut plan, (&prices, &records(shared)), control)?;
    let script = shell_script(&aws_commands(&plan));
    Ok(FormCheck { preflight, commands: script.split('\n').map(str::to_owned).collect(), plan: Arc::new(plan) })
}

fn start(shared: &Arc<Shared>, plan: Arc<TransformPlan>, ticket: Ticket) {
    let id = JobId {
        sagemaker: plan.sagemaker.clone(),
        s3: plan.s3.clone(),
        name: plan.spec.job_name.clone(),
        kind: JobKind::Transform,
    };
    run_once(
        shared,
        "start a job",
        (id, ticket),
        move |shared, _, control| start_plan(shared, &plan, control),
        |id, task, result| JobsEvent::Started(task, result.map(|_| id)),
    );
}

/// The plan, with a packed model.
fn plan_of(shared: &Shared, request: JobRequest, control: &TaskControl) -> Result<TransformPlan, JobError> {
    let sagemaker = SageMakerAccess::from(&request.access);
    let spec = request.spec;
    let model = model_source(
        shared,
        request.model,
        (&spec.model_name, &spec.tags),
        (&sagemaker, &request.access),
        Some(request.archive),
        &spec.resources.instance_type,
        control,
    )?;
    let inside = inside_of(&request.images);
    let all: Vec<&SampleUri> = request.images.samples().map(|sample| &sample.uri).collect();
    let mut files_root = None;
    let (manifest, input_files) = match request.images.from {
        ImagesFrom::Prefix | ImagesFrom::Manifest(_) => (None, Vec::new()),
        ImagesFrom::Objects { ref folder } => (Some(manifest_of(all, folder)?), Vec::new()),
        ImagesFrom::Local { ref root, is_whole, ref target } => {
            control.set_step("checking the images");
            let found = upload::files_of(root, all, control)?;
            if let Some(problem) = found.problems.first() {
                return Err(JobError::Plan(format!(
                    "{} cannot be sent. The first: {problem}",
                    counted(found.problems.len(), "image", "images")
                )));
            }
            let names = found.files.iter().map(|file| file.name.clone()).collect();
            let manifest = ManifestPlan { folder: target.clone(), names };
            files_root = is_whole.then(|| PathBuf::from(root));
            (Some(manifest), found.files)
        }
    };
    Ok(TransformPlan {
        sagemaker,
        s3: request.access,
        spec,
        model,
        input_folder: None,
        input_files,
        files_root,
        manifest,
        usd_per_hour: request.usd_per_hour,
        images_per_s: request.images_per_s,
        inside,
        retry_of: None,
    })
}

/// The images inside the files to send, if all of those files are listed.
fn inside_of(images: &JobImages) -> Option<ImagesInside> {
    let of_file = |sample: &Sample| sample.uri.record().map(|_| sample.uri.file().to_owned());
    let files: HashSet<String> = images.samples().filter_map(of_file).collect();
    let is_remote = matches!(images.from, ImagesFrom::Manifest(_));
    if files.is_empty() || images.is_partial || is_remote {
        return None;
    }
    let is_sent = |sample: &&Sample| files.contains(sample.uri.file());
    Some(ImagesInside { all: images.listing().filter(is_sent).count() as u64, chosen: images.len() as u64 })
}
