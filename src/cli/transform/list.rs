//! `spotcheck transform list`: the jobs of the account and region; jobs as JSON.

use std::io::Write;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::aws::Aws;
use crate::cli::Outcome;
use crate::cli::terminal::{interruptible, local_time, stdout, with_progress};
use crate::cli::values::{Account, AccountArgs, variant};
use crate::sagemaker::spec::transform::{JobKind, JobOutcome, JobProgress, JobQuery, JobSummary, TransformStatus};
use crate::tasks::ProgressUnit;

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// List only jobs with this status
    #[arg(long, value_parser = variant::<TransformStatus>())]
    status: Option<TransformStatus>,
    /// List only jobs whose name contains this text
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// Maximum number of jobs, newest first
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Output format; json is a list with one object per job
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    output: Format,
    #[command(flatten)]
    account: AccountArgs,
}

pub(crate) fn run(args: &ListArgs, kind: JobKind) -> anyhow::Result<Outcome> {
    let control = interruptible(ProgressUnit::Steps)?;
    let access = args.account.sagemaker();
    let sagemaker = Aws::new().sagemaker(&access);
    let limit = args.limit as usize;
    let mut jobs: Vec<JobSummary> = Vec::new();
    let mut query = JobQuery { name_contains: args.name.clone(), status: args.status, page_token: None };
    let is_more = with_progress("Listing", &control, || -> anyhow::Result<bool> {
        loop {
            let page = sagemaker.list_jobs(kind, &query, &control)?;
            jobs.extend(page.items);
            match page.next {
                Some(next) if jobs.len() < limit => query.page_token = Some(next),
                next => return Ok(next.is_some() || jobs.len() > limit),
            }
        }
    })?;
    let mut out = stdout();
    jobs.truncate(limit);
    if args.output == Format::Json {
        writeln!(out, "{:#}", list_json(&jobs))?;
        return Ok(Outcome::AllWell);
    }
    for job in &jobs {
        let failure = job.failure.as_deref().unwrap_or_default();
        writeln!(
            out,
            "{:12} {} {}{}{failure}",
            job.status.into_str(),
            local_time(job.created_ms),
            job.name,
            if failure.is_empty() { "" } else { ": " }
        )?;
    }
    if jobs.is_empty() {
        eprintln!("no matching jobs in {}", sagemaker.region(&control)?);
    } else if is_more {
        eprintln!("there are more jobs; raise --limit to list them");
    }
    Ok(Outcome::AllWell)
}

/// The output format of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    #[default]
    Text,
    Json,
}

/// The status of a job. `outcome`: the results of its images, if requested.
pub(crate) fn status_json(progress: &JobProgress, outcome: Option<&JobOutcome>) -> Value {
    let job = &progress.job;
    let spec = &job.spec;
    let mut status = json!({
        "job": spec.job_name,
        "arn": job.arn,
        "status": job.status.into_str(),
        "phase": progress.phase.into_str(),
        "failure": job.failure,
        "model": spec.model_name,
        "input": spec.input.data_source.objects.address().to_string(),
        "output": spec.output.folder.to_string(),
        "inputs": progress.inputs,
        "outputs": progress.outputs,
        "outputs_per_s": progress.outputs_per_s,
        "seconds_left": progress.seconds_left(progress.seen_at_ms),
        "counted": progress.counted_at_ms.map(time_json),
        "created": time_json(job.created_ms),
        "started": job.started_ms.map(time_json),
        "ended": job.ended_ms.map(time_json),
        "instance_type": spec.resources.instance_type,
        "instance_count": spec.resources.instance_count,
        "billed_s": progress.billed_s,
        "cost_usd": progress.cost_usd,
        "log": progress.log_tail.iter().map(|line| &line.message).collect::<Vec<_>>(),
        "notes": progress.notes.iter().chain(&progress.uncounted).collect::<Vec<_>>(),
    });
    if let Some(outcome) = outcome {
        status["without_output"] = outcome
            .failed
            .iter()
            .map(|failed| {
                let uri = outcome.uri_of(failed);
                json!({"uri": uri.as_str(), "error": failed.reason, "refused": failed.is_refused})
            })
            .collect();
        status["retry_obstacle"] = json!(outcome.retry_obstacle);
        let retries = outcome.retries.iter();
        status["retries"] = retries
            .map(|retry| {
                json!({
                    "job": retry.job_name,
                    "predicted": retry.predicted,
                    "under_way": retry.under_way,
                })
            })
            .collect();
    }
    status
}

pub(crate) fn list_json(jobs: &[JobSummary]) -> Value {
    let job = |job: &JobSummary| {
        json!({
            "job": job.name,
            "status": job.status.into_str(),
            "created": time_json(job.created_ms),
            "failure": job.failure,
        })
    };
    jobs.iter().map(job).collect()
}

/// `2026-11-21T14:05:09.007Z`
pub(crate) fn time_json(at_ms: i64) -> String {
    jiff::Timestamp::from_millisecond(at_ms).unwrap_or_default().to_string()
}
