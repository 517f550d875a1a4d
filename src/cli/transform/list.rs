//! `spotcheck transform list`: the jobs of the account and region.

use std::io::Write;

use clap::Args;

use super::json::{Format, list_json};
use crate::aws::Aws;
use crate::cli::Outcome;
use crate::cli::account::{Account, AccountArgs};
use crate::cli::progress::with_progress;
use crate::cli::terminal::{interruptible, local_time, stdout};
use crate::cli::values::variant;
use crate::sagemaker::spec::transform::{JobQuery, TransformStatus, TransformSummary};
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

pub(crate) fn run(args: &ListArgs) -> anyhow::Result<Outcome> {
    let control = interruptible(ProgressUnit::Steps)?;
    let access = args.account.sagemaker();
    let sagemaker = Aws::new().sagemaker(&access);
    let limit = args.limit as usize;
    let mut jobs: Vec<TransformSummary> = Vec::new();
    let mut query = JobQuery { name_contains: args.name.clone(), status: args.status, page_token: None };
    let is_more = with_progress("Listing", &control, || -> anyhow::Result<bool> {
        loop {
            let page = sagemaker.list_transform_jobs(&query, Some(&control))?;
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
        eprintln!("no matching jobs in {}", sagemaker.region(Some(&control))?);
    } else if is_more {
        eprintln!("there are more jobs; raise --limit to list them");
    }
    Ok(Outcome::AllWell)
}
