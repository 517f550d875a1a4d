//! `spotcheck evaluate`: predictions against ground truth.

mod bounds;
mod outputs;
mod sides;
mod sizes;
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
use crate::evaluate::measure_all;
use crate::evaluation::DRAWS;
use crate::tasks::ProgressUnit;

#[derive(Debug, Args)]
pub(super) struct EvaluateArgs {
    /// Folder of images or `s3://bucket/folder/` of a project; optional with --project or --predictions. It gives the
    /// images of --report, and the sizes for boxes of --predictions that are fractions
    #[arg(required_unless_present_any = ["project", "predictions"])]
    source: Option<PathBuf>,
    /// Ground truth: a file or folder, local or in S3, whose format is recognised by its content; or a project file
    /// (`*.spotcheck`), for the verdicts in it
    #[arg(long, value_name = "TRUTH", required_unless_present = "truth_names")]
    truth: Option<PathBuf>,
    /// Run whose verdicts are the ground truth, by name or number; default: the newest with verdicts
    #[arg(long, value_name = "NAME", requires = "truth")]
    truth_run: Option<String>,
    /// Split to read of a `data.yaml` as ground truth: train, val or test; default: val
    #[arg(long, value_name = "NAME", requires = "truth")]
    split: Option<String>,
    /// Treat --truth as ground truth although it has scores
    #[arg(long, requires = "truth")]
    ignore_truth_scores: bool,
    /// Class names for ground truth that only numbers its classes: imagenet, coco-80, coco-91, cifar-10, a label file,
    /// or `model` for the classes of the predictions in their order, counted from 0
    #[arg(long, value_name = "NAME|FILE|model", requires = "truth")]
    truth_labels: Option<String>,
    /// Ground truth in the names of the image files: where the class is, for example `*_{class}.png` or `{class}-*`;
    /// `*` is any text, `?` one character, and the class is as long as the pattern allows
    #[arg(long, value_name = "PATTERN", conflicts_with = "truth", value_parser = NamePattern::parse)]
    truth_names: Option<NamePattern>,
    /// Project file (`*.spotcheck`) with the predictions; default: the project of SOURCE in the data folder
    #[arg(long, value_name = "FILE", conflicts_with = "predictions")]
    project: Option<PathBuf>,
    /// Run of the project, by name or number; default: the newest
    #[arg(long, value_name = "NAME", conflicts_with = "predictions")]
    run: Option<String>,
    /// Predictions made by another program, in place of a project: a file or folder, local or in S3
    #[arg(long, value_name = "FILE|DIR")]
    predictions: Option<PathBuf>,
    /// Class names for --predictions that only number their classes: imagenet, coco-80, coco-91, cifar-10, or a label
    /// file
    #[arg(long, value_name = "NAME|FILE", requires = "predictions")]
    labels: Option<String>,
    /// Match images by file name even if none of their folders agrees
    #[arg(long)]
    ignore_folders: bool,
    /// What is compared; only boxes can be
    #[arg(long, value_name = "TYPE", value_enum, default_value_t = IouType::Bbox)]
    iou_type: IouType,
    /// CSV file with corrections of the classes: `from,to` in each line, a class of the predictions and that of the
    /// ground truth
    #[arg(long, value_name = "FILE")]
    class_map: Option<PathBuf>,
    /// Minimum score for precision, recall, F1 and the confusion matrix; default: that of the project, otherwise 0.5
    #[arg(long, value_name = "SCORE", value_parser = parse_score::<f64>)]
    min_score: Option<f64>,
    /// Overlap above which the worse of two boxes of one class is left out, as IoU, or `off`; default: from the
    /// project, otherwise as the model's card says. Predictions of another program are taken as they are
    #[arg(long, value_name = "IOU|off", value_parser = parse_nms_iou, conflicts_with = "predictions")]
    nms_iou: Option<NmsIou>,
    /// Random draws of images for the 95 % intervals; 0 leaves them out
    #[arg(long, value_name = "COUNT", default_value_t = DRAWS)]
    draws: usize,
    /// Output file: all numbers (.json, or `-` for JSON on stdout) or a table of the classes (.csv); may be given
    /// several times. Default: a summary on stdout
    #[arg(long, value_name = "FILE.json|FILE.csv")]
    out: Vec<PathBuf>,
    /// End with exit code 4 if a number is lower than this bound, for example `ap50=0.5` (names as in the JSON file);
    /// may be given several times
    #[arg(long, value_name = "NAME=BOUND", value_parser = Bound::parse)]
    fail_below: Vec<Bound>,
    /// Output folder for the plots, each as SVG and PNG
    #[arg(long, value_name = "FOLDER")]
    plots: Option<PathBuf>,
    /// Output file for an HTML page with numbers, plots and the most confident errors; with SOURCE also their images
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Replace existing files, and a folder of earlier plots
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    s3: S3Args,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum IouType {
    Bbox,
}

pub(super) fn run(args: &EvaluateArgs) -> anyhow::Result<Outcome> {
    let IouType::Bbox = args.iou_type;
    let outputs = Outputs::of(args)?;
    let dirs = AppDirs::find()?;
    let control = interruptible(ProgressUnit::Bytes)?;
    let (sides, listed) = with_progress("Reading", &control, || sides::read(args, &dirs, &control))?;
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
