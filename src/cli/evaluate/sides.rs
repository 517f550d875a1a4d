//! Opens the two sides of an evaluation.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};

use super::EvaluateArgs;
use crate::annotations;
use crate::annotations::matching::{Folders, ImageKey, ImageMatches, MatchRules};
use crate::cli::place::{self, S3Args, parse_location};
use crate::cli::stored::{choose_predictions, open_project, stored_view};
use crate::cli::truth::{self, files, is_project, names_of_run, problem_notes};
use crate::cli::values::{NmsIou, find_labels};
use crate::dirs::AppDirs;
use crate::domain::{LabelSet, ModelTask, RunInfo, Sample, TruthLabel, ViewSettings};
use crate::evaluation::pipeline::{EvaluateError, FileSide, RunSide, annotation_sides, run_sides};
use crate::evaluation::{GroundTruth, Sides};
use crate::image::size::image_size;
use crate::image::source::{Source, for_task};
use crate::project::Project;
use crate::sagemaker::jobs::quoted;
use crate::tasks::{Cancelled, ProgressUnit, TaskControl, in_parallel};

/// The minimum score without a project.
const USUAL_MIN_SCORE: f64 = 0.5;

/// A source, and its current images.
pub(crate) type Listing = (Arc<dyn Source>, Vec<Sample>);

/// What is measured.
pub(crate) struct Opened {
    pub(crate) sides: Sides,
    /// The images, if a source is given.
    pub(crate) listed: Option<Listing>,
    /// The run, unless the predictions are in a file.
    pub(crate) run: Option<OpenedRun>,
}

pub(crate) struct OpenedRun {
    pub(crate) project: Project,
    pub(crate) run: RunInfo,
    /// The run to compare with.
    pub(crate) other: Option<(String, Sides)>,
}

pub(crate) fn read(args: &EvaluateArgs, dirs: &AppDirs, control: &TaskControl) -> anyhow::Result<Opened> {
    let listed = args.source.as_deref().map(|source| listing(source, &args.s3, control)).transpose()?;
    let corrections = args.truth.corrections()?;
    let folders = args.truth.folders();
    let rules = MatchRules { corrections: &corrections, folders };
    let (truth, mut notes, sides, run) = if let Some(predictions) = &args.predictions {
        check_is_no_project(predictions)?;
        control.begin(ProgressUnit::Bytes);
        control.set_step("predictions");
        let files = files(predictions, &args.s3)?;
        let mut found = annotations::open(&files, control).context("Could not read the predictions")?;
        if let Some(labels) = &args.labels {
            let named = annotations::name_classes(&mut found.annotations, &find_labels(labels)?);
            named.map_err(|reason| anyhow!("{} {reason}", files.name()))?;
        }
        let names = || match &listed {
            Some((_, samples)) => Ok(names_of(samples)),
            None => Ok(found.annotations.images.iter().map(|image| image.name.clone()).collect()),
        };
        let truth = args.truth.read(&args.s3, dirs, control, names, || labels_of(&found.annotations.classes))?;
        let is_detection = truth.task == ModelTask::Detection;
        let of_images = listed.as_ref().filter(|_| is_detection);
        let sizes = of_images.map(|listed| image_sizes(&truth, listed, folders, control)).transpose()?;
        let notes = problem_notes(&found.annotations.problems);
        let min_score = args.min_score.unwrap_or(USUAL_MIN_SCORE);
        let side = FileSide { name: files.name(), found, min_score, sizes: sizes.as_deref() };
        let sides = annotation_sides(&truth, side, rules);
        (truth, notes, sides, None)
    } else {
        let path = args.project.as_ref().or(args.source.as_ref());
        let path: &PathBuf = path.context("Specify an image folder, --project or --predictions")?;
        let project = open_project(path, &args.s3, dirs, "spotcheck evaluate")?;
        let run = choose_predictions(&project, args.run.as_deref(), "evaluating")?;
        let names = || match &listed {
            Some((_, samples)) => Ok(names_of(samples)),
            None => names_of_run(&project, &run, control),
        };
        let truth = args.truth.read(&args.s3, dirs, control, names, || run.labels.clone())?;
        let sides_of = |run: &RunInfo| -> anyhow::Result<Result<Sides, EvaluateError>> {
            let view = view_of(&project, run, args)?;
            let listed = listed.as_ref().map(|(_, samples)| samples.iter().collect());
            Ok(run_sides(&truth, &RunSide { project: &project, run, view: &view, listed }, rules, control))
        };
        let sides = sides_of(&run)?;
        let other =
            args.than.as_deref().map(|name| choose_predictions(&project, Some(name), "comparing")).transpose()?;
        if other.as_ref().is_some_and(|other| other.id == run.id) {
            bail!("--than {} is the evaluated run; choose another one", run.name);
        }
        let other = other.map(|other| {
            let sides = sides_of(&other)?.map_err(|error| with_advice(error, args))?;
            anyhow::Ok((other.name, sides))
        });
        let other = other.transpose()?;
        (truth, Vec::new(), sides, Some(OpenedRun { project, run, other }))
    };
    let mut sides = sides.map_err(|error| with_advice(error, args))?;
    notes.splice(0..0, problem_notes(&truth.problems));
    sides.notes.extend(notes);
    Ok(Opened { sides, listed, run })
}

/// The class names in the order of their numbers, counted from 0 if they have none.
fn labels_of(classes: &[TruthLabel]) -> LabelSet {
    let mut named: Vec<&TruthLabel> = classes.iter().filter(|class| class.name.is_some()).collect();
    named.sort_by_key(|class| class.number);
    (0..).zip(named.into_iter().filter_map(|class| class.name.clone())).collect()
}

fn check_is_no_project(predictions: &Path) -> anyhow::Result<()> {
    if is_project(predictions) {
        bail!("The predictions are in a project; use --project {}", quoted(&predictions.to_string_lossy()));
    }
    Ok(())
}

fn names_of(samples: &[Sample]) -> Vec<String> {
    samples.iter().map(|sample| sample.name.clone()).collect()
}

/// Adds what to do on the command line.
fn with_advice(error: EvaluateError, args: &EvaluateArgs) -> anyhow::Error {
    let advice = match &error {
        EvaluateError::UnknownSize { .. } if args.source.is_some() => "SOURCE does not contain this image",
        EvaluateError::UnknownSize { .. } => "Add the image folder: spotcheck evaluate FOLDER --truth …",
        EvaluateError::OtherTask { .. } if args.predictions.is_some() => return error.into(),
        _ => return truth::with_advice(error),
    };
    anyhow!("{error}. {advice}")
}

/// The project's last view settings, overridden by the flags.
fn view_of(project: &Project, run: &RunInfo, args: &EvaluateArgs) -> anyhow::Result<ViewSettings> {
    let mut view = stored_view(project, run)?;
    if let Some(min_score) = args.min_score {
        view.min_score = min_score as f32;
        view.min_score_by_class.clear();
    }
    if let Some(NmsIou(iou)) = args.nms_iou {
        view.nms_iou = iou;
    }
    Ok(view)
}

fn listing(source: &Path, s3: &S3Args, control: &TaskControl) -> anyhow::Result<Listing> {
    control.begin(ProgressUnit::Images);
    control.set_step("listing the images");
    let opened = place::open(&parse_location(source, s3)?, control)?;
    let samples = for_task(&opened.source, control).pages().flat_map(|page| page.samples).collect();
    control.checkpoint()?;
    Ok((opened.source, samples))
}

/// The size of each ground-truth image: for boxes that are fractions, and for checking that annotations are for images of this
/// size. Reads the headers of the ground-truth images. Images that the source does not have get no size.
///
/// # Errors
/// Canceled, or the only source of an image's size cannot be read: without its boxes, the metrics would be wrong.
fn image_sizes(
    truth: &GroundTruth,
    (source, samples): &Listing,
    folders: Folders,
    control: &TaskControl,
) -> anyhow::Result<Vec<Option<[u32; 2]>>> {
    let named: Vec<ImageKey<'_>> = samples.iter().map(|sample| ImageKey::named(&sample.name)).collect();
    let matches = ImageMatches::between(&truth.keys(), &named, folders);
    let sample = |index: usize| Some((index, &samples[matches.index(index)? as usize]));
    let wanted: Vec<(usize, &Sample)> = (0..truth.images.len()).filter_map(sample).collect();
    control.begin(ProgressUnit::Images);
    control.set_total(Some(wanted.len() as u64));
    control.set_step("reading image sizes");
    let source = for_task(source, control);
    let read = in_parallel(source.useful_reads(), wanted.len(), |_, number| {
        let (index, sample) = wanted[number];
        control.checkpoint()?;
        let size = image_size(&*source, &sample.uri);
        control.add_done(1);
        Ok::<_, Cancelled>((index, size))
    })?;
    control.checkpoint()?;
    let mut sizes = vec![None; truth.images.len()];
    for (index, size) in read {
        let image = &truth.images[index];
        match size {
            Ok(size) => sizes[index] = Some(size),
            Err(error) if image.size.is_none() => bail!("Could not read the size of {}: {error}", image.name),
            // The size in the annotations cannot be checked.
            Err(_) => {}
        }
    }
    Ok(sizes)
}
