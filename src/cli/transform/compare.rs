//! `spotcheck transform compare`: compares a local run with a remote one.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;

use super::named_truth::NamedTruth;
use crate::cli::Outcome;
use crate::cli::compare::{RunPairArgs, hold, print_note};
use crate::cli::stored::{find_run, list_of_runs, open_project};
use crate::dirs::AppDirs;
use crate::domain::RunInfo;

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Project file (`*.spotcheck`), or the image folder or `s3://bucket/folder/` of a project in the data folder
    project: PathBuf,
    /// Local run, by name or number [default: the newest]
    #[arg(long, value_name = "NAME|NUMBER")]
    local: Option<String>,
    /// Remote run, by name or number [default: the newest]
    #[arg(long, value_name = "NAME|NUMBER")]
    remote: Option<String>,
    /// Read the true class from the end of each image name, as in `0017_cat.png`, and print both runs' accuracy and
    /// confusion matrix
    #[arg(long)]
    truth_from_names: bool,
    #[command(flatten)]
    holding: RunPairArgs,
}

pub(crate) fn run(args: &CompareArgs) -> anyhow::Result<Outcome> {
    let dirs = AppDirs::find()?;
    let s3 = args.holding.s3();
    let project = open_project(&args.project, s3, &dirs, "spotcheck transform compare")?;
    let all = project.runs()?;
    let local = choose(&all, args.local.as_deref(), Side::Local)?;
    let task = local.card.task;
    let of_task: Vec<RunInfo> =
        all.iter().filter(|run| args.remote.is_some() || run.card.task == task).cloned().collect();
    let remote = choose(&of_task, args.remote.as_deref(), Side::Remote)?;
    if local.id == remote.id {
        bail!("“{}” was chosen for both sides; choose two runs", local.name);
    }
    let runs = [local, remote];
    let mut truths = runs.each_ref().map(|run| NamedTruth::new(&run.labels));
    let mut text = hold(&project, runs, &args.holding, |pair| {
        if args.truth_from_names {
            for (truth, prediction) in truths.iter_mut().zip(&pair.predictions) {
                if let Some(prediction) = prediction {
                    truth.add(&pair.sample, prediction);
                }
            }
        }
    })?
    .text;
    if args.truth_from_names {
        for (letter, truth) in ["A", "B"].into_iter().zip(truths) {
            text.push_str(letter);
            text.push_str(": ");
            text.push_str(&truth.text());
        }
    }
    print_note(&args.holding, &text)?;
    Ok(Outcome::AllWell)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Local,
    Remote,
}

/// The chosen run, or the newest one of its side.
fn choose(runs: &[RunInfo], wanted: Option<&str>, side: Side) -> anyhow::Result<RunInfo> {
    if let Some(wanted) = wanted {
        return find_run(runs, wanted);
    }
    let of_side = |run: &&RunInfo| run.key.made.is_here() == (side == Side::Local) && !run.card.is_encoder();
    if let Some(newest) = runs.iter().rev().find(of_side) {
        return Ok(newest.clone());
    }
    let list = list_of_runs(runs);
    match side {
        Side::Local => bail!(
            "the project has no local run. Create one with `spotcheck predict --project`, or choose one with \
             --local:{list}"
        ),
        Side::Remote => bail!(
            "the project has no remote run of this kind. Read the outputs of a job with `spotcheck transform fetch`, \
             or choose one with --remote:{list}"
        ),
    }
}
