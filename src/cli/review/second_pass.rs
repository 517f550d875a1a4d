//! `spotcheck review second-pass`: a project for a second person, who judges without seeing the verdicts of the first.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;

use crate::cli::Outcome;
use crate::cli::out_file::{check_is_new, check_is_no_input, is_stdout};
use crate::cli::place::S3Args;
use crate::cli::stored::{NO_RUNS, open_project};
use crate::cli::terminal::{interruptible, with_progress};
use crate::dirs::AppDirs;
use crate::project::with_extension;
use crate::tasks::ProgressUnit;

#[derive(Debug, Args)]
pub(crate) struct SecondPassArgs {
    /// Project file of the first reviewer (`*.spotcheck`), or the image folder or `s3://bucket/folder/` of a project in
    /// the data folder
    project: PathBuf,
    /// Write the project for the second reviewer to this file: predictions and samples, but no verdicts, notes and tags
    #[arg(long, value_name = "FILE.spotcheck")]
    out: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    s3: S3Args,
}

pub(crate) fn run(args: &SecondPassArgs) -> anyhow::Result<Outcome> {
    if is_stdout(&args.out) {
        bail!("a project is a file and cannot be written to stdout; give a file name to --out");
    }
    let out = with_extension(&args.out);
    check_is_no_input(&out, &[("the first project", Some(&args.project))])?;
    check_is_new(&out, args.force)?;
    let project = open_project(&args.project, &args.s3, &AppDirs::find()?, "spotcheck review")?;
    let runs = project.runs()?;
    if runs.is_empty() {
        bail!(NO_RUNS);
    }
    if let [run, ..] = &runs[..]
        && runs.iter().all(|run| run.card.is_encoder())
    {
        run.card.must_predict().context("the project has nothing to judge")?;
    }
    let control = interruptible(ProgressUnit::Bytes)?;
    let path = with_progress("Copying", &control, || project.start_second_pass(&out, "spotcheck review", &control))?;
    eprintln!("written without verdicts: {}", path.display());
    eprintln!("when it is judged, compare both: spotcheck review merge FIRST {} --out BOTH", path.display());
    Ok(Outcome::AllWell)
}
