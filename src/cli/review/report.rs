//! `spotcheck review report`: what the verdicts say about the run.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;

use super::{ReviewedRun, check_is_predicted, reviewed_view};
use crate::cli::Outcome;
use crate::cli::out_file::{check_is_no_input, is_stdout};
use crate::cli::terminal::{interruptible, raw_stdout, stdout, with_progress};
use crate::cli::truth::TruthArgs;
use crate::cli::values::parse_score;
use crate::domain::grouped;
use crate::image::source::ImageList;
use crate::project::OpenMode;
use crate::project::export::{
    Existing, ExportTarget, RunReview, WholeFile, known_samples, report_of_run, review_sample,
};
use crate::review::ReviewReport;
use crate::tasks::ProgressUnit;

/// The number of corrections listed in the terminal.
const MAX_CORRECTIONS: usize = 10;

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    of: ReviewedRun,
    /// Minimum score of the boxes (for classifiers, of the top class) that the report covers [default: that of the
    /// sample, otherwise the project's]
    #[arg(long, value_parser = parse_score::<f32>)]
    min_score: Option<f32>,
    /// Find the lowest minimum score with at least this precision, from 0 to 1
    #[arg(long, value_name = "PRECISION", value_parser = parse_score::<f64>)]
    target_precision: Option<f64>,
    #[command(flatten)]
    truth: TruthArgs,
    /// List that `spotcheck sample` wrote: estimate for all images that it was drawn from. Images count once each of
    /// their boxes has a verdict; a sample of the run is ignored
    #[arg(long, value_name = "FILE.json")]
    images: Option<PathBuf>,
    /// Write the report as JSON; `-` for stdout [default: a summary on stdout]
    #[arg(long, value_name = "FILE.json")]
    out: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long, requires = "out")]
    force: bool,
}

pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<Outcome> {
    let target = |path: &PathBuf| {
        let target = ExportTarget { path: path.clone(), existing: Existing::from_force(args.force) };
        WholeFile::create(&target).context("Could not write the report")
    };
    let to_stdout = args.out.as_deref().is_some_and(is_stdout);
    if let Some(out) = &args.out {
        check_is_no_input(out, &args.truth.inputs())?;
    }
    let file = args.out.as_ref().filter(|_| !to_stdout).map(target).transpose()?;
    let images = args.images.as_deref().map(read_list).transpose()?;
    let (project, run) = args.of.open(OpenMode::Read)?;
    check_is_predicted(&project, &run)?;
    let sample = if images.is_some() { None } else { review_sample(&project, &run)? };
    let view = match &sample {
        Some(sample) => sample.view.clone(),
        None => reviewed_view(&project, &run, args.min_score)?,
    };
    let least = view.min_score_for(run.card.stored_as());
    let min_score = args.min_score.unwrap_or(least);
    if min_score < least {
        bail!("the sample was drawn at score ≥ {least}; choose at least that, or draw another sample");
    }
    let control = interruptible(ProgressUnit::Images)?;
    let report = with_progress("Reading", &control, || -> anyhow::Result<ReviewReport> {
        // Predictions of files that have changed since count, as they do in the rest of the report.
        let evaluate = || {
            let samples = known_samples(&project, run.id, &[], &control)?;
            args.truth.evaluate(&args.of.s3, (&project, &run, &view), &samples, 0, &control)
        };
        let truth = args.truth.is_given().then(evaluate).transpose()?.map(|(_, boxes)| boxes);
        let review = RunReview {
            view: &view,
            min_score: Some(min_score),
            target_precision: args.target_precision,
            truth: truth.as_ref(),
            images: images.as_ref(),
        };
        control.begin(ProgressUnit::Images);
        Ok(report_of_run(&project, &run, review, &control)?)
    })?;
    for note in &report.notes {
        eprintln!("note: {note}");
    }
    let text = summary(&report);
    let json = serde_json::to_string_pretty(&report)? + "\n";
    match file {
        Some(file) => {
            file.commit_with(json.as_bytes()).context("Could not write the report")?;
            eprint!("{text}");
        }
        None if to_stdout => raw_stdout().write_all(json.as_bytes()).context("Could not write to stdout")?,
        None => stdout().write_all(text.as_bytes()).context("Could not write to stdout")?,
    }
    Ok(Outcome::AllWell)
}

fn read_list(path: &Path) -> anyhow::Result<ImageList> {
    let list = ImageList::in_file(path).with_context(|| format!("Could not read {}", path.display()))?;
    list.with_context(|| format!("this is not a list that `spotcheck sample` wrote: {}", path.display()))
}

/// The report for people.
fn summary(report: &ReviewReport) -> String {
    let mut lines = report.sentences();
    let scores = report.scores.iter().map(|row| (format!("score {:.1} to {:.1}", row.from, row.to), &row.part));
    let classes = report.classes.iter().map(|row| (row.class.clone(), &row.part));
    for (name, part) in scores.chain(classes).filter(|(_, part)| part.judged > 0) {
        lines.push(match (part.interval(), part.acceptance.text()) {
            (Some(precision), Some(accepted)) => {
                format!("{name}: precision {precision}, accepted {accepted}, from {}", part.verdicts())
            }
            _ => format!("{name}: no estimate ({})", part.reason()),
        });
    }
    let truth = report.classes.iter().filter_map(|row| Some((&row.class, row.truth?)));
    lines.extend(truth.map(|(class, truth)| format!("ground truth, {class}: agrees with {}", truth.text())));
    for row in report.corrections.iter().take(MAX_CORRECTIONS) {
        let total = row.estimated.map_or_else(String::new, |total| format!(" (about {total:.0} in total)"));
        lines.push(format!("{} -> {}: {}{total}", row.from, row.to, grouped(row.count)));
    }
    lines.extend(report.added.iter().map(|row| format!("missed {}: {}", row.class, grouped(row.count))));
    lines.push(String::new());
    lines.join("\n")
}
