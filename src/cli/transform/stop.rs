//! `spotcheck transform stop`: stops a job.

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

pub(crate) fn run(args: &StopArgs) -> anyhow::Result<Outcome> {
    args.account.warn_if_unknown();
    let dirs = AppDirs::find()?;
    let control = interruptible(ProgressUnit::Steps)?;
    let named = NamedJob::find(&args.job, &args.account, &dirs, &control)?;
    let sagemaker = named.aws.sagemaker(&named.sagemaker);
    let job = sagemaker.describe_transform_job(&args.job, Some(&control))?;
    if job.status.is_over() {
        bail!("job {} is already {}", args.job, job.status.into_str());
    }
    let question = format!("Stop job {}? Existing outputs are kept; the remaining images get none.", args.job);
    if !args.yes && !confirm(&question)? {
        eprintln!("the job continues");
        return Ok(Outcome::AllWell);
    }
    sagemaker.stop_transform_job(&args.job, Some(&control))?;
    eprintln!(
        "stopping job {}; it is billed until it has stopped. Follow it with: spotcheck transform status {0} --watch",
        args.job
    );
    Ok(Outcome::AllWell)
}
