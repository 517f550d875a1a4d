//! `spotcheck transform preflight`: a job is looked through before it is paid for.

use std::io::Write;

use anyhow::bail;
use clap::Args;

use super::job_args::JobArgs;
use crate::aws::Aws;
use crate::cli::Outcome;
use crate::cli::terminal::{interruptible, stdout};
use crate::dirs::AppDirs;
use crate::domain::{CheckGrade, Preflight};
use crate::tasks::ProgressUnit;

#[derive(Debug, Args)]
pub(super) struct PreflightArgs {
    #[command(flatten)]
    job: JobArgs,
}

pub(super) fn run(args: &PreflightArgs) -> anyhow::Result<Outcome> {
    let dirs = AppDirs::find()?;
    let control = interruptible(ProgressUnit::Bytes)?;
    let aws = Aws::new();
    let mut planned = args.job.plan(&aws, &control)?;
    let prices = args.job.prices(&planned.plan, &dirs)?;
    let packed = planned.pack(&aws, &control)?;
    let found = planned.preflight(&aws, &prices, packed.as_ref(), &control)?;
    write(&mut stdout(), &found)?;
    match found.count(CheckGrade::Problem) {
        0 => Ok(Outcome::AllWell),
        1 => bail!("there is a problem; the job would fail, or must not run like this"),
        count => bail!("there are {count} problems; the job would fail, or must not run like this"),
    }
}

/// A line for each point, and one for what to do about it.
pub(in crate::cli) fn write(out: &mut dyn Write, found: &Preflight) -> anyhow::Result<()> {
    for check in &found.checks {
        writeln!(
            out,
            "{:8} {:17} {}",
            check.grade.into_str(),
            check.point.into_str(),
            check.finding
        )?;
        if !check.advice.is_empty() {
            writeln!(out, "{:26} → {}", "", check.advice)?;
        }
    }
    Ok(())
}

/// On stderr: what is well need not be told before a start.
pub(in crate::cli) fn write_noteworthy(found: &Preflight) -> anyhow::Result<()> {
    let noteworthy = Preflight {
        checks: found
            .checks
            .iter()
            .filter(|check| check.grade != CheckGrade::Ok)
            .cloned()
            .collect(),
        ..Preflight::default()
    };
    write(&mut std::io::stderr().lock(), &noteworthy)
}
