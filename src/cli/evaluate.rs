//! `spotcheck evaluate`: predictions against ground truth.

mod sides;
mod text;

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, ValueEnum};
use serde::Serialize;

use self::sides::{Counted, Sides};
use super::Outcome;
use super::out_file::{check_is_no_input, is_stdout};
use super::place::S3Args;
use super::progress::with_progress;
use super::terminal::{interruptible, stdout};
use super::values::{NmsIou, parse_nms_iou, parse_score};
use crate::dirs::AppDirs;
use crate::domain::ModelTask;
use crate::evaluation::{
    ClassificationEvaluation, ClassificationMetrics, DRAWS, DetectionDraws, DetectionEvaluation, DetectionIntervals,
    DetectionMetrics, Interval, intervals,
};
use crate::export::{Existing, ExportTarget, WholeFile};
use crate::tasks::{ProgressUnit, TaskControl};

#[derive(Debug, Args)]
pub(super) struct EvaluateArgs {
    /// Folder of images or `s3://bucket/folder/` of a project; optional with --project or --predictions
    #[arg(required_unless_present_any = ["project", "predictions"])]
    source: Option<PathBuf>,
    /// Ground truth: a file or folder, local or in S3. Its format is recognised by its content
    #[arg(long, value_name = "TRUTH")]
    truth: PathBuf,
    /// Project file (`*.spotcheck`) with the predictions; default: the project of SOURCE in the data folder
    #[arg(long, value_name = "FILE", conflicts_with = "predictions")]
    project: Option<PathBuf>,
    /// Run of the project, by name or number; default: the newest
    #[arg(long, value_name = "NAME", conflicts_with = "predictions")]
    run: Option<String>,
    /// Predictions made by another program, in place of a project: a file or folder, local or in S3
    #[arg(long, value_name = "FILE|DIR", conflicts_with = "source")]
    predictions: Option<PathBuf>,
    /// What is compared; only boxes can be
    #[arg(long, value_name = "TYPE", value_enum, default_value_t = IouType::Bbox)]
    iou_type: IouType,
    /// CSV file with corrections of the classes: `from,to` in each line, a class of the predictions and that of the
    /// ground truth
    #[arg(long, value_name = "FILE")]
    class_map: Option<PathBuf>,
    /// Minimum score for precision, recall, F1 and the confusion matrix; default: that of the project, otherwise 0.5
    #[arg(long, value_name = "SCORE", value_parser = parse_score)]
    min_score: Option<f32>,
    /// Overlap above which the worse of two boxes of one class is left out, as IoU, or `off`; default: from the
    /// project, otherwise as the model's card says. Predictions of another program are taken as they are
    #[arg(long, value_name = "IOU|off", value_parser = parse_nms_iou, conflicts_with = "predictions")]
    nms_iou: Option<NmsIou>,
    /// Draws of images for the 95 % intervals; 0 leaves them out
    #[arg(long, value_name = "COUNT", default_value_t = DRAWS)]
    draws: usize,
    /// Output file (.json) for all numbers, or `-` for stdout; default: a summary on stdout
    #[arg(long, value_name = "FILE.json")]
    out: Option<PathBuf>,
    /// Replace a file
    #[arg(long, requires = "out")]
    force: bool,
    #[command(flatten)]
    s3: S3Args,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum IouType {
    Bbox,
}

/// The numbers, and what they are about.
#[derive(Serialize)]
struct Evaluated {
    #[serde(flatten)]
    metrics: Metrics,
    #[serde(flatten)]
    counted: Counted,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Metrics {
    Detection {
        #[serde(flatten)]
        metrics: Box<DetectionMetrics>,
        /// 95 % intervals; `null` without draws.
        intervals: Option<DetectionIntervals>,
    },
    Classification {
        #[serde(flatten)]
        metrics: Box<ClassificationMetrics>,
        intervals: Option<ClassificationIntervals>,
    },
}

#[derive(Debug, Clone, Copy, Serialize)]
struct ClassificationIntervals {
    top1: Option<Interval>,
    top5: Option<Interval>,
}

pub(super) fn run(args: &EvaluateArgs) -> anyhow::Result<Outcome> {
    let IouType::Bbox = args.iou_type;
    if let Some(out) = args.out.as_deref().filter(|out| !is_stdout(out)) {
        let inputs = [
            ("the ground truth", Some(args.truth.as_path())),
            ("the predictions", args.predictions.as_deref()),
            ("the project", args.project.as_deref()),
            ("the corrections of the classes", args.class_map.as_deref()),
        ];
        check_is_no_input(out, &inputs)?;
    }
    let dirs = AppDirs::find()?;
    let control = interruptible(ProgressUnit::Bytes)?;
    let sides = with_progress("Reading", &control, || Sides::read(args, &dirs, &control))?;
    for note in &sides.notes {
        eprintln!("{note}");
    }
    let measuring = TaskControl::new(ProgressUnit::Images);
    let to_cancel = measuring.clone();
    let _hook = control.on_cancel(move || to_cancel.cancel());
    let evaluated = with_progress("Evaluating", &measuring, || measure(sides, args.draws, &measuring))?;
    let text = text::summary(&evaluated);
    match &args.out {
        None => stdout().write_all(text.as_bytes()).context("Could not write to stdout")?,
        Some(out) if is_stdout(out) => {
            let mut text = serde_json::to_string(&evaluated)?;
            text.push('\n');
            stdout().write_all(text.as_bytes()).context("Could not write to stdout")?;
        }
        Some(out) => {
            write_json(out, args.force, &evaluated).context("Could not write the metrics")?;
            eprint!("{text}");
        }
    }
    Ok(if evaluated.counted.is_complete() { Outcome::AllWell } else { Outcome::SomeImagesFailed })
}

fn write_json(out: &std::path::Path, replace: bool, evaluated: &Evaluated) -> anyhow::Result<()> {
    let existing = if replace { Existing::Replace } else { Existing::Keep };
    let mut file = WholeFile::create(&ExportTarget { path: out.to_owned(), existing })?;
    serde_json::to_writer(&mut file, evaluated)?;
    file.write_all(b"\n")?;
    file.commit()?;
    Ok(())
}

fn measure(sides: Sides, draws: usize, control: &TaskControl) -> anyhow::Result<Evaluated> {
    let Sides { task, classes, images, thresholds, counted, notes: _ } = sides;
    control.set_total(Some(images.len() as u64));
    let metrics = match task {
        ModelTask::Detection => {
            let mut evaluation = DetectionEvaluation::new(classes, thresholds.clone());
            let mut for_draws = DetectionDraws::new(thresholds);
            for image in images {
                control.checkpoint()?;
                evaluation.add(&image.objects);
                if draws > 0 {
                    for_draws.add(&image.objects);
                }
                control.add_done(1);
            }
            control.set_step("measuring");
            let metrics = evaluation.finish().map_err(anyhow::Error::msg).context("Could not measure the boxes")?;
            if draws > 0 {
                control.set_step("drawing images for the intervals");
            }
            let is_cancelled = || control.checkpoint().is_err();
            let intervals = (draws > 0).then(|| for_draws.intervals(draws, is_cancelled)).flatten();
            Metrics::Detection { metrics: Box::new(metrics), intervals }
        }
        ModelTask::Classification => {
            let mut evaluation = ClassificationEvaluation::new(classes);
            let mut hits = Vec::new();
            for image in images {
                control.checkpoint()?;
                let Some(truth) = image.truth_class else { continue };
                evaluation.add(truth, &image.classes);
                let is_within = |most: usize| image.classes.iter().take(most).any(|(class, _)| *class == truth);
                hits.push([is_within(1), is_within(5)]);
                control.add_done(1);
            }
            let metrics = evaluation.finish();
            let share = |times: &[u32]| {
                let share = |place: usize| {
                    let hits = hits.iter().zip(times).filter(|(hit, _)| hit[place]);
                    Some(hits.map(|(_, times)| f64::from(*times)).sum::<f64>() / times.len() as f64)
                };
                [share(0), share(1).filter(|_| metrics.top5.is_some())]
            };
            let is_cancelled = || control.checkpoint().is_err();
            let drawn = (draws > 0 && !hits.is_empty()).then(|| intervals(hits.len(), draws, share, is_cancelled));
            let intervals = drawn.flatten().map(|[top1, top5]| ClassificationIntervals { top1, top5 });
            Metrics::Classification { metrics: Box::new(metrics), intervals }
        }
    };
    control.checkpoint()?;
    Ok(Evaluated { metrics, counted })
}
