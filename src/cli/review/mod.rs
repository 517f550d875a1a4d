//! `spotcheck review`: random samples for reviewers, their verdicts, and what these say about a run.

mod labels;
mod merge;
mod report;
mod sample;
mod second_pass;
mod verdicts;

use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, Subcommand};

use super::Outcome;
use super::place::S3Args;
use super::stored::{choose_predictions, open_project_as, stored_view};
use crate::dirs::AppDirs;
use crate::domain::{RunInfo, ViewSettings};
use crate::project::{Access, OpenMode, Project};

#[derive(Debug, Args)]
pub(crate) struct ReviewArgs {
    #[command(subcommand)]
    command: ReviewCommand,
}

#[derive(Debug, Subcommand)]
enum ReviewCommand {
    /// Draw a random sample of a run's boxes (or images) to judge
    Sample(sample::SampleArgs),
    /// Estimate the precision of a run from its verdicts
    Report(report::ReportArgs),
    /// Import verdicts from a CSV file, such as a filled-in sample
    Import(verdicts::ImportArgs),
    /// Export verdicts with their reviewers as CSV
    Export(verdicts::ExportArgs),
    /// List what a review of ground truth changed, for its owner
    Changes(labels::ChangesArgs),
    /// Apply such a list to the ground truth
    Apply(labels::ApplyArgs),
    /// Copy a project without its verdicts, for a second reviewer who judges blind
    SecondPass(second_pass::SecondPassArgs),
    /// Merge the verdicts of two people who judged the same predictions
    Merge(merge::MergeArgs),
}

/// The run of a project.
#[derive(Debug, Args)]
struct ReviewedRun {
    /// Project file (`*.spotcheck`), or the image folder or `s3://bucket/folder/` of a project in the data folder
    project: PathBuf,
    /// Run, by name or number [default: the newest of a model]
    #[arg(long, value_name = "NAME|NUMBER")]
    run: Option<String>,
    #[command(flatten)]
    s3: S3Args,
}

pub(crate) fn run(args: &ReviewArgs) -> anyhow::Result<Outcome> {
    match &args.command {
        ReviewCommand::Sample(args) => sample::run(args),
        ReviewCommand::Report(args) => report::run(args),
        ReviewCommand::Import(args) => verdicts::import(args),
        ReviewCommand::Export(args) => verdicts::export(args),
        ReviewCommand::Changes(args) => labels::changes(args),
        ReviewCommand::Apply(args) => labels::apply(args),
        ReviewCommand::SecondPass(args) => second_pass::run(args),
        ReviewCommand::Merge(args) => merge::run(args),
    }
}

impl ReviewedRun {
    /// # Errors
    /// The project cannot be read, or `mode` is for writing and it cannot be written.
    fn open(&self, mode: OpenMode) -> anyhow::Result<(Project, RunInfo)> {
        let project = open_project_as(&self.project, &self.s3, &AppDirs::find()?, mode, "spotcheck review")?;
        if let Access::ReadOnly { reason } = project.access()
            && mode != OpenMode::Read
        {
            bail!("the project is read-only: {reason}");
        }
        let run = choose_predictions(&project, self.run.as_deref(), "reviewing")?;
        Ok((project, run))
    }
}

/// # Errors
/// The run has no predictions, so that nothing can be judged.
fn check_is_predicted(project: &Project, run: &RunInfo) -> anyhow::Result<()> {
    if project.prediction_counts(run.id)?.predicted == 0 {
        bail!("the run “{}” has no predictions to judge; predict with `spotcheck predict` first", run.name);
    }
    Ok(())
}

/// What the project shows of the run, or everything from a minimum score on.
fn reviewed_view(project: &Project, run: &RunInfo, min_score: Option<f32>) -> anyhow::Result<ViewSettings> {
    let mut view = stored_view(project, run)?;
    if let Some(min_score) = min_score {
        view.min_score = min_score;
        view.min_class_score = min_score;
        view.min_score_by_class.clear();
    }
    Ok(view)
}
