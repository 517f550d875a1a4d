//! `spotcheck transform logs`: shows the log of a job's containers, or SageMaker's messages about its objects.

use std::time::Duration;

use clap::Args;

use super::named_job::NamedJob;
use crate::cli::Outcome;
use crate::cli::account::AccountArgs;
use crate::cli::terminal::{interruptible, print_log};
use crate::cli::values::parse_job_name;
use crate::dirs::AppDirs;
use crate::sagemaker::log::{LogKind, LogReader};
use crate::tasks::ProgressUnit;

/// The interval between reads of a growing log.
const PAUSE: Duration = Duration::from_secs(3);

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// Job name
    #[arg(value_parser = parse_job_name)]
    job: String,
    /// Show SageMaker's own log: failed objects and reasons
    #[arg(long)]
    data_log: bool,
    /// Follow the log until the job ends
    #[arg(long)]
    follow: bool,
    #[command(flatten)]
    account: AccountArgs,
}

pub(crate) fn run(args: &LogsArgs) -> anyhow::Result<Outcome> {
    args.account.warn_if_unknown();
    let dirs = AppDirs::find()?;
    let control = interruptible(ProgressUnit::Steps)?;
    let named = NamedJob::find(&args.job, &args.account, &dirs, &control)?;
    let sagemaker = named.aws.sagemaker(&named.sagemaker);
    let kind = if args.data_log { LogKind::Data } else { LogKind::Container };
    let mut reader = LogReader::new(&args.job, kind);
    let mut is_empty = true;
    loop {
        // Queried first, so that nothing written before the end is missed.
        let is_over = sagemaker.describe_transform_job(&args.job, Some(&control))?.status.is_over();
        let lines = reader.read(&sagemaker, &control)?;
        is_empty &= lines.is_empty();
        print_log(&lines)?;
        if is_over || !args.follow {
            break;
        }
        control.sleep(PAUSE)?;
    }
    if is_empty {
        eprintln!("this log of {} is still empty", args.job);
    }
    Ok(Outcome::AllWell)
}
