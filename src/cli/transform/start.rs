//! `spotcheck transform start`, `preflight` and `retry`: check a job before it costs money, upload what is missing,
//! create the model and start the job; send the images without an output again.

use std::io::Write;

use anyhow::bail;
use clap::Args;

use super::job_args::{JobArgs, Planned};
use super::package::{ARCHIVE, Packing};
use super::status::watch_started;
use super::{NamedJob, print_leftovers, watch_command};
use crate::aws::Aws;
use crate::cli::Outcome;
use crate::cli::place::S3Args;
use crate::cli::terminal::{interruptible, stdout, with_progress};
use crate::cli::values::{parse_job_name, parse_pair};
use crate::dirs::AppDirs;
use crate::domain::counted;
use crate::sagemaker;
use crate::sagemaker::JobError;
use crate::sagemaker::jobs::{
    JobRecords, PlannedRetry, Retry, RetryChanges, StartFolders, aws_commands, outcome, plan_retry, quoted,
    read_prices, shell_script,
};
use crate::sagemaker::spec::transform::{
    CheckGrade, JobKind, JobRecord, JobSpec, ModelSource, Preflight, PriceTable, RetryChoice, TransformPlan,
    TransformSpec,
};
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
        return watch(&NamedJob::started(aws.clone(), records, record), prices, how, control);
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
    let record = started.map_err(|error| failed_start(&records, &plan.spec.job_name, error))?;
    print_note(&record)?;
    watch(&NamedJob::started(aws.clone(), records, record), prices, how, control)
}

/// Watches a started job if requested.
fn watch(named: &NamedJob, prices: PriceTable, how: &LaunchArgs, control: &TaskControl) -> anyhow::Result<Outcome> {
    if how.watch {
        return watch_started(named, prices, control);
    }
    eprintln!("watch it with: {}", watch_command(JobKind::Transform, &named.name));
    Ok(Outcome::AllWell)
}

fn print_note(record: &JobRecord) -> anyhow::Result<()> {
    let spec = &record.spec;
    writeln!(stdout(), "{}", spec.job_name)?;
    let count = record.input_objects.unwrap_or_default();
    eprintln!(
        "started a job for {} on {} × {}; outputs go to {}",
        counted(count, "object", "objects"),
        spec.resources.instance_count,
        spec.resources.instance_type,
        spec.output.folder
    );
    Ok(())
}

/// The error of a failed start, which may have created resources.
pub(crate) fn failed_start<S: JobSpec>(records: &JobRecords<S>, name: &str, error: JobError) -> anyhow::Error {
    let (all, _) = records.all();
    let left = all.into_iter().find(|record| record.spec.job_name() == name && !record.left.is_empty());
    if let Some(record) = left {
        print_leftovers(&record);
        eprintln!("to continue with it instead, run the same command with --job-name {name}");
    }
    error.into()
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

pub(crate) fn run_preflight(args: &JobArgs) -> anyhow::Result<Outcome> {
    let dirs = AppDirs::find()?;
    let control = interruptible(ProgressUnit::Bytes)?;
    let aws = Aws::new();
    let mut planned = args.plan(&aws, &control)?;
    let prices = args.prices(&planned.plan, &dirs)?;
    let packed = planned.pack(&aws, &control)?;
    let records = JobRecords::in_folder(dirs.jobs());
    let found = planned.preflight(&aws, (&prices, &records), packed.as_ref(), &control)?;
    report(&found, "the job")
}

/// Prints all checks; fails if there are problems. `what` is what would be started.
pub(crate) fn report(found: &Preflight, what: &str) -> anyhow::Result<Outcome> {
    write_checks(&mut stdout(), found)?;
    match found.count(CheckGrade::Problem) {
        0 => Ok(Outcome::AllWell),
        1 => bail!("{what} has a problem; fix it before you start"),
        count => bail!("{what} has {count} problems; fix them before you start"),
    }
}

/// One line per check, and one for its advice.
fn write_checks(out: &mut dyn Write, found: &Preflight) -> anyhow::Result<()> {
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
    write_checks(&mut std::io::stderr().lock(), &noteworthy)?;
    if found.grade() == CheckGrade::Problem && !force {
        bail!(
            "nothing was started because of the problems above. Fix them, or continue anyway with \
             --force"
        );
    }
    Ok(())
}

#[derive(Debug, Args)]
pub(crate) struct RetryArgs {
    /// Name of a job that has ended
    #[arg(value_parser = parse_job_name)]
    job: String,
    /// Send all images without an output, even those that the model rejected, and even if the job failed before its
    /// first output
    #[arg(long)]
    all: bool,
    /// Environment variable for the model's container, if the model was deleted and is created again; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_pair)]
    model_env: Vec<(String, String)>,
    /// Maximum payload per request in MB [default: as in the job, or what the largest failed image needs]
    #[arg(long, value_name = "MB")]
    max_payload_mb: Option<u32>,
    /// Maximum parallel requests per instance [default: as in the job]
    #[arg(long, value_name = "N")]
    max_concurrent: Option<u32>,
    /// EC2 instance type [default: as in the job]
    #[arg(long, value_name = "TYPE")]
    instance_type: Option<String>,
    #[command(flatten)]
    how: LaunchArgs,
    #[command(flatten)]
    s3: S3Args,
}

pub(crate) fn run_retry(args: &RetryArgs) -> anyhow::Result<Outcome> {
    let dirs = AppDirs::find()?;
    let control = interruptible(ProgressUnit::Bytes)?;
    let named = NamedJob::find(&args.job, &args.s3, &control)?;
    let PlannedRetry { plan, notes, doubt } =
        with_progress("Checking which images have no output", &control, || plan_of_retry(args, &named, &control))?;
    if !args.model_env.is_empty() && plan.model == ModelSource::Existing {
        anyhow::bail!("model {} already exists with its own environment; omit --model-env", plan.spec.model_name);
    }
    let count = plan.manifest.as_ref().map_or(0, |manifest| manifest.names.len());
    match doubt {
        Some(doubt) if !args.all => {
            anyhow::bail!("{doubt}. Nothing was started; send all images with --all")
        }
        Some(doubt) => eprintln!("note: {doubt}"),
        None => {}
    }
    eprintln!("resending {} without an output", counted(count, "image", "images"));
    for note in notes {
        eprintln!("note: {note}");
    }
    let prices = read_prices(&dirs.prices())?;
    start(&named.aws, Planned::new(plan), prices, &args.how, &dirs, &control)
}

fn plan_of_retry(args: &RetryArgs, named: &NamedJob, control: &TaskControl) -> anyhow::Result<PlannedRetry> {
    let sagemaker = named.aws.sagemaker(&named.sagemaker);
    let job = sagemaker.describe_job::<TransformSpec>(&args.job, control)?;
    if !job.status.is_over() {
        anyhow::bail!(
            "job {} is {}; wait until it ends, because its images may still get an output",
            args.job,
            job.status.into_str()
        );
    }
    let asked = (&named.sagemaker, &named.s3);
    let found = outcome(&named.aws, asked, &job, &named.records, control)?;
    let retry = Retry {
        sagemaker: &named.sagemaker,
        s3: &named.s3,
        job: &job,
        record: named.record.as_ref(),
        outcome: &found,
        choice: if args.all { RetryChoice::All } else { RetryChoice::NotRefused },
        changes: RetryChanges {
            max_payload_mb: args.max_payload_mb,
            max_concurrent: args.max_concurrent,
            instance_type: args.instance_type.clone(),
        },
        model_environment: args.model_env.iter().cloned().collect(),
    };
    Ok(plan_retry(&named.aws, &retry, now_ms(), control)?)
}
