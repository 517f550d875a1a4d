//! `spotcheck transform preflight`: checks a job before it costs money.

use std::io::Write;

use anyhow::bail;
use clap::Args;

use super::job_args::JobArgs;
use crate::aws::Aws;
use crate::cli::Outcome;
use crate::cli::terminal::{interruptible, stdout};
use crate::dirs::AppDirs;
use crate::sagemaker::jobs::JobRecords;
use crate::sagemaker::spec::transform::{CheckGrade, Preflight};
use crate::tasks::ProgressUnit;

#[derive(Debug, Args)]
pub(crate) struct PreflightArgs {
    #[command(flatten)]
    job: JobArgs,
}

pub(crate) fn run(args: &PreflightArgs) -> anyhow::Result<Outcome> {
    let dirs = AppDirs::find()?;
    let control = interruptible(ProgressUnit::Bytes)?;
    let aws = Aws::new();
    let mut planned = args.job.plan(&aws, &control)?;
    let prices = args.job.prices(&planned.plan, &dirs)?;
    let packed = planned.pack(&aws, &control)?;
    let records = JobRecords::in_folder(dirs.jobs());
    let found = planned.preflight(&aws, (&prices, &records), packed.as_ref(), &control)?;
    report(&found, "the job")
}

/// Prints all checks; fails if there are problems. `what` is what would be started.
pub(crate) fn report(found: &Preflight, what: &str) -> anyhow::Result<Outcome> {
    write(&mut stdout(), found)?;
    match found.count(CheckGrade::Problem) {
        0 => Ok(Outcome::AllWell),
        1 => bail!("{what} has a problem; fix it before you start"),
        count => bail!("{what} has {count} problems; fix them before you start"),
    }
}

/// One line per check, and one for its advice.
fn write(out: &mut dyn Write, found: &Preflight) -> anyhow::Result<()> {
    for check in &found.checks {
        writeln!(out, "{:8} {:17} {}", check.grade.into_str(), check.point.into_str(), check.finding)?;
        if !check.advice.is_empty() {
            writeln!(out, "{:26} → {}", "", check.advice)?;
        }
    }
    Ok(())
}

/// Prints warnings and problems to stderr; fails if there are problems, unless `force` is set.
pub(crate) fn must_pass(found: &Preflight, force: bool) -> anyhow::Result<()> {
    let noteworthy = Preflight {
        checks: found.checks.iter().filter(|check| check.grade != CheckGrade::Ok).cloned().collect(),
        ..Preflight::default()
    };
    write(&mut std::io::stderr().lock(), &noteworthy)?;
    if found.grade() == CheckGrade::Problem && !force {
        bail!(
            "nothing was started because of the problems above. Fix them, or continue anyway with \
             --force"
        );
    }
    Ok(())
}
