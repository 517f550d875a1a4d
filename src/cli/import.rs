//! `spotcheck import`: imports predictions from other tools as a run of a project.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{anyhow, bail};
use clap::Args;

use super::Outcome;
use super::place::{self, S3Args, is_in_s3, is_stdin, parse_location};
use super::predict::list;
use super::predict::saving::{SavedLabels, Saving, SavingArgs};
use super::terminal::{interruptible, print_problems, step_of, summary, with_progress};
use super::values::{find_labels, read_class_map};
use crate::annotations::import::{AnnotationFile, ImportError, ImportedRun, Naming};
use crate::annotations::matching::Folders;
use crate::aws::Aws;
use crate::domain::{Location, Sample, SampleId, Unscored};
use crate::image::source::{Files, absolute};
use crate::tasks::{ProgressUnit, TaskControl};

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Predicted images: a folder, an image or a TFRecord file, local or in S3
    source: PathBuf,
    /// Predictions: a file or folder, local or in S3, in any format of docs/ground-truth.md
    #[arg(long, value_name = "FILE|DIR|s3://…")]
    predictions: PathBuf,
    /// Import ground truth without scores to correct it; each box or class gets a score of 1
    #[arg(long)]
    to_correct: bool,
    /// Ground truth with image and class names for predictions that contain only ids, such as COCO results
    #[arg(long, value_name = "FILE|DIR|s3://…")]
    truth: Option<PathBuf>,
    /// Split of the `data.yaml` in --truth, or else in --predictions: train, val or test [default: val]
    #[arg(long, value_name = "NAME")]
    split: Option<String>,
    /// Match images by file name even if their folders differ
    #[arg(long)]
    ignore_folders: bool,
    /// Class names: imagenet, coco-80, coco-91, cifar-10, a label file, or a label map (`.pbtxt`) [default: from the
    /// predictions]
    #[arg(long, value_name = "NAME|FILE")]
    labels: Option<String>,
    /// CSV file with class corrections by name or number: one `from,to` per line; an empty `to` skips the class
    #[arg(long, value_name = "FILE")]
    class_map: Option<PathBuf>,
    /// Model name [default: the name of the file or folder]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    saving: SavingArgs,
    #[command(flatten)]
    s3: S3Args,
}

pub(crate) fn run(args: &ImportArgs) -> anyhow::Result<Outcome> {
    if args.saving.project().is_none() {
        bail!("add --project FILE.spotcheck: predictions are imported into a project");
    }
    let interrupt = interruptible(ProgressUnit::Bytes)?;
    let (run, problems) = read_run(args, &interrupt)?;
    report_classes(&run);

    let place = parse_location(&args.source, args.s3.for_path(&args.source, args.any_is_in_s3()))?;
    let opened = place::open(&args.saving.spelt_as_known(place), &interrupt)?;
    let source = Arc::clone(&opened.source);
    let page = list(&source, None, &interrupt)?;
    print_problems("skipped ", &page.problems);
    if page.samples.is_empty() {
        bail!("No images in {}", source.name());
    }
    let samples = page.samples;
    let folders = if args.ignore_folders { Folders::MayDiffer } else { Folders::Agree };
    let matches = run.match_images(&samples, folders).map_err(with_flag)?;

    let (control, _cancel) = step_of(&interrupt, ProgressUnit::Images);
    let Some(project) = args.saving.open_project(&opened, "spotcheck import")? else {
        bail!("add --project FILE.spotcheck");
    };
    let with_prediction: Vec<Sample> =
        matches.pairs.iter().map(|(sample, _)| samples[sample.index()].clone()).collect();
    let saved = SavedLabels::given(run.labels.clone());
    let mut saving =
        Saving::begin(&args.saving, project, run.key.clone(), (&run.card, saved), &with_prediction, &control)?;
    let is_missing = |index: &usize| saving.missing().contains(SampleId::from_index(*index));
    let missing: Vec<(SampleId, Option<u32>)> =
        (0..matches.pairs.len()).filter(is_missing).map(|index| matches.pairs[index]).collect();
    let mut failures = Vec::new();
    let imported = with_progress("Importing", &control, || {
        run.each_prediction(&source, &samples, &missing, &control, |sample, result| -> anyhow::Result<()> {
            failures.extend(result.as_ref().err().cloned());
            saving.save(&samples[sample.index()], result, &control)
        })
    });
    saving.finish(&interrupt)?;
    let outside = imported?;
    eprintln!("{}", summary(&control.progress()));
    print_problems("failed ", &failures);
    eprintln!("{}", matches.summary());
    for line in run.unmatched_lines(&matches).into_iter().chain(outside.line()).chain(run.unmarked_line()) {
        eprintln!("warning: {line}");
    }
    if matches.other_folders.as_ref().is_some_and(|found| found.are_refused) {
        eprintln!("If these are the same images, import again with --ignore-folders");
    }
    let is_well = !outside.are_many()
        && run.unknown_classes.is_empty()
        && failures.is_empty()
        && problems == 0
        && run.left_out.is_empty()
        && run.unmarked == 0
        && matches.is_complete();
    Ok(if is_well { Outcome::AllWell } else { Outcome::SomeImagesFailed })
}

/// Reads the predictions as a run, and counts their unusable entries.
fn read_run(args: &ImportArgs, interrupt: &TaskControl) -> anyhow::Result<(ImportedRun, u64)> {
    let corrections = args.class_map.as_deref().map(read_class_map).transpose()?.unwrap_or_default();
    let labels = args.labels.as_deref().map(find_labels).transpose()?;
    let (of_truth, of_predictions) = match &args.truth {
        Some(_) => (args.split.as_deref(), None),
        None => (None, args.split.as_deref()),
    };
    let predictions = read(&args.predictions, of_predictions, args, "Reading predictions", interrupt)?;
    let problems = predictions.found.annotations.problems.total();
    let truth = args.truth.as_ref();
    let truth = truth.map(|truth| read(truth, of_truth, args, "Reading ground truth", interrupt)).transpose()?;
    let truth = truth.as_ref().map(|truth| &truth.found.annotations);
    let truth = truth.map(|truth| (&truth.classes[..], &truth.images[..]));
    let unscored = if args.to_correct { Unscored::Labels } else { Unscored::Refused };
    let naming = Naming { truth, labels, corrections, model: args.name.as_deref(), unscored };
    let run = ImportedRun::new(predictions, naming).map_err(|error| match (&error, &args.class_map) {
        (ImportError::NoScores { .. }, _) => anyhow!("{error}. To correct it, add --to-correct"),
        (ImportError::Classes(_), Some(path)) => anyhow!(error).context(format!("Could not use {}", path.display())),
        _ => anyhow!(error),
    })?;
    Ok((run, problems))
}

/// Reports skipped and unknown classes, and corrections for classes that do not occur.
fn report_classes(run: &ImportedRun) {
    if !run.left_out.is_empty() {
        eprintln!("skipped, because --labels does not name their classes: {}", run.left_out.join(", "));
    }
    if !run.unknown_classes.is_empty() {
        eprintln!("warning: classes that --truth does not have: {}", run.unknown_classes.join(", "));
    }
    if !run.unused_corrections.is_empty() {
        eprintln!(
            "class corrections for classes that the predictions do not have: {}",
            run.unused_corrections.join(", ")
        );
    }
}

/// Adds the flag that can help to an error of matching images.
fn with_flag(error: ImportError) -> anyhow::Error {
    match error {
        ImportError::OtherFolders { .. } => anyhow!("{error}. If the images are the same, add --ignore-folders"),
        ImportError::NoImage { .. } => {
            anyhow!("{error}. If the predictions identify images only by number, add the dataset with --truth")
        }
        error => anyhow!(error),
    }
}

/// Reads annotations, and reports the detected format and unusable entries.
fn read(
    path: &Path,
    split: Option<&str>,
    args: &ImportArgs,
    label: &str,
    interrupt: &TaskControl,
) -> anyhow::Result<AnnotationFile> {
    let files = match parse_location(path, args.s3.for_path(path, args.any_is_in_s3()))? {
        Location::Path(path) if is_stdin(&path) => bail!("predictions are read from a file or folder, not from stdin"),
        Location::Path(path) => Files::local(&absolute(&path)?),
        Location::S3(place) => Files::in_s3(&Aws::new(), &place),
    };
    let (control, _cancel) = step_of(interrupt, ProgressUnit::Bytes);
    let file = with_progress(label, &control, || AnnotationFile::read(&files, split, &control))?;
    eprintln!("{}: {}", file.name, file.summary());
    for remark in file.remarks() {
        eprintln!("{remark}");
    }
    Ok(file)
}

impl ImportArgs {
    fn any_is_in_s3(&self) -> bool {
        let locations = [Some(&self.source), Some(&self.predictions), self.truth.as_ref()];
        locations.into_iter().flatten().any(|path| is_in_s3(path))
    }
}
