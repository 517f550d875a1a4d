//! `spotcheck transform stop`: a job ends before its end.

use anyhow::bail;
use clap::Args;

use super::named_job::NamedJob;
use crate::cli::Outcome;
use crate::cli::account::AccountArgs;
use crate::cli::terminal::{confirm, interruptible};
use crate::cli::values::parse_job_name;
use crate::dirs::AppDirs;
use crate::tasks::ProgressUnit;

#[derive(Debug, Args)]
pub(super) struct StopArgs {
    /// A job that goes on, wherever it was started
    #[arg(value_parser = parse_job_name)]
    job: String,
    /// Without asking
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    account: AccountArgs,
}

pub(super) fn run(args: &StopArgs) -> anyhow::Result<Outcome> {
    args.account.warn_if_unknown();
    let dirs = AppDirs::find()?;
    let control = interruptible(ProgressUnit::Steps)?;
    let named = NamedJob::find(&args.job, &args.account, &dirs, &control)?;
    let sagemaker = named.aws.sagemaker(&named.sagemaker);
    let job = sagemaker.describe_transform_job(&args.job, Some(&control))?;
    if job.status.is_over() {
        bail!("the job {} is {} already", args.job, job.status.into_str());
    }
    let question = format!(
        "Stop the job {}? What it has written stays; the other images get no output.",
        args.job
    );
    if !args.yes && !confirm(&question)? {
        eprintln!("the job goes on");
        return Ok(Outcome::AllWell);
    }
    sagemaker.stop_transform_job(&args.job, Some(&control))?;
    eprintln!(
        "the job {} stops, which takes a while and is billed until then; spotcheck transform status {0} --watch waits for it",
        args.job
    );
    Ok(Outcome::AllWell)
}
