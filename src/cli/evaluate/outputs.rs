//! The outputs of `evaluate`: its summary in the terminal, and files.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::EvaluateArgs;
use super::sides::Listing;
use crate::cli::out_file::{check_is_new, check_is_no_input, is_stdout};
use crate::cli::terminal::stdout;
use crate::domain::{counted, grouped, min_score_text, score_text, visible};
use crate::evaluation::{
    ClassMetrics, ClassificationIntervals, ClassificationMetrics, ClassifiedClass, DetectionIntervals,
    DetectionMetrics, Evaluated, Interval, Metrics,
};
use crate::image::decode::DecodeLimits;
use crate::project::export::options::EvaluationFormat;
use crate::project::export::{EvaluatedImages, Existing, ExportTarget, write_evaluation};
use crate::tasks::TaskControl;

/// The files and folders, checked before anything is read.
pub(crate) struct Outputs {
    /// `None`: JSON on stdout.
    files: Vec<(Option<EvaluationFormat>, PathBuf)>,
    existing: Existing,
}

/// The format of an `--out`.
fn format_of(out: &Path) -> anyhow::Result<Option<EvaluationFormat>> {
    let extension = out.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    Ok(match extension.as_deref() {
        _ if is_stdout(out) => None,
        Some("json") => Some(EvaluationFormat::Json),
        Some("csv") => Some(EvaluationFormat::Csv),
        _ => bail!(
            "the name of --out must end in .json (all metrics) or .csv (one row per class), not: {}",
            out.display()
        ),
    })
}

impl Outputs {
    /// # Errors
    /// A file would overwrite an input or another output, or exists.
    pub(crate) fn from_args(args: &EvaluateArgs) -> anyhow::Result<Self> {
        let [truth, class_map] = args.truth.inputs();
        let inputs = [
            truth,
            class_map,
            ("the predictions", args.predictions.as_deref()),
            ("the project", args.project.as_deref()),
        ];
        let mut seen: Vec<&Path> = Vec::new();
        let files = args.out.iter().chain(&args.plots).chain(&args.report).chain(&args.suspicious_labels);
        for out in files.chain(&args.error_patterns).map(PathBuf::as_path) {
            if seen.contains(&out) {
                bail!("two outputs have the same name: {}", out.display());
            }
            seen.push(out);
            if is_stdout(out) {
                continue;
            }
            check_is_no_input(out, &inputs)?;
            check_is_new(out, args.force)?;
        }
        let mut files = Vec::new();
        for out in &args.out {
            files.push((format_of(out)?, out.clone()));
        }
        files.extend(args.plots.iter().map(|path| (Some(EvaluationFormat::Plots), path.clone())));
        files.extend(args.report.iter().map(|path| (Some(EvaluationFormat::Report), path.clone())));
        if let Some(path) = &args.suspicious_labels {
            files.push((Some(EvaluationFormat::SuspiciousLabels), path.clone()));
        }
        Ok(Self { files, existing: Existing::from_force(args.force) })
    }

    /// Whether the summary must not go to stdout.
    pub(crate) fn takes_stdout(&self) -> bool {
        self.files.iter().any(|(format, _)| format.is_none())
    }

    /// `listed`: the images, if known.
    pub(crate) fn write(
        &self,
        evaluated: &Evaluated,
        listed: Option<&Listing>,
        control: &TaskControl,
    ) -> anyhow::Result<()> {
        let limits = DecodeLimits::default();
        let images = listed.map(|(source, samples)| EvaluatedImages {
            source: &**source,
            samples: samples.iter().map(|sample| (sample.name.as_str(), &sample.uri)).collect(),
            limits: &limits,
        });
        for (format, path) in &self.files {
            let Some(format) = *format else {
                let text = serde_json::to_string(evaluated)? + "\n";
                stdout().write_all(text.as_bytes()).context("Could not write to stdout")?;
                continue;
            };
            let target = ExportTarget { path: path.clone(), existing: self.existing };
            let failure = match format {
                EvaluationFormat::Json => "Could not write the metrics",
                EvaluationFormat::Csv => "Could not write the class table",
                EvaluationFormat::Plots => "Could not write the plots",
                EvaluationFormat::Report => "Could not write the report",
                EvaluationFormat::SuspiciousLabels => "Could not write the suspicious labels",
            };
            let written = write_evaluation(evaluated, format, images.as_ref(), &target, control).context(failure)?;
            if format == EvaluationFormat::Plots {
                let plots = &written.plots;
                eprintln!("Plots: {}", if plots.is_empty() { "none (no data)".to_owned() } else { plots.join(", ") });
            }
            for problem in written.problems {
                eprintln!("{problem}");
            }
        }
        Ok(())
    }
}

/// The number of classes listed.
const MAX_CLASSES: usize = 20;

pub(crate) fn summary(evaluated: &Evaluated) -> String {
    let has_intervals = match &evaluated.metrics {
        Metrics::Detection { intervals, .. } => intervals.is_some(),
        Metrics::Classification { intervals, .. } => intervals.is_some(),
    };
    let text = format!("Matched: {}\n", evaluated.matching.text());
    let mut rows = Rows { text, has_intervals, lacks_interval: false };
    match &evaluated.metrics {
        Metrics::Detection { metrics, intervals } => detection(&mut rows, metrics, &intervals.unwrap_or_default()),
        Metrics::Classification { metrics, intervals } => classification(&mut rows, metrics, intervals.as_ref()),
    }
    for (count, what) in evaluated.counted.texts() {
        let _ = writeln!(rows.text, "{} {what}", grouped(count));
    }
    if let Some(suspicious) = &evaluated.suspicious {
        let found = counted(suspicious.labels.len(), "suspicious label", "suspicious labels");
        let more = match suspicious.left_out {
            0 => String::new(),
            left_out => format!("; {} with a lower score are not listed", grouped(left_out)),
        };
        let _ = writeln!(rows.text, "{found}{more}");
    }
    rows.text
}

fn detection(rows: &mut Rows, metrics: &DetectionMetrics, intervals: &DetectionIntervals) {
    rows.with_interval("AP (IoU 0.50:0.95)", metrics.ap, intervals.ap);
    rows.with_interval("AP (IoU 0.50)", metrics.ap50, intervals.ap50);
    rows.with_interval("AP (IoU 0.75)", metrics.ap75, intervals.ap75);
    rows.plain("AP of small objects", metrics.ap_small);
    rows.plain("AP of medium objects", metrics.ap_medium);
    rows.plain("AP of large objects", metrics.ap_large);
    rows.with_interval("AR with 100 detections", metrics.ar100, intervals.ar100);
    let at = metrics.threshold.map_or("per-class minimum".to_owned(), |score| format!("≥ {}", score_text(score)));
    rows.with_interval(&format!("Precision ({at})"), metrics.precision, intervals.precision);
    rows.with_interval(&format!("Recall ({at})"), metrics.recall, intervals.recall);
    rows.with_interval(&format!("F1 ({at})"), metrics.f1, intervals.f1);
    if let Some(best) = metrics.best {
        rows.plain(&format!("Best F1 (≥ {})", min_score_text(best.threshold)), Some(best.f1));
    }
    rows.explain_lacking_interval();
    let _ = writeln!(
        rows.text,
        "{}: {}, {}, {}",
        images(metrics.images),
        counted(metrics.true_positives, "true positive", "true positives"),
        counted(metrics.false_positives, "false positive", "false positives"),
        counted(metrics.false_negatives, "false negative", "false negatives")
    );
    for (kind, error) in &metrics.errors {
        let cost = percent(Some(error.ap50_cost));
        let plural = if error.count == 1 { "error" } else { "errors" };
        let count = grouped(error.count);
        let _ = writeln!(rows.text, "  {kind:<12}{count:>8} {plural}, AP50 cost: {cost}");
    }
    let occurring: Vec<&ClassMetrics> = metrics.classes.iter().filter(|class| class.truths > 0).collect();
    classes(&mut rows.text, &occurring, |class: &&ClassMetrics| {
        let name = visible(&class.class.name);
        let (ap, ap50) = (percent(class.ap), percent(class.ap50));
        format!("  {name}: AP {ap}, AP (IoU 0.50) {ap50}, {}", objects(class.truths))
    });
}

fn classification(rows: &mut Rows, metrics: &ClassificationMetrics, intervals: Option<&ClassificationIntervals>) {
    rows.with_interval("Top-1", metrics.top1, intervals.and_then(|intervals| intervals.top1));
    rows.with_interval("Top-5", metrics.top5, intervals.and_then(|intervals| intervals.top5));
    rows.plain("Precision (macro average)", metrics.macro_precision);
    rows.plain("Recall (macro average)", metrics.macro_recall);
    rows.plain("F1 (macro average)", metrics.macro_f1);
    rows.plain(&format!("Calibration error ({} bins)", metrics.ece_bins), metrics.ece);
    rows.explain_lacking_interval();
    if rows.has_intervals {
        rows.text.push_str("95% CI: only for top-1 and top-5, which are fractions of images\n");
    }
    let _ = writeln!(rows.text, "{}", images(metrics.images));
    let occurring: Vec<&ClassifiedClass> =
        metrics.classes.iter().filter(|class| class.truths + class.predictions > 0).collect();
    classes(&mut rows.text, &occurring, |class: &&ClassifiedClass| {
        let name = visible(&class.class.name);
        let (precision, recall) = (percent(class.precision), percent(class.recall));
        format!("  {name}: precision {precision}, recall {recall}, {}", images(class.truths))
    });
}

/// The rows of metrics, with a column of intervals.
struct Rows {
    text: String,
    has_intervals: bool,
    /// Whether a metric should have an interval, but some resamples could not measure it.
    lacks_interval: bool,
}

impl Rows {
    fn with_interval(&mut self, name: &str, number: Option<f64>, interval: Option<Interval>) {
        let column = match interval {
            Some(Interval { low, high }) => format!("  95% CI: {} to {}", percent(Some(low)), percent(Some(high))),
            None if self.has_intervals && number.is_some() => {
                self.lacks_interval = true;
                "  no 95% CI".to_owned()
            }
            None => String::new(),
        };
        self.row(name, number, &column);
    }

    fn plain(&mut self, name: &str, number: Option<f64>) {
        self.row(name, number, "");
    }

    fn row(&mut self, name: &str, number: Option<f64>, column: &str) {
        let _ = writeln!(self.text, "{name:<28}{:>8}{column}", percent(number));
    }

    fn explain_lacking_interval(&mut self) {
        if self.lacks_interval {
            self.text.push_str(
                "no 95% CI: fewer than 40 resamples (--draws), or some have too few boxes or objects to measure this\n",
            );
        }
    }
}

fn classes<C>(text: &mut String, classes: &[C], line: impl Fn(&C) -> String) {
    for class in classes.iter().take(MAX_CLASSES) {
        let _ = writeln!(text, "{}", line(class));
    }
    let more = classes.len().saturating_sub(MAX_CLASSES);
    if more > 0 {
        let more = counted(more, "more class", "more classes");
        let _ = writeln!(text, "  and {more}; list them all with --out");
    }
}

fn images(count: u64) -> String {
    counted(count as usize, "image", "images")
}

fn objects(count: u64) -> String {
    counted(count as usize, "object", "objects")
}

/// `37.2 %`; `-` if there is nothing to measure.
fn percent(number: Option<f64>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| format!("{:.1}%", number * 100.0))
}
