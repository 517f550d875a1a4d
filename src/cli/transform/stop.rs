//! `spotcheck transform stop` and `clean-up`: stop a job, and delete what it left behind.

use std::io::Write;

use anyhow::bail;
use clap::Args;

use super::{NamedJob, watch_command};
use crate::cli::Outcome;
use crate::cli::place::S3Args;
use crate::cli::terminal::{confirm, interruptible, stdout, with_progress};
use crate::cli::values::{AccountArgs, parse_job_name};
use crate::sagemaker::jobs::CleanUp;
use crate::sagemaker::spec::transform::{JobKind, JobSpec};
use crate::tasks::ProgressUnit;

#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// Name of a running job
    #[arg(value_parser = parse_job_name)]
    job: String,
    /// Stop without asking for confirmation
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    account: AccountArgs,
}

pub(crate) fn run<S: JobSpec>(args: &StopArgs) -> anyhow::Result<Outcome> {
    let control = interruptible(ProgressUnit::Steps)?;
    let named = NamedJob::<S>::find(&args.job, &args.account, &control)?;
    let sagemaker = named.aws.sagemaker(&named.sagemaker);
    let status = sagemaker.job_status(S::KIND, &args.job, &control)?;
    if status.is_over() {
        bail!("job {} is already {}", args.job, status.into_str());
    }
    let job = &args.job;
    let kept = match S::KIND {
        JobKind::Transform => "Existing outputs are kept; the remaining images get none.",
        JobKind::Training => "SageMaker keeps the model that the script has saved so far, if any.",
    };
    let question = format!("Stop job {}? {kept}", args.job);
    if !args.yes && !confirm(&question)? {
        eprintln!("the job continues");
        return Ok(Outcome::AllWell);
    }
    sagemaker.stop_job(S::KIND, &args.job, &control)?;
    eprintln!("stopping job {job}; it is billed until it has stopped. Watch it with: {}", watch_command(S::KIND, job));
    Ok(Outcome::AllWell)
}

#[derive(Debug, Args)]
pub(crate) struct CleanUpArgs {
    /// Name of a job that was started on this computer
    #[arg(value_parser = parse_job_name)]
    job: String,
    /// List what would be deleted without deleting anything
    #[arg(long)]
    dry_run: bool,
    /// Delete without asking for confirmation
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    s3: S3Args,
}

/// Deletes what a job left behind. `clean_up` depends on the kind of job.
pub(crate) fn run_clean_up<S: JobSpec>(args: &CleanUpArgs, clean_up: CleanUp<S>) -> anyhow::Result<Outcome> {
    let control = interruptible(ProgressUnit::Steps)?;
    let named = NamedJob::<S>::find(&args.job, &args.s3, &control)?;
    let Some(record) = named.record else {
        bail!(
            "job {} was not started on this computer, so the resources created for it are unknown. Check its model in \
             the AWS console",
            args.job
        );
    };
    let mut out = stdout();
    for left in &record.left {
        writeln!(out, "{left}")?;
    }
    if record.left.is_empty() {
        eprintln!("job {} left nothing behind", args.job);
        return Ok(Outcome::AllWell);
    }
    if args.dry_run {
        eprintln!("dry run: nothing was deleted");
        return Ok(Outcome::AllWell);
    }
    let question = "Delete these? Inputs and outputs are kept.";
    if !args.yes && !confirm(question)? {
        eprintln!("nothing was deleted");
        return Ok(Outcome::AllWell);
    }
    let done = with_progress("Deleting", &control, || clean_up(&named.aws, &named.records, record, &control))?;
    for (left, why) in &done.kept {
        eprintln!("kept the {left}: {why}");
    }
    eprintln!("{} deleted", done.deleted.len());
    if done.kept.is_empty() { Ok(Outcome::AllWell) } else { Ok(Outcome::SomeImagesFailed) }
}
