//! `spotcheck review report`: what the verdicts say about the run.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;

use super::{ReviewedRun, reviewed_view, unit_words};
use crate::cli::Outcome;
use crate::cli::terminal::{interruptible, stdout, with_progress};
use crate::cli::values::parse_score;
use crate::domain::{RunInfo, counted, grouped};
use crate::project::OpenMode;
use crate::project::export::{Existing, ExportTarget, WholeFile, review_population, review_sample};
use crate::review::{Basis, Part, ReportRequest, ReviewReport, review_report};
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
    /// Write the report as JSON [default: a summary on stdout]
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
    let file = args.out.as_ref().map(target).transpose()?;
    let (project, run) = args.of.open(OpenMode::Read)?;
    let sample = review_sample(&project, &run)?;
    let view = match &sample {
        Some(sample) => sample.view.clone(),
        None => reviewed_view(&project, &run, args.min_score)?,
    };
    let least = view.min_score_for(run.card.task);
    let min_score = args.min_score.unwrap_or(least);
    if min_score < least {
        bail!("the sample was drawn at score ≥ {least}; choose at least that, or draw another sample");
    }
    let control = interruptible(ProgressUnit::Images)?;
    let population = with_progress("Reading", &control, || review_population(&project, &run, &view, &control))?;
    let request = ReportRequest {
        population: &population,
        labels: &run.labels,
        sample: sample.as_ref(),
        min_score,
        target_precision: args.target_precision,
    };
    let report = review_report(request);
    for note in &report.notes {
        eprintln!("note: {note}");
    }
    let text = summary(&report, &run);
    let Some(file) = file else {
        stdout().write_all(text.as_bytes()).context("Could not write to stdout")?;
        return Ok(Outcome::AllWell);
    };
    let json = serde_json::to_string_pretty(&report)? + "\n";
    file.commit_with(json.as_bytes()).context("Could not write the report")?;
    eprint!("{text}");
    Ok(Outcome::AllWell)
}

/// The report for people.
fn summary(report: &ReviewReport, run: &RunInfo) -> String {
    let (one, many) = unit_words(run);
    let total = &report.total;
    let basis = match report.basis {
        Basis::Sample => "sampled",
        Basis::Complete => "(all)",
        Basis::Judged => "judged, not a random sample",
    };
    let mut lines = vec![
        format!(
            "{} at score ≥ {:.2}, {} {basis}",
            counted(total.population, one, many),
            report.min_score,
            grouped(total.sampled)
        ),
        format!("verdicts: {}, unsure: {}", grouped(total.judged), grouped(total.unsure)),
        format!("precision: {}", describe(total)),
    ];
    if let (Some(rate), Some(low), Some(high)) = (report.acceptance.rate, report.acceptance.low, report.acceptance.high)
    {
        lines.push(format!("accepted without correction: {}", interval(rate, low, high)));
    }
    match report.more_for_one_percent {
        Some(0) => lines.push("the precision is known to ± 1%".to_owned()),
        Some(more) => lines.push(format!("± 1% needs {} more", counted(more, "verdict", "verdicts"))),
        None => {}
    }
    if let Some(target) = &report.target {
        lines.push(match (target.min_score, target.low, target.high) {
            (Some(score), Some(low), Some(high)) => format!(
                "precision {} is reached at score ≥ {score:.2} (95% interval there: {low:.3} to {high:.3})",
                target.precision
            ),
            _ => format!("no minimum score has precision {}", target.precision),
        });
    }
    let scores = report.scores.iter().map(|row| (format!("score {:.1} to {:.1}", row.from, row.to), &row.part));
    let classes = report.classes.iter().map(|row| (row.class.clone(), &row.part));
    let judged = scores.chain(classes).filter(|(_, part)| part.judged > 0);
    lines.extend(judged.map(|(name, part)| format!("{name}: {}", describe(part))));
    for row in report.corrections.iter().take(MAX_CORRECTIONS) {
        lines.push(format!("{} -> {}: {} (about {:.0} in total)", row.from, row.to, grouped(row.count), row.estimated));
    }
    lines.extend(report.added.iter().map(|row| format!("missed {}: {}", row.class, grouped(row.count))));
    lines.push(String::new());
    lines.join("\n")
}

fn describe(part: &Part) -> String {
    match (part.precision, part.low, part.high) {
        (Some(precision), Some(low), Some(high)) => {
            format!("{} from {}", interval(precision, low, high), counted(part.judged, "verdict", "verdicts"))
        }
        _ => "unknown, no verdicts yet".to_owned(),
    }
}

fn interval(share: f64, low: f64, high: f64) -> String {
    format!("{share:.3} (95% interval {low:.3} to {high:.3})")
}
