//! `spotcheck predict`: a model over a folder, from listing to written results.

use std::io::{BufRead, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Args;

use super::inspect::recognise_for_run;
use super::progress::{summary, with_progress};
use super::{Outcome, describe_latency, describe_refused};
use crate::decode::DecodeLimits;
use crate::dirs::AppDirs;
use crate::domain::{
    DeviceChoice, DeviceReport, KeepRule, ModelCard, Prediction, Problem, Sample, ViewSettings,
};
use crate::export::{AnnotatedFolder, jsonl_line};
use crate::inference::{LoadOptions, OnnxPredictor, runtime};
use crate::library::{Library, LibraryError};
use crate::predict::{PredictOutcome, PredictRequest, SampleResult, Stopped, predict};
use crate::source::{LocalSource, Source};
use crate::tasks::{ProgressUnit, TaskControl};
use crate::vision::Predictor;

#[derive(Debug, Args)]
pub(super) struct PredictArgs {
    /// A folder, an image, or `-` for a list of paths on stdin, one a line
    source: PathBuf,
    /// A model of `spotcheck models list`, or an ONNX file
    #[arg(long, value_name = "ID|FILE.onnx")]
    model: String,
    /// Where to compute: auto, cpu, cuda, webgpu or coreml. A device named here never falls back to another
    #[arg(long, default_value_t)]
    device: DeviceChoice,
    /// Images in one call of the model
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=4096))]
    batch: Option<u32>,
    /// Processor threads for the model
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Option<u32>,
    /// Only the first N images
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Detections below this score are left out
    #[arg(long, default_value_t = KeepRule::default().min_score, value_parser = parse_score)]
    min_score: f32,
    /// How many classes of a classifier are kept
    #[arg(long, default_value_t = KeepRule::default().top_k as u32, value_parser = clap::value_parser!(u32).range(1..))]
    top_k: u32,
    /// Write JSON Lines to this file, or to stdout with `-`; without it a table goes to stdout
    #[arg(long, value_name = "FILE.jsonl|-")]
    out: Option<PathBuf>,
    /// Write each image with its boxes or top classes drawn over it into this folder
    #[arg(long, value_name = "DIR")]
    annotate: Option<PathBuf>,
    /// Refuse images with more megapixels than this
    #[arg(long, default_value_t = DecodeLimits::default().max_megapixels)]
    max_megapixels: u64,
}

fn parse_score(text: &str) -> Result<f32, String> {
    let score = text
        .parse()
        .ok()
        .filter(|score| (0.0..=1.0).contains(score));
    score.ok_or_else(|| "a score lies between 0 and 1".to_owned())
}

pub(super) fn run(args: &PredictArgs) -> anyhow::Result<Outcome> {
    let dirs = AppDirs::find()?;
    let source = open_source(&args.source)?;
    let (samples, listing_problems) = list(&*source, args.limit);
    for problem in &listing_problems {
        eprintln!("skipped {problem}");
    }
    if samples.is_empty() {
        bail!(
            "there is no image in {}; Spotcheck knows JPEG, PNG, WebP, BMP, TIFF and GIF",
            source.name()
        );
    }
    let interrupt = TaskControl::new(ProgressUnit::Bytes);
    let on_interrupt = interrupt.clone();
    ctrlc::set_handler(move || on_interrupt.cancel()).context("Could not listen for Ctrl+C")?;
    let predictor = Arc::new(load(args, &dirs, &interrupt)?);
    let card = predictor.card().clone();
    print_report(&card, &predictor.report());
    if args.batch.is_some_and(|batch| batch > 1) && !card.input.batches {
        eprintln!(
            "note: {} takes one image a call, so --batch changes nothing",
            card.id
        );
    }

    let limits = DecodeLimits {
        max_megapixels: args.max_megapixels,
        ..DecodeLimits::default()
    };
    let mut outputs = Outputs::open(args, card, &source, &limits)?;
    let request = PredictRequest {
        source: Arc::clone(&source),
        samples: samples.into(),
        predictor: Arc::clone(&predictor) as Arc<dyn Predictor>,
        limits,
    };
    let control = TaskControl::new(ProgressUnit::Images);
    let run_control = control.clone();
    let _cancel_run = interrupt.on_cancel(move || run_control.cancel());
    let mut write_error = None;
    let outcome = with_progress("Predicting", &control, || {
        predict(&request, &control, |index, result| {
            if let Err(error) = outputs.write(&request.samples[index], result) {
                write_error.get_or_insert(error);
                control.cancel();
            }
        })
    });
    let failures = outputs.finish()?;
    if let Some(error) = write_error {
        return Err(error);
    }
    eprintln!("{}", summary(&control.progress()));
    if let Some(latency) = describe_latency(&predictor.report()) {
        eprintln!("{latency}");
    }
    conclude(
        &outcome,
        &failures,
        listing_problems.len(),
        request.samples.len(),
    )
}

fn open_source(path: &Path) -> anyhow::Result<Arc<dyn Source>> {
    if path.as_os_str() == "-" {
        let lines = std::io::stdin().lock().lines();
        let paths: Vec<PathBuf> = lines
            .map(|line| line.map(PathBuf::from))
            .filter(|line| line.as_ref().is_ok_and(|path| !path.as_os_str().is_empty()))
            .collect::<Result<_, _>>()
            .context("Could not read the list of paths on stdin")?;
        return Ok(Arc::new(LocalSource::from_paths(paths)));
    }
    let source =
        LocalSource::open(path).with_context(|| format!("Could not open {}", path.display()))?;
    Ok(Arc::new(source))
}

fn list(source: &dyn Source, limit: Option<usize>) -> (Vec<Sample>, Vec<Problem>) {
    let limit = limit.unwrap_or(usize::MAX);
    let (mut samples, mut problems) = (Vec::new(), Vec::new());
    for page in source.pages() {
        problems.extend(page.problems);
        samples.extend(page.samples);
        if samples.len() >= limit {
            samples.truncate(limit);
            break;
        }
    }
    (samples, problems)
}

fn load(
    args: &PredictArgs,
    dirs: &AppDirs,
    control: &TaskControl,
) -> anyhow::Result<OnnxPredictor> {
    let found = match Library::open(dirs).find(&args.model) {
        Err(LibraryError::NoCard { path }) => Err(path),
        found => Ok(found?),
    };
    let runtime = with_progress("ONNX Runtime", control, || {
        runtime::ensure_loaded(dirs, None, control)
    })?;
    let model = match found {
        Ok(model) => model,
        Err(bare_file) => recognise_for_run(&runtime, &bare_file, control)?,
    };
    let options = LoadOptions {
        device: args.device,
        batch: args.batch.map(|batch| batch as usize),
        threads: args.threads.map(|threads| threads as usize),
        keep: KeepRule {
            min_score: args.min_score,
            top_k: args.top_k as usize,
        },
    };
    Ok(OnnxPredictor::load(&runtime, &model, &options, control)?)
}

/// Which model runs where, and why nowhere faster.
fn print_report(card: &ModelCard, report: &DeviceReport) {
    eprintln!(
        "{} on {} because {}",
        card.id,
        report.device.name(),
        report.reason
    );
    for line in describe_refused(&report.refused) {
        eprintln!("{line}");
    }
    for assumed in &card.assumed {
        eprintln!("assumed, not known: {assumed}");
    }
}

/// Everything that a run writes.
struct Outputs {
    card: ModelCard,
    lines: Option<Lines>,
    annotated: Option<AnnotatedFolder>,
    view: ViewSettings,
    failures: Vec<Problem>,
}

/// JSON Lines, on stdout or in a file that appears under its name only once it is whole.
enum Lines {
    Stdout(BufWriter<std::io::Stdout>),
    File {
        writer: BufWriter<tempfile::NamedTempFile>,
        path: PathBuf,
    },
}

impl Outputs {
    fn open(
        args: &PredictArgs,
        card: ModelCard,
        source: &Arc<dyn Source>,
        limits: &DecodeLimits,
    ) -> anyhow::Result<Self> {
        let view = ViewSettings::default();
        let annotated = args.annotate.as_ref().map(|folder| {
            AnnotatedFolder::create(folder, source, limits, &view)
                .with_context(|| format!("Could not use {} for annotated images", folder.display()))
        });
        let lines = args.out.as_ref().map(|path| {
            Lines::open(path).with_context(|| format!("Could not write {}", path.display()))
        });
        Ok(Self {
            card,
            lines: lines.transpose()?,
            annotated: annotated.transpose()?,
            view,
            failures: Vec::new(),
        })
    }

    fn write(&mut self, sample: &Sample, result: SampleResult) -> anyhow::Result<()> {
        match &mut self.lines {
            Some(lines) => lines.write(&jsonl_line(&sample.uri, &self.card, &result))?,
            None => print_row(sample, &result, &self.view)?,
        }
        match result {
            Ok(prediction) => {
                if let Some(annotated) = &mut self.annotated {
                    annotated.add(sample, prediction);
                }
            }
            Err(problem) => self.failures.push(problem),
        }
        Ok(())
    }

    /// Waits for what is still being written. Gives the problems of single images.
    fn finish(mut self) -> anyhow::Result<Vec<Problem>> {
        if let Some(lines) = self.lines {
            lines.finish()?;
        }
        if let Some(annotated) = self.annotated {
            self.failures.extend(annotated.finish());
        }
        Ok(self.failures)
    }
}

impl Lines {
    fn open(path: &Path) -> std::io::Result<Self> {
        if path.as_os_str() == "-" {
            return Ok(Self::Stdout(BufWriter::new(std::io::stdout())));
        }
        let path = std::path::absolute(path)?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let writer = BufWriter::new(tempfile::NamedTempFile::new_in(folder)?);
        Ok(Self::File { writer, path })
    }

    fn write(&mut self, line: &str) -> anyhow::Result<()> {
        match self {
            Self::Stdout(writer) => writeln!(writer, "{line}").context("Could not write to stdout"),
            Self::File { writer, path } => writeln!(writer, "{line}")
                .with_context(|| format!("Could not write {}", path.display())),
        }
    }

    fn finish(self) -> anyhow::Result<()> {
        match self {
            Self::Stdout(mut writer) => writer.flush().context("Could not write to stdout"),
            Self::File { writer, path } => {
                let persist = || -> std::io::Result<()> {
                    let file = writer
                        .into_inner()
                        .map_err(std::io::IntoInnerError::into_error)?;
                    file.persist(&path)?;
                    Ok(())
                };
                persist().with_context(|| format!("Could not write {}", path.display()))
            }
        }
    }
}

/// `chelsea.png            tiger cat 0.38, Egyptian cat 0.37`
fn print_row(sample: &Sample, result: &SampleResult, view: &ViewSettings) -> anyhow::Result<()> {
    let seen = match result {
        Ok(prediction) => describe(prediction, view),
        Err(problem) => format!("failed: {}", problem.message),
    };
    writeln!(std::io::stdout(), "{:<28} {seen}", sample.name).context("Could not write to stdout")
}

fn describe(prediction: &Prediction, view: &ViewSettings) -> String {
    let classes = view
        .visible_classes(prediction)
        .iter()
        .map(|class| (&class.label, class.score));
    let visible = view.visible_detections(prediction);
    let detections = visible.iter().map(|&index| &prediction.detections()[index]);
    let boxes = detections.map(|detection| (&detection.label, detection.score));
    let seen: Vec<String> = classes
        .chain(boxes)
        .map(|(label, score)| format!("{label} {score:.2}"))
        .collect();
    if seen.is_empty() {
        format!("no box above {}", view.min_score)
    } else {
        seen.join(", ")
    }
}

/// Says what happened and what it means for the exit code.
fn conclude(
    outcome: &PredictOutcome,
    failures: &[Problem],
    skipped: usize,
    total: usize,
) -> anyhow::Result<Outcome> {
    for note in &outcome.notes {
        eprintln!("note: {note}");
    }
    if let Some(slowest) = outcome.stages.slowest() {
        eprintln!("the slowest stage was {}", slowest.name());
    }
    for problem in failures {
        eprintln!("failed {problem}");
    }
    let tried = outcome.done + outcome.failed;
    match &outcome.stopped {
        Some(Stopped::Cancelled) => {
            bail!("cancelled after {tried} of {total} images; what was done is written")
        }
        Some(Stopped::DeviceLost(reason)) => {
            bail!(
                "the device was lost after {tried} of {total} images: {reason}; what was done is written"
            )
        }
        None if failures.is_empty() && skipped == 0 => Ok(Outcome::AllWell),
        None => {
            eprintln!(
                "{} of {total} images failed, {skipped} could not be listed",
                failures.len()
            );
            Ok(Outcome::SomeImagesFailed)
        }
    }
}
