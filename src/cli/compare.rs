//! `spotcheck compare`: how far two runs of a project agree on the same images.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Args;

use super::Outcome;
use super::evaluate::{self, Bound};
use super::place::S3Args;
use super::stored::{find_run, list_of_runs, open_project, open_source, source_name, stored_view};
use super::terminal::with_progress;
use super::truth::{TruthArgs, names_of_run, print_doubts, problem_notes, with_advice};
use super::values::{NmsIou, parse_nms_iou};
use crate::annotations::matching::MatchRules;
use crate::cli::out_file::check_is_new;
use crate::cli::terminal::{interruptible, stdout};
use crate::dirs::AppDirs;
use crate::domain::{ModelTask, RunInfo, Sample, ViewSettings, counted, grouped};
use crate::evaluation::pipeline::{Extras, RunSide, measure_all, run_sides};
use crate::evaluation::{AgreementSummary, Evaluated, Metrics, class_gains};
use crate::image::source::{Source, for_task};
use crate::project::export::options::ComparisonFormat;
use crate::project::export::{
    ComparisonContext, Existing, ExportTarget, compare_runs, export_comparison, follow_listing, stored_sample,
    summary_path,
};
use crate::project::{PredictionPair, Project, prediction_pairs};
use crate::tasks::{ProgressUnit, TaskControl};

/// The number of class changes listed in the terminal.
const MAX_CLASS_CHANGES: usize = 20;
/// The number of classes with the greatest losses, and with the greatest gains, listed in the terminal.
const MAX_CLASSES: usize = 5;

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Project file (`*.spotcheck`), or the image folder or `s3://bucket/folder/` of a project in the data folder
    project: PathBuf,
    /// Runs to compare, by name or number; optional if the project has only two
    #[arg(long, num_args = 2, value_names = ["A", "B"])]
    runs: Vec<String>,
    /// Exit with code 4 if a number is below this minimum: the fraction of images that agree (`agreement=0.98`), or with
    /// --truth the improvement of a metric from B to A (`ap=-0.01`; names as in the JSON file of `evaluate`). Where
    /// lower is better (`missed`), the improvement is the decrease; repeatable
    #[arg(long, value_name = "NAME=MINIMUM", value_parser = Gate::parse)]
    fail_below: Vec<Gate>,
    #[command(flatten)]
    holding: RunPairArgs,
}

/// A bound on the agreement, or on the change of a metric.
#[derive(Debug, Clone)]
enum Gate {
    Agreement(f64),
    Change(Bound),
}

impl Gate {
    fn parse(text: &str) -> Result<Self, String> {
        match text.strip_prefix("agreement=") {
            Some(minimum) => super::values::parse_score(minimum).map(Self::Agreement),
            None => Bound::parse(text).map(Self::Change),
        }
    }
}

/// The comparison of two runs: thresholds and output.
#[derive(Debug, Args)]
pub(crate) struct RunPairArgs {
    /// Write the summary and each image's differences to this file (.json or .csv), or a report (.html) [default: a
    /// summary on stdout]
    #[arg(long, value_name = "FILE.json|FILE.csv|FILE.html", value_parser = parse_out)]
    out: Option<OutFile>,
    /// Replace an existing file
    #[arg(long, requires = "out")]
    force: bool,
    /// Minimum score of compared boxes [default: the project's thresholds]
    #[arg(long, value_parser = super::values::parse_score::<f32>)]
    min_score: Option<f32>,
    /// NMS IoU threshold, or `off` [default: from the project, otherwise from each model's card]
    #[arg(long, value_name = "IOU|off", value_parser = parse_nms_iou)]
    nms_iou: Option<NmsIou>,
    #[command(flatten)]
    truth: TruthArgs,
    #[command(flatten)]
    s3: S3Args,
}

impl RunPairArgs {
    pub(crate) fn s3(&self) -> &S3Args {
        &self.s3
    }
}

#[derive(Debug, Clone)]
struct OutFile {
    path: PathBuf,
    format: ComparisonFormat,
}

fn parse_out(text: &str) -> Result<OutFile, String> {
    let path = PathBuf::from(text);
    let end = path.extension().map(|end| end.to_string_lossy().to_lowercase());
    let format = end.unwrap_or_default().parse();
    let format = format.map_err(|_| "the name ends in .json, .csv or .html".to_owned())?;
    Ok(OutFile { path, format })
}

pub(crate) fn run(args: &CompareArgs) -> anyhow::Result<Outcome> {
    let dirs = AppDirs::find()?;
    let project = open_project(&args.project, &args.holding.s3, &dirs, "spotcheck compare")?;
    let runs = choose_runs(&project, &args.runs)?;
    let changes = || {
        args.fail_below.iter().filter_map(|gate| match gate {
            Gate::Agreement(_) => None,
            Gate::Change(bound) => Some(bound),
        })
    };
    if let Some(bound) = changes().next().filter(|_| !args.holding.truth.is_given()) {
        bail!("--fail-below {}: to compare this metric, add ground truth with --truth", bound.name());
    }
    evaluate::check(changes(), runs[0].card.must_predict()?)?;
    let held = hold(&project, runs, &args.holding, |_| {})?;
    print_note(&args.holding, &held.text)?;
    let mut violations = Vec::new();
    for gate in &args.fail_below {
        if let Gate::Agreement(minimum) = gate {
            violations.extend(too_low(held.summary.rate(), *minimum));
        }
    }
    if let Some([a, b]) = &held.evaluated {
        let (a, b) = (evaluate::numbers(a)?, evaluate::numbers(b)?);
        let improvement = |name: &str| {
            let [a, b] = [a[name].as_f64()?, b[name].as_f64()?];
            Some(rounded(if evaluate::is_lower_better(name) { b - a } else { a - b }))
        };
        let worse = evaluate::violations(changes(), improvement)?;
        violations.extend(worse.into_iter().map(|text| format!("improvement of {text}")));
    }
    for violation in &violations {
        eprintln!("{violation}");
    }
    if !violations.is_empty() {
        return Ok(Outcome::BelowBound);
    }
    let is_complete = held.evaluated.iter().flatten().all(|run| run.is_complete());
    Ok(if is_complete { Outcome::AllWell } else { Outcome::SomeImagesFailed })
}

fn too_low(rate: Option<f64>, minimum: f64) -> Option<String> {
    match rate {
        Some(rate) if rate >= minimum => None,
        Some(rate) => Some(format!("agreement {rate:.4} is below {minimum}")),
        None => Some("agreement cannot be measured: the runs have no images in common".to_owned()),
    }
}

/// Without the error of subtracting decimal numbers.
fn rounded(change: f64) -> f64 {
    (change * 1e12).round() / 1e12
}

/// A finished comparison.
pub(crate) struct Held {
    summary: AgreementSummary,
    /// Both runs against the ground truth, if there is any.
    evaluated: Option<[Arc<Evaluated>; 2]>,
    pub(crate) text: String,
}

/// Compares two runs, measures them if there is ground truth, and writes the output file. `see` receives both
/// predictions for each image.
pub(crate) fn hold(
    project: &Project,
    runs: [RunInfo; 2],
    args: &RunPairArgs,
    see: impl FnMut(&PredictionPair),
) -> anyhow::Result<Held> {
    check_outputs(args)?;
    let [a, b] = &runs;
    let [task, other_task] = [a.card.must_predict()?, b.card.must_predict()?];
    if task != other_task {
        bail!(
            "“{}” is a {}, “{}” a {}: only runs of the same kind can be compared; {}",
            a.name,
            task.into_str(),
            b.name,
            other_task.into_str(),
            comparable(&project.runs()?)
        );
    }
    let mut views = [stored_view(project, a)?, stored_view(project, b)?];
    if let Some(min_score) = args.min_score {
        for view in &mut views {
            view.min_score = min_score;
            view.min_score_by_class.clear();
        }
    }
    if let Some(NmsIou(iou)) = args.nms_iou {
        for view in &mut views {
            view.nms_iou = iou;
        }
    }
    let control = interruptible(ProgressUnit::Images)?;
    let evaluated = if args.truth.is_given() {
        Some(with_progress("Evaluating", &control, || measure(project, &runs, &views, args, &control))?)
    } else {
        None
    };
    control.begin(ProgressUnit::Images);
    let source = open_source(project, &args.s3, &control)?;
    let source = for_task(&source, &control);
    let context = ComparisonContext { runs, views, source_name: source_name(project), evaluated };
    let summary =
        with_progress("Comparing", &control, || compare(project.clone(), &*source, &context, args, see, &control))?;
    let mut text = summary_text(&context, &summary);
    if let Some(evaluated) = &context.evaluated {
        text.push_str(&truth_text(evaluated));
    }
    Ok(Held { summary, evaluated: context.evaluated, text })
}

/// # Errors
/// An output file exists.
fn check_outputs(args: &RunPairArgs) -> anyhow::Result<()> {
    if let Some(OutFile { path, format }) = &args.out {
        check_is_new(path, args.force)?;
        if *format == ComparisonFormat::Csv {
            check_is_new(&summary_path(path), args.force)?;
        }
    }
    Ok(())
}

/// Both runs against the ground truth of the arguments.
fn measure(
    project: &Project,
    runs: &[RunInfo; 2],
    views: &[ViewSettings; 2],
    args: &RunPairArgs,
    control: &TaskControl,
) -> anyhow::Result<[Arc<Evaluated>; 2]> {
    let (dirs, corrections) = (AppDirs::find()?, args.truth.corrections()?);
    let rules = MatchRules { corrections: &corrections, folders: args.truth.folders() };
    let names = || names_of_run(project, &runs[0], control);
    let truth = args.truth.read(&args.s3, &dirs, control, names, || runs[0].labels.clone())?;
    for note in problem_notes(&truth.problems) {
        eprintln!("{note}");
    }
    let measured = |at: usize, letter: &str| {
        let side = RunSide { project, run: &runs[at], view: &views[at], listed: None };
        let sides = run_sides(&truth, &side, rules, control).map_err(with_advice)?;
        for note in &sides.notes {
            eprintln!("{letter}: {note}");
        }
        print_doubts(&format!("{letter}: "), &sides.matching);
        anyhow::Ok(Arc::new(measure_all(sides, Extras::default(), control)?))
    };
    Ok([measured(0, "A")?, measured(1, "B")?])
}

/// The main metrics of both runs, and the classes that gain or lose most.
fn truth_text([a, b]: &[Arc<Evaluated>; 2]) -> String {
    let decimals = |number: Option<f64>| number.map_or_else(|| "–".to_owned(), |number| format!("{number:.3}"));
    let signed = |number: Option<f64>| number.map_or_else(|| "–".to_owned(), |number| format!("{number:+.3}"));
    let rows = |evaluated: &Evaluated| match &evaluated.metrics {
        Metrics::Detection { metrics, .. } => vec![
            ("AP", metrics.ap),
            ("AP50", metrics.ap50),
            ("precision", metrics.precision),
            ("recall", metrics.recall),
            ("F1", metrics.f1),
        ],
        Metrics::Classification { metrics, .. } => vec![("top-1", metrics.top1), ("top-5", metrics.top5)],
    };
    let mut lines = vec![format!("against {}: A, B, A - B", a.counted.truth)];
    for ((name, of_a), (_, of_b)) in rows(a).into_iter().zip(rows(b)) {
        let change = of_a.zip(of_b).map(|(a, b)| a - b);
        lines.push(format!("{name}: {}, {}, {}", decimals(of_a), decimals(of_b), signed(change)));
    }
    let gains = class_gains([&a.metrics, &b.metrics]);
    let losses = gains.iter().take(MAX_CLASSES).filter(|row| row.gain.is_some_and(|gain| gain < 0.0));
    let wins = gains.iter().filter(|row| row.gain.is_some_and(|gain| gain > 0.0)).rev().take(MAX_CLASSES);
    for row in losses.chain(wins) {
        let measure = a.metrics.class_measure();
        let name = &row.class.name;
        lines.push(format!("{measure} of {name}: {}, {}, {}", decimals(row.a), decimals(row.b), signed(row.gain)));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// Prints to stdout, or to stderr if the result goes to a file.
pub(crate) fn print_note(args: &RunPairArgs, text: &str) -> anyhow::Result<()> {
    if args.out.is_some() {
        eprint!("{text}");
    } else {
        stdout().write_all(text.as_bytes()).context("Could not write to stdout")?;
    }
    Ok(())
}

fn choose_runs(project: &Project, wanted: &[String]) -> anyhow::Result<[RunInfo; 2]> {
    let mut runs = project.runs()?;
    if let [a, b] = wanted {
        let chosen = [find_run(&runs, a)?, find_run(&runs, b)?];
        if chosen[0].id == chosen[1].id {
            bail!("“{a}” and “{b}” are the same run; choose two");
        }
        if let Some(error) = chosen.iter().find_map(|run| run.card.must_predict().err()) {
            bail!("{error}. To compare predictions, {}", comparable(&runs));
        }
        return Ok(chosen);
    }
    runs.retain(|run| !run.card.is_encoder());
    if runs.len() < 2 {
        bail!(
            "the project has {} with predictions, and a comparison needs two; add one with `spotcheck predict --project`",
            counted(runs.len(), "run", "runs")
        );
    }
    <[RunInfo; 2]>::try_from(runs)
        .map_err(|runs| anyhow::anyhow!("Choose two runs with --runs A B. Runs of the project:{}", list_of_runs(&runs)))
}

/// The comparable runs, as a list.
fn comparable(runs: &[RunInfo]) -> String {
    let mut kinds = Vec::new();
    for task in [ModelTask::Classification, ModelTask::Detection] {
        let of_kind = runs.iter().filter(|run| run.card.task == task.into()).cloned();
        let of_kind: Vec<RunInfo> = of_kind.collect();
        if of_kind.len() > 1 {
            kinds.push(format!("{}:{}", task.into_str(), list_of_runs(&of_kind)));
        }
    }
    if kinds.is_empty() {
        return "predict with another model of the same kind: the project does not have two such runs yet".to_owned();
    }
    format!("choose two of the same kind with --runs A B. {}", kinds.join("\n"))
}

fn compare(
    project: Project,
    source: &dyn Source,
    context: &ComparisonContext,
    args: &RunPairArgs,
    mut see: impl FnMut(&PredictionPair),
    control: &TaskControl,
) -> anyhow::Result<AgreementSummary> {
    control.set_step("project");
    let runs = context.runs.each_ref().map(|run| run.id);
    let mut stored = BTreeMap::new();
    for run in runs {
        for (uri, known) in project.stamps(run)? {
            stored.entry(uri).or_insert(known.stamp);
        }
    }
    let samples = stored.into_iter().map(|(uri, stamp)| stored_sample(&project, uri, stamp));
    let mut samples: Vec<Sample> = samples.collect();
    follow_listing(&mut samples, source);
    control.set_step("");
    control.set_total(Some(samples.len() as u64));
    let pairs = prediction_pairs(project, runs, samples.into_iter());
    let pairs = pairs.inspect(|pair| {
        if let Ok(pair) = pair {
            see(pair);
        }
    });
    let Some(out) = &args.out else {
        return Ok(compare_runs(context.comparison(), pairs, control, |_, _| anyhow::Ok(()))?.summary);
    };
    let target = ExportTarget { path: out.path.clone(), existing: Existing::from_force(args.force) };
    let report = export_comparison(pairs, context, out.format, &target, control);
    let report = report.context("Could not export the comparison")?;
    eprintln!("{report}");
    Ok(report.summary)
}

fn summary_text(context: &ComparisonContext, summary: &AgreementSummary) -> String {
    let [a, b] = &context.runs;
    let mut lines = vec![format!("A: {}", a.name), format!("B: {}", b.name)];
    match summary.rate() {
        None => lines.push("the runs have no images in common".to_owned()),
        Some(rate) => {
            let what = match context.task() {
                ModelTask::Classification => "same top class",
                ModelTask::Detection => "same boxes (IoU ≥ 0.5)",
            };
            lines.push(format!(
                "{:.1}% agreement: {what} in {} of {}",
                rate * 100.0,
                grouped(summary.agreeing),
                counted(summary.compared, "image", "images")
            ));
        }
    }
    if context.task() == ModelTask::Detection {
        lines.push(format!(
            "{} matched, {} only in A, {} only in B",
            counted(summary.matched, "box", "boxes"),
            grouped(summary.only_left),
            grouped(summary.only_right)
        ));
    }
    lines.extend(summary.differences.text(context.task()));
    let alone = [("A", summary.predicted_only_left), ("B", summary.predicted_only_right)];
    for (letter, count) in alone.into_iter().filter(|(_, count)| *count > 0) {
        lines.push(format!("predicted by {letter} only: {}", grouped(count)));
    }
    for change in summary.confusion.iter().take(MAX_CLASS_CHANGES) {
        let (from, to) = (a.labels.name(change.left), b.labels.name(change.right));
        lines.push(format!("{from} -> {to}: {}", grouped(change.count)));
    }
    let more = summary.confusion.len().saturating_sub(MAX_CLASS_CHANGES);
    if more > 0 {
        lines.push(format!("and {}", counted(more, "more class change", "more class changes")));
    }
    lines.push(String::new());
    lines.join("\n")
}
