//! `spotcheck upload`: uploads a local folder to a prefix in S3.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;

use super::Outcome;
use super::place::{S3Args, parse_location};
use super::terminal::with_progress;
use crate::aws::Aws;
use crate::aws::upload::plan::{FileAmount, PlannedState, UploadPlan, UploadReport, UploadStop};
use crate::aws::upload::{DEFAULT_CONCURRENCY, Existing, MAX_CONCURRENCY, UploadOptions, files_below, plan, upload};
use crate::cli::terminal::{interruptible, print_problems, stdout};
use crate::dirs::AppDirs;
use crate::domain::{Location, S3Place, human_bytes, visible};
use crate::tasks::{ProgressUnit, TaskControl};

#[derive(Debug, Args)]
pub(crate) struct UploadArgs {
    /// Folder of images and TFRecord files, or a single file
    folder: PathBuf,
    /// Destination: `s3://bucket/prefix/`
    target: PathBuf,
    /// Show what would be uploaded without uploading anything
    #[arg(long)]
    dry_run: bool,
    /// Replace objects whose content differs; by default, they are kept and listed
    #[arg(long)]
    overwrite: bool,
    /// Parallel requests; each uses up to 16 MiB of memory
    #[arg(
        long,
        value_name = "N",
        default_value_t = DEFAULT_CONCURRENCY as u32,
        value_parser = clap::value_parser!(u32).range(1..=MAX_CONCURRENCY as i64)
    )]
    concurrency: u32,
    #[command(flatten)]
    s3: S3Args,
}

pub(crate) fn run(args: &UploadArgs) -> anyhow::Result<Outcome> {
    let target = target(args)?;
    let dirs = AppDirs::find()?;
    let control = interruptible(ProgressUnit::Bytes)?;
    let aws = Aws::new();
    let plan = with_progress("Comparing", &control, || -> anyhow::Result<UploadPlan> {
        let local =
            files_below(&args.folder, &control).with_context(|| format!("Could not read {}", args.folder.display()))?;
        Ok(plan(&aws, &target, local, &control)?)
    })?;
    if plan.files.is_empty() && plan.problems.is_empty() {
        bail!("No images or TFRecord files in {}", args.folder.display());
    }
    describe(&plan, args);
    if args.dry_run {
        return list(&plan, args);
    }
    let options = UploadOptions {
        concurrency: args.concurrency as usize,
        existing: if args.overwrite { Existing::Replace } else { Existing::Keep },
        unfinished: &dirs.uploads(),
    };
    let report = with_progress("Uploading", &control, || upload(&aws, &plan, options, &control));
    conclude(&report, &plan, &control)
}

fn target(args: &UploadArgs) -> anyhow::Result<S3Place> {
    match parse_location(&args.target, &args.s3)? {
        Location::S3(place) => Ok(*place),
        Location::Path(_) => {
            bail!("the second argument must be s3://bucket/prefix/, not {}", args.target.display())
        }
    }
}

fn describe(plan: &UploadPlan, args: &UploadArgs) {
    eprintln!("{} to upload to {}", plan.new_files(), plan.target.address);
    let nothing = FileAmount::default();
    let same = plan.same_files();
    if same != nothing {
        eprintln!("{same} already in S3");
    }
    let conflicts = plan.conflicting_files();
    if conflicts != nothing {
        let fate = if args.overwrite { "will be replaced" } else { "are kept; to replace them, add --overwrite" };
        eprintln!("{conflicts} exist in S3 with different content and {fate}");
    }
    if let Some(left_out) = plan.left_out.describe() {
        eprintln!("skipped: {left_out}");
    }
}

/// One line per file on stdout: what would be done, its size, its name, and why not.
fn list(plan: &UploadPlan, args: &UploadArgs) -> anyhow::Result<Outcome> {
    let mut conflicts = 0;
    for planned in &plan.files {
        let (what, why) = match &planned.state {
            PlannedState::New => ("send", String::new()),
            PlannedState::Same => ("same", String::new()),
            PlannedState::Conflict { .. } if args.overwrite => ("replace", String::new()),
            PlannedState::Conflict { why, .. } => {
                conflicts += 1;
                ("conflict", format!(": {why}"))
            }
        };
        let size = human_bytes(planned.file.size_bytes);
        writeln!(stdout(), "{what:8} {size:>8}  {}{why}", visible(&planned.file.name))?;
    }
    print_problems("failed ", &plan.problems);
    eprintln!("dry run: nothing was uploaded");
    Ok(if conflicts == 0 && plan.problems.is_empty() { Outcome::AllWell } else { Outcome::SomeImagesFailed })
}

/// Reports the result, and returns the outcome for the exit code.
fn conclude(report: &UploadReport, plan: &UploadPlan, control: &TaskControl) -> anyhow::Result<Outcome> {
    for note in &report.notes {
        eprintln!("note: {note}");
    }
    for conflict in &report.conflicts {
        eprintln!("conflict {conflict}");
    }
    print_problems("failed ", &report.failures);
    let elapsed = control.progress().elapsed.as_secs_f64();
    let sent = report.sent;
    match &report.stopped {
        None => eprintln!("{sent} uploaded in {elapsed:.1} s"),
        Some(UploadStop::Cancelled) => {
            bail!("canceled with {} left; {sent} uploaded; rerun the command to upload the rest", report.not_tried)
        }
        Some(UploadStop::Failed(why)) => {
            bail!(
                "{why}\nStopped with {} left; {sent} uploaded; rerun the command to upload the rest",
                report.not_tried
            )
        }
    }
    if report.is_complete() {
        return Ok(Outcome::AllWell);
    }
    eprintln!(
        "{} of {} files failed, {} in S3 were not replaced",
        report.failures.len(),
        plan.files.len() + plan.problems.len(),
        report.conflicts.len()
    );
    Ok(Outcome::SomeImagesFailed)
}
