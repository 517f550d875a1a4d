//! `spotcheck transform start`: uploads what is missing, creates the model and starts the job.

use std::io::Write;

use anyhow::bail;
use clap::Args;

use super::job_args::{JobArgs, Planned};
use super::json::Format;
use super::package::{ARCHIVE, Packing};
use super::preflight::must_pass;
use super::status::{Watched, watch_to_the_end};
use crate::aws::Aws;
use crate::cli::Outcome;
use crate::cli::progress::with_progress;
use crate::cli::terminal::{interruptible, stdout};
use crate::dirs::AppDirs;
use crate::domain::counted;
use crate::sagemaker;
use crate::sagemaker::jobs::{JobRecords, StartFolders, aws_commands, quoted, shell_script};
use crate::sagemaker::spec::transform::{JobRecord, Leftover, PriceTable, TransformPlan};
use crate::tasks::{ProgressUnit, TaskControl, now_ms};

#[derive(Debug, Args)]
pub(crate) struct StartArgs {
    // First, because the help headings of the job apply to all flags after it.
    #[command(flatten)]
    how: LaunchArgs,
    #[command(flatten)]
    job: JobArgs,
}

/// Flags for the start of a job.
#[derive(Debug, Args)]
pub(crate) struct LaunchArgs {
    /// Start, or print the commands, even if the preflight finds problems
    #[arg(long)]
    force: bool,
    /// Print the equivalent `aws` commands for a POSIX shell, including the values of --env and --model-env; start
    /// nothing
    #[arg(long)]
    print_aws: bool,
    /// Watch the job until it ends
    #[arg(long)]
    watch: bool,
}

pub(crate) fn run(args: &StartArgs) -> anyhow::Result<Outcome> {
    let dirs = AppDirs::find()?;
    let control = interruptible(ProgressUnit::Bytes)?;
    let aws = Aws::new();
    let planned = args.job.plan(&aws, &control)?;
    let prices = args.job.prices(&planned.plan, &dirs)?;
    start(&aws, planned, prices, &args.how, &dirs, &control)
}

/// Checks a plan, starts its job, and watches it if requested.
pub(crate) fn start(
    aws: &Aws,
    mut planned: Planned,
    prices: PriceTable,
    how: &LaunchArgs,
    dirs: &AppDirs,
    control: &TaskControl,
) -> anyhow::Result<Outcome> {
    let records = JobRecords::in_folder(dirs.jobs());
    if how.print_aws {
        // The preflight fills in values that depend on the objects.
        let found = planned.preflight(aws, (&prices, &records), None, control)?;
        must_pass(&found, how.force)?;
        return print_commands(&planned.plan, planned.packing.as_ref());
    }
    if let Some(record) = sagemaker::jobs::started_before(aws, &planned.plan, &records, control)? {
        let name = &record.spec.job_name;
        writeln!(stdout(), "{name}")?;
        eprintln!("job {name} was already started with the same model, input, output and instances");
        return watch_started(aws, &record, &records, prices, how, control);
    }
    let packed = planned.pack(aws, control)?;
    let found = planned.preflight(aws, (&prices, &records), packed.as_ref(), control)?;
    must_pass(&found, how.force)?;
    if planned.packing.is_some() && packed.is_none() {
        bail!("nothing was started: the input is empty");
    }
    let plan = planned.plan;
    let folders = StartFolders { records: &records, unfinished: &dirs.uploads() };
    let started = with_progress("Starting", control, || sagemaker::jobs::start(aws, &plan, folders, now_ms(), control));
    let record = match started {
        Ok(record) => record,
        Err(error) => {
            print_leftovers(&records, &plan.spec.job_name);
            return Err(error.into());
        }
    };
    print_note(&record)?;
    watch_started(aws, &record, &records, prices, how, control)
}

/// Watches a started job if requested.
fn watch_started(
    aws: &Aws,
    record: &JobRecord,
    records: &JobRecords,
    prices: PriceTable,
    how: &LaunchArgs,
    control: &TaskControl,
) -> anyhow::Result<Outcome> {
    if !how.watch {
        eprintln!("watch it with: spotcheck transform status {} --watch", record.spec.job_name);
        return Ok(Outcome::AllWell);
    }
    let watched = Watched {
        aws,
        sagemaker: &record.sagemaker,
        s3: &record.s3,
        job_name: &record.spec.job_name,
        record: Some(record.clone()),
        records,
        prices,
        usd_per_hour: None,
        format: Format::Text,
    };
    watch_to_the_end(&watched, control)
}

fn print_note(record: &JobRecord) -> anyhow::Result<()> {
    let spec = &record.spec;
    writeln!(stdout(), "{}", spec.job_name)?;
    let count = record.input_objects.unwrap_or_default();
    eprintln!(
        "started a job for {} on {} × {}; outputs go to {}",
        counted(count, "object", "objects"),
        spec.instance_count,
        spec.instance_type,
        spec.output.folder
    );
    Ok(())
}

/// A failed start may have created resources.
fn print_leftovers(records: &JobRecords, name: &str) {
    let (all, _) = records.all();
    let left = all.into_iter().find(|record| record.spec.job_name == name).map(|record| record.left);
    let Some(left) = left.filter(|left| !left.is_empty()) else {
        return;
    };
    let left: Vec<String> = left.iter().map(Leftover::to_string).collect();
    eprintln!(
        "left behind: {}. Run the same command with --job-name {name} to continue, or delete it with: spotcheck \
         transform clean-up {name}",
        left.join(", ")
    );
}

fn print_commands(plan: &TransformPlan, packing: Option<&Packing>) -> anyhow::Result<Outcome> {
    let mut commands = Vec::new();
    if let Some(packing) = packing {
        let (flag, model) = packing.flag();
        commands.push(format!("spotcheck transform package {flag} {} --out {ARCHIVE}", quoted(&model)));
    }
    commands.extend(aws_commands(plan));
    writeln!(stdout(), "{}", shell_script(&commands))?;
    Ok(Outcome::AllWell)
}
