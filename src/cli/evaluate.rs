//! `spotcheck evaluate`: measures predictions against ground truth.

mod bounds;
mod outputs;
mod sides;
mod text;

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, ValueEnum};

use self::bounds::Bound;
use self::outputs::Outputs;
use super::Outcome;
use super::place::S3Args;
use super::progress::with_progress;
use super::terminal::{interruptible, stdout};
use super::values::{NmsIou, parse_nms_iou, parse_score};
use crate::dirs::AppDirs;
use crate::domain::NamePattern;
use crate::evaluation::DRAWS;
use crate::evaluation::pipeline::measure_all;
use crate::tasks::ProgressUnit;

#[derive(Debug, Args)]
pub(crate) struct EvaluateArgs {
    /// Image folder or `s3://bucket/folder/` of a project; optional with --project or --predictions. Provides images
    /// for --report, and image sizes if boxes in --predictions are fractions
    #[arg(required_unless_present_any = ["project", "predictions"])]
    source: Option<PathBuf>,
    /// Ground truth: a file or folder, local or in S3, in any format of docs/ground-truth.md; or a project file
    /// (`*.spotcheck`) with verdicts
    #[arg(long, value_name = "TRUTH", required_unless_present = "truth_names")]
    truth: Option<PathBuf>,
    /// Run whose verdicts are the ground truth, by name or number [default: the newest with verdicts]
    #[arg(long, value_name = "NAME", requires = "truth")]
    truth_run: Option<String>,
    /// Split of a `data.yaml` to read as ground truth: train, val or test [default: val]
    #[arg(long, value_name = "NAME", requires = "truth")]
    split: Option<String>,
    /// Treat --truth as ground truth even if it has scores
    #[arg(long, requires = "truth")]
    ignore_truth_scores: bool,
    /// Class names for ground truth with class numbers only: imagenet, coco-80, coco-91, cifar-10, a label file, or
    /// `model` for the predictions' classes in order, from 0
    #[arg(long, value_name = "NAME|FILE|model", requires = "truth")]
    truth_labels: Option<String>,
    /// Read ground-truth classes from image file names, for example `*_{class}.png` or `{class}-*`; `*` matches any
    /// text, `?` one character, and `{class}` as much as possible
    #[arg(long, value_name = "PATTERN", conflicts_with = "truth", value_parser = NamePattern::parse)]
    truth_names: Option<NamePattern>,
    /// Project file (`*.spotcheck`) with the predictions [default: the project of SOURCE in the data folder]
    #[arg(long, value_name = "FILE", conflicts_with = "predictions")]
    project: Option<PathBuf>,
    /// Run of the project, by name or number [default: the newest]
    #[arg(long, value_name = "NAME", conflicts_with = "predictions")]
    run: Option<String>,
    /// Predictions from another tool instead of a project: a file or folder, local or in S3
    #[arg(long, value_name = "FILE|DIR")]
    predictions: Option<PathBuf>,
    /// Class names for --predictions with class numbers only: imagenet, coco-80, coco-91, cifar-10, or a label file
    #[arg(long, value_name = "NAME|FILE", requires = "predictions")]
    labels: Option<String>,
    /// Match images by file name even if their folders differ
    #[arg(long)]
    ignore_folders: bool,
    /// IoU type; only boxes are supported
    #[arg(long, value_name = "TYPE", value_enum, default_value_t = IouType::Bbox)]
    iou_type: IouType,
    /// CSV file that maps predicted classes to ground-truth classes by name or number: one `from,to` per line; an empty
    /// `to` skips the class
    #[arg(long, value_name = "FILE")]
    class_map: Option<PathBuf>,
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
    let (sides, listed) = with_progress("Reading", &control, || sides::read(args, &dirs, &control))?;
    bounds::check(&args.fail_below, sides.task)?;
    for note in &sides.notes {
        eprintln!("{note}");
    }
    for doubt in &sides.matching.doubts {
        eprintln!("warning: {doubt}{}", text::advice(doubt));
    }
    let evaluated = with_progress("Evaluating", &control, || measure_all(sides, args.draws, &control))?;
    let text = text::summary(&evaluated);
    outputs.write(&evaluated, listed.as_ref(), &control)?;
    if outputs.takes_stdout() {
        eprint!("{text}");
    } else {
        stdout().write_all(text.as_bytes()).context("Could not write to stdout")?;
    }
    let violations = bounds::violations(&args.fail_below, &evaluated)?;
    for violation in &violations {
        eprintln!("{violation}");
    }
    if !violations.is_empty() {
        return Ok(Outcome::BelowBound);
    }
    Ok(if evaluated.is_complete() { Outcome::AllWell } else { Outcome::SomeImagesFailed })
}
