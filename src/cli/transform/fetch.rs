//! `spotcheck transform fetch`: reads the outputs of a job as predictions for its images.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Args;

use super::NamedJob;
use super::named_truth::{NamedTruth, truth_in_name};
use crate::aws::Aws;
use crate::cli::Outcome;
use crate::cli::out_file::{Replaceable, check_out};
use crate::cli::place::{self, Opened, S3Args, parse_location};
use crate::cli::predict::outputs::Outputs;
use crate::cli::predict::saving::{SavedLabels, Saving, SavingArgs};
use crate::cli::predict::{Sink, list_images};
use crate::cli::terminal::{interruptible, print_problems, step_of, summary, with_progress};
use crate::cli::values::find_labels;
use crate::dirs::AppDirs;
use crate::domain::{
    CardTask, Change, InferenceLocation, KeepRule, LabelSet, Location, ModelCard, ModelTask, OutputConvention, Problem,
    S3Link, Sample, SampleId, SampleUri, counted,
};
use crate::image::decode::DecodeLimits;
use crate::image::source::{Source, absolute};
use crate::model::catalog::{Library, built_in_labels};
use crate::predict::{ResultSink, SampleResult};
use crate::sagemaker::client::known_to;
use crate::sagemaker::outputs::{
    FoundOutputs, OutputFolder, OutputRun, OutputShape, OutputSink, OutputsError, OutputsOrigin, ReadOutcome,
    ReadingChoice, SeenOutputs,
};
use crate::sagemaker::spec::transform::{TransformJob, TransformStatus, name_problem};
use crate::tasks::{ProgressUnit, TaskControl};

/// The label set whose names are in the file names of CIFAR-10.
const CIFAR_10: &str = "cifar-10";

#[derive(Debug, Args)]
pub(crate) struct FetchArgs {
    /// Job name, or a folder with its outputs: `s3://bucket/folder/` or local
    #[arg(value_name = "JOB|s3://…/|FOLDER")]
    outputs: String,
    /// Images of the job: a folder, an image, a TFRecord file, or a JSON Lines file (`.jsonl`) or JSON document
    /// (`.json`) with images, local or in S3
    source: PathBuf,
    /// Write JSON Lines to this file, or to stdout with `-` [default: a table on stdout]
    #[arg(long, value_name = "FILE.jsonl|-")]
    out: Option<PathBuf>,
    /// Response mapping: id of a saved mapping, or a file [default: recognized from the outputs]
    #[arg(long, value_name = "ID|FILE.toml")]
    mapping: Option<String>,
    /// Class names: imagenet, coco-80, coco-91, cifar-10, or a label file (lines, `.pbtxt`, `.yaml` or `.json`)
    #[arg(long, value_name = "NAME|FILE")]
    labels: Option<String>,
    /// Read the true class from the end of each image name, as in `0017_cat.png`, and print accuracy and the confusion
    /// matrix
    #[arg(long)]
    truth_from_names: bool,
    /// Minimum score of detections
    #[arg(long, default_value_t = KeepRule::default().min_score, value_parser = crate::cli::values::parse_score::<f32>)]
    min_score: f32,
    /// Number of classes per image for classifiers
    #[arg(long, default_value_t = KeepRule::default().top_k as u32, value_parser = clap::value_parser!(u32).range(1..))]
    top_k: u32,
    #[command(flatten)]
    saving: SavingArgs,
    #[command(flatten)]
    s3: S3Args,
}

pub(crate) fn run(args: &FetchArgs) -> anyhow::Result<Outcome> {
    args.check_out()?;
    let dirs = AppDirs::find()?;
    let library = Library::open(&dirs);
    let choice = reading_choice(args, &library)?;
    let interrupt = interruptible(ProgressUnit::Bytes)?;
    let origin = find_origin(args, &interrupt)?;
    let place = parse_location(&args.source, args.s3.for_path(&args.source, !Path::new(&args.outputs).is_dir()))?;
    let place = args.saving.spelt_as_known(place);
    let opened = place::open(&place, &interrupt)?;
    let source = Arc::clone(&opened.source);
    let if_empty = "specify the images that the job predicted. If the job's inputs were lists of images, specify the \
                    folder with the image files";
    let page = list_images(&source, None, args.out.as_deref(), if_empty, &interrupt)?;
    let samples: Arc<[Sample]> = page.samples.into();

    let (control, _cancel) = step_of(&interrupt, ProgressUnit::Images);
    let found = with_progress("Listing outputs", &control, || {
        FoundOutputs::find(origin.parts, &*source, &samples, opened.root.as_deref().unwrap_or_default(), &control)
    });
    let found = match found {
        Err(OutputsError::AllFailed(problems)) => return write_failures(args, &source, &samples, problems),
        found => found?,
    };
    print_found(&found);
    let run = describe(args, &found, &origin.made, choice, &library, &control)?;
    print_reading(&run);

    let (control, _cancel_reading) = step_of(&interrupt, ProgressUnit::Images);
    let saving = begin_saving(args, &opened, &found, &run, &control)?;
    let everything = || (0..samples.len()).map(SampleId::from_index).collect();
    let wanted = saving.as_ref().map_or_else(everything, |saving| saving.missing().clone());
    let limits = DecodeLimits::default();
    let nms_iou = run.card.nms_iou();
    let mut outputs = Outputs::open(args.out.as_deref(), None, run.card.clone(), nms_iou, &source, &limits)?;
    let truth = Rc::new(RefCell::new(NamedTruth::new(&run.labels)));
    if args.truth_from_names {
        let truth = Rc::clone(&truth);
        outputs.observe(move |sample, prediction| truth.borrow_mut().add(sample, prediction));
    }
    let mut sink = FetchSink(Sink {
        samples: &samples,
        control: &control,
        outputs,
        saving,
        unsaved: Vec::new(),
        embeddings: None,
        error: None,
    });
    let outcome =
        with_progress("Reading outputs", &control, || found.read(&run.reader, &source, &wanted, &control, &mut sink));
    let FetchSink(mut sink) = sink;
    if !outcome.is_cancelled
        && outcome.unreachable.is_none()
        && let Some(saving) = &sink.saving
        && let Err(error) = saving.note(SeenOutputs::all_of(&found).change(saving.run()))
    {
        sink.fail(error);
    }
    let failures = sink.finish(&interrupt)?.predicting;
    eprintln!("{}", summary(&control.progress()));
    if args.truth_from_names {
        eprint!("{}", truth.borrow().text());
    }
    conclude(&outcome, &failures, &found, samples.len())
}

fn print_found(found: &FoundOutputs) {
    eprintln!(
        "{}; {} of {} images have one{}",
        counted(found.outputs(), "output", "outputs"),
        found.images(),
        found.samples().len(),
        lists_text(found.lists())
    );
    if let Some(retries) = found.retries_text() {
        eprintln!("{retries}");
    }
    for note in found.notes() {
        eprintln!("note: {note}");
    }
}

/// How outputs are read, including assumptions.
fn print_reading(run: &OutputRun) {
    eprintln!("{}", run.card.origin);
    for assumed in &run.card.assumed {
        eprintln!("assumed: {assumed}");
    }
    if run.labels.is_empty() && matches!(run.reader.shape(), OutputShape::Mapped(_)) {
        eprintln!("note: the outputs have no class names; set them with --labels");
    }
}

/// Writes the reasons if all images failed. Without a prediction, there is no model and nothing to save.
fn write_failures(
    args: &FetchArgs,
    source: &Arc<dyn Source>,
    samples: &[Sample],
    problems: Vec<Problem>,
) -> anyhow::Result<Outcome> {
    let no_model = ModelCard::for_predictions(
        String::new(),
        String::new(),
        OutputConvention::for_predictions(ModelTask::Classification),
    );
    let limits = DecodeLimits::default();
    let mut outputs = Outputs::open(args.out.as_deref(), None, no_model, None, source, &limits)?;
    let mut failed: HashMap<SampleUri, Problem> =
        problems.into_iter().filter_map(|problem| Some((problem.uri.clone()?, problem))).collect();
    for sample in samples {
        if let Some(problem) = failed.remove(&sample.uri) {
            outputs.write(sample, Err(problem))?;
        }
    }
    let failures = outputs.finish()?.predicting;
    print_problems("failed ", &failures);
    if args.saving.project().is_some() {
        eprintln!("note: there are no predictions, so nothing was saved");
    }
    eprintln!("{} of {} images failed (none of them has an output)", failures.len(), samples.len());
    Ok(Outcome::SomeImagesFailed)
}

/// Describes the outputs for lists, whose images are not known yet.
fn lists_text(lists: usize) -> String {
    match lists {
        0 => String::new(),
        1 => " of their own; 1 output is for a list of images".to_owned(),
        lists => format!(" of their own; {lists} outputs are for lists of images"),
    }
}

/// The project's run in which predictions are saved; `None` without --project.
fn begin_saving(
    args: &FetchArgs,
    opened: &Opened,
    found: &FoundOutputs,
    run: &OutputRun,
    control: &TaskControl,
) -> anyhow::Result<Option<Saving>> {
    let program = "spotcheck transform fetch";
    let Some(project) = args.saving.open_project(opened, program)? else {
        return Ok(None);
    };
    let labels = match run.reader.given_labels() {
        Some(labels) => SavedLabels::given(labels),
        None => SavedLabels::recorded_by_reader(),
    };
    let key = run.key.clone();
    let about = (&run.card, labels);
    let mut saving = Saving::begin(&args.saving, project, key, about, found.samples(), control)?;
    let runs = saving.project().runs()?;
    if let Some(known) = runs.iter().find(|known| known.id == saving.run()) {
        run.reader.learn(&known.labels);
    }
    match SeenOutputs::from_run(saving.project(), saving.run())? {
        Some(seen) => saving.request_again(&seen.newer(found)),
        // If reading stopped before the end, no output newer than these was read.
        None => saving.note(SeenOutputs::all_of(found).change(saving.run()))?,
    }
    Ok(Some(saving))
}

impl FetchArgs {
    fn check_out(&self) -> anyhow::Result<()> {
        let Some(out) = &self.out else {
            return Ok(());
        };
        let [mapping, labels] = [&self.mapping, &self.labels].map(|named| {
            let path = named.as_deref().map(Path::new);
            path.filter(|path| path.exists())
        });
        let inputs = [
            ("the images", Some(&*self.source)),
            ("the outputs", Some(Path::new(&self.outputs))),
            ("the project", self.saving.project()),
            ("the mapping", mapping),
            ("the class names", labels),
        ];
        check_out(out, Replaceable::JsonLines, &inputs)
    }
}

fn reading_choice(args: &FetchArgs, library: &Library) -> anyhow::Result<ReadingChoice> {
    let mapping = args.mapping.as_deref().map(|wanted| library.find_mapping(wanted)).transpose()?;
    let (mapping, of_mapping) = match mapping {
        Some((mapping, labels)) => (Some(mapping), Some(labels).filter(|set| !set.is_empty())),
        None => (None, None),
    };
    let labels = args.labels.as_deref().map(find_labels).transpose()?;
    Ok(ReadingChoice {
        mapping,
        labels: labels.or(of_mapping),
        keep: KeepRule { min_score: args.min_score, top_k: args.top_k as usize },
    })
}

fn find_origin(args: &FetchArgs, control: &TaskControl) -> anyhow::Result<OutputsOrigin> {
    let wanted = args.outputs.as_str();
    let of_folder = |location: Location| Ok(OutputsOrigin::from_folder(OutputFolder::new(&Aws::new(), &location)));
    if S3Link::is_address(wanted) {
        return of_folder(parse_location(Path::new(wanted), &args.s3)?);
    }
    if wanted.trim().is_empty() {
        bail!("no outputs specified: add a job name, s3://bucket/folder/ or a local folder");
    }
    let path = absolute(Path::new(wanted))?;
    if path.is_dir() {
        return of_folder(Location::Path(path));
    }
    if wanted.contains(['/', '\\', '.']) {
        bail!("the folder does not exist: {wanted}");
    }
    if let Some(problem) = name_problem(wanted) {
        bail!("this folder does not exist, and the job name {problem}");
    }
    let no_folder = || format!("“{wanted}” is not a local folder, so it was treated as a job name");
    let named = NamedJob::find(wanted, &args.s3, control).with_context(no_folder)?;
    let asked = (&named.sagemaker, &named.s3);
    let origin = OutputsOrigin::find(&named.aws, asked, wanted, &named.records, control).with_context(no_folder)?;
    if let Some(job) = &origin.job {
        print_status(job);
    }
    for note in &origin.notes {
        eprintln!("note: {note}");
    }
    Ok(origin)
}

fn print_status(job: &TransformJob) {
    let name = &job.spec.job_name;
    match job.status {
        TransformStatus::Completed => {}
        TransformStatus::Failed => eprintln!(
            "note: job {name} failed ({}); reading the outputs written before that",
            job.failure.as_deref().unwrap_or("no reason reported")
        ),
        TransformStatus::Stopped | TransformStatus::Stopping => {
            eprintln!("note: job {name} was stopped; images that it did not reach have no output");
        }
        TransformStatus::InProgress => {
            eprintln!("note: job {name} is still running; read its later outputs with --resume");
        }
    }
}

fn describe(
    args: &FetchArgs,
    found: &FoundOutputs,
    made: &InferenceLocation,
    choice: ReadingChoice,
    library: &Library,
    control: &TaskControl,
) -> anyhow::Result<OutputRun> {
    let describe = |choice: &ReadingChoice| {
        let run = found.describe(made.clone(), choice, known_to(library), control);
        run.map_err(|error| match error {
            OutputsError::Unknown { example, reason } => anyhow::anyhow!(
                "{reason}\nDescribe the format in a mapping and pass it with --mapping FILE.toml; see \
                 docs/outputs-and-mappings.md. The output: {example}"
            ),
            error => error.into(),
        })
    };
    let run = describe(&choice)?;
    let can_be_cifar = args.truth_from_names
        && run.labels.is_empty()
        && !run.reader.shape().contains_size()
        && run.card.task == CardTask::Classification;
    let Some(labels) = built_in_labels(CIFAR_10).filter(|_| can_be_cifar) else {
        return Ok(run);
    };
    let is_known = |sample: &Sample| {
        let truth = truth_in_name(&sample.name).map(str::to_lowercase);
        truth.is_some_and(|truth| labels.iter().any(|(_, name)| name == truth))
    };
    if !found.samples().iter().all(is_known) {
        return Ok(run);
    }
    let mut run = describe(&ReadingChoice { labels: Some(labels), ..choice })?;
    run.card.assumed.push("the classes are CIFAR-10 in the standard order, as the image names suggest".to_owned());
    Ok(run)
}

/// The sink of `predict`, which also saves class names as they become known.
struct FetchSink<'r>(Sink<'r>);

impl ResultSink for FetchSink<'_> {
    fn arrived(&mut self, index: usize, result: &SampleResult) {
        self.0.arrived(index, result);
    }

    fn in_order(&mut self, index: usize, result: SampleResult) {
        self.0.in_order(index, result);
    }
}

impl OutputSink for FetchSink<'_> {
    fn labels(&mut self, labels: &LabelSet) {
        if let Some(saving) = &self.0.saving {
            let change = Change::SetRunLabels(saving.run(), labels.clone());
            if let Err(error) = saving.note(change) {
                self.0.fail(error);
            }
        }
    }
}

/// Reports the result, and returns the outcome for the exit code.
fn conclude(
    outcome: &ReadOutcome,
    failures: &[Problem],
    found: &FoundOutputs,
    images: usize,
) -> anyhow::Result<Outcome> {
    print_problems("failed ", &outcome.problems);
    print_problems("failed ", failures);
    for note in outcome.not_sent_text().into_iter().chain(outcome.unchecked_text()) {
        eprintln!("note: {note}");
    }
    let without = &outcome.without_output;
    if let Some(first) = without.first()
        && !outcome.is_cancelled
        && outcome.unreachable.is_none()
    {
        eprintln!(
            "{} of {images} images have no output and no prediction, such as {}; read later outputs with --resume",
            without.len(),
            found.samples()[*first].uri
        );
    }
    if outcome.is_cancelled {
        bail!(
            "canceled after {} images; their predictions are saved. Rerun the command with --resume to read the rest",
            outcome.done + outcome.failed
        );
    }
    if let Some(reason) = &outcome.unreachable {
        bail!(
            "outputs or images became unreadable after {} of {images} images; their predictions are saved. Rerun the \
             command with --resume to read the rest: {reason}",
            outcome.done + outcome.failed
        );
    }
    if failures.is_empty() && outcome.problems.is_empty() && without.is_empty() {
        return Ok(Outcome::AllWell);
    }
    // Missing outputs of an ended job are among the failed ones.
    let failed_there = found.permanently_missing().count();
    let others = without.len().saturating_sub(failed_there);
    let parts = [
        (failed_there, format!(" ({failed_there} of them without an output)")),
        (others, format!(", and {others} have no output")),
    ];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    let counts: String = parts.map(|(_, text)| text).collect();
    if !failures.is_empty() {
        eprintln!("{} of {images} images failed{counts}", failures.len());
    }
    Ok(Outcome::SomeImagesFailed)
}
