//! `spotcheck review sample`: draws the boxes or images to judge.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;

use super::{ReviewedRun, check_is_predicted, reviewed_view};
use crate::cli::Outcome;
use crate::cli::out_file::is_stdout;
use crate::cli::terminal::{interruptible, raw_stdout, with_progress};
use crate::cli::values::{parse_score, variant};
use crate::domain::{Change, counted, grouped};
use crate::project::OpenMode;
use crate::project::export::{
    Existing, ExportTarget, SampleCsv, draw_sample, find_clusters, missing_embeddings, review_population, review_sample,
};
use crate::review::{ReviewSample, SampleBy};
use crate::tasks::ProgressUnit;

#[derive(Debug, Args)]
pub(crate) struct SampleArgs {
    #[command(flatten)]
    of: ReviewedRun,
    /// Number of boxes (for classifiers, images) to draw; small strata can add a few
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,
    /// Draw all with equal probability, or more from rare classes, rare scores, uncertain predictions, or rare kinds of
    /// images (`cover`, by their embeddings)
    #[arg(long, value_name = "DESIGN", default_value = "random", value_parser = variant::<SampleBy>())]
    by: SampleBy,
    /// Seed of the random numbers; a higher --count with the same seed extends the sample
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Minimum score of drawn boxes; overrides all thresholds of the project
    #[arg(long, value_parser = parse_score::<f32>)]
    min_score: Option<f32>,
    /// Write the sample as CSV, in the order in which it should be judged; `-` for stdout
    #[arg(long, value_name = "FILE.csv")]
    out: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// Replace an earlier sample of the run; its verdicts remain
    #[arg(long)]
    replace: bool,
}

pub(crate) fn run(args: &SampleArgs) -> anyhow::Result<Outcome> {
    let failed = "Could not write the sample";
    let target = ExportTarget { path: args.out.clone(), existing: Existing::from_force(args.force) };
    let file = (!is_stdout(&args.out)).then(|| SampleCsv::create(&target)).transpose().context(failed)?;
    let (project, run) = args.of.open(OpenMode::WriteExisting)?;
    check_is_predicted(&project, &run)?;
    let view = reviewed_view(&project, &run, args.min_score)?;
    let control = interruptible(ProgressUnit::Images)?;
    let mut population = with_progress("Reading", &control, || review_population(&project, &run, &view, &control))?;
    let task = run.card.stored_as();
    let [one, many] = task.judged_words();
    let min_score = view.min_score_for(task);
    if population.units.is_empty() {
        bail!("the run has no {many} at score ≥ {min_score:.2}; choose a lower --min-score");
    }
    let mut compared = String::new();
    if args.by == SampleBy::Cover {
        let design = (args.count as usize, args.seed);
        let cluster = || find_clusters(&mut population, &project, &run, design, &control);
        let Some(description) = with_progress("Comparing", &control, cluster)? else {
            bail!("{}", missing_embeddings(&run));
        };
        compared = format!(", clustered by {description}");
    }
    let sample = draw_sample(&population, &run, view, args.by, args.count as usize, args.seed);
    if !args.replace && review_sample(&project, &run)?.is_some_and(|earlier| earlier != sample) {
        bail!("the run already has a sample; to replace it, add --replace (its verdicts remain)");
    }
    let name = ReviewSample::name_in_project(run.id.0);
    project.write_together(&[Change::SetView { name, json: serde_json::to_string(&sample)? }])?;
    if let Some(mut file) = file {
        file.write(&sample, &population, &run).and_then(|()| file.commit()).context(failed)?;
    } else {
        let mut table = SampleCsv::in_memory()?;
        table.write(&sample, &population, &run)?;
        raw_stdout().write_all(&table.into_bytes()?).context("Could not write to stdout")?;
    }
    let strata = match sample.strata.len() {
        1 => String::new(),
        count => format!(", from {count} strata"),
    };
    eprintln!(
        "drew {} of {} at score ≥ {min_score:.2}{strata}{compared}",
        grouped(sample.units.len()),
        counted(population.units.len(), one, many)
    );
    Ok(Outcome::AllWell)
}
