//! `spotcheck evaluate`: measures predictions against ground truth.

mod outputs;
mod patterns;
mod sides;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::{ArgGroup, Args, ValueEnum};
use serde_json::Value;
use strum::VariantArray as _;

use super::Outcome;
use super::place::S3Args;
use super::terminal::{interruptible, stdout, with_progress};
use super::truth::{TruthArgs, print_doubts};
use super::values::{NmsIou, parse_nms_iou, parse_score};
use crate::annotations::matching::MatchSummary;
use crate::dirs::AppDirs;
use crate::domain::ModelTask;
use crate::evaluation::pipeline::{Extras, measure_all};
use crate::evaluation::{Counted, DRAWS, Evaluated, HIDDEN_MISTAKES, Metrics, Suspicious};
use crate::project::export::Existing;
use crate::review::SuspectOrder;
use crate::tasks::ProgressUnit;
use outputs::Outputs;
use sides::Opened;

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("ground_truth").args(["truth", "truth_names"]).required(true)))]
pub(crate) struct EvaluateArgs {
    /// Image folder or `s3://bucket/folder/` of a project; optional with --project or --predictions. Provides images
    /// for --report, and image sizes if boxes in --predictions are fractions
    #[arg(required_unless_present_any = ["project", "predictions"])]
    source: Option<PathBuf>,
    #[command(flatten)]
    truth: TruthArgs,
    /// Project file (`*.spotcheck`) with the predictions [default: the project of SOURCE in the data folder]
    #[arg(long, value_name = "FILE", conflicts_with = "predictions")]
    project: Option<PathBuf>,
    /// Run of the project, by name or number [default: the newest of a model]
    #[arg(long, value_name = "NAME", conflicts_with = "predictions")]
    run: Option<String>,
    /// Predictions from another tool instead of a project: a file or folder, local or in S3
    #[arg(long, value_name = "FILE|DIR")]
    predictions: Option<PathBuf>,
    /// Class names for --predictions with class numbers only: imagenet, coco-80, coco-91, cifar-10, or a label file
    #[arg(long, value_name = "NAME|FILE", requires = "predictions")]
    labels: Option<String>,
    /// IoU type; only boxes are supported
    #[arg(long, value_name = "TYPE", value_enum, default_value_t = IouType::Bbox)]
    iou_type: IouType,
    /// Minimum score for precision, recall, F1 and the confusion matrix [default: from the project, otherwise 0.5]
    #[arg(long, value_name = "SCORE", value_parser = parse_score::<f64>)]
    min_score: Option<f64>,
    /// NMS IoU threshold, or `off`; ignored with --predictions [default: from the project, otherwise from the model's
    /// card]
    #[arg(long, value_name = "IOU|off", value_parser = parse_nms_iou, conflicts_with = "predictions")]
    nms_iou: Option<NmsIou>,
    /// Bootstrap resamples for the 95% intervals; 0 omits the intervals
    #[arg(long, value_name = "COUNT", default_value_t = DRAWS)]
    draws: usize,
    /// Output file: all metrics (.json, or `-` for JSON on stdout) or one row per class (.csv); repeatable [default: a
    /// summary on stdout]
    #[arg(long, value_name = "FILE.json|FILE.csv")]
    out: Vec<PathBuf>,
    /// Exit with code 4 if a metric is below this minimum, for example `ap50=0.5` (names as in the JSON file); repeatable
    #[arg(long, value_name = "METRIC=MINIMUM", value_parser = Bound::parse)]
    fail_below: Vec<Bound>,
    /// Write each plot as SVG and PNG to this folder
    #[arg(long, value_name = "FOLDER")]
    plots: Option<PathBuf>,
    /// Write an HTML report with metrics, plots and the most confident errors, on images if SOURCE is given
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Write labels that may be wrong to this CSV file, ranked by the AP that a fix would gain
    #[arg(long, value_name = "FILE.csv")]
    suspicious_labels: Option<PathBuf>,
    /// Order of the suspicious labels: gain, score, mistakenness, label-quality, image-quality (detectors),
    /// normalized-margin or confident-learning (classifiers); docs/evaluating.md defines them [default: gain]
    #[arg(long, value_name = "ORDER", requires = "suspicious_labels", value_parser = parse_suspect_order)]
    suspicious_order: Option<SuspectOrder>,
    /// Write what goes wrong together to this JSON Lines file: groups of images (by class, folder, camera, time of day,
    /// size and embedding) in which an error is more frequent than by chance, with its q-value
    #[arg(long, value_name = "FILE.jsonl")]
    error_patterns: Option<PathBuf>,
    /// Search for patterns only in errors that this other run of the project does not make, by name or number
    #[arg(long, value_name = "RUN", requires = "error_patterns", conflicts_with = "predictions")]
    than: Option<String>,
    /// Replace existing files, or the folder of earlier plots
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    s3: S3Args,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum IouType {
    Bbox,
}

pub(crate) fn run(args: &EvaluateArgs) -> anyhow::Result<Outcome> {
    let IouType::Bbox = args.iou_type;
    let outputs = Outputs::from_args(args)?;
    let dirs = AppDirs::find()?;
    let control = interruptible(ProgressUnit::Bytes)?;
    let opened = with_progress("Reading", &control, || sides::read(args, &dirs, &control))?;
    let task = opened.sides.task;
    check(&args.fail_below, task)?;
    let order = args.suspicious_order.unwrap_or_default();
    check_order(order, task)?;
    if let Some(path) = &args.error_patterns {
        let existing = Existing::from_force(args.force);
        with_progress("Error patterns", &control, || patterns::write(path, existing, &opened, &control))?;
    }
    let Opened { sides, listed, .. } = opened;
    for note in &sides.notes {
        eprintln!("{note}");
    }
    print_doubts("", &sides.matching);
    let mut evaluated = with_progress("Evaluating", &control, || {
        let extras = Extras { draws: args.draws, suspicious: args.suspicious_labels.is_some(), ..Extras::default() };
        measure_all(sides, extras, &control)
    })?;
    if let Some(suspicious) = evaluated.suspicious.as_mut().map(Arc::make_mut) {
        sort_suspicious(suspicious, order);
    }
    let text = outputs::summary(&evaluated);
    outputs.write(&evaluated, listed.as_ref(), &control)?;
    if outputs.takes_stdout() {
        eprint!("{text}");
    } else {
        stdout().write_all(text.as_bytes()).context("Could not write to stdout")?;
    }
    let numbers = numbers(&evaluated)?;
    let violations = violations(&args.fail_below, |name| numbers[name].as_f64())?;
    for violation in &violations {
        eprintln!("{violation}");
    }
    if !violations.is_empty() {
        return Ok(Outcome::BelowBound);
    }
    Ok(if evaluated.is_complete() { Outcome::AllWell } else { Outcome::SomeImagesFailed })
}

fn parse_suspect_order(text: &str) -> Result<SuspectOrder, String> {
    text.parse().map_err(|_| {
        let known: Vec<&str> = SuspectOrder::VARIANTS.iter().map(SuspectOrder::into_str).collect();
        format!("unknown order; known ones: {}", known.join(", "))
    })
}

/// # Errors
/// The order has no numbers for this task.
fn check_order(order: SuspectOrder, task: ModelTask) -> anyhow::Result<()> {
    if !SuspectOrder::of_task(task).any(|known| known == order) {
        let known: Vec<&str> = SuspectOrder::of_task(task).map(|order| order.into_str()).collect();
        bail!("--suspicious-order {}: not for {}; use one of {}", order.into_str(), task.into_str(), known.join(", "));
    }
    Ok(())
}

/// Orders the labels, and prints how far they can be trusted.
fn sort_suspicious(suspicious: &mut Suspicious, order: SuspectOrder) {
    if order != SuspectOrder::Gain {
        suspicious.sort(order);
    }
    match &suspicious.training_sign {
        Some(sign) => eprintln!("warning: {sign}."),
        None => eprintln!("note: {HIDDEN_MISTAKES}."),
    }
    if let Some(note) = suspicious.incomplete_note() {
        eprintln!("note: {note}.");
    }
}

/// A metric by its name in the JSON file, and its bound.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bound {
    name: String,
    lowest: f64,
}

impl Bound {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// # Errors
    /// It is not of the form `ap50=0.5`, or neither task has the metric.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let parts = text.split_once('=').and_then(|(name, lowest)| Some((name, lowest.parse::<f64>().ok()?)));
        let (name, lowest) = parts
            .filter(|(name, lowest)| !name.is_empty() && lowest.is_finite())
            .ok_or_else(|| format!("“{text}” is not METRIC=MINIMUM, for example ap50=0.5"))?;
        let tasks = [ModelTask::Detection, ModelTask::Classification];
        if !tasks.into_iter().any(|task| metric_names(task).iter().any(|known| known == name)) {
            let [boxes, classes] = tasks.map(|task| metric_names(task).join(", "));
            return Err(format!("unknown metric “{name}”. Detection: {boxes}. Classification: {classes}"));
        }
        Ok(Self { name: name.to_owned(), lowest })
    }
}

/// The numbers in the JSON file of an evaluation.
fn metric_names(task: ModelTask) -> Vec<String> {
    let metrics = match task {
        ModelTask::Detection => Metrics::Detection { metrics: Box::default(), intervals: None },
        ModelTask::Classification => Metrics::Classification { metrics: Box::default(), intervals: None },
    };
    let (counted, matching, confident_errors) = (Counted::default(), MatchSummary::default(), Vec::new());
    let evaluated = Evaluated { metrics, counted, matching, confident_errors, suspicious: None };
    let Ok(Value::Object(fields)) = serde_json::to_value(evaluated) else {
        return Vec::new();
    };
    let is_number = |(name, value): &(String, Value)| {
        value.is_number() || (value.is_null() && !["best", "intervals"].contains(&name.as_str()))
    };
    fields.into_iter().filter(is_number).map(|(name, _)| name).collect()
}

/// # Errors
/// A metric is one of the other task.
pub(crate) fn check<'b>(bounds: impl IntoIterator<Item = &'b Bound>, task: ModelTask) -> anyhow::Result<()> {
    let known = metric_names(task);
    match bounds.into_iter().find(|bound| !known.contains(&bound.name)) {
        Some(Bound { name, .. }) => {
            bail!("--fail-below {name}: not a metric of {}. Its metrics: {}", task.into_str(), known.join(", "))
        }
        None => Ok(()),
    }
}

/// The metrics by their names in the JSON file.
pub(crate) fn numbers(evaluated: &Evaluated) -> anyhow::Result<Value> {
    serde_json::to_value(evaluated).context("Could not compare the metrics with --fail-below")
}

/// Whether a lower number is an improvement: errors, and images and predictions that could not be used.
pub(crate) fn is_lower_better(name: &str) -> bool {
    ["false_positives", "missed", "ece", "predictions_of_other_classes"].contains(&name) || name.starts_with("images_")
}

/// Returns a sentence for each number below its bound.
///
/// # Errors
/// The metric was not measured.
pub(crate) fn violations<'b>(
    bounds: impl IntoIterator<Item = &'b Bound>,
    number: impl Fn(&str) -> Option<f64>,
) -> anyhow::Result<Vec<String>> {
    let mut violations = Vec::new();
    for Bound { name, lowest } in bounds {
        match number(name) {
            Some(number) if number < *lowest => {
                violations.push(format!("{name} is {number}, below the minimum of {lowest}"));
            }
            Some(_) => {}
            None => bail!("--fail-below {name}: there is no data to compute this metric"),
        }
    }
    Ok(violations)
}
